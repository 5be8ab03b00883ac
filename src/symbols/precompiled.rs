//! Precompiled .NET methods, for the addresses of one image.

use rustc_hash::FxHashMap;

use super::managed::RawName;
use super::managed::names::distinct;
use super::managed::r2r::{R2rError, R2rImage};
use super::native::{Location, Source};
use super::pe::Image;

/// What the image's own tables say of `rvas`; an address that belongs to no method is left out.
///
/// Methods have short readable names, longer ones where two of them would read alike; `raw` names them as the
/// runtime does.
///
/// # Errors
/// [`R2rError`] for an image without ReadyToRun code.
pub fn locations(
    image: &Image<'_>,
    rvas: impl IntoIterator<Item = u32>,
    raw: bool,
) -> Result<FxHashMap<u32, Location>, R2rError> {
    let image = R2rImage::parse(image)?;
    // Several addresses are of one method; its name is made once.
    let mut places: FxHashMap<usize, usize> = FxHashMap::default();
    let mut names: Vec<RawName> = Vec::new();
    let mut shared: Vec<bool> = Vec::new();
    let mut found: Vec<(u32, usize, u32)> = Vec::new();
    for rva in rvas {
        let Some((method, offset)) = image.lookup(rva) else { continue };
        let place = *places.entry(method.index()).or_insert_with(|| {
            names.push(method.name());
            shared.push(method.same_code().nth(1).is_some());
            names.len() - 1
        });
        found.push((rva, place, offset));
    }
    let texts: Vec<String> =
        if raw { names.iter().map(RawName::to_string).collect() } else { distinct(&names) };
    let location = |place: usize, offset: u32| {
        let text = texts.get(place)?;
        // P/Invokes of one signature share their marshalling code: the first one's name alone would be a guess.
        let several = shared.get(place).copied().unwrap_or(false);
        Some(Location {
            function: if several { format!("{text} (shared)") } else { text.clone() },
            offset,
            file: None,
            line: None,
            inlined: Vec::new(),
            source: Source::R2r,
            approximate: several,
        })
    };
    Ok(found.into_iter().filter_map(|(rva, place, offset)| Some((rva, location(place, offset)?))).collect())
}
