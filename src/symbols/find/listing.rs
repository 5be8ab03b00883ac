//! The names in folders, for systems on which case counts: stores were made where it does not.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Names that are listed of one folder. Microsoft's own store has more; nobody has it as a folder.
const MOST_NAMES: usize = 1 << 18;
/// Names that are kept of all folders. The rest is listed each time that it is asked for.
const MOST_KEPT: usize = 1 << 20;

/// The names in a folder by their lower-case form.
type Names = FxHashMap<String, Vec<String>>;

/// Folders that were listed, each once.
#[derive(Default)]
pub(super) struct Listings {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    folders: FxHashMap<PathBuf, Arc<Names>>,
    names: usize,
}

impl Listings {
    /// What lies in `folder` by this name: spelt so, then in other cases. The folder is listed only when more than the
    /// first is wanted.
    pub(super) fn named<'a>(
        &'a self,
        folder: PathBuf,
        name: &'a str,
    ) -> impl Iterator<Item = PathBuf> + use<'a> {
        let exact = Some(folder.join(name)).filter(|path| path.exists());
        let others = std::iter::once_with(move || self.others(&folder, name)).flatten();
        exact.into_iter().chain(others)
    }

    fn others(&self, folder: &Path, name: &str) -> Vec<PathBuf> {
        // Windows finds a file by any spelling.
        if cfg!(windows) {
            return Vec::new();
        }
        let names = self.list(folder);
        let spelt = names.get(&name.to_lowercase()).map_or(&[][..], Vec::as_slice);
        spelt.iter().filter(|other| *other != name).map(|other| folder.join(other)).collect()
    }

    /// Another thread that wants the same folder waits, instead of listing it too.
    fn list(&self, folder: &Path) -> Arc<Names> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = kept.folders.get(folder) {
            return Arc::clone(names);
        }
        let (names, count) = list(folder);
        let names = Arc::new(names);
        if kept.names + count <= MOST_KEPT {
            kept.names += count;
            kept.folders.insert(folder.to_owned(), Arc::clone(&names));
        }
        names
    }
}

/// A folder that cannot be read has no names for us, nor are there any in a name that is no text.
fn list(folder: &Path) -> (Names, usize) {
    let mut names = Names::default();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES) {
        if let Ok(name) = entry.file_name().into_string() {
            names.entry(name.to_lowercase()).or_default().push(name);
            count += 1;
        }
    }
    // The order of a listing is the file system's.
    names.values_mut().for_each(|spelt| spelt.sort());
    (names, count)
}
