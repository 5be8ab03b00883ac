//! Symbol files in the archive of a recording.
//!
//! PerfView puts the PDBs of NGEN images into its `.etl.zip`, below `symbols\`, because only the machine that recorded can
//! make them. Members are unpacked into a temporary folder when a module asks for their name, and the folder is removed
//! at the end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tempfile::TempDir;
use zip::ZipArchive;

use crate::zip_limit::zip_limit;

/// The files of an archive by their names.
pub(super) struct Archive {
    path: PathBuf,
    /// Opened when the first file is asked for; `None` if that fails.
    open: Mutex<Option<Option<Open>>>,
}

/// A file of an archive.
pub(super) struct Member {
    /// Where it lies now, until the end of the run.
    pub(super) unpacked: PathBuf,
    /// The archive, and its name there.
    pub(super) inside: PathBuf,
}

struct Open {
    zip: ZipArchive<File>,
    /// Members by lower-case file name.
    members: FxHashMap<String, Vec<(usize, String)>>,
    folder: TempDir,
    unpacked: FxHashMap<usize, Option<PathBuf>>,
    /// Bytes that may still be unpacked.
    left: u64,
}

impl Archive {
    pub(super) fn new(path: PathBuf) -> Archive {
        Archive { path, open: Mutex::new(None) }
    }

    /// The files of this name, in whatever case, unpacked. What cannot be unpacked is left out.
    pub(super) fn named(&self, name: &str) -> Vec<Member> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.get_or_insert_with(|| Open::new(&self.path).ok()) else { return Vec::new() };
        let members = open.members.get(&name.to_lowercase()).cloned().unwrap_or_default();
        let each = members.into_iter().filter_map(|(index, inside)| {
            Some(Member { unpacked: open.unpack(index, name)?, inside: self.path.join(inside) })
        });
        each.collect()
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Open> {
        let file = File::open(path)?;
        let left = zip_limit(file.metadata()?.len());
        let zip = ZipArchive::new(file)?;
        let mut members: FxHashMap<String, Vec<(usize, String)>> = FxHashMap::default();
        for index in 0..zip.len() {
            let Some(Ok(name)) = zip.name_for_index(index) else { continue };
            // Windows tools write either slash.
            let last = crate::winpath::file_name(&name);
            members.entry(last.to_lowercase()).or_default().push((index, name.replace('\\', "/")));
        }
        Ok(Open { zip, members, folder: TempDir::new()?, unpacked: FxHashMap::default(), left })
    }

    fn unpack(&mut self, index: usize, name: &str) -> Option<PathBuf> {
        if let Some(known) = self.unpacked.get(&index) {
            return known.clone();
        }
        let unpacked = self.write(index, name).ok().flatten();
        self.unpacked.insert(index, unpacked.clone());
        unpacked
    }

    /// `None` for one that would unpack to too much.
    fn write(&mut self, index: usize, name: &str) -> io::Result<Option<PathBuf>> {
        // One folder for each, since names repeat; the name was checked by the one who asks.
        let folder = self.folder.path().join(index.to_string());
        fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        let mut file = File::create_new(&path)?;
        let member = self.zip.by_index(index)?;
        let written = io::copy(&mut member.take(self.left.saturating_add(1)), &mut file)?;
        if written > self.left {
            fs::remove_file(&path)?;
            return Ok(None);
        }
        self.left -= written;
        Ok(Some(path))
    }
}
