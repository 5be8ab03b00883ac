//! From a managed method's code to its line in the source.
//!
//! The way has two steps, because the C# compiler never saw the machine code:
//!
//! 1. *Native offset to IL offset.* Whoever compiled the method to machine code kept a map: the runtime writes it
//!    into its MethodILToNativeMap events for JIT-compiled methods, a ReadyToRun image holds it for precompiled ones
//!    ([`Method::il_map`](super::r2r::Method::il_map)). [`il_offset`] reads such a map.
//! 2. *IL offset to line.* The C# compiler's PDB lists each method's *sequence points*: places in the IL where a
//!    statement begins, with its lines and columns. [`ManagedPdb`] reads both kinds:
//!    - a *portable* PDB, the form of today: ECMA-335 metadata with tables of its own (`portable.rs`); it may lie
//!      compressed in the image itself ([`embedded`]);
//!    - a *Windows* PDB, of older compilers and project settings: the native format, with IL offsets where code
//!      offsets would be (`pdb/il.rs`).
//!
//! The PDB says no more than the path that the file had where it was compiled. *SourceLink* adds where it lies on the
//! web (`source_link.rs`).
//!
//! Code between two sequence points belongs to the first of them. Some are *hidden*: the compiler marks code so that no
//! one wrote, as the bookkeeping of a state machine. The statement before the hidden code gets its samples, as in
//! the stack traces of .NET exceptions; hidden code at the start of a method has no line.

mod map;
mod portable;
mod source_link;

use std::io::Read;

use flate2::read::DeflateDecoder;

pub(super) use map::MAPPING_OFFSET_BIAS;
pub use map::{EPILOG, NO_MAPPING, PROLOG, il_offset};
use portable::PortablePdb;
use source_link::SourceLinks;

use super::metadata::{self, MetadataError};
use crate::debug_id::DebugId;
use crate::symbols::read::pdb::{self, IlPdb, PdbError};
use crate::symbols::read::pe::{Image, PdbKind};

/// Where a statement stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file's path on the machine that compiled it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// Why a file gives no source lines of managed code.
#[derive(Debug, thiserror::Error)]
pub enum ManagedPdbError {
    /// It begins neither as metadata nor as a Windows PDB.
    #[error("neither a portable nor a Windows PDB")]
    Unknown,
    /// The metadata of a portable PDB cannot be read.
    #[error("portable PDB: {0}")]
    Portable(MetadataError),
    /// Metadata that is no PDB: it lacks the stream that says which build it belongs to.
    #[error("metadata without a #Pdb stream")]
    NotAPdb,
    /// The Windows PDB cannot be read.
    #[error("Windows PDB: {0}")]
    Windows(PdbError),
}

impl From<MetadataError> for ManagedPdbError {
    fn from(error: MetadataError) -> ManagedPdbError {
        ManagedPdbError::Portable(error)
    }
}

impl From<PdbError> for ManagedPdbError {
    fn from(error: PdbError) -> ManagedPdbError {
        ManagedPdbError::Windows(error)
    }
}

/// The PDB of an assembly's IL, portable or Windows. A portable one is read where a method asks; of a Windows one, the
/// list of methods is made at once.
pub struct ManagedPdb<'d> {
    form: Form<'d>,
    links: SourceLinks,
}

