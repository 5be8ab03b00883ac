//! Every help, short and long, as a terminal of 80 columns shows it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::compare;
use crate::support::command;

const WIDTH: usize = 80;

fn help(args: &[&str]) -> String {
    let mut command = command::command();
    let output = command::output(command.env("COLUMNS", WIDTH.to_string()).args(args)).success();
    assert_eq!(output.stderr, "");
    output.text().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn every_help() {
    let mut files = BTreeSet::new();
    for command in [None].into_iter().chain(command::commands().into_iter().map(Some)) {
        let text: String = ["-h", "--help"]
            .into_iter()
            .map(|flag| {
                let args: Vec<&str> = command.as_deref().into_iter().chain([flag]).collect();
                format!("$ etwprof {}\n{}\n", args.join(" "), help(&args))
            })
            .collect();
        let file = format!("{}.txt", command.as_deref().unwrap_or("etwprof"));
        compare(&format!("help/{file}"), &text);
        files.insert(file);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("it").join("golden").join("help");
    let there = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), files, "a command is gone: remove its help");
}

#[test]
fn no_line_of_a_help_is_wider_than_the_terminal() {
    for command in [None].into_iter().chain(command::commands().into_iter().map(Some)) {
        for flag in ["-h", "--help"] {
            let args: Vec<&str> = command.as_deref().into_iter().chain([flag]).collect();
            for line in help(&args).lines() {
                assert!(line.chars().count() <= WIDTH, "{args:?}: {line}");
            }
        }
    }
}
