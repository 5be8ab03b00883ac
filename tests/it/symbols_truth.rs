//! Our answers beside llvm-symbolizer's: for each image with a `*.truth.txt`, address by address.
//!
//! A line of such a file is an RVA and LLVM's frames, innermost first, `<-` outwards, each `function @ file:line`.
//! Both sides spell names differently, so both are levelled before they are compared: keywords, parameters, return
//! types, spaces. LLVM is evidence and no more: the classes in which it differs are listed in docs/symbols.md.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::beside;
use etwprof::symbols::native::{Location, NativeSymbols};
use etwprof::symbols::pe::Image;

use pdb2::FallibleIterator;
use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

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
        ("`scalar deleting dtor'", "scalar_deleting_destructor"),
        ("`scalar deleting destructor'", "scalar_deleting_destructor"),
        ("`vector deleting dtor'", "vector_deleting_destructor"),
        ("`vector deleting destructor'", "vector_deleting_destructor"),
        ("(anonymous namespace)", "anonymous_namespace"),
        ("`anonymous namespace'", "anonymous_namespace"),
        ("`anonymous-namespace'", "anonymous_namespace"),
        ("operator()", "operator call"),
        ("operator<<", "operator shl"),
        ("operator<=>", "operator spaceship"),
        ("operator<=", "operator le"),
        ("operator<", "operator lt"),
        ("operator>>", "operator shr"),
        ("operator->", "operator arrow"),
        ("operator>=", "operator ge"),
        ("operator>", "operator gt"),
        ("operator ", "operator_"),
        ("_operator_", "_operator "),
        (" const::'lambda", "::'lambda"),
    ] {
        name = name.replace(from, to);
    }
    name = level_lambdas(&level_local_scopes(&name));
    let parameters = outside_brackets(&name, |c| c == '(').find(|at| *at > 0);
    if let Some(end) = parameters {
        name.truncate(end);
        // With parameters comes the return type.
        let return_type = outside_brackets(&name, |c| c == ' ').last();
        if let Some(start) = return_type {
            name.drain(..=start);
        }
    }
    let kept = |word: &&str| !["class ", "struct ", "enum ", "union "].contains(word);
    let words: Vec<_> =
        name.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').filter(kept).collect();
    let mut name: String = words.concat().chars().filter(|c| !c.is_whitespace()).collect();
    for (from, to) in [
        ("__int64", "longlong"),
        ("const", ""),
        ("__ptr64", ""),
        ("'", ""),
        ("`", ""),
        ("false", "0"),
        ("true", "1"),
    ] {
        name = name.replace(from, to);
    }
    if let Some(class) = name.strip_suffix("::{ctor}") {
        name = format!("{class}::{}", last_part(class));
    } else if let Some(class) = name.strip_suffix("::{dtor}") {
        name = format!("{class}::~{}", last_part(class));
    }
    // LLVM takes one underscore from names on x86, whether they are decorated or not.
    name.trim_start_matches('_').replace("::~__", "::~").replace("::~_", "::~")
}

/// The places of a character outside of template arguments.
fn outside_brackets(name: &str, wanted: impl Fn(char) -> bool) -> impl Iterator<Item = usize> {
    let mut depth = 0;
    name.char_indices().filter_map(move |(at, character)| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0 && wanted(character)).then_some(at)
    })
}

/// The Itanium ABI names a lambda by its scope and number, CodeView by its place in the source.
fn level_lambdas(name: &str) -> String {
    let mut name = name.to_owned();
    while let Some(at) = name.find("`lambda at ") {
        let end = at + name[at..].find('\'').unwrap();
        name.replace_range(at..=end, "lambda");
    }
    while let Some(at) = name.find("'lambda'(") {
        let end = at + name[at..].find(')').unwrap();
        // As a template argument it has its scope in front of it.
        let mut depth = 0;
        let start = name[..at].char_indices().rev().find(|(_, c)| {
            match c {
                '>' | ')' => depth += 1,
                '<' | '(' => depth -= 1,
                _ => {}
            }
            depth < 0 || (depth == 0 && *c == ',')
        });
        name.replace_range(start.map_or(at, |(start, _)| start + 1)..=end, "lambda");
    }
    name
}

/// `` `public: int A::f(char)'::`2'::<lambda_1> `` is a lambda in `A::f`.
fn level_local_scopes(name: &str) -> String {
    let mut name = name.to_owned();
    let mut from = 0;
    while let Some(at) = name[from..].find('`').map(|at| at + from) {
        let mut depth = 0;
        let end = name[at..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '`') - i32::from(*c == '\'');
            depth == 0
        });
        let Some(end) = end.map(|(end, _)| end + at) else { break };
        let scope = &name[at + 1..end];
        from = at + 1;
        if scope.contains('(') {
            let scope = level(scope.split_once(": ").map_or(scope, |(_, scope)| scope));
            from = at + scope.len();
            name.replace_range(at..=end, &scope);
        }
    }
    name
}

fn last_part(class: &str) -> &str {
    let start = outside_brackets(class, |c| c == ':').last().map_or(0, |at| at + 1);
    class[start..].split('<').next().unwrap()
}

/// All procedures and public symbols of a PDB, by way of the `pdb2` crate and a full scan.
pub struct Symbols {
    /// Start, length.
    pub procedures: Vec<(u32, u32)>,
    names: HashMap<u32, HashSet<String>>,
}

impl Symbols {
    pub fn read(pdb: &Path) -> Self {
        let mut pdb = pdb2::PDB::open(std::fs::File::open(pdb).unwrap()).unwrap();
        let map = pdb.address_map().unwrap();
        let mut symbols = Symbols { procedures: Vec::new(), names: HashMap::new() };
        let mut add = |symbol: pdb2::SymbolData<'_>| {
            let (offset, len, name) = match symbol {
                pdb2::SymbolData::Procedure(procedure) => (procedure.offset, procedure.len, procedure.name),
                pdb2::SymbolData::Thunk(thunk) => (thunk.offset, thunk.len.into(), thunk.name),
                pdb2::SymbolData::Public(public) => (public.offset, 0, public.name),
                _ => return,
            };
            let Some(start) = offset.to_rva(&map) else { return };
            let name = Name::from(name.to_string())
                .demangle(DemangleOptions::name_only())
                .unwrap_or(name.to_string().into());
            symbols.procedures.extend((len != 0).then_some((start.0, len)));
            symbols.names.entry(start.0).or_default().insert(level(&name));
        };
        let globals = pdb.global_symbols().unwrap();
        let mut iter = globals.iter();
        while let Some(symbol) = iter.next().unwrap() {
            symbol.parse().map(&mut add).unwrap_or_default();
        }
        let debug = pdb.debug_information().unwrap();
        let mut modules = debug.modules().unwrap();
        while let Some(module) = modules.next().unwrap() {
            let Some(info) = pdb.module_info(&module).unwrap() else { continue };
            let mut iter = info.symbols().unwrap();
            while let Some(symbol) = iter.next().unwrap() {
                symbol.parse().map(&mut add).unwrap_or_default();
            }
        }
        symbols
    }

    pub fn is_alias(&self, start: u32, name: &str) -> bool {
        self.names.get(&start).is_some_and(|names| names.contains(name))
    }

    fn is_in_a_procedure(&self, rva: u32) -> bool {
        self.procedures.iter().any(|(start, len)| rva >= *start && rva - start < *len)
    }
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
    let found = beside::find(path, &image);
    let (pdb_path, pdb) = found.pdb.expect("the PDB beside it");
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
