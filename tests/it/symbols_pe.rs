//! Images: headers, debug records, exports and function extents of real ones.

use etwprof::mmap::Mapped;
use etwprof::symbols::native::function_table::{FunctionTable, Verdict};
use etwprof::symbols::native::pdb;
use etwprof::symbols::pe::{Image, Machine, PdbKind};

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
            let table = FunctionTable::new(parsed).unwrap();
            let pdb = data::file(&format!("{image}.pdb"));
            let procedures = super::symbols_truth::Symbols::read(&pdb).procedures;
            let (mut found, mut outside) = (0, 0);
            for (start, len) in procedures {
                let Some(extent) = table.at(start) else { continue };
                found += 1;
                assert!(extent.start <= start, "{image} {start:#x}: {extent:?}");
                outside += usize::from(table.verdict(start, start + len / 2) != Verdict::Inside);
            }
            // Not all: the thunks of delay-loaded imports share one entry that is shorter.
            assert!(found > entries && outside <= 2, "{image}: {outside} of {found}");
        });
    }
}
