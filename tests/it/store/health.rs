//! Servers that come and go: what a run does meanwhile, and what the next one knows of it.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::{Lookup, Outcome};
use etwprof::symbols::find::options::StoreOptions;
use etwprof::symbols::find::request::Request;
use tempfile::tempdir;

use crate::support::store::{Answer, Asked, Server, check, options, pdb_key, store, symbol_file};

const HOUR: Duration = Duration::from_secs(3600);

fn keys(count: u8) -> Vec<FileKey> {
    (0..count).map(|i| pdb_key(&format!("m{i}.pdb"), [i; 16], 1)).collect()
}

/// The file for `/NAME/INDEX/NAME`; of every other path there is none.
fn served(path: &str) -> Answer {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", name, index, file] if name == file => Answer::File(symbol_file(index, 20_000)),
        _ => Answer::Status(404, Vec::new()),
    }
}

fn find_all(path: &str, options: StoreOptions, keys: &[FileKey]) -> Vec<Lookup> {
    let request = |key: &FileKey| Request {
        key: key.clone(),
        hints: Vec::new(),
        ask_servers: true,
        verify: Box::new(check(key)),
    };
    let requests: Vec<_> = keys.iter().map(request).collect();
    store(path, options).find_all(&requests, &|_, _| ())
}

fn find(path: &str, options: StoreOptions) -> Lookup {
    find_all(path, options, &keys(1)).remove(0)
}

fn last(lookup: &Lookup) -> &Outcome {
    &lookup.attempts.last().unwrap().outcome
}

fn all_found(lookups: &[Lookup]) {
    let missing: Vec<_> = lookups.iter().filter(|lookup| lookup.found.is_none()).map(last).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// More connections in a row than all tries of all searches would use up.
#[test]
fn connections_that_are_dropped_for_a_while_lose_nothing() {
    let number = AtomicUsize::new(0);
    let server = Server::start(move |path, _| match number.fetch_add(1, Ordering::Relaxed) {
        10..22 => Answer::Drop,
        _ => served(path),
    });
    let cache = tempdir().unwrap();
    let options = StoreOptions { outage: HOUR, ..options(cache.path()) };
    all_found(&find_all(&server.url(), options, &keys(40)));
    // While the server pauses only one search asks: 8 dropped at once, and then one by one.
    assert!(server.asked().len() <= 40 + 12, "{} requests", server.asked().len());
}

/// As [`connections_that_are_dropped_for_a_while_lose_nothing`], of one that answers.
#[test]
fn a_server_that_is_too_busy_for_a_while_is_waited_for() {
    for status in [429, 502, 503, 504] {
        let number = AtomicUsize::new(0);
        let server = Server::start(move |path, _| match number.fetch_add(1, Ordering::Relaxed) {
            10..14 => Answer::Status(status, Vec::new()),
            _ => served(path),
        });
        let cache = tempdir().unwrap();
        let options = StoreOptions { outage: HOUR, ..options(cache.path()) };
        all_found(&find_all(&server.url(), options, &keys(40)));
        assert!(server.asked().len() <= 40 + 4, "{status}: {} requests", server.asked().len());
    }
}

/// A server that is busy for good is given up, and asked again by the next run.
#[test]
fn a_server_that_stays_busy_is_given_up_and_not_remembered() {
    let server = Server::start(|_, _| Answer::Status(503, Vec::new()));
    let cache = tempdir().unwrap();
    let lookups = find_all(&server.url(), options(cache.path()), &keys(30));
    for lookup in &lookups {
        assert!(
            matches!(last(lookup), Outcome::Unreachable(why) if why.contains("503")),
            "{:?}",
            last(lookup)
        );
    }
    let asked = server.asked().len();
    assert!(asked < 30, "{asked} requests");
    find(&server.url(), options(cache.path()));
    assert!(server.asked().len() > asked, "the next run asks again");
}

#[test]
fn a_server_that_is_started_late_is_waited_for() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let later = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        Server::listening(TcpListener::bind(address).unwrap(), |asked, _| served(&asked.path))
    });
    let cache = tempdir().unwrap();
    let options = StoreOptions { outage: HOUR, ..options(cache.path()) };
    all_found(&find_all(&format!("http://{address}"), options, &keys(20)));
    drop(later.join().unwrap());
}

/// In outages too, servers that nobody has heard of share the silence: behind two that refuse, the third is asked.
#[test]
fn servers_that_refuse_leave_time_for_the_next() {
    let closed = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let up = Server::start(|path, _| served(path));
    let path = format!("srv*http://{};srv*http://{};srv*{}", closed(), closed(), up.url());
    let cache = tempdir().unwrap();
    let silence = Duration::from_secs(3);
    all_found(&find_all(&path, StoreOptions { outage: HOUR, silence, ..options(cache.path()) }, &keys(20)));
}

