//! The demo: `examples/demo.etl` and its symbols beside it, three seconds of a small machine that never was.
//!
//! A 64-bit Windows 11 with four processors runs `orders.exe`, an order service in C++ and .NET, and
//! `indexer.exe`, which walks folders and starts `hasher.exe`. It is sampled at 1 kHz. Everything in the file is
//! made by [`synth`](crate::synth) from the tables here, with a fixed seed: the same bytes each time.
//!
//! - [`machine`]: the modules, processes and threads;
//! - [`managed`]: the methods of the order service, and when each was compiled;
//! - [`stories`] and `stories.txt`: what each thread does, as call paths with weights;
//! - [`code`]: functions and methods to addresses;
//! - [`rundown`]: the records at the session's begin and end and those of processes that come and go;
//! - [`recording`]: the scheduler and the sampler;
//! - [`symbols`] and `sources.txt`: the PDBs of its native modules, `examples/symbols`;
//! - [`random`]: the seeded numbers.

mod code;
mod machine;
mod managed;
mod random;

mod rebuilt;
mod recording;
mod rundown;
mod stories;
mod symbols;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command;
use crate::support::store::{Server, files};
use crate::synth::pdb::Function;
use machine::Machine;

/// What an `.etl` of this size must stay below, to be no burden in the repository.
const SIZE_LIMIT: usize = 300_000;

/// The same for the symbols, which are as many bytes again.
const SYMBOLS_LIMIT: usize = 300_000;

#[test]
fn the_demo_trace_is_what_its_generator_makes() {
    let made = recording::record(Machine::FIRST);
    assert!(made.len() < SIZE_LIMIT, "{} bytes are too many for a demo", made.len());
    compare(&folder().join("demo.etl"), &made);
}

#[test]
fn the_symbols_are_what_their_generator_makes() {
    let (store, folder) = (symbols::store(Machine::FIRST), folder().join("symbols"));
    let size: usize = store.values().map(Vec::len).sum();
    assert!(size < SYMBOLS_LIMIT, "{size} bytes are too many for a demo");
    if is_blessing() {
        let _none = fs::remove_dir_all(&folder);
    }
    for (path, made) in &store {
        compare(&folder.join(path), made);
    }
    assert!(files(&folder).iter().eq(store.keys()), "there are other files");
}

/// An independent reader finds the functions, inlined calls and lines that the files are made of.
#[test]
fn pdb_addr2line_reads_the_symbols() {
    let (mut publics, mut functions, mut inlined) = (0, 0, 0);
    for (path, made) in symbols::pdbs(Machine::FIRST) {
        let pdb = pdb_addr2line::pdb::PDB::open(std::io::Cursor::new(made.finish())).unwrap();
        let data = pdb_addr2line::ContextPdbData::try_from_pdb(pdb).unwrap();
        use pdb_addr2line::TypeFormatterFlags as Flags;
        let flags = Flags::NO_FUNCTION_RETURN | Flags::NO_ARGUMENTS;
        let context = data.make_context_with_formatter_flags(flags).unwrap();
        let frames = |rva| {
            let found =
                context.find_frames(rva).unwrap().unwrap_or_else(|| panic!("{path}: nothing at {rva:#x}"));
            let name = |name: Option<String>| name.unwrap_or_default();
            found
                .frames
                .into_iter()
                .map(|frame| (name(frame.function), frame.file.map(|f| f.to_string()), frame.line))
                .collect::<Vec<_>>()
        };
        for compiland in &made.compilands {
            for function in &compiland.functions {
                functions += 1;
                for offset in (0..function.size).step_by(5) {
                    let expected = at(function, offset);
                    inlined += expected.len() - 1;
                    assert_eq!(
                        frames(function.rva + offset),
                        expected,
                        "{path}: {} + {offset:#x}",
                        function.name
                    );
                }
            }
        }
        if made.compilands.is_empty() {
            for public in &made.publics {
                publics += 1;
                for rva in [public.rva, public.rva + public.size - 1] {
                    assert_eq!(frames(rva), [(public.name.clone(), None, None)], "{path}: {rva:#x}");
                }
            }
        }
    }
    assert_eq!((publics, functions), (256, 37));
    assert!(inlined > 1_000, "{inlined}");
}

/// The first picture of a newcomer: every frame has a name, and nothing leaves the machine.
#[test]
fn every_frame_has_a_name_and_no_server_is_asked() {
    let server = Server::with_files([]);
    let cache = tempfile::tempdir().unwrap();
    let mut convert = command::command();
    convert.env("_NT_SYMBOL_PATH", format!("srv*{}*{}", cache.path().display(), server.url()));
    let output =
        command::output(convert.arg("convert").arg(folder().join("demo.etl")).args(["-f", "folded"]));
    let output = output.success();
    assert_eq!(server.asked(), Vec::<String>::new());
    assert!(!output.stderr.contains(&server.url()), "{}", output.stderr);
    for line in output.text().lines() {
        let (frames, _count) = line.rsplit_once(' ').unwrap();
        assert!(!frames.contains("!0x") && !frames.contains('~') && !frames.contains('?'), "{line}");
    }
}

/// The frames at a byte of a function, innermost first: name, file, line.
fn at(function: &Function, offset: u32) -> Vec<(String, Option<String>, Option<u32>)> {
    let line = |lines: &[(u32, u32)]| lines.iter().rfind(|(from, _)| *from <= offset).map(|(_, line)| *line);
    let mut frames = vec![(function.name.clone(), Some(function.file.clone()), line(&function.lines))];
    let mut calls = &function.inlined;
    while let Some(call) = calls.iter().find(|call| (call.start..call.end).contains(&offset)) {
        frames.insert(0, (call.function.clone(), Some(call.file.clone()), line(&call.lines)));
        calls = &call.inlined;
    }
    frames
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn is_blessing() -> bool {
    std::env::var_os("ETWPROF_BLESS").is_some_and(|value| value == "1")
}

fn compare(path: &Path, made: &[u8]) {
    if is_blessing() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
    }
    let kept = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let same = made.iter().zip(&kept).take_while(|(a, b)| a == b).count();
    assert!(
        made == kept,
        "{} differs from what its generator makes, from byte {same} of {} on; \
         ETWPROF_BLESS=1 writes it anew",
        path.display(),
        kept.len(),
    );
}
