//! Takes the file out of a Microsoft cabinet, the form in which `.pd_` and `.dl_` files are stored compressed.
//!
//! A cabinet is a header (`MSCF`), folder entries, file entries, then data blocks; all numbers are little-endian. A
//! *folder* is one compressed stream of at most 65,535 blocks, each of at most 32 KiB when expanded; a *file* is a
//! range of such a stream. Blocks are stored, MSZIP (a deflate stream each, with the block before as dictionary) or
//! LZX (one stream with a window of 32 KiB to 2 MiB). Reference: MS-CAB and MS-MCI. Verified on Mozilla's
//! `basic32.pd_` (MSZIP) and libmspack's `mszip_lzx_qtm.cab` (MSZIP, LZX).
//!
//! The container is read here, and not by a crate, since the input comes from a server and the only crate for it
//! panics on malformed cabinets. What expands to more than the limits is refused while it is read.

use std::io::{self, Read, Seek, SeekFrom, Write};

use thiserror::Error;

const SIGNATURE: [u8; 4] = *b"MSCF";
const HAS_PREVIOUS: u16 = 1;
const HAS_NEXT: u16 = 2;
const HAS_RESERVE: u16 = 4;
/// The most that a block expands to.
const BLOCK: usize = 32 * 1024;
/// The most that a compressed block takes: the format allows a block to grow by 6 KiB.
const COMPRESSED_BLOCK: usize = BLOCK + 6 * 1024;
/// Below this size the ratio of expanded to compressed is not looked at: small files compress oddly.
const RATIO_FLOOR: u64 = 16 << 20;
/// The longest text in a header, with its NUL.
const MAX_TEXT: usize = 256;

/// What a cabinet may expand to.
#[derive(Clone, Copy, Debug)]
pub struct CabinetLimits {
    /// Bytes of the expanded file.
    pub size: u64,
    /// Expanded bytes for each byte of the cabinet, looked at from 16 MiB up.
    pub ratio: u64,
}

/// Why a cabinet gave no file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CabinetError {
    /// The first four bytes are not `MSCF`.
    #[error("not a cabinet")]
    NotACabinet,
    /// It ends before what its headers announce.
    #[error("the cabinet is cut short")]
    CutShort,
    /// A field that cannot be.
    #[error("the cabinet is malformed: {0}")]
    Malformed(&'static str),
    /// It is one of several cabinets that belong together.
    #[error("the cabinet is one part of a set")]
    PartOfSet,
    /// Quantum, or a method that does not exist.
    #[error("the cabinet is compressed by method {0}, which is not supported")]
    Method(u16),
    /// A block does not have the checksum that its header gives.
    #[error("block {0} of the cabinet has a wrong checksum")]
    Checksum(u16),
    /// A block does not expand.
    #[error("block {block} of the cabinet does not expand: {reason}")]
    Block {
        /// Its number in the folder, from 0.
        block: u16,
        /// From the decoder.
        reason: String,
    },
    /// Several files, none of the name wanted.
    #[error("the cabinet holds {0} files and none of that name")]
    NoSuchFile(u16),
    /// The file is larger than the limits allow.
    #[error("the cabinet expands to {size} bytes, over the limit of {limit}")]
    OverLimit {
        /// Bytes announced.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The cabinet could not be read.
    #[error("reading the cabinet: {0}")]
    Read(io::Error),
    /// The file could not be written.
    #[error("writing the expanded file: {0}")]
    Write(io::Error),
}

/// One folder: a compressed stream.
struct Folder {
    first_block: u64,
    blocks: u16,
    method: u16,
}

/// One file: a range of a folder's expanded bytes.
struct Member {
    size: u64,
    start: u64,
    folder: u16,
    name: Vec<u8>,
}

struct Layout {
    folders: Vec<Folder>,
    members: Vec<Member>,
    /// Reserved bytes in front of each block's data.
    block_reserve: usize,
}

/// Whether a file that begins with these bytes is a cabinet.
pub fn is_cabinet(start: &[u8]) -> bool {
    start.starts_with(&SIGNATURE)
}

/// Writes the file `name` of a cabinet to `output` and returns its size in bytes.
///
/// A cabinet with a single file gives that one whatever it is called: stores rename.
///
/// # Errors
/// See [`CabinetError`]. `output` may then hold a part of the file.
pub fn expand(
    cabinet: &mut (impl Read + Seek),
    name: &str,
    limits: CabinetLimits,
    output: &mut impl Write,
) -> Result<u64, CabinetError> {
    let length = cabinet.seek(SeekFrom::End(0)).map_err(CabinetError::Read)?;
    cabinet.seek(SeekFrom::Start(0)).map_err(CabinetError::Read)?;
    let layout = Layout::read(cabinet)?;
    let member = layout.member(name)?;
    let limit = limits.size.min(RATIO_FLOOR.max(length.saturating_mul(limits.ratio)));
    if member.size > limit {
        return Err(CabinetError::OverLimit { size: member.size, limit });
    }
    let folder =
        layout.folders.get(usize::from(member.folder)).ok_or(CabinetError::Malformed("no such folder"))?;

    let mut decoder = Decoder::new(folder.method)?;
    let (mut skip, mut left) = (member.start, member.size);
    let mut data = Vec::new();
    cabinet.seek(SeekFrom::Start(folder.first_block)).map_err(CabinetError::Read)?;
    for number in 0..folder.blocks {
        if left == 0 {
            break;
        }
        let expanded = read_block(cabinet, number, layout.block_reserve, &mut data)?;
        let bytes =
            decoder.block(&data, expanded).map_err(|reason| CabinetError::Block { block: number, reason })?;
        let bytes =
            bytes.get(usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len())..).unwrap_or_default();
        skip = skip.saturating_sub(expanded as u64);
        let bytes = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
        output.write_all(bytes).map_err(CabinetError::Write)?;
        left -= bytes.len() as u64;
    }
    if left > 0 {
        return Err(CabinetError::Malformed("the file is longer than its folder"));
    }
    Ok(member.size)
}

