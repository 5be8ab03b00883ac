//! The performance data block: `PERF_DATA_BLOCK` and what follows it.
//!
//! The layout is that of `winperf.h`, the same from 32-bit and 64-bit systems. Each structure carries its own length, by
//! which one steps to the next. Lengths are checked against the structure around them, so that none reaches outside
//! and every step goes forward.

use std::ops::Range;

use thiserror::Error;

use super::CounterType;
use crate::bytes::{Ansi, Reader};

/// Blocks of real machines have a few MB.
pub(super) const MOST_BYTES: usize = 256 << 20;

/// Objects of a block, and counters of an object. Real machines have hundreds.
const MOST_OBJECTS: u32 = 4096;
const MOST_COUNTERS: u32 = 4096;

/// Smallest lengths of the structures.
const HEADER: usize = 88;
const OBJECT: usize = 64;
const DEFINITION: usize = 40;
const INSTANCE: usize = 24;
const VALUES: usize = 4;

/// Why bytes are no performance data block.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockError {
    /// They begin with something else.
    #[error("no performance data: it does not begin with \"PERF\"")]
    Signature,
    /// The numbers are big-endian.
    #[error("performance data in big-endian byte order, which no Windows in use writes")]
    BigEndian,
    /// There are fewer bytes than the block says.
    #[error("performance data of {stated} bytes was cut after {there}")]
    Cut {
        /// Its length by its header.
        stated: usize,
        /// The bytes that are there.
        there: usize,
    },
    /// It is longer than any real block.
    #[error("performance data of {0} bytes; more than 256 MiB is not read")]
    TooLong(usize),
    /// A structure contradicts what is around it.
    #[error("damaged performance data: the {structure} at byte {offset} has a wrong {field}")]
    Structure {
        /// Which kind of structure.
        structure: &'static str,
        /// Where it begins in the block.
        offset: usize,
        /// Which of its fields.
        field: &'static str,
    },
}

/// All counters of one moment.
#[derive(Clone, Debug)]
pub struct Block {
    data: Vec<u8>,
    /// The name of the machine.
    pub machine: String,
    /// The moment in ms since 1970, UTC. `None` where the block has no valid date.
    pub unix_ms: Option<i64>,
    /// `QueryPerformanceCounter` at that moment.
    pub qpc: i64,
    /// Its ticks per second.
    pub qpc_hz: i64,
    /// The moment in units of 100 ns.
    pub time_100ns: i64,
    /// The objects, as the block has them. Two providers may use the same index.
    pub objects: Vec<Object>,
}

/// The clocks by which the values of an object are rated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// `QueryPerformanceCounter`.
    pub qpc: i64,
    /// Its ticks per second.
    pub qpc_hz: i64,
    /// Time in units of 100 ns.
    pub time_100ns: i64,
    /// The object's own clock.
    pub object: i64,
    /// Its ticks per second.
    pub object_hz: i64,
}

/// Something that has counters: a processor, processes, disks.
#[derive(Clone, Debug)]
pub struct Object {
    /// The index of its name.
    pub name: u32,
    /// The index of its explanation.
    pub help: u32,
    /// False if there can be only one, such as "Memory"; then `instances` has one without a name.
    pub has_instances: bool,
    /// Its own clock, and the ticks per second.
    pub clock: (i64, i64),
    /// What is counted. A base stands right behind the counter that needs it.
    pub counters: Vec<Definition>,
    /// Of what: none if there are no such things at the moment.
    pub instances: Vec<Instance>,
}

/// What a value in the values of each instance means.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The index of its name.
    pub name: u32,
    /// The index of its explanation.
    pub help: u32,
    /// How raw values become a number.
    pub kind: CounterType,
    /// The bytes of a value.
    pub size: u32,
    offset: u32,
}

/// One of an object's things.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name. Two may have the same.
    pub name: String,
    /// The index of the parent's object, and the number of the parent among the instances of that object.
    pub parent: Option<(u32, u32)>,
    /// A number that only it has.
    pub unique_id: Option<i32>,
    values: Range<usize>,
}

