//! Names for the addresses of one large PDB: cold (open, then each address once) and warm, beside `pdb-addr2line`.
//!
//! Needs the real data (`ETWPROF_TEST_DATA`); says so and measures nothing without it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use etwprof::mmap::Mapped;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;

fn addresses(truth: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(truth).unwrap();
    let rva = |line: &str| u32::from_str_radix(line.split_once('\t')?.0.trim_start_matches("0x"), 16).ok();
    text.lines().filter_map(rva).collect()
}

fn symbolize(criterion: &mut Criterion) {
    let Some(root) = std::env::var_os("ETWPROF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: ETWPROF_TEST_DATA is not set");
        return;
    };
    let folder = root.join("pdb/built-clang");
    let rvas = addresses(&folder.join("biginline.exe.truth.txt"));
    let mut group = criterion.benchmark_group("symbolize");
    group.sample_size(20);

    group.bench_function("cold, image and PDB", |bench| {
        bench.iter(|| {
            let image = Mapped::open(&folder.join("biginline.exe")).unwrap();
            let pdb = Mapped::open(&folder.join("biginline.pdb")).unwrap();
            let image = Image::parse(&image).unwrap();
            let mut symbols = NativeSymbols::open(Some(&image), Some(&pdb)).unwrap();
            rvas.iter().filter_map(|rva| black_box(symbols.lookup(*rva))).count()
        });
    });

    let pdb = Mapped::open(&folder.join("biginline.pdb")).unwrap();
    let mut symbols = NativeSymbols::open(None, Some(&pdb)).unwrap();
    group.bench_function("warm, PDB", |bench| {
        bench.iter(|| rvas.iter().filter_map(|rva| black_box(symbols.lookup(*rva))).count());
    });

    group.bench_function("cold, pdb-addr2line", |bench| {
        bench.iter(|| {
            let bytes = std::fs::read(folder.join("biginline.pdb")).unwrap();
            let pdb = pdb_addr2line::pdb::PDB::open(Cursor::new(bytes)).unwrap();
            let data = pdb_addr2line::ContextPdbData::try_from_pdb(pdb).unwrap();
            let context = data.make_context().unwrap();
            rvas.iter().filter_map(|rva| black_box(context.find_frames(*rva).unwrap())).count()
        });
    });
    group.finish();
}

criterion_group!(benches, symbolize);
criterion_main!(benches);
