//! What can be wrong with a recording: errors that end the work, and damage that costs a part of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::xpress::XpressError;

/// Why a recording cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtlError {
    /// The operating system refuses.
    #[error("cannot open {}: {}", path.display(), Reason(cause))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Its bytes are those of something else.
    #[error("{} is not an .etl file: {reason} (at byte {offset})", path.display())]
    NotEtl {
        /// The file.
        path: PathBuf,
        /// Where that shows.
        offset: u64,
        /// What was found instead.
        reason: &'static str,
    },
    /// A zip archive that cannot be read.
    #[error("cannot read the zip archive {}: {reason}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What the zip reader said.
        reason: String,
    },
    /// A zip archive whose members share bytes: whoever made it wants it to unpack to more than it holds.
    #[error("cannot read the zip archive {}: {member} overlaps another member", path.display())]
    Overlap {
        /// The archive.
        path: PathBuf,
        /// The member that begins inside another one.
        member: String,
    },
    /// A zip archive of other things.
    #[error("the zip archive {} contains no .etl file", path.display())]
    NoEtlInArchive {
        /// The archive.
        path: PathBuf,
    },
    /// An archive that unpacks to more than one of its size may.
    #[error("{} expands to more than {limit} bytes at {member}; unpack it yourself if you trust it", path.display())]
    ArchiveTooLarge {
        /// The archive.
        path: PathBuf,
        /// The member at which that shows.
        member: String,
        /// The limit for all members together, in bytes.
        limit: u64,
    },
    /// Two files of different machines, or of different runs of one, are not parts of one recording.
    #[error("{} and {} are not parts of one recording: {reason}; convert them separately", first.display(), second.display())]
    NotOneRecording {
        /// The first file.
        first: PathBuf,
        /// The file that does not fit it.
        second: PathBuf,
        /// How they differ.
        reason: String,
    },
    /// Two files with the same bytes: every sample would count twice.
    #[error("{} and {} are the same recording; name it only once", first.display(), second.display())]
    Twice {
        /// The first file.
        first: PathBuf,
        /// Its copy, or the same file again.
        second: PathBuf,
    },
    /// No file was given.
    #[error("no recording was given")]
    Nothing,
}

/// An I/O error in plain words where a common one has some.
struct Reason<'a>(&'a io::Error);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind() {
            io::ErrorKind::NotFound => f.write_str("there is no such file"),
            io::ErrorKind::IsADirectory => f.write_str("it is a folder; name the .etl files in it"),
            io::ErrorKind::PermissionDenied => f.write_str("permission denied"),
            _ => fmt::Display::fmt(self.0, f),
        }
    }
}

/// A part of a recording that could not be read; the rest was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The byte where the damaged buffer starts, or the damaged record in an uncompressed buffer.
    pub offset: u64,
    /// What is wrong there.
    pub kind: DamageKind,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.path.display(), self.offset, self.kind)
    }
}

/// The kinds of damage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends inside the buffer.
    #[error("the file ends inside a buffer, after {present} of {expected} bytes")]
    Truncated {
        /// Bytes in the file.
        present: usize,
        /// Bytes that the buffer's header names.
        expected: usize,
    },
    /// No buffer header where one should be.
    #[error("no buffer header; {skipped} bytes skipped")]
    NotABuffer {
        /// Bytes up to the next buffer, or to the end of the file.
        skipped: usize,
    },
    /// A buffer's size leads to no other buffer; the next one was found without it.
    #[error("a buffer has an impossible size of {size} bytes")]
    BufferSize {
        /// The size in its header.
        size: u32,
    },
    /// A buffer says it holds records and does not start with one.
    #[error("a buffer does not start with a valid record; skipped")]
    NoRecord,
    /// A record whose header does not hold; the rest of its buffer is lost.
    #[error("a record has an invalid header; the last {skipped} bytes of its buffer skipped")]
    Record {
        /// Bytes of the buffer that were not read.
        skipped: usize,
    },
    /// A compressed buffer that does not decompress wholly.
    #[error("{cause}; decompressed {decoded} of {expected} bytes of the buffer")]
    Compression {
        /// What the decompressor found.
        cause: XpressError,
        /// Bytes that were decompressed.
        decoded: usize,
        /// Bytes that the buffer's header names.
        expected: usize,
    },
    /// The file became shorter while it was read.
    #[error("the file became shorter while it was read")]
    Shrunk,
    /// The records could not be put in order of time; none was read.
    #[error("the records could not be put in order, so none was read; please report this with the file")]
    Disorder,
    /// More decompressed data, or more records in it, than so few bytes can honestly hold.
    #[error("a buffer expands far beyond any plausible ratio; skipped")]
    TooLarge,
}
