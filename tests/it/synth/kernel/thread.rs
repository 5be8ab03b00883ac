//! Threads: event group 5.

use crate::synth::{Bytes, Event, IntoEvent};

const GROUP: u8 = 0x05;

/// A thread event of versions 0 to 3. Version 3 with a name by default.
#[derive(Clone, Debug)]
pub struct Thread {
    kind: u8,
    version: u16,
    process: u32,
    id: u32,
    kernel_stack: (u64, u64),
    user_stack: (u64, u64),
    affinity: u64,
    start: u64,
    win32_start: u64,
    teb: u64,
    service: u32,
    priorities: [u8; 3],
    flags: u8,
    name: Option<String>,
}

impl Thread {
    fn new(kind: u8, process: u32, id: u32) -> Self {
        Thread {
            kind,
            version: 3,
            process,
            id,
            kernel_stack: (0x9500_7000, 0x9500_1000),
            user_stack: (0x0040_0000, 0x003f_c000),
            affinity: 0xff,
            start: 0x7700_1000,
            win32_start: 0x0040_1000,
            teb: 0x7ffd_0000,
            service: 0,
            priorities: [8, 5, 2],
            flags: 0,
            name: Some(String::new()),
        }
    }

    /// A thread begins; the header knows its creator.
    pub fn start(process: u32, id: u32) -> Self {
        Self::new(1, process, id)
    }

    /// A thread ends.
    pub fn end(process: u32, id: u32) -> Self {
        Self::new(2, process, id)
    }

    /// A thread that lived when the session began.
    pub fn dc_start(process: u32, id: u32) -> Self {
        Self::new(3, process, id)
    }

    /// A thread that lived when the session ended.
    pub fn dc_end(process: u32, id: u32) -> Self {
        Self::new(4, process, id)
    }

    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    /// Base (the high end) and limit.
    pub fn kernel_stack(self, base: u64, limit: u64) -> Self {
        Self { kernel_stack: (base, limit), ..self }
    }

    /// Base (the high end) and limit.
    pub fn user_stack(self, base: u64, limit: u64) -> Self {
        Self { user_stack: (base, limit), ..self }
    }

    /// Version 3.
    pub fn affinity(self, affinity: u64) -> Self {
        Self { affinity, ..self }
    }

    /// Versions 1 and 2.
    pub fn start_address(self, start: u64) -> Self {
        Self { start, ..self }
    }

    pub fn win32_start(self, win32_start: u64) -> Self {
        Self { win32_start, ..self }
    }

    pub fn teb(self, teb: u64) -> Self {
        Self { teb, ..self }
    }

    /// The sub-process tag.
    pub fn service(self, service: u32) -> Self {
        Self { service, ..self }
    }

    /// Base, page and I/O priority, version 3.
    pub fn priorities(self, base: u8, page: u8, io: u8) -> Self {
        Self { priorities: [base, page, io], ..self }
    }

    /// Newer builds of version 3.
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Version 3 as it was before threads had names.
    pub fn without_name(self) -> Self {
        Self { name: None, ..self }
    }

    fn lay(&self, bytes: Bytes) -> Bytes {
        if self.version == 0 {
            return bytes.u32(self.id).u32(self.process);
        }
        let bytes = bytes.u32(self.process).u32(self.id);
        if self.version == 1 && matches!(self.kind, 2 | 4) {
            return bytes;
        }
        let bytes = bytes.ptr(self.kernel_stack.0).ptr(self.kernel_stack.1);
        let bytes = bytes.ptr(self.user_stack.0).ptr(self.user_stack.1);
        match self.version {
            // The wait mode, and padding as Vista wrote it.
            1 => bytes.ptr(self.start).ptr(self.win32_start).i8(-1).zeros(3),
            2 => bytes.ptr(self.start).ptr(self.win32_start).ptr(self.teb).u32(self.service),
            _ => {
                let bytes = bytes.ptr(self.affinity).ptr(self.win32_start).ptr(self.teb).u32(self.service);
                let bytes = bytes.raw(&self.priorities).u8(self.flags);
                match &self.name {
                    Some(name) => bytes.utf16z(name),
                    None => bytes,
                }
            }
        }
    }
}

impl From<Thread> for Event {
    /// End is written by the thread itself and Start by its creator, which is a thread of its process unless
    /// told otherwise; the rundown has no ids.
    fn from(thread: Thread) -> Event {
        let (kind, process, id) = (thread.kind, thread.process, thread.id);
        let event = Event::kernel(GROUP, kind, thread.version, move |bytes| thread.lay(bytes));
        match kind {
            1 => event.by(process, id.wrapping_sub(4)),
            2 => event.by(process, id),
            _ => event,
        }
    }
}

/// A thread got a name.
pub fn set_name(process: u32, thread: u32, name: &str) -> Event {
    let name = name.to_owned();
    Event::kernel(GROUP, 72, 2, move |bytes| bytes.u32(process).u32(thread).utf16z(&name)).by(process, thread)
}

/// A processor went from one thread to another.
#[derive(Clone, Debug)]
pub struct CSwitch {
    new: u32,
    old: u32,
    priorities: (i8, i8),
    wait_reason: u8,
    user_mode_wait: bool,
    state: u8,
    waited: u32,
}

impl CSwitch {
    /// `old` waits for a user request (reason 6, state 5), `new` runs.
    pub fn new(old: u32, new: u32) -> Self {
        CSwitch { new, old, priorities: (8, 8), wait_reason: 6, user_mode_wait: true, state: 5, waited: 0 }
    }

    /// Of the old and the new thread.
    pub fn priorities(self, old: i8, new: i8) -> Self {
        Self { priorities: (old, new), ..self }
    }

    /// Why the old thread stopped, and its state: 1 ready, 2 running, 4 terminated, 5 waiting, ....
    pub fn reason(self, wait_reason: u8, state: u8) -> Self {
        Self { wait_reason, state, ..self }
    }

    /// How long the new thread had waited, in clock interrupts.
    pub fn waited(self, interrupts: u32) -> Self {
        Self { waited: interrupts, ..self }
    }
}

impl From<CSwitch> for Event {
    fn from(switch: CSwitch) -> Event {
        Event::kernel(GROUP, 36, 4, move |bytes| {
            bytes
                .u32(switch.new)
                .u32(switch.old)
                .i8(switch.priorities.1)
                .i8(switch.priorities.0)
                .u8(0) // previous C-state
                .i8(0)
                .u8(switch.wait_reason)
                .u8(switch.user_mode_wait.into())
                .u8(switch.state)
                .u8(0) // ideal processor of the old thread
                .u32(switch.waited)
                .u32(0)
        })
    }
}

/// A thread was made ready. `by_dpc`: by a DPC, not by the thread that ran.
pub fn ready(thread: u32, by_dpc: bool) -> Event {
    Event::kernel(GROUP, 50, 2, move |bytes| {
        bytes
            .u32(thread)
            .u8(1) // unwait
            .i8(0)
            .u8(by_dpc.into())
            .u8(0)
    })
}
