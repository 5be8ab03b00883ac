//! The stream that a .NET runtime sends its events in: *nettrace*, versions 4 and 5 (.NET Core 3.0 to .NET 9).
//!
//! A stream begins with `Nettrace`, a `u32` 20 and `!FastSerialization.1`. Objects follow, each a tag 5, its type (tag 5,
//! tag 1, version, least version of a reader, name, tag 6), its content, and a tag 6; a tag 1 ends them. The content of `Trace`
//! has 48 bytes; that of every other object is a `u32` size, zeros up to an offset that is a multiple of 4, and so many
//! bytes. Sources: Microsoft's NetTraceFormat.md, and streams of .NET Core 3.1.

use std::collections::HashMap;
use std::io::{self, Read};

use thiserror::Error;

use crate::bytes::Reader;

/// A block has 100 KB. Nobody may make us keep more than this.
const MOST_BYTES: u32 = 16 << 20;
/// Kinds of events of one stream; programs have hundreds.
const MOST_KINDS: usize = 100_000;
/// Objects inside of objects.
const DEEPEST: u32 = 8;

/// Why a stream cannot be read on.
#[derive(Debug, Error)]
pub enum NettraceError {
    /// It cannot be read.
    #[error("the stream of events broke off: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("no stream of events: it does not begin with \"Nettrace\"")]
    Magic,
    /// A newer layout.
    #[error("a stream of nettrace version {0}, which is not supported; 4 and 5 are")]
    Version(u32),
    /// A structure contradicts what is around it.
    #[error("damaged stream of events: the {structure} at byte {offset} cannot be read")]
    Structure {
        /// Which kind of structure.
        structure: &'static str,
        /// Where it begins in the stream.
        offset: u64,
    },
}

/// What an event of a kind looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventKind {
    /// The name of its provider.
    pub provider: String,
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldKind,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Fields of its own.
    Object(Vec<Field>),
    /// A number of so many bytes, with a sign or without.
    Int(u8, bool),
    /// A number of 4 or 8 bytes with a fraction.
    Float(u8),
    /// A text.
    Text,
    /// So many bytes of something else.
    Other(u8),
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// An event.
#[derive(Debug)]
pub struct StreamEvent<'a> {
    /// When it was written, in ticks of the stream's clock.
    pub time: i64,
    /// What it looks like.
    pub kind: &'a EventKind,
    /// What it says.
    pub payload: &'a [u8],
}

impl StreamEvent<'_> {
    /// The values of its fields, those of objects inside too, by name. Fields behind one that cannot be read are missing.
    pub fn values(&self) -> HashMap<&str, Value> {
        let mut values = HashMap::new();
        read_values(&mut Reader::new(self.payload), &self.kind.fields, &mut values);
        values
    }
}

fn read_values<'f>(
    reader: &mut Reader<'_>,
    fields: &'f [Field],
    values: &mut HashMap<&'f str, Value>,
) -> Option<()> {
    for field in fields {
        let value = match &field.kind {
            FieldKind::Object(fields) => {
                read_values(reader, fields, values)?;
                continue;
            }
            FieldKind::Int(size, is_signed) => {
                let mut bytes = [0; 8];
                let taken = reader.take((*size).into())?;
                bytes.get_mut(..taken.len())?.copy_from_slice(taken);
                let number = u64::from_le_bytes(bytes);
                let spare = 64 - 8 * u32::from(*size);
                let signed = (number << spare) as i64 >> spare;
                Value::Number(if *is_signed { signed as f64 } else { number as f64 })
            }
            FieldKind::Float(4) => Value::Number(f32::from_bits(reader.u32()?).into()),
            FieldKind::Float(_) => Value::Number(f64::from_bits(reader.u64()?)),
            FieldKind::Text => Value::Text(reader.utf16().to_string()),
            FieldKind::Other(size) => {
                reader.skip((*size).into())?;
                continue;
            }
        };
        values.insert(&field.name, value);
    }
    Some(())
}

/// Reads a stream as it comes.
#[derive(Debug)]
pub struct Nettrace<R> {
    input: R,
    offset: u64,
    /// Ticks of its clock in a second.
    pub frequency: i64,
    kinds: HashMap<u32, EventKind>,
}

