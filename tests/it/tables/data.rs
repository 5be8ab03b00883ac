//! The sums, and the recount, on the demo and on every real recording that has samples.

use std::collections::BTreeMap;
use std::path::Path;

use etwprof::profile::{Detail, Entry, Grouping, Matcher, Nameless, Profile, Shape, Unit};
use etwprof::report::calls::{self, Calls, Side};
use etwprof::report::table::{self, By, Sort, Top};
use etwprof::report::{Spelling, folded, tree_data};
use etwprof::{Analysis, Options};
use serde_json::Value;

use super::{Recount, demo, in_folded, recount};
use crate::support::data;

const ALL: [By; 6] = [By::Function, By::Module, By::Process, By::Thread, By::Category, By::Line];

/// As the program has it, without symbols: the names of .NET code are in the recordings.
fn detail(lines: bool) -> Detail {
    Detail { lines, nameless: Nameless::ByModule, ..Detail::default() }
}

fn top(profile: &Profile, by: By, sort: Sort) -> Top {
    let grouping = if by == By::Thread { Grouping::Thread } else { Grouping::Process };
    let detail = detail(by == By::Line);
    let arranged = profile.arrange(&Shape { grouping, detail, ..Shape::default() });
    Top::new(&arranged, &Spelling::new(profile, detail), by, sort)
}

/// For each kind of row, the exclusive counts are all samples, and the times all of the CPU time.
/// Samples whose leaf is in no module.
fn outside_modules(profile: &Profile) -> i64 {
    let is_outside = |sample: &&etwprof::profile::Sample| {
        let leaf = profile.stacks.leaf(sample.stack);
        let function = leaf.and_then(|leaf| profile.stacks.function_of(leaf));
        leaf.is_none_or(|leaf| leaf.module.is_none())
            && function.is_none_or(|function| function.module.is_empty())
    };
    profile.samples.iter().filter(is_outside).count() as i64
}

fn sums_hold(name: &str, profile: &Profile) {
    let kept = profile.balance.kept as i64;
    let time: i64 = profile.samples.iter().map(|sample| sample.value * 100).sum();
    for by in ALL {
        for sort in [Sort::Exclusive, Sort::Inclusive] {
            let top = top(profile, by, sort);
            let sum = |of: fn(&table::Row) -> i64| top.rows.iter().map(of).sum::<i64>();
            assert_eq!(top.kept, kept, "{name}");
            assert_eq!(sum(|row| row.exclusive), kept, "{name} {by:?}");
            assert_eq!(sum(|row| row.exclusive_ns), time, "{name} {by:?}");
            let is_sound = |row: &table::Row| {
                0 <= row.exclusive && row.exclusive <= row.inclusive && row.inclusive <= kept
            };
            assert!(top.rows.iter().all(is_sound), "{name} {by:?}");
            // A row without a name takes what no other has: here none but lines need it.
            let nameless =
                top.rows.iter().filter(|row| row.name.starts_with("[no ") && row.name != "[no stack]");
            let nameless: i64 = nameless.map(|row| row.exclusive).sum();
            let outside = match by {
                By::Function | By::Process | By::Thread | By::Category => 0,
                By::Module => outside_modules(profile),
                By::Line => kept,
            };
            assert!(nameless <= outside, "{name} {by:?}: {nameless} of {outside}");
            let sizes: Vec<i64> = match sort {
                Sort::Exclusive => top.rows.iter().map(|row| row.exclusive).collect(),
                Sort::Inclusive => top.rows.iter().map(|row| row.inclusive).collect(),
            };
            assert!(sizes.is_sorted_by(|a, b| a >= b), "{name} {by:?} {sort:?}");
        }
    }
}

/// `top`, `callers` and `callees` say what the folded stacks say.
fn agrees_with_the_folded_stacks(name: &str, profile: &Profile) {
    let grouping = Grouping::Process;
    let arranged = profile.arrange(&Shape { grouping, detail: detail(false), ..Shape::default() });
    let spelling = Spelling::new(profile, detail(false));
    let mut text = Vec::new();
    folded::write(&mut text, &arranged.counts, &spelling).unwrap();
    let Recount { callers, callees, inclusive, exclusive } = recount(std::str::from_utf8(&text).unwrap());

    let top = Top::new(&arranged, &spelling, By::Function, Sort::Exclusive);
    for row in &top.rows {
        let name = in_folded(&row.name);
        assert_eq!(exclusive.get(&name).copied().unwrap_or(0), row.exclusive, "{name}");
        assert_eq!(inclusive.get(&name), Some(&row.inclusive), "{name}");
    }
    for row in top.first(50).rows {
        let matcher = Matcher::parse(&row.name).unwrap();
        for (side, recount) in [(Side::Callers, &callers), (Side::Callees, &callees)] {
            let calls = Calls::new(&arranged, &spelling, &matcher, side).unwrap();
            assert_eq!(calls.of.functions, [row.name.as_str()], "{name}");
            assert_eq!((calls.of.exclusive, calls.of.inclusive), (row.exclusive, row.inclusive), "{name}");
            let is: BTreeMap<String, i64> =
                calls.rows.iter().map(|call| (in_folded(&call.name), call.samples)).collect();
            let expected = recount.get(&in_folded(&row.name)).cloned().unwrap_or_default();
            assert_eq!(is, expected, "{name}: {side:?} of {}", row.name);
            assert_eq!(is.len(), calls.rows.len(), "no name twice");
        }
    }
}

