//! Windows PDBs (MSF files): the names of addresses from the linker's symbol file.
//!
//! A PDB has one stream of symbols and lines for each compiland, a list of *section contributions* that says which
//! compiland each piece of code came from, and the linker's public symbols. So an address goes through the
//! contributions to its compiland, there to its procedure with inline sites and lines; only where no procedure
//! holds it, to the nearest public symbol. Compilands are read when the first address needs them.
//!
//! Who the file is says `pdb2` (`file.rs`); the container (`msf.rs`), the lists and the records in it are read in place, by
//! our own code, which copies nothing and cannot panic.

mod address_map;
mod annotations;
mod compiland;
mod contributions;
mod debug_info;
mod file;
mod il;
mod lines;
mod msf;
mod publics;
mod read_at;
mod stream;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use compiland::{Compiland, InlinedCall, Procedure};
use file::PdbFile;
pub(in crate::symbols) use il::IlPdb;
use lines::LineTable;
use publics::Publics;
use types::{FunctionNames, Records};

use crate::debug_id::DebugId;
use crate::symbols::read::functions::{Functions, Reach};
use crate::symbols::read::limits::Limits;
use crate::symbols::read::location::{Definition, Evidence, InlinedFunction, Location};
use crate::symbols::read::pe::Machine;
use crate::symbols::read::spelling::demangle;
use crate::symbols::read::spelling::method::{RawName, Style, ngen_definition, ngen_method, ngen_methods_of};

/// What each begins with.
pub const MAGIC: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n";

/// Why a PDB cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PdbError {
    /// The reader of the headers refuses it; the text is its reason.
    #[error("not a readable PDB: {0}")]
    Unreadable(String),
    /// The contents contradict each other.
    #[error("damaged PDB")]
    Damaged,
    /// The debug information header is cut short.
    #[error("truncated PDB")]
    Truncated,
}

impl From<pdb2::Error> for PdbError {
    fn from(error: pdb2::Error) -> PdbError {
        PdbError::Unreadable(error.to_string())
    }
}

/// The identity of a PDB. Its age is the debug information's, which images and symbol servers name, where it has
/// one: the file's own age also counts later changes.
///
/// # Errors
/// [`PdbError`] when the bytes are no PDB or end before its headers.
pub fn id(bytes: &[u8]) -> Result<DebugId, PdbError> {
    file::identity(bytes)
}

/// A position by section (numbered from 1) and offset, as symbols give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    section: u16,
    offset: u32,
}

impl Place {
    fn forward(self, len: u32) -> Place {
        Place { offset: self.offset.saturating_add(len), ..self }
    }

    fn before(self) -> Option<Place> {
        match (self.offset.checked_sub(1), self.section.checked_sub(1)) {
            (Some(offset), _) => Some(Place { offset, ..self }),
            (None, Some(section)) => Some(Place { section, offset: u32::MAX }),
            (None, None) => None,
        }
    }
}

/// The symbols of one PDB.
#[derive(Debug)]
pub(super) struct PdbSymbols<'a> {
    file: PdbFile<'a>,
    publics: Publics<'a>,
    /// Read on the first inlined call.
    function_names: Option<FunctionNames<'a>>,
    /// By index; `None` for those that have no symbols.
    compilands: HashMap<usize, Option<Compiland<'a>>, rustc_hash::FxBuildHasher>,
    /// Bytes that compilands may still have. A page belongs to one stream, so all are no longer than the file; in a
    /// file made to harm, many could be the same one.
    unread: usize,
}

