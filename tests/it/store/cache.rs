//! The caches: filled on the way back, shared by processes, safe after a kill, and what failed is remembered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::{Checked, Lookup, Outcome, Place};
use etwprof::symbols::find::options::StoreOptions;
use tempfile::tempdir;

use crate::support::store::{
    Answer, Packing, Server, cabinet, check, check_real, files, options, pdb_key, store, symbol_file,
};
use crate::synth::Guid;
use crate::synth::pdb::Pdb;

const INDEX: &str = "ABABABABABABABABABABABABABABABAB2";

fn key() -> FileKey {
    pdb_key("foo.pdb", [0xAB; 16], 2)
}

fn good() -> Vec<u8> {
    symbol_file(INDEX, 300_000)
}

fn url_path(file: &str) -> String {
    format!("/foo.pdb/{INDEX}/{file}")
}

fn place(cache: &Path) -> PathBuf {
    cache.join("foo.pdb").join(INDEX).join("foo.pdb")
}

fn put(cache: &Path, bytes: &[u8]) {
    fs::create_dir_all(place(cache).parent().unwrap()).unwrap();
    fs::write(place(cache), bytes).unwrap();
}

fn find(path: &str, options: StoreOptions) -> Lookup {
    store(path, options).find(&key(), &[], &check(&key()))
}

fn only_good(cache: &Path) {
    assert_eq!(files(cache), [format!("foo.pdb/{INDEX}/foo.pdb")]);
    assert_eq!(fs::read(place(cache)).unwrap(), good());
}

#[test]
fn every_cache_in_front_is_filled() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let all = tempdir().unwrap();
    let [user, a, b, front] = ["user", "a", "b", "front"].map(|name| all.path().join(name));
    let path = format!("cache*{};srv*{}*{}*{}", front.display(), a.display(), b.display(), server.url());
    let lookup = find(&path, options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&front));
    for cache in [&front, &a, &b] {
        only_good(cache);
    }
    assert_eq!(files(&user), Vec::<String>::new());

    // Found in the last cache, it comes back into those before, and nobody is asked.
    for cache in [&front, &a] {
        fs::remove_dir_all(cache).unwrap();
    }
    let lookup = find(&path, options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&front));
    only_good(&a);
    assert_eq!(server.asked().len(), 1);
}

/// "Symbol Paths": a cache element is searched like any other symbol server.
#[test]
fn a_cache_alone_is_searched() {
    let all = tempdir().unwrap();
    let [user, cache] = ["user", "cache"].map(|name| all.path().join(name));
    put(&cache, &good());
    let lookup = find(&format!("cache*{}", cache.display()), options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&cache));
    put(&user, &good());
    assert_eq!(find("cache*", options(&user)).found.unwrap().path, place(&user));
    // In its place in the path, and once.
    let empty = all.path().join("empty");
    let path = format!("cache*{0};srv*{0};{0};{1}", empty.display(), cache.display());
    let lookup = find(&path, options(&user));
    let asked: Vec<_> = lookup.attempts.iter().map(|attempt| attempt.place.to_string()).collect();
    let loose = empty.join("foo.pdb");
    let expected = [place(&empty), loose, place(&cache)].map(|path| path.display().to_string());
    assert_eq!(asked, expected);
    assert_eq!(lookup.found.unwrap().path, place(&empty), "and then it is filled");
}