// Tags of objects.
const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;

impl<R: Read> Nettrace<R> {
    /// Reads the begin of a stream.
    ///
    /// # Errors
    /// It is no such stream, or one of another version.
    pub fn begin(input: R) -> Result<Self, NettraceError> {
        let mut stream = Nettrace { input, offset: 0, frequency: 0, kinds: HashMap::new() };
        let magic: [u8; 8] = stream.array()?;
        if &magic != b"Nettrace" {
            return Err(NettraceError::Magic);
        }
        // Version 6 has no name of a serializer here, but 0 and its number.
        let length = u32::from_le_bytes(stream.array()?);
        if length == 0 {
            return Err(NettraceError::Version(u32::from_le_bytes(stream.array()?)));
        }
        let name: [u8; 20] = stream.array()?;
        if length != 20 || &name != b"!FastSerialization.1" {
            return Err(NettraceError::Magic);
        }
        let Some((name, version)) = stream.object()? else { return Err(stream.wrong("head")) };
        if name != "Trace" || !(4..=5).contains(&version) {
            return Err(NettraceError::Version(version));
        }
        let content: [u8; 48] = stream.array()?;
        stream.frequency = Reader::at(&content, 24).i64().unwrap_or_default();
        stream.tag(END)?;
        Ok(stream)
    }

    /// Reads one block, and shows its events. False at the end of the stream.
    ///
    /// # Errors
    /// The stream breaks off or is damaged.
    pub fn block(&mut self, show: &mut dyn FnMut(&StreamEvent<'_>)) -> Result<bool, NettraceError> {
        let Some((name, _)) = self.object()? else { return Ok(false) };
        let size = u32::from_le_bytes(self.array()?);
        if size > MOST_BYTES {
            return Err(self.wrong("block"));
        }
        let padding = self.offset.next_multiple_of(4) - self.offset;
        self.bytes(padding as usize)?;
        let content = self.bytes(size as usize)?;
        self.tag(END)?;
        let is_metadata = name == "MetadataBlock";
        if is_metadata || name == "EventBlock" {
            let offset = self.offset - u64::from(size);
            let wrong = || NettraceError::Structure { structure: "block", offset };
            self.events(&content, is_metadata, show).ok_or_else(wrong)?;
        }
        Ok(true)
    }

    /// Reads the events of a block.
    fn events(
        &mut self,
        content: &[u8],
        is_metadata: bool,
        show: &mut dyn FnMut(&StreamEvent<'_>),
    ) -> Option<()> {
        let mut reader = Reader::new(content);
        let (header, flags) = (reader.u16()?, reader.u16()?);
        let mut blobs = Reader::new(content.get(header.into()..)?);
        let mut state = Blob::default();
        while !blobs.rest().is_empty() {
            let payload = match flags & 1 {
                0 => state.plain(&mut blobs)?,
                _ => state.compressed(&mut blobs)?,
            };
            if is_metadata {
                if self.kinds.len() < MOST_KINDS {
                    let (number, kind) = kind(payload)?;
                    self.kinds.insert(number, kind);
                }
            } else if let Some(kind) = self.kinds.get(&state.kind) {
                show(&StreamEvent { time: state.time, kind, payload });
            }
        }
        Some(())
    }

    /// The name and version of the next object; `None` at the end.
    fn object(&mut self) -> Result<Option<(String, u32)>, NettraceError> {
        match self.array::<1>()? {
            [NULL] => return Ok(None),
            [BEGIN] => {}
            _ => return Err(self.wrong("object")),
        }
        self.tag(BEGIN)?;
        self.tag(NULL)?;
        let version = u32::from_le_bytes(self.array()?);
        let _least_reader: [u8; 4] = self.array()?;
        let length = u32::from_le_bytes(self.array()?);
        if length > 256 {
            return Err(self.wrong("object"));
        }
        let name = self.bytes(length as usize)?;
        self.tag(END)?;
        Ok(Some((String::from_utf8_lossy(&name).into_owned(), version)))
    }

    fn tag(&mut self, expected: u8) -> Result<(), NettraceError> {
        let [tag] = self.array()?;
        if tag == expected { Ok(()) } else { Err(self.wrong("object")) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NettraceError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.offset += N as u64;
        Ok(bytes)
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, NettraceError> {
        let mut bytes = vec![0; count];
        self.input.read_exact(&mut bytes)?;
        self.offset += count as u64;
        Ok(bytes)
    }

    fn wrong(&self, structure: &'static str) -> NettraceError {
        NettraceError::Structure { structure, offset: self.offset }
    }
}

/// What one event of a block takes over from the event before it.
#[derive(Default)]
struct Blob {
    kind: u32,
    time: i64,
    size: u32,
}

impl Blob {
    /// The payload behind a compressed header. Bits of its first byte say which fields differ from the event before.
    fn compressed<'a>(&mut self, reader: &mut Reader<'a>) -> Option<&'a [u8]> {
        let flags = reader.u8()?;
        if flags & 1 != 0 {
            self.kind = u32::try_from(varint(reader)?).ok()?;
        }
        if flags & 2 != 0 {
            // Sequence, capturing thread, processor.
            for _ in 0..3 {
                varint(reader)?;
            }
        }
        // Thread, stack.
        for bit in [4, 8] {
            if flags & bit != 0 {
                varint(reader)?;
            }
        }
        // Events may go back in time.
        self.time = self.time.wrapping_add(varint(reader)? as i64);
        // Activities.
        for bit in [16, 32] {
            if flags & bit != 0 {
                reader.skip(16)?;
            }
        }
        if flags & 128 != 0 {
            self.size = u32::try_from(varint(reader)?).ok()?;
        }
        reader.take(self.size as usize)
    }

    /// The payload behind a header that has all fields.
    fn plain<'a>(&mut self, reader: &mut Reader<'a>) -> Option<&'a [u8]> {
        let _size = reader.u32()?;
        // The highest bit says whether it is in order.
        self.kind = reader.u32()? & 0x7fff_ffff;
        // Sequence u32, thread and capturing thread u64, processor and stack u32.
        reader.skip(4 + 8 + 8 + 4 + 4)?;
        self.time = reader.i64()?;
        reader.skip(32)?;
        self.size = reader.u32()?;
        let payload = reader.take(self.size as usize)?;
        reader.skip(self.size.next_multiple_of(4) as usize - self.size as usize)?;
        Some(payload)
    }
}

