//! Symbol servers: everything that one may answer, each reported by its cause, and nothing wrong in the cache.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::{Lookup, Outcome, Place};
use etwprof::symbols::find::options::{SizeLimits, StoreOptions, Timeouts};
use etwprof::symbols::find::request::{Progress, Request};
use tempfile::{TempDir, tempdir};

use crate::support::data;
use crate::support::store::{
    Answer, Packing, Server, cabinet, check, check_real, files, options, pdb_key, pdb_of_image, store,
    symbol_file,
};

fn key() -> FileKey {
    pdb_key(r"D:\build\foo.pdb", [0xAB; 16], 2)
}

const INDEX: &str = "ABABABABABABABABABABABABABABABAB2";

fn path_of(file: &str) -> String {
    format!("/foo.pdb/{INDEX}/{file}")
}

fn good() -> Vec<u8> {
    symbol_file(INDEX, 300_000)
}

/// Asks the server for the file with a fresh cache.
fn ask_with(server: &Server, change: impl FnOnce(&mut StoreOptions)) -> (Lookup, TempDir) {
    let cache = tempdir().unwrap();
    let mut options = options(cache.path());
    change(&mut options);
    let lookup = store(&server.url(), options).find(&key(), &[], &check(&key()));
    (lookup, cache)
}

fn ask(server: &Server) -> (Lookup, TempDir) {
    ask_with(server, |_| ())
}

fn found_good(lookup: &Lookup, cache: &Path) {
    let found = lookup.found.as_ref().unwrap_or_else(|| panic!("not found: {:?}", lookup.attempts));
    assert_eq!(found.path, cache.join("foo.pdb").join(INDEX).join("foo.pdb"));
    assert_eq!(fs::read(&found.path).unwrap(), good());
    assert_eq!(files(cache), [format!("foo.pdb/{INDEX}/foo.pdb")]);
}

/// Nothing was found, the cache holds nothing, and the last outcome says why.
fn failed((lookup, cache): (Lookup, TempDir)) -> Outcome {
    assert_eq!(lookup.found, None);
    assert_eq!(files(cache.path()), Vec::<String>::new());
    let last = lookup.attempts.last().unwrap();
    assert_eq!(lookup.reason().unwrap().outcome, last.outcome);
    last.outcome.clone()
}

fn always(answer: Answer) -> Server {
    Server::start(move |_, _| answer.clone())
}

fn raw(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat()
}

#[test]
fn found_and_found_again_without_asking() {
    let server = Server::with_files([(path_of("foo.pdb"), good())]);
    let (lookup, cache) = ask(&server);
    found_good(&lookup, cache.path());
    assert_eq!(lookup.found.unwrap().from, Place::Url(server.url() + &path_of("foo.pdb")));
    assert_eq!(server.asked(), [path_of("foo.pdb")]);

    let again = store(&server.url(), options(cache.path())).find(&key(), &[], &check(&key()));
    found_good(&again, cache.path());
    assert_eq!(server.asked().len(), 1);
    assert!(matches!(again.found.unwrap().from, Place::Path(_)));
}

#[test]
fn an_image_is_asked_for_by_time_stamp_and_size() {
    let key = FileKey::image(r"C:\Windows\system32\ntdll.dll", 0x0123_ABCD, 0x1F_0000);
    let path = "/ntdll.dll/0123ABCD1f0000/ntdll.dll".to_owned();
    let server = Server::with_files([(path, symbol_file("0123ABCD1f0000", 1000))]);
    let cache = tempdir().unwrap();
    let lookup = store(&server.url(), options(cache.path())).find(&key, &[], &check(&key));
    assert!(lookup.found.is_some(), "{:?}", lookup.attempts);
}

/// As Visual Studio asks: a static server, in which case counts, has nothing else.
#[test]
fn a_portable_pdb_is_asked_for_in_lower_case() {
    let key = FileKey::portable_pdb("/_/obj/My App.pdb", etwprof::guid::Guid::from_bytes(&[0xAB; 16]));
    let path = format!("/my%20app.pdb/{}FFFFFFFF/my%20app.pdb", "ab".repeat(16));
    let server = Server::with_files([(path.clone(), symbol_file(&key.index(), 1000))]);
    let cache = tempdir().unwrap();
    let lookup = store(&server.url(), options(cache.path())).find(&key, &[], &check(&key));
    assert!(lookup.found.is_some(), "{:?}", lookup.attempts);
    assert_eq!(server.asked(), [path]);
    assert_eq!(files(cache.path()), [format!("my app.pdb/{}FFFFFFFF/my app.pdb", "ab".repeat(16))]);
}

