//! Our answers beside llvm-symbolizer's: for each image with a `*.truth.txt`, address by address.
//!
//! A line of such a file is an RVA and LLVM's frames, innermost first, `<-` outwards, each `function @ file:line`.
//! Both sides spell names differently, so both are levelled before they are compared: keywords, parameters, return
//! types, spaces. LLVM is evidence and no more: the classes in which it differs are listed in docs/symbols.md.

use std::collections::HashSet;
use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::find::beside;
use etwprof::symbols::read::location::Location;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;

use crate::support::data;
use crate::support::native::{Symbols, level};

const IMAGES: [&str; 11] = [
    "built-clang/biginline.exe",
    "debugpy/attach_amd64.dll",
    "debugpy/attach_x86.dll",
    "debugpy/inject_dll_amd64.exe",
    "debugpy/inject_dll_x86.exe",
    "dump_syms/dump_syms_regtest64.exe",
    "node-pty/conpty_console_list.node",
    "node-pty/arm64/conpty_console_list.node",
    "samply/softokn3.dll",
    "symbolic/windows/CrashWithException.exe",
    "syzygy/test_dll_iltcg.dll",
];

struct Frame<'a> {
    function: &'a str,
    line: Option<u32>,
}

struct Truth<'a> {
    rva: u32,
    frames: Vec<Frame<'a>>,
}

fn parse(text: &str) -> Vec<Truth<'_>> {
    let frame = |text| {
        let (function, source): (&str, &str) = str::rsplit_once(text, " @ ").unwrap_or((text, ""));
        let line = source.rsplit_once(':').and_then(|(_, line)| line.parse().ok()).filter(|line| *line != 0);
        Frame { function, line }
    };
    text.lines()
        .map(|line| {
            let (rva, frames) = line.split_once('\t').expect("an RVA and frames");
            let rva = u32::from_str_radix(rva.trim_start_matches("0x"), 16).expect("a hexadecimal RVA");
            let frames = frames.split(" <- ").filter(|frame| !frame.is_empty()).map(frame).collect();
            Truth { rva, frames }
        })
        .collect()
}

/// The innermost frames' lines by way of the `pdb-addr2line` crate.
struct Other<'a, 's>(pdb_addr2line::Context<'a, 's>);

impl Other<'_, '_> {
    fn lines(&self, rva: u32) -> Vec<Option<u32>> {
        let frames = self.0.find_frames(rva).unwrap().map(|found| found.frames).unwrap_or_default();
        frames.iter().map(|frame| frame.line).collect()
    }
}

fn lines(location: &Location) -> Vec<Option<u32>> {
    location.inlined.iter().map(|call| call.line).chain([location.line]).collect()
}

#[derive(Default)]
struct Score {
    addresses: usize,
    functions: usize,
    chains: usize,
    lines: usize,
    with_line: usize,
    /// LLVM gives the name of the last symbol to code that no procedure holds: padding, jump tables, handlers.
    outside: usize,
    /// LLVM has another of several names for one function.
    aliases: usize,
    /// LLVM 14 has the line of the row *behind* the address in an inlined function: it stops only once a row begins
    /// at or behind the address. pdb-addr2line has ours.
    ahead: usize,
    /// We have more inlined calls.
    longer: usize,
}

fn chain(location: &Location) -> Vec<String> {
    let inlined = location.inlined.iter().map(|call| level(&call.function));
    inlined.chain([level(&location.function)]).collect()
}

/// The line in the function that LLVM has innermost; we may have more inlined into it.
fn line_of(location: &Location, chain: &[String], function: &str) -> Option<u32> {
    let depth = chain.iter().position(|name| name == function).unwrap_or(chain.len() - 1);
    location.inlined.get(depth).map_or(location.line, |call| call.line)
}

fn is_subsequence(of: &[String], all: &[String]) -> bool {
    let mut rest = all.iter();
    of.iter().all(|wanted| rest.any(|name| name == wanted))
}

