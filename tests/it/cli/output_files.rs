//! Files that are written and files that are no files: what is there already, links, pipes, devices, signals.

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::thread::sleep;
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::support::command;
use crate::support::command::etwprof;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl")
}

/// A folder with a copy of the demo.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("in.etl");
    fs::copy(demo(), &recording).unwrap();
    (folder, recording)
}

#[test]
fn the_recording_is_never_written_over() {
    let (folder, recording) = folder();
    let hard = folder.path().join("hard.svg");
    fs::hard_link(&recording, &hard).unwrap();
    let dotted = folder.path().join(".").join("in.etl");
    for name in [&recording, &hard, &dotted] {
        let args = ["convert".as_ref(), recording.as_os_str(), "-f".as_ref(), "svg".as_ref(), "-o".as_ref()];
        let output = etwprof(args.into_iter().chain([name.as_os_str()]));
        assert_eq!(output.code, 2, "{}: {}", name.display(), output.stderr);
        assert!(output.stderr.contains("-o") && output.stderr.contains("in.etl"), "{}", output.stderr);
        assert_eq!(fs::read(&recording).unwrap(), fs::read(demo()).unwrap(), "{}", name.display());
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_file_is_written() {
    use std::os::unix::fs::symlink;
    let (folder, recording) = folder();
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("b/old.folded"), "old").unwrap();
    symlink("b/old.folded", folder.path().join("to-old")).unwrap();
    symlink("to-old", folder.path().join("to-link")).unwrap();
    symlink("b/new.folded", folder.path().join("to-new")).unwrap();
    symlink("circle", folder.path().join("circle")).unwrap();
    symlink("in.etl", folder.path().join("to-in")).unwrap();
    let convert = |name: &str| {
        let out = folder.path().join(name);
        let args =
            ["convert", "-q", "-f", "folded", recording.to_str().unwrap(), "-o", out.to_str().unwrap()];
        etwprof(args)
    };
    for (name, target) in [("to-link", "b/old.folded"), ("to-new", "b/new.folded")] {
        convert(name).success();
        assert!(fs::symlink_metadata(folder.path().join(name)).unwrap().is_symlink(), "{name}");
        assert!(fs::read_to_string(folder.path().join(target)).unwrap().contains("orders.exe"), "{name}");
    }
    assert!(fs::symlink_metadata(folder.path().join("to-old")).unwrap().is_symlink());
    let over = convert("to-in");
    assert!(over.code == 2 && over.stderr.contains("in.etl"), "{}", over.stderr);
    assert_eq!(fs::read(&recording).unwrap(), fs::read(demo()).unwrap());
    let circle = convert("circle");
    assert!(circle.code == 1 && circle.stderr.contains("circle"), "{}", circle.stderr);
}

#[test]
fn a_file_that_may_not_be_written_stays() {
    let (folder, recording) = folder();
    let out = folder.path().join("a.svg");
    fs::write(&out, "mine").unwrap();
    let mut permissions = fs::metadata(&out).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&out, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&out).is_ok() {
        return; // Root may write it.
    }
    let output = etwprof(["convert".as_ref(), recording.as_os_str(), "-o".as_ref(), out.as_os_str()]);
    assert!(output.code == 1 && output.stderr.contains("cannot write"), "{}", output.stderr);
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, recording) = folder();
    let out = folder.path().join("a.folded");
    fs::write(&out, "").unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o600)).unwrap();
    etwprof(["convert".as_ref(), recording.as_os_str(), "-o".as_ref(), out.as_os_str()]).success();
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_take_what_they_are_given() {
    let (folder, recording) = folder();
    let log = folder.path().join("log");
    fs::write(&log, "first\n").unwrap();
    let to = |out: &str, stdout: Stdio| {
        let mut command = command::command();
        command.args(["convert", "-q", "-f", "folded", "-o", out]).arg(&recording).stdout(stdout);
        let status = command.status().unwrap();
        assert!(status.success(), "{out}");
    };
    to("/dev/null", Stdio::null());
    to("/dev/stdout", fs::OpenOptions::new().append(true).open(&log).unwrap().into());
    let log = fs::read_to_string(log).unwrap();
    assert!(log.starts_with("first\n") && log.contains("orders.exe"), "what was there stays");
}

/// Ends the program while it writes, again and again until that was met.
#[cfg(target_os = "linux")]
#[test]
fn signals_leave_nothing_behind() {
    use crate::support::shown::Shown;
    use std::os::unix::process::ExitStatusExt;

    // Its folded stacks take a while: 300 lines of 4,000 frames.
    let shown = Shown { processes: 300, threads: 1, depth: 4_000, leaves: 0, tops: 0, samples: 300 };
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("in.etl");
    fs::write(&recording, shown.file().finish()).unwrap();
    for (name, signal) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let out = tempfile::tempdir().unwrap();
        let mut child = command::command()
            .args(["convert", "-q", "--no-limit", "--no-symbols", "-f", "folded", "-o"])
            .args([&out.path().join("a.folded"), &recording])
            .spawn()
            .unwrap();
        let begun = || fs::read_dir(out.path()).unwrap().next().is_some();
        while !begun() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        let killed = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let status = child.wait().unwrap();
        let left: Vec<_> =
            fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(
            status.signal(),
            Some(signal),
            "the program ends as signals end programs: {status}, {left:?}"
        );
        assert!(left.is_empty() || left == ["a.folded"], "{name} left {left:?}");
    }
}

/// Runs the program; a program that waits for ever fails the test.
#[cfg(unix)]
#[track_caller]
fn ends(command: &mut Command) -> command::Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    command::Output {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.etl");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for name in ["info", "convert", "events"] {
        for path in [&fifo, Path::new("/dev/zero"), Path::new("/dev/stdin")] {
            let mut command = command::command();
            let output = ends(command.arg(name).arg(path).stdin(Stdio::piped()));
            assert_eq!(output.code, 1, "{name} {}", path.display());
            assert!(output.stderr.contains("pipe or a device"), "{}", output.stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for args in [&["--help"][..], &["--version"], &["convert", "--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command::output(command::command().args(args).stdout(full));
        assert_eq!(output.code, 1, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("cannot write"), "{}", output.stderr);
    }
}

/// A container may allow no thread; here none has room for its stack.
#[cfg(unix)]
#[test]
fn threads_are_a_help_and_no_need() {
    let with =
        command::output(command::command().args(["convert", "--min-percent", "0"]).arg(demo())).success();
    let none = command::output(
        command::command()
            .env("RUST_MIN_STACK", (1u64 << 62).to_string())
            .args(["convert", "--min-percent", "0"])
            .arg(demo()),
    )
    .success();
    assert_eq!(with.text(), none.text());
}

/// stderr that takes nothing costs the account and not the result.
#[cfg(target_os = "linux")]
#[test]
fn a_full_stderr_is_no_panic() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command::command().arg("convert").arg(demo()).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let output = command::command().args(["convert", "missing.etl"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
