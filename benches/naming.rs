//! How long it takes to name 100,000 distinct addresses over 50 modules: `scripts/bench-naming` runs this.
//!
//! The modules are those of the real data (`ETWPROF_TEST_DATA`) whose addresses are known, and generated ones of 400
//! functions with lines and inlined calls each. Everything is named once before, so that the files are in the system's
//! cache, and then in turns by one thread and by as many as there are processors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

#[path = "../tests/it/synth/mod.rs"]
mod synth;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use etwprof::analysis;
use etwprof::etl::Recording;
use etwprof::profile::{Filter, Limit, Located};
use etwprof::symbols::read::pdb;
use etwprof::symbols::resolver::{self, resolve};
use etwprof::symbols::{Hit, Limits, Store, StoreOptions, SymbolPath, Wanted};
use etwprof::trace::Trace;
use synth::image_id::dbg_id_rsds;
use synth::pdb::{CODE_RVA, Compiland, Function, Inlined, Pdb};
use synth::{Etl, Guid, Image, Process, START, Sample, Thread, guid, stack_walk};

const MODULES: usize = 50;
const ADDRESSES: usize = 100_000;
const ROUNDS: usize = 5;
const PID: u32 = 100;
const SIZE: u64 = 0x1000_0000;
const FRAMES: usize = 24;

/// A PDB, and addresses to ask it for.
struct Module {
    pdb: PathBuf,
    id: (Guid, u32),
    rvas: Vec<u32>,
}

fn base(module: usize) -> u64 {
    0x1_0000_0000 + module as u64 * SIZE
}

/// What the real data knows: each address, and bytes behind it until there are enough.
fn real() -> Vec<Module> {
    let Some(root) = std::env::var_os("ETWPROF_TEST_DATA").map(PathBuf::from) else { return Vec::new() };
    let mut truths = Vec::new();
    let mut folders = vec![root.join("pdb")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".truth.txt") {
                truths.push(path);
            }
        }
    }
    truths.sort();
    truths.iter().filter_map(|truth| known(truth)).collect()
}

fn known(truth: &Path) -> Option<Module> {
    let image = truth.with_extension("").with_extension("");
    let beside = PathBuf::from(format!("{}.pdb", image.display()));
    let pdb = [image.with_extension("pdb"), beside].into_iter().find(|pdb| pdb.is_file())?;
    let text = std::fs::read_to_string(truth).unwrap_or_else(|_| String::new());
    let rva = |line: &str| u32::from_str_radix(line.split_once('\t')?.0.trim_start_matches("0x"), 16).ok();
    let known: Vec<u32> = text.lines().filter_map(rva).collect();
    let mut rvas = BTreeSet::new();
    for step in 0.. {
        rvas.extend(known.iter().map(|rva| rva + step).take(ADDRESSES / MODULES - rvas.len()));
        if rvas.len() >= ADDRESSES / MODULES || known.is_empty() {
            break;
        }
    }
    let id = pdb::id(&std::fs::read(&pdb).ok()?).ok()?;
    let id = (guid(&id.guid.to_string()), id.age);
    Some(Module { pdb, id, rvas: rvas.into_iter().collect() })
}

/// A program of 8 object files with 50 functions each.
fn generated(number: usize, folder: &Path) -> Module {
    const STRIDE: u32 = 0x100;
    const OBJECTS: u32 = 8;
    const CODE: u32 = 50 * OBJECTS * STRIDE;
    let id = guid(&format!("{number:08x}-0000-4000-8000-000000000000"));
    let mut pdb = Pdb::new(id, 1, CODE, CODE_RVA + CODE);
    for object in 0..OBJECTS {
        let file = format!(r"C:\src\engine{number}\part_{object}.cpp");
        let function = |index: u32| {
            let rva = CODE_RVA + STRIDE * (object * 50 + index);
            let call = |at: u32| Inlined {
                function: format!("engine{number}::detail::helper_{}", (index * 7 + at) % 64),
                file: format!(r"C:\src\engine{number}\helpers.h"),
                line: 10 + index,
                start: at,
                end: at + 32,
                lines: vec![(at, 11 + index), (at + 8, 12 + index)],
                inlined: Vec::new(),
            };
            Function {
                rva,
                size: 200,
                name: format!("engine{number}::part_{object}::Component<{index}>::operation_{index}"),
                file: file.clone(),
                lines: (0..24).map(|line| (line * 8, 100 * index + line)).collect(),
                inlined: vec![call(16), call(80)],
            }
        };
        let functions: Vec<Function> = (0..50).map(function).collect();
        for function in &functions {
            pdb = pdb.public(function.rva, function.size, &format!("?f{:x}@engine@@YAXXZ", function.rva));
        }
        pdb = pdb.compiland(Compiland { object: format!(r"C:\obj\part_{object}.obj"), functions });
    }
    let path = folder.join(format!("engine{number}.pdb"));
    std::fs::write(&path, pdb.finish()).unwrap();
    let spread =
        |index: u32| CODE_RVA + STRIDE * (index % (50 * OBJECTS)) + 7 + 39 * (index / (50 * OBJECTS));
    let rvas: BTreeSet<u32> = (0..).map(spread).take(ADDRESSES / MODULES).collect();
    Module { pdb: path, id: (id, 1), rvas: rvas.into_iter().collect() }
}