impl Block {
    /// Reads a block. Bytes behind its end are ignored: a buffer is longer than what was written to it.
    ///
    /// # Errors
    /// The bytes are no block, or one of its lengths or counts does not fit.
    pub fn parse(mut data: Vec<u8>) -> Result<Block, BlockError> {
        if !data.starts_with(&[b'P', 0, b'E', 0, b'R', 0, b'F', 0]) {
            return Err(BlockError::Signature);
        }
        let there = data.len();
        let header = At { data: &data, structure: "header", start: 0, end: there };
        let cut = |_| BlockError::Cut { stated: HEADER, there };
        if header.u32(8, "byte order").map_err(cut)? != 1 {
            return Err(BlockError::BigEndian);
        }
        let stated = header.u32(20, "length").map_err(cut)? as usize;
        if stated > MOST_BYTES {
            return Err(BlockError::TooLong(stated));
        }
        if stated > there {
            return Err(BlockError::Cut { stated, there });
        }
        data.truncate(stated);
        let header = At { data: &data, structure: "header", start: 0, end: stated };
        let first = header.length(24, HEADER, stated, "header length")?;
        let (name_length, name_offset) = (header.u32(80, "name")?, header.u32(84, "name")?);
        let name = header.text(name_offset, name_length, first, true, "name")?;
        let mut block = Block {
            machine: name,
            unix_ms: unix_ms(&data),
            qpc: header.i64(56, "time")?,
            qpc_hz: header.i64(64, "frequency")?,
            time_100ns: header.i64(72, "time")?,
            objects: Vec::new(),
            data: Vec::new(),
        };
        let mut start = first;
        for _ in 0..header.count(28, MOST_OBJECTS, "number of objects")? {
            let (object, length) = Object::parse(&data, start)?;
            block.objects.push(object);
            start += length;
        }
        block.data = data;
        Ok(block)
    }

    /// The bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The clocks of an object.
    pub fn clocks(&self, object: &Object) -> Clocks {
        let (time, frequency) = object.clock;
        Clocks {
            qpc: self.qpc,
            qpc_hz: self.qpc_hz,
            time_100ns: self.time_100ns,
            object: time,
            object_hz: frequency,
        }
    }

    /// The raw value of a counter of an instance. `None` where there is none, or its size is neither 4 nor 8 bytes.
    pub fn raw(&self, instance: &Instance, counter: &Definition) -> Option<u64> {
        let mut value = self.values(instance, counter.offset)?;
        match counter.size {
            4 => value.u32().map(u64::from),
            8 => value.u64(),
            _ => None,
        }
    }

    /// The number behind a raw value: the count of things that a multi-timer is the sum of.
    pub fn behind(&self, instance: &Instance, counter: &Definition) -> Option<u32> {
        self.values(instance, counter.offset.checked_add(counter.size)?)?.u32()
    }

    /// The values of an instance from an offset on. The first four bytes are their length.
    fn values(&self, instance: &Instance, offset: u32) -> Option<Reader<'_>> {
        let values = self.data.get(instance.values.clone())?;
        let offset = offset as usize;
        (offset >= VALUES).then(|| Reader::at(values, offset))
    }
}