#[test]
fn not_there_means_every_form_was_asked() {
    let server = Server::with_files([]);
    assert_eq!(failed(ask(&server)), Outcome::NotThere);
    let forms = [path_of("foo.pdb"), path_of("foo.pd_"), path_of("file.ptr"), "/index2.txt".to_owned()];
    assert_eq!(server.asked(), forms);
}

#[test]
fn a_server_named_twice_is_asked_once() {
    let server = Server::with_files([]);
    let cache = tempdir().unwrap();
    let path = format!("{};cache*;srv**{}/", server.url(), server.url());
    let options = StoreOptions { retry_failed: true, ..options(cache.path()) };
    assert!(store(&path, options).find(&key(), &[], &check(&key())).found.is_none());
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn denied() {
    let outcome = failed(ask(&always(Answer::Status(403, vec![]))));
    assert_eq!(outcome, Outcome::Forbidden(Some(403)));
}

#[test]
fn a_server_error_that_passes() {
    let server = Server::start(|path, before| match (path, before) {
        (_, 0) => Answer::Status(500, b"try later".to_vec()),
        (_, 1) => Answer::Raw(raw("503 Busy\r\nRetry-After: 0\r\nContent-Length: 0", b"")),
        _ => Answer::File(good()),
    });
    let (lookup, cache) = ask(&server);
    found_good(&lookup, cache.path());
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_server_error_that_stays() {
    let server = always(Answer::Status(500, vec![]));
    assert_eq!(failed(ask(&server)), Outcome::ServerError { status: 500, tries: 3 });
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn an_odd_status_is_no_file() {
    let outcome = failed(ask(&always(Answer::Status(206, good()))));
    assert_eq!(outcome, Outcome::ServerError { status: 206, tries: 1 });
}

#[test]
fn slow_but_alive_is_waited_for() {
    let server = always(Answer::Slow(good(), Duration::from_millis(60)));
    let (lookup, cache) = ask_with(&server, |o| o.timeouts.stall = Duration::from_millis(1000));
    found_good(&lookup, cache.path());
}

#[test]
fn silence_times_out() {
    let head = raw("200 OK\r\nContent-Length: 300000", &good()[..1000]);
    let ask = |answer| {
        failed(ask_with(&always(Answer::RawThenSilence(answer)), |o| {
            o.timeouts.stall = Duration::from_millis(200);
            o.tries = 2;
        }))
    };
    // Who said something may be asked again; who never did is given up.
    assert_eq!(ask(head), Outcome::TimedOut { phase: "receiving the file", tries: 2 });
    assert!(matches!(ask(Vec::new()), Outcome::Silent { .. }));
}

/// Options under which nobody else ends the wait for a server: a test that ends shows that silence does.
fn patient(cache: &Path, silence: Duration) -> StoreOptions {
    let hour = Duration::from_secs(3600);
    let timeouts = Timeouts { connect: hour, answer: hour, stall: hour };
    StoreOptions { timeouts, silence, report_silence: Duration::from_millis(20), ..options(cache) }
}

fn requests(keys: &[FileKey]) -> Vec<Request<'_>> {
    let request = |key: &FileKey| Request {
        key: key.clone(),
        hints: Vec::new(),
        ask_servers: true,
        verify: Box::new(check(key)),
    };
    keys.iter().map(request).collect()
}

/// It accepts and never answers: the run waits as long as it may, once and not for each of 30 files, says so meanwhile,
/// and the next run asks again.
#[test]
fn a_silent_server_costs_the_time_for_silence_once() {
    let server = always(Answer::RawThenSilence(Vec::new()));
    let cache = tempdir().unwrap();
    let keys: Vec<_> = (0..30u8).map(|i| pdb_key(&format!("m{i}.pdb"), [i; 16], 1)).collect();
    let mut asked = 0;
    for run in 0..2 {
        let store = store(&server.url(), patient(cache.path(), Duration::from_millis(300)));
        let waits = Mutex::new(Vec::new());
        let lookups = store.find_all(&requests(&keys), &|file, progress| {
            if let Progress::Waiting { server, seconds } = progress {
                waits.lock().unwrap().push((file.to_owned(), server.to_owned(), seconds));
            }
        });
        for lookup in &lookups {
            let outcome = &lookup.attempts.last().unwrap().outcome;
            assert!(matches!(outcome, Outcome::Silent { .. } | Outcome::NoTime), "run {run}: {outcome}");
        }
        let waits = waits.into_inner().unwrap();
        assert!(
            waits.iter().any(|(file, from, _)| file.starts_with('m') && *from == server.url()),
            "{waits:?}"
        );
        // One question for each thread, then no more.
        let before = std::mem::replace(&mut asked, server.asked().len());
        assert!((1..=8).contains(&(asked - before)), "run {run}: {} questions", asked - before);
    }
}

/// The time for silence is shared by servers that never answered, so that a healthy one behind a dead one is asked.
#[test]
fn behind_a_silent_server_the_next_one_is_asked() {
    let silent = always(Answer::RawThenSilence(Vec::new()));
    let keys: Vec<_> = (0..20u8).map(|i| pdb_key(&format!("m{i}.pdb"), [i; 16], 1)).collect();
    let served = keys.iter().map(|key| {
        let name = key.name().unwrap();
        (format!("/{name}/{}/{name}", key.index()), symbol_file(&key.index(), 5000))
    });
    let healthy = Server::with_files(served);
    let cache = tempdir().unwrap();
    let path = format!("srv*{};srv*{}", silent.url(), healthy.url());
    let store = store(&path, patient(cache.path(), Duration::from_secs(1)));
    let lookups = store.find_all(&requests(&keys), &|_, _| ());
    assert!(lookups.iter().all(|lookup| lookup.found.is_some()), "{lookups:?}");
    assert!(silent.asked().len() <= 8, "{} questions", silent.asked().len());
}

#[test]
fn cut_in_the_middle() {
    let whole = raw("200 OK\r\nContent-Length: 300000", &good());
    let half = whole[..150_000].to_vec();
    let received = 150_000 - (whole.len() as u64 - 300_000);
    let cut = half.clone();
    assert_eq!(
        failed(ask(&always(Answer::Raw(cut)))),
        Outcome::CutShort { received, promised: Some(300_000) }
    );
    // A chunked body without its end.
    let chunks = raw("200 OK\r\nTransfer-Encoding: chunked", &[b"186a0\r\n", &good()[..100_000]].concat());
    let outcome = failed(ask(&always(Answer::Raw(chunks))));
    assert!(matches!(outcome, Outcome::CutShort { promised: None, .. }), "{outcome:?}");
    // Without any length only the file itself can tell.
    let endless = raw("200 OK\r\nConnection: close", &good()[..100_000]);
    let outcome = failed(ask(&always(Answer::Raw(endless))));
    assert_eq!(outcome, Outcome::Unreadable("100000 bytes instead of 300000".to_owned()));
    // The second try brings it whole.
    let server = Server::start(move |_, before| match before {
        0 => Answer::Raw(half.clone()),
        _ => Answer::File(good()),
    });
    let (lookup, cache) = ask(&server);
    found_good(&lookup, cache.path());
}

#[test]
fn another_file_and_another_age() {
    for other in ["00000000000000000000000000000000", "ABABABABABABABABABABABABABABABAB1"] {
        let outcome = failed(ask(&always(Answer::File(symbol_file(other, 5000)))));
        assert_eq!(outcome, Outcome::WrongFile { found: other.to_owned(), wanted: INDEX.to_owned() });
    }
    let text = b"Please log in".to_vec();
    assert_eq!(failed(ask(&always(Answer::File(text)))), Outcome::Unreadable("no symbol file".to_owned()));
    assert!(matches!(failed(ask(&always(Answer::File(vec![])))), Outcome::Unreadable(_)));
}

#[test]
fn redirects_are_followed_to_a_bound() {
    let target = Server::with_files([("/elsewhere".to_owned(), good())]);
    let to = target.url() + "/elsewhere";
    let server = always(Answer::Redirect(to));
    let (lookup, cache) = ask(&server);
    found_good(&lookup, cache.path());

    let around = always(Answer::Redirect(path_of("foo.pdb")));
    let outcome = failed(ask(&around));
    assert!(matches!(outcome, Outcome::BadRedirect(_)), "{outcome:?}");
    assert!(around.asked().len() <= 6, "{:?}", around.asked());
}

#[test]
fn gzip_is_decoded_and_other_encodings_are_refused() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&good()).unwrap();
    let packed = gzip.finish().unwrap();
    let head = format!("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}", packed.len());
    let (lookup, cache) = ask(&always(Answer::Raw(raw(&head, &packed))));
    found_good(&lookup, cache.path());

    let outcome = failed(ask(&always(Answer::Raw(raw(&head, &packed[..packed.len() / 2])))));
    assert!(matches!(outcome, Outcome::CutShort { .. } | Outcome::Unreadable(_)), "{outcome:?}");

    let mut broken = packed.clone();
    broken[40] ^= 0xFF;
    let outcome = failed(ask(&always(Answer::Raw(raw(&head, &broken)))));
    assert!(matches!(outcome, Outcome::Unreadable(_)), "{outcome:?}");

    // A small answer that swells.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&vec![0; 8 << 20]).unwrap();
    let bomb = gzip.finish().unwrap();
    let head = format!("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}", bomb.len());
    let outcome = failed(ask_with(&always(Answer::Raw(raw(&head, &bomb))), |o| o.limits.file = 1 << 20));
    assert!(matches!(outcome, Outcome::OverLimit { limit: 0x10_0000, .. }), "{outcome:?}");

    for encoding in ["br", "zstd", "gzip, gzip", "deflate"] {
        let head = format!("200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: 300000");
        let outcome = failed(ask(&always(Answer::Raw(raw(&head, &good())))));
        assert!(matches!(&outcome, Outcome::Unreadable(why) if why.contains(encoding)), "{outcome:?}");
    }
}

