//! A whole file.

use std::io::{self, Seek, Write};

use super::logfile_header::LogfileHeader;
use super::{Buffer, Clock, Event, Sample, Stream, stack_walk, xpress};

/// What the clock of a trace shows at its header record unless told otherwise: 0.1 s at 10 MHz.
pub const START: i64 = 1_000_000;

/// The time of [`START`]: 2025-05-14 09:00 UTC as FILETIME.
const START_TIME: i64 = 133_916_868_000_000_000;

const SEQUENTIAL: u32 = 0x1;
const RELOGGED: u32 = 0x0001_0000;
const COMPRESSED: u32 = 0x0400_0000;

/// A file in the making.
///
/// [`event`](Etl::event)s may come in any order: each goes to its processor's buffer in time order, and a buffer
/// is written when it is full or at the end. [`buffer`](Etl::buffer)s come after them as they are.
#[derive(Clone, Debug)]
pub struct Etl {
    header: LogfileHeader,
    start: Option<i64>,
    end_time: Option<i64>,
    compressor: Option<xpress::Compressor>,
    merged: bool,
    header_events: Vec<(i64, Event)>,
    header_patches: Vec<(usize, Vec<u8>)>,
    events: Vec<(u16, i64, Event)>,
    tail: Vec<Tail>,
}

#[derive(Clone, Debug)]
enum Tail {
    Buffer(Buffer),
    Bytes(Vec<u8>),
}

impl Default for Etl {
    fn default() -> Self {
        Self::new()
    }
}