/// Seven bits a byte, lowest first; the eighth says that more follow.
fn varint(reader: &mut Reader<'_>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = reader.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Number and look of a kind of events: number, provider, id, name, keywords, version, level, fields. What version 5 puts
/// behind them (arrays, opcodes) is not read.
fn kind(payload: &[u8]) -> Option<(u32, EventKind)> {
    let mut reader = Reader::new(payload);
    let number = reader.u32()?;
    let provider = reader.utf16().to_string();
    let id = reader.u32()?;
    let name = reader.utf16().to_string();
    reader.skip(8 + 4 + 4)?;
    let fields = fields(&mut reader, DEEPEST).unwrap_or_default();
    Some((number, EventKind { provider, id, name, fields }))
}

/// Each field's type, in an object its fields, and its name.
fn fields(reader: &mut Reader<'_>, depth: u32) -> Option<Vec<Field>> {
    let count = reader.u32()?;
    let mut all = Vec::new();
    for _ in 0..count {
        // The numbers are those of `System.TypeCode`.
        let kind = match reader.u32()? {
            1 => FieldKind::Object(fields(reader, depth.checked_sub(1)?)?),
            // Booleans have four bytes.
            3 => FieldKind::Int(4, false),
            4 | 8 => FieldKind::Int(2, false),
            5 => FieldKind::Int(1, true),
            6 => FieldKind::Int(1, false),
            7 => FieldKind::Int(2, true),
            9 => FieldKind::Int(4, true),
            10 => FieldKind::Int(4, false),
            11 => FieldKind::Int(8, true),
            12 => FieldKind::Int(8, false),
            13 => FieldKind::Float(4),
            14 => FieldKind::Float(8),
            15 | 17 => FieldKind::Other(16),
            16 => FieldKind::Other(8),
            18 => FieldKind::Text,
            _ => return None,
        };
        all.push(Field { name: reader.utf16().to_string(), kind });
    }
    Some(all)
}