/// "Advanced SymSrv use": it stores any symbols loaded from any element to its right.
#[test]
fn a_cache_keeps_what_folders_to_its_right_have() {
    let pdb = Pdb::new(Guid([0xAB; 16]), 2, 0x1000, 0x2000).finish();
    let sorted = format!("foo.pdb/{INDEX}/foo.pdb");
    for inside in ["foo.pdb", "dll/foo.pdb", &sorted] {
        let all = tempdir().unwrap();
        let [user, cache, left, right] = ["user", "cache", "left", "right"].map(|name| all.path().join(name));
        for share in [&left, &right] {
            fs::create_dir_all(share.join(inside).parent().unwrap()).unwrap();
            fs::write(share.join(inside), &pdb).unwrap();
        }
        let find = |path: &str| store(path, options(&user)).find(&key(), &[], &check_real(&key()));
        let path = format!("cache*{};{}", cache.display(), right.display());
        let found = find(&path).found.unwrap();
        assert_eq!((found.path, found.from), (place(&cache), Place::Path(right.join(inside))));
        assert_eq!((files(&cache), fs::read(place(&cache)).unwrap()), (vec![sorted.clone()], pdb.clone()));
        // With the share gone, it is still here.
        fs::remove_dir_all(&right).unwrap();
        assert_eq!(find(&path).found.unwrap().path, place(&cache));
        // What stands to the left is used where it lies.
        let path = format!("{};cache*{}", left.display(), user.display());
        assert_eq!(find(&path).found.unwrap().path, left.join(inside));
        assert_eq!(files(&user), Vec::<String>::new());
    }
}

/// A file that serves for a key without being its file would be found there by others.
#[test]
fn nothing_is_kept_under_a_key_that_is_not_its_own() {
    let all = tempdir().unwrap();
    let [user, cache, share] = ["user", "cache", "share"].map(|name| all.path().join(name));
    fs::create_dir_all(&share).unwrap();
    let pdb = Pdb::new(Guid([0xAB; 16]), 2, 0x1000, 0x2000).finish();
    for name in ["foo.pdb", "foo.dll"] {
        fs::write(share.join(name), &pdb).unwrap();
    }
    let path = format!("cache*{};{}", cache.display(), share.display());
    let portable = FileKey::portable_pdb("foo.pdb", etwprof::guid::Guid::from_bytes(&[0xAB; 16]));
    for key in [portable, FileKey::image("foo.dll", 0, 0x1000), pdb_key("foo.pdb", [0xAB; 16], 1)] {
        let found = store(&path, options(&user)).find(&key, &[], &|_| Checked::Matches).found.unwrap();
        assert_eq!(found.path, share.join(key.name().unwrap()));
        assert_eq!(files(&cache), Vec::<String>::new(), "{key}");
    }
}

/// "Using SymSrv" wants a server last and ten stores at most; here neither matters.
#[test]
fn a_chain_of_many_stores_with_a_server_in_the_middle() {
    let server = Server::with_files([]);
    let all = tempdir().unwrap();
    let stores: Vec<_> = (0..12).map(|number| all.path().join(number.to_string())).collect();
    put(&stores[11], &good());
    let mut parts: Vec<_> = stores.iter().map(|store| store.display().to_string()).collect();
    parts.insert(6, server.url());
    let path = format!("srv*{}", parts.join("*"));
    let lookup = find(&path, options(&all.path().join("user")));
    assert_eq!(lookup.found.unwrap().path, place(&stores[0]));
    assert!(!server.asked().is_empty());
    stores.iter().for_each(|store| only_good(store));
}

#[test]
fn a_server_behind_a_cache_stores_each_file_once() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let all = tempdir().unwrap();
    let [user, cache] = ["user", "cache"].map(|name| all.path().join(name));
    for path in [
        format!("cache*{};srv*{}", cache.display(), server.url()),
        format!("cache*{0};srv*{0}*{1}", cache.display(), server.url()),
        format!("{}*{}", cache.display(), server.url()),
    ] {
        let lookup = find(&path, options(&user));
        assert_eq!(lookup.found.unwrap().path, place(&cache), "{path}");
        only_good(&cache);
        assert_eq!(files(&user), Vec::<String>::new(), "{path}");
        fs::remove_dir_all(&cache).unwrap();
    }
}

