//! What the file is, its strings, and the debug information's list of compilands, contributions and sections.
//! (llvm.org/docs/PDB/PdbStream.html, DbiStream.html)

use super::compiland::Streams;
use super::{Bytes, CODE_RVA, CODE_SECTION, Pdb, bytes, hash};
use crate::synth::Guid;

/// Numbers of the streams that have none by the format.
const STRINGS: u16 = 5;
pub(super) const TYPE_HASHES: u16 = 6;
pub(super) const ID_HASHES: u16 = 7;
const SECTIONS: u16 = 8;
const PUBLICS: u16 = 9;
const RECORDS: u16 = 10;
const FIRST_COMPILAND: u16 = 11;
const NO_STREAM: u16 = 0xFFFF;

/// A moment at which these files might have been linked.
const SIGNATURE: u32 = 0x6720_0000;
const X64: u16 = 0x8664;

/// Section characteristics: code, execute, read; initialized data, read.
const CODE: u32 = 0x6000_0020;
const DATA: u32 = 0x4000_0040;

/// The information stream: version of VC70, identity, the table of named streams with the one name `/names`, if it
/// is there, and the sign that there is a stream of ids.
pub(super) fn information(guid: Guid, age: u32, has_names: bool) -> Vec<u8> {
    let name = if has_names { "/names\0" } else { "" };
    let header = bytes().u32(20_000_404).u32(SIGNATURE).u32(age).guid(guid);
    let names = header.u32(name.len() as u32).raw(name.as_bytes());
    // Entries and room for them; which are in use, which deleted; of each the offset of its name, and its stream.
    let table = match has_names {
        true => names.u32(1).u32(1).u32(1).u32(1).u32(0).u32(0).u32(STRINGS.into()),
        false => names.u32(0).u32(1).u32(0).u32(0),
    };
    table.u32(0).u32(20_140_508).finish()
}

/// The string table: offsets into it stand for file names.
#[derive(Default)]
pub(super) struct Strings(Vec<String>);

impl Strings {
    /// The offset of a string.
    pub(super) fn offset(&mut self, text: &str) -> u32 {
        if !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
        }
        self.offsets().find(|(known, _)| *known == text).map(|(_, offset)| offset).expect("it was added")
    }

    /// The empty string is first.
    fn offsets(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().scan(1, |next, text| {
            let offset = *next;
            *next += text.len() as u32 + 1;
            Some((text.as_str(), offset))
        })
    }

    pub(super) fn stream(&self) -> Vec<u8> {
        let text = self.0.iter().fold(bytes().u8(0), |bytes, text| bytes.ansiz(text)).finish();
        let mut buckets = vec![0; (self.0.len() + 1) * 2];
        for (text, offset) in self.offsets() {
            let mut at = hash(text) as usize % buckets.len();
            while buckets[at] != 0 {
                at = (at + 1) % buckets.len();
            }
            buckets[at] = offset;
        }
        let header = bytes().u32(0xEFFE_EFFE).u32(1).u32(text.len() as u32).raw(&text);
        let table = buckets.iter().fold(header.u32(buckets.len() as u32), |bytes, &offset| bytes.u32(offset));
        table.u32(self.0.len() as u32).finish()
    }
}

/// Section headers as in the image.
pub(super) fn sections(pdb: &Pdb) -> Vec<u8> {
    let header = |bytes: Bytes, name: &[u8; 8], rva: u32, size: u32, kind: u32| {
        let file_offset = 0x400 + rva - CODE_RVA;
        bytes.raw(name).u32(size).u32(rva).u32(size).u32(file_offset).zeros(12).u32(kind)
    };
    let data = (CODE_RVA + pdb.code).next_multiple_of(0x1000);
    let code = header(bytes(), b".text\0\0\0", CODE_RVA, pdb.code, CODE);
    header(code, b".rdata\0\0", data, pdb.image - data, DATA).finish()
}

/// The stream of debug information.
pub(super) fn debug(pdb: &Pdb, compilands: &[Streams]) -> Vec<u8> {
    let parts = [compiland_list(pdb, compilands), contributions(pdb), section_map(pdb), source_files(pdb)];
    // Of the eleven optional streams the sixth is that of the section headers.
    let optional = (0..11).map(|index| if index == 5 { SECTIONS } else { NO_STREAM });
    let optional = optional.fold(bytes(), Bytes::u16).finish();

    // The names of the files of edit and continue, none.
    let continued = aligned(bytes().raw(&Strings::default().stream())).finish();

    let mut header = bytes().i32(-1).u32(19_990_903).u32(pdb.age);
    header = header.u16(NO_STREAM).u16(0x8E26).u16(PUBLICS).u16(0).u16(RECORDS).u16(0);
    header = parts.iter().fold(header, |bytes, part| bytes.u32(part.len() as u32));
    // No type servers, none of them the compiler's; flags.
    header =
        header.u32(0).u32(0).u32(optional.len() as u32).u32(continued.len() as u32).u16(0).u16(X64).u32(0);
    let header = header.finish();
    assert_eq!(header.len(), 64);
    [header, parts.concat(), continued, optional].concat()
}

