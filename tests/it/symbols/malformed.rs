//! Damaged images and PDBs: an error or fewer names, never a panic, a hang or a lot of memory.

use std::time::{Duration, Instant};

use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::{native::NativeSymbols, pdb};

use crate::support::data;
use crate::support::luck::Luck;

/// Everything that reads the bytes, at addresses all over the image.
fn read_all(image: Option<&[u8]>, pdb: Option<&[u8]>) {
    let image = image.and_then(|bytes| Image::parse(bytes).ok());
    if let Some(image) = &image {
        let _ = (image.pdbs(), image.embedded_pdb(), image.exports(), image.is_reproducible());
    }
    if let Some(pdb) = pdb {
        let _ = pdb::id(pdb);
    }
    // Damage to the id is a mismatch, which would end here; the PDB alone is still read.
    for image in [image.as_ref(), None] {
        if let Ok(mut symbols) = NativeSymbols::open(image, pdb) {
            for rva in (0..0x4_0000).step_by(0x101) {
                let _ = (symbols.lookup(rva), symbols.function_start(rva));
            }
        }
    }
}

fn in_time(what: &str, limit: Duration, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    assert!(start.elapsed() < limit, "{what} took {:?}", start.elapsed());
}

const LIMIT: Duration = Duration::from_secs(5);

const PAIRS: [(&str, &str); 4] = [
    ("samply/WriteArgument.exe", "samply/WriteArgument.pdb"),
    ("debugpy/attach_x86.dll", "debugpy/attach_x86.pdb"),
    ("syzygy/test_vtables_omap.dll", "syzygy/test_vtables_omap.dll.pdb"),
    ("symbolic/windows/CrashWithException.exe", "symbolic/windows/CrashWithException.pdb"),
];

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn cut_files_are_read_up_to_the_cut() {
    let mut files: Vec<_> = PAIRS.iter().flat_map(|(image, pdb)| [*image, *pdb]).collect();
    files.extend(["dump_syms/basic64-dwarf.dll", "symbolic/windows/hello-dwarf.exe", "dump_syms/mozwer.dll"]);
    for file in files {
        let path = data::file(&format!("pdb/{file}"));
        let bytes = std::fs::read(path).unwrap();
        // Every 4 KiB; larger files a little more sparsely, ends included.
        let step = 4096 * (bytes.len() / (4096 * 128)).max(1);
        for len in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            in_time(&format!("{file} cut at {len}"), LIMIT, || match file.ends_with(".pdb") {
                true => read_all(None, Some(&bytes[..len])),
                false => read_all(Some(&bytes[..len]), None),
            });
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn flipped_bytes_in_headers_are_errors() {
    let mut random = Luck(0x5eed);
    for (image, pdb) in PAIRS {
        let image_path = data::file(&format!("pdb/{image}"));
        let image_bytes = std::fs::read(image_path).unwrap();
        let pdb_bytes = std::fs::read(data::file(&format!("pdb/{pdb}"))).unwrap();
        for round in 0..150 {
            let mut image_bytes = image_bytes.clone();
            for _ in 0..4 {
                let at = random.next(1024);
                image_bytes[at] = random.next(256) as u8;
            }
            in_time(&format!("{image} round {round}"), LIMIT, || {
                read_all(Some(&image_bytes), Some(&pdb_bytes))
            });
        }
    }
}

/// The load configuration with its tables, the exports, the exception table and the code itself.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn flipped_bytes_anywhere_in_images_are_fewer_functions() {
    let mut random = Luck(0xc0de);
    for image in ["debugpy/attach_x86.dll", "debugpy/attach_amd64.dll", "systeminformer/arm64/ksi.dll"] {
        let whole = std::fs::read(data::file(&format!("pdb/{image}"))).unwrap();
        for round in 0..100 {
            let mut bytes = whole.clone();
            for _ in 0..1 << (round % 10) {
                // Behind the headers: most of these leave an image that can be read.
                let at = 1024 + random.next(bytes.len() - 1024);
                bytes[at] = [0, 0xff, random.next(256) as u8][random.next(3)];
            }
            in_time(&format!("{image} round {round}"), LIMIT, || read_all(Some(&bytes), None));
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn flipped_bytes_in_pdbs_are_errors_or_fewer_names() {
    let mut random = Luck(0xf11b);
    for (image, pdb) in PAIRS {
        let image_path = data::file(&format!("pdb/{image}"));
        let image_bytes = std::fs::read(image_path).unwrap();
        let pdb_bytes = std::fs::read(data::file(&format!("pdb/{pdb}"))).unwrap();
        for round in 0..200 {
            let mut pdb_bytes = pdb_bytes.clone();
            // One round in four hits the superblock and the pages near it, the others the whole file.
            let end = if round % 4 == 0 { 64 } else { pdb_bytes.len() };
            for _ in 0..if end == 64 { 2 } else { 200 } {
                let at = random.next(end);
                pdb_bytes[at] = match random.next(3) {
                    0 => 0xff,
                    1 => pdb_bytes[at] ^ (1 << random.next(8)),
                    _ => random.next(256) as u8,
                };
            }
            in_time(&format!("{pdb} round {round}"), LIMIT, || {
                read_all(Some(&image_bytes), Some(&pdb_bytes))
            });
        }
    }
}

/// A PDB of one page that says its directory is 4 GiB long.
#[test]
fn a_directory_longer_than_the_file_is_an_error() {
    let mut bytes = vec![0u8; 3 * 4096];
    bytes[..32].copy_from_slice(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    for (at, value) in [(32, 4096u32), (36, 1), (40, 3), (44, u32::MAX), (52, 2)] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    in_time("huge directory", LIMIT, || assert!(pdb::id(&bytes).is_err()));
}

/// Sections that are larger than all memory, in a PDB that states nothing but their sizes.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn sections_behind_the_end_of_memory_have_no_names() {
    let path = data::file("pdb/perfview/ngen/System.Xml.ni.pdb");
    let mut bytes = std::fs::read(path).unwrap();
    let named = |bytes: &[u8]| {
        let mut symbols = NativeSymbols::open(None, Some(bytes)).unwrap();
        (0..0x40_0000u32).step_by(0x1000).filter(|rva| symbols.lookup(*rva).is_some()).count()
    };
    assert!(named(&bytes) > 100);
    let header = [0xff, 0xff, 0xff, 0xff, 0x77, 0x09, 0x31, 0x01];
    let start = bytes.windows(8).position(|window| window == header).expect("the debug information header");
    let size = |at: usize| u32::from_le_bytes(bytes[start + at..start + at + 4].try_into().unwrap()) as usize;
    let map = start + 64 + size(24) + size(28);
    let entries = u16::from_le_bytes([bytes[map], bytes[map + 1]]).into();
    for entry in 0..entries {
        let len = map + 4 + 20 * entry + 16;
        bytes[len..len + 4].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    }
    assert_eq!(named(&bytes), 0, "the first section is data and has all memory");
}