/// `srv*C:\cache*URL` on a system without drives: what was fetched is found by the next run.
#[cfg(not(windows))]
#[test]
fn the_users_cache_stands_in_for_one_that_only_windows_has() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let user = tempdir().unwrap();
    let path = format!(r"srv*C:\cache*{}", server.url());
    for _ in 0..2 {
        let lookup = find(&path, options(user.path()));
        assert_eq!(lookup.found.unwrap().path, place(user.path()));
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn what_a_server_does_not_have_is_its_answer() {
    let server = Server::with_files([]);
    let all = tempdir().unwrap();
    let path = format!("{0};srv*{0}*{1}", all.path().join("cache").display(), server.url());
    let lookup = find(&path, options(all.path()));
    let reason = lookup.reason().unwrap();
    assert_eq!(reason.to_string(), format!("{}{}: not there", server.url(), url_path("foo.pdb")));
}

#[test]
fn a_store_that_is_copied_and_one_that_is_compressed() {
    let all = tempdir().unwrap();
    let [user, cache, origin] = ["user", "cache", "origin"].map(|name| all.path().join(name));
    put(&origin, &good());
    let path = format!("srv*{}*{}", cache.display(), origin.display());
    assert_eq!(find(&path, options(&user)).found.unwrap().path, place(&cache));
    only_good(&cache);
    // Alone, a store is used where it lies.
    let lookup = find(&format!("srv*{}", origin.display()), options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&origin));

    fs::remove_file(place(&origin)).unwrap();
    let packed = cabinet(&[("foo.pdb", &good())], Packing::MsZip);
    fs::write(place(&origin).with_file_name("foo.pd_"), packed).unwrap();
    fs::remove_dir_all(&cache).unwrap();
    assert_eq!(find(&path, options(&user)).found.unwrap().path, place(&cache));
    only_good(&cache);
    // Alone, it goes by way of the user's cache: a store that one only reads is not written to.
    let lookup = find(&format!("srv*{}", origin.display()), options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&user));
    assert_eq!(files(&origin), [format!("foo.pdb/{INDEX}/foo.pd_")]);
}

#[test]
fn a_wrong_or_damaged_file_in_the_cache_is_named_and_replaced() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let cache = tempdir().unwrap();
    let other = symbol_file("1234", 5000);
    for bad in [other.as_slice(), &good()[..10_000], b""] {
        put(cache.path(), bad);
        let lookup = find(&server.url(), options(cache.path()));
        assert_eq!(lookup.found.as_ref().unwrap().path, place(cache.path()));
        let first = &lookup.attempts[0].outcome;
        assert!(matches!(first, Outcome::WrongFile { .. } | Outcome::Unreadable(_)), "{first:?}");
        only_good(cache.path());
    }
    // Offline it is named and not used.
    put(cache.path(), &other);
    let lookup = find(&server.url(), StoreOptions { offline: true, ..options(cache.path()) });
    assert_eq!(lookup.found, None);
    assert!(matches!(lookup.attempts[0].outcome, Outcome::WrongFile { .. }));
    assert_eq!(lookup.attempts[1].outcome, Outcome::Offline);
}

#[test]
fn offline_asks_no_server_and_uses_the_cache() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let cache = tempdir().unwrap();
    let offline = || StoreOptions { offline: true, ..options(cache.path()) };
    assert_eq!(find(&server.url(), offline()).attempts.last().unwrap().outcome, Outcome::Offline);
    assert!(find(&server.url(), options(cache.path())).found.is_some());
    assert!(find(&server.url(), offline()).found.is_some());
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn failures_are_remembered_for_a_while() {
    let cache = tempdir().unwrap();
    let server = Server::with_files([]);
    assert_eq!(
        find(&server.url(), options(cache.path())).attempts.last().unwrap().outcome,
        Outcome::NotThere
    );
    let asked = server.asked().len();
    let again = find(&server.url(), options(cache.path()));
    let outcome = &again.attempts.last().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Remembered { cause, .. } if cause == "not there"), "{outcome:?}");
    assert!(outcome.to_string().contains("not retried"), "{outcome}");
    assert_eq!(server.asked().len(), asked);
    // Of another server, and of another file, nothing is known.
    let other = Server::with_files([(url_path("foo.pdb"), good())]);
    let both = format!("{};{}", server.url(), other.url());
    let lookup = find(&both, options(cache.path()));
    assert!(lookup.found.is_some());
    assert_eq!(server.asked().len(), asked);
    fs::remove_dir_all(cache.path().join("foo.pdb")).unwrap();
    // Asked for all the same.
    find(&server.url(), StoreOptions { retry_failed: true, ..options(cache.path()) });
    assert!(server.asked().len() > asked);
}

