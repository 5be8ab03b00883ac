//! The command line as a user meets it: help, outputs, errors, exit codes.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::command::{self, Output, etwprof};
use crate::support::stacks::machine;
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

/// Runs it where `examples/demo.etl` is a path.
fn in_project(args: &[&str]) -> Output {
    command::output(command::command().current_dir(env!("CARGO_MANIFEST_DIR")).args(args))
}

#[test]
fn every_help_has_examples() {
    let commands = command::commands();
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
        (&["--all", "--duration", "soon"], "1m30s"),
        (&["convert", "examples/demo.etl", "--from", "2s", "--to", "1s"], "--from must be before --to"),
        (&["convert", "examples/demo.etl", "--symbols", "foo*bar"], "foo*bar"),
        (&["info", "examples/demo.etl", "--symbols", "foo*bar"], "foo*bar"),
        (&["symbolize", "x.exe", "1", "--symbols", "foo*bar"], "foo*bar"),
        (&["convert", "examples/demo.etl", "--images", "no-such-folder"], "--images"),
        (&["symbols", "examples/demo.etl", "--images", "no-such-folder"], "--images"),
        (&["symbols", "examples/demo.etl", "--fetch", "--offline"], "--offline"),
        (&["convert", "examples/demo.etl", "-o", "no-such-folder/a.svg"], "no-such-folder"),
        (&["convert", "examples/demo.etl", "-o", "examples", "-f", "svg"], "folder"),
        (&["convert", "examples/demo.etl", "./examples/demo.etl"], "same recording"),
        (&["convert", "no-such.etl"], "no such file"),
        (&["info", "examples"], "folder"),
        (&["symbolize", "no-such.exe", "1"], "no such file"),
        (&["symbolize", "examples", "1"], "folder"),
        (&["symbolize", "examples/demo.etl", "zz"], "hexadecimal"),
        (&["man", "no-such-command"], "no-such-command"),
    ] {
        let output = in_project(args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_recording_in_the_place_of_a_command_is_converted() {
    let folded = in_project(&["convert", "examples/demo.etl", "--name", "orders", "-f", "folded"]).success();
    for args in [
        &["examples/demo.etl", "--name", "orders", "-f", "folded"][..],
        &["--name", "orders", "-f", "folded", "examples/demo.etl"],
        &["--name=orders", "examples/demo.etl", "-ffolded"],
        &["-q", "-f", "folded", "examples/demo.etl", "--name", "orders"],
    ] {
        assert_eq!(in_project(args).success().text(), folded.text(), "{args:?}");
    }
    // What cannot be opened is said of the file.
    for name in ["no-such.etl", "no-such.etl.zip", "Cargo.toml"] {
        let output = in_project(&[name]);
        assert!(output.code > 0 && output.stderr.contains(name), "{name}: {}", output.stderr);
        assert!(!output.stderr.contains("unexpected argument"), "{name}: {}", output.stderr);
    }
    // A flag that `convert` does not have.
    let output = in_project(&["examples/demo.etl", "--duration", "2s"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("--duration"), "{}", output.stderr);
    // A process of this name, and no recording: Windows waits for it to start.
    #[cfg(not(windows))]
    {
        let output = in_project(&["--name", "examples/demo.etl", "--duration", "0"]);
        assert!(output.code > 0 && output.stdout.is_empty(), "{}", output.stderr);
    }
}

#[test]
fn tips_of_a_wrong_command_line_help() {
    for (args, tip) in [
        (&["app.exe"][..], Some("use 'etwprof -- app.exe'")),
        (&["covnert", "trace.etl"], Some("a similar command exists: 'convert'")),
        (&["inf"], Some("a similar command exists: 'info'")),
        (&["nonsense"], None),
        (&["convert", "x.etl", "--ofline"], Some("'--offline'")),
        (&["convert", "x.etl", "--top", "10"], None),
        (&["convert", "x.etl", "--no-such-flag"], None),
        (&["events", "x.etl", "--no-such-flag"], None),
    ] {
        let output = etwprof(args);
        assert_eq!(output.code, 2, "{args:?}");
        match tip {
            Some(tip) => assert!(output.stderr.contains(tip), "{args:?}: {}", output.stderr),
            None => assert!(!output.stderr.contains("tip"), "{args:?}: {}", output.stderr),
        }
    }
}

#[test]
fn offline_is_no_error_where_nothing_is_asked_anyway() {
    for name in ["convert", "info", "symbols"] {
        on_demo(name, &["--offline"]).success();
        on_demo(name, &["--no-symbols"]).success();
        on_demo(name, &["--retry-failed", "--images", "."]).success();
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
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("cannot write") && output.stderr.contains("a.svg"), "{}", output.stderr);
}

#[test]
fn an_existing_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.folded");
    fs::write(&path, "what was here".repeat(1 << 20)).unwrap();
    on_demo("convert", &["-o", path.to_str().unwrap()]).success();
    assert!(!fs::read_to_string(&path).unwrap().contains("what was here"));
}

#[test]
fn wrong_filters_say_which_and_why() {
    for (filter, words) in [
        (&["--pid", "99999"][..], &["--pid 99999", "no process has this id"][..]),
        (&["--name", "nobody"], &["--name nobody", "no process has this name", "orders.exe"]),
        (&["--name", "ORDER"], &["--name ORDER", "did you mean orders.exe?"]),
        (&["--tid", "99999"], &["--tid 99999", "no thread has this id"]),
        (&["--pid", "4", "--thread", "Matcher*"], &["--thread", "other threads", "no samples left"]),
        (&["--from", "1h"], &["--from", "outside the time range", "no samples left"]),
    ] {
        let output = on_demo("convert", filter);
        assert_eq!(output.code, 1, "{filter:?}");
        assert!(output.stdout.is_empty(), "{filter:?}");
        for word in words {
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
        for (path, code, word) in
            [(&text, 1, "not an .etl file"), (&empty, 1, "empty.etl"), (&missing, 2, "no such file")]
        {
            let output = etwprof([OsStr::new(name), path.as_os_str()]);
            assert_eq!(output.code, code, "{name} {}", path.display());
            assert!(output.stdout.is_empty());
            assert!(output.stderr.contains(word), "{name}: {}", output.stderr);
            let file = path.file_name().unwrap().to_str().unwrap();
            assert!(output.stderr.contains(file), "{name}: {}", output.stderr);
        }
    }
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
    for word in ["7 events lost", "lossy.etl at byte"] {
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
    let info = crate::support::reading::info(&path);
    assert_eq!(info["lost"]["events"], 7);
    assert_eq!(info["damaged"].as_array().unwrap().len(), 1);
    assert_eq!(info["damaged"][0]["file"], path.to_str().unwrap());
    assert!(info["damaged"][0]["offset"].is_u64() && info["damaged"][0]["what"].is_string());
    let quiet = etwprof([OsStr::new("convert"), OsStr::new("-q"), path.as_os_str()]).success();
    assert!(quiet.stderr.lines().all(|line| line.starts_with("warning: ")), "{}", quiet.stderr);
    for word in ["7 events lost", "lossy.etl at byte"] {
        assert!(quiet.stderr.contains(word), "a result without it looks better than it is: {}", quiet.stderr);
    }
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
        &["convert", demo, "-f", "json"],
        &["convert", demo, "-f", "csv"],
        &["top", demo, "-n", "0"],
        &["top", demo, "-n", "0", "--csv"],
        &["info", demo, "--json"],
        &["events", demo, "--json"],
        &["completions", "bash"],
        &["completions", "powershell"],
        &["man"],
    ] {
        let mut command = command::command();
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command::started(|| command.spawn());
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
