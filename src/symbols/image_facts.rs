//! What a trace says of an image, so that its file can be told from another build's.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::find::lookup::Checked;
use super::find::verify::ImageFacts;
use crate::clock::UNIX_EPOCH;
use crate::trace::{Module, ModuleId, Trace};
use crate::winpath::{dump_original, same_file};

/// Whether the file at the path of a module is the one that was mapped, as far as the trace can tell; `None` where the
/// trace has no path.
pub fn at_its_path(trace: &Trace, module: ModuleId) -> Option<Checked> {
    of_module(trace, module).map(|facts| facts.check(&facts.path))
}

/// What the trace says of a module's image; `None` where it says neither path nor size.
pub(super) fn of_module(trace: &Trace, id: ModuleId) -> Option<ImageFacts> {
    let module = trace.module(id)?;
    let size = u32::try_from(module.size).ok().filter(|_| !module.path.is_empty())?;
    let timestamps =
        [Some(module), original(trace, module)].into_iter().flatten().map(|module| module.timestamp);
    Some(ImageFacts {
        size,
        timestamp: timestamps.into_iter().find(|timestamp| *timestamp != 0),
        checksum: Some(module.checksum).filter(|checksum| *checksum != 0),
        path: file_of(module),
        there: system_time(trace.there_since(id)),
    })
}

/// Where a module's file is.
pub(super) fn file_of(module: &Module) -> PathBuf {
    PathBuf::from(dump_original(&module.path).unwrap_or_else(|| module.path.clone()))
}

/// The driver of the same trace that a copy for crash dumps was made from. Of the copy, which is no file, traces have
/// neither time stamp nor PDB.
pub(super) fn original<'t>(trace: &'t Trace, copy: &Module) -> Option<&'t Module> {
    let path = dump_original(&copy.path)?;
    let is_original = |module: &&Module| {
        copy.checksum != 0
            && (module.size, module.checksum) == (copy.size, copy.checksum)
            && same_file(&module.path, &path)
    };
    trace.modules.iter().find(is_original)
}

/// A FILETIME (100 ns since 1601), unless it lies before 1970.
fn system_time(filetime: i64) -> Option<SystemTime> {
    let since = u64::try_from(filetime.checked_sub(UNIX_EPOCH)?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(since / 10))
}

#[cfg(test)]
#[path = "image_facts_tests.rs"]
mod tests;