/// The tree as JSON has every node of the tree, and the same counts as the CSV and as its own sums.
fn the_tree_is_whole(name: &str, profile: &Profile) {
    let grouping = Grouping::Thread;
    let arranged = profile.arrange(&Shape { grouping, detail: detail(false), ..Shape::default() });
    let spelling = Spelling::new(profile, detail(false));
    let (mut json, mut csv) = (Vec::new(), Vec::new());
    let made = tree_data::Made { seconds: 1.5, dispersion: 1.0, ..tree_data::Made::default() };
    tree_data::write_json(&mut json, &arranged, &spelling, &made).unwrap();
    tree_data::write_csv(&mut csv, &arranged, &spelling, Unit::Time).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let number = |node: &Value, field: &str| node[field].as_i64().unwrap();
    assert_eq!(number(&json, "kept"), profile.balance.kept as i64, "{name}");
    assert_eq!(nodes.len(), arranged.counts.nodes().count(), "{name}");
    for unit in ["", "_ns"] {
        // What is below each node, added up from its children.
        let mut inclusive: Vec<i64> =
            nodes.iter().map(|node| number(node, &format!("exclusive{unit}"))).collect();
        for (index, node) in nodes.iter().enumerate().rev() {
            assert_eq!(inclusive[index], number(node, &format!("inclusive{unit}")), "{name} {node}");
            if let Some(parent) = node["parent"].as_u64() {
                assert!((parent as usize) < index, "a node stands before those below it");
                inclusive[parent as usize] += inclusive[index];
            }
        }
    }
    let mut rows = csv::Reader::from_reader(csv.as_slice());
    let heads = rows.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), nodes.len(), "{name}");
    for (index, (row, node)) in rows.iter().zip(nodes).enumerate() {
        for (head, cell) in heads.iter().zip(row) {
            let expected = match &node[head] {
                Value::Null if head == "index" => index.to_string(),
                Value::Null => String::new(),
                // PerfViewData.etl has `@NewArray1ValueType`, which a spreadsheet would run.
                Value::String(text) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}"),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(cell, expected, "{name} {head} {node}");
        }
    }
}

fn check(path: &Path) -> bool {
    let options = Options { symbols: None, ..Options::default() };
    // Some are no recordings of a whole machine, and some are damaged on purpose.
    let Ok(analysis) = Analysis::open(&[path], &options, &()) else { return false };
    let name = path.file_name().unwrap().to_string_lossy();
    let profile = &analysis.profile;
    if profile.samples.is_empty() {
        return false;
    }
    sums_hold(&name, profile);
    agrees_with_the_folded_stacks(&name, profile);
    the_tree_is_whole(&name, profile);
    true
}

#[test]
fn tables_of_the_demo_add_up() {
    assert!(check(&demo()));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn tables_of_every_recording_add_up() {
    let checked = data::traces().iter().filter(|path| check(path)).count();
    assert!(checked >= 3, "only {checked} recordings have samples");
}

#[test]
fn processes_and_threads_have_the_samples_that_the_recording_has() {
    let analysis = Analysis::open(&[demo()], &Options { symbols: None, ..Options::default() }, &()).unwrap();
    let profile = &analysis.profile;
    let trace = &profile.trace;
    let mut processes: BTreeMap<String, i64> = BTreeMap::new();
    let mut threads: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for sample in &profile.samples {
        let runner = profile.runner(sample);
        let process = trace.process(runner.process).unwrap();
        *processes.entry(format!("{} ({})", process.label(), process.pid)).or_default() += 1;
        *threads.entry((process.pid, runner.tid)).or_default() += 1;
    }
    let rows = top(profile, By::Process, Sort::Exclusive).rows;
    assert_eq!(
        rows.iter().map(|row| (row.name.clone(), row.exclusive)).collect::<BTreeMap<_, _>>(),
        processes
    );
    let rows = top(profile, By::Thread, Sort::Exclusive).rows;
    let ids = |name: &str| {
        let (process, thread) = name.split_once(") thread ").unwrap();
        let pid = process.rsplit_once('(').unwrap().1.parse().unwrap();
        (pid, thread.split(' ').next().unwrap().parse().unwrap())
    };
    assert_eq!(rows.iter().map(|row| (ids(&row.name), row.exclusive)).collect::<BTreeMap<_, _>>(), threads);
}

#[test]
fn a_second_question_needs_no_second_reading() {
    let analysis = Analysis::open(&[demo()], &Options::default(), &()).unwrap();
    let arranged = analysis.profile.arrange(&Shape::default());
    let spelling = Spelling::new(&analysis.profile, Detail::default());
    // The recording is gone: what follows asks only what is in memory.
    let profile = Profile { ..analysis.profile.clone() };
    drop(analysis.recording);
    let top = Top::new(&arranged, &spelling, By::Function, Sort::Exclusive);
    let matcher = Matcher::parse(&top.rows[0].name).unwrap();
    let calls = Calls::new(&arranged, &spelling, &matcher, Side::Callers).unwrap();
    assert_eq!(calls.of.exclusive, top.rows[0].exclusive);
    let mut text = Vec::new();
    calls::write(&mut text, &calls, None).unwrap();
    assert!(!text.is_empty() && profile.balance.kept as i64 == top.kept);
    let is_process = |entry| matches!(entry, Entry::Process(_));
    assert_eq!(
        arranged.table(|entry| is_process(entry).then_some(())).len(),
        0,
        "the default has no processes"
    );
}