impl<'a> PdbSymbols<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, PdbError> {
        let file = PdbFile::open(bytes)?;
        let public_stream = file.public_symbols();
        let records = file.symbol_records().unwrap_or_default();
        let publics = Publics::new(records, public_stream);
        let compilands = HashMap::default();
        Ok(PdbSymbols { file, publics, function_names: None, compilands, unread: bytes.len() })
    }

    pub(super) fn id(&self) -> DebugId {
        self.file.id
    }

    /// The best name for the code at `rva`.
    pub(super) fn lookup(
        &mut self,
        rva: u32,
        functions: Option<&Functions<'_>>,
        limits: Limits,
    ) -> Option<Location> {
        let place = self.file.address_map.place_of(rva)?;
        // The image's functions are the re-ordered ones, the places are not.
        let functions = functions.filter(|_| self.file.address_map.to_source.is_none());
        let compiland = self.compiland_at(place);
        let found = compiland.and_then(|index| {
            let compiland = self.compilands.get(&index)?.as_ref()?;
            Some((index, compiland.procedure_at(place)?))
        });
        match found {
            Some((index, procedure)) => self
                .in_procedure(index, procedure, place, limits)
                .or_else(|| self.in_public(rva, place, compiland, functions)),
            None => self.in_public(rva, place, compiland, functions),
        }
    }

    /// The compiland that the code at `place` came from, loaded.
    fn compiland_at(&mut self, place: Place) -> Option<usize> {
        let index = self.file.contributions.at(place)?.compiland;
        self.load(index);
        Some(index)
    }

    fn load(&mut self, index: usize) {
        if !self.compilands.contains_key(&index) {
            let compiland = self.read_compiland(index);
            self.compilands.insert(index, compiland);
        }
    }

    fn read_compiland(&mut self, index: usize) -> Option<Compiland<'a>> {
        let header = *self.file.compilands.get(index)?;
        let stream = self.file.stream(header.stream)?;
        let (symbols, c11) = (header.symbols_size as usize, header.c11_size as usize);
        let c13 = header.c13_size as usize;
        self.unread = self.unread.checked_sub(symbols.checked_add(c13)?)?;
        stream.will_be_read();
        let lines = stream.part(symbols.checked_add(c11)?, c13).unwrap_or_default();
        Some(Compiland::new(stream.part(0, symbols)?, LineTable::new(lines)))
    }

    fn in_procedure(
        &mut self,
        index: usize,
        procedure: Procedure,
        place: Place,
        limits: Limits,
    ) -> Option<Location> {
        let compiland = self.compilands.get(&index)?.as_ref()?;
        let target = compiland.trampoline_target(procedure);
        let calls = compiland.inlined_at(procedure, place);
        let name = compiland.name(procedure).map(|name| self.procedure_name(&name, procedure));
        let line = compiland.lines.line_at(place);
        let name = match (name, target) {
            (Some(name), _) => name,
            (None, Some(target)) => self.name_at(target)?,
            (None, None) => return None,
        };
        let (file, line) = self.source_line(index, line);
        let left_out = limits.left_out(calls.len());
        let mut inlined = Vec::new();
        for (number, call) in calls.iter().enumerate().rev() {
            match left_out.contains(&number) {
                true if number == left_out.start => inlined.push(InlinedFunction::left_out(left_out.len())),
                true => {}
                false => inlined.extend(self.inlined_function(index, *call)),
            }
        }
        Some(Location {
            function: name,
            method: None,
            definition: None,
            offset: place.offset - procedure.start.offset,
            file,
            line,
            inlined,
            left_out: left_out.len(),
            evidence: Evidence::Pdb,
            approximate: false,
        })
    }

    /// Procedures are named as in the source, but an assembler knows only linker symbols. It is one where the public
    /// symbol has the very same name; a compiled `_f` has the public symbol `__f`.
    fn procedure_name(&self, name: &str, procedure: Procedure) -> String {
        if self.file.machine != Machine::X86 || !name.starts_with(['_', '@']) {
            return demangle::readable(name);
        }
        let public = self.publics.at(procedure.start).filter(|(public, _)| public.start == procedure.start);
        match public {
            Some((public, _)) if public.name == name => demangle::linker_symbol(name, self.file.machine),
            _ => demangle::export(name, self.file.machine),
        }
    }

    /// The name of the function that begins at `place`: where a jump of an incremental link leads.
    fn name_at(&mut self, place: Place) -> Option<String> {
        let index = self.compiland_at(place);
        let compiland = index.and_then(|index| self.compilands.get(&index)?.as_ref());
        let name = compiland.and_then(|compiland| {
            let procedure = compiland.procedure_at(place)?;
            Some(self.procedure_name(&compiland.name(procedure)?, procedure))
        });
        match name {
            Some(name) => Some(name),
            None => {
                let (public, _) = self.publics.at(place).filter(|(public, _)| public.start == place)?;
                Some(demangle::linker_symbol(&public.name, self.file.machine))
            }
        }
    }

    fn inlined_function(&mut self, index: usize, call: InlinedCall) -> Option<InlinedFunction> {
        let id = self.global_id(index, call.inlinee);
        if self.function_names.is_none() {
            self.function_names = Some(self.read_function_names());
        }
        let name = id.and_then(|id| self.function_names.as_mut()?.get(id).map(demangle::readable));
        let (file, line) = self.source_line(index, call.line);
        name.map(|function| InlinedFunction { function, file, line })
    }

    fn read_function_names(&mut self) -> FunctionNames<'a> {
        let records = |number| {
            let stream = self.file.stream(number)?;
            Records::new(stream, |hash| self.file.stream(hash))
        };
        let types: Records<'_> = records(2).unwrap_or_default();
        FunctionNames::new(types, records(4).unwrap_or_default())
    }

    /// An id with the top bit set stands for one of another compiland: link-time code generation inlines across them.
    fn global_id(&mut self, index: usize, id: u32) -> Option<u32> {
        if id & 0x8000_0000 == 0 {
            return Some(id);
        }
        let (name, local) = self.compilands.get(&index)?.as_ref()?.lines.import(id)?;
        let name = self.file.string(name)?;
        let hash = debug_info::name_hash(name.as_bytes());
        let owner = self.file.compilands.iter().position(|compiland| compiland.name_hash == hash)?;
        self.load(owner);
        self.compilands.get(&owner)?.as_ref()?.lines.export(local)
    }

    fn source_line(&self, index: usize, line: Option<(u32, u32)>) -> (Option<String>, Option<u32>) {
        let file = line.and_then(|(file, _)| {
            let compiland = self.compilands.get(&index)?.as_ref()?;
            self.file.string(compiland.lines.file_name(file)?).filter(|name| !name.is_empty())
        });
        (file, line.map(|(_, line)| line))
    }

    /// The .NET methods of these (outermost) types, if it is the PDB of an NGEN image.
    pub(super) fn methods_of(&self, types: &FxHashSet<String>) -> Vec<RawName> {
        if !self.file.is_method_list() {
            return Vec::new();
        }
        ngen_methods_of(self.publics.names(), types)
    }

    /// The public symbol of the function that has the code at `place`, and what the image says of the two. Between them:
    /// bytes from the start of the function, or of the part of it that was moved away.
    fn public_of(
        &mut self,
        rva: u32,
        place: Place,
        functions: Option<&Functions<'_>>,
    ) -> Option<(publics::Public<'a>, u32, Reach)> {
        if let Some((public, _)) = self.publics.at(place) {
            let offset = place.offset - public.start.offset;
            let start = rva.saturating_sub(offset);
            let reach = functions.map_or(Reach::Unknown, |functions| functions.reach(start, rva));
            if reach != Reach::Outside {
                return (!self.ends_before(&public, place)).then_some((public, offset, reach));
            }
        }
        // A part of a function that lies elsewhere has the function's name.
        let part = functions?.at(rva)?;
        let function = self.file.address_map.place_of(part.function)?;
        let (public, _) = self.publics.at(function).filter(|(public, _)| public.start == function)?;
        Some((public, rva.checked_sub(part.start)?, Reach::Inside))
    }

    fn in_public(
        &mut self,
        rva: u32,
        place: Place,
        compiland: Option<usize>,
        functions: Option<&Functions<'_>>,
    ) -> Option<Location> {
        let (public, offset, reach) = self.public_of(rva, place, functions)?;
        let line = compiland.and_then(|index| self.compilands.get(&index)?.as_ref()?.lines.line_at(place));
        let (file, line) = compiland.map_or((None, None), |index| self.source_line(index, line));
        let method = if self.file.is_method_list() { ngen_method(&public.name) } else { None };
        let definition = method.as_ref().and_then(|_| ngen_definition(&public.name));
        Some(Location {
            function: match &method {
                Some(method) => method.readable(Style::SHORT),
                None => demangle::linker_symbol(&public.name, self.file.machine),
            },
            definition: definition.map(|(assembly, token)| Definition { assembly: assembly.into(), token }),
            evidence: if method.is_some() { Evidence::Ngen } else { Evidence::Public },
            method: method.map(Arc::new),
            offset,
            file,
            line,
            inlined: Vec::new(),
            left_out: 0,
            approximate: reach != Reach::Inside && !self.begins_piece(&public),
        })
    }

    /// Whether a piece of code begins with `public`: a section contribution (compilers give each function one of its
    /// own), or a method of an NGEN image.
    fn begins_piece(&self, public: &publics::Public<'_>) -> bool {
        self.file.contributions.at(public.start).is_some_and(|piece| piece.start == public.start)
            || self.file.is_method_list()
    }

    /// Whether something shows that the code of `public` ends at or before `place`.
    fn ends_before(&mut self, public: &publics::Public<'_>, place: Place) -> bool {
        // Code of one symbol lies in one contribution; between contributions is padding.
        let contributions = &self.file.contributions;
        let here = contributions.at(place);
        if !contributions.is_empty() && (here.is_none() || here != contributions.at(public.start)) {
            return true;
        }
        let Some(index) = self.compiland_at(place) else { return false };
        let Some(compiland) = self.compilands.get(&index).and_then(Option::as_ref) else { return false };
        compiland.last_before(place).is_some_and(|before| public.start < before.start.forward(before.len))
    }
}
