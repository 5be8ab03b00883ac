//! The PDB that lies where the build left it: beside the image, or at the path that the image names.

use std::path::{Path, PathBuf};

use super::debug_id::DebugId;
use super::native::pdb;
use super::pe::{Image, PdbKind};
use crate::mmap::Mapped;

/// A PDB that was found and opened, with the files that were looked at and are not it.
#[derive(Debug, Default)]
pub struct Found {
    /// The PDB that belongs to the image.
    pub pdb: Option<(PathBuf, Mapped)>,
    /// Files at the places of the PDB that are not its, each with the reason.
    pub rejected: Vec<(PathBuf, Rejection)>,
}

/// Why a file at the place of a PDB is not used.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// It belongs to another build of the image.
    #[error("has id {found}, the image needs {expected}")]
    OtherBuild {
        /// What the file carries.
        found: DebugId,
        /// What the image asks for.
        expected: DebugId,
    },
    /// It is no PDB, or a damaged one.
    #[error(transparent)]
    Unreadable(#[from] pdb::PdbError),
}

/// Looks for the Windows PDB of the image at `path`: under the name that the image gives, beside the image; under
/// the image's own name, with its extension replaced or followed by `.pdb`; at the very path that the image gives.
pub fn find(path: &Path, image: &Image<'_>) -> Found {
    let mut found = Found::default();
    for wanted in image.pdbs().iter().filter(|pdb| pdb.kind == PdbKind::Windows) {
        let beside = path.with_file_name(wanted.file_name());
        let mut appended = path.as_os_str().to_owned();
        appended.push(".pdb");
        let candidates =
            [beside, path.with_extension("pdb"), PathBuf::from(appended), PathBuf::from(&wanted.path)];
        for (index, candidate) in candidates.iter().enumerate() {
            let is_repeated = candidates.iter().take(index).any(|earlier| earlier == candidate);
            // A file that is not there or cannot be opened is no news: most images travel without their PDB.
            let Some(file) = (!is_repeated).then(|| Mapped::open(candidate).ok()).flatten() else { continue };
            match pdb::id(&file) {
                Ok(id) if id == wanted.id => {
                    found.pdb = Some((candidate.clone(), file));
                    return found;
                }
                Ok(id) => {
                    let rejection = Rejection::OtherBuild { found: id, expected: wanted.id };
                    found.rejected.push((candidate.clone(), rejection));
                }
                Err(error) => found.rejected.push((candidate.clone(), error.into())),
            }
        }
    }
    found
}
