//! Our answers beside Breakpad dumps: every function and every line record of a `.sym` file, and the NGEN PDBs.
//!
//! The dumps in `breakpad/` come from Microsoft's own reader (DIA), the others from dump_syms. A dump has one
//! name and one line for each address: the innermost line, and the name of the function that has the code.

use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::read::location::{Evidence, Location};
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;

use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::support::data;
use crate::support::native::{Symbols, level};

/// Dump, image, PDB.
const DUMPS: [(&str, Option<&str>, Option<&str>); 11] = [
    ("breakpad/dump_syms_regtest.sym", None, Some("breakpad/dump_syms_regtest.pdb")),
    (
        "breakpad/dump_syms_regtest64.sym",
        Some("breakpad/dump_syms_regtest64.exe"),
        Some("breakpad/dump_syms_regtest64.pdb"),
    ),
    ("breakpad/omap_reorder_bbs.sym", None, Some("breakpad/omap_reorder_bbs.pdb")),
    ("breakpad/omap_reorder_funcs.sym", None, Some("breakpad/omap_reorder_funcs.pdb")),
    ("breakpad/omap_stretched.sym", None, Some("breakpad/omap_stretched.pdb")),
    ("breakpad/omap_stretched_filled.sym", None, Some("breakpad/omap_stretched_filled.pdb")),
    ("dump_syms/basic32-min.sym", Some("dump_syms/basic32-min.dll"), Some("dump_syms/basic32-min.pdb")),
    (
        "dump_syms/dump_syms_regtest64.sym",
        Some("dump_syms/dump_syms_regtest64.exe"),
        Some("dump_syms/dump_syms_regtest64.pdb"),
    ),
    ("dump_syms/basic64-dwarf.sym", Some("dump_syms/basic64-dwarf.dll"), None),
    (
        "symbolic/windows/CrashWithException.pdb.sym",
        Some("symbolic/windows/CrashWithException.exe"),
        Some("symbolic/windows/CrashWithException.pdb"),
    ),
    ("symbolic/windows/crash.sym", Some("symbolic/windows/crash.exe"), Some("symbolic/windows/crash.pdb")),
];

enum Record<'a> {
    Function { rva: u32, name: &'a str },
    Line { rva: u32, size: u32, line: u32 },
}

fn record(line: &str) -> Option<Record<'_>> {
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    let line = line.trim_end_matches('\r');
    if let Some(function) = line.strip_prefix("FUNC ") {
        // RVA, size, size of parameters, name.
        let mut words = function.strip_prefix("m ").unwrap_or(function).splitn(4, ' ');
        return Some(Record::Function { rva: hex(words.next()?)?, name: words.nth(2)? });
    }
    let mut words = line.split(' ');
    let (rva, size) = (hex(words.next()?)?, hex(words.next()?)?);
    let (line, _file): (_, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Record::Line { rva, size, line })
}

/// Of DWARF, dump_syms has the linkage name without its first underscore.
fn readable(name: &str) -> String {
    let decorated = format!("_{name}");
    match name.starts_with("Z") {
        true => Name::from(&decorated).try_demangle(DemangleOptions::name_only()).into_owned(),
        false => name.to_owned(),
    }
}

