//! Cabinets: real ones, built ones, and malformed ones.

use std::fs;
use std::io::Cursor;
use std::time::{Duration, Instant};

use etwprof::symbols::find::cabinet::{CabinetError, CabinetLimits, expand};
use proptest::prelude::*;

use crate::support::data;
use crate::support::store::{Packing, cabinet};

const LIMITS: CabinetLimits = CabinetLimits { size: 64 << 20, ratio: 250 };

fn expanded(cab: &[u8], name: &str, limits: CabinetLimits) -> Result<Vec<u8>, CabinetError> {
    let mut output = Vec::new();
    let size = expand(&mut Cursor::new(cab), name, limits, &mut output)?;
    assert_eq!(size, output.len() as u64);
    Ok(output)
}

/// Bytes that compress, but not to nothing, and repeat over more than one block.
fn sample(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| ((i / 3).wrapping_mul(i % 977) >> 4) as u8).collect()
}

#[test]
fn built_cabinets_give_back_the_file() {
    for packing in [Packing::Stored, Packing::MsZip] {
        for length in [1, 100, 32 * 1024, 32 * 1024 + 1, 200_000] {
            let file = sample(length);
            let cab = cabinet(&[("a.pdb", &file)], packing);
            assert_eq!(expanded(&cab, "other.pdb", LIMITS).unwrap(), file, "{packing:?} {length}");
        }
    }
}

#[test]
fn of_several_files_the_name_decides() {
    let (one, two) = (sample(70_000), sample(50_000));
    let cab = cabinet(&[("one.pdb", &one), ("Two.pdb", &two)], Packing::MsZip);
    assert_eq!(expanded(&cab, "ONE.pdb", LIMITS).unwrap(), one);
    assert_eq!(expanded(&cab, "two.PDB", LIMITS).unwrap(), two);
    assert!(matches!(expanded(&cab, "three.pdb", LIMITS), Err(CabinetError::NoSuchFile(2))));
}

#[test]
fn what_is_over_the_limits_is_refused_before_it_is_written() {
    let zeros = vec![0; 20 << 20];
    let cab = cabinet(&[("a.pdb", &zeros)], Packing::MsZip);
    let mut output = Vec::new();
    let limits = CabinetLimits { size: u64::MAX, ratio: 250 };
    let refused = expand(&mut Cursor::new(&cab), "a.pdb", limits, &mut output);
    assert!(matches!(refused, Err(CabinetError::OverLimit { size, .. }) if size == 20 << 20), "{refused:?}");
    assert!(output.is_empty());
    let limits = CabinetLimits { size: 1000, ratio: u64::MAX };
    assert!(matches!(expanded(&cab, "a.pdb", limits), Err(CabinetError::OverLimit { limit: 1000, .. })));
    let limits = CabinetLimits { size: u64::MAX, ratio: u64::MAX };
    assert_eq!(expanded(&cab, "a.pdb", limits).unwrap(), zeros);
}

