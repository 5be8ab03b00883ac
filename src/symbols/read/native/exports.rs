//! Names from the image itself: its exports, and the COFF symbol table that MinGW's linkers leave in it.

use object::{Object, ObjectSymbol, SymbolIndex, SymbolKind};

use crate::symbols::read::limits::shortened;
use crate::symbols::read::pe::{Image, until_zero};

use crate::symbols::read::functions::{Functions, Reach};
use crate::symbols::read::location::{Evidence, Location};
use crate::symbols::read::spelling::demangle;

/// The names in an image, sorted by RVA.
#[derive(Debug)]
pub(super) struct ImageNames<'a> {
    image: Image<'a>,
    names: Vec<ImageName<'a>>,
}

/// A name stays in the file until it is asked for: many may be one and the same long text there.
#[derive(Debug)]
struct ImageName<'a> {
    rva: u32,
    name: Name<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Name<'a> {
    Export(&'a [u8]),
    Symbol(SymbolIndex),
}

impl<'a> ImageNames<'a> {
    pub(super) fn new(image: &Image<'a>) -> Self {
        let exports = image.raw_exports().map(|(rva, name)| ImageName { rva, name: Name::Export(name) });
        let mut names: Vec<_> = coff_symbols(image).into_iter().chain(exports).collect();
        names.sort_by_key(|name| name.rva);
        names.dedup_by_key(|name| name.rva);
        ImageNames { image: image.clone(), names }
    }

    /// The readable form of a name, and where it is from.
    fn read(&self, name: Name<'a>) -> Option<(String, Evidence)> {
        let machine = self.image.machine;
        match name {
            Name::Export(bytes) => {
                let name = String::from_utf8_lossy(until_zero(bytes));
                Some((demangle::export(&name, machine), Evidence::Export))
            }
            Name::Symbol(index) => {
                let file = object::File::parse(self.image.data()).ok()?;
                let symbol = file.symbol_by_index(index).ok()?;
                let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
                Some((demangle::linker_symbol(&shortened(name), machine), Evidence::Public))
            }
        }
    }

    pub(super) fn lookup(&self, rva: u32, functions: Option<&Functions<'_>>) -> Option<Location> {
        let section = self.image.section_at(rva).filter(|section| section.is_executable())?;
        let nearest = |rva: u32| {
            let next = self.names.partition_point(|name| name.rva <= rva);
            self.names.get(next.checked_sub(1)?).filter(|name| name.rva >= section.rva)
        };
        let reach =
            |name: &ImageName<'_>| functions.map_or(Reach::Unknown, |image| image.reach(name.rva, rva));
        let of_address = nearest(rva).map(|name| (name, name.rva, reach(name)));
        let of_address = of_address.filter(|(name, _, reach)| match reach {
            Reach::Inside => true,
            Reach::Outside => false,
            // An image has an export here and there, but a symbol for each function.
            Reach::Unknown => matches!(name.name, Name::Symbol(_)),
        });
        let (name, start, reach) = of_address.or_else(|| {
            // A part of a function that lies elsewhere has the function's name.
            let part = functions?.at(rva)?;
            let name = nearest(part.function).filter(|name| name.rva == part.function)?;
            Some((name, part.start, Reach::Inside))
        })?;
        let (function, evidence) = self.read(name.name)?;
        Some(Location {
            function,
            method: None,
            definition: None,
            offset: rva.saturating_sub(start),
            file: None,
            line: None,
            inlined: Vec::new(),
            left_out: 0,
            evidence,
            approximate: reach != Reach::Inside,
        })
    }
}

fn coff_symbols<'a>(image: &Image<'a>) -> Vec<ImageName<'a>> {
    let Ok(file) = object::File::parse(image.data()) else { return Vec::new() };
    let symbols = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let names = symbols.filter_map(|symbol| {
        let rva = u32::try_from(symbol.address().checked_sub(image.image_base)?).ok()?;
        Some(ImageName { rva, name: Name::Symbol(symbol.index()) })
    });
    names.collect()
}
