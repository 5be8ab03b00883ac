//! Damaged images: an error or fewer names, never a panic, a hang or memory without bound.

use std::time::{Duration, Instant};

use etwprof::symbols::read::dotnet::r2r::R2rImage;
use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::spelling::method::{Style, readable};

use crate::r2r::synthetic::composite;
use crate::support::luck::Luck;
use crate::support::precompiled::{CORELIB, EVENT_BASED_ASYNC, real};

/// Asks for everything that an image gives; `None` when it is refused. Gives the number of names.
fn walk(file: &[u8]) -> Option<usize> {
    let image = R2rImage::parse(&Image::parse(file).ok()?).ok()?;
    let mut count = 0;
    image.compiler();
    for method in image.methods() {
        let spelled = method.spell();
        spelled.missing.iter().for_each(|assembly| drop(image.reference(assembly)));
        let name = spelled.name;
        assert!(name.to_string().len() < 1 << 20);
        readable(&name, Style::EXACT);
        for range in method.ranges() {
            assert!(range.start < range.end);
        }
        count += 1;
    }
    for index in 0..image.function_count().min(2000) {
        if let Some(range) = image.function_range(index) {
            image.lookup(range.start);
            image.lookup(range.end);
        }
    }
    Some(count)
}

#[test]
fn every_cut_of_a_small_image() {
    let file = composite();
    assert_eq!(walk(&file), Some(3));
    for len in 0..file.len() {
        walk(&file[..len]);
    }
}

#[test]
fn every_byte_of_a_small_image_changed() {
    let file = composite();
    for at in 0..file.len() {
        for value in [0x00, 0x7F, 0x80, 0xFF, file[at] ^ 1, file[at].wrapping_add(1)] {
            let mut damaged = file.clone();
            damaged[at] = value;
            walk(&damaged);
        }
    }
}

/// Words of all ones and huge counts where offsets and counts may stand.
#[test]
fn every_word_of_a_small_image_changed() {
    let file = composite();
    for at in (0..file.len() - 4).step_by(2) {
        for value in [u32::MAX, 0x7FFF_FFFF, 0x0FFF_FFFF, 0x1000, 0] {
            let mut damaged = file.clone();
            damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            walk(&damaged);
        }
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_image_cut_and_flipped() {
    let file = real(EVENT_BASED_ASYNC);
    assert_eq!(walk(&file), Some(71));
    for len in (0..file.len()).step_by(211) {
        walk(&file[..len]);
    }
    let mut luck = Luck(0x9E37_79B9_7F4A_7C15);
    let start = Instant::now();
    let (mut refused, mut fewer) = (0, 0);
    for _ in 0..3000 {
        let mut damaged = file.clone();
        for _ in 0..=luck.next(20) {
            let at = luck.next(file.len());
            damaged[at] = luck.next(256) as u8;
        }
        match walk(&damaged) {
            None => refused += 1,
            Some(count) if count < 71 => fewer += 1,
            Some(_) => {}
        }
    }
    // Most damage costs nothing or a part.
    assert!(refused < 1500, "{refused} refused, {fewer} with fewer names");
    assert!(start.elapsed() < Duration::from_secs(120));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_big_image_cut_and_flipped() {
    let file = real(CORELIB);
    let mut luck = Luck(42);
    for round in 0..8 {
        let mut damaged = file.clone();
        damaged.truncate(file.len() / 8 * (round + 1));
        for _ in 0..2000 {
            let at = luck.next(damaged.len());
            damaged[at] = luck.next(256) as u8;
        }
        let start = Instant::now();
        walk(&damaged);
        assert!(start.elapsed() < Duration::from_secs(60), "round {round}");
    }
}
