//! Our answers beside llvm-symbolizer's: for each image with a `*.truth.txt`, address by address.
//!
//! A line of such a file is an RVA and LLVM's frames, innermost first, `<-` outwards, each `function @ file:line`.
//! Both sides spell names differently, so both are levelled before they are compared: keywords, parameters, return
//! types, spaces. LLVM is evidence and no more: the classes in which it differs are listed in docs/symbols.md.

use std::collections::HashSet;
use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::beside;
use etwprof::symbols::native::{Location, NativeSymbols};
use etwprof::symbols::pe::Image;

use crate::support::data;

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

/// A name without what the two sides spell differently.
pub fn level(name: &str) -> String {
    let mut name = name.to_owned();
    for (from, to) in [
        ("`scalar deleting dtor'", "`scalar deleting destructor'"),
        ("`vector deleting dtor'", "`vector deleting destructor'"),
        ("`anonymous namespace'", "anon"),
        ("(anonymous namespace)", "anon"),
        ("anonymous-namespace", "anon"),
        ("operator()", "operator call"),
        ("operator<<", "operator shl"),
        ("operator<=>", "operator spaceship"),
        ("operator<=", "operator le"),
        ("operator<", "operator lt"),
        ("operator>>", "operator shr"),
        ("operator->", "operator arrow"),
        ("operator>=", "operator ge"),
        ("operator>", "operator gt"),
        ("{lambda", "<lambda"),
    ] {
        name = name.replace(from, to);
    }
    // Parameters, and whatever follows them: the first parenthesis outside of template arguments.
    let mut depth = 0;
    for (at, character) in name.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 && at > 0 => {
                name.truncate(at);
                break;
            }
            _ => {}
        }
    }
    let words: Vec<_> = name
        .split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !["class ", "struct ", "enum ", "union ", "const ", "__ptr64 "].contains(word))
        .collect();
    let mut name: String = words.concat().chars().filter(|c| !c.is_whitespace()).collect();
    for (from, to) in
        [("__int64", "longlong"), ("const", ""), ("__ptr64", ""), ("'", ""), ("`", ""), ("&quot;", "")]
    {
        name = name.replace(from, to);
    }
    if let Some(class) = name.strip_suffix("::{ctor}") {
        name = format!("{class}::{}", last(class));
    } else if let Some(class) = name.strip_suffix("::{dtor}") {
        name = format!("{class}::~{}", last(class));
    }
    name.trim_start_matches('_').to_owned()
}

fn last(class: &str) -> String {
    let mut depth = 0;
    let mut part = String::new();
    let mut plain = String::new();
    for character in class.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            ':' if depth == 0 => plain.clear(),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
        part.clone_from(&plain);
    }
    part
}

#[derive(Default)]
struct Score {
    addresses: usize,
    functions: usize,
    chains: usize,
    lines: usize,
    with_line: usize,
    longer: usize,
}

fn chain(location: &Location) -> Vec<String> {
    let inlined = location.inlined.iter().map(|call| level(&call.function));
    inlined.chain([level(&location.function)]).collect()
}

fn innermost_line(location: &Location) -> Option<u32> {
    location.inlined.first().map_or(location.line, |call| call.line)
}

fn is_subsequence(of: &[String], all: &[String]) -> bool {
    let mut rest = all.iter();
    of.iter().all(|wanted| rest.any(|name| name == wanted))
}

fn score(path: &Path, differences: &mut HashSet<String>) -> Score {
    let text = std::fs::read_to_string(format!("{}.truth.txt", path.display())).unwrap();
    let file = Mapped::open(path).unwrap();
    let image = Image::parse(&file).unwrap();
    let found = beside::find(path, &image);
    let (_, pdb) = found.pdb.expect("the PDB beside it");
    let mut symbols = NativeSymbols::open(Some(&image), Some(&pdb)).unwrap();
    let mut score = Score::default();
    for truth in parse(&text) {
        let Some(outermost) = truth.frames.last() else { continue };
        score.addresses += 1;
        let Some(ours) = symbols.lookup(truth.rva) else {
            differences.insert(format!("{:#x} none | {}", truth.rva, outermost.function));
            continue;
        };
        let theirs: Vec<_> = truth.frames.iter().map(|frame| level(frame.function)).collect();
        let chain = chain(&ours);
        let same_function = theirs.last() == chain.last();
        score.functions += usize::from(same_function);
        let same_inlined = is_subsequence(&theirs[..theirs.len() - 1], &chain[..chain.len() - 1]);
        score.chains += usize::from(same_inlined);
        score.longer += usize::from(chain.len() > theirs.len());
        let line = truth.frames[0].line;
        let same_line = line == innermost_line(&ours);
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
                innermost_line(&ours),
                theirs.join(" < ")
            ));
        }
    }
    score
}

#[test]
fn functions_chains_and_lines_agree_with_llvm() {
    let mut report = String::new();
    let mut failed = false;
    for image in IMAGES {
        let Some(path) = data::file(&format!("pdb/{image}")) else { return };
        let mut differences = HashSet::new();
        let score = score(&path, &mut differences);
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        let functions = share(score.functions, score.addresses);
        let chains = share(score.chains, score.addresses);
        let lines = share(score.lines, score.with_line);
        report.push_str(&format!(
            "{image}: {} addresses, function {functions:.1} %, chain {chains:.1} %, line {lines:.1} %, longer {}\n",
            score.addresses, score.longer
        ));
        if functions < 99.0 || chains < 98.0 || lines < 95.0 {
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
