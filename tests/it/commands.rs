//! The command line as a user meets it: help, outputs, errors, exit codes.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use etwprof::profile::{CallTree, Filter, Grouping, Naming, Profile};
use etwprof::report::console;
use etwprof::symbols::Unnamed;

use crate::stacks::machine;
use crate::support::command::{self, Output, etwprof};
use crate::support::reading;
use crate::synth::kernel::perfinfo::mark;
use crate::synth::{Etl, Process, START};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl")
}

/// `etwprof COMMAND examples/demo.etl ARGS...`
fn on_demo(name: &str, args: &[&str]) -> Output {
    let demo = demo();
    etwprof([OsStr::new(name), demo.as_os_str()].into_iter().chain(args.iter().map(OsStr::new)))
}

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let output = etwprof(["--help"]).success();
    let listed = output.text().lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn every_help_has_examples() {
    let commands = commands();
    for known in ["convert", "info", "events", "completions", "man"] {
        assert!(commands.iter().any(|name| name == known), "{known}");
    }
    for name in &commands {
        for help in ["--help", "-h"] {
            let output = etwprof([name, help]).success();
            assert!(output.text().contains("Example"), "{name} {help}");
            assert!(output.text().contains(&format!("etwprof {name}")), "{name} {help}");
        }
    }
    let output = etwprof(["--help"]).success();
    assert!(output.text().contains("Examples:") && output.text().contains("Exit codes:"));
}

#[test]
fn nothing_at_all_is_a_question_for_help() {
    let output = etwprof([] as [&str; 0]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("Usage:") && output.stdout.is_empty());
}

#[test]
fn the_version() {
    let output = etwprof(["--version"]).success();
    assert_eq!(output.text().trim_end(), concat!("etwprof ", env!("CARGO_PKG_VERSION")));
    assert_eq!(output.stderr, "");
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = etwprof(["completions", shell]).success();
        assert!(output.text().contains("convert") && output.text().contains("etwprof"), "{shell}");
        assert_eq!(output.stderr, "", "{shell}");
    }
    assert_eq!(etwprof(["completions", "tcsh"]).code, 2);
}

#[test]
fn the_man_page() {
    let output = etwprof(["man"]).success();
    assert!(output.text().starts_with(".ie") || output.text().contains(".TH"));
    assert!(output.text().contains("convert"));
}

