//! Recordings inside a zip: PerfView's `.etl.zip` and Visual Studio's `.diagsession`.
//!
//! Members are unpacked into unnamed temporary files and mapped from there, so that memory does not grow with them.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::mmap::Mapped;

use super::error::EtlError;
use super::file::{Bytes, LogFile};

/// Deflate cannot expand more than about 1032 times; what claims more is no honest archive.
const LARGEST_EXPANSION: u64 = 1032;

/// True for a file that starts as a zip archive does.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Opens every .etl member of the archive at `path`, in the archive's order.
pub(super) fn open(path: &Path, bytes: &[u8]) -> Result<Vec<LogFile>, EtlError> {
    let broken = |source| EtlError::Archive { path: path.to_owned(), source };
    let mut archive = ZipArchive::new(io::Cursor::new(bytes)).map_err(broken)?;
    let mut files = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(broken)?;
        let name = member.name().map_err(broken)?.into_owned();
        if !member.is_file() || !name.to_ascii_lowercase().ends_with(".etl") {
            continue;
        }
        let limit = member.compressed_size().saturating_mul(LARGEST_EXPANSION).saturating_add(1 << 16);
        let map = unpack(&mut member, limit).map_err(|error| broken(ZipError::Io(error)))?;
        let map = map.ok_or_else(|| EtlError::ArchiveTooLarge { path: path.to_owned(), member: name.clone(), limit })?;
        files.push(LogFile::new(path.join(&name), Bytes::Mapped(map))?);
    }
    if files.is_empty() {
        return Err(EtlError::NoEtlInArchive { path: path.to_owned() });
    }
    Ok(files)
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
