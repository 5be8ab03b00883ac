//! Source lines of real Windows PDBs of IL, against llvm-pdbutil.

use etwprof::symbols::read::dotnet::lines::{ManagedPdb, ManagedPdbError};
use etwprof::symbols::read::pe::{Image, PdbKind};

use crate::support::facts::Facts;
use crate::support::il_pdbs::{RUNTIME, TUTORIAL};
use crate::support::precompiled::real;

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_line_is_the_one_that_llvm_pdbutil_shows() {
    let mut facts = Facts::new(include_str!("windows.txt"));
    for path in [
        TUTORIAL,
        "dotnet/symstore/HelloWorld.pdb",
        "pdb/perfview/symbol-reader/CsDesktopProj.pdb",
        "pdb/perfview/symbol-reader/CsDesktopWithSourceLink.pdb",
        RUNTIME,
    ] {
        let file = real(path);
        facts.check(path, &file);
    }
    assert_eq!(facts.end(), (173, 10));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_pdb_is_its_images() {
    for (path, image) in [
        (TUTORIAL, "pdb/perfview/Tutorial.exe"),
        ("dotnet/symstore/HelloWorld.pdb", "dotnet/symstore/HelloWorld.exe"),
        (RUNTIME, "pdb/perfview/Microsoft.Diagnostics.Runtime.dll"),
    ] {
        let (file, image) = (real(path), real(image));
        let pdb = ManagedPdb::open(&file).unwrap();
        assert_eq!(pdb.kind(), PdbKind::Windows);
        let [wanted] = &Image::parse(&image).unwrap().pdbs()[..] else { panic!("{path}") };
        assert_eq!(pdb.id(), wanted.id);
    }
}

/// No line behind a method's IL, for a token that is no method's, or of a native PDB.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn what_has_no_line() {
    let file = real(TUTORIAL);
    let pdb = ManagedPdb::open(&file).unwrap();
    assert_eq!(pdb.line(0x0600_0001, 40).unwrap().line, 19);
    assert_eq!(pdb.line(0x0600_0001, 41), None);
    assert_eq!(pdb.line(0x0600_0001, u32::MAX), None);
    assert_eq!(pdb.line(0x0600_0005, 0), None);
    assert_eq!(pdb.line(0, 0), None);

    let native = real("pdb/perfview/symbol-reader/CppCon.pdb");
    let native = ManagedPdb::open(&native).unwrap();
    assert!((0..100).all(|row| native.line(0x0600_0000 | row, 0).is_none()));
    assert!(matches!(ManagedPdb::open(b"MZ"), Err(ManagedPdbError::Unknown)));
}
