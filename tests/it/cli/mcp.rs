//! `etwprof mcp`, by messages written by hand. scripts/check-mcp asks by a client that others wrote.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::command::{command, started};
use crate::support::{data, reading};

/// A client that has shaken hands.
struct Client {
    server: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: u64,
}

impl Client {
    fn new(folder: &Path) -> Client {
        let mut command = command();
        command.arg("mcp").arg(folder).arg("--offline");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = started(|| command.spawn());
        let requests = server.stdin.take().unwrap();
        let answers = BufReader::new(server.stdout.take().unwrap());
        let mut client = Client { server, requests, answers, number: 0 };
        let info = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let answer = client.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "etwprof");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }));
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.number);
        answer
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", &json!({ "name": name, "arguments": arguments }))["result"].clone()
    }

    /// The result of a call that succeeds.
    #[track_caller]
    fn result(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.call(name, arguments);
        assert_eq!(answer["isError"], false, "{answer}");
        let value = answer["structuredContent"].clone();
        let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, value);
        value
    }

    /// What a call says that fails.
    #[track_caller]
    fn error(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments);
        assert_eq!(answer["isError"], true, "{answer}");
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The connection ends, and with it the program, without another word.
    fn end(self) {
        let Client { mut server, requests, mut answers, .. } = self;
        drop(requests);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut answers, &mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(server.wait().unwrap().success());
    }
}

const DEMO: &str = "demo.etl";

fn examples() -> &'static Path {
    Path::new("examples")
}

#[test]
fn tools_are_listed_with_what_they_take() {
    let mut client = Client::new(examples());
    let answer = client.ask("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "open",
            "info",
            "findings",
            "gc",
            "jit",
            "top",
            "callers",
            "callees",
            "lines",
            "tree",
            "threads",
            "waits",
            "timeline",
            "disk",
            "interrupts",
            "diff"
        ]
    );
    let top = &tools[5]["inputSchema"];
    assert_eq!(top["required"], json!(["files"]));
    assert_eq!(top["properties"]["files"]["type"], "array");
    assert_eq!(top["properties"]["just_my_code"]["type"], "boolean");
    assert_eq!(top["properties"]["rows"]["type"], "integer");
    assert_eq!(top["properties"]["pid"]["items"]["type"], "integer");
    let by = top["properties"]["by"]["enum"].as_array().unwrap();
    assert!(by.contains(&json!("module")), "{by:?}");
    assert_eq!(tools[6]["inputSchema"]["required"], json!(["files", "function_name"]));
    // Neither files that are written nor places that symbols come from.
    for tool in tools {
        for name in [
            "output",
            "format",
            "symbols",
            "images",
            "source",
            "symbol_header",
            "no_limit",
            "max_memory",
            "jobs",
        ] {
            assert_eq!(tool["inputSchema"]["properties"].get(name), None, "{} takes {name}", tool["name"]);
        }
    }
    client.end();
}

#[test]
fn a_whole_question_has_the_answers_of_the_commands() {
    let mut client = Client::new(examples());
    let listed = client.result("open", json!({}));
    assert_eq!(listed["recordings"][0]["path"], DEMO);
    let opened = client.result("open", json!({ "files": [DEMO] }));
    assert_eq!(opened["processes"][0]["name"], "orders.exe");
    assert_eq!(opened["quality"], "good");

    let as_printed = |arguments: &[&str]| {
        let mut value = reading::json(arguments.iter().copied().chain([
            "--json",
            "--offline",
            "-q",
            "examples/demo.etl",
        ]));
        value["warnings"] = json!([]);
        value
    };
    let top = client.result("top", json!({ "files": [DEMO], "by": "module", "rows": 3, "name": ["orders"] }));
    assert_eq!(top, as_printed(&["top", "--by", "module", "-n", "3", "--name", "orders"]));
    let found = client.result("findings", json!({ "files": DEMO }));
    assert_eq!(found, as_printed(&["findings"]));
    let info = client.result("info", json!({ "files": [DEMO] }));
    assert_eq!(info["samples"], as_printed(&["info"])["samples"]);

    let wanted = "Orders.Core!Orders.Matching.Matcher.Run";
    let callers = client.result("callers", json!({ "files": [DEMO], "function_name": wanted }));
    assert_eq!(callers["functions"], json!([wanted]));
    let callees = client.result("callees", json!({ "files": [DEMO], "function_name": wanted }));
    assert!(
        callees["rows"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["name"].as_str().unwrap().contains("SpinOnce"))
    );
    let tree = client.result("tree", json!({ "files": [DEMO], "min_percent": 20, "just_my_code": false }));
    assert!(tree["tree"].as_str().unwrap().contains("orders.exe (7312)"));
    let lines = client.result("lines", json!({ "files": [DEMO], "function_name": wanted }));
    assert_eq!(lines["functions"], json!([wanted]));
    let diff = client.result("diff", json!({ "files": [DEMO, DEMO], "fail_if": ["total: +5%"] }));
    assert_eq!(diff["conditions"][0]["verdict"], "passed");
    let failed = json!({ "files": [DEMO, DEMO], "fail_if": ["nobody: +5%"] });
    let diff = client.result("diff", failed);
    assert_eq!(diff["conditions"][0]["verdict"], "not_found");
    client.end();
}