/// What is no HTTP is asked again, and says little of the server.
#[test]
fn one_answer_that_is_none_loses_nothing() {
    let number = AtomicUsize::new(0);
    let server = Server::start(move |path, _| match number.fetch_add(1, Ordering::Relaxed) {
        5 => Answer::Raw(b"this is no answer\r\n\r\n".to_vec()),
        _ => served(path),
    });
    let cache = tempdir().unwrap();
    all_found(&find_all(&server.url(), options(cache.path()), &keys(20)));
}

/// A host that a server sends us to, and which is not there, costs the file and not the server.
#[test]
fn a_dead_end_of_one_file_is_not_the_servers() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = format!("302 Found\r\nLocation: http://{closed}/x\r\nContent-Length: 0");
    let server = Server::start(move |path, _| match path.starts_with("/m3.pdb/") {
        true => raw(&to, b""),
        false => served(path),
    });
    let cache = tempdir().unwrap();
    let mut lookups = find_all(&server.url(), options(cache.path()), &keys(20));
    let lost = lookups.remove(3);
    assert!(
        matches!(last(&lost), Outcome::BadRedirect(why) if why.contains("127.0.0.1")),
        "{:?}",
        last(&lost)
    );
    all_found(&lookups);
}

#[test]
fn an_outage_ends_a_server_for_the_run_and_not_for_the_next() {
    let down = Server::start(|_, _| Answer::Drop);
    let up = Server::start(|path, _| served(path));
    let cache = tempdir().unwrap();
    let path = format!("srv*{};srv*{}", down.url(), up.url());
    let lookups = find_all(&path, options(cache.path()), &keys(30));
    all_found(&lookups);
    for lookup in &lookups {
        let outcome =
            &lookup.attempts.iter().find(|a| a.place.to_string().starts_with(&down.url())).unwrap().outcome;
        assert!(matches!(outcome, Outcome::Unreachable(why) if why.contains("dropped")), "{outcome:?}");
    }
    let asked = down.asked().len();
    assert!(asked < 30, "{asked} requests");
    find_all(&path, options(cache.path()), &[pdb_key("new.pdb", [77; 16], 1)]);
    assert!(down.asked().len() > asked, "the next run asks again");
}

/// A file over which the server breaks down does not take the others with it.
#[test]
fn one_file_that_drops_the_connection_is_alone() {
    let server =
        Server::start(|path, _| if path.starts_with("/m3.pdb/") { Answer::Drop } else { served(path) });
    let cache = tempdir().unwrap();
    let options = StoreOptions { outage: HOUR, parallel: 4, ..options(cache.path()) };
    let mut lookups = find_all(&server.url(), options, &keys(60));
    let broken = lookups.remove(3);
    assert!(matches!(last(&broken), Outcome::CutShort { received: 0, .. }), "{:?}", broken.attempts);
    all_found(&lookups);
}

