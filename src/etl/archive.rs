//! Recordings inside a zip: PerfView's `.etl.zip` and Visual Studio's `.diagsession`.
//!
//! Members are unpacked into unnamed temporary files and mapped from there, so that memory does not grow with them.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::mmap::Mapped;
use crate::zip_limit::zip_limit;

use super::error::EtlError;
use super::file::{Bytes, LogFile};

/// Bytes of a member's name. It stands in every report of damage.
const LONGEST_NAME: usize = 1024;

/// True for a file that starts as a zip archive does.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// True for the file of a recording that is a zip archive: it may have more than .etl files inside.
pub fn is_archive(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && is_zip(&start)
}

/// Opens every .etl member of the archive at `path`, in the archive's order.
pub(super) fn open(path: &Path, bytes: &[u8]) -> Result<Vec<LogFile>, EtlError> {
    let broken = |error| EtlError::Archive {
        path: path.to_owned(),
        reason: match error {
            ZipError::InvalidArchive(detail) => format!("it is damaged ({detail})"),
            other => other.to_string(),
        },
    };
    let mut archive = ZipArchive::new(io::Cursor::new(bytes)).map_err(broken)?;
    let mut files = Vec::new();
    let limit = zip_limit(bytes.len() as u64);
    let mut left = limit;
    if let Some(member) = overlapping(&mut archive).map_err(broken)? {
        return Err(EtlError::Overlap { path: path.to_owned(), member });
    }
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(broken)?;
        let name = member.name().map_err(broken)?.into_owned();
        if !member.is_file() || !name.to_ascii_lowercase().ends_with(".etl") {
            continue;
        }
        if name.len() > LONGEST_NAME {
            return Err(broken(ZipError::InvalidArchive("a member's name is too long".into())));
        }
        let map = if member.size() <= left { unpack(&mut member, left) } else { Ok(None) };
        let map = map.map_err(|error| broken(ZipError::Io(error)))?;
        let Some(map) = map else {
            return Err(EtlError::ArchiveTooLarge { path: path.to_owned(), member: name, limit });
        };
        left -= map.len() as u64;
        files.push(LogFile::new(path.join(&name), Bytes::Mapped(map))?);
    }
    if files.is_empty() {
        return Err(EtlError::NoEtlInArchive { path: path.to_owned() });
    }
    Ok(files)
}

/// The name of a member that begins before another one ends. The same bytes may not be read as a hundred recordings.
fn overlapping(archive: &mut ZipArchive<io::Cursor<&[u8]>>) -> Result<Option<String>, ZipError> {
    let mut places = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index)?;
        let data = member.data_start().unwrap_or_else(|| member.header_start());
        places.push((member.header_start(), data.saturating_add(member.compressed_size()), index));
    }
    places.sort_unstable();
    let met = places.windows(2).find_map(|pair| match pair {
        [(_, end, _), (start, _, index)] if start < end => Some(*index),
        _ => None,
    });
    let name = |index| Ok(archive.by_index_raw(index)?.name()?.chars().take(LONGEST_NAME).collect());
    met.map(name).transpose()
}

/// Unpacks into a temporary file that vanishes with its map; `None` beyond `limit` bytes.
fn unpack(member: &mut impl Read, limit: u64) -> io::Result<Option<Mapped>> {
    let mut file: File = tempfile::tempfile()?;
    let written = io::copy(&mut member.take(limit + 1), &mut file)?;
    if written > limit {
        return Ok(None);
    }
    file.flush()?;
    file.rewind()?;
    Mapped::of(&file).map(Some)
}
