//! Call trees that `convert -f json` saved.

use std::io::Read;

use serde::Deserialize;

use crate::profile::Category;

use super::shaped::Shaped;
use super::side::{Name, Names, Run, Step};
use super::stable::stable;

/// Why a file is no saved call tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It is not what `convert -f json` writes.
    #[error("not a call tree as `convert -f json` writes it: {0}")]
    Json(#[from] serde_json::Error),
    /// A node stands above those that it refers to.
    #[error("node {node} of the call tree stands below node {parent}, which comes later")]
    Order {
        /// Its place.
        node: usize,
        /// The place that it gives.
        parent: usize,
    },
    /// No recording has so many samples, or fewer than none.
    #[error("node {node} of the call tree has {samples} samples of {ns} ns")]
    Count {
        /// Its place.
        node: usize,
        /// Its samples.
        samples: i64,
        /// Their time.
        ns: i64,
    },
}

/// The most samples, or ns, of one tree: several can be added up.
const MOST: i64 = i64::MAX >> 10;

#[derive(Deserialize)]
struct Saved {
    seconds: Option<f64>,
    /// Trees of older versions have none.
    dispersion: Option<f64>,
    /// Trees of older versions have none.
    shape: Option<Shaped>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    parent: Option<usize>,
    name: String,
    /// Trees of older versions have none.
    key: Option<String>,
    module: String,
    /// Why it has no name.
    unnamed: Option<String>,
    category: Category,
    exclusive: i64,
    exclusive_ns: i64,
}

/// Reads a saved call tree.
///
/// # Errors
/// [`SavedError`] where it is none.
pub fn read_saved(file: impl Read, names: &mut Names) -> Result<Run, SavedError> {
    let Saved { seconds, dispersion, shape, nodes } = serde_json::from_reader(file)?;
    let has_keys = nodes.iter().all(|node| node.key.is_some());
    let mut steps = Vec::with_capacity(nodes.len());
    let (mut all_samples, mut all_ns) = (0_i64, 0_i64);
    for (number, node) in nodes.into_iter().enumerate() {
        if let Some(parent) = node.parent.filter(|parent| *parent >= number) {
            return Err(SavedError::Order { node: number, parent });
        }
        let (samples, ns) = (node.exclusive, node.exclusive_ns);
        (all_samples, all_ns) = (all_samples.saturating_add(samples), all_ns.saturating_add(ns));
        if samples < 0 || ns < 0 || all_samples > MOST || all_ns > MOST {
            return Err(SavedError::Count { node: number, samples, ns });
        }
        // Processes and unnamed code are called by what all runs have in common.
        let is_one_of_many = node.category == Category::Heading || node.unnamed.is_some();
        let key = node.key.unwrap_or_else(|| stable(&node.name));
        let name = names.number(Name {
            label: if is_one_of_many { key.clone() } else { node.name },
            key,
            module: node.module,
            category: node.category,
        });
        steps.push(Step { parent: node.parent, name, samples, ns });
    }
    let dispersion = dispersion.filter(|value| *value >= 1.0 && value.is_finite()).unwrap_or(1.0);
    Ok(Run { shaped: shape, has_keys, dispersion, ..Run::new(steps, seconds) })
}
