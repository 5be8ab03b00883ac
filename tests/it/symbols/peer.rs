//! Our answers beside pdb-addr2line's, on every native PDB: lines and the length of the inlined chain at the start,
//! in the middle and at the end of each procedure.
//!
//! One class differs by decision: a function without lines of its own (deleting destructors, mostly). Its own line is
//! unknown; pdb-addr2line takes the last line of the function in front of it.

use etwprof::mmap::Mapped;
use etwprof::symbols::read::native::NativeSymbols;

use crate::support::native::{Symbols, pdbs};

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn lines_and_chains_agree_with_pdb_addr2line() {
    let mut pdbs = pdbs();
    pdbs.retain(|path| !["biginline", "omap"].iter().any(|big| path.to_string_lossy().contains(big)));
    let (mut addresses, mut differences, mut inlined, mut lineless) = (0, Vec::new(), 0, 0);
    for path in &pdbs {
        let bytes = Mapped::open(path).unwrap();
        if !bytes.starts_with(b"Microsoft C/C++") {
            continue;
        }
        let mut ours = NativeSymbols::open(None, Some(&bytes)).unwrap();
        let file = pdb_addr2line::pdb::PDB::open(std::io::Cursor::new(&*bytes)).unwrap();
        let data = pdb_addr2line::ContextPdbData::try_from_pdb(file).unwrap();
        let peer = data.make_context().unwrap();
        let mut procedures = Symbols::read(path).procedures;
        procedures.sort_unstable();
        procedures.dedup();
        for (start, len) in procedures {
            for rva in [start, start + len / 2, start + len - 1] {
                addresses += 1;
                let ours = ours.lookup(rva);
                let ours: Vec<_> = ours
                    .map(|found| found.inlined.iter().map(|call| call.line).chain([found.line]).collect())
                    .unwrap_or_default();
                let peer = peer.find_frames(rva).unwrap().map(|found| found.frames).unwrap_or_default();
                let peer: Vec<_> = peer.iter().map(|frame| frame.line).collect();
                inlined += usize::from(ours.len() > 1);
                let without_own =
                    |lines: &[Option<u32>]| lines.split_last().map(|(_, inlined)| inlined.to_vec());
                let is_lineless = ours.last() == Some(&None) && without_own(&ours) == without_own(&peer);
                lineless += usize::from(ours != peer && is_lineless);
                if ours != peer && !is_lineless {
                    let name = path.file_name().unwrap().to_string_lossy();
                    differences.push(format!("{name} {rva:#x} ours {ours:?}, theirs {peer:?}"));
                }
            }
        }
    }
    let report = format!(
        "{addresses} addresses, {inlined} with inlined calls, {lineless} without a line of their own, {} differ",
        differences.len()
    );
    assert!(differences.is_empty(), "{report}\n{}", differences.join("\n"));
    assert!(inlined > 1000, "{report}");
    println!("{report}");
}
