//! DWARF inside an image, as MinGW's compilers and Rust's `windows-gnu` targets put it there.
//!
//! `gimli` decodes it. The way from an address to its functions is our own: the usual library for it, `addr2line`,
//! calls itself for each level of inlined calls and follows every reference to something shared, so that a small file
//! can overflow the stack or take all memory. Here nesting costs no stack, and an [`Allowance`] bounds the rest.

mod allowance;
mod extent;
mod functions;
mod lines;
mod reader;
mod units;

use gimli::{AttributeValue, LittleEndian, UnitOffset};
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use crate::symbols::read::limits::Limits;
use crate::symbols::read::location::{Evidence, InlinedFunction, Location};
use crate::symbols::read::pe::Image;
use crate::symbols::read::spelling::demangle;
use allowance::Allowance;
use functions::{Functions, InlinedCalls};
use lines::Lines;
use reader::Reader;
use units::Units;

/// How often a name may refer to another entry's. A definition refers to its declaration, an inlined call to its
/// definition.
const MAX_REFERENCES: usize = 16;

/// The DWARF of one image. What an address needs is read once and kept.
pub(super) struct DwarfSymbols<'a> {
    units: Units<'a>,
    image_base: u64,
    allowance: Allowance,
    /// By unit; `None` for one that cannot be read.
    functions: FxHashMap<usize, Option<Functions>>,
    /// By place of the function's entry in `.debug_info`.
    inlined: FxHashMap<usize, InlinedCalls>,
    /// By place in `.debug_line`.
    lines: FxHashMap<usize, Lines>,
    /// By place of the entry that has the name.
    names: FxHashMap<usize, String>,
    /// By place of the line program, and number.
    files: FxHashMap<(usize, u32), Option<String>>,
}