#[test]
fn a_claim_of_ten_gigabytes_is_refused_at_once() {
    let server = always(Answer::RawThenSilence(raw("200 OK\r\nContent-Length: 10000000000", b"x")));
    let outcome = failed(ask(&server));
    assert_eq!(outcome, Outcome::OverLimit { size: 10_000_000_000, limit: 4 << 30 });
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_body_without_end_stops_at_the_limit() {
    let outcome = failed(ask_with(&always(Answer::Endless), |o| o.limits.file = 3_000_000));
    assert!(
        matches!(outcome, Outcome::OverLimit { size, limit: 3_000_000 } if size < 3_200_000),
        "{outcome:?}"
    );
}

#[test]
fn only_the_compressed_form() {
    let cab = cabinet(&[("foo.pdb", &good())], Packing::MsZip);
    let server = Server::with_files([(path_of("foo.pd_"), cab.clone())]);
    let (lookup, cache) = ask(&server);
    found_good(&lookup, cache.path());
    assert_eq!(lookup.found.unwrap().from, Place::Url(server.url() + &path_of("foo.pd_")));

    // The same under the plain name.
    let (lookup, cache) = ask(&Server::with_files([(path_of("foo.pdb"), cab.clone())]));
    found_good(&lookup, cache.path());

    // Damaged, and one that holds another file.
    let mut damaged = cab.clone();
    damaged.truncate(cab.len() - 10);
    let outcome = failed(ask(&Server::with_files([(path_of("foo.pd_"), damaged)])));
    assert_eq!(outcome, Outcome::Unreadable("the cabinet is cut short".to_owned()));
    let other = cabinet(&[("foo.pdb", &symbol_file("12345", 5000))], Packing::Stored);
    let outcome = failed(ask(&Server::with_files([(path_of("foo.pd_"), other)])));
    assert!(matches!(outcome, Outcome::WrongFile { .. }), "{outcome:?}");

    let zeros = cabinet(&[("foo.pdb", &vec![0; 20 << 20])], Packing::MsZip);
    let bomb = always(Answer::File(zeros));
    let outcome = failed(ask_with(&bomb, |o| o.limits = SizeLimits { file: 4 << 30, cabinet_ratio: 100 }));
    assert!(matches!(outcome, Outcome::OverLimit { size: 0x140_0000, .. }), "{outcome:?}");
}

#[test]
fn file_ptr_leads_to_another_address_and_to_no_path() {
    let target = Server::with_files([("/a/b".to_owned(), good())]);
    for text in [format!("PATH:{}/a/b", target.url()), format!("\u{feff}{}/a/b\r\n", target.url())] {
        let (lookup, cache) = ask(&Server::with_files([(path_of("file.ptr"), text.into_bytes())]));
        found_good(&lookup, cache.path());
        assert_eq!(lookup.found.unwrap().from, Place::Url(target.url() + "/a/b"));
    }
    let pointer =
        |text: &str| failed(ask(&Server::with_files([(path_of("file.ptr"), text.as_bytes().to_vec())])));
    for path in [r"PATH:\\host\share\foo.pdb", "/etc/passwd", r"PATH:C:\x.pdb", "file:///etc/passwd", ""] {
        let outcome = pointer(path);
        assert!(matches!(outcome, Outcome::RefusedPath(_)), "{path}: {outcome:?}");
    }
    let outcome = pointer("MSG: moved to the archive");
    assert!(
        matches!(&outcome, Outcome::Unreadable(why) if why.contains("moved to the archive")),
        "{outcome:?}"
    );
}

#[test]
fn two_tiers() {
    let server = Server::with_files([
        ("/index2.txt".to_owned(), vec![]),
        (format!("/fo{}", path_of("foo.pdb")), good()),
    ]);
    let cache = tempdir().unwrap();
    let store = store(&server.url(), options(cache.path()));
    found_good(&store.find(&key(), &[], &check(&key())), cache.path());
    // Known by now: nothing is asked for in the flat form.
    let missing = pdb_key("bar.pdb", [1; 16], 1);
    let before = server.asked().len();
    assert!(store.find(&missing, &[], &check(&missing)).found.is_none());
    assert!(
        server.asked()[before..].iter().all(|path| path.starts_with("/ba/bar.pdb/")),
        "{:?}",
        server.asked()
    );
}

#[test]
fn names_are_escaped_in_addresses_and_refused_ones_never_asked() {
    let key = pdb_key("a b#%é?.pdb".replace('?', "!").as_str(), [0xAB; 16], 2);
    let path = format!("/a%20b%23%25%C3%A9%21.pdb/{INDEX}/a%20b%23%25%C3%A9%21.pdb");
    let server = Server::with_files([(path, good())]);
    let cache = tempdir().unwrap();
    let here = store(&server.url(), options(cache.path()));
    assert!(here.find(&key, &[], &check(&key)).found.is_some());

    let before = server.asked().len();
    for name in ["..", "nul.pdb", "x:y.pdb", "a\0b", ""] {
        let key = pdb_key(name, [0xAB; 16], 2);
        let lookup = here.find(&key, &[], &check(&key));
        assert!(matches!(lookup.attempts[..], [ref a] if matches!(a.outcome, Outcome::RefusedName(_))));
    }
    assert_eq!(server.asked().len(), before);
}

#[test]
fn nobody_there_is_found_out_once() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cache = tempdir().unwrap();
    let store = store(&format!("http://{address}/x"), options(cache.path()));
    let first = store.find(&key(), &[], &check(&key()));
    assert!(
        matches!(&first.attempts.last().unwrap().outcome, Outcome::Unreachable(why) if why.contains("refused"))
    );
    let second = store.find(&pdb_key("bar.pdb", [1; 16], 1), &[], &check(&key()));
    let outcome = &second.attempts.last().unwrap().outcome;
    assert!(
        matches!(outcome, Outcome::Unreachable(why) if why.contains("not retried in this run")),
        "{outcome}"
    );
}

