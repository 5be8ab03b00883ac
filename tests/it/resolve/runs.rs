//! Runs after and beside one another: one cache for two, a kill at any moment, a cache filled for a machine without
//! a network, failures that are remembered.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::data;
use crate::support::resolve::{Bench, Module, Recording, Told, on_server};
use crate::support::store::{Answer, Server, files};

const IMAGES: [(&str, &str); 4] = [
    ("debugpy/attach_amd64.dll", "debugpy/attach_amd64.pdb"),
    ("debugpy/attach_x86.dll", "debugpy/attach_x86.pdb"),
    ("node-pty/conpty_console_list.node", "node-pty/conpty_console_list.pdb"),
    ("debugpy/inject_dll_amd64.exe", "debugpy/inject_dll_amd64.pdb"),
];

/// Path and contents.
type OnServer = Vec<(String, Vec<u8>)>;

/// A trace over all images, and what a server has of their PDBs.
fn several() -> (Bench, OnServer) {
    let root = data::file("pdb");
    let mut modules = Vec::new();
    let mut on_disk = Vec::new();
    for (number, (image, pdb)) in (1..).zip(IMAGES) {
        let real = root.join(image);
        let name = real.file_name().unwrap().to_str().unwrap();
        let module = Module::of(&real, &format!(r"C:\app\{name}"), number << 32);
        on_disk.push((on_server(&module.pdb_key()), fs::read(root.join(pdb)).unwrap()));
        modules.push(module);
    }
    let mut recording = Recording::of(&modules, Told::Pdb);
    for module in &modules {
        for rva in (0x1000..0x4000).step_by(0x10) {
            recording = recording.stack(8, &[module.at(rva)]);
        }
    }
    (Bench::new(recording), on_disk)
}

fn symbol_path(bench: &Bench, server: &Server) -> String {
    format!("srv*{}*{}", bench.path("cache").display(), server.url())
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_cache_that_was_filled_serves_without_a_network() {
    let (bench, pdbs) = several();
    let server = Server::with_files(pdbs);
    let path = symbol_path(&bench, &server);
    let direct = format!("srv*{}*{}", bench.path("other cache").display(), server.url());
    let with_network = bench.stacks(&["--symbols", &direct]);
    assert!(with_network.iter().any(|stack| stack.contains("attach_x86!std::exception::exception")));

    let before = bench.stacks(&["--symbols", &path, "--offline"]);
    assert_ne!(before, with_network);
    let listed = bench.symbols(&["--symbols", &path]);
    assert!(
        listed.iter().all(|module| module["verdict"] == "not_found"),
        "without --fetch no server is asked"
    );
    let fetched = bench.symbols(&["--symbols", &path, "--fetch"]);
    assert!(fetched.iter().all(|module| module["verdict"] == "resolved"), "{fetched:?}");
    drop(server);
    assert_eq!(bench.stacks(&["--symbols", &path, "--offline"]), with_network);
    assert_eq!(
        bench.stacks(&["--symbols", bench.path("cache").to_str().unwrap(), "--offline"]),
        with_network
    );
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn two_at_once_share_one_cache() {
    let (bench, pdbs) = several();
    let whole: BTreeSet<String> = pdbs.iter().map(|(path, _)| path[1..].to_owned()).collect();
    let answers: std::collections::HashMap<_, _> = pdbs.into_iter().collect();
    let server = Server::start(move |path, _| match answers.get(path) {
        Some(file) => Answer::Slow(file.clone(), Duration::from_millis(10)),
        None => Answer::Status(404, Vec::new()),
    });
    let path = symbol_path(&bench, &server);
    let start = || {
        let mut command = bench.command("convert", &["-f", "folded", "--symbols", &path]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let alone = bench.run("convert", &["-f", "folded", "--symbols", &path, "--offline"]);
    for output in outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, alone.stdout);
    }
    let cached: BTreeSet<String> = files(&bench.path("cache")).into_iter().collect();
    assert_eq!(cached, whole, "each PDB once, and nothing half-written");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_kill_at_any_moment_leaves_nothing_that_is_used() {
    let (bench, pdbs) = several();
    let sizes: std::collections::HashMap<_, _> =
        pdbs.iter().map(|(path, file)| (path[1..].to_owned(), file.len())).collect();
    let answers: std::collections::HashMap<_, _> = pdbs.into_iter().collect();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let server = Server::start(move |path, _| match answers.get(path) {
        Some(file) if slow.load(Ordering::Relaxed) => Answer::Slow(file.clone(), Duration::from_millis(20)),
        Some(file) => Answer::File(file.clone()),
        None => Answer::Status(404, Vec::new()),
    });
    let path = symbol_path(&bench, &server);
    for moment in (0..300).step_by(30) {
        let mut command = bench.command("convert", &["-f", "folded", "--symbols", &path]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        for file in files(&bench.path("cache")).iter().filter(|file| !file.starts_with(".etwprof/partial/")) {
            let size = fs::metadata(bench.path("cache").join(file)).unwrap().len();
            assert_eq!(Some(&(size as usize)), sizes.get(file), "{file} after {moment} ms");
        }
    }
    is_slow.store(false, Ordering::Relaxed);
    let symbols = bench.symbols(&["--symbols", &path, "--fetch"]);
    assert!(symbols.iter().all(|module| module["verdict"] == "resolved"), "{symbols:?}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn failures_are_remembered_and_asked_again_on_demand() {
    let (bench, pdbs) = several();
    let answers: std::collections::HashMap<_, _> = pdbs.into_iter().collect();
    let is_there = Arc::new(AtomicBool::new(false));
    let there = Arc::clone(&is_there);
    let server = Server::start(move |path, _| match answers.get(path) {
        Some(file) if there.load(Ordering::Relaxed) => Answer::File(file.clone()),
        _ => {
            thread::sleep(Duration::from_millis(50));
            Answer::Status(404, Vec::new())
        }
    });
    let path = symbol_path(&bench, &server);
    let unnamed = bench.stacks(&["--symbols", &path]);
    let first = server.asked().len();
    // A PDB and an image for each, plain, compressed and as a pointer.
    assert!(first >= 2 * IMAGES.len(), "{:?}", server.asked());

    is_there.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let again = bench.run("convert", &["-f", "folded", "--symbols", &path]);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(server.asked().len(), first, "no server was asked again");
    assert!(
        again.stderr.contains("not retried") && again.stderr.contains("--retry-failed"),
        "{}",
        again.stderr
    );
    assert_eq!(bench.stacks(&["--symbols", &path]), unnamed);

    let retried = bench.stacks(&["--symbols", &path, "--retry-failed"]);
    assert!(retried.iter().any(|stack| stack.contains("attach_x86!std::exception::exception")));
    assert_eq!(bench.stacks(&["--symbols", &path]), retried);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn files_are_asked_for_in_the_order_of_their_weight() {
    let root = data::file("pdb");
    let modules: Vec<Module> = (1..)
        .zip(IMAGES)
        .map(|(number, (image, _))| {
            Module::of(&root.join(image), &format!(r"C:\app\{number}.dll"), number << 32)
        })
        .collect();
    let mut recording = Recording::of(&modules, Told::Pdb);
    for (module, samples) in modules.iter().zip([2, 9, 4, 7]) {
        for _ in 0..samples {
            recording = recording.stack(8, &[module.at(0x1010)]);
        }
    }
    let bench = Bench::new(recording);
    let symbols = bench.symbols(&[]);
    let samples: Vec<_> = symbols.iter().map(|module| module["samples"].as_u64().unwrap()).collect();
    assert_eq!(samples, [9, 7, 4, 2]);
}
