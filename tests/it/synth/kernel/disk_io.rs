//! Disk I/O: event group 1.

use crate::synth::{Event, IntoEvent};

const GROUP: u8 = 0x01;

/// A disk has done what a thread asked for. Version 2 has the thread in its header, version 3 in its payload.
#[derive(Clone, Debug)]
pub struct DiskIo {
    kind: u8,
    version: u16,
    disk: u32,
    bytes: u32,
    offset: u64,
    file: u64,
    irp: u64,
    elapsed: u64,
    asked: Option<(u32, u32)>,
}

impl DiskIo {
    fn new(kind: u8, irp: u64, elapsed: u64) -> Self {
        let file = 0xffff_e000_0000_1000;
        DiskIo { kind, version: 3, disk: 0, bytes: 4096, offset: 0x10_0000, file, irp, elapsed, asked: None }
    }

    /// It read for so many ticks.
    pub fn read(irp: u64, elapsed: u64) -> Self {
        Self::new(10, irp, elapsed)
    }

    /// It wrote.
    pub fn write(irp: u64, elapsed: u64) -> Self {
        Self::new(11, irp, elapsed)
    }

    /// It flushed its cache.
    pub fn flush(irp: u64, elapsed: u64) -> Self {
        Self::new(14, irp, elapsed)
    }

    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    pub fn disk(self, disk: u32) -> Self {
        Self { disk, ..self }
    }

    pub fn bytes(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }

    pub fn file(self, file: u64) -> Self {
        Self { file, ..self }
    }

    /// Who asked for it: process and thread.
    pub fn asked_by(self, process: u32, thread: u32) -> Self {
        Self { asked: Some((process, thread)), ..self }
    }
}

impl From<DiskIo> for Event {
    fn from(io: DiskIo) -> Event {
        let (version, asked) = (io.version, io.asked);
        let event = Event::kernel(GROUP, io.kind, version, move |bytes| {
            // The flags of the request, and what was its response time once.
            let bytes = bytes.u32(io.disk).u32(0x0006_0043);
            let bytes = match io.kind {
                14 => bytes.u64(io.elapsed).ptr(io.irp),
                _ => {
                    let bytes = bytes.u32(io.bytes).u32(0).u64(io.offset);
                    bytes.ptr(io.file).ptr(io.irp).u64(io.elapsed)
                }
            };
            match io.asked {
                Some((_, thread)) if io.version >= 3 => bytes.u32(thread),
                _ => bytes,
            }
        });
        match asked {
            Some((process, thread)) if version < 3 => event.by(process, thread),
            _ => event,
        }
    }
}

/// A thread asks a disk to read (12), write (13) or flush (15). Version 3 has it in its payload, too.
pub fn request(kind: u8, version: u16, irp: u64, process: u32, thread: u32) -> Event {
    let event = Event::kernel(GROUP, kind, version, move |bytes| {
        let bytes = bytes.ptr(irp);
        if version < 3 { bytes } else { bytes.u32(thread) }
    });
    event.by(process, thread)
}
