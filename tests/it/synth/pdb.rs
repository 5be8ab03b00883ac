//! Windows PDBs made by hand: public symbols, procedures with lines and inlined calls.
//!
//! The layouts come from LLVM's description of the format (llvm.org/docs/PDB) and from Microsoft's published
//! headers (microsoft-pdb: PDB/include, langapi/include/cvinfo.h), typed once more as for the rest of [`synth`](super).
//! A file has eleven streams, and one more for each object file:
//!
//! - [`msf`]: the container, streams in blocks;
//! - [`headers`]: what the file is, its strings, sections and compilands;
//! - [`publics`]: the linker's symbols, found by name and by address;
//! - [`types`]: the names of inlined functions;
//! - [`compiland`]: procedures, inlined calls and lines of one object file.

mod compiland;
mod headers;
mod msf;
mod publics;
mod types;

use super::{Bytes, Guid};
use headers::Strings;

/// A PDB of a 64-bit image with its code in one section.
#[derive(Clone, Debug)]
pub struct Pdb {
    guid: Guid,
    age: u32,
    /// Bytes of code from [`CODE_RVA`] on, and of the image.
    code: u32,
    image: u32,
    pub publics: Vec<Public>,
    pub compilands: Vec<Compiland>,
}

/// Where the section of code begins in every image, and its number.
pub const CODE_RVA: u32 = 0x1000;
const CODE_SECTION: u16 = 1;

/// A function as the linker knows it.
#[derive(Clone, Debug)]
pub struct Public {
    pub rva: u32,
    pub size: u32,
    /// Decorated.
    pub name: String,
}

/// An object file with its functions.
#[derive(Clone, Debug)]
pub struct Compiland {
    pub object: String,
    pub functions: Vec<Function>,
}

/// A function that was compiled.
#[derive(Clone, Debug)]
pub struct Function {
    pub rva: u32,
    pub size: u32,
    pub name: String,
    pub file: String,
    /// From which byte of the function on which line holds, ascending.
    pub lines: Vec<(u32, u32)>,
    pub inlined: Vec<Inlined>,
}

/// A call that was inlined: which function, and the bytes of the outermost one that its code takes.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// With its scope: `scope::name`.
    pub function: String,
    pub file: String,
    /// The line where it is defined.
    pub line: u32,
    pub start: u32,
    pub end: u32,
    /// Like those of a function; the first at `start`.
    pub lines: Vec<(u32, u32)>,
    pub inlined: Vec<Inlined>,
}

impl Pdb {
    /// A PDB of an image of `image` bytes, the first `code` of them code.
    pub fn new(guid: Guid, age: u32, code: u32, image: u32) -> Pdb {
        Pdb { guid, age, code, image, publics: Vec::new(), compilands: Vec::new() }
    }

    /// A public symbol, decorated or not, of a function that no other overlaps.
    #[must_use]
    pub fn public(mut self, rva: u32, size: u32, name: &str) -> Pdb {
        self.publics.push(Public { rva, size, name: name.to_owned() });
        self
    }

    #[must_use]
    pub fn compiland(mut self, compiland: Compiland) -> Pdb {
        self.compilands.push(compiland);
        self
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut strings = Strings::default();
        let mut ids = types::Ids::default();
        let streams_of: Vec<compiland::Streams> =
            self.compilands.iter().map(|one| compiland::streams(one, &mut strings, &mut ids)).collect();
        let (records, order) = publics::records(&self.publics);
        // Public symbols have no types, and no names of files.
        let has_types = !self.compilands.is_empty();
        let types = if has_types { types::procedure_type() } else { Vec::new() };
        let (types, type_hashes) = types::streams(&types, headers::TYPE_HASHES);
        let (ids, id_hashes) = types::streams(&ids.records(), headers::ID_HASHES);
        let strings = if has_types { strings.stream() } else { Vec::new() };

        // The first five have their numbers from the format, the others from `headers`.
        let mut streams = vec![
            Vec::new(),
            headers::information(self.guid, self.age, has_types),
            types,
            headers::debug(self, &streams_of),
            ids,
            strings,
            type_hashes,
            id_hashes,
            headers::sections(self),
            publics::stream(&self.publics, &records, &order),
            records.concat(),
        ];
        streams.extend(streams_of.into_iter().map(compiland::Streams::joined));
        msf::file(&streams)
    }
}

/// Section and offset of an RVA, as symbols have it: offset first.
fn place(bytes: Bytes, rva: u32) -> Bytes {
    bytes.u32(rva - CODE_RVA).u16(CODE_SECTION)
}

fn bytes() -> Bytes {
    Bytes::new(8)
}

/// A record of symbols: its length without the length, kind, contents, zeros up to a multiple of four.
fn symbol(kind: u16, contents: Bytes) -> Vec<u8> {
    record(kind, contents, |bytes, missing| bytes.zeros(missing))
}

fn record(kind: u16, contents: Bytes, fill: impl Fn(Bytes, usize) -> Bytes) -> Vec<u8> {
    let contents = contents.finish();
    let len = (4 + contents.len()).next_multiple_of(4);
    let whole = bytes().u16(u16::try_from(len - 2).expect("a short record")).u16(kind).raw(&contents);
    fill(whole, len - 4 - contents.len()).finish()
}

/// The hash of names in string tables and among symbols (`hashStringV1` in LLVM, `LHashPbCb` in microsoft-pdb).
fn hash(text: &str) -> u32 {
    let mut chunks = text.as_bytes().chunks_exact(4);
    let words = chunks.by_ref().map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let mut hash = words.fold(0, |hash, word| hash ^ word);
    hash ^= match *chunks.remainder() {
        [a, b, c] => u32::from(u16::from_le_bytes([a, b])) ^ u32::from(c),
        [a, b] => u32::from(u16::from_le_bytes([a, b])),
        [a] => u32::from(a),
        _ => 0,
    };
    // One hash for upper and lower case.
    hash |= 0x2020_2020;
    hash ^= hash >> 11;
    hash ^ (hash >> 16)
}
