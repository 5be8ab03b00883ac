//! PDBs of IL among the real data.

use etwprof::symbols::read::dotnet::lines;
use etwprof::symbols::read::pe::Image;

use super::precompiled::real;

pub const RUNTIME: &str = "pdb/perfview/Microsoft.Diagnostics.Runtime.pdb";
pub const TUTORIAL: &str = "pdb/perfview/Tutorial.pdb";

/// PDBs in files of their own, and the image of each where there is one.
pub const PDBS: [(&str, Option<&str>); 19] = [
    (
        "dotnet/symstore/dir1/System.Threading.Thread.pdb",
        Some("dotnet/symstore/dir1/System.Threading.Thread.dll"),
    ),
    (
        "dotnet/symstore/dir2/System.Threading.Thread.pdb",
        Some("dotnet/symstore/dir2/System.Threading.Thread.dll"),
    ),
    ("dotnet/clr_loader/amd64/ClrLoader.pdb", Some("dotnet/clr_loader/amd64/ClrLoader.dll")),
    ("pdb/symbolic/ppdb/integration.pdb", Some("pdb/symbolic/ppdb/integration.dll")),
    ("pdb/symbolic/ppdb/Async.pdbx", None),
    ("pdb/symbolic/ppdb/Documents.pdbx", None),
    ("pdb/symbolic/ppdb/EmbeddedSource.pdbx", None),
    ("pdb/symbolic/ppdb/MethodBoundaries.pdbx", None),
    ("pdb/symbolic/ppdb/Scopes.pdbx", None),
    ("pdb/symbolic/ppdb/SourceLink.pdbx", None),
    (
        "pdb/symbolic/ppdb-sourcelink-sample/ppdb-sourcelink-sample.pdb",
        Some("pdb/symbolic/ppdb-sourcelink-sample/ppdb-sourcelink-sample.dll"),
    ),
    ("pdb/symbolic/windows/Microsoft.Extensions.Logging.EventLog-sourcelink.pdb", None),
    ("pdb/symbolic/windows/Sentry.Samples.Console.Basic.pdb", None), // another build than the image beside it
    ("pdb/symbolic/windows/portable.pdb", Some("pdb/symbolic/windows/integration.dll")),
    ("pdb/symbolic/windows/source-links-only.pdb", None),
    ("pdb/perfview/symbol-reader/CsPortableEmbeddedSource.pdb", None),
    ("pdb/perfview/symbol-reader/CsPortableEscapeSourceLink.pdb", None),
    ("pdb/perfview/symbol-reader/CsPortablePdb1.pdb", None),
    ("pdb/perfview/symbol-reader/CsSourceGenerator.pdb", None),
];

const EMBEDDED: [&str; 2] = [
    "pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb.dll",
    "pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb-with-sources.dll",
];

/// Every PDB by its path, those from images as well.
pub fn all_pdbs() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    for (path, _) in PDBS {
        all.push((path, real(path)));
    }
    for path in EMBEDDED {
        let file = real(path);
        all.push((path, lines::embedded(&Image::parse(&file).unwrap()).unwrap().unwrap()));
    }
    all
}
