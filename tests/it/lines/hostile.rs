//! Damaged PDBs of IL and debug information: an error or fewer lines, never a panic, a hang or memory without bound.

use std::time::{Duration, Instant};

use etwprof::symbols::read::dotnet::lines::{self, ManagedPdb};
use etwprof::symbols::read::dotnet::r2r::R2rImage;
use etwprof::symbols::read::pe::Image;

use crate::support::il_pdbs::{RUNTIME, TUTORIAL, all_pdbs};
use crate::support::luck::Luck;
use crate::support::precompiled::{EVENT_BASED_ASYNC, real};

/// Asks for everything that a PDB gives; `None` when it is refused. Gives the number of methods with lines.
fn walk(file: &[u8]) -> Option<usize> {
    let pdb = ManagedPdb::open(file).ok()?;
    let mut count = 0;
    for row in 0..200 {
        let lines = [0, 5, 50, 0x1FFF_FFFF].map(|il_offset| pdb.line(0x0600_0000 | row, il_offset));
        for line in lines.iter().flatten() {
            assert!(line.file.len() < 1 << 18);
            pdb.source_link(&line.file);
        }
        count += usize::from(lines.iter().any(Option::is_some));
    }
    Some(count)
}

/// The same for what an image says about its own code.
fn walk_image(file: &[u8]) -> Option<usize> {
    let image = Image::parse(file).ok()?;
    if let Some(Ok(pdb)) = lines::embedded(&image) {
        walk(&pdb);
    }
    let image = R2rImage::parse(&image).ok()?;
    let mut pairs = 0;
    for method in image.methods() {
        let map = method.il_map();
        assert!(map.len() <= file.len() && map.is_sorted_by_key(|&(native, _)| native));
        lines::il_offset(&map, 20);
        pairs += map.len();
    }
    Some(pairs)
}

/// The file cut at many places, then with bytes and words changed `rounds` times.
fn damage(file: &[u8], rounds: usize, mut walk: impl FnMut(&[u8])) {
    let start = Instant::now();
    for len in (0..file.len()).step_by(file.len() / 400 + 1) {
        walk(&file[..len]);
    }
    let mut luck = Luck(0x9E37_79B9_7F4A_7C15);
    for _ in 0..rounds {
        let mut damaged = file.to_owned();
        for _ in 0..=luck.next(8) {
            // Headers and directories stand in front; damage there does the most.
            let reach = if luck.next(2) == 0 { 600.min(file.len()) } else { file.len() };
            let at = luck.next(reach);
            match luck.next(3) {
                0 => damaged[at] = luck.next(256) as u8,
                1 => damaged[at..].iter_mut().take(4).for_each(|byte| *byte = 0xFF),
                _ => damaged[at] ^= 1 << luck.next(8),
            }
        }
        walk(&damaged);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "took {:?}", start.elapsed());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn portable_pdbs_cut_and_flipped() {
    let pdbs = all_pdbs();
    let (mut whole, mut refused, mut fewer, mut rounds) = (0, 0, 0, 0);
    for (path, file) in &pdbs {
        let count = walk(file).unwrap();
        assert!(count > 0, "{path}");
        damage(file, 300, |damaged| {
            rounds += 1;
            match walk(damaged) {
                None => refused += 1,
                Some(lines) if lines < count => fewer += 1,
                Some(_) => whole += 1,
            }
        });
    }
    // The damage bites, and it costs a part more often than all.
    assert!(refused > 0 && fewer > 0 && whole > 0 && refused < rounds / 2, "{refused}, {fewer}, {whole}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn windows_pdbs_cut_and_flipped() {
    for (path, rounds) in [(TUTORIAL, 2000), (RUNTIME, 60)] {
        let file = real(path);
        assert!(walk(&file).unwrap() > 0);
        damage(&file, rounds, |damaged| {
            walk(damaged);
        });
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn images_cut_and_flipped() {
    const EMBEDDED: &str = "pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb.dll";
    for path in [EVENT_BASED_ASYNC, EMBEDDED] {
        let file = real(path);
        damage(&file, 1500, |damaged| {
            walk_image(damaged);
        });
    }
}

/// A stated size is believed only as far as data comes.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn an_embedded_pdb_of_another_size_is_refused() {
    let file = real("pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb.dll");
    let at = file.windows(4).position(|bytes| bytes == b"MPDB").unwrap() + 4;
    for (size, wanted) in [
        (0u32, "embedded PDB of 1 bytes instead of 0"),
        (100, "embedded PDB of 101 bytes instead of 100"),
        (1_000_000, "instead of 1000000"),
        (200_000_000, "beyond any plausible"),
        (u32::MAX, "beyond any plausible"),
    ] {
        let mut damaged = file.clone();
        damaged[at..at + 4].copy_from_slice(&size.to_le_bytes());
        let error = lines::embedded(&Image::parse(&damaged).unwrap()).unwrap().unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