impl Object {
    /// The object at `start`, and its length.
    fn parse(data: &[u8], start: usize) -> Result<(Object, usize), BlockError> {
        let at = At { data, structure: "object", start, end: data.len() };
        let length = at.length(0, OBJECT, at.room(), "length")?;
        let at = At { end: start + length, ..at };
        let instances_at = at.length(4, OBJECT, length, "definition length")?;
        let counters_at = at.length(8, OBJECT, instances_at, "header length")?;
        let number = at.u32(40, "number of instances")? as i32;
        let mut object = Object {
            name: at.u32(12, "name")?,
            help: at.u32(20, "help")?,
            has_instances: number != -1,
            clock: (at.i64(48, "time")?, at.i64(56, "frequency")?),
            counters: Vec::new(),
            instances: Vec::new(),
        };
        let mut next = start + counters_at;
        for _ in 0..at.count(32, MOST_COUNTERS, "number of counters")? {
            let at = At { data, structure: "counter definition", start: next, end: start + instances_at };
            next += at.length(0, DEFINITION, at.room(), "length")?;
            object.counters.push(Definition {
                name: at.u32(4, "name")?,
                help: at.u32(12, "help")?,
                kind: CounterType(at.u32(28, "type")?),
                size: at.u32(32, "size")?,
                offset: at.u32(36, "offset")?,
            });
        }
        let is_utf16 = at.u32(44, "code page")? == 0;
        let mut next = start + instances_at;
        let values = |next: usize| {
            let at = At { data, structure: "counter block", start: next, end: start + length };
            at.length(0, VALUES, at.room(), "length").map(|length| next..next + length)
        };
        match number {
            -1 => {
                let values = values(next)?;
                object.instances.push(Instance {
                    name: String::new(),
                    parent: None,
                    unique_id: None,
                    values,
                });
            }
            // Definitions alone, as `MetadataGlobal` gives them.
            -3..=-2 => {}
            _ if number < 0 => return Err(at.wrong("number of instances")),
            _ => {
                for _ in 0..number {
                    let at = At { data, structure: "instance", start: next, end: start + length };
                    let length = at.length(0, INSTANCE, at.room(), "length")?;
                    let name = (at.u32(16, "name")?, at.u32(20, "name")?);
                    let parent = (at.u32(4, "parent")?, at.u32(8, "parent")?);
                    let unique_id = at.u32(12, "id")? as i32;
                    let values = values(next + length)?;
                    next = values.end;
                    object.instances.push(Instance {
                        name: at.text(name.0, name.1, length, is_utf16, "name")?,
                        parent: (parent.0 != 0).then_some(parent),
                        unique_id: (unique_id != -1).then_some(unique_id),
                        values,
                    });
                }
            }
        }
        Ok((object, length))
    }
}

/// A structure that begins at `start`, and ends at `end` at the latest.
#[derive(Clone, Copy)]
struct At<'a> {
    data: &'a [u8],
    structure: &'static str,
    start: usize,
    end: usize,
}

impl At<'_> {
    fn wrong(self, field: &'static str) -> BlockError {
        BlockError::Structure { structure: self.structure, offset: self.start, field }
    }

    fn room(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    fn reader(&self, offset: usize) -> Reader<'_> {
        Reader::at(self.data.get(self.start..self.end).unwrap_or_default(), offset)
    }

    fn u32(self, offset: usize, field: &'static str) -> Result<u32, BlockError> {
        self.reader(offset).u32().ok_or_else(|| self.wrong(field))
    }

    fn i64(self, offset: usize, field: &'static str) -> Result<i64, BlockError> {
        self.reader(offset).i64().ok_or_else(|| self.wrong(field))
    }

    fn count(self, at: usize, most: u32, field: &'static str) -> Result<u32, BlockError> {
        self.u32(at, field).and_then(|count| if count <= most { Ok(count) } else { Err(self.wrong(field)) })
    }

    /// A length or an offset between two others.
    fn length(self, at: usize, least: usize, most: usize, field: &'static str) -> Result<usize, BlockError> {
        let length = self.u32(at, field)? as usize;
        if (least..=most).contains(&length) { Ok(length) } else { Err(self.wrong(field)) }
    }

    /// A text inside the first `limit` bytes of the structure. Its length counts the zero at its end.
    fn text(
        self,
        offset: u32,
        length: u32,
        limit: usize,
        is_utf16: bool,
        field: &'static str,
    ) -> Result<String, BlockError> {
        let end = (offset as usize).checked_add(length as usize).filter(|end| *end <= limit);
        let end = end.ok_or_else(|| self.wrong(field))?;
        let bytes = self.data.get(self.start + offset as usize..self.start + end);
        let bytes = bytes.ok_or_else(|| self.wrong(field))?;
        let ansi: Ansi<'_> = Reader::new(bytes).ansi();
        Ok(if is_utf16 { Reader::new(bytes).utf16().to_string() } else { ansi.to_string() })
    }
}

/// The `SYSTEMTIME` of a block in ms since 1970.
fn unix_ms(data: &[u8]) -> Option<i64> {
    let mut reader = Reader::at(data, 36);
    let mut next = || reader.u16().map(i64::from);
    let (year, month, _, day) = (next()?, next()?, next()?, next()?);
    let (hour, minute, second, ms) = (next()?, next()?, next()?, next()?);
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 || ms > 999 {
        return None;
    }
    // Years begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}
