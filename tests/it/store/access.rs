//! How servers are reached, and what they are given to let us in: proxies, logins, headers, and who gets none of it.

use std::fs;

use etwprof::symbols::find::credentials::Credentials;
use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::{Lookup, Outcome};
use etwprof::symbols::find::options::{Proxy, StoreOptions};
use tempfile::tempdir;

use crate::support::store::{Answer, Asked, Server, check, options, pdb_key, store, symbol_file};

const INDEX: &str = "ABABABABABABABABABABABABABABABAB2";

fn key() -> FileKey {
    pdb_key("foo.pdb", [0xAB; 16], 2)
}

fn file() -> Answer {
    Answer::File(symbol_file(INDEX, 5000))
}

fn path_of(file: &str) -> String {
    format!("/x/foo.pdb/{INDEX}/{file}")
}

fn find_with(path: &str, change: impl FnOnce(&mut StoreOptions)) -> Lookup {
    let cache = tempdir().unwrap();
    let mut options = options(cache.path());
    change(&mut options);
    let lookup = store(path, options).find(&key(), &[], &check(&key()));
    // What is remembered and what is reported is shown to people.
    let mut shown = format!("{lookup:?}");
    let failed = cache.path().join(".etwprof").join("failed").join("foo.pdb").join(INDEX);
    shown += &fs::read_to_string(failed).unwrap_or_default();
    assert!(!shown.contains("secret") && !shown.contains("c2VjcmV0"), "{shown}");
    lookup
}

fn last(lookup: &Lookup) -> &Outcome {
    &lookup.attempts.last().unwrap().outcome
}

/// A server that wants this value of a header.
fn guarded(name: &'static str, value: &'static str, then: fn() -> Answer) -> Server {
    Server::answering(move |asked, _| match asked.header(name) {
        Some(given) if given == value => then(),
        _ => Answer::Status(401, Vec::new()),
    })
}

/// `me:secret`
const BASIC: &str = "Basic bWU6c2VjcmV0";

fn given(asked: &[Asked]) -> Vec<Option<&str>> {
    asked.iter().map(|asked| asked.header("Authorization")).collect()
}

#[test]
fn http_goes_by_way_of_a_proxy_with_the_whole_address() {
    let proxy = Server::answering(|asked, _| match asked.path.strip_prefix("http://symbols.example") {
        Some(path) if path.ends_with("/foo.pdb") && path.starts_with("/x/") => file(),
        _ => Answer::Status(400, Vec::new()),
    });
    let address = format!("http://me:secret@{}", proxy.address());
    let lookup = find_with("http://symbols.example/x", |o| o.proxy = Proxy::Address(address));
    assert!(lookup.found.is_some(), "{lookup:?}");
    let asked = &proxy.requests()[0];
    assert_eq!(asked.path, format!("http://symbols.example{}", path_of("foo.pdb")));
    assert_eq!(asked.header("Host"), Some("symbols.example"));
    assert_eq!(asked.header("Proxy-Authorization"), Some(BASIC));
    assert_eq!(asked.header("Authorization"), None);
}

#[test]
fn https_goes_through_a_tunnel() {
    let log_in = Server::start(|_, _| Answer::Status(407, Vec::new()));
    let by = |server: &Server| Proxy::Address(format!("http://me:secret@{}", server.address()));
    let lookup = find_with("https://symbols.example/x", |o| o.proxy = by(&log_in));
    assert_eq!(last(&lookup), &Outcome::LogIn { status: 407, schemes: Vec::new() });
    assert_eq!(log_in.asked(), ["symbols.example:443"]);
    assert_eq!(log_in.requests()[0].header("Proxy-Authorization"), Some(BASIC));

    let refuses = Server::start(|_, _| Answer::Status(403, Vec::new()));
    let lookup = find_with("https://symbols.example/x", |o| o.proxy = by(&refuses));
    let place = format!("by way of the proxy {}", refuses.address());
    assert!(matches!(last(&lookup), Outcome::Unreachable(why) if why.contains(&place)), "{lookup:?}");
    assert_eq!(refuses.asked().len(), 1, "it would refuse again");

    // The tunnel leads to a server without TLS.
    let plain = Server::start(|path, _| match path {
        "symbols.example:443" => Answer::Status(200, Vec::new()),
        _ => file(),
    });
    let lookup = find_with("https://symbols.example/x", |o| o.proxy = by(&plain));
    assert!(matches!(last(&lookup), Outcome::Unreachable(_) | Outcome::CutShort { .. }), "{lookup:?}");
    assert!(
        plain.asked().iter().all(|path| path.starts_with("symbols.example:443") || !path.starts_with("/x"))
    );
}

