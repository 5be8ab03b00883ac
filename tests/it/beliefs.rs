//! What the stand-in for the ETW API believes, and the checks that name it: tests/standin/README.md has the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files with checks, by their names in the table.
const CHECKS: [(&str, &str); 5] = [
    ("check.py", "tests/standin/check.py"),
    ("files.py", "tests/standin/files.py"),
    ("check_permissions.py", "tests/standin/check_permissions.py"),
    ("check_clr.py", "tests/standin/check_clr.py"),
    ("check-live-windows", "scripts/check-live-windows"),
];

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// `B-` and lower-case words with hyphens.
fn ids(text: &str) -> BTreeSet<&str> {
    let starts = text.match_indices("B-").filter(|(at, _)| {
        !text[..*at].ends_with(|before: char| before.is_ascii_alphanumeric() || matches!(before, '-' | '_'))
    });
    let ids = starts.map(|(at, _)| {
        let name = &text[at + 2..];
        let end = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(name.len());
        text[at..at + 2 + end].trim_end_matches('-')
    });
    ids.filter(|id| id.len() > 2).collect()
}

/// Belief, source and place of the check, by id.
fn table(readme: &str) -> BTreeMap<&str, [&str; 3]> {
    let mut table = BTreeMap::new();
    for line in readme.lines().filter(|line| line.starts_with("| B-")) {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, belief, source, checked] = columns[..] else { panic!("four columns: {line}") };
        assert!(table.insert(id, [belief, source, checked]).is_none(), "{id} is there twice");
    }
    table
}

#[test]
fn every_belief_has_a_source_and_says_where_it_is_checked() {
    let readme = text("tests/standin/README.md");
    let table = table(&readme);
    assert!(table.len() > 20, "{table:?}");
    for (id, [belief, source, checked]) in table {
        assert!(!belief.is_empty(), "{id}");
        let sourced = ["documented", "believed, not documented", "Chappell ("];
        assert!(sourced.iter().any(|word| source.contains(word)), "{id}: {source}");
        if checked == "not checkable here" {
            continue;
        }
        for name in checked.split(", ") {
            let file = CHECKS.iter().find(|(known, _)| name.trim_matches('`') == *known);
            let (_, path) = file.unwrap_or_else(|| panic!("{id} is checked by {name}, which is no check"));
            assert!(ids(&text(path)).contains(id), "{path} does not name {id}");
        }
    }
}

#[test]
fn every_belief_that_is_named_is_in_the_table() {
    let readme = text("tests/standin/README.md");
    let table = table(&readme);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin");
    let sources = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = sources.filter(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "py"));
    let checks = CHECKS.iter().map(|(_, path)| PathBuf::from(path));
    let mut named = BTreeSet::new();
    for path in sources.chain(checks) {
        let text = text(&path);
        for id in ids(&text) {
            let row =
                table.get(id).unwrap_or_else(|| panic!("{} names {id}, which is in no row", path.display()));
            let (name, kind) = (path.file_name().unwrap().to_str().unwrap(), path.extension());
            // What a check names, its row names too.
            assert!(
                kind.is_some_and(|kind| kind == "c") || row[2].contains(name),
                "{id} is checked by {name}"
            );
            named.insert(id.to_owned());
        }
    }
    assert!(named.len() > 20, "{named:?}");
}
