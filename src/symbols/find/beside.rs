//! The PDB that lies where the build left it: beside the image, or at the path that the image names.

use std::path::{Path, PathBuf};

use crate::symbols::read::pe::PdbReference;

/// Where the PDB of the image at `image` may lie: under the name that the image gives, beside the image; under the
/// image's own name, with its extension replaced or followed by `.pdb`; at the very path that the image gives.
pub fn places(image: &Path, pdb: &PdbReference) -> Vec<PathBuf> {
    let mut appended = image.as_os_str().to_owned();
    appended.push(".pdb");
    let mut places = vec![image.with_file_name(pdb.file_name())];
    let given = Some(&pdb.path).filter(|path| path.contains(['/', '\\'])).map(PathBuf::from);
    for place in [image.with_extension("pdb"), PathBuf::from(appended)].into_iter().chain(given) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}
