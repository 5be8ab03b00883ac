//! Precompiled .NET methods, for the addresses of one image.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::managed::RawName;
use super::managed::names::distinct;
use super::managed::r2r::{R2rError, R2rImage};
use super::managed::source::{ManagedPdb, il_offset};
use super::native::{Location, Source};
use super::pe::Image;

/// The names of all methods take no more than so many times the image's size, and never less than so many bytes: many
/// methods may have one long signature. Beyond, methods are numbered.
const FULL_NAMES_FACTOR: usize = 4;
const FULL_NAMES_FLOOR: usize = 16 << 20;

/// What the image's own tables say of `rvas`; an address that belongs to no method is left out. Methods have
/// their names as the runtime writes them; [`make_readable`] and [`keep_raw`] make the text.
///
/// `pdb` is that of the IL, for source lines.
///
/// # Errors
/// [`R2rError`] for an image without ReadyToRun code.
pub fn locations(
    image: &Image<'_>,
    rvas: impl IntoIterator<Item = u32>,
    pdb: Option<&ManagedPdb<'_>>,
) -> Result<FxHashMap<u32, Location>, R2rError> {
    let image_size = image.data().len();
    let image = R2rImage::parse(image)?;
    // The PDB is that of one assembly. A composite image has several, and an instantiation may be of another one.
    let own = image.assemblies().next().filter(|_| !image.is_composite());
    // Several addresses are of one method; its name is made once.
    let mut known = FxHashMap::default();
    let mut full = FULL_NAMES_FLOOR.max(FULL_NAMES_FACTOR * image_size);
    let location = |rva| {
        let (method, offset) = image.lookup(rva)?;
        let (name, il_map) = known.entry(method.index()).or_insert_with(|| {
            let mut name = method.name();
            full = full.saturating_sub(name.len());
            if full == 0 {
                name = RawName { method: format!("method {}", method.index()), ..RawName::default() };
            }
            (Arc::new(name), if pdb.is_some() { method.il_map() } else { Vec::new() })
        });
        let token =
            || method.definition().filter(|(assembly, _)| Some(*assembly) == own).map(|(_, token)| token);
        let line = pdb.and_then(|pdb| pdb.line(token()?, il_offset(il_map, offset)?));
        let (file, line) = line.map_or((None, None), |line| (Some(line.file), Some(line.line)));
        let location = Location {
            function: String::new(),
            method: Some(Arc::clone(name)),
            offset,
            file,
            line,
            inlined: Vec::new(),
            left_out: 0,
            source: Source::R2r,
            // P/Invokes of one signature share their marshalling code: the first one's name alone would be a guess.
            approximate: method.same_code().nth(1).is_some(),
        };
        Some((rva, location))
    };
    Ok(rvas.into_iter().filter_map(location).collect())
}

/// Gives the methods among `locations` readable names with parameters that tell them apart.
pub fn make_readable<'l>(locations: impl IntoIterator<Item = &'l mut Location>) {
    let mut methods: Vec<_> = locations.into_iter().filter(|location| location.method.is_some()).collect();
    let texts = distinct(methods.iter().filter_map(|location| location.method.as_deref()), true);
    for (location, text) in methods.iter_mut().zip(texts) {
        location.function = text;
    }
}

/// Shows the methods among `locations` as the runtime does.
pub fn keep_raw<'l>(locations: impl IntoIterator<Item = &'l mut Location>) {
    for location in locations {
        if let Some(name) = &location.method {
            location.function = name.to_string();
        }
    }
}