fn raw(head: &str, body: &[u8]) -> Answer {
    Answer::Raw([format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat())
}

fn challenge(status: u16, header: &str) -> Answer {
    raw(&format!("{status} X\r\n{header}\r\nContent-Length: 0"), b"")
}

fn log_in(status: u16, schemes: &[&str]) -> Outcome {
    Outcome::LogIn { status, schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect() }
}

/// Whoever stands in the way at first, the next run asks again and has the file.
#[test]
fn a_portal_is_not_remembered() {
    let page = b"\n<!DOCTYPE html><html>Please log in</html>".to_vec();
    for (answer, outcome) in [
        (Answer::File(page.clone()), Some(Outcome::WebPage)),
        (Answer::Status(203, page), Some(Outcome::WebPage)),
        (Answer::Status(401, Vec::new()), Some(log_in(401, &[]))),
        (
            challenge(401, "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM"),
            Some(log_in(401, &["Negotiate", "NTLM"])),
        ),
        (
            challenge(401, "WWW-Authenticate: Basic realm=\"a, b\", Bearer"),
            Some(log_in(401, &["Basic", "Bearer"])),
        ),
        (challenge(407, "Proxy-Authenticate: Basic realm=x"), Some(log_in(407, &["Basic"]))),
        (Answer::Status(511, Vec::new()), Some(log_in(511, &[]))),
        (Answer::Redirect("/around".to_owned()), None),
        (Answer::Redirect("ftp://elsewhere/".to_owned()), None),
    ] {
        let server = Server::start(move |path, before| match (path, before) {
            ("/around", _) => Answer::Redirect("/around".to_owned()),
            (_, 0) => answer.clone(),
            _ => served(path),
        });
        let cache = tempdir().unwrap();
        let first = find(&server.url(), options(cache.path()));
        match outcome {
            Some(outcome) => assert_eq!(last(&first), &outcome),
            None => assert!(matches!(last(&first), Outcome::BadRedirect(_)), "{:?}", last(&first)),
        }
        all_found(&[find(&server.url(), options(cache.path()))]);
    }
}

/// S3 denies what it does not have, and others who is not logged in: it counts as trouble, which passes sooner.
#[test]
fn a_denied_file_is_remembered_as_trouble() {
    let server = Server::start(|path, before| match before {
        0 => Answer::Status(403, Vec::new()),
        _ => served(path),
    });
    let cache = tempdir().unwrap();
    let options = StoreOptions { remember_missing: Duration::ZERO, ..options(cache.path()) };
    assert_eq!(last(&find(&server.url(), options.clone())), &Outcome::Forbidden(Some(403)));
    let again = find(&server.url(), StoreOptions { remember_trouble: Duration::ZERO, ..options.clone() });
    assert!(matches!(last(&again), Outcome::Remembered { .. }), "{:?}", last(&again));
    let cache = tempdir().unwrap();
    let options = StoreOptions {
        remember_trouble: Duration::ZERO,
        user_cache: Some(cache.path().to_owned()),
        ..options
    };
    let server = Server::start(|path, before| match before {
        0 => Answer::Status(403, Vec::new()),
        _ => served(path),
    });
    assert!(find(&server.url(), options.clone()).found.is_none());
    all_found(&[find(&server.url(), options)]);
}

/// A page for everything is no sign of two tiers.
#[test]
fn a_portal_does_not_hide_the_layout_of_the_server() {
    let server = Server::start(|path, before| match path {
        "/index2.txt" if before == 0 => Answer::Status(500, Vec::new()),
        "/index2.txt" => Answer::File(Vec::new()),
        path => match path.strip_prefix("/m0") {
            Some(flat) => served(flat),
            None => Answer::Status(404, Vec::new()),
        },
    });
    let cache = tempdir().unwrap();
    let store = store(&server.url(), StoreOptions { tries: 1, ..options(cache.path()) });
    let key = &keys(1)[0];
    let first = store.find(key, &[], &check(key));
    assert_eq!(last(&first), &Outcome::ServerError { status: 500, tries: 1 });
    let other = pdb_key("m0b.pdb", [9; 16], 1);
    assert!(store.find(&other, &[], &check(&other)).found.is_some(), "it has two tiers after all");
}

#[test]
fn when_the_time_is_up_the_rest_is_left_to_the_next_run() {
    let server = Server::start(|path, before| match before {
        0 => Answer::Slow(symbol_file("X", 4000), Duration::from_millis(100)),
        _ => served(path),
    });
    let cache = tempdir().unwrap();
    let time = Duration::from_millis(250);
    let cut = find_all(&server.url(), StoreOptions { time: Some(time), ..options(cache.path()) }, &keys(20));
    for lookup in &cut {
        assert_eq!(last(lookup), &Outcome::TimeUp { after: time });
    }
    assert!(server.asked().len() <= 8, "one for each search");
    // Those paths that were asked for know better now, the others are slow at first.
    let next = find_all(&server.url(), options(cache.path()), &keys(20));
    assert!(next.iter().all(|lookup| !matches!(last(lookup), Outcome::Remembered { .. })), "{next:?}");
    assert!(next.iter().any(|lookup| lookup.found.is_some()), "{next:?}");
}

#[test]
fn bytes_that_arrive_keep_a_slow_server() {
    let server = Server::start(|path, _| match served(path) {
        Answer::File(file) => Answer::Slow(file, Duration::from_millis(60)),
        other => other,
    });
    let cache = tempdir().unwrap();
    // Far less than the whole takes.
    let silence = Duration::from_millis(300);
    let mut options = StoreOptions { silence, ..options(cache.path()) };
    options.timeouts.stall = silence;
    all_found(&[find(&server.url(), options)]);
}

/// Each step alone would be in time.
#[test]
fn all_steps_to_an_answer_share_its_time() {
    let server = Server::start(|path, _| {
        let next = match path.strip_prefix("/step") {
            Some("5") => served("/m0.pdb/00000000000000000000000000000000/m0.pdb"),
            Some(step) => Answer::Redirect(format!("/step{}", step.parse::<u32>().unwrap() + 1)),
            None => Answer::Redirect("/step2".to_owned()),
        };
        Answer::Late(Duration::from_millis(250), Box::new(next))
    });
    let cache = tempdir().unwrap();
    let mut options = StoreOptions { tries: 1, ..options(cache.path()) };
    options.timeouts.answer = Duration::from_millis(600);
    let lookup = find(&server.url(), options);
    assert!(matches!(last(&lookup), Outcome::TimedOut { .. }), "{:?}", lookup.attempts);
}

// ---- going on with a download

/// A server of one file that gives so many bytes of it and drops the connection, and then the rest if it is asked for
/// in the right way.
fn in_pieces(step: usize, version: &'static str, range: fn(usize, usize) -> String) -> Server {
    Server::answering(move |asked, _| {
        let Answer::File(file) = served(&asked.path) else { return Answer::Status(404, Vec::new()) };
        let from = asked.header("Range").map(|range| {
            range.strip_prefix("bytes=").and_then(|r| r.strip_suffix('-')).unwrap().parse::<usize>().unwrap()
        });
        let from = from.filter(|_| version.contains(asked.header("If-Range").unwrap()));
        let start = from.unwrap_or(0);
        let status = match from {
            Some(from) => format!("206 Partial Content\r\nContent-Range: {}", range(from, file.len())),
            None => "200 OK".to_owned(),
        };
        let head = format!("{status}\r\n{version}\r\nContent-Length: {}", file.len() - start);
        raw(&head, &file[start..file.len().min(start + step)])
    })
}

fn right(from: usize, length: usize) -> String {
    format!("bytes {from}-{}/{length}", length - 1)
}

#[test]
fn a_download_goes_on_where_it_was_cut_off() {
    for version in ["ETag: \"v1\"", "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT"] {
        let server = in_pieces(3000, version, right);
        let cache = tempdir().unwrap();
        all_found(&[find(&server.url(), StoreOptions { tries: 2, ..options(cache.path()) })]);
        let ranges: Vec<_> = server.requests().iter().map(|r| r.header("Range").map(str::to_owned)).collect();
        let expected = [None, Some(3000), Some(6000), Some(9000), Some(12_000), Some(15_000), Some(18_000)];
        assert_eq!(ranges, expected.map(|from| from.map(|from| format!("bytes={from}-"))));
    }
}

#[test]
fn a_download_that_cannot_go_on_begins_anew() {
    let whole = |asked: &Asked| served(&asked.path);
    let cases: [fn(&Asked, Answer) -> Answer; 4] = [
        // The file has changed meanwhile.
        |_, whole| whole,
        // Another part than that asked for, and nothing more to give.
        |asked, whole| match asked.header("Range") {
            Some(_) => raw("206 X\r\nContent-Range: bytes 0-9/20000\r\nContent-Length: 10", &[0; 10]),
            None => whole,
        },
        // The rest of another state of the file: a server that does not heed If-Range.
        |asked, whole| match (asked.header("Range"), whole) {
            (Some(_), Answer::File(file)) => raw(
                "206 X\r\nETag: \"v2\"\r\nContent-Range: bytes 500-19999/20000\r\nContent-Length: 19500",
                &file[500..],
            ),
            (_, whole) => whole,
        },
        |asked, whole| match asked.header("Range") {
            Some(_) => Answer::Status(416, Vec::new()),
            None => whole,
        },
    ];
    for then in cases {
        let server = Server::answering(move |asked, before| match (before, whole(asked)) {
            (0, Answer::File(file)) => {
                raw(&format!("200 OK\r\nETag: \"v1\"\r\nContent-Length: {}", file.len()), &[0xEE; 500])
            }
            (_, whole) => then(asked, whole),
        });
        let cache = tempdir().unwrap();
        all_found(&[find(&server.url(), options(cache.path()))]);
        assert_eq!(server.requests()[1].header("If-Range"), Some("\"v1\""));
    }
    // What names no state of the file for sure is not gone on with.
    let server = Server::answering(move |asked, before| match (before, whole(asked)) {
        (0, Answer::File(file)) => {
            raw(&format!("200 OK\r\nETag: W/\"v1\"\r\nContent-Length: {}", file.len()), &file[..500])
        }
        (_, whole) => whole,
    });
    let cache = tempdir().unwrap();
    all_found(&[find(&server.url(), options(cache.path()))]);
    assert!(server.requests().iter().all(|asked| asked.header("Range").is_none()));
}

/// The same without getting on is not tried for ever.
#[test]
fn a_download_that_does_not_get_on_ends() {
    let server = Server::start(|path, _| match served(path) {
        Answer::File(file) => raw(&format!("200 OK\r\nETag: \"v1\"\r\nContent-Length: {}", file.len()), b""),
        other => other,
    });
    let cache = tempdir().unwrap();
    let lookup = find(&server.url(), options(cache.path()));
    assert_eq!(last(&lookup), &Outcome::CutShort { received: 0, promised: Some(20_000) });
    assert_eq!(server.asked().len(), 3);
}