enum Form<'d> {
    Portable(Box<PortablePdb<'d>>),
    Windows(Box<IlPdb<'d>>),
}

impl<'d> ManagedPdb<'d> {
    /// Takes a PDB's bytes, of either kind.
    ///
    /// # Errors
    /// [`ManagedPdbError`] when they are no PDB, or end before what says where everything lies. Damage behind that costs
    /// the lines of the methods that it hits.
    pub fn open(bytes: &'d [u8]) -> Result<Self, ManagedPdbError> {
        if bytes.starts_with(metadata::MAGIC) {
            let pdb = PortablePdb::open(bytes)?;
            let links = SourceLinks::parse(pdb.source_links());
            Ok(ManagedPdb { form: Form::Portable(Box::new(pdb)), links })
        } else if bytes.starts_with(pdb::MAGIC) {
            let mut pdb = IlPdb::open(bytes)?;
            let links = pdb.source_links();
            let links = SourceLinks::parse(links.as_deref());
            Ok(ManagedPdb { form: Form::Windows(Box::new(pdb)), links })
        } else {
            Err(ManagedPdbError::Unknown)
        }
    }

    /// Which of the two it is.
    pub fn kind(&self) -> PdbKind {
        match self.form {
            Form::Portable(_) => PdbKind::Portable,
            Form::Windows(_) => PdbKind::Windows,
        }
    }

    /// What it carries. A portable PDB has no age; images state 1 for it, and so does this.
    pub fn id(&self) -> DebugId {
        match &self.form {
            Form::Portable(pdb) => DebugId { guid: pdb.id(), age: 1 },
            Form::Windows(pdb) => pdb.id(),
        }
    }

    /// The line of an IL offset in the method with this token (`0x06......`). `None` when the PDB does not know the
    /// method (the compiler made it, as the accessors of an auto-property), or no statement begins at or before the
    /// offset.
    pub fn line(&self, token: u32, il_offset: u32) -> Option<SourceLine> {
        match &self.form {
            Form::Portable(pdb) => pdb.line((token >> 24 == 0x06).then_some(token & 0xFF_FFFF)?, il_offset),
            Form::Windows(pdb) => {
                let (file, line) = pdb.line(token, il_offset)?;
                Some(SourceLine { file, line })
            }
        }
    }

    /// Where a file (as in [`SourceLine::file`]) lies on the web, by SourceLink.
    pub fn source_link(&self, file: &str) -> Option<String> {
        self.links.url(file)
    }
}

/// Why the PDB in an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedPdbError {
    /// More than a PDB of that many compressed bytes has.
    #[error("embedded PDB of {stated} bytes in {compressed}: beyond any plausible ratio")]
    TooLarge {
        /// By the image's debug record, bytes.
        stated: u32,
        /// In the image, bytes.
        compressed: usize,
    },
    /// The compressed data is damaged.
    #[error("embedded PDB: {0}")]
    Damaged(std::io::Error),
    /// The data ends elsewhere than the image states.
    #[error("embedded PDB of {found} bytes instead of {stated}")]
    Size {
        /// By the image's debug record, bytes.
        stated: u32,
        /// What there was, bytes; counted no further than one beyond.
        found: usize,
    },
}

impl From<std::io::Error> for EmbeddedPdbError {
    fn from(error: std::io::Error) -> EmbeddedPdbError {
        EmbeddedPdbError::Damaged(error)
    }
}

/// PDBs compress to about a third. Beyond so many times the compressed size, and so many bytes, they are damage: a
/// bomb inflates to a thousand times its size, and all PDBs of a recording are held at once.
const MAX_RATIO: usize = 16;
const RATIO_FLOOR: usize = 1 << 20;

/// The portable PDB inside an image, inflated; `None` when the image has none.
///
/// # Errors
/// [`EmbeddedPdbError`] when it is damaged, or inflates to more than a PDB would.
pub fn embedded(image: &Image<'_>) -> Option<Result<Vec<u8>, EmbeddedPdbError>> {
    let (stated, stream) = image.embedded_pdb()?;
    Some(inflate(stated, stream))
}

fn inflate(stated: u32, stream: &[u8]) -> Result<Vec<u8>, EmbeddedPdbError> {
    let compressed = stream.len();
    if stated as usize > compressed.saturating_mul(MAX_RATIO).max(RATIO_FLOOR) {
        return Err(EmbeddedPdbError::TooLarge { stated, compressed });
    }
    let mut pdb = Vec::with_capacity(stated as usize);
    DeflateDecoder::new(stream).take(u64::from(stated) + 1).read_to_end(&mut pdb)?;
    if pdb.len() != stated as usize {
        return Err(EmbeddedPdbError::Size { stated, found: pdb.len() });
    }
    Ok(pdb)
}
