//! DWARF inside an image, as MinGW's compilers and Rust's `windows-gnu` targets put it there.

use addr2line::gimli::{self, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

use super::{InlinedFunction, Location, Source, names};
use crate::symbols::pe::Image;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The DWARF of one image.
pub(super) struct DwarfSymbols<'a> {
    context: addr2line::Context<Reader<'a>>,
    image_base: u64,
}

impl<'a> DwarfSymbols<'a> {
    /// `None` when the image has no DWARF that can be read.
    pub(super) fn new(image: &Image<'a>) -> Option<Self> {
        let file = object::File::parse(image.data()).ok()?;
        file.section_by_name(".debug_info")?;
        // PE cannot compress sections, so their data is always borrowed.
        let section = |id: gimli::SectionId| -> Result<Reader<'a>, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
        };
        let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()?;
        Some(DwarfSymbols { context, image_base: image.image_base })
    }

    pub(super) fn lookup(&self, rva: u32) -> Option<Location> {
        let address = self.image_base.checked_add(rva.into())?;
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        let mut chain = Vec::new();
        let mut start = None;
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref()?.raw_name().ok()?;
            chain.push(InlinedFunction {
                function: names::readable(&function),
                file: frame.location.as_ref().and_then(|location| location.file.map(str::to_owned)),
                line: frame.location.as_ref().and_then(|location| location.line),
            });
            start = frame.dw_die_offset.and_then(|die| self.start_of(address, die));
        }
        let function = chain.pop()?;
        Some(Location {
            function: function.function,
            method: None,
            offset: start
                .and_then(|start| u32::try_from(address.checked_sub(start)?).ok())
                .unwrap_or_default(),
            file: function.file,
            line: function.line,
            inlined: chain,
            source: Source::Dwarf,
            approximate: false,
        })
    }

    /// The first address of the function that `die` describes.
    fn start_of(&self, address: u64, die: gimli::UnitOffset<usize>) -> Option<u64> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let entry = unit.entry(die).ok()?;
        let mut ranges = unit.die_ranges(&entry).ok()?;
        let mut start: Option<u64> = None;
        while let Ok(Some(range)) = ranges.next() {
            start = Some(start.map_or(range.begin, |start| start.min(range.begin)));
        }
        start
    }
}

impl std::fmt::Debug for DwarfSymbols<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DwarfSymbols").field("image_base", &self.image_base).finish_non_exhaustive()
    }
}