impl<'a> DwarfSymbols<'a> {
    /// `None` when the image has no DWARF that can be read.
    pub(super) fn new(image: &Image<'a>) -> Option<Self> {
        let file = object::File::parse(image.data()).ok()?;
        file.section_by_name(".debug_info")?;
        let mut size = 0;
        // PE cannot compress sections, so their data is always borrowed.
        let section = |id: gimli::SectionId| -> Result<Reader<'a>, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            size += data.unwrap_or_default().len();
            Ok(Reader::new(data.unwrap_or_default(), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        let mut allowance = Allowance::new(size);
        Some(DwarfSymbols {
            units: Units::new(dwarf, image.image_base, &mut allowance),
            image_base: image.image_base,
            allowance,
            functions: FxHashMap::default(),
            inlined: FxHashMap::default(),
            lines: FxHashMap::default(),
            names: FxHashMap::default(),
            files: FxHashMap::default(),
        })
    }

    pub(super) fn lookup(&mut self, rva: u32, limits: Limits) -> Option<Location> {
        let units = self.units.at(rva, &mut self.allowance);
        units.into_iter().find_map(|unit| self.lookup_in(unit, rva, limits))
    }

    fn lookup_in(&mut self, unit: usize, rva: u32, limits: Limits) -> Option<Location> {
        let functions = self.functions(unit)?;
        let function = functions.at(rva)?;
        let calls = self.inlined_at(unit, function.entry(), rva);
        // The line of the code is the innermost call's; the line of each call is that of the one around it.
        let line = self.line_at(unit, rva);
        let mut at = line.map_or((None, None), |(file, line)| (Some(file), line));
        let left_out = limits.left_out(calls.len());
        let mut inlined = Vec::new();
        for (number, call) in calls.iter().enumerate().rev() {
            if left_out.contains(&number) {
                if number == left_out.start {
                    inlined.push(InlinedFunction::left_out(left_out.len()));
                    at = (call.file(), call.line());
                }
                continue;
            }
            let file = at.0.and_then(|file| self.file(unit, file));
            let function = self.name_of(unit, call.entry())?;
            inlined.push(InlinedFunction { function, file, line: at.1 });
            at = (call.file(), call.line());
        }
        Some(Location {
            function: self.name_of(unit, function.entry())?,
            method: None,
            definition: None,
            offset: rva.saturating_sub(function.function()),
            file: at.0.and_then(|file| self.file(unit, file)),
            line: at.1,
            inlined,
            left_out: left_out.len(),
            evidence: Evidence::Dwarf,
            approximate: false,
        })
    }

    fn functions(&mut self, unit: usize) -> Option<&Functions> {
        if !self.functions.contains_key(&unit) {
            let opened = self.units.open(unit, &mut self.allowance);
            let functions = opened.and_then(|opened| {
                let unit = opened.unit_ref(&self.units.dwarf);
                self.allowance.keeping(|allowance| Functions::read(unit, self.image_base, allowance))
            });
            self.functions.insert(unit, functions);
        }
        self.functions.get(&unit)?.as_ref()
    }

    /// The calls inlined into a function at `rva`, outermost first; none where they cannot be read.
    fn inlined_at(&mut self, unit: usize, function: UnitOffset, rva: u32) -> Vec<functions::InlinedCall> {
        let Some(place) = self.units.place_of(unit, function) else { return Vec::new() };
        if !self.inlined.contains_key(&place) {
            let opened = self.units.open(unit, &mut self.allowance);
            let calls = opened.and_then(|opened| {
                let unit = opened.unit_ref(&self.units.dwarf);
                self.allowance
                    .keeping(|allowance| InlinedCalls::read(unit, function, self.image_base, allowance))
            });
            self.inlined.insert(place, calls.unwrap_or_default());
        }
        self.inlined.get(&place).map(|calls| calls.at(rva)).unwrap_or_default()
    }

    fn line_at(&mut self, unit: usize, rva: u32) -> Option<(u32, Option<u32>)> {
        let opened = self.units.open(unit, &mut self.allowance)?;
        let program = opened.line_program.as_ref()?.header().offset().0;
        if !self.lines.contains_key(&program) {
            let lines = self.allowance.keeping(|allowance| Lines::read(&opened, self.image_base, allowance));
            self.lines.insert(program, lines.unwrap_or_default());
        }
        self.lines.get(&program)?.at(rva)
    }

    fn file(&mut self, unit: usize, file: u32) -> Option<String> {
        let opened = self.units.open(unit, &mut self.allowance)?;
        let program = opened.line_program.as_ref()?.header().offset().0;
        if let Some(known) = self.files.get(&(program, file)) {
            return known.clone();
        }
        let unit = opened.unit_ref(&self.units.dwarf);
        let path = lines::file_path(unit, file, &mut self.allowance);
        let path = path.filter(|path| self.keep_text(path));
        self.files.insert((program, file), path.clone());
        path
    }

    /// The name of the function or call that an entry describes; the linkage name has its scope.
    fn name_of(&mut self, unit: usize, entry: UnitOffset) -> Option<String> {
        let (mut unit, mut entry) = (unit, entry);
        for _ in 0..MAX_REFERENCES {
            let place = self.units.place_of(unit, entry)?;
            if let Some(known) = self.names.get(&place) {
                return Some(known.clone());
            }
            let opened = self.units.open(unit, &mut self.allowance)?;
            let opened = opened.unit_ref(&self.units.dwarf);
            let mut entries = opened.entries_raw(Some(entry)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let (mut linkage, mut name, mut reference) = (None, None, None);
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                match attribute.name() {
                    gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                        linkage = Some(attribute.value());
                    }
                    gimli::DW_AT_name => name = Some(attribute.value()),
                    gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                        reference = Some(attribute.value());
                    }
                    _ => {}
                }
            }
            self.allowance.read(entries.next_offset().0.saturating_sub(entry.0))?;
            let text = |value| opened.attr_string(value).ok();
            if let Some(text) = linkage.and_then(text).or_else(|| name.and_then(text)) {
                self.allowance.read(text.len())?;
                let name = demangle::readable(&text.to_string_lossy());
                self.keep_text(&name).then_some(())?;
                self.names.insert(place, name.clone());
                return Some(name);
            }
            (unit, entry) = match reference? {
                AttributeValue::UnitRef(entry) => (unit, entry),
                AttributeValue::DebugInfoRef(entry) => self.units.holding(entry)?,
                _ => return None,
            };
        }
        None
    }

    fn keep_text(&mut self, text: &str) -> bool {
        // Beside the text, its place in a table.
        self.allowance.keep(4 + text.len() / 16).is_some()
    }
}

impl std::fmt::Debug for DwarfSymbols<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DwarfSymbols").field("image_base", &self.image_base).finish_non_exhaustive()
    }
}
