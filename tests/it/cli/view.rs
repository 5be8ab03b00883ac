//! `etwprof view` as a browser, and as somebody who should get nothing, meets it.

use std::io::Write;
use std::net::TcpListener;

use crate::support::command::etwprof;
use crate::support::viewer::{Viewer, read};

const PROFILER: &str = "https://profiler.firefox.com";

#[test]
fn the_page_is_served_to_who_knows_the_address() {
    let viewer = Viewer::start(&[]);
    let page = format!("{}/", viewer.token);
    assert_eq!(viewer.printed, format!("http://{}{page}", viewer.host));
    assert_eq!(viewer.token.len(), 33, "128 bits");
    let answer = viewer.get(&page);
    assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("text/html; charset=utf-8")));
    let start = String::from_utf8_lossy(&answer.body[..15]).to_lowercase();
    assert_eq!(start, "<!doctype html>");
    for (header, value) in [
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Length", &answer.body.len().to_string()),
    ] {
        assert_eq!(answer.header(header), Some(value));
    }
    assert!(answer.header("Content-Security-Policy").unwrap().starts_with("default-src 'none'"));
    let head = viewer.ask("HEAD", &page, &[], b"");
    assert_eq!((head.status, head.head, head.body), (200, answer.head, Vec::new()));
    assert_eq!(viewer.get(&format!("{page}?q#f")).status, 200);

    let mut other = viewer.token.clone();
    let last = other.pop().unwrap();
    other.push(if last == '0' { '1' } else { '0' });
    let token = &viewer.token;
    for path in [
        "/",
        "//",
        "/favicon.ico",
        &format!("{other}/"),
        token,
        &token[..20],
        &format!("{token}0/"),
        &format!("{}/", token.to_uppercase().replace('/', "/x")),
        &format!("{token}/../"),
        &format!("{token}/%2e%2e/"),
        &format!("{token}/etc/passwd"),
        &format!("{token}/profile.json"),
    ] {
        assert_eq!(viewer.get(path).status, 404, "{path}");
    }
    assert_eq!(viewer.ask("POST", &page, &[], b"x").status, 405);
    let question = format!("{token}/symbolicate/v5");
    assert_eq!(viewer.ask("POST", &question, &[], b"{}").status, 405, "the page asks nothing");
}

/// A page elsewhere can make a browser send requests, also under a name of its own that leads here.
#[test]
fn other_pages_get_nothing() {
    let viewer = Viewer::start(&[]);
    let (page, port) = (format!("{}/", viewer.token), viewer.host.rsplit(':').next().unwrap());
    let by_host = |host: &str| viewer.send(format!("GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("LOCALHOST:{port}")] {
        assert_eq!(by_host(&host).status, 200, "{host}");
    }
    for host in [
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("[::1]:{port}"),
        format!("0.0.0.0:{port}"),
        "127.0.0.1".to_owned(),
        "127.0.0.1:1".to_owned(),
        String::new(),
    ] {
        let answer = by_host(&host);
        assert_eq!(answer.status, 421, "{host}");
        assert!(answer.body.len() < 100, "{answer:?}");
    }
    let by_origin = |origin: &str| viewer.ask("GET", &page, &[&format!("Origin: {origin}")], b"");
    let own = by_origin(&format!("http://{}", viewer.host));
    assert_eq!((own.status, own.header("Access-Control-Allow-Origin")), (200, None));
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", PROFILER] {
        let answer = by_origin(origin);
        assert_eq!(answer.status, 403, "{origin}");
        assert_eq!(answer.header("Access-Control-Allow-Origin"), None, "{origin}");
    }
}

