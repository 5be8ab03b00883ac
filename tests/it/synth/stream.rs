//! A file that is written while its events come: memory holds one buffer for each processor.

use std::io::{self, Seek, SeekFrom, Write};

use super::etl::OpenBuffers;
use super::{Buffer, Etl, Event};

/// A file in the writing. Made by [`Etl::stream`].
#[derive(Debug)]
pub struct Stream<W> {
    etl: Etl,
    open: OpenBuffers,
    out: W,
    buffers: i64,
    written: u64,
    end: i64,
}

impl<W: Write + Seek> Stream<W> {
    pub(super) fn new(mut etl: Etl, out: W) -> io::Result<Self> {
        let first = etl.first_buffer_at(etl.start_ticks(), 1);
        let mut stream =
            Stream { open: etl.open_buffers(), end: etl.start_ticks(), etl, out, buffers: 0, written: 0 };
        stream.write(first)?;
        Ok(stream)
    }

    /// Adds an event to a processor's buffer.
    pub fn event(&mut self, cpu: u16, time: i64, event: impl Into<Event>) -> io::Result<()> {
        let record = self.etl.record_of(time, event);
        self.record(cpu, time, &record)
    }

    /// Adds a record, which has the time in it, to a processor's buffer.
    pub fn record(&mut self, cpu: u16, time: i64, record: &[u8]) -> io::Result<()> {
        self.end = self.end.max(time);
        match self.open.push(cpu, time, record) {
            Some(full) => self.write(full),
            None => Ok(()),
        }
    }

    fn write(&mut self, buffer: Buffer) -> io::Result<()> {
        let bytes = buffer.sequence_or(self.buffers).finish();
        self.buffers += 1;
        self.written += bytes.len() as u64;
        self.out.write_all(&bytes)
    }

    /// The size that the file would have if it ended now, about.
    pub fn size(&self) -> u64 {
        self.written + self.open.size_in_file() as u64
    }

    /// Writes the open buffers, and the header again now that its totals are known. Gives the number of buffers.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        let open = std::mem::replace(&mut self.open, self.etl.open_buffers());
        let mut rest = open.rest(self.end).peekable();
        while let Some(buffer) = rest.next() {
            let is_last = rest.peek().is_none();
            self.write(if is_last { buffer.last_of_flush() } else { buffer })?;
        }
        let first = self.etl.first_buffer_at(self.end, self.buffers);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&first.finish())?;
        self.out.flush()?;
        Ok((self.out, self.buffers as u64))
    }
}