/// Each compiland, and behind them the linker's own, to which functions without one belong.
fn compiland_list(pdb: &Pdb, compilands: &[Streams]) -> Vec<u8> {
    let mut list = bytes();
    for (index, compiland) in pdb.compilands.iter().enumerate() {
        let first = compiland.functions.first().expect("a compiland has functions");
        list = contribution(list.u32(0), first.rva, first.size, index);
        let sizes = &compilands[index];
        list = list.u16(0).u16(FIRST_COMPILAND + index as u16);
        list = list.u32(sizes.symbols.len() as u32).u32(0).u32(sizes.lines.len() as u32);
        list = list.u16(files(compiland).len() as u16).u16(0).u32(0).u32(0).u32(0);
        list = aligned(list.ansiz(&compiland.object).ansiz(&compiland.object));
    }
    // Section 0xFFFF: it has no code of its own.
    list = list.u32(0).u16(0xFFFF).u16(0).u32(0).u32(0xFFFF_FFFF).u32(0).u16(0xFFFF).u16(0).u32(0).u32(0);
    list = list.u16(0).u16(NO_STREAM).u32(0).u32(0).u32(0).u16(0).u16(0).u32(0).u32(0).u32(0);
    aligned(list.ansiz("* Linker *").ansiz("")).finish()
}

fn aligned(bytes: Bytes) -> Bytes {
    let missing = bytes.len().next_multiple_of(4) - bytes.len();
    bytes.zeros(missing)
}

fn contribution(bytes: Bytes, rva: u32, size: u32, compiland: usize) -> Bytes {
    let place = bytes.u16(CODE_SECTION).u16(0).u32(rva - CODE_RVA).u32(size).u32(CODE);
    place.u16(compiland as u16).u16(0).u32(0).u32(0)
}

/// Which piece of code came from which compiland, by address; each function is a piece.
fn contributions(pdb: &Pdb) -> Vec<u8> {
    let functions = pdb.compilands.iter().enumerate();
    let mut pieces: Vec<(u32, u32, usize)> = functions
        .flat_map(|(index, one)| {
            one.functions.iter().map(move |function| (function.rva, function.size, index))
        })
        .collect();
    let linker = pdb.compilands.len();
    for public in &pdb.publics {
        if !pieces.iter().any(|(rva, ..)| *rva == public.rva) {
            pieces.push((public.rva, public.size, linker));
        }
    }
    pieces.sort_unstable();
    for pair in pieces.windows(2) {
        assert!(
            pair[0].0 + pair[0].1 <= pair[1].0,
            "functions at {:#x} and {:#x} overlap",
            pair[0].0,
            pair[1].0
        );
    }
    let version = bytes().u32(0xEFFE_0000 + 19_970_605);
    let all = pieces.iter().fold(version, |bytes, &(rva, size, index)| contribution(bytes, rva, size, index));
    all.finish()
}

/// Sections as segments: count twice, then flags (read, execute, 32 bits, selector), frame, no names, size.
fn section_map(pdb: &Pdb) -> Vec<u8> {
    let data = (CODE_RVA + pdb.code).next_multiple_of(0x1000);
    let segments = [(0x10D, 1, pdb.code), (0x109, 2, pdb.image - data), (0x208, 3, u32::MAX)];
    let count = segments.len() as u16;
    let entry = |bytes: Bytes, &(flags, frame, size): &(u16, u16, u32)| {
        bytes.u16(flags).u16(0).u16(0).u16(frame).u16(0xFFFF).u16(0xFFFF).u32(0).u32(size)
    };
    segments.iter().fold(bytes().u16(count).u16(count), entry).finish()
}

/// Source files of a compiland, each once.
pub(super) fn files(compiland: &super::Compiland) -> Vec<&str> {
    fn visit<'a>(inlined: &'a [super::Inlined], add: &mut impl FnMut(&'a str)) {
        for call in inlined {
            add(&call.file);
            visit(&call.inlined, add);
        }
    }
    let mut files: Vec<&str> = Vec::new();
    let mut add = |file| {
        if !files.contains(&file) {
            files.push(file);
        }
    };
    for function in &compiland.functions {
        add(&function.file);
        visit(&function.inlined, &mut add);
    }
    files
}

/// For each compiland the number of its source files, then the offset of each name in the names behind.
fn source_files(pdb: &Pdb) -> Vec<u8> {
    let of_each: Vec<Vec<&str>> = pdb.compilands.iter().map(files).chain([Vec::new()]).collect();
    let starts =
        of_each.iter().scan(0, |next, files| Some(std::mem::replace(next, *next + files.len() as u16)));
    let total = of_each.iter().map(Vec::len).sum::<usize>();
    let header = bytes().u16(of_each.len() as u16).u16(total as u16);
    let header = starts.fold(header, Bytes::u16);
    let header = of_each.iter().fold(header, |bytes, files| bytes.u16(files.len() as u16));
    let mut names: Vec<u8> = Vec::new();
    let offsets = of_each.iter().flatten().fold(header, |bytes, file| {
        let offset = names.len() as u32;
        names.extend(file.bytes().chain([0]));
        bytes.u32(offset)
    });
    aligned(offsets.raw(&names)).finish()
}