#[test]
fn only_files_in_the_folders_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside.etl"));
    fs::create_dir(&inside).unwrap();
    fs::copy("examples/demo.etl", inside.join(DEMO)).unwrap();
    fs::copy("examples/demo.etl", &outside).unwrap();
    let mut client = Client::new(&inside);
    for path in ["../outside.etl", outside.to_str().unwrap(), "no.etl", "/etc/passwd"] {
        let error = client.error("top", json!({ "files": [path] }));
        assert!(error.starts_with(&format!("{path}: there is no such file below ")), "{error}");
        let error = client.error("diff", json!({ "before": [DEMO], "after": [path] }));
        assert!(error.starts_with(&format!("{path}: there is no such file below ")), "{error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, inside.join("link.etl")).unwrap();
        let error = client.error("open", json!({ "files": ["link.etl"] }));
        assert!(error.starts_with("link.etl: there is no such file"), "{error}");
    }
    // A file in the place of a name.
    for tool in ["callers", "callees", "lines"] {
        let two = json!([outside.to_str().unwrap(), "*"]);
        let error = client.error(tool, json!({ "files": [DEMO], "function_name": two }));
        assert_eq!(error, "function_name: one text is expected");
    }
    // Another machine, which is not even asked.
    for path in ["//host/share/x.etl", r"\\host\share\x.etl", r"\\.\pipe\x", r"\\?\C:\x.etl"] {
        let error = client.error("top", json!({ "files": [path] }));
        assert!(error.contains("only files below the folders of the server may be opened"), "{error}");
    }
    // Nor is an option what looks like one.
    let error = client.error("top", json!({ "files": ["--output=x.svg"] }));
    assert!(error.starts_with("--output=x.svg: there is no such file"), "{error}");
    assert_eq!(client.result("open", json!({ "files": [DEMO] }))["samples"]["kept"], 8_263);
    client.end();
}

#[test]
fn what_cannot_be_answered_says_why() {
    let mut client = Client::new(examples());
    let error = client.error("top", json!({ "files": [DEMO], "output": "x.svg" }));
    assert!(error.starts_with("top takes no argument output; it takes files, by, "), "{error}");
    let error = client.error("top", json!({ "files": [DEMO], "by": "nonsense" }));
    assert!(error.starts_with("invalid value 'nonsense' for '--by <WHAT>' [possible values: "), "{error}");
    let error = client.error("callers", json!({ "files": [DEMO], "function_name": "NoSuchThing" }));
    assert!(error.starts_with("no function matches NoSuchThing"), "{error}");
    let error = client.error("top", json!({ "files": [DEMO], "children": "yes" }));
    assert_eq!(error, "children: true or false is expected");
    assert_eq!(client.error("top", json!({})), "top needs the argument files");
    assert_eq!(client.error("top", json!({ "files": [] })), "top needs the argument files");
    let error = client.error("callers", json!({ "files": [DEMO] }));
    assert_eq!(error, "callers needs the argument function_name");
    assert!(client.error("open", json!({ "bogus": 1 })).starts_with("open takes no argument bogus"));
    assert_eq!(client.result("open", json!({ "files": null }))["recordings"][0]["path"], DEMO);
    let unknown = client.ask("tools/call", &json!({ "name": "nope", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602);
    // The server goes on.
    assert_eq!(
        client.result("top", json!({ "files": [DEMO], "rows": 1 }))["rows"].as_array().unwrap().len(),
        1
    );
    client.end();
}

#[test]
fn a_recording_that_was_replaced_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    fs::copy("examples/demo.etl", &path).unwrap();
    let mut client = Client::new(folder.path());
    let kept = |client: &mut Client| client.result("top", json!({ "files": ["a.etl"] }))["kept"].clone();
    let first = kept(&mut client);
    assert_eq!(kept(&mut client), first);
    let half = client.result("top", json!({ "files": ["a.etl"], "pid": [7312] }))["kept"].clone();
    assert_ne!(half, first);
    assert_eq!(kept(&mut client), first);
    // A file cut at the end of a buffer is a shorter recording.
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let second = kept(&mut client);
    assert!(second.as_i64().unwrap() < first.as_i64().unwrap(), "{second}");
    client.end();
}

/// A large part that is no list at the top of the result.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_tree_of_changes_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy("examples/demo.etl", folder.path().join(DEMO)).unwrap();
    fs::copy(data::file("etl/perfview/net.4.5.2.x64.etl"), folder.path().join("net.etl")).unwrap();
    let mut client = Client::new(folder.path());
    let diff = client.result("diff", json!({ "files": [DEMO, "net.etl"], "tree": true, "rows": 0 }));
    assert!(diff.to_string().len() < 70_000, "{}", diff.to_string().len());
    assert!(!diff["cut"].as_object().unwrap().is_empty(), "{}", diff["cut"]);
    client.end();
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn results_are_bounded() {
    let path = data::file("etl/etwanalyzer/TraceLoggingTester.etl");
    let mut client = Client::new(path.parent().unwrap());
    let name = path.file_name().unwrap().to_str().unwrap();
    let answer = client.call("info", json!({ "files": [name] }));
    let value = &answer["structuredContent"];
    assert!(value.to_string().len() < 61_000);
    let modules = value["modules"].as_array().unwrap().len() as u64;
    let all = reading::info(&path)["modules"].as_array().unwrap().len() as u64;
    assert_eq!(modules + value["cut"]["modules"].as_u64().unwrap(), all);
    // A recording without samples has no table.
    let error = client.error("top", json!({ "files": [name] }));
    assert!(error.starts_with("no CPU samples in "), "{error}");
    client.end();
}