#[test]
fn what_is_no_proxy_is_the_cause() {
    for address in ["nonsense://", "socks5://me:secret@proxy:1080"] {
        let lookup = find_with("http://symbols.example/x", |o| o.proxy = Proxy::Address(address.to_owned()));
        assert!(matches!(last(&lookup), Outcome::Unreachable(why) if why.contains("proxy")), "{lookup:?}");
    }
}

#[test]
fn the_login_in_an_address_goes_to_that_server() {
    let server = guarded("Authorization", BASIC, file);
    let path = format!("srv*http://me:secret@{}/x", server.address());
    let lookup = find_with(&path, |_| ());
    assert!(lookup.found.is_some(), "{lookup:?}");
    let without = find_with(&format!("{}/x", server.url()), |_| ());
    assert_eq!(last(&without), &Outcome::LogIn { status: 401, schemes: Vec::new() });
}

#[test]
fn a_header_goes_to_its_host() {
    let server = guarded("X-Token", "secret", file);
    let with = |host: &str| {
        let mut credentials = Credentials::default();
        credentials.add_header(&format!("{host}=X-Token: secret")).unwrap();
        find_with(&format!("{}/x", server.url()), |o| o.credentials = credentials)
    };
    assert!(with(server.address()).found.is_some());
    assert!(with("127.0.0.1").found.is_some());
    assert!(with("127.0.0.1:1").found.is_none());
    assert!(with("localhost").found.is_none());
}

#[test]
fn a_netrc_file_has_logins() {
    let server = guarded("Authorization", BASIC, file);
    let folder = tempdir().unwrap();
    let netrc = folder.path().join("netrc");
    let read = |text: &str| {
        fs::write(&netrc, text).unwrap();
        let mut credentials = Credentials::default();
        credentials.read_netrc(&netrc).unwrap();
        find_with(&format!("{}/x", server.url()), |o| o.credentials = credentials)
    };
    assert!(read("machine 127.0.0.1 login me password secret").found.is_some());
    // For everybody, so for Microsoft's server too.
    assert!(read("default login me password secret").found.is_none());
    Credentials::default().read_netrc(&folder.path().join("none")).unwrap();
}

/// Another port is another server.
#[test]
fn whoever_a_server_sends_us_to_gets_no_login() {
    let other = Server::start(|_, _| file());
    let to = other.url() + "/elsewhere";
    let redirects = Server::start({
        let to = to.clone();
        move |path, _| match path {
            "/here" => Answer::Redirect(to.clone()),
            _ => Answer::Redirect("/here".to_owned()),
        }
    });
    let points = Server::start(move |path, _| match path.ends_with("/file.ptr") {
        true => Answer::File(format!("PATH:{to}").into_bytes()),
        false => Answer::Status(404, Vec::new()),
    });
    for server in [redirects, points] {
        let mut credentials = Credentials::default();
        credentials.add_header("127.0.0.1=X-Token: secret").unwrap();
        let path = format!("http://me:secret@{}/x", server.address());
        let lookup = find_with(&path, |o| o.credentials = credentials);
        assert!(lookup.found.is_some(), "{lookup:?}");
        assert!(server.requests().len() > 1);
        assert!(given(&server.requests()).iter().all(|given| *given == Some(BASIC)), "its own addresses");
    }
    assert_eq!(given(&other.requests()), [None, None]);
    assert!(other.requests().iter().all(|asked| asked.header("X-Token").is_none()));
}
