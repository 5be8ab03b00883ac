//! Images: headers, debug records, exports and function extents of real ones.

use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::read::functions::{Functions, Reach};
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pdb;
use etwprof::symbols::read::pe::{Image, Machine, PdbKind};

use pdb2::FallibleIterator;

use crate::support::data;

fn with<T>(path: &str, check: impl FnOnce(&Image<'_>) -> T) -> T {
    let bytes = Mapped::open(&data::file(path)).unwrap();
    check(&Image::parse(&bytes).unwrap())
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn debug_records_name_the_pdb_and_its_kind() {
    let expected = [
        ("pdb/samply/softokn3.dll", Machine::X64, Some(PdbKind::Windows), "softokn3.pdb", false),
        ("pdb/debugpy/attach_x86.dll", Machine::X86, Some(PdbKind::Windows), "attach_x86.pdb", false),
        ("pdb/systeminformer/arm64/ksi.dll", Machine::Arm64, Some(PdbKind::Windows), "ksi.pdb", false),
        ("pdb/symbolic/ppdb/integration.dll", Machine::X86, Some(PdbKind::Portable), "foo.pdb", false),
        (
            "pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb.dll",
            Machine::X86,
            Some(PdbKind::Portable),
            "Sentry.Samples.Console.Basic.pdb",
            true,
        ),
    ];
    for (path, machine, kind, name, is_embedded) in expected {
        with(path, |image| {
            let pdbs = image.pdbs();
            assert_eq!(image.machine, machine, "{path}");
            assert_eq!(pdbs.first().map(|pdb| pdb.kind), kind, "{path}");
            assert_eq!(pdbs.first().map(|pdb| pdb.file_name()), Some(name), "{path}");
            assert_eq!(image.embedded_pdb().is_some(), is_embedded, "{path}");
        });
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_pdb_has_the_id_that_its_image_names() {
    // The second was linked incrementally 31 times after its first link.
    for (image, pdb, age) in [
        ("pdb/samply/softokn3.dll", "pdb/samply/softokn3.pdb", 1),
        ("pdb/syzygy/test_dll_iltcg.dll", "pdb/syzygy/test_dll_iltcg.dll.pdb", 32),
        ("pdb/debugpy/inject_dll_x86.exe", "pdb/debugpy/inject_dll_x86.pdb", 1),
        ("pdb/systeminformer/arm64/systeminformer.sys", "pdb/systeminformer/arm64/systeminformer.pdb", 1),
    ] {
        let wanted = with(image, |image| image.pdbs()[0].id);
        let bytes = Mapped::open(&data::file(pdb)).unwrap();
        assert_eq!(pdb::id(&bytes).unwrap(), wanted, "{pdb}");
        assert_eq!(wanted.age, age, "{image}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn function_extents_agree_with_the_procedures() {
    for (image, entries) in
        [("pdb/node-pty/conpty_console_list", 300), ("pdb/node-pty/arm64/conpty_console_list", 300)]
    {
        with(&format!("{image}.node"), |parsed| {
            let table = Functions::new(parsed);
            let pdb = data::file(&format!("{image}.pdb"));
            let procedures = crate::support::native::Symbols::read(&pdb).procedures;
            let (mut found, mut outside) = (0, 0);
            for (start, len) in procedures {
                let Some(extent) = table.at(start) else { continue };
                found += 1;
                assert!(extent.start <= start, "{image} {start:#x}: {extent:?}");
                outside += usize::from(table.reach(start, start + len / 2) == Reach::Outside);
            }
            // Not all: the thunks of delay-loaded imports share one entry that is shorter.
            assert!(found > entries && outside <= 2, "{image}: {outside} of {found}");
        });
    }
}

/// Start and length of the procedures of a PDB.
fn procedures(pdb: &Path) -> Vec<(u32, u32)> {
    let mut pdb = pdb2::PDB::open(std::fs::File::open(pdb).unwrap()).unwrap();
    let map = pdb.address_map().unwrap();
    let debug = pdb.debug_information().unwrap();
    let mut modules = debug.modules().unwrap();
    let mut all = Vec::new();
    while let Some(module) = modules.next().unwrap() {
        let Some(info) = pdb.module_info(&module).unwrap() else { continue };
        let mut symbols = info.symbols().unwrap();
        while let Some(symbol) = symbols.next().unwrap() {
            let Ok(pdb2::SymbolData::Procedure(procedure)) = symbol.parse() else { continue };
            all.extend(procedure.offset.to_rva(&map).map(|start| (start.0, procedure.len)));
        }
    }
    all
}

/// Without its PDB, an image still says where the function of an address begins. The PDB knows whether that is true.
/// Functions that leave the stack alone have no entry: about one in five.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn functions_without_a_name_begin_where_the_pdb_says() {
    let (mut all, mut known, mut inside, mut late) = (0, 0, 0, 0);
    for (image, pdb) in [
        ("debugpy/attach_amd64.dll", "debugpy/attach_amd64.pdb"),
        ("debugpy/inject_dll_amd64.exe", "debugpy/inject_dll_amd64.pdb"),
        ("dump_syms/dump_syms_regtest64.exe", "dump_syms/dump_syms_regtest64.pdb"),
        ("node-pty/conpty_console_list.node", "node-pty/conpty_console_list.pdb"),
        ("node-pty/arm64/conpty_console_list.node", "node-pty/arm64/conpty_console_list.pdb"),
        ("samply/softokn3.dll", "samply/softokn3.pdb"),
        ("symbolic/windows/CrashWithException.exe", "symbolic/windows/CrashWithException.pdb"),
        ("built-clang/biginline.exe", "built-clang/biginline.pdb"),
        ("systeminformer/arm64/systeminformer.sys", "systeminformer/arm64/systeminformer.pdb"),
    ] {
        with(&format!("pdb/{image}"), |parsed| {
            let symbols = NativeSymbols::open(Some(parsed), None).unwrap();
            let procedures = procedures(&data::file(&format!("pdb/{pdb}")));
            let starts = procedures.iter().filter(|(start, _)| symbols.function_start(*start).is_some());
            (all, known) = (all + procedures.len(), known + starts.count());
            for (start, len) in procedures {
                assert!(
                    symbols.function_start(start).is_none_or(|found| found == start),
                    "{image} {start:#x}"
                );
                for eighth in 1..8 {
                    let rva = start + (u64::from(len) * eighth / 8) as u32;
                    let Some(found) = symbols.function_start(rva) else { continue };
                    let end = start + len;
                    assert!(
                        (start..end).contains(&found),
                        "{image} {rva:#x}: {found:#x} of {start:#x}..{end:#x}"
                    );
                    (inside, late) = (inside + 1, late + usize::from(found != start));
                }
            }
        });
    }
    assert!(all > 9_000 && known * 5 > all * 4, "{known} of {all}");
    // On ARM64 an entry may begin behind instructions that do not touch the stack yet.
    assert!(inside > 50_000 && late * 1000 < inside, "{late} of {inside}");
}