#[test]
fn what_is_remembered_expires_and_a_success_forgets() {
    let cache = tempdir().unwrap();
    let server = Server::start(|path, before| match (path.ends_with("foo.pdb"), before) {
        (true, 1..) => Answer::File(good()),
        _ => Answer::Status(404, vec![]),
    });
    let brief = || StoreOptions { remember_missing: Duration::from_secs(1), ..options(cache.path()) };
    assert!(find(&server.url(), brief()).found.is_none());
    assert!(find(&server.url(), brief()).found.is_none());
    thread::sleep(Duration::from_millis(2100));
    assert!(find(&server.url(), brief()).found.is_some());
    fs::remove_dir_all(cache.path().join("foo.pdb")).unwrap();
    assert!(find(&server.url(), options(cache.path())).found.is_some());
}

#[test]
fn a_clock_set_back_and_a_damaged_memory_ask_again() {
    let cache = tempdir().unwrap();
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let memory = cache.path().join(".etwprof/failed/foo.pdb").join(INDEX);
    fs::create_dir_all(memory.parent().unwrap()).unwrap();
    let future = format!("99999999999\t999999999999\t{}\tnot there\n", server.url());
    for text in [future.as_str(), "x\ty\n\n\t\t\t\n", "1", "\u{0}\u{fffd}"] {
        fs::write(&memory, text).unwrap();
        assert!(find(&server.url(), options(cache.path())).found.is_some(), "{text:?}");
        fs::remove_dir_all(cache.path().join("foo.pdb")).unwrap();
    }
    fs::write(&memory, [0xFF; 10]).unwrap();
    assert!(find(&server.url(), options(cache.path())).found.is_some());
}

#[test]
fn trouble_is_remembered_briefly_and_unreachable_not_at_all() {
    let cache = tempdir().unwrap();
    let server = Server::start(|_, _| Answer::Status(500, vec![]));
    let options = || StoreOptions { tries: 1, ..options(cache.path()) };
    find(&server.url(), options());
    let outcome = find(&server.url(), options()).attempts.last().unwrap().outcome.clone();
    assert!(matches!(&outcome, Outcome::Remembered { cause, .. } if cause.contains("500")), "{outcome:?}");
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for _ in 0..2 {
        let lookup = find(&format!("http://{address}"), options());
        let outcome = &lookup.attempts.last().unwrap().outcome;
        assert!(matches!(outcome, Outcome::Unreachable(_)), "{outcome:?}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_passed_over() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let all = tempdir().unwrap();
    let [user, no_folder] = ["user", "file"].map(|name| all.path().join(name));
    fs::write(&no_folder, "a file, where a folder should be").unwrap();
    // The user's own cache steps in.
    let path = format!("srv*{}*{}", no_folder.display(), server.url());
    assert_eq!(find(&path, options(&user)).found.unwrap().path, place(&user));
    // A cache in front fails: the file is used from the one behind.
    let second = all.path().join("second");
    let path = format!("srv*{}*{}*{}", no_folder.display(), second.display(), server.url());
    let lookup = find(&path, options(&user));
    assert_eq!(lookup.found.unwrap().path, place(&second));
    assert!(lookup.attempts.iter().any(|a| matches!(a.outcome, Outcome::NotStored(_))));
    // None at all: said, and nothing is fetched in vain.
    let before = server.asked().len();
    let lookup = find(&format!("srv*{}*{}", no_folder.display(), server.url()), options(&no_folder));
    assert!(matches!(lookup.attempts.last().unwrap().outcome, Outcome::NotStored(_)));
    let nowhere = StoreOptions { user_cache: None, ..options(&user) };
    assert!(matches!(find(&server.url(), nowhere).attempts.last().unwrap().outcome, Outcome::NotStored(_)));
    assert_eq!(server.asked().len(), before);
}

// ---- other processes: this same test program, told by its environment to look for the file once

const CHILD: &str = "ETWPROF_STORE_TEST_CHILD";

/// Not a test by itself: the part of the other process.
#[test]
fn other_process() {
    let Ok(job) = std::env::var(CHILD) else { return };
    let [path, cache, answer] = job.split('\n').collect::<Vec<_>>()[..] else { panic!("{job}") };
    let lookup = find(path, options(Path::new(cache)));
    let text = match lookup.found {
        Some(found) => format!("found {}", found.path.display()),
        None => lookup.attempts.last().unwrap().to_string(),
    };
    fs::write(answer, text).unwrap();
}

fn start_other(mut command: Command, path: &str, cache: &Path, answer: &Path) -> Child {
    command
        .env(CHILD, format!("{path}\n{}\n{}", cache.display(), answer.display()))
        .args(["--exact", "store::cache::other_process"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

#[test]
fn processes_and_threads_share_one_cache() {
    // Slow, so that all of them are in the middle at the same time.
    let server = Server::start(|_, _| Answer::Slow(good(), Duration::from_millis(150)));
    let all = tempdir().unwrap();
    let cache = all.path().join("cache");
    let together = Barrier::new(3);
    let answers: Vec<_> = (0..3).map(|i| all.path().join(format!("answer{i}"))).collect();
    let children: Vec<_> =
        answers.iter().map(|answer| start_other(this_program(), &server.url(), &cache, answer)).collect();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                together.wait();
                let lookup = find(&server.url(), options(&cache));
                assert!(lookup.found.is_some(), "{:?}", lookup.attempts);
            });
        }
    });
    for (mut child, answer) in children.into_iter().zip(&answers) {
        assert!(child.wait().unwrap().success());
        assert_eq!(fs::read_to_string(answer).unwrap(), format!("found {}", place(&cache).display()));
    }
    assert!(server.asked().len() > 1);
    only_good(&cache);
}