/// A recording whose samples hit every address of the modules.
fn trace(modules: &[Module]) -> Trace {
    let mut etl = Etl::new().event(0, START, Process::dc_start(PID, "named.exe")).event(
        0,
        START,
        Thread::dc_start(PID, PID + 4),
    );
    for (number, module) in modules.iter().enumerate() {
        let path = module.pdb.to_string_lossy();
        let name = format!(r"C:\named\module{number}.dll");
        etl = etl.event(0, START, dbg_id_rsds(PID, base(number), module.id.0, module.id.1, &path)).event(
            0,
            START,
            Image::dc_start(PID, base(number), SIZE, &name),
        );
    }
    let frames = |(number, module): (usize, &Module)| -> Vec<u64> {
        // What is looked up of a return address is the byte before it.
        module.rvas.iter().map(|rva| base(number) + u64::from(*rva) + 1).collect()
    };
    let frames: Vec<u64> = modules.iter().enumerate().flat_map(frames).collect();
    for (number, stack) in frames.chunks(FRAMES - 1).enumerate() {
        let stack = [&[base(0) + 0xFFF_0000], stack].concat();
        let time = START + 1000 * (1 + number as i64);
        etl = etl.event(0, time, Sample::new(stack[0], PID + 4)).event(
            0,
            time + 20,
            stack_walk::full(time, PID, PID + 4, &stack),
        );
    }
    let recording = Recording::from_bytes("named.etl", etl.finish()).unwrap();
    analysis::trace(&recording, &mut |_| {}).value
}

/// Names all that is wanted. Gives the time and how many addresses got a name.
fn named(trace: &Trace, wanted: &Wanted, jobs: Option<NonZeroUsize>) -> (Duration, usize) {
    let store = Store::new(&SymbolPath::default(), StoreOptions { offline: true, ..StoreOptions::default() });
    let options = resolver::Options { min_share: 0.0, lines: false, limits: Limits::default(), jobs };
    let start = Instant::now();
    let symbols = resolve(trace, wanted, &store, &options, &|_, _| ());
    (start.elapsed(), symbols.modules.iter().map(|module| module.named).sum())
}

fn main() {
    let folder = std::env::temp_dir().join(format!("etwprof-naming-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut modules = real();
    let of_real_data = modules.len();
    modules.extend((of_real_data..MODULES).map(|number| generated(number, &folder)));
    let trace = trace(&modules);
    let wanted = Located::new(&trace, &Filter::default(), Limit::NONE).wanted(&trace, false);
    let addresses: usize = wanted.hits.iter().map(|hit| hit.rvas.len()).sum();
    println!("{addresses} addresses, {MODULES} modules, {of_real_data} of them of the real data");

    let one = NonZeroUsize::MIN;
    let all = std::thread::available_parallelism().unwrap_or(one);
    let _warm = named(&trace, &wanted, Some(all));
    let mut best = [(Duration::MAX, 0); 2];
    for _ in 0..ROUNDS {
        for (best, jobs) in best.iter_mut().zip([one, all]) {
            *best = named(&trace, &wanted, Some(jobs)).min(*best);
        }
    }
    println!("{:>7} {:>9} {:>9} {:>14}", "threads", "ms", "named", "times all's");
    for ((time, named), jobs) in best.into_iter().zip([one, all]) {
        let ratio = time.as_secs_f64() / best[1].0.as_secs_f64();
        println!("{jobs:>7} {:>9.1} {named:>9} {ratio:>14.2}", time.as_secs_f64() * 1000.0);
    }

    println!("\nthe slowest modules by themselves, one thread");
    let mut slowest: Vec<((Duration, usize), &Hit)> = Vec::new();
    for hit in &wanted.hits {
        let alone = Wanted { samples: wanted.samples, hits: vec![hit.clone()], ..Wanted::default() };
        slowest.push((named(&trace, &alone, Some(one)), hit));
    }
    slowest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for ((time, named), hit) in slowest.iter().take(5) {
        let pdb = trace.module(hit.module).and_then(|module| module.pdb.as_ref());
        let name = pdb.and_then(|pdb| pdb.name.rsplit('/').next()).unwrap_or("?");
        let of = hit.rvas.len();
        println!("{name:>40} {:>9.1} ms {named:>6} of {of} named", time.as_secs_f64() * 1000.0);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
