//! Source lines of real portable PDBs, against two independent readers: .NET's own (System.Reflection.Metadata), whose
//! sequence points are in `portable.txt`, and the crate symbolic-ppdb, at every IL offset.

use etwprof::symbols::read::dotnet::lines::{ManagedPdb, SourceLine};
use etwprof::symbols::read::pe::{Image, PdbKind};
use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

use crate::support::facts::Facts;
use crate::support::il_pdbs::{PDBS, all_pdbs};
use crate::support::precompiled::real;

/// The peer refuses a PDB whose SourceLink JSON has a comma behind its last pair, so it gets a blank for that comma.
fn for_the_peer(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_owned();
    let comma = b"http://server2/*\",";
    if let Some(start) = file.windows(comma.len()).position(|bytes| bytes == comma) {
        file[start + comma.len() - 1] = b' ';
    }
    file
}

/// What was compared in one PDB: methods with lines, and places where the line or the file changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compared {
    methods: u32,
    changes: u32,
}

/// Asks the peer and us for the line at every IL offset of every method.
fn compare(file: &[u8], name: &str, compared: &mut Compared) {
    let mut converter = PortablePdbCacheConverter::new();
    converter.process_portable_pdb(&PortablePdb::parse(&for_the_peer(file)).unwrap()).unwrap();
    let mut cache = Vec::new();
    converter.serialize(&mut cache).unwrap();
    let peer = PortablePdbCache::parse(&cache).unwrap();

    let pdb = ManagedPdb::open(file).unwrap();
    for row in 1..2000 {
        let both = |il_offset| {
            let theirs = peer.lookup(row, il_offset);
            let theirs = theirs.map(|line| SourceLine { file: line.file_name.to_owned(), line: line.line });
            let ours = pdb.line(0x0600_0000 | row, il_offset);
            assert_eq!(ours, theirs, "{name}, method {row}, IL {il_offset}");
            ours
        };
        // Whatever lines a method has, it has one behind its last sequence point.
        const BEHIND: u32 = 0x1FFF_FFFF;
        if both(BEHIND).is_none() {
            continue;
        }
        compared.methods += 1;
        let mut before = None;
        for il_offset in 0..3000 {
            let line = both(il_offset);
            compared.changes += u32::from(line != before);
            before = line;
        }
        assert_eq!(before, both(BEHIND), "{name}, method {row} is longer");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_il_offset_of_every_method_has_the_peers_line() {
    let pdbs = all_pdbs();
    let mut compared = Compared::default();
    for (path, file) in &pdbs {
        compare(file, path, &mut compared);
    }
    assert_eq!(compared, Compared { methods: 407, changes: 1048 });
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_sequence_point_has_the_line_that_dotnet_itself_reads() {
    let pdbs = all_pdbs();
    let mut facts = Facts::new(include_str!("portable.txt"));
    for (path, file) in &pdbs {
        facts.check(path, file);
    }
    assert_eq!(facts.end(), (1072, 54));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_pdb_is_its_images() {
    for (path, image) in PDBS {
        let Some(image) = image else { continue };
        let file = real(path);
        let pdb = ManagedPdb::open(&file).unwrap();
        assert_eq!(pdb.kind(), PdbKind::Portable);
        let image = real(image);
        let wanted = Image::parse(&image).unwrap().pdbs();
        assert!(wanted.iter().any(|wanted| wanted.id == pdb.id()), "{path}: {wanted:?}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn source_link_gives_addresses() {
    const FAKE: &str = "https://contoso.com/fake-source-link-url/";
    for (path, file, url) in [
        (
            "pdb/perfview/symbol-reader/CsPortableEscapeSourceLink.pdb",
            r"C:\PerfViewTestData\CsPortableEscapeSourceLink\#Directory\Program.cs",
            format!("{FAKE}CsPortableEscapeSourceLink/%23Directory/Program.cs"),
        ),
        (
            "pdb/symbolic/windows/source-links-only.pdb",
            r"C:\dev\dotnet\modules\Ben.Demystifier\src\A.cs",
            "https://raw.githubusercontent.com/getsentry/Ben.Demystifier/\
             6e72aa45b9fdca99ba94e811204cbb7cb2fd5220/src/A.cs"
                .to_owned(),
        ),
        // The Windows PDB of a C# program has it in a stream of its own.
        (
            "pdb/perfview/symbol-reader/CsDesktopWithSourceLink.pdb",
            r"C:\PerfViewTestData\CsDesktopWithSourceLink\Program.cs",
            format!("{FAKE}CsDesktopWithSourceLink/Program.cs"),
        ),
        // With a comma behind the last pair.
        ("pdb/symbolic/ppdb/SourceLink.pdbx", r"C:\a\b.cs", "http://server2//b.cs".to_owned()),
    ] {
        let bytes = real(path);
        let pdb = ManagedPdb::open(&bytes).unwrap();
        assert_eq!(pdb.source_link(file), Some(url), "{path}");
        assert_eq!(pdb.source_link(r"X:\elsewhere.cs"), None);
    }
}
