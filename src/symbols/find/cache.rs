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
use std::thread;
use std::time::{Duration, SystemTime};

/// The folder inside a cache for what is no symbol file.
pub(super) const OWN_FOLDER: &str = ".etwprof";

/// The waits for who holds a new file: each twice the one before, 2.5 s in all.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LAST_WAIT: Duration = Duration::from_millis(1280);

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

    /// Moves the file to its place, over whatever lies there; well enough if `is_there` says that the very file is there:
    /// another process may have put it there, and on Windows may have it open.
    pub(super) fn commit(mut self, place: &Path, is_there: &dyn Fn() -> bool) -> io::Result<()> {
        self.close()?;
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut wait = FIRST_WAIT;
        loop {
            match fs::rename(&self.path, place) {
                Err(_) if is_there() => return Ok(()),
                Err(error) if is_held(&error) && wait <= LAST_WAIT => {
                    thread::sleep(wait);
                    wait *= 2;
                }
                result => return result,
            }
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Windows removes no open file. After a commit there is nothing of that name.
        self.file = None;
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether another program has the file open and keeps it from being renamed: a virus scanner looks at what was just
/// written. Windows calls that an access denied (5), a sharing violation (32) or a lock violation (33).
fn is_held(error: &io::Error) -> bool {
    cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33))
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

#[cfg(test)]
#[cfg(windows)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::windows::fs::OpenOptionsExt;
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::Cache;

    const FILE_SHARE_READ: u32 = 1;

    /// Opens a file as a program does that lets nobody rename it.
    fn hold(path: &Path) -> File {
        File::options().read(true).share_mode(FILE_SHARE_READ).open(path).unwrap()
    }

    fn written(cache: &Cache) -> super::Partial {
        let mut partial = cache.begin().unwrap();
        partial.file().unwrap().write_all(b"new").unwrap();
        partial.close().unwrap();
        partial
    }

    #[test]
    fn a_file_that_a_scanner_holds_for_a_while_gets_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), Duration::from_secs(900));
        let partial = written(&cache);
        let place = cache.place("a.pdb", "1");
        let held = hold(partial.path());
        assert!(fs::rename(partial.path(), folder.path().join("other")).is_err(), "it is held");
        let (refused, was_refused) = mpsc::channel();
        let scanner = thread::spawn(move || {
            // Only once the rename was refused is it let go.
            was_refused.recv().unwrap();
            drop(held);
        });
        let is_there = || {
            let _gone_already = refused.send(());
            false
        };
        partial.commit(&place, &is_there).unwrap();
        scanner.join().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"new");
    }

    #[test]
    fn the_same_file_of_another_process_is_as_good() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), Duration::from_secs(900));
        let place = cache.place("a.pdb", "1");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, b"old").unwrap();
        let _held = hold(&place);
        written(&cache).commit(&place, &|| true).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"old");
        assert!(written(&cache).commit(&place, &|| false).is_err());
    }
}
