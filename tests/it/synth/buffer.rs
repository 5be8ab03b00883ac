//! One buffer of an `.etl` file: 72 bytes of header, then records, each at a multiple of eight.

use super::{Bytes, Event, xpress};

pub(super) const HEADER: usize = 72;

const LAST_OF_FLUSH: u16 = 0x01;
const WIDE_CPU: u16 = 0x20;
const COMPRESSED: u16 = 0x40;

/// A buffer with whatever records one puts in, in the order they come. Every header field that is not set has
/// the value it should have.
#[derive(Clone, Debug)]
pub struct Buffer {
    cpu: u16,
    alignment: Option<u8>,
    pointer_size: usize,
    size: usize,
    time: i64,
    sequence: Option<i64>,
    flags: u16,
    kind: u16,
    compressor: Option<xpress::Compressor>,
    records: Vec<u8>,
    patches: Vec<(usize, Vec<u8>)>,
}

impl Buffer {
    /// An empty 64 KiB buffer of a processor, for records of 64-bit writers.
    pub fn new(cpu: u16) -> Self {
        Buffer {
            cpu,
            alignment: None,
            pointer_size: 8,
            size: 64 * 1024,
            time: 0,
            sequence: None,
            flags: 0,
            kind: 0,
            compressor: None,
            records: Vec::new(),
            patches: Vec::new(),
        }
    }

    /// Of another processor.
    pub(super) fn cpu(self, cpu: u16) -> Self {
        Self { cpu, ..self }
    }

    /// The session's buffer size: what an uncompressed buffer takes in the file.
    pub fn size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// The pointer size of events put in from now on.
    pub fn pointer_size(self, pointer_size: usize) -> Self {
        Self { pointer_size, ..self }
    }

    /// When it was flushed.
    pub fn time(self, time: i64) -> Self {
        Self { time, ..self }
    }

    /// Its number in the file; [`Etl::buffer`](super::Etl::buffer) gives the next one if there is none.
    pub fn sequence(self, sequence: i64) -> Self {
        Self { sequence: Some(sequence), ..self }
    }

    pub(super) fn sequence_or(self, sequence: i64) -> Self {
        Self { sequence: self.sequence.or(Some(sequence)), ..self }
    }

    /// More header flags: 1 flush mark, 2 events lost, 4 buffer lost, ....
    pub fn flags(self, flags: u16) -> Self {
        Self { flags: self.flags | flags, ..self }
    }

    pub(super) fn last_of_flush(self) -> Self {
        self.flags(LAST_OF_FLUSH)
    }

    /// 0 generic, 1 rundown, 4 the file's first, ....
    pub fn kind(self, kind: u16) -> Self {
        Self { kind, ..self }
    }

    /// The processor as one byte and an alignment byte behind it, as merged files have it.
    pub fn narrow_cpu(self, alignment: u8) -> Self {
        Self { alignment: Some(alignment), ..self }
    }

    pub fn compressed(self) -> Self {
        self.compressed_by(xpress::compress)
    }

    pub(super) fn compressed_by(self, compressor: xpress::Compressor) -> Self {
        Self { compressor: Some(compressor), ..self }
    }

    /// The next record, from an event.
    pub fn event(self, time: i64, event: impl Into<Event>) -> Self {
        let record = event.into().record(time, self.pointer_size);
        self.record(&record)
    }

    /// The next record, from its bytes.
    pub fn record(mut self, record: &[u8]) -> Self {
        self.push(record);
        self
    }

    pub(super) fn push(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
        self.records.resize(self.records.len().next_multiple_of(8), 0);
    }

    /// Whether a record of `length` bytes still fits.
    pub(super) fn has_room_for(&self, length: usize) -> bool {
        HEADER + self.records.len() + length.next_multiple_of(8) <= self.size
    }

    /// What it takes in the file, about.
    pub(super) fn size_in_file(&self) -> usize {
        if self.compressor.is_some() { HEADER + self.records.len() / 4 } else { self.size }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Another BufferSize in the header than the bytes that lie there.
    pub fn with_size_field(self, size: u32) -> Self {
        self.patch(0x00, &size.to_le_bytes())
    }

    /// Another SavedOffset than the end of the records.
    pub fn with_saved_offset(self, offset: u32) -> Self {
        self.patch(0x04, &offset.to_le_bytes())
    }

    /// Other bytes at an offset of the finished buffer.
    pub fn patch(mut self, at: usize, bytes: &[u8]) -> Self {
        self.patches.push((at, bytes.to_vec()));
        self
    }

    /// The buffer as it lies in the file.
    pub fn finish(self) -> Vec<u8> {
        let saved = HEADER + self.records.len();
        assert!(saved <= self.size, "{saved} bytes do not fit in a buffer of {}", self.size);
        let body = match self.compressor {
            Some(compress) => compress(&self.records),
            None => {
                let mut body = self.records.clone();
                body.resize(self.size - HEADER, 0xFF);
                body
            }
        };
        let mut buffer = self.header(HEADER + body.len(), saved).raw(&body).finish();
        for (at, bytes) in &self.patches {
            buffer[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        buffer
    }

    fn header(&self, size: usize, saved: usize) -> Bytes {
        let saved = u32::try_from(saved).expect("less than 4 GiB");
        let mut flags = self.flags;
        let cpu = match self.alignment {
            Some(alignment) => {
                let cpu = u8::try_from(self.cpu).expect("the narrow form has 8 bits");
                u16::from_le_bytes([cpu, alignment])
            }
            None => {
                flags |= WIDE_CPU;
                self.cpu
            }
        };
        if self.compressor.is_some() {
            flags |= COMPRESSED;
        }
        Bytes::new(8)
            .u32(u32::try_from(size).expect("less than 4 GiB")) // 0x00 BufferSize
            .u32(saved) //                                         0x04 SavedOffset
            .u32(saved) //                                         0x08 CurrentOffset
            .i32(0) //                                             0x0C ReferenceCount
            .i64(self.time) //                                     0x10 TimeStamp
            .i64(self.sequence.unwrap_or(0)) //                    0x18 SequenceNumber
            .u64(0) //                                             0x20 clock and frequency: not told
            .u16(cpu) //                                           0x28 ProcessorNumber
            .u16(7) //                                             0x2A LoggerId
            .u32(3) //                                             0x2C State: flushed
            .u32(saved) //                                         0x30 Offset
            .u16(flags) //                                         0x34 BufferFlag
            .u16(self.kind) //                                     0x36 BufferType
            .zeros(16) //                                          0x38 reference time: none
    }
}
