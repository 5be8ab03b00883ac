//! Precompiled .NET methods, for the addresses of one image.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dotnet::lines::{ManagedPdb, il_offset};
use super::dotnet::r2r::R2rImage;
use super::location::{Definition, Evidence, Location};
use super::spelling::method::RawName;
use super::spelling::method::distinct;

/// The names of all methods take no more than so many times the image's size, and never less than so many bytes: many
/// methods may have one long signature. Beyond, methods are numbered.
const FULL_NAMES_FACTOR: usize = 4;
const FULL_NAMES_FLOOR: usize = 16 << 20;

/// The PDBs of IL, by the simple names of their assemblies.
pub type PdbsOfIl<'p> = FxHashMap<String, ManagedPdb<'p>>;

/// What the image's own tables say of `rvas`; an address that belongs to no method is left out. Methods have
/// their names as the runtime writes them; [`make_readable`] and [`keep_raw`] make the text. A method that would need
/// the metadata of an assembly that is not at hand has what there is, as [`Evidence::Token`].
///
/// `pdbs` are for source lines.
pub fn locations(
    image: &R2rImage<'_>,
    rvas: impl IntoIterator<Item = u32>,
    pdbs: &PdbsOfIl<'_>,
) -> HashMap<u32, Location> {
    let own = image.assemblies().next().filter(|_| !image.is_composite());
    // Several addresses are of one method; its name is made once.
    let mut known = HashMap::new();
    let mut full = FULL_NAMES_FLOOR.max(FULL_NAMES_FACTOR * image.file_size());
    let location = |rva| {
        let (method, offset) = image.lookup(rva)?;
        let (named, il_map) = known.entry(method.index()).or_insert_with(|| {
            let definition = method.definition();
            let pdb = definition.and_then(|(assembly, _)| pdbs.get(assembly));
            let spelled = method.spell();
            let mut name = spelled.name;
            full = full.saturating_sub(name.len());
            if full == 0 {
                name = RawName { method: format!("method {}", method.index()), ..RawName::default() };
            }
            let unknown = definition.filter(|(assembly, _)| spelled.missing.contains(assembly));
            let other = definition.filter(|(assembly, _)| Some(*assembly) != own);
            let named = Location {
                function: unknown
                    .map(|(assembly, token)| format!("{assembly}!method 0x{token:08x}"))
                    .unwrap_or_default(),
                method: unknown.is_none().then(|| Arc::new(name)),
                definition: other.map(|(assembly, token)| Definition { assembly: assembly.into(), token }),
                offset: 0,
                file: None,
                line: None,
                inlined: Vec::new(),
                left_out: 0,
                evidence: if spelled.missing.is_empty() { Evidence::R2r } else { Evidence::Token },
                // P/Invokes of one signature share their marshalling code: the first one's name alone would be a guess.
                approximate: method.same_code().nth(1).is_some(),
            };
            (named, if pdb.is_some() { method.il_map() } else { Vec::new() })
        });
        let line = method
            .definition()
            .and_then(|(assembly, token)| pdbs.get(assembly)?.line(token, il_offset(il_map, offset)?));
        let (file, line) = line.map_or((None, None), |line| (Some(line.file), Some(line.line)));
        Some((rva, Location { offset, file, line, ..named.clone() }))
    };
    rvas.into_iter().filter_map(location).collect()
}

/// The assemblies whose metadata the names at `rvas` lack, by their simple names.
pub fn missing(image: &R2rImage<'_>, rvas: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    let mut seen = FxHashSet::default();
    let methods = rvas.into_iter().filter_map(|rva| Some(image.lookup(rva)?.0));
    let methods = methods.filter(|method| seen.insert(method.index()));
    methods.flat_map(|method| method.spell().missing).map(str::to_owned).collect()
}

/// The names of all methods of these (outermost) types by the assemblies that define them, as far as they are no longer
/// together than names may be. `None` stands for an image's own assembly.
pub(crate) fn methods_of(
    image: &R2rImage<'_>,
    types: &FxHashSet<String>,
) -> Vec<(Option<Arc<str>>, Vec<RawName>)> {
    let own = image.assemblies().next().filter(|_| !image.is_composite());
    let mut full = FULL_NAMES_FLOOR.max(FULL_NAMES_FACTOR * image.file_size());
    let mut names: FxHashMap<Option<&str>, Vec<RawName>> = FxHashMap::default();
    for method in image.methods() {
        let name = method.name();
        full = full.saturating_sub(name.len());
        if full == 0 {
            break;
        }
        if types.contains(name.outer_type()) {
            let assembly =
                method.definition().map(|(assembly, _)| assembly).filter(|name| Some(*name) != own);
            names.entry(assembly).or_default().push(name);
        }
    }
    names.into_iter().map(|(assembly, names)| (assembly.map(Arc::from), names)).collect()
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
