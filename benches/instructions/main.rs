//! Each step from a recording to a picture, once, for `scripts/check-instructions` to count its instructions.
//!
//!     instructions inputs FOLDER    writes the recordings that are read, and prints their digest
//!     instructions count FOLDER     runs each case once, and prints its name
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

#[path = "../../tests/it/synth/mod.rs"]
mod synth;

use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etwprof::analysis;
use etwprof::etl::{Recording, xpress};
use etwprof::event::Event;
use etwprof::events::decode;
use etwprof::mmap::Mapped;
use etwprof::profile::{Detail, Filter, Grouping, Profile, Shape};
use etwprof::report::{Spelling, flamegraph};
use etwprof::symbols::Unnamed;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::trace::Trace;
use synth::believable::{Options, generate, shapes};

/// Quiet, busy with stacks of waits, and .NET: compressed, with stack keys and methods that come and go.
fn recordings() -> [(&'static str, Options); 3] {
    let small = |shape| Options {
        processes: 20,
        threads: Some(120),
        stacks: 2_000,
        methods: 300,
        buffer_size: 64 << 10,
        ..Options::like(shape, 6_000_000, 1)
    };
    let desktop = small(shapes::DESKTOP);
    let busy =
        Options { idle: 0.1, switches: 0.5, ready: true, wait_stacks: true, starts: 5.0, ..desktop.clone() };
    let dotnet = Options { size: 900_000, idle: 0.5, churn: 200.0, ..small(shapes::DOTNET) };
    [("quiet", desktop), ("busy", busy), ("dotnet", dotnet)]
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.etl"))
}

fn write_inputs(folder: &Path) {
    let mut digest = 0xCBF2_9CE4_8422_2325_u64; // FNV-1a
    for (name, options) in recordings() {
        let file = file(folder, name);
        generate(&options, fs::File::create(&file).unwrap()).unwrap();
        for byte in fs::read(&file).unwrap() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    println!("{digest:016x}");
}

/// Callgrind counts while this runs, and writes its counts when this ends.
#[inline(never)]
fn count_instructions_of(case: &mut dyn FnMut()) {
    case();
}

/// Runs one case, and prints its name: counts come in the same order.
fn case<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let (mut run, mut result) = (Some(run), None);
    count_instructions_of(&mut || result = run.take().map(|run| black_box(run())));
    println!("{name}");
    result.expect("it ran")
}

fn decode_one(decoded: &mut u64, event: &Event<'_>) {
    *decoded += u64::from(black_box(decode(event)).is_ok());
}

fn count(folder: &Path) {
    for (name, _) in recordings() {
        let recording = Recording::open(&[file(folder, name)]).unwrap();
        case(&format!("{name}: merge"), || {
            recording.fold(NonZeroUsize::MIN, &mut |_| (), || 0_u64, |events, _| *events += 1).value
        });
        case(&format!("{name}: decode"), || {
            recording.fold(NonZeroUsize::MIN, &mut |_| (), || 0, decode_one).value
        });
        let trace = case(&format!("{name}: trace"), || {
            analysis::trace_with(&recording, Some(NonZeroUsize::MIN), &mut |_| (), |_| ()).value
        });
        report(name, &Arc::new(trace));
    }
    decompress(folder);
    symbols();
}

fn report(name: &str, trace: &Arc<Trace>) {
    let profile = case(&format!("{name}: profile"), || Profile::new(trace, &Filter::default(), &Unnamed));
    let detail = Detail::default();
    let shape = Shape { grouping: Grouping::Thread, detail, ..Shape::default() };
    let arranged = case(&format!("{name}: tree"), || profile.arrange(&shape));
    let spelling = Spelling::new(&profile, detail);
    case(&format!("{name}: svg"), || {
        let mut svg = Vec::new();
        flamegraph::write(&mut svg, &arranged, &spelling, &flamegraph::Options::default()).unwrap();
        svg.len()
    });
}

fn decompress(folder: &Path) {
    let plain = fs::read(file(folder, "busy")).unwrap();
    let plain = &plain[..2 << 20];
    let packed: Vec<Vec<u8>> = plain.chunks(64 << 10).map(synth::xpress::compress_quickly).collect();
    case("xpress: 2 MiB", || {
        let mut out = Vec::new();
        for (packed, plain) in packed.iter().zip(plain.chunks(64 << 10)) {
            out.clear();
            xpress::decompress(packed, plain.len(), &mut out).unwrap();
        }
        out.len()
    });
}

/// The PDBs of `examples/demo.etl`.
fn symbols() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/symbols");
    let mut pdbs: Vec<PathBuf> =
        files(&root).into_iter().filter(|path| path.extension().is_some_and(|e| e == "pdb")).collect();
    pdbs.sort();
    let mapped: Vec<Mapped> = pdbs.iter().map(|path| Mapped::open(path).unwrap()).collect();
    let mut opened: Vec<NativeSymbols<'_>> = case("pdb: open", || {
        mapped.iter().map(|pdb| NativeSymbols::open(None, Some(pdb)).unwrap()).collect()
    });
    case("pdb: look-ups", || {
        let look_up = |symbols: &mut NativeSymbols<'_>| {
            (0..2_000).filter(|index| black_box(symbols.lookup(0x1000 + index * 0x20)).is_some()).count()
        };
        opened.iter_mut().map(look_up).sum::<usize>()
    });
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["inputs", folder] => write_inputs(Path::new(folder)),
        ["count", folder] => count(Path::new(folder)),
        _ => panic!("instructions inputs FOLDER | instructions count FOLDER"),
    }
}
