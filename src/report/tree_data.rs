//! The whole call tree for programs: every node with its facts, a node before those below it.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::compare::Shaped;
use crate::prefix_tree::NodeId;
use crate::profile::{Arranged, Category, Entry, Unit, Unresolved};

use super::format::{Content, Format, Needs, Picture, Tops};
use super::grid::Csv;
use super::label::Labels;
use super::spelling::Spelling;
use super::text::{cell, json_text, nanoseconds};

/// The tree as JSON.
pub const JSON: Format = Format {
    name: "json",
    endings: &[".json"],
    about: "Call tree for programs, with every node",
    viewers: "",
    content: Content::Plain,
    tops: Tops::AsAsked,
    needs: Needs::NOTHING,
    write: |mut out, picture: &Picture<'_>| {
        let seconds = picture.profile().seconds(picture.range);
        let made = Made {
            seconds,
            dispersion: picture.profile().dispersion(),
            shaped: Shaped::new(picture.profile().metric, picture.shape, picture.chosen),
            unit: picture.profile().metric.unit,
        };
        write_json(&mut out, picture.arranged, picture.labels, &made)
    },
};

/// The tree as CSV.
pub const CSV: Format = Format {
    name: "csv",
    endings: &[".csv"],
    about: "The same in rows",
    write: |mut out, picture: &Picture<'_>| {
        write_csv(&mut out, picture.arranged, picture.labels, picture.profile().metric.unit)
    },
    ..JSON
};

/// What a node shows of its entry: the same for every node of that.
#[derive(Serialize)]
struct Facts {
    name: String,
    key: String,
    module: String,
    file: Option<String>,
    line: Option<u32>,
    category: Category,
    inlined: bool,
    unnamed: Option<Unresolved>,
}

impl Facts {
    fn of(spelling: &Spelling<'_>, entry: Entry) -> Facts {
        let label = spelling.label(entry);
        let (file, line) = spelling.line(entry).map(|line| (line.file.to_string(), line.line)).unzip();
        Facts {
            key: spelling.key(entry),
            module: spelling.module(entry),
            file,
            line,
            category: label.category,
            inlined: label.inlined,
            unnamed: spelling.unnamed(entry),
            name: label.text.into_owned(),
        }
    }
}

/// A node and its numbers.
struct Node {
    /// The node above it, by its place in the array, from 0.
    parent: Option<usize>,
    entry: Entry,
    exclusive: i64,
    inclusive: i64,
    exclusive_ns: i64,
    inclusive_ns: i64,
}

/// The nodes, depth first, those with more samples before their siblings. A trace may be deeper than the program's stack.
///
/// Values that are no time are what is counted too.
fn nodes(arranged: &Arranged, unit: Unit) -> impl Iterator<Item = Node> {
    let ns = move |value| if unit == Unit::Time { nanoseconds(value) } else { 0 };
    let mut next: Vec<(NodeId, Option<usize>)> =
        arranged.counts.roots().iter().rev().map(|root| (*root, None)).collect();
    let mut index = 0;
    std::iter::from_fn(move || {
        let (id, parent) = next.pop()?;
        let (counts, values) = (arranged.counts.node(id)?, arranged.values.node(id)?);
        next.extend(arranged.counts.children(counts).iter().rev().map(|child| (*child, Some(index))));
        index += 1;
        Some(Node {
            parent,
            entry: counts.entry,
            exclusive: counts.exclusive(),
            inclusive: counts.inclusive(),
            exclusive_ns: ns(values.exclusive()),
            inclusive_ns: ns(values.inclusive()),
        })
    })
}

/// What is to be known of a tree that is compared with another.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// How long was recorded, in seconds.
    pub seconds: f64,
    /// By how much chance changes it: see [`Run::dispersion`](crate::compare::Run::dispersion).
    pub dispersion: f64,
    /// How it was made.
    pub shaped: Shaped,
    /// What its values are.
    pub unit: Unit,
}

/// Writes a tree as JSON, a node on each line. It is never in memory as a whole.
pub fn write_json(
    out: &mut impl Write,
    arranged: &Arranged,
    spelling: &Spelling<'_>,
    made: &Made,
) -> io::Result<()> {
    let Made { seconds, dispersion, shaped, .. } = made;
    let (kept, shape) = (arranged.counts.total(), json_text(shaped)?);
    write!(
        out,
        "{{\"kept\":{kept},\"seconds\":{seconds},\"dispersion\":{dispersion},\"shape\":{shape},\"nodes\":["
    )?;
    // The fields of each entry, without the braces around them.
    let mut facts: FxHashMap<Entry, String> = FxHashMap::default();
    for (index, node) in nodes(arranged, made.unit).enumerate() {
        let Node { parent, entry, exclusive, inclusive, exclusive_ns, inclusive_ns } = node;
        let facts = match facts.entry(entry) {
            Occupied(known) => known.into_mut(),
            Vacant(new) => {
                let object = json_text(&Facts::of(spelling, entry))?;
                let fields = object.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
                new.insert(fields.unwrap_or_default().to_owned())
            }
        };
        let separator = if index == 0 { "\n" } else { ",\n" };
        write!(out, "{separator}{{\"parent\":")?;
        match parent {
            Some(parent) => write!(out, "{parent}")?,
            None => write!(out, "null")?,
        }
        write!(
            out,
            ",{facts},\"exclusive\":{exclusive},\"inclusive\":{inclusive},\"exclusive_ns\":{exclusive_ns},\
             \"inclusive_ns\":{inclusive_ns}}}"
        )?;
    }
    writeln!(out, "\n]}}")
}

/// Writes the tree as CSV with a head, a node in each row; `index` is what `parent` refers to.
pub fn write_csv(
    out: &mut impl Write,
    arranged: &Arranged,
    spelling: &Spelling<'_>,
    unit: Unit,
) -> io::Result<()> {
    const HEAD: [&str; 14] = [
        "index",
        "parent",
        "name",
        "key",
        "module",
        "file",
        "line",
        "category",
        "inlined",
        "unnamed",
        "exclusive",
        "inclusive",
        "exclusive_ns",
        "inclusive_ns",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    let text = |text: &str| cell(text).into_owned();
    let mut facts: FxHashMap<Entry, Facts> = FxHashMap::default();
    for (index, node) in nodes(arranged, unit).enumerate() {
        let facts = facts.entry(node.entry).or_insert_with(|| {
            let facts = Facts::of(spelling, node.entry);
            let (name, key, module) = (text(&facts.name), text(&facts.key), text(&facts.module));
            let file = facts.file.as_deref().map(text);
            Facts { name, key, module, file, ..facts }
        });
        let numbers = (node.exclusive, node.inclusive, node.exclusive_ns, node.inclusive_ns);
        csv.row(&(index, node.parent, facts, numbers))?;
    }
    csv.finish()
}