impl Layout {
    fn read(cabinet: &mut (impl Read + Seek)) -> Result<Layout, CabinetError> {
        let header: [u8; 36] = bytes(cabinet)?;
        let (signature, header) = header.split_at(4);
        if signature != SIGNATURE {
            return Err(CabinetError::NotACabinet);
        }
        let first_member = u64::from(u32_at(header, 12));
        let (folders, members, flags) = (u16_at(header, 22), u16_at(header, 24), u16_at(header, 26));
        if header.get(21) != Some(&1) {
            return Err(CabinetError::Malformed("its version is not 1"));
        }
        let (mut folder_reserve, mut block_reserve) = (0, 0);
        if flags & HAS_RESERVE != 0 {
            let [low, high, folder, block]: [u8; 4] = bytes(cabinet)?;
            skip(cabinet, u16::from_le_bytes([low, high]).into())?;
            (folder_reserve, block_reserve) = (folder.into(), usize::from(block));
        }
        for flag in [HAS_PREVIOUS, HAS_NEXT] {
            if flags & flag != 0 {
                text(cabinet)?;
                text(cabinet)?;
            }
        }
        // Entries have at least 8 and 17 bytes, so the lists stay within a few times the size of the cabinet.
        let folders = (0..folders)
            .map(|_| {
                let entry: [u8; 8] = bytes(cabinet)?;
                skip(cabinet, folder_reserve)?;
                Ok(Folder {
                    first_block: u32_at(&entry, 0).into(),
                    blocks: u16_at(&entry, 4),
                    method: u16_at(&entry, 6),
                })
            })
            .collect::<Result<_, _>>()?;
        cabinet.seek(SeekFrom::Start(first_member)).map_err(CabinetError::Read)?;
        let members = (0..members)
            .map(|_| {
                let entry: [u8; 16] = bytes(cabinet)?;
                Ok(Member {
                    size: u32_at(&entry, 0).into(),
                    start: u32_at(&entry, 4).into(),
                    folder: u16_at(&entry, 8),
                    name: text(cabinet)?,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Layout { folders, members, block_reserve })
    }

    fn member(&self, name: &str) -> Result<&Member, CabinetError> {
        let member = match self.members.as_slice() {
            [only] => only,
            several => several
                .iter()
                .find(|m| m.name.eq_ignore_ascii_case(name.as_bytes()))
                .ok_or(CabinetError::NoSuchFile(several.len() as u16))?,
        };
        // These numbers say that the file began in the cabinet before, or goes on in the next.
        if member.folder >= 0xFFFD {
            return Err(CabinetError::PartOfSet);
        }
        Ok(member)
    }
}

/// Reads one block: its compressed bytes into `data`; returns the size it expands to.
fn read_block(
    cabinet: &mut impl Read,
    number: u16,
    reserve: usize,
    data: &mut Vec<u8>,
) -> Result<usize, CabinetError> {
    let header: [u8; 8] = bytes(cabinet)?;
    let (checksum, size, expanded) =
        (u32_at(&header, 0), usize::from(u16_at(&header, 4)), usize::from(u16_at(&header, 6)));
    if size > COMPRESSED_BLOCK || expanded > BLOCK {
        return Err(CabinetError::Malformed("a block is too large"));
    }
    if expanded == 0 {
        return Err(CabinetError::PartOfSet);
    }
    let mut summed = header.get(4..).unwrap_or_default().to_vec();
    summed.resize(4 + reserve, 0);
    cabinet.read_exact(summed.get_mut(4..).unwrap_or_default()).map_err(read_error)?;
    data.resize(size, 0);
    cabinet.read_exact(data).map_err(read_error)?;
    if checksum != 0 && checksum != xor_sum(data) ^ xor_sum(&summed) {
        return Err(CabinetError::Checksum(number));
    }
    Ok(expanded)
}

/// The checksum of MS-CAB: the XOR of 32-bit words; the bytes that are left over count from the top.
fn xor_sum(data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<4>();
    let rest = rest.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    words.iter().fold(rest, |sum, &word| sum ^ u32::from_le_bytes(word))
}

/// Expands the blocks of one folder, in order.
enum Decoder {
    Stored(Vec<u8>),
    /// `window` holds the last 32 KiB of the folder, or all of the last block.
    MsZip {
        inflate: Box<flate2::Decompress>,
        window: Vec<u8>,
    },
    Lzx(Box<lzxd::Lzxd>),
}

impl Decoder {
    fn new(method: u16) -> Result<Decoder, CabinetError> {
        use lzxd::WindowSize;
        Ok(match (method & 0xF, method >> 8 & 0x1F) {
            (0, _) => Decoder::Stored(Vec::new()),
            (1, _) => {
                Decoder::MsZip { inflate: Box::new(flate2::Decompress::new(false)), window: Vec::new() }
            }
            // Wider windows than 2 MiB are not for cabinets.
            (3, window) => Decoder::Lzx(Box::new(lzxd::Lzxd::new(match window {
                15 => WindowSize::KB32,
                16 => WindowSize::KB64,
                17 => WindowSize::KB128,
                18 => WindowSize::KB256,
                19 => WindowSize::KB512,
                20 => WindowSize::MB1,
                21 => WindowSize::MB2,
                _ => return Err(CabinetError::Malformed("no such LZX window")),
            }))),
            _ => return Err(CabinetError::Method(method)),
        })
    }

    /// The bytes of the next block, exactly `expanded` of them.
    fn block(&mut self, data: &[u8], expanded: usize) -> Result<&[u8], String> {
        match self {
            Decoder::Stored(block) => {
                block.clear();
                block.extend_from_slice(data);
                exactly(block, expanded)
            }
            Decoder::MsZip { inflate, window } => {
                let data = data.strip_prefix(b"CK").ok_or("it does not begin with CK")?;
                inflate.reset(false);
                window.drain(..window.len().saturating_sub(BLOCK));
                if !window.is_empty() {
                    inflate.set_dictionary(window).map_err(|e| e.to_string())?;
                }
                let mut block = Vec::with_capacity(expanded);
                inflate
                    .decompress_vec(data, &mut block, flate2::FlushDecompress::Finish)
                    .map_err(|e| e.to_string())?;
                let history = window.len();
                window.append(&mut block);
                exactly(window.get(history..).unwrap_or_default(), expanded)
            }
            Decoder::Lzx(lzx) => {
                let block = lzx.decompress_next(data, expanded).map_err(|e| e.to_string())?;
                exactly(block, expanded)
            }
        }
    }
}

fn exactly(block: &[u8], expanded: usize) -> Result<&[u8], String> {
    if block.len() == expanded {
        Ok(block)
    } else {
        Err(format!("{} bytes instead of {expanded}", block.len()))
    }
}

fn bytes<const N: usize>(cabinet: &mut impl Read) -> Result<[u8; N], CabinetError> {
    let mut bytes = [0; N];
    cabinet.read_exact(&mut bytes).map_err(read_error)?;
    Ok(bytes)
}

fn skip(cabinet: &mut (impl Read + Seek), count: i64) -> Result<(), CabinetError> {
    cabinet.seek(SeekFrom::Current(count)).map(drop).map_err(CabinetError::Read)
}

/// A text up to its NUL.
fn text(cabinet: &mut impl Read) -> Result<Vec<u8>, CabinetError> {
    let mut text = Vec::new();
    loop {
        let [byte] = bytes(cabinet)?;
        if byte == 0 {
            return Ok(text);
        }
        text.push(byte);
        if text.len() == MAX_TEXT {
            return Err(CabinetError::Malformed("a text without end"));
        }
    }
}

fn read_error(error: io::Error) -> CabinetError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CabinetError::CutShort,
        _ => CabinetError::Read(error),
    }
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
}
