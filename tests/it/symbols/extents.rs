//! Where functions begin and end in small images made by hand: forms that no real image at hand has.

use etwprof::symbols::read::functions::Functions;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;

use crate::support::image::{Pe, words};
use crate::synth::pdb::{CODE_RVA, Pdb};
use crate::synth::{Bytes, Guid};

const X64: u16 = 0x8664;
const ARM64: u16 = 0xAA64;

const EXCEPTIONS: usize = 3;
const DEBUG: usize = 6;

const ID: Guid = Guid([0x5A; 16]);

/// An image of this code that names the PDB `ID`. `functions` is its exception table, which gets the RVA of `records`.
fn image(machine: u16, code: &[u8], records: &[u8], functions: impl Fn(u32) -> Vec<u32>) -> Vec<u8> {
    let mut pe = Pe::new(machine).with_code_at(CODE_RVA).with_entry_point(CODE_RVA);
    pe.put(code);
    let records = pe.put(records);
    let functions = words(&functions(records));
    let table = pe.put(&functions);
    let name = Bytes::new(8).raw(b"RSDS").guid(ID).u32(1).ansiz("a.pdb").finish();
    let name_rva = pe.put(&name);
    // CodeView; the RVA and the place in the file.
    let debug = [0, 0, 0, 2, name.len() as u32, name_rva, name_rva - CODE_RVA + 0x400];
    let debug_rva = pe.put(&words(&debug));
    let pe = pe.with_directory(EXCEPTIONS, table, functions.len() as u32);
    pe.with_directory(DEBUG, debug_rva, 28).finish()
}

/// What an RVA is by the image and a PDB of these public symbols: `name+offset`, with `~` where that is not certain.
fn named(image: &[u8], publics: &[(u32, u32, &str)], rvas: &[u32]) -> Vec<String> {
    let pdb = Pdb::new(ID, 1, 0x100, 0x3000);
    let pdb = publics.iter().fold(pdb, |pdb, (rva, size, name)| pdb.public(*rva, *size, name)).finish();
    let mut symbols = NativeSymbols::open(Some(&Image::parse(image).unwrap()), Some(&pdb)).unwrap();
    let text = |rva: &u32| match symbols.lookup(*rva) {
        Some(found) => {
            let about = if found.approximate { "~" } else { "" };
            format!("{about}{}+{:#x}", found.function, found.offset)
        }
        None => "?".to_owned(),
    };
    rvas.iter().map(text).collect()
}

const MOV: u32 = 0xAA01_03E0;
const RET: u32 = 0xD65F_03C0;
/// `bl` to three instructions before it.
const CALL_BACK: u32 = 0x97FF_FFFD;

/// An ARM64 entry of so many instructions, packed.
fn packed(start: u32, instructions: u32) -> [u32; 2] {
    [start, instructions << 2 | 1]
}

/// The call in front of the second entry comes back as far as its code shows: the function may begin with it.
#[test]
fn a_symbol_within_an_entry_names_it_even_if_the_beginning_is_unknown() {
    let code = words(&[MOV, MOV, RET, CALL_BACK, MOV, MOV, MOV, MOV, RET]);
    let image = image(ARM64, &code, &[], |_| [packed(0x1000, 4), packed(0x1010, 5)].concat());
    assert_eq!(Functions::new(&Image::parse(&image).unwrap()).at(0x1010), None);
    let first = (0x1000, 0xC, "first");
    let rvas = [0x1004, 0x1010, 0x1014];
    let second = (0x1010, 0x14, "second");
    assert_eq!(named(&image, &[first, second], &rvas), ["first+0x4", "second+0x0", "second+0x4"]);
    // It begins with the call, by the linker.
    let second = (0x100C, 0x18, "second");
    assert_eq!(named(&image, &[first, second], &rvas[1..]), ["second+0x4", "second+0x8"]);
    // No symbol of its own.
    assert_eq!(named(&image, &[(0x1000, 0x24, "first")], &rvas), ["first+0x4", "?", "?"]);
}

/// Instructions that do not touch the stack may stand in front of an entry, a few dozen at most.
#[test]
fn far_in_front_of_an_entry_no_start_is_looked_for() {
    for (instructions, expected) in [(1, Some(CODE_RVA)), (64, Some(CODE_RVA)), (65, None)] {
        let code = [vec![MOV; instructions as usize], vec![MOV, RET]].concat();
        let entry = CODE_RVA + 4 * instructions;
        let image = image(ARM64, &words(&code), &[], |_| packed(entry, 2).to_vec());
        let found = Functions::new(&Image::parse(&image).unwrap()).at(entry);
        assert_eq!(found.map(|extent| extent.function), expected, "{instructions}");
    }
}

/// x64: the third entry's unwind record is chained to the first's.
#[test]
fn a_part_that_was_moved_away_has_the_public_symbol_of_its_function() {
    // Version, flags (4: chained), size of the prologue, number of codes, frame register; then the entry that it belongs to.
    let plain = words(&[1]);
    let records = |at: u32| [plain.clone(), words(&[1 | 4 << 3, 0x1000, 0x1010, at])].concat();
    // The records lie behind the code.
    let records = records(0x1030);
    let image = image(X64, &[0xC3; 0x30], &records, |at| {
        assert_eq!(at, 0x1030);
        vec![0x1000, 0x1010, at, 0x1010, 0x1020, at, 0x1020, 0x1030, at + 4]
    });
    let publics = [(0x1000, 0x10, "whole"), (0x1010, 0x10, "between")];
    let rvas = [0x1004, 0x1014, 0x1020, 0x1024];
    assert_eq!(named(&image, &publics, &rvas), ["whole+0x4", "between+0x4", "whole+0x0", "whole+0x4"]);
    assert_eq!(named(&image, &publics[1..], &rvas), ["?", "between+0x4", "?", "?"]);
}

/// Behind the last function there is no multiple of 16 left.
#[test]
fn code_at_the_end_of_all_addresses_has_an_end() {
    const START: u32 = 0xFFFF_F000;
    let mut pe = Pe::new(X64).with_code_at(START).with_entry_point(START);
    pe.put(&[vec![0x90; 0xFF8], vec![0xC3]].concat());
    let file = pe.finish();
    let found = Functions::new(&Image::parse(&file).unwrap()).at(START + 0x10).unwrap();
    assert_eq!((found.start, found.end), (START, 0xFFFF_FFF9));
}