fn innermost_line(location: &Location) -> Option<u32> {
    location.inlined.first().map_or(location.line, |call| call.line)
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn functions_and_lines_agree_with_the_dumps() {
    let mut report = String::new();
    let mut failed = false;
    for (dump, image, pdb) in DUMPS {
        let path = data::file(&format!("pdb/{dump}"));
        let open =
            |name: Option<&str>| name.map(|name| Mapped::open(&data::file(&format!("pdb/{name}"))).unwrap());
        let pdb_path = pdb.map(|pdb| data::file(&format!("pdb/{pdb}")));
        let (image, pdb) = (open(image), open(pdb));
        let image = image.as_deref().map(|bytes| Image::parse(bytes).unwrap());
        let mut symbols = NativeSymbols::open(image.as_ref(), pdb.as_deref()).unwrap();
        let aliases = pdb_path.map(|path| Symbols::read(&path));
        let text = std::fs::read_to_string(&path).unwrap();
        let (mut functions, mut same_name, mut lines, mut same_line) = (0, 0, 0, 0);
        let mut differences = Vec::new();
        for record in text.lines().filter_map(record) {
            match record {
                // dump_syms made the name up.
                Record::Function { name, .. } if name.starts_with("<unknown") => {}
                Record::Function { rva, name } => {
                    functions += 1;
                    let ours = symbols.lookup(rva);
                    let is_folded =
                        || aliases.as_ref().is_some_and(|aliases| aliases.is_alias(rva, &level(name)));
                    let is_same =
                        ours.as_ref().is_some_and(|ours| level(&ours.function) == level(&readable(name)))
                            || is_folded();
                    same_name += usize::from(is_same);
                    if !is_same {
                        differences.push(format!("{rva:#x} {name} | {:?}", ours.map(|ours| ours.function)));
                    }
                }
                // No code is on it, or it is no line but a mark for debuggers.
                Record::Line { size: 0, .. } | Record::Line { line: 0xf0_0f00 | 0xfe_efee, .. } => {}
                Record::Line { rva, size, line } => {
                    for rva in [rva, rva + size.saturating_sub(1)] {
                        lines += 1;
                        let ours = symbols.lookup(rva);
                        let any = ours.as_ref().is_some_and(|ours| {
                            innermost_line(ours) == Some(line) || ours.line == Some(line)
                        });
                        same_line += usize::from(any);
                        if !any {
                            differences.push(format!(
                                "{rva:#x} line {line} | {:?}",
                                ours.map(|ours| (ours.line, innermost_line(&ours), ours.function))
                            ));
                        }
                    }
                }
            }
        }
        report.push_str(&format!("{dump}: {same_name} of {functions} names, {same_line} of {lines} lines\n"));
        if same_name != functions || same_line * 1000 < lines * 999 {
            failed = true;
            report.push_str(&differences.join("\n"));
            report.push('\n');
        }
    }
    assert!(!failed, "{report}");
    println!("{report}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn ngen_images_have_the_names_of_their_methods() {
    // With each, where its sections begin: the sizes in the PDB, in whole pages. They end at 0xfbf000, 0x979000 and
    // 0x738000, the sizes of the mapped images in PerfViewData.etl.
    for (file, count, sections) in [
        ("mscorlib", 20_000, [0x1000, 0x26_b000, 0x2b_4000, 0xf3_3000]),
        ("System", 9_000, [0x1000, 0x13_7000, 0x16_8000, 0x92_f000]),
        ("System.Xml", 7_000, [0x1000, 0xa_9000, 0xb_d000, 0x70_7000]),
    ] {
        let path = data::file(&format!("pdb/perfview/ngen/{file}.ni.pdb"));
        let pdb = Mapped::open(&path).unwrap();
        let publics = publics(&path, &sections);
        assert!(publics.len() > count, "{file}: {}", publics.len());
        let mut symbols = NativeSymbols::open(None, Some(&pdb)).unwrap();
        let mut methods = 0;
        for (rva, names) in &publics {
            let found = symbols.lookup(*rva).unwrap_or_else(|| panic!("{file} {rva:#x}: no name"));
            let evidence = if found.method.is_some() { Evidence::Ngen } else { Evidence::Public };
            assert_eq!((found.offset, found.evidence), (0, evidence), "{file} {rva:#x}");
            // The pieces of the name are the symbol's, and put together the symbol again.
            let name = found.method.as_ref().map_or(found.function.clone(), |method| {
                let class = method.type_name.replace("dynamicClass", "DomainNeutralILStubClass");
                format!("{class}.{}{}", method.method, method.type_args)
            });
            assert!(names.contains(&name), "{file} {rva:#x}: {found:?} {names:?}");
            methods += usize::from(found.method.is_some());
        }
        assert!(methods * 100 > publics.len() * 99, "{file}: {methods} of {}", publics.len());
    }
}

/// The method of each public symbol, by RVA.
fn publics(path: &Path, sections: &[u32]) -> Vec<(u32, Vec<String>)> {
    use pdb2::FallibleIterator;
    let mut pdb = pdb2::PDB::open(std::fs::File::open(path).unwrap()).unwrap();
    let table = pdb.global_symbols().unwrap();
    let mut iter = table.iter();
    let mut publics: std::collections::BTreeMap<u32, Vec<String>> = Default::default();
    while let Some(symbol) = iter.next().unwrap() {
        if let Ok(pdb2::SymbolData::Public(public)) = symbol.parse() {
            let name = public.name.to_string().into_owned();
            let name = name.trim_start_matches("[COLD] ").split('(').next().unwrap().to_owned();
            let rva = sections[usize::from(public.offset.section) - 1] + public.offset.offset;
            publics.entry(rva).or_default().push(name);
        }
    }
    publics.into_iter().collect()
}
