//! The units of DWARF: one for each piece that a compiler made at once.
//!
//! A unit is a tree of entries, and its first entry says which addresses it has. Headers and ranges of all units are
//! read at once; the entries when an address asks for them.

use std::sync::Arc;

use gimli::{Abbreviations, AttributeValue, DebugAbbrevOffset, DebugInfoOffset, Reader as _, Section as _};
use rustc_hash::FxHashMap;

use super::allowance::Allowance;
use super::extent::Extent;
use super::functions::Functions;
use super::reader::{Reader, Unit};

/// Longer tables are damage, bytes: a table of abbreviations has a few thousand, one of files some hundred thousand.
const MAX_ABBREVIATIONS: usize = 1 << 20;
const MAX_LINE_HEADER: usize = 1 << 19;
/// Bytes in memory for a byte of the two tables, at most, and how many of both may be open at a time.
const MEMORY_OF_ABBREVIATIONS: usize = 32;
const MEMORY_OF_LINE_HEADER: usize = 96;
const MAX_OPEN: usize = 24 << 20;

/// All units of a file.
pub(super) struct Units<'a> {
    pub(super) dwarf: gimli::Dwarf<Reader<'a>>,
    /// Where each begins in `.debug_info`, ascending.
    offsets: Vec<usize>,
    /// Sorted by start.
    ranges: Vec<UnitRange>,
    open: FxHashMap<usize, Arc<Unit<'a>>>,
    abbreviations: FxHashMap<usize, Arc<Abbreviations>>,
    /// Estimate of the memory of both.
    open_size: usize,
}

#[derive(Clone, Copy, Debug)]
struct UnitRange {
    start: u32,
    end: u32,
    /// The highest end up to here.
    reach: u32,
    unit: u32,
}

impl<'a> Units<'a> {
    pub(super) fn new(dwarf: gimli::Dwarf<Reader<'a>>, image_base: u64, allowance: &mut Allowance) -> Self {
        let mut units = Units {
            dwarf,
            offsets: Vec::new(),
            ranges: Vec::new(),
            open: FxHashMap::default(),
            abbreviations: FxHashMap::default(),
            open_size: 0,
        };
        let mut has_code = Vec::new();
        let mut headers = units.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(DebugInfoOffset(offset)) = header.debug_info_offset() else { continue };
            // Other units refer to partial ones; types have no code.
            has_code
                .push(matches!(header.type_(), gimli::UnitType::Compilation | gimli::UnitType::Skeleton(_)));
            units.offsets.push(offset);
        }
        for (index, _) in has_code.iter().enumerate().filter(|(_, has_code)| **has_code) {
            let added = units.ranges.len();
            let ranges = allowance.keeping(|allowance| units.ranges_of(index, image_base, allowance));
            units.ranges.extend(ranges.unwrap_or_default().into_iter().map(|(start, end)| UnitRange {
                start,
                end,
                reach: 0,
                unit: index as u32,
            }));
            if added == units.ranges.len() {
                units.close();
            }
        }
        units.ranges.sort_by_key(|range| range.start);
        let mut reach = 0;
        for range in &mut units.ranges {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        units
    }

    /// The ranges of one unit: those that its first entry states, else those of its functions.
    fn ranges_of(
        &mut self,
        index: usize,
        image_base: u64,
        allowance: &mut Allowance,
    ) -> Option<Vec<(u32, u32)>> {
        let unit = self.open(index, allowance)?;
        let unit = unit.unit_ref(&self.dwarf);
        let mut entries = unit.entries_raw(None).ok()?;
        let root = entries.read_abbreviation().ok()??;
        let mut extent = Extent::default();
        for spec in root.attributes() {
            extent.take(unit, &entries.read_attribute(*spec).ok()?);
        }
        let mut ranges = Vec::new();
        extent.each(unit, image_base, allowance, |start, end| ranges.push((start, end)))?;
        if ranges.is_empty() {
            let functions = Functions::read(unit, image_base, allowance)?;
            ranges.extend(functions.ranges());
        }
        Some(ranges)
    }

    /// The units that may have the code at `rva`.
    pub(super) fn at(&self, rva: u32, allowance: &mut Allowance) -> Vec<usize> {
        let next = self.ranges.partition_point(|range| range.start <= rva);
        let before = self.ranges.get(..next).unwrap_or_default().iter().rev();
        let near =
            before.take_while(|range| range.reach > rva && allowance.read(size_of::<UnitRange>()).is_some());
        let mut units: Vec<usize> =
            near.filter(|range| rva < range.end).map(|range| range.unit as usize).collect();
        units.dedup();
        units
    }

