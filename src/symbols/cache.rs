//! A folder in the layout of a symbol store that this program writes to.
//!
//! A file is written under a name of its own in `.etwprof/partial`, checked there, and then renamed to its place: so
//! the store holds only whole, verified files, whatever other processes do or when this one is killed. What a killed
//! process left behind is removed once it has not been written to for a while.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The folder inside a cache for what is no symbol file.
pub(super) const OWN_FOLDER: &str = ".etwprof";

/// One store folder that can be written to.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    stale_after: Duration,
    swept: Once,
}

/// A file that is being written. Dropped without [`Partial::commit`], it is removed.
#[derive(Debug)]
pub(super) struct Partial {
    /// `None` once closed.
    file: Option<File>,
    path: PathBuf,
}

impl Cache {
    pub(super) fn new(root: PathBuf, stale_after: Duration) -> Cache {
        Cache { root, stale_after, swept: Once::new() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the file belongs: `name/index/name`, below the first two letters of the name if the store has two
    /// tiers.
    pub(super) fn place(&self, name: &str, index: &str) -> PathBuf {
        let mut place = self.root.clone();
        if is_two_tier(&self.root) {
            place.push(first_tier(name));
        }
        place.extend([name, index, name]);
        place
    }

    /// Begins a new file.
    pub(super) fn begin(&self) -> io::Result<Partial> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = self.root.join(OWN_FOLDER).join("partial");
        fs::create_dir_all(&folder)?;
        self.swept.call_once(|| sweep(&folder, self.stale_after));
        // The clock tells this process from an earlier one with the same id, or one on another machine.
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{clock:x}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Partial { file: Some(file), path })
    }
}

impl Partial {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub(super) fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is closed"))
    }

    /// Writes all to the disk and closes, so that others can open it on Windows too.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.file.take().map_or(Ok(()), |file| file.sync_all())
    }

    /// Moves the file to its place, over whatever lies there.
    pub(super) fn commit(mut self, place: &Path) -> io::Result<()> {
        self.close()?;
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&self.path, place)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Windows removes no open file. After a commit there is nothing of that name.
        self.file = None;
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a store folder has two tiers: then a file `index2.txt` lies in it.
pub(super) fn is_two_tier(root: &Path) -> bool {
    root.join("index2.txt").is_file()
}

/// The first tier of a two-tier store: the first two letters of the name.
pub(super) fn first_tier(name: &str) -> String {
    name.chars().take(2).collect()
}

/// Removes what was begun and not written to since. A download that lives is written to far more often.
fn sweep(folder: &Path, stale_after: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        let age =
            entry.metadata().and_then(|m| m.modified()).map(|at| now.duration_since(at).unwrap_or_default());
        if age.is_ok_and(|age| age >= stale_after) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
