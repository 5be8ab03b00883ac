//! Tables of samples: `top`, `callers`, `callees`, and the tree as data.
//!
//! What they count is counted again from the folded stacks, by code that knows nothing of trees.

mod data;
mod semantics;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::command::{self, Output};

/// Runs the program in the project's folder.
#[track_caller]
fn in_project(args: &[&str]) -> Output {
    command::output(command::command().current_dir(env!("CARGO_MANIFEST_DIR")).args(args))
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl")
}

/// Counts of callers or callees: of each function, by the other.
type Counts = BTreeMap<String, BTreeMap<String, i64>>;

/// What the folded stacks say.
#[derive(Default)]
struct Recount {
    callers: Counts,
    callees: Counts,
    inclusive: BTreeMap<String, i64>,
    exclusive: BTreeMap<String, i64>,
}

fn recount(folded: &str) -> Recount {
    let mut all = Recount::default();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let (stack, count) = (stack.split(';').collect::<Vec<_>>(), count.parse::<i64>().unwrap());
        for (caller, callee) in stack.windows(2).map(|pair| (pair[0], pair[1])).collect::<BTreeSet<_>>() {
            *all.callers.entry(callee.to_owned()).or_default().entry(caller.to_owned()).or_default() += count;
            *all.callees.entry(caller.to_owned()).or_default().entry(callee.to_owned()).or_default() += count;
        }
        for function in stack.iter().copied().collect::<BTreeSet<_>>() {
            *all.inclusive.entry(function.to_owned()).or_default() += count;
        }
        *all.exclusive.entry(stack.last().unwrap().to_string()).or_default() += count;
    }
    all
}

/// A name as it stands in folded stacks: `;` ends a frame there, and a number behind a blank is the count.
fn in_folded(name: &str) -> String {
    let name = name.replace(';', ":");
    match name.rsplit_once(' ') {
        Some((front, number)) if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            format!("{front}\u{a0}{number}")
        }
        _ => name,
    }
}
