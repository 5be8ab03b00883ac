//! Machine code as text. The bytes and their meaning: Intel's manual, volume 2.

use etwprof::symbols::read::assembly::{AssemblyError, assembly};
use etwprof::symbols::read::pe::Image;

use crate::support::image::Pe;

const X64: u16 = 0x8664;
const ARM64: u16 = 0xAA64;

/// `push rbp; mov rbp, rsp; call +0; (no instruction); ret`.
const CODE: [u8; 11] = [0x55, 0x48, 0x89, 0xE5, 0xE8, 0, 0, 0, 0, 0x06, 0xC3];

fn image(machine: u16, code: &[u8]) -> Vec<u8> {
    let mut pe = Pe::new(machine).with_code_at(0x1000);
    pe.put(code);
    pe.finish()
}

#[test]
fn instructions_have_their_offsets_and_targets_are_rvas() {
    let bytes = image(X64, &CODE);
    let code = assembly(&Image::parse(&bytes).unwrap(), 0x1000, 11, false).unwrap();
    assert_eq!((code.start, code.size, code.bits), (0x1000, 11, 64));
    let offsets: Vec<u32> = code.instructions.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, [0, 1, 4, 9, 10]);
    let texts: Vec<&str> = code.instructions.iter().map(|(_, text)| &**text).collect();
    assert_eq!((texts[0], texts[1], texts[3], texts[4]), ("push rbp", "mov rbp,rsp", "(bad)", "ret"));
    assert!(texts[2].starts_with("call ") && texts[2].contains("1009"), "{}", texts[2]);
}

#[test]
fn a_size_ends_behind_an_instruction_and_with_the_section() {
    let bytes = image(X64, &CODE);
    let image = Image::parse(&bytes).unwrap();
    // The last one begins inside.
    assert_eq!(assembly(&image, 0x1000, 2, false).unwrap().size, 4);
    assert_eq!(assembly(&image, 0x1000, 0, false).unwrap().instructions, []);
    let rest = assembly(&image, 0x1004, u32::MAX, false).unwrap();
    assert_eq!((rest.size, rest.instructions.len()), (7, 3));
    // Cut in the middle.
    assert_eq!(assembly(&image, 0x1008, 1, true).unwrap().start, 0x1008);
}

#[test]
fn there_is_no_text_for_what_is_no_code() {
    let bytes = image(X64, &CODE);
    let image_of = Image::parse(&bytes).unwrap();
    for start in [0, 0xFFF, 0x2000, u32::MAX] {
        assert_eq!(assembly(&image_of, start, 9, true), Err(AssemblyError::NoCode), "{start:#x}");
    }
    let arm = image(ARM64, &CODE);
    assert_eq!(assembly(&Image::parse(&arm).unwrap(), 0x1000, 8, true), Err(AssemblyError::Machine));
}