fn score(path: &Path, differences: &mut HashSet<String>) -> Score {
    let text = std::fs::read_to_string(format!("{}.truth.txt", path.display())).unwrap();
    let file = Mapped::open(path).unwrap();
    let image = Image::parse(&file).unwrap();
    let places = beside::places(path, &image.native_pdb().unwrap());
    let pdb_path = places.into_iter().find(|place| place.exists()).expect("the PDB beside it");
    let pdb = Mapped::open(&pdb_path).unwrap();
    let records = Symbols::read(&pdb_path);
    let mut symbols = NativeSymbols::open(Some(&image), Some(&pdb)).unwrap();
    let file = pdb_addr2line::pdb::PDB::open(std::io::Cursor::new(&*pdb)).unwrap();
    let data = pdb_addr2line::ContextPdbData::try_from_pdb(file).unwrap();
    let other = Other(data.make_context().unwrap());
    let mut score = Score::default();
    for truth in parse(&text) {
        let Some(outermost) = truth.frames.last() else { continue };
        score.addresses += 1;
        let is_outside = !records.is_in_a_procedure(truth.rva);
        let Some(ours) = symbols.lookup(truth.rva) else {
            if is_outside {
                score.outside += 1;
            } else {
                differences.insert(format!("{:#x} none | {}", truth.rva, outermost.function));
            }
            continue;
        };
        let theirs: Vec<_> = truth.frames.iter().map(|frame| level(frame.function)).collect();
        let chain = chain(&ours);
        let mut same_function = theirs.last() == chain.last();
        if !same_function && is_outside {
            score.outside += 1;
            continue;
        }
        if !same_function && records.is_alias(truth.rva - ours.offset, theirs.last().unwrap()) {
            score.aliases += 1;
            same_function = true;
        }
        score.functions += usize::from(same_function);
        let same_inlined = is_subsequence(&theirs[..theirs.len() - 1], &chain[..chain.len() - 1]);
        score.chains += usize::from(same_inlined);
        score.longer += usize::from(chain.len() > theirs.len());
        let line = truth.frames[0].line;
        let same_line = line == line_of(&ours, &chain, &theirs[0]);
        let third = other.lines(truth.rva);
        if line.is_some() && !same_line && third == lines(&ours) {
            score.ahead += 1;
            continue;
        }
        score.with_line += usize::from(line.is_some());
        score.lines += usize::from(line.is_some() && same_line);
        if !same_function || !same_inlined || (line.is_some() && !same_line) {
            differences.insert(format!(
                "{:#x} {}{}{} ours {} {:?} | theirs {} {line:?}",
                truth.rva,
                if same_function { "" } else { "F" },
                if same_inlined { "" } else { "C" },
                if same_line { "" } else { "L" },
                chain.join(" < "),
                line_of(&ours, &chain, &theirs[0]),
                theirs.join(" < ")
            ));
        }
    }
    score
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn functions_chains_and_lines_agree_with_llvm() {
    let mut report = String::new();
    let mut failed = false;
    for image in IMAGES {
        let path = data::file(&format!("pdb/{image}"));
        let mut differences = HashSet::new();
        let score = score(&path, &mut differences);
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        let functions = share(score.functions, score.addresses - score.outside);
        let chains = share(score.chains, score.addresses - score.outside);
        let lines = share(score.lines, score.with_line);
        report.push_str(&format!(
            "{image}: {} addresses, function {functions:.1} %, chain {chains:.1} %, line {lines:.1} %; {} outside, {} aliases, {} ahead, {} longer\n",
            score.addresses, score.outside, score.aliases, score.ahead, score.longer
        ));
        if functions < 99.0 || chains < 99.0 || lines < 99.0 {
            failed = true;
            let mut differences: Vec<_> = differences.into_iter().collect();
            differences.sort();
            report.push_str(&differences.join("\n"));
            report.push('\n');
        }
    }
    assert!(!failed, "{report}");
    println!("{report}");
}
