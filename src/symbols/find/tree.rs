//! A folder with everything below it: where an application or a .NET runtime was copied to.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Files that are listed of one folder. A runtime has hundreds, a whole system drive some hundred thousand.
const MOST_FILES: usize = 1 << 20;

/// The files of a folder and its subfolders by their names. Listed when the first one is asked for.
pub(super) struct Tree {
    root: PathBuf,
    files: OnceLock<FxHashMap<String, Vec<PathBuf>>>,
}

impl Tree {
    pub(super) fn new(root: PathBuf) -> Tree {
        Tree { root, files: OnceLock::new() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The files of this name, in whatever case.
    pub(super) fn named(&self, name: &str) -> &[PathBuf] {
        let files = self.files.get_or_init(|| list(&self.root));
        files.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }
}

/// Links to folders are not followed: they may lead in a circle.
fn list(root: &Path) -> FxHashMap<String, Vec<PathBuf>> {
    let mut files: FxHashMap<String, Vec<PathBuf>> = FxHashMap::default();
    let (mut folders, mut count) = (vec![root.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        // A folder that cannot be read has no files for us.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if count < MOST_FILES {
                count += 1;
                let name = entry.file_name().to_string_lossy().to_lowercase();
                files.entry(name).or_default().push(entry.path());
            }
        }
    }
    // The order of a listing is the file system's.
    files.values_mut().for_each(|paths| paths.sort());
    files
}
