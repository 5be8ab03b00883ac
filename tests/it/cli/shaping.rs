//! Shapes of stacks through the command line, against the folded stacks that are shown without them.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use crate::support::{command, data};

/// The folded stacks of a recording: frames from the root on, and samples.
fn folded(file: &OsStr, args: &[&str]) -> Vec<(Vec<String>, i64)> {
    let all = [OsStr::new("convert"), file].into_iter().chain(args.iter().map(OsStr::new));
    let output = command::etwprof(all.chain(["-f", "folded", "--offline"].map(OsStr::new))).success();
    let line = |line: &str| {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        (stack.split(';').map(str::to_owned).collect(), samples.parse().unwrap())
    };
    output.text().lines().map(line).collect()
}

fn sum(stacks: &[(Vec<String>, i64)]) -> i64 {
    stacks.iter().map(|(_, samples)| samples).sum()
}

const DEMO: &str = "examples/demo.etl";

/// `etwprof convert DEMO ARGS`, as text.
fn report(args: &[&str]) -> command::Output {
    command::etwprof(["convert", DEMO, "--offline"].into_iter().chain(args.iter().copied()))
}

#[test]
fn a_focus_shows_callers_above_and_callees_below() {
    let name = "Orders.Core!Orders.Matching.PriceLadder<T>.BestLevel";
    let with_it: i64 = folded(OsStr::new(DEMO), &[])
        .iter()
        .filter(|(stack, _)| stack.iter().any(|frame| frame == name))
        .map(|(_, samples)| samples)
        .sum();
    assert!(with_it > 0);
    // The method alone is enough where no other function is called so.
    for wanted in [name, "BestLevel", "/\\.bestlevel$/"] {
        let output = report(&["--focus", wanted]).success();
        let lines: Vec<&str> = output.text().lines().collect();
        for head in ["callers", "callees"] {
            let at = lines.iter().position(|line| line.trim_end().ends_with(head)).expect(head);
            let numbers: Vec<&str> = lines[at + 1].split_whitespace().collect();
            assert_eq!(numbers.last(), Some(&name), "{wanted} {head}");
            assert!(numbers.contains(&with_it.to_string().as_str()), "{wanted} {head}: {}", lines[at + 1]);
        }
        let through = folded(OsStr::new(DEMO), &["--focus", wanted]);
        assert_eq!(sum(&through), with_it);
        assert!(through.iter().all(|(stack, _)| stack.iter().filter(|frame| *frame == name).count() == 1));
    }
}

#[test]
fn what_cannot_be_done_is_said_with_what_can() {
    for (args, code, words) in [
        (&["--focus", "no_such_function"][..], 1, "--focus no_such_function: no function"),
        (&["--from-function", "/nothing/"], 1, "--from-function /nothing/: no function"),
        (&["--group-pats", "[no such preset]"], 2, "[group modules]"),
        (&["--fold-pats", "a{b"], 2, "--fold-pats"),
        (&["--inc-pats", "@(", "--quiet"], 2, "--inc-pats"),
        (&["--inc-pats", "no_such!"], 1, "--inc-pats"),
    ] {
        let output = report(args);
        assert_eq!(output.code, code, "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty() && output.stderr.contains(words), "{args:?}: {}", output.stderr);
    }
}

/// Folding moves samples and loses none; what leaves stacks out says how many in the account.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn shapes_of_real_recordings_keep_every_sample() {
    for path in ["etl/perfview/net.4.5.2.x64.etl", "etl/perfview/PerfViewData.etl", "etl/xperf/slow-ppt.etl"]
    {
        let file = data::file(path);
        let kept = sum(&folded(file.as_os_str(), &[]));
        assert!(kept > 0);
        for args in [
            &["--no-fold"][..],
            &["--no-kernel"],
            &["--just-my-code"],
            &["--fold-recursion", "--no-kernel"],
            &["--invert"],
            &["--group-by", "module"],
            &["--group-by", "category", "--invert"],
            &["--group-by", "none", "--just-my-code"],
            &["--group-pats", "[group module entries]"],
            &["--group-pats", "[group CLR/OS entries]", "--fold-pats", "ntoskrnl!%ServiceCopyEnd"],
            &["--group-pats", "[Just My App]", "--group-by", "thread"],
            &["--fold-percent", "1"],
        ] {
            assert_eq!(sum(&folded(file.as_os_str(), args)), kept, "{path} {args:?}");
        }
        let included = sum(&folded(file.as_os_str(), &["--inc-pats", "ntdll!"]));
        let excluded = sum(&folded(file.as_os_str(), &["--exc-pats", "ntdll!"]));
        assert_eq!(included + excluded, kept, "{path}");
    }
}

#[test]
fn stdout_has_the_name_of_a_dash() {
    let piped = report(&["-f", "folded", "-o", "-"]).success();
    assert_eq!(piped.text(), report(&["-f", "folded"]).success().text());
    assert!(!std::path::Path::new("-").exists());
}

/// Groups fold by their size as functions do.
#[test]
fn small_groups_fold() {
    let args = ["--group-by", "none", "--group-pats", "[group modules]"];
    let all = folded(OsStr::new(DEMO), &args);
    let few = folded(OsStr::new(DEMO), &[&args[..], &["--fold-percent", "60"]].concat());
    assert_eq!(sum(&few), sum(&all));
    // What stays are the modules that most samples pass through.
    let modules = |stacks: &[(Vec<String>, i64)]| -> BTreeSet<String> {
        let names = stacks.iter().flat_map(|(stack, _)| stack.clone());
        names.filter(|name| name.starts_with("module ")).collect()
    };
    let through = |name: &String| -> i64 {
        let with_it = all.iter().filter(|(stack, _)| stack.contains(name));
        with_it.map(|(_, samples)| samples).sum()
    };
    let mut great = modules(&all);
    assert!(great.len() > 20);
    great.retain(|name| through(name) * 100 >= 60 * sum(&all));
    assert_eq!(modules(&few), great);
}