impl Etl {
    /// 64-bit, one processor, a 10 MHz QPC, buffers of 64 KiB, Windows 11.
    pub fn new() -> Self {
        let header = LogfileHeader {
            buffer_size: 64 * 1024,
            build: 26100,
            cpus: 1,
            end_time: 0,
            mode: SEQUENTIAL,
            buffers_written: 0,
            pointer_size: 8,
            events_lost: 0,
            cpu_mhz: 2995,
            boot_time: START_TIME - 36_000_000_000, // an hour before
            clock: Clock::Qpc { freq: 10_000_000 },
            start_time: START_TIME,
            buffers_lost: 0,
            session: "synth".into(),
            file: r"C:\trace\synth.etl".into(),
        };
        Etl {
            header,
            start: None,
            end_time: None,
            compressor: None,
            merged: false,
            header_events: Vec::new(),
            header_patches: Vec::new(),
            events: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// 4 or 8: of the traced system, and so of every record that is not told otherwise.
    pub fn pointer_size(mut self, bytes: usize) -> Self {
        self.header.pointer_size = bytes;
        self
    }

    pub fn cpus(mut self, cpus: u32) -> Self {
        self.header.cpus = cpus;
        self
    }

    pub fn clock(mut self, clock: Clock) -> Self {
        self.header.clock = clock;
        self
    }

    /// What the clock showed at the header record. [`START`], or with [`Clock::SystemTime`] the start time.
    pub fn start(self, ticks: i64) -> Self {
        Self { start: Some(ticks), ..self }
    }

    /// When that was, as FILETIME.
    pub fn start_time(mut self, filetime: i64) -> Self {
        self.header.start_time = filetime;
        self
    }

    /// When the session ended, as FILETIME; 0 for a log that was not closed. By itself the last event's time.
    pub fn end_time(self, filetime: i64) -> Self {
        Self { end_time: Some(filetime), ..self }
    }

    pub fn boot_time(mut self, filetime: i64) -> Self {
        self.header.boot_time = filetime;
        self
    }

    /// The build of Windows.
    pub fn build(mut self, build: u32) -> Self {
        self.header.build = build;
        self
    }

    /// The session's buffer size in bytes.
    pub fn buffer_size(mut self, bytes: u32) -> Self {
        self.header.buffer_size = bytes;
        self
    }

    /// What the header says was lost.
    pub fn lost(mut self, events: u32, buffers: u32) -> Self {
        (self.header.events_lost, self.header.buffers_lost) = (events, buffers);
        self
    }

    /// More LogFileMode bits.
    pub fn mode(mut self, bits: u32) -> Self {
        self.header.mode |= bits;
        self
    }

    /// The names of session and file.
    pub fn names(mut self, session: &str, file: &str) -> Self {
        (self.header.session, self.header.file) = (session.into(), file.into());
        self
    }

    /// Compresses all buffers but the first.
    pub fn compressed(self) -> Self {
        self.compressed_by(xpress::compress)
    }

    /// The same by another compressor.
    pub fn compressed_by(mut self, compressor: xpress::Compressor) -> Self {
        self.header.mode |= COMPRESSED;
        Self { compressor: Some(compressor), ..self }
    }

    /// As a merge writes it: its names, a small first buffer with the processor in one byte.
    pub fn merged(mut self) -> Self {
        self.header.mode |= RELOGGED;
        Self { merged: true, ..self }.names("Relogger", "[multiple files]")
    }

    /// One more record in the first buffer.
    pub fn header_event(mut self, time: i64, event: impl Into<Event>) -> Self {
        self.header_events.push((time, event.into()));
        self
    }

    /// Other bytes at an offset of the finished first buffer. Windows 7 left its SavedOffset (4) at 0.
    pub fn patch_first_buffer(mut self, at: usize, bytes: &[u8]) -> Self {
        self.header_patches.push((at, bytes.to_vec()));
        self
    }

    /// An event on a processor at a time of the trace's clock.
    pub fn event(mut self, cpu: u16, time: i64, event: impl Into<Event>) -> Self {
        self.events.push((cpu, time, event.into()));
        self
    }

    /// A sample with its stack, leaf first: the kernel part two ticks after the sample, the user part after four.
    pub fn sampled(self, cpu: u16, time: i64, process: u32, thread: u32, frames: &[u64]) -> Self {
        let is_kernel = |&address: &u64| match self.header.pointer_size {
            4 => address >= 0x8000_0000,
            _ => address >= 0xFFFF_0000_0000_0000,
        };
        let (kernel, user) = frames.split_at(frames.iter().take_while(|&ip| is_kernel(ip)).count());
        let leaf = *frames.first().expect("a stack has frames");
        let mut etl = self.event(cpu, time, Sample::new(leaf, thread));
        if !kernel.is_empty() {
            etl = etl.event(cpu, time + 2, stack_walk::full(time, process, thread, kernel));
        }
        if !user.is_empty() {
            etl = etl.event(cpu, time + 4, stack_walk::full(time, process, thread, user));
        }
        etl
    }

    /// An exact buffer after those of the events. It gets the next sequence number if it has none.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.tail.push(Tail::Buffer(buffer));
        self
    }

    /// Exact bytes after the buffers.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.tail.push(Tail::Bytes(bytes.to_vec()));
        self
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        self.events.sort_by_key(|&(_, time, _)| time);
        self.header.end_time = self.end_time.unwrap_or_else(|| self.last_event_time());
        let mut buffers: Vec<Buffer> = self.event_buffers();
        if let Some(last) = buffers.pop() {
            buffers.push(last.last_of_flush());
        }
        let mut body: Vec<u8> = Vec::new();
        let mut sequence = 1;
        for part in buffers.into_iter().map(Tail::Buffer).chain(self.tail.iter().cloned()) {
            match part {
                Tail::Buffer(buffer) => {
                    body.extend(buffer.sequence_or(sequence).finish());
                    sequence += 1;
                }
                Tail::Bytes(bytes) => body.extend(bytes),
            }
        }
        self.header.buffers_written = u32::try_from(sequence).expect("few buffers");
        let mut file = self.first_buffer().finish();
        file.extend(body);
        file
    }

    pub(super) fn start_ticks(&self) -> i64 {
        self.start.unwrap_or(match self.header.clock {
            Clock::SystemTime => self.header.start_time,
            _ => START,
        })
    }

    fn last_event_time(&self) -> i64 {
        self.filetime(self.events.last().map_or(self.start_ticks(), |&(_, time, _)| time))
    }