#[test]
fn a_wrong_checksum_is_seen_in_every_byte() {
    for length in [4, 5, 6, 7] {
        let cab = cabinet(&[("a.pdb", &sample(length))], Packing::Stored);
        for at in cab.len() - length..cab.len() {
            let mut damaged = cab.clone();
            damaged[at] ^= 0x10;
            let result = expanded(&damaged, "a.pdb", LIMITS);
            assert!(matches!(result, Err(CabinetError::Checksum(0))), "{length} {at}: {result:?}");
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_compressed_pdb_expands_to_a_whole_one() {
    let path = data::file("pdb/dump_syms/basic32.pd_");
    let cab = fs::read(path).unwrap();
    let pdb = expanded(&cab, "basic32.pdb", LIMITS).unwrap();
    let (page, pages) = (u32_at(&pdb, 32), u32_at(&pdb, 40));
    assert!(pdb.starts_with(b"Microsoft C/C++ MSF 7.00"));
    assert_eq!(u64::from(page) * u64::from(pages), pdb.len() as u64);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_cabinet_of_a_store_that_keeps_the_plain_name() {
    let folder = "symbol-server/symbolicator/crash.pdb/3249D99D0C4049318610F4E4FB0B69361";
    let (cab, original) =
        (data::file(&format!("{folder}/crash.pdb")), data::file(&format!("{folder}/crash.pdb.original")));
    let file = expanded(&fs::read(cab).unwrap(), "crash.pdb", LIMITS).unwrap();
    assert_eq!(file, fs::read(original).unwrap());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn each_method_in_one_real_cabinet() {
    let path = data::file("symbol-server/cab/mszip_lzx_qtm.cab");
    let cab = fs::read(path).unwrap();
    let text = |name| expanded(&cab, name, LIMITS).map(|bytes| String::from_utf8(bytes).unwrap());
    let says = |method| format!("If you can read this, the {method} decompressor is working!\n");
    assert_eq!(text("mszip.txt").unwrap(), says("MSZIP"));
    let line = "-".repeat(65);
    assert_eq!(text("lzx.txt").unwrap(), format!("{line}\n{}{line}\n", says("LZX")));
    let quantum = text("qtm.txt");
    assert!(matches!(quantum, Err(CabinetError::Method(method)) if method & 15 == 2), "{quantum:?}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn malformed_real_cabinets_get_a_verdict() {
    let folder = data::file("symbol-server/cab");
    for name in [
        "cve-2010-2800-mszip-infinite-loop.cab",
        "cve-2015-4470-mszip-over-read.cab",
        "cve-2015-4471-lzx-under-read.cab",
        "lzx-main-tree-no-lengths.cab",
        "lzx-premature-matches.cab",
    ] {
        let cab = fs::read(folder.join(name)).unwrap();
        let started = Instant::now();
        let result = expanded(&cab, "x", LIMITS);
        assert!(result.is_err() || name.contains("premature"), "{name}: {result:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{name} took {:?}", started.elapsed());
    }
}

/// Whatever is done to a cabinet, it gives a file of the announced size or an error, and soon.
fn survives(cab: &[u8]) {
    let started = Instant::now();
    if let Ok(bytes) = expanded(cab, "a.pdb", LIMITS) {
        assert!(bytes.len() <= 64 << 20);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
}

#[test]
fn every_cut_of_a_cabinet_is_an_error() {
    let file = sample(3000);
    for packing in [Packing::Stored, Packing::MsZip] {
        let cab = cabinet(&[("a.pdb", &file)], packing);
        for end in 0..cab.len() {
            assert!(expanded(&cab[..end], "a.pdb", LIMITS).is_err(), "{packing:?} cut at {end}");
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_bit_flipped_in_small_real_cabinets() {
    let folder = data::file("symbol-server/cab");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "cab") {
            continue;
        }
        let cab = without_checksums(fs::read(&path).unwrap());
        for bit in 0..cab.len() * 8 {
            let mut flipped = cab.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            survives(&flipped);
        }
    }
}

/// Clears the checksum of the first block, so that damage in its data reaches the decoder.
fn without_checksums(mut cab: Vec<u8>) -> Vec<u8> {
    let block = u32_at(&cab, 36) as usize;
    if let Some(sum) = cab.get_mut(block..block + 4) {
        sum.fill(0);
    }
    cab
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 3000 } else { 30000 }))]

    #[test]
    fn damaged_cabinets_get_a_verdict(
        mszip in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let packing = if mszip { Packing::MsZip } else { Packing::Stored };
        let mut cab = cabinet(&[("a.pdb", &sample(40_000)), ("b.pdb", &sample(10))], packing);
        for (at, value) in damage {
            // Headers get half of the damage, or most of it would hit data.
            let range = if value & 1 == 0 { cab.len().min(120) } else { cab.len() };
            let at = at.index(range);
            cab[at] ^= value;
        }
        if let Some(cut) = cut {
            cab.truncate(cut.index(cab.len()));
        }
        survives(&cab);
    }

    /// Any bytes as an LZX stream.
    #[test]
    fn any_lzx_stream_gets_a_verdict(
        window in 0u16..32,
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4),
        size in 1u16..=32768,
    ) {
        let data: Vec<_> = blocks.iter().map(|b| (b.as_slice(), size)).collect();
        survives(&crate::support::store::cabinet_of_blocks("a.pdb", 3 | window << 8, &data));
    }

    /// Uncompressed LZX blocks set the repeated offsets to anything, and a later match uses them.
    #[test]
    fn any_lzx_offset_gets_a_verdict(offsets in any::<[u32; 3]>(), rest in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut data = vec![0x00, 0x30, 0x30, 0x00];
        data.extend(offsets.iter().flat_map(|o| o.to_le_bytes()));
        data.extend(b"abc\0");
        data.extend(rest);
        survives(&crate::support::store::cabinet_of_blocks("a.pdb", 3 | 15 << 8, &[(data.as_slice(), 32768)]));
    }
}
