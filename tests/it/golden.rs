//! The texts that a user sees for the demo trace, character by character.
//!
//! `ETWPROF_BLESS=1` writes them anew; a look at the difference is then the test.

use std::fs;
use std::path::Path;

use crate::support::command;

#[test]
fn the_call_tree() {
    compare("convert.txt", &["convert", "examples/demo.etl", "--no-symbols"]);
}

#[test]
fn the_call_tree_of_threads() {
    compare(
        "convert-threads.txt",
        &[
            "convert",
            "examples/demo.etl",
            "--no-symbols",
            "--threads",
            "--name",
            "indexer",
            "--min-percent",
            "5",
        ],
    );
}

#[test]
fn the_summary() {
    compare("info.txt", &["info", "examples/demo.etl"]);
}

#[test]
fn the_counts() {
    compare("events.txt", &["events", "examples/demo.etl"]);
}

/// stdout, and behind a line what is said on stderr.
#[track_caller]
fn compare(name: &str, args: &[&str]) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = command::output(command::command().current_dir(project).args(args)).success();
    let said = format!("{}\n--- stderr\n{}", output.text(), output.stderr).replace("\r\n", "\n");
    let path = project.join("tests").join("it").join("golden").join(name);
    if std::env::var_os("ETWPROF_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &said).unwrap();
    }
    let golden = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; ETWPROF_BLESS=1 writes it", path.display()))
        .replace("\r\n", "\n");
    if let Some((line, (is, was))) =
        (1..).zip(said.lines().zip(golden.lines())).find(|(_, (is, was))| is != was)
    {
        panic!("{name} differs in line {line}; ETWPROF_BLESS=1 writes it anew\n is: {is}\nwas: {was}");
    }
    assert_eq!(said.lines().count(), golden.lines().count(), "{name}: lines; ETWPROF_BLESS=1 writes it anew");
    assert!(said == golden, "{name} differs in its line ends");
}
