//! Symbol servers from the command line: limits, log-ins, and what is said about them.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::support::command::{self, Output};
use crate::support::store::{Answer, Server};

/// `etwprof symbols FILE --fetch --symbols ADDRESS ARGS...` for the demo, away from its symbols.
fn fetch(folder: &TempDir, address: &str, headers: &str, args: &[&str]) -> Output {
    let file = folder.path().join("demo.etl");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl"), &file).unwrap();
    let path = format!("srv*{}*{address}", folder.path().join("cache").display());
    let mut command = command::command();
    command.env("XDG_CACHE_HOME", folder.path()).env("LOCALAPPDATA", folder.path());
    command.env("ETWPROF_SYMBOL_HEADERS", headers);
    command.arg("symbols").arg(file).args(["--fetch", "--symbols", &path]).args(args);
    command::output(&mut command)
}

#[test]
fn when_the_time_for_symbols_is_up_a_warning_has_the_cure() {
    let silent = Server::start(|_, _| Answer::RawThenSilence(Vec::new()));
    let folder = tempdir().unwrap();
    let output = fetch(&folder, &silent.url(), "", &["--symbol-timeout", "300ms"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let warning = output.stderr.lines().find(|line| line.contains("symbol time is up after 300ms"));
    let warning = warning.unwrap_or_else(|| panic!("{}", output.stderr));
    assert!(warning.contains(" modules (") && warning.contains("raise --symbol-timeout"), "{warning}");
    // The next run asks again.
    let before = silent.asked().len();
    fetch(&folder, &silent.url(), "", &["--symbol-timeout", "0.3"]);
    assert!(silent.asked().len() > before);
}

#[test]
fn a_log_in_that_is_not_supported_is_said_with_its_cure() {
    let answer = b"HTTP/1.1 401 X\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(|_, _| Answer::Raw(answer.to_vec()));
    let output = fetch(&tempdir().unwrap(), &server.url(), "", &["--places"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let text = output.text();
    assert!(text.contains("wants a log-in (HTTP 401, by Negotiate, which is not supported)"), "{text}");
    assert!(text.contains("symchk"), "{text}");
}

/// The table is there all the same. Where a server has no file, it was reachable.
#[test]
fn a_server_that_is_not_reachable_is_a_failure_of_fetch() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{closed}");
    for json in [&[][..], &["--json"]] {
        let output = fetch(&tempdir().unwrap(), &address, "", json);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.text().contains("ntdll"), "{}", output.text());
        let error = output.stderr.lines().find(|line| line.starts_with("error: --fetch: ")).unwrap();
        assert!(error.contains(&format!("{address}: unreachable: ")), "{error}");
    }
    let server = Server::start(|_, _| Answer::Status(404, Vec::new()));
    fetch(&tempdir().unwrap(), &server.url(), "", &[]).success();
    let failing = Server::start(|_, _| Answer::Status(500, Vec::new()));
    let folder = tempdir().unwrap();
    for _ in 0..2 {
        let output = fetch(&folder, &failing.url(), "", &[]);
        assert_eq!(output.code, 1, "the second run remembers it: {}", output.stderr);
    }
}

#[test]
fn a_header_of_the_environment_is_sent_and_never_shown() {
    let server = Server::start(|_, _| Answer::Status(404, Vec::new()));
    let header = format!("{}=X-Token: se-cret\nelsewhere.example=X-Other: se-cret\n", server.address());
    let output = fetch(&tempdir().unwrap(), &server.url(), &header, &["--places"]).success();
    let asked = server.requests();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|asked| asked.header("X-Token") == Some("se-cret")), "{asked:?}");
    assert!(asked.iter().all(|asked| asked.header("X-Other").is_none()), "{asked:?}");
    assert!(!output.text().contains("cret") && !output.stderr.contains("cret"), "{}", output.stderr);
}

#[test]
fn a_wrong_limit_or_header_is_a_wrong_command_line() {
    let folder = tempdir().unwrap();
    let wrong = |headers: &str, args: &[&str], expected: &str| {
        let output = fetch(&folder, "http://127.0.0.1:9", headers, args);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(expected) && !output.stderr.contains("se-cret"), "{}", output.stderr);
    };
    wrong("", &["--symbol-timeout", "0"], "--offline");
    wrong("", &["--symbol-timeout", "soon"], "1m30s");
    wrong("", &["--symbol-header", "se-cret"], "--symbol-header: expected HOST=NAME: VALUE");
    wrong("https://host=X: se-cret", &[], "ETWPROF_SYMBOL_HEADERS: the host must be a name");
}