    /// The unit of an entry in `.debug_info`, and the entry's place there.
    pub(super) fn holding(&self, entry: DebugInfoOffset) -> Option<(usize, gimli::UnitOffset)> {
        let index = self.offsets.partition_point(|offset| *offset <= entry.0).checked_sub(1)?;
        let start = self.offsets.get(index)?;
        Some((index, gimli::UnitOffset(entry.0.checked_sub(*start)?)))
    }

    /// Where an entry of a unit is in `.debug_info`.
    pub(super) fn place_of(&self, unit: usize, entry: gimli::UnitOffset) -> Option<usize> {
        self.offsets.get(unit)?.checked_add(entry.0)
    }

    /// A unit, ready to read its entries.
    pub(super) fn open(&mut self, index: usize, allowance: &mut Allowance) -> Option<Arc<Unit<'a>>> {
        if let Some(unit) = self.open.get(&index) {
            return Some(Arc::clone(unit));
        }
        if self.open_size > MAX_OPEN {
            self.close();
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(*self.offsets.get(index)?)).ok()?;
        let abbreviations = self.abbreviations(header.debug_abbrev_offset(), allowance)?;
        let mut entries = header.entries_raw(&abbreviations, None).ok()?;
        let root = entries.read_abbreviation().ok()??;
        for spec in root.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            if let (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(program)) =
                (attribute.name(), attribute.value())
            {
                let len = self.line_header_len(program.0).filter(|len| *len <= MAX_LINE_HEADER)?;
                allowance.read(len)?;
                self.open_size += MEMORY_OF_LINE_HEADER * len;
            }
        }
        let unit = Arc::new(Unit::new_with_abbreviations(&self.dwarf, header, abbreviations).ok()?);
        self.open.insert(index, Arc::clone(&unit));
        self.open_size += size_of::<Unit<'_>>();
        Some(unit)
    }

    /// Forgets what is open.
    fn close(&mut self) {
        self.open.clear();
        self.abbreviations.clear();
        self.open_size = 0;
    }

    fn abbreviations(
        &mut self,
        offset: DebugAbbrevOffset,
        allowance: &mut Allowance,
    ) -> Option<Arc<Abbreviations>> {
        if let Some(known) = self.abbreviations.get(&offset.0) {
            return Some(Arc::clone(known));
        }
        let (len, is_whole) = abbreviations_len(*self.dwarf.debug_abbrev.reader(), offset.0);
        // Decoding it takes longer than decoding entries.
        allowance.read(8 * len)?;
        is_whole.then_some(())?;
        let table = Arc::new(self.dwarf.debug_abbrev.abbreviations(offset).ok()?);
        self.abbreviations.insert(offset.0, Arc::clone(&table));
        self.open_size += MEMORY_OF_ABBREVIATIONS * len;
        Some(table)
    }

    /// The length of a line program's header, which is what it takes memory for.
    fn line_header_len(&self, offset: usize) -> Option<usize> {
        let mut reader = *self.dwarf.debug_line.reader();
        reader.skip(offset).ok()?;
        let (_, format) = reader.read_initial_length().ok()?;
        let version = reader.read_u16().ok()?;
        // Address and segment sizes.
        reader.skip(if version >= 5 { 2 } else { 0 }).ok()?;
        reader.read_length(format).ok()
    }
}

/// The length in bytes of the table of abbreviations at an offset, and whether it ends there: one that is too long does
/// not, nor one that the section cuts.
fn abbreviations_len(section: Reader<'_>, offset: usize) -> (usize, bool) {
    let mut reader = section;
    if reader.skip(offset).is_err() {
        return (0, false);
    }
    let before = reader.len();
    while before - reader.len() <= MAX_ABBREVIATIONS {
        match skip_abbreviation(&mut reader) {
            Some(true) => {}
            Some(false) => return (before - reader.len(), true),
            None => break,
        }
    }
    (before - reader.len(), false)
}

/// Skips one abbreviation; `Some(false)` at the end of the table, `None` at the end of the section.
fn skip_abbreviation(reader: &mut Reader<'_>) -> Option<bool> {
    if reader.read_uleb128().ok()? == 0 {
        return Some(false);
    }
    reader.read_uleb128().ok()?; // tag
    reader.read_u8().ok()?; // whether it has children
    loop {
        let (name, form) = (reader.read_uleb128().ok()?, reader.read_uleb128().ok()?);
        if form == u64::from(gimli::DW_FORM_implicit_const.0) {
            reader.read_sleb128().ok()?;
        }
        if (name, form) == (0, 0) {
            return Some(true);
        }
    }
}