#[test]
fn a_wrong_command_line_is_2() {
    for (args, expected) in [
        (&["convert"][..], "<FILE>"),
        (&["convert", "x.etl", "--no-such-flag"], "--no-such-flag"),
        (&["convert", "x.etl", "--pid", "many"], "--pid"),
        (&["convert", "x.etl", "--from", "soon"], "1.5s"),
        (&["convert", "x.etl", "-f", "png"], "svg"),
        (&["convert", "x.etl", "--min-percent", "200"], "--min-percent"),
        (&["nonsense"], "nonsense"),
    ] {
        let output = etwprof(args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[cfg(not(windows))]
#[test]
fn rights_to_record_are_a_matter_of_windows() {
    for args in
        [&["grant", "jo"][..], &["grant", "--me", "--dry-run"], &["revoke"], &["permissions", "--json"]]
    {
        let output = etwprof(args);
        assert_eq!((output.code, output.stdout.is_empty()), (1, true), "{args:?}");
        assert!(
            output.stderr.contains("needs Windows") && output.stderr.contains("convert"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn whom_to_grant_to_must_be_said_once() {
    for args in [&["grant"][..], &["grant", "jo", "--me"], &["revoke", "jo", "--me"]] {
        let output = etwprof(args);
        assert_eq!((output.code, output.stdout.is_empty()), (2, true), "{args:?}");
    }
}

#[test]
fn an_ending_that_names_no_format_is_2_and_lists_those_that_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.png");
    let output = on_demo("convert", &["-o", path.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    for word in ["out.png", ".svg", ".folded", ".tree.txt", "-f"] {
        assert!(output.stderr.contains(word), "{word}: {}", output.stderr);
    }
    assert!(!path.exists());
}

#[test]
fn the_ending_picks_the_format_unless_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        let output = on_demo("convert", &[&["-o", path.to_str().unwrap()], args].concat()).success();
        assert!(output.stdout.is_empty(), "the result went to the file");
        fs::read_to_string(path).unwrap()
    };
    let direct = |format| on_demo("convert", &["-f", format]).success().text().to_owned();
    let (folded, tree) = (direct("folded"), direct("tree"));
    assert!(folded.lines().all(|line| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())));
    for name in ["a.folded", "a.txt", "A.FOLDED"] {
        assert_eq!(written(name, &[]), folded, "{name}");
    }
    assert_eq!(written("a.tree.txt", &[]), tree);
    assert!(written("a.svg", &[]).contains("<svg"));
    assert_eq!(written("b.svg", &["-f", "folded"]), folded);
    assert_eq!(written("b.unknown", &["-f", "tree"]), tree);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "temporary files: {left:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no-such-folder").join("a.svg");
    let output = on_demo("convert", &["-o", path.to_str().unwrap()]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("cannot write") && output.stderr.contains("a.svg"), "{}", output.stderr);
}

#[test]
fn an_existing_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.folded");
    fs::write(&path, "old".repeat(1 << 20)).unwrap();
    on_demo("convert", &["-o", path.to_str().unwrap()]).success();
    assert!(!fs::read_to_string(&path).unwrap().contains("old"));
}

#[test]
fn wrong_filters_say_which_and_why() {
    for (filter, words) in [
        (&["--pid", "99999"][..], &["--pid", "other processes"][..]),
        (&["--name", "nobody"], &["--name", "other processes"]),
        (&["--tid", "99999"], &["--tid", "other threads"]),
        (&["--from", "1h"], &["--from", "other times"]),
        (&["--from", "2s", "--to", "1s"], &["--to", "other times"]),
    ] {
        let output = on_demo("convert", filter);
        assert_eq!(output.code, 1, "{filter:?}");
        assert!(output.stdout.is_empty(), "{filter:?}");
        for word in words.iter().chain(&["no sample is left", "etwprof info"]) {
            assert!(output.stderr.contains(word), "{filter:?} does not say {word}: {}", output.stderr);
        }
    }
}

#[test]
fn what_cannot_be_opened_is_named_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.etl");
    fs::write(&text, "no recording, but long enough to look at it as one ".repeat(10)).unwrap();
    let empty = folder.path().join("empty.etl");
    fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing.etl");
    for name in ["convert", "info", "events"] {
        for (path, word) in [(&text, "not an .etl file"), (&empty, "empty.etl"), (&missing, "no such file")] {
            let output = etwprof([OsStr::new(name), path.as_os_str()]);
            assert_eq!(output.code, 1, "{name} {}", path.display());
            assert!(output.stdout.is_empty());
            assert!(output.stderr.contains(word), "{name}: {}", output.stderr);
            let file = path.file_name().unwrap().to_str().unwrap();
            assert!(output.stderr.contains(file), "{name}: {}", output.stderr);
        }
    }
    assert_eq!(etwprof([OsStr::new("info"), folder.path().as_os_str()]).code, 1, "a folder");
}

#[test]
fn a_recording_without_samples_converts_to_nothing_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quiet.etl");
    fs::write(&path, Etl::new().event(0, START, Process::dc_start(4, "System")).finish()).unwrap();
    let output = etwprof([OsStr::new("convert"), path.as_os_str()]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("no CPU samples") && output.stderr.contains("etwprof events"));
    etwprof([OsStr::new("info"), path.as_os_str()]).success();
}

#[test]
fn losses_and_damage_are_told_beside_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lossy.etl");
    let etl = machine().lost(7, 0).sampled(0, START + 9, 40, 41, &[0xa]);
    let mut bytes = etl.event(0, START + 99, mark(&"long ".repeat(1_000))).finish();
    bytes.truncate(64 * 1024 + 2_000); // in the midst of the mark
    fs::write(&path, bytes).unwrap();
    let output = etwprof([OsStr::new("convert"), path.as_os_str()]).success();
    assert!(output.text().contains("a.exe"));
    for word in ["7 events were lost", "lossy.etl at byte"] {
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
    let info = crate::support::reading::info(&path);
    assert_eq!(info["lost"]["events"], 7);
    assert_eq!(info["damaged"].as_array().unwrap().len(), 1);
    assert_eq!(info["damaged"][0]["file"], path.to_str().unwrap());
    assert!(info["damaged"][0]["offset"].is_u64() && info["damaged"][0]["what"].is_string());
    let quiet = etwprof([OsStr::new("convert"), OsStr::new("-q"), path.as_os_str()]).success();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn stdout_is_data_only() {
    let output = on_demo("convert", &[]).success();
    assert!(output.stderr.contains("samples") && !output.text().contains("filtered out"));
    let quiet = on_demo("convert", &["-q"]).success();
    assert_eq!((quiet.text(), quiet.stderr.as_str()), (output.text(), ""));
    for name in ["info", "events"] {
        let json = on_demo(name, &["--json"]).success();
        serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap();
    }
}

/// A reader that has had enough, as `head` has.
#[test]
fn a_broken_pipe_is_a_quiet_success() {
    let demo = demo();
    let demo = demo.to_str().unwrap();
    for args in [
        &["convert", demo, "-f", "folded"][..],
        &["convert", demo],
        &["convert", demo, "-f", "svg"],
        &["info", demo, "--json"],
        &["events", demo, "--json"],
        &["completions", "bash"],
        &["completions", "powershell"],
        &["man"],
    ] {
        let mut child =
            command::command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{args:?}: {stderr}");
    }
}

#[test]
fn colours() {
    const ESCAPE: u8 = 0x1b;
    let run = |color: Option<&str>, no_color: bool| {
        let mut command = command::command();
        command.arg("convert").arg(demo()).arg("--from").arg("1h");
        if !no_color {
            command.env_remove("NO_COLOR");
        }
        if let Some(when) = color {
            command.args(["--color", when]);
        }
        command::output(&mut command)
    };
    let coloured = |output: &Output| output.stdout.contains(&ESCAPE) || output.stderr.contains('\u{1b}');
    assert!(!coloured(&run(None, false)), "a pipe is no terminal");
    assert!(!coloured(&run(None, true)));
    assert!(coloured(&run(Some("always"), false)));
    assert!(!coloured(&run(Some("never"), false)));
    let mut forced = command::command();
    let forced =
        command::output(forced.env("CLICOLOR_FORCE", "1").arg("convert").arg(demo()).args(["--from", "1h"]));
    assert!(!coloured(&forced), "NO_COLOR wins");
}

#[cfg(not(windows))]
#[test]
fn live_profiling_needs_windows() {
    for args in [
        &["--pid", "1"][..],
        &["--name", "a.exe"],
        &["--all", "--duration", "1s"],
        &["--", "app.exe", "--pid", "7"],
        &["sessions"],
        &["sessions", "--stop", "x"],
    ] {
        let output = etwprof(args);
        assert_ne!(output.code, 0, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        for word in ["Windows", "etwprof convert"] {
            assert!(output.stderr.contains(word), "{args:?} does not name {word}: {}", output.stderr);
        }
    }
}

/// What an option limits, it says in the tree.
#[test]
fn the_tree_can_be_cut() {
    let lines = |args: &[&str]| on_demo("convert", args).success().text().lines().count();
    let all = lines(&["--min-percent", "0"]);
    assert!(lines(&[]) < all);
    assert!(lines(&["--min-percent", "0", "--max-depth", "3"]) < all);
    assert!(lines(&["--min-percent", "0", "--threads"]) > all);
}

/// However narrow the terminal is, and however deep the tree.
#[test]
fn no_line_of_the_tree_is_wider_than_the_terminal() {
    let trace = reading::file(&demo());
    let profile = Profile::new(&trace, &Filter::default(), &Unnamed, Naming::default());
    let tree = CallTree::new(&profile, &trace, Grouping { by_process: true, by_thread: true });
    for width in [1, 20, 40, 80] {
        let mut out = Vec::new();
        let options = console::Options { min_percent: 0.5, max_depth: None, width: Some(width) };
        console::write(&mut out, &tree, &options).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(widest, width);
    }
}
