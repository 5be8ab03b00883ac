//! The demo beside a second build of its programs: `etwprof diff` finds the one function that got slower.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::code::Code;
use super::machine::{Machine, SYSTEM};
use super::stories::Stories;
use super::{recording, symbols};
use crate::support::command::{Output, etwprof};

const SLOWER: &str = "@Match.Compare";

/// Writes a recording and its symbols; gives the paths of both.
fn put(folder: &Path, name: &str, machine: Machine) -> [String; 2] {
    let (etl, store) = (folder.join(format!("{name}.etl")), folder.join(name));
    fs::write(&etl, recording::record(machine)).unwrap();
    for (path, content) in symbols::store(machine) {
        let path = store.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    [etl, store].map(|path| path.display().to_string())
}

#[test]
fn nothing_lies_where_it_was() {
    let (first, second) = (Machine::FIRST, Machine::second(SLOWER));
    let (code, again) = (Code::new(first), Code::new(second));
    for symbol in Stories::new().functions() {
        assert_ne!(code.function(symbol).0, again.function(symbol).0, "{symbol}");
    }
    for (module, again) in first.modules().zip(second.modules()) {
        assert!(module.base != again.base && module.pdb().0 != again.pdb().0, "{module:?}");
    }
    for (process, again) in first.processes.iter().zip(second.processes) {
        assert!(process.id != again.id || process.id <= SYSTEM, "{process:?}");
        assert!(process.threads.iter().zip(again.threads).all(|(thread, again)| thread.id != again.id));
    }
    assert!(code.bodies.iter().zip(&again.bodies).all(|(body, again)| body.start != again.start));
}

#[test]
fn diff_finds_the_function_that_got_slower() {
    let folder = tempfile::tempdir().unwrap();
    let [before, symbols] = put(folder.path(), "before", Machine::FIRST);
    let [after, symbols_after] = put(folder.path(), "after", Machine::second(SLOWER));
    let sides = ["diff", &before, &after, "--symbols", &symbols, "--symbols", &symbols_after, "--offline"];
    let diff = |more: &[&str]| -> Output { etwprof(sides.iter().chain(more)) };
    let json: Value = serde_json::from_slice(&diff(&["--json", "-n", "0"]).success().stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
    let (first, rest) = rows.split_first().unwrap();
    let slower = number(first, "before");
    assert!(first["name"].as_str().unwrap().ends_with(".CompareTo") && slower > 200.0, "{first}");
    assert_eq!((number(first, "after"), number(first, "delta")), (2.0 * slower, slower));
    assert_eq!((number(first, "percent"), number(first, "delta_ns")), (100.0, slower * 1e6));
    assert_eq!(first["significant"], true);
    assert_eq!(number(&json, "after") - number(&json, "before"), slower);
    // Everything else met what it was, and is as it was.
    assert!(rest.len() > 70, "{}", rest.len());
    for row in rest {
        assert!(number(row, "before") == number(row, "after") && number(row, "delta_ns") == 0.0, "{row}");
        assert!(!row["name"].as_str().unwrap().contains("!?"), "{row}");
    }
    // Functions that only call others meet, too.
    let inclusive = diff(&["--json", "-n", "0", "--sort", "inclusive"]).success();
    let inclusive: Value = serde_json::from_slice(&inclusive.stdout).unwrap();
    for row in inclusive["rows"].as_array().unwrap() {
        assert!(number(row, "before") > 0.0 && number(row, "after") >= number(row, "before"), "{row}");
    }
    let text = diff(&["-q"]).success();
    let line = text.text().lines().nth(5).unwrap();
    let ms = |ms: f64| format!("{ms:.1}");
    let cells = [format!("+{}", ms(slower)), "+100.0%".to_owned(), ms(slower), ms(2.0 * slower)];
    assert!(line.split_whitespace().take(4).eq(cells), "{line}");
    // The calls that lead there, and no others.
    let tree = diff(&["-q", "--tree"]).success();
    assert!(tree.text().lines().last().unwrap().ends_with(".CompareTo"), "{}", tree.text());
    // A build refuses it, and says who called it.
    let gate = diff(&["-q", "--fail-if", "*.CompareTo: +10%"]);
    assert_eq!(gate.code, 1, "{}", gate.stderr);
    assert!(gate.stderr.contains(".CompareTo: +10%': +100.0%") && gate.stderr.contains("; called by: "));
}