#[test]
fn the_profiler_may_read_the_profile_and_nobody_else() {
    let viewer = Viewer::start(&["--firefox"]);
    let encoded = |url: String| url.replace(':', "%3A").replace('/', "%2F");
    let own = format!("http://{}{}", viewer.host, viewer.token);
    let profile = encoded(format!("{own}/profile.json"));
    let symbols = encoded(own);
    assert_eq!(viewer.printed, format!("{PROFILER}/from-url/{profile}/?symbolServer={symbols}"));

    let path = format!("{}/profile.json", viewer.token);
    let by = |origin: &str, method: &str, more: &[&str]| {
        viewer.ask(method, &path, &[&[format!("Origin: {origin}").as_str()], more].concat(), b"")
    };
    let plain = by(PROFILER, "GET", &[]);
    assert_eq!((plain.status, plain.header("Access-Control-Allow-Origin")), (200, Some(PROFILER)));
    assert_eq!(
        (plain.header("Content-Type"), plain.header("Vary")),
        (Some("application/json"), Some("Accept-Encoding"))
    );
    assert!(plain.json()["meta"].is_object());
    let packed = by(PROFILER, "GET", &["Accept-Encoding: gzip, deflate, br"]);
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert_eq!(packed.body[..2], [0x1F, 0x8B]);

    let asks = ["Access-Control-Request-Method: POST", "Access-Control-Request-Private-Network: true"];
    let preflight = by(PROFILER, "OPTIONS", &asks);
    assert_eq!((preflight.status, preflight.body.len()), (204, 0));
    assert_eq!(preflight.header("Access-Control-Allow-Origin"), Some(PROFILER));
    assert_eq!(preflight.header("Access-Control-Allow-Private-Network"), Some("true"));
    assert!(preflight.header("Access-Control-Allow-Methods").unwrap().contains("POST"));
    let local = by(PROFILER, "OPTIONS", &asks[..1]);
    assert_eq!(local.header("Access-Control-Allow-Private-Network"), None, "nobody asked");
    let similar = [
        "https://profiler.firefox.com.evil.example",
        "http://profiler.firefox.com",
        "https://profiler.firefox.com:8443",
        "https://evil.example",
    ];
    for origin in similar {
        for method in ["GET", "OPTIONS"] {
            let answer = by(origin, method, &asks);
            assert_eq!(answer.status, 403, "{origin}");
            assert!(!answer.head.contains("Access-Control"), "{answer:?}");
        }
    }
    let elsewhere = viewer.ask("OPTIONS", "/profile.json", &[&format!("Origin: {PROFILER}")], b"");
    assert_eq!(elsewhere.status, 404);
}

#[test]
fn without_names_there_is_no_symbol_server() {
    let child = Viewer::start(&["--firefox", "--no-symbols", "--port", &free_port().to_string()]);
    assert!(!child.printed.contains("symbolServer"), "{}", child.printed);
}

#[test]
fn what_is_no_request_is_refused_and_harms_nobody() {
    let viewer = Viewer::start(&[]);
    let status = |bytes: &[u8]| viewer.send(bytes).status;
    let host = format!("Host: {}", viewer.host);
    assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 400);
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status(format!("GET /\0 HTTP/1.1\r\n{host}\r\n\r\n").as_bytes()), 400);
    assert_eq!(status(format!("DELETE / HTTP/1.1\r\n{host}\r\n\r\n").as_bytes()), 405);
    let long = format!("GET / HTTP/1.1\r\n{host}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert_eq!(status(long.as_bytes()), 431);
    let much = format!("POST / HTTP/1.1\r\n{host}\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    assert_eq!(status(much.as_bytes()), 413);
    let chunked = format!("POST / HTTP/1.1\r\n{host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(status(chunked.as_bytes()), 411);
    assert_eq!(viewer.get(&format!("{}/", viewer.token)).status, 200);
}

/// Some connect and say nothing, as browsers do to be fast, or stop in the middle.
#[test]
fn slow_clients_hold_up_nobody_and_are_sent_away() {
    let viewer = Viewer::start(&[]);
    let silent: Vec<_> = (0..8).map(|_| viewer.connect()).collect();
    let mut slow = viewer.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let page = format!("{}/", viewer.token);
    for _ in 0..3 {
        assert_eq!(viewer.get(&page).status, 200);
    }
    // More than are served at once: some are turned away, and when they are gone, all is as before.
    let crowd: Vec<_> = (0..64).map(|_| viewer.connect()).collect();
    drop((crowd, silent));
    assert_eq!(read(slow).status, 408);
    assert_eq!(viewer.get(&page).status, 200);
}

#[test]
fn a_port_that_is_taken_is_a_wrong_command_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = etwprof(["view", "examples/demo.etl", "--no-open", "--port", &port]);
    assert_eq!((output.code, &*output.stdout), (2, &b""[..]));
    assert!(output.stderr.starts_with(&format!("error: --port {port}: cannot listen")), "{}", output.stderr);
}

#[test]
fn a_recording_that_cannot_be_shown_ends_the_command() {
    let output = etwprof(["view", "examples/demo.etl", "--no-open", "--name", "nobody"]);
    assert_eq!((output.code, &*output.stdout), (1, &b""[..]));
    assert!(output.stderr.contains("nobody"), "{}", output.stderr);
}

/// There, Ctrl-C goes to a console and not to a process.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_and_is_a_success() {
    for signal in ["-INT", "-TERM"] {
        let mut viewer = Viewer::start(&[]);
        let _open = viewer.connect();
        let id = viewer.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(viewer.child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