#[test]
fn a_server_that_fails_over_and_over_is_given_up() {
    let server = always(Answer::Status(500, vec![]));
    let cache = tempdir().unwrap();
    let store = store(&server.url(), StoreOptions { tries: 1, ..options(cache.path()) });
    let keys: Vec<_> = (0..30).map(|i| pdb_key(&format!("m{i}.pdb"), [i; 16], 1)).collect();
    for key in &keys {
        assert!(store.find(key, &[], &check(key)).found.is_none());
    }
    assert_eq!(server.asked().len(), 8);
}

#[test]
fn plain_http_does_not_pass_for_tls() {
    let server = Server::with_files([(path_of("foo.pdb"), good())]);
    let cache = tempdir().unwrap();
    let store = store(&format!("https://{}", server.address()), options(cache.path()));
    let lookup = store.find(&key(), &[], &check(&key()));
    assert!(lookup.found.is_none());
    let outcome = &lookup.attempts.last().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Unreachable(_)), "{outcome:?}");
}

#[test]
fn many_at_once_in_order_with_progress() {
    let keys: Vec<_> = (0..40u8).map(|i| pdb_key(&format!("m{i}.pdb"), [i; 16], 1)).collect();
    let served: Vec<_> = keys
        .iter()
        .enumerate()
        .filter(|(i, _)| i % 3 != 0)
        .map(|(_, key)| {
            let name = key.name().unwrap();
            (format!("/{name}/{}/{name}", key.index()), symbol_file(&key.index(), 100_000))
        })
        .collect();
    let server = Server::with_files(served);
    let cache = tempdir().unwrap();
    let store = store(&server.url(), options(cache.path()));
    let checks: Vec<_> = keys.iter().map(check).collect();
    let requests: Vec<_> = keys
        .iter()
        .zip(&checks)
        .map(|(key, verify)| Request {
            key: key.clone(),
            hints: Vec::new(),
            ask_servers: true,
            verify: Box::new(verify),
        })
        .collect();
    let seen = Mutex::new((Vec::new(), vec![0u64; keys.len()], 0));
    let lookups = store.find_all(&requests, &|name, progress| {
        let number = name.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap();
        let mut seen = seen.lock().unwrap();
        match progress {
            Progress::Started => seen.0.push(number),
            Progress::Receiving { bytes, total } => {
                assert!(
                    (bytes, total) == (0, None)
                        || bytes <= 100_000 && (total == Some(100_000) || total == Some(4)),
                    "{bytes} {total:?}"
                );
                seen.1[number] = bytes;
            }
            Progress::Finished(_) => seen.2 += 1,
            _ => {}
        }
    });
    let (mut started, bytes, finished) = seen.into_inner().unwrap();
    assert_eq!(finished, 40);
    started.sort_unstable();
    assert!(started.into_iter().eq(0..40));
    for (i, lookup) in lookups.iter().enumerate() {
        assert_eq!(lookup.found.is_some(), i % 3 != 0, "{i}: {:?}", lookup.attempts);
        assert_eq!(bytes[i] == 100_000, i % 3 != 0);
    }
    assert_eq!(files(cache.path()).len(), 26);
    // Connections are kept, also over what is not there: at most one for each thread.
    assert_eq!(server.asked().len(), 26 + 3 * 14 + 1);
    assert!(server.connections() <= 8, "{} connections", server.connections());
}

