//! The texts that a user sees, character by character: results for the demo trace, every help, and errors with their
//! exit codes.
//!
//! `ETWPROF_BLESS=1` writes them anew; a look at the difference is then the test.

mod errors;
mod formats;
mod help;

use std::fs;
use std::path::Path;

use crate::support::command;

#[test]
fn the_call_tree() {
    demo("convert.txt", &["convert", "examples/demo.etl"]);
}

#[test]
fn the_call_tree_of_threads_with_lines() {
    demo(
        "convert-threads.txt",
        &["convert", "examples/demo.etl", "--lines", "--threads", "--name", "indexer", "--min-percent", "5"],
    );
}

#[test]
fn the_hottest_functions() {
    demo("top.txt", &["top", "examples/demo.etl"]);
}

#[test]
fn the_callers_of_a_function() {
    demo("callers.txt", &["callers", "examples/demo.etl", "ntoskrnl!RtlCopyMemory"]);
}

#[test]
fn the_callees_of_functions() {
    demo("callees.txt", &["callees", "examples/demo.etl", "/OrderBook/", "-n", "12"]);
}

#[test]
fn the_lines_of_a_function() {
    demo("lines.txt", &["lines", "examples/demo.etl", "CharClass::of"]);
}

#[test]
fn the_tree_for_programs() {
    demo("convert-csv.txt", &["convert", "examples/demo.etl", "-f", "csv", "--to", "30ms", "--lines"]);
}

#[test]
fn the_summary() {
    demo("info.txt", &["info", "examples/demo.etl"]);
}

#[test]
fn the_counts() {
    demo("events.txt", &["events", "examples/demo.etl"]);
}

/// stdout, and after a line what is printed on stderr.
#[track_caller]
fn demo(name: &str, args: &[&str]) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = command::output(command::command().current_dir(project).args(args)).success();
    compare(name, &format!("{}\n--- stderr\n{}", output.text(), output.stderr));
}

/// Compares a text with the file of that name.
#[track_caller]
fn compare(name: &str, text: &str) {
    let text = text.replace("\r\n", "\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("it").join("golden").join(name);
    if std::env::var_os("ETWPROF_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; ETWPROF_BLESS=1 writes it", path.display()))
        .replace("\r\n", "\n");
    if let Some((line, (is, was))) =
        (1..).zip(text.lines().zip(golden.lines())).find(|(_, (is, was))| is != was)
    {
        panic!("{name} differs in line {line}; ETWPROF_BLESS=1 writes it anew\n is: {is}\nwas: {was}");
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "{name}: lines; ETWPROF_BLESS=1 writes it anew");
    assert!(text == golden, "{name} differs in its line ends");
}