#[test]
fn a_kill_in_the_middle_leaves_nothing_that_is_used() {
    let half = [b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", &good()[..200_000]].concat();
    let server = Server::start(move |_, before| match before {
        0 => Answer::RawThenSilence(half.clone()),
        _ => Answer::File(good()),
    });
    let all = tempdir().unwrap();
    let cache = all.path().join("cache");
    let mut child = start_other(this_program(), &server.url(), &cache, &all.path().join("answer"));
    let started = Instant::now();
    let half_written = loop {
        if let [file] = files(&cache).as_slice()
            && fs::metadata(cache.join(file)).unwrap().len() == 200_000
        {
            break file.clone();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", files(&cache));
        thread::sleep(Duration::from_millis(5));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(half_written.starts_with(".etwprof/partial/"), "{half_written}");

    // The next run takes no notice of it, and as it might still be at work, leaves it.
    assert!(find(&server.url(), options(&cache)).found.is_some());
    assert!(files(&cache).contains(&half_written));
    // Once it has not been written to for long enough, it goes.
    fs::remove_dir_all(cache.join("foo.pdb")).unwrap();
    let later = StoreOptions { stale_after: Duration::ZERO, ..options(&cache) };
    assert!(find(&server.url(), later).found.is_some());
    only_good(&cache);
}

/// A limit on the size of files stands for a full disk: a write fails in the middle.
#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_and_leaves_nothing() {
    let server = Server::with_files([(url_path("foo.pdb"), good())]);
    let all = tempdir().unwrap();
    let (cache, answer) = (all.path().join("cache"), all.path().join("answer"));
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap());
    let mut child = start_other(limited, &server.url(), &cache, &answer);
    assert!(child.wait().unwrap().success());
    let answer = fs::read_to_string(answer).unwrap();
    assert!(answer.contains("cannot be stored"), "{answer}");
    assert_eq!(files(&cache), Vec::<String>::new());
    // With room again it works at once: a full disk here says nothing about the server.
    assert!(find(&server.url(), options(&cache)).found.is_some());
}