#[test]
fn work_is_begun_in_the_order_of_the_requests() {
    let server = Server::with_files([]);
    let cache = tempdir().unwrap();
    // One at a time, or the order in which threads report would be up to the system.
    let store = store(&server.url(), StoreOptions { parallel: 1, ..options(cache.path()) });
    let keys: Vec<_> = (0..5u8).map(|i| pdb_key(&format!("m{}.pdb", 9 - i), [i; 16], 1)).collect();
    let verify = check(&key());
    let requests: Vec<_> = keys
        .into_iter()
        .map(|key| Request { key, hints: Vec::new(), ask_servers: true, verify: Box::new(&verify) })
        .collect();
    store.find_all(&requests, &|_, _| ());
    let asked = server.asked();
    let first: Vec<_> =
        asked.iter().filter_map(|path| path.strip_suffix(".pdb")?.rsplit('/').next()).collect();
    assert_eq!(first, ["m9", "m8", "m7", "m6", "m5"]);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_pair_from_a_compressed_server() {
    let (image, packed) = (data::file("pdb/dump_syms/basic32.dll"), data::file("pdb/dump_syms/basic32.pd_"));
    let key = pdb_of_image(&image);
    let path = format!("/basic32.pdb/{}/basic32.pd_", key.index());
    let server = Server::with_files([(path, fs::read(&packed).unwrap())]);
    let cache = tempdir().unwrap();
    let lookup = store(&server.url(), options(cache.path())).find(&key, &[], &check_real(&key));
    assert!(lookup.found.is_some(), "{key}: {:?}", lookup.attempts);

    // The stripped twin names another PDB: this one is never given for it.
    let other = pdb_of_image(&data::file("pdb/dump_syms/basic32-min.dll"));
    assert_ne!(other.id(), key.id());
    let server = always(Answer::File(fs::read(&packed).unwrap()));
    let lookup =
        store(&server.url(), options(tempdir().unwrap().path())).find(&other, &[], &check_real(&other));
    assert!(lookup.found.is_none());
    let outcome = lookup.attempts.last().unwrap().outcome.clone();
    assert_eq!(outcome, Outcome::WrongFile { found: key.index(), wanted: other.index() });
}