    fn filetime(&self, time: i64) -> i64 {
        let ticks = time - self.start_ticks();
        let filetime = i128::from(ticks) * 10_000_000 / i128::from(self.header.clock.frequency());
        self.header.start_time + i64::try_from(filetime).expect("a time in our age")
    }

    fn first_buffer(&self) -> Buffer {
        let start = self.start_ticks();
        let size = self.header.buffer_size as usize;
        let mut buffer = match self.merged {
            true => Buffer::new(0).narrow_cpu(0).size(size.min(0x400)),
            false => Buffer::new(0).size(size),
        };
        buffer = buffer.pointer_size(self.header.pointer_size).sequence(0).kind(4).last_of_flush();
        buffer = buffer.event(start, self.header.clone());
        buffer = self.header_patches.iter().fold(buffer, |buffer, (at, bytes)| buffer.patch(*at, bytes));
        self.header_events.iter().cloned().fold(buffer, |buffer, (time, event)| buffer.event(time, event))
    }

    /// The buffers of the events in the order in which they filled up, then the rest by processor.
    fn event_buffers(&self) -> Vec<Buffer> {
        let mut open = self.open_buffers();
        let mut written: Vec<Buffer> = Vec::new();
        for (cpu, time, event) in &self.events {
            written.extend(open.push(*cpu, *time, &event.record(*time, self.header.pointer_size)));
        }
        let end = self.events.last().map_or(0, |&(_, time, _)| time);
        written.extend(open.rest(end));
        written
    }

    pub(super) fn open_buffers(&self) -> OpenBuffers {
        let empty = Buffer::new(0).size(self.header.buffer_size as usize);
        let empty = self.compressor.map_or(empty.clone(), |compressor| empty.compressed_by(compressor));
        OpenBuffers { empty, filling: Vec::new() }
    }

    /// Writes the file while its events come, which must be in order of time for each processor. It has no events,
    /// buffers or bytes of its own.
    pub fn stream<W: Write + Seek>(self, out: W) -> io::Result<Stream<W>> {
        Stream::new(self, out)
    }

    pub(super) fn record_of(&self, time: i64, event: impl Into<Event>) -> Vec<u8> {
        event.into().record(time, self.header.pointer_size)
    }

    /// The first buffer of a file that ended at `end` and has so many buffers.
    pub(super) fn first_buffer_at(&mut self, end: i64, buffers: i64) -> Buffer {
        self.header.end_time = self.end_time.unwrap_or_else(|| self.filetime(end));
        self.header.buffers_written = u32::try_from(buffers).expect("less than 4 billion buffers");
        self.first_buffer()
    }
}

/// The buffer that each processor fills.
#[derive(Clone, Debug)]
pub(super) struct OpenBuffers {
    empty: Buffer,
    filling: Vec<Buffer>,
}

impl OpenBuffers {
    /// Adds a record, and gives the buffer that has no room for it.
    pub(super) fn push(&mut self, cpu: u16, time: i64, record: &[u8]) -> Option<Buffer> {
        while self.filling.len() <= usize::from(cpu) {
            let next = u16::try_from(self.filling.len()).expect("a processor number has 16 bits");
            self.filling.push(self.empty.clone().cpu(next));
        }
        let slot = &mut self.filling[usize::from(cpu)];
        let full = (!slot.has_room_for(record.len()))
            .then(|| std::mem::replace(slot, self.empty.clone().cpu(cpu)).time(time));
        slot.push(record);
        full
    }

    /// What they would take in the file, about: compressed a quarter of their records.
    pub(super) fn size_in_file(&self) -> usize {
        self.filling.iter().filter(|buffer| !buffer.is_empty()).map(Buffer::size_in_file).sum()
    }

    /// Those that have records, by processor.
    pub(super) fn rest(self, end: i64) -> impl Iterator<Item = Buffer> {
        self.filling.into_iter().filter(|buffer| !buffer.is_empty()).map(move |buffer| buffer.time(end))
    }
}
