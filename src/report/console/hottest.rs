//! The functions that use the most time themselves, wherever they are called from.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::profile::Arranged;
use crate::report::label::{Label, Labels};

use super::columns::{Amount, Numbers};

/// The hottest functions, and what is left.
#[derive(Debug)]
pub(super) struct Hottest<'l> {
    /// The greatest exclusive share first.
    pub(super) rows: Vec<(Label<'l>, Numbers)>,
    /// How many more functions have a share of their own.
    pub(super) more: usize,
    /// Their exclusive shares together.
    pub(super) rest: Amount,
}

/// At most this many rows.
const MOST: usize = 10;
/// This many where no function has a notable share.
const FEW: usize = 5;
/// In percent.
const NOTABLE: f64 = 1.0;

/// Adds up all nodes that read alike.
pub(super) fn hottest<'l, E: Copy + Eq + Hash>(
    arranged: &Arranged<E>,
    labels: &'l impl Labels<E>,
) -> Hottest<'l> {
    let mut names: Vec<Label<'l>> = Vec::new();
    let mut by_text: FxHashMap<String, usize> = FxHashMap::default();
    let mut of_entry: FxHashMap<E, usize> = FxHashMap::default();
    for (_, node) in arranged.counts.nodes() {
        of_entry.entry(node.entry).or_insert_with(|| {
            let label = labels.label(node.entry);
            *by_text.entry(label.text.to_string()).or_insert_with(|| {
                names.push(label);
                names.len() - 1
            })
        });
    }
    let mut table = arranged.table(|entry| of_entry.get(&entry).copied());
    // Processes and threads have nothing of their own.
    table.retain(|row| row.exclusive != 0);
    let text = |name: usize| names.get(name).map(|label| &label.text);
    table.sort_by(|a, b| {
        let by = |row: &crate::profile::Row<usize>| Reverse(row.exclusive.unsigned_abs());
        by(a).cmp(&by(b)).then_with(|| text(a.key).cmp(&text(b.key)))
    });
    let notable = arranged.counts.total().unsigned_abs() as f64 * NOTABLE / 100.0;
    let shown = table.partition_point(|row| row.exclusive.unsigned_abs() as f64 >= notable).min(MOST);
    let shown = if shown == 0 { FEW.min(table.len()) } else { shown };
    let rest = table.split_off(shown);
    let rows = table.into_iter().filter_map(|row| {
        let numbers = Numbers {
            inclusive: Some(Amount { samples: row.inclusive, value: row.inclusive_value }),
            exclusive: Some(Amount { samples: row.exclusive, value: row.exclusive_value }),
        };
        Some((names.get(row.key)?.clone(), numbers))
    });
    let mut left = Amount::default();
    for row in &rest {
        left.samples += row.exclusive;
        left.value += row.exclusive_value;
    }
    Hottest { rows: rows.collect(), more: rest.len(), rest: left }
}
