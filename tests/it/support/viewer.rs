//! A run of `etwprof view`, and requests to it byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::command::{command, started};

/// `etwprof view examples/demo.etl --no-open`, which listens; it ends with this.
pub struct Viewer {
    pub child: Child,
    /// What it printed.
    pub printed: String,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// `/TOKEN`.
    pub token: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Viewer {
    pub fn start(args: &[&str]) -> Viewer {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.etl");
        let mut child = started(|| {
            let mut command = command();
            command.args(["view", demo, "--no-open", "--offline"]).args(args);
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        });
        let mut printed = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut printed).unwrap();
        let printed = printed.trim_end().to_owned();
        let own = match printed.strip_prefix("https://profiler.firefox.com/from-url/") {
            Some(rest) => rest.split('/').next().unwrap().replace("%3A", ":").replace("%2F", "/"),
            None => printed.clone(),
        };
        let own = own.trim_end_matches("profile.json").trim_end_matches('/');
        let own = own.strip_prefix("http://").unwrap_or_else(|| panic!("no address: {printed}"));
        let (host, token) = own.split_once('/').unwrap();
        Viewer { host: host.to_owned(), token: format!("/{token}"), printed, child }
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.host).unwrap()
    }

    /// Sends bytes and reads to the end of the answer.
    pub fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // It may have answered before all is sent.
        let _sent = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        read(stream)
    }

    /// A request with these lines behind the host.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        headers.iter().for_each(|header| request += &format!("{header}\r\n"));
        if method == "POST" {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        self.send(&[request.as_bytes(), b"\r\n", body].concat())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    /// A question to the symbol server.
    #[track_caller]
    pub fn question(&self, path: &str, question: &Value) -> Value {
        self.ask("POST", &format!("{}{path}", self.token), &[], question.to_string().as_bytes()).json()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Reads to the end of an answer.
pub fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head") + 4;
    let body = bytes.split_off(end);
    let head = String::from_utf8(bytes).unwrap();
    Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body }
}
