//! The functions of a unit, and what is inlined into each.
//!
//! Entries nest: a function has its inlined calls inside, each of those its own, and blocks between them. The nesting
//! is a matter of the file, so it is walked along a list of what is open and never by calls of our own.

use gimli::{AttributeValue, UnitOffset};

use super::allowance::Allowance;
use super::extent::Extent;
use super::reader::UnitRef;

/// The functions of one unit by address.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Sorted by start.
    ranges: Vec<FunctionRange>,
}

/// A function, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionRange {
    start: u32,
    end: u32,
    entry: u32,
    /// The first address of the whole function.
    function: u32,
}

impl FunctionRange {
    /// The first address of the function.
    pub(super) fn function(&self) -> u32 {
        self.function
    }

    /// The entry that describes it.
    pub(super) fn entry(&self) -> UnitOffset {
        UnitOffset(self.entry as usize)
    }
}

impl Functions {
    /// Walks all entries of a unit.
    pub(super) fn read(unit: UnitRef<'_, '_>, image_base: u64, allowance: &mut Allowance) -> Option<Self> {
        let mut ranges = Vec::new();
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                allowance.read(entries.next_offset().0 - offset.0)?;
                continue;
            }
            let mut extent = Extent::default();
            for spec in abbreviation.attributes() {
                extent.take(unit, &entries.read_attribute(*spec).ok()?);
            }
            allowance.read(entries.next_offset().0 - offset.0)?;
            let entry = u32::try_from(offset.0).ok()?;
            let first = ranges.len();
            extent.each(unit, image_base, allowance, |start, end| {
                ranges.push(FunctionRange { start, end, entry, function: start });
            })?;
            let parts = ranges.get_mut(first..).unwrap_or_default();
            let start = parts.iter().map(|part| part.start).min().unwrap_or_default();
            parts.iter_mut().for_each(|part| part.function = start);
        }
        ranges.sort_by_key(|range| range.start);
        Some(Functions { ranges })
    }

    /// Start and end of each range.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().map(|range| (range.start, range.end))
    }

    /// The function whose code is at `rva`.
    pub(super) fn at(&self, rva: u32) -> Option<FunctionRange> {
        let next = self.ranges.partition_point(|range| range.start <= rva);
        // Folded functions share their range; one may lie within another.
        self.ranges.get(..next)?.iter().rev().take(8).find(|range| rva < range.end).copied()
    }
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct InlinedCall {
    entry: u32,
    /// Number of the file of the call, if it has one.
    file: Option<u32>,
    /// 0 for none.
    line: u32,
}

impl InlinedCall {
    /// The entry that describes it.
    pub(super) fn entry(&self) -> UnitOffset {
        UnitOffset(self.entry as usize)
    }

    /// Number of the file that the call is in.
    pub(super) fn file(&self) -> Option<u32> {
        self.file
    }

    /// Line of the call.
    pub(super) fn line(&self) -> Option<u32> {
        Some(self.line).filter(|line| *line != 0)
    }
}

/// The calls inlined into one function.
#[derive(Debug, Default)]
pub(super) struct InlinedCalls {
    calls: Vec<InlinedCall>,
    /// Sorted by parent, then start.
    ranges: Vec<CallRange>,
}

#[derive(Clone, Copy, Debug)]
struct CallRange {
    /// The number of the call around it plus one; 0 in the function itself.
    parent: u32,
    start: u32,
    end: u32,
    call: u32,
}

impl InlinedCalls {
    /// Walks the entries inside a function's.
    pub(super) fn read(
        unit: UnitRef<'_, '_>,
        function: UnitOffset,
        image_base: u64,
        allowance: &mut Allowance,
    ) -> Option<Self> {
        let mut found = InlinedCalls::default();
        let mut entries = unit.entries_raw(Some(function)).ok()?;
        let depth = entries.next_depth();
        let own = entries.read_abbreviation().ok()??;
        entries.skip_attributes(own.attributes()).ok()?;
        // The calls around the entry at hand: depth, and number plus one.
        let mut open: Vec<(isize, u32)> = Vec::new();
        // Of a function that is declared inside, the calls are its own.
        let mut other: Option<isize> = None;
        while !entries.is_empty() && entries.next_depth() > depth {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            open.truncate(open.partition_point(|(around, _)| *around < depth));
            other = other.filter(|around| *around < depth);
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            if abbreviation.tag() != gimli::DW_TAG_inlined_subroutine || other.is_some() {
                if abbreviation.tag() == gimli::DW_TAG_subprogram && other.is_none() {
                    other = Some(depth);
                }
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                allowance.read(entries.next_offset().0 - offset.0)?;
                continue;
            }
            let mut extent = Extent::default();
            let mut call = InlinedCall { entry: u32::try_from(offset.0).ok()?, file: None, line: 0 };
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                match (attribute.name(), attribute.value()) {
                    // Until DWARF 5, 0 stood for no file.
                    (gimli::DW_AT_call_file, AttributeValue::FileIndex(file)) => {
                        let is_file = file > 0 || unit.header.version() >= 5;
                        call.file = u32::try_from(file).ok().filter(|_| is_file);
                    }
                    (gimli::DW_AT_call_line, _) => {
                        call.line =
                            attribute.udata_value().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
                    }
                    _ => extent.take(unit, &attribute),
                }
            }
            allowance.read(entries.next_offset().0 - offset.0)?;
            allowance.keep(2)?;
            let parent = open.last().map_or(0, |(_, parent)| *parent);
            let number = u32::try_from(found.calls.len()).ok()?;
            found.calls.push(call);
            open.push((depth, number + 1));
            extent.each(unit, image_base, allowance, |start, end| {
                found.ranges.push(CallRange { parent, start, end, call: number });
            })?;
        }
        found.ranges.sort_by_key(|range| (range.parent, range.start));
        Some(found)
    }

    /// The calls that hold `rva`, outermost first.
    pub(super) fn at(&self, rva: u32) -> Vec<InlinedCall> {
        let mut chain = Vec::new();
        let mut parent = 0;
        loop {
            let next = self.ranges.partition_point(|range| (range.parent, range.start) <= (parent, rva));
            let last = next.checked_sub(1).and_then(|last| self.ranges.get(last));
            let Some(range) = last.filter(|range| range.parent == parent && rva < range.end) else {
                return chain;
            };
            let Some(call) = self.calls.get(range.call as usize) else { return chain };
            chain.push(*call);
            // A call comes behind the one around it, so this ends.
            parent = range.call + 1;
        }
    }
}
