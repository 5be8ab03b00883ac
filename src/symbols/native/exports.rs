//! Names from the image itself: its exports, and the COFF symbol table that MinGW's linkers leave in it.

use crate::symbols::pe::Image;
use object::{Object, ObjectSymbol, SymbolKind};

use super::function_table::{FunctionTable, Verdict};
use super::{Location, Source, names};

/// The names in an image, sorted by RVA.
#[derive(Debug)]
pub(super) struct ImageNames<'a> {
    image: Image<'a>,
    names: Vec<ImageName>,
}

#[derive(Debug)]
struct ImageName {
    rva: u32,
    name: String,
    source: Source,
}

impl<'a> ImageNames<'a> {
    pub(super) fn new(image: &Image<'a>) -> Self {
        let exports = image.exports().into_iter().map(|export| ImageName {
            rva: export.rva,
            name: export.name.into_owned(),
            source: Source::Export,
        });
        let mut names: Vec<_> = coff_symbols(image).into_iter().chain(exports).collect();
        names.sort_by_key(|name| name.rva);
        names.dedup_by_key(|name| name.rva);
        ImageNames { image: image.clone(), names }
    }

    pub(super) fn lookup(&self, rva: u32, functions: Option<&FunctionTable<'_>>) -> Option<Location> {
        let section = self.image.section_at(rva).filter(|section| section.is_executable())?;
        let nearest = |rva: u32| {
            let next = self.names.partition_point(|name| name.rva <= rva);
            self.names.get(next.checked_sub(1)?).filter(|name| name.rva >= section.rva)
        };
        let verdict =
            |name: &ImageName| functions.map_or(Verdict::Unknown, |table| table.verdict(name.rva, rva));
        let name = nearest(rva).filter(|name| verdict(name) != Verdict::Outside).or_else(|| {
            // A part of a function that lies elsewhere has the function's name.
            let function = functions?.at(rva)?.function;
            nearest(function).filter(|name| name.rva == function)
        })?;
        Some(Location {
            function: match name.source {
                Source::Export => names::export(&name.name, self.image.machine),
                _ => names::linker_symbol(&name.name, self.image.machine),
            },
            method: None,
            offset: rva.saturating_sub(name.rva),
            file: None,
            line: None,
            inlined: Vec::new(),
            left_out: 0,
            source: name.source,
            approximate: true,
        })
    }
}

fn coff_symbols(image: &Image<'_>) -> Vec<ImageName> {
    let mut names = Vec::new();
    let mut add = |address: u64, name: &str| {
        if let Some(rva) = address.checked_sub(image.image_base).and_then(|rva| u32::try_from(rva).ok()) {
            names.push(ImageName { rva, name: name.to_owned(), source: Source::Public });
        }
    };
    let Ok(file) = object::File::parse(image.data()) else { return names };
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
    {
        if let Ok(name) = symbol.name() {
            add(symbol.address(), name);
        }
    }
    names
}
