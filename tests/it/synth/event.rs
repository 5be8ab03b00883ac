//! One event in one of ETW's record headers.

use std::fmt;
use std::rc::Rc;

use super::guid::task_of_hook;
use super::{Bytes, Guid, Item, extended};

/// The process or thread id of a record that knows none.
pub const NO_ID: u32 = u32::MAX;

/// What happened, without when: identity, header, payload. [`Event::record`] makes the bytes.
///
/// The payload is laid only then, as its pointers have the width of the record's header.
#[derive(Clone)]
pub struct Event {
    header: Header,
    version: u16,
    level: u8,
    process: u32,
    thread: u32,
    times: (u32, u32),
    items: Vec<Item>,
    pointer_size: Option<usize>,
    payload: Rc<dyn Fn(Bytes) -> Bytes>,
    patches: Vec<(usize, Vec<u8>)>,
    length: Option<usize>,
}

#[derive(Clone)]
enum Header {
    /// SYSTEM (32 bytes), COMPACT (24: no times) or PERFINFO (16: no ids either), told by group and type.
    Kernel { shape: Kernel, group: u8, kind: u8 },
    /// FULL (48 bytes) or, with the second part, INSTANCE (72), told by task GUID and type.
    Classic { task: Guid, kind: u8, instance: Option<(u32, u32, Guid)> },
    /// EVENT_HEADER (80 bytes and the items), told by provider and id.
    Manifest { provider: Guid, id: u16, more: Descriptor },
    /// A WPP message, told by number; its other header fields are optional.
    Message { number: u16, sequence: Option<u32>, origin: Option<Origin>, timed: bool, ids: bool },
}

/// What else an EVENT_HEADER tells of its event.
#[derive(Clone, Copy, Default)]
struct Descriptor {
    channel: u8,
    opcode: u8,
    task: u16,
    keyword: u64,
    activity: Guid,
}

#[derive(Clone, Copy)]
enum Kernel {
    System,
    Compact,
    PerfInfo,
}

/// Who wrote a WPP message.
#[derive(Clone, Copy)]
pub enum Origin {
    Message(Guid),
    Component(u32),
}

impl Event {
    fn new(header: Header, version: u16, payload: impl Fn(Bytes) -> Bytes + 'static) -> Self {
        Event {
            header,
            version,
            level: 0,
            process: NO_ID,
            thread: NO_ID,
            times: (0, 0),
            items: Vec::new(),
            pointer_size: None,
            payload: Rc::new(payload),
            patches: Vec::new(),
            length: None,
        }
    }

    /// A kernel event without ids in its header (PERFINFO). [`IntoEvent::by`] makes it a SYSTEM record.
    pub fn kernel(group: u8, kind: u8, version: u16, payload: impl Fn(Bytes) -> Bytes + 'static) -> Self {
        Self::new(Header::Kernel { shape: Kernel::PerfInfo, group, kind }, version, payload)
    }

    /// An event of a classic provider (FULL).
    pub fn classic(task: Guid, kind: u8, version: u16, payload: impl Fn(Bytes) -> Bytes + 'static) -> Self {
        Self::new(Header::Classic { task, kind, instance: None }, version, payload)
    }

    /// An event of a manifest, TraceLogging or EventSource provider (EVENT_HEADER).
    pub fn manifest(
        provider: Guid,
        id: u16,
        version: u8,
        payload: impl Fn(Bytes) -> Bytes + 'static,
    ) -> Self {
        let header = Header::Manifest { provider, id, more: Descriptor::default() };
        Event { level: 4, ..Self::new(header, version.into(), payload) }
    }

    /// A WPP message with none of the optional header fields.
    pub fn message(number: u16, payload: impl Fn(Bytes) -> Bytes + 'static) -> Self {
        let header = Header::Message { number, sequence: None, origin: None, timed: false, ids: false };
        Self::new(header, 0, payload)
    }

    /// The optional header fields of a WPP message; the ids come with [`IntoEvent::by`].
    pub fn message_fields(mut self, seq: Option<u32>, from: Option<Origin>, has_time: bool) -> Self {
        let Header::Message { sequence, origin, timed, .. } = &mut self.header else {
            panic!("only a WPP message has optional header fields")
        };
        (*sequence, *origin, *timed) = (seq, from, has_time);
        self
    }

    fn described(mut self, change: impl FnOnce(&mut Descriptor)) -> Self {
        let Header::Manifest { more, .. } = &mut self.header else {
            panic!("only a manifest event has a descriptor")
        };
        change(more);
        self
    }

    pub fn channel(self, channel: u8) -> Self {
        self.described(|more| more.channel = channel)
    }

    pub fn opcode(self, opcode: u8) -> Self {
        self.described(|more| more.opcode = opcode)
    }

    pub fn task(self, task: u16) -> Self {
        self.described(|more| more.task = task)
    }

    pub fn keyword(self, keyword: u64) -> Self {
        self.described(|more| more.keyword = keyword)
    }

    pub fn activity(self, activity: Guid) -> Self {
        self.described(|more| more.activity = activity)
    }

    /// The bytes of the record at `time`, with `pointer_size` where the event has none of its own. No padding.
    pub fn record(&self, time: i64, pointer_size: usize) -> Vec<u8> {
        let width = self.pointer_size.unwrap_or(pointer_size);
        let payload = (self.payload)(Bytes::new(width)).finish();
        let mut record = self.header_bytes(time, width).raw(&payload).finish();
        if let Some(length) = self.length {
            record.resize(length, 0);
        }
        let size = u16::try_from(record.len()).expect("a record has less than 64 KiB").to_le_bytes();
        let size_at = if matches!(self.header, Header::Kernel { .. }) { 4 } else { 0 };
        record[size_at..size_at + 2].copy_from_slice(&size);
        for (at, bytes) in &self.patches {
            record[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        record
    }

    /// The header with a size of 0.
    fn header_bytes(&self, time: i64, width: usize) -> Bytes {
        let by_width = |code32: u8, code64: u8| if width == 4 { code32 } else { code64 };
        let bytes = Bytes::new(width);
        match &self.header {
            Header::Kernel { shape, group, kind } => {
                let code = match shape {
                    Kernel::System => by_width(0x01, 0x02),
                    Kernel::Compact => by_width(0x03, 0x04),
                    Kernel::PerfInfo => by_width(0x10, 0x11),
                };
                let head = bytes.u16(self.version).u8(code).u8(0xC0).u16(0).u8(*kind).u8(*group);
                match shape {
                    Kernel::System => {
                        head.u32(self.thread).u32(self.process).i64(time).u32(self.times.0).u32(self.times.1)
                    }
                    Kernel::Compact => head.u32(self.thread).u32(self.process).i64(time),
                    Kernel::PerfInfo => head.i64(time),
                }
            }
            Header::Classic { task, kind, instance } => {
                let code = if instance.is_some() { by_width(0x0B, 0x15) } else { by_width(0x0A, 0x14) };
                let ids = bytes.u16(0).u8(code).u8(0xC0).u8(*kind).u8(self.level).u16(self.version);
                let ids = ids.u32(self.thread).u32(self.process).i64(time).guid(*task);
                match *instance {
                    Some((id, parent, parent_task)) => {
                        ids.u32(self.times.0).u32(self.times.1).u32(id).u32(parent).guid(parent_task)
                    }
                    None => ids.u32(self.times.0).u32(self.times.1),
                }
            }
            Header::Manifest { provider, id, more } => bytes
                .u16(0)
                .u8(by_width(0x12, 0x13))
                .u8(0xC0)
                .u16(u16::from(!self.items.is_empty())) // flag 1: extended items follow
                .u16(0)
                .u32(self.thread)
                .u32(self.process)
                .i64(time)
                .guid(*provider)
                .u16(*id)
                .u8(u8::try_from(self.version).expect("a manifest event's version has 8 bits"))
                .u8(more.channel)
                .u8(self.level)
                .u8(more.opcode)
                .u16(more.task)
                .u64(more.keyword)
                .u32(self.times.0)
                .u32(self.times.1)
                .guid(more.activity)
                .raw(&extended::lay(&self.items)),
            Header::Message { number, sequence, origin, timed, ids } => {
                let (mut flags, mut bytes) = (0, bytes.u16(0).u8(0).u8(0x90).u16(*number).u16(0));
                if let Some(sequence) = sequence {
                    flags |= 0x1;
                    bytes = bytes.u32(*sequence);
                }
                match origin {
                    Some(Origin::Message(guid)) => (flags, bytes) = (flags | 0x2, bytes.guid(*guid)),
                    Some(Origin::Component(id)) => (flags, bytes) = (flags | 0x4, bytes.u32(*id)),
                    None => {}
                }
                if *timed {
                    (flags, bytes) = (flags | 0x8 | 0x10, bytes.i64(time));
                }
                if *ids {
                    (flags, bytes) = (flags | 0x20, bytes.u32(self.thread).u32(self.process));
                }
                let mut header = bytes.finish();
                header[6] = flags;
                Bytes::new(width).raw(&header)
            }
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.record(0, 8)).finish()
    }
}

/// What every event can be told, whether it is an [`Event`] yet or still a `Process`, `Image`, ....
pub trait IntoEvent: Into<Event> + Sized {
    /// The ids in the header. A PERFINFO record has no place for them and becomes a SYSTEM record.
    fn by(self, process: u32, thread: u32) -> Event {
        let mut event = self.into();
        (event.process, event.thread) = (process, thread);
        match &mut event.header {
            Header::Kernel { shape: shape @ Kernel::PerfInfo, .. } => *shape = Kernel::System,
            Header::Message { ids, .. } => *ids = true,
            _ => {}
        }
        event
    }

    /// A kernel event in a COMPACT header.
    fn compact(self) -> Event {
        let mut event = self.into();
        let Header::Kernel { shape, .. } = &mut event.header else { panic!("not a kernel event") };
        *shape = Kernel::Compact;
        event
    }

    /// A kernel event in a PERFINFO header, which drops the ids.
    fn perfinfo(self) -> Event {
        let mut event = self.into();
        let Header::Kernel { shape, .. } = &mut event.header else { panic!("not a kernel event") };
        *shape = Kernel::PerfInfo;
        event
    }

    /// A kernel event in a FULL header, as a relogging tool writes it: with its task's GUID.
    fn full(self) -> Event {
        let mut event = self.into();
        let Header::Kernel { group, kind, .. } = event.header else { panic!("not a kernel event") };
        event.header = Header::Classic { task: task_of_hook(group, kind), kind, instance: None };
        event
    }

    /// A classic event in an INSTANCE header.
    fn instance(self, id: u32, parent: u32, parent_task: Guid) -> Event {
        let mut event = self.into();
        let Header::Classic { instance, .. } = &mut event.header else { panic!("not a classic event") };
        *instance = Some((id, parent, parent_task));
        event
    }

    /// The record of a 32-bit (4) or 64-bit (8) writer, whatever the trace's own pointers are.
    fn pointer_size(self, bytes: usize) -> Event {
        Event { pointer_size: Some(bytes), ..self.into() }
    }

    fn level(self, level: u8) -> Event {
        Event { level, ..self.into() }
    }

    /// The header's version, with the payload left as it is: for versions that no reader knows yet.
    fn header_version(self, version: u16) -> Event {
        Event { version, ..self.into() }
    }

    /// The header's two processor times, in clock interrupts.
    fn processor_times(self, kernel: u32, user: u32) -> Event {
        Event { times: (kernel, user), ..self.into() }
    }

    /// One more extended item of a manifest event.
    fn item(self, item: Item) -> Event {
        let mut event = self.into();
        assert!(matches!(event.header, Header::Manifest { .. }), "only a manifest event has extended items");
        event.items.push(item);
        event
    }

    /// More bytes after the payload.
    fn extra(self, bytes: &[u8]) -> Event {
        let event = self.into();
        let (payload, more) = (event.payload.clone(), bytes.to_vec());
        Event { payload: Rc::new(move |bytes| payload(bytes).raw(&more)), ..event }
    }

    /// The whole record cut off (or filled up with zeros) to `length` bytes, its size field telling so.
    fn record_length(self, length: usize) -> Event {
        Event { length: Some(length), ..self.into() }
    }

    /// Other bytes at an offset of the finished record: for wrong sizes, types and marks.
    fn patch(self, at: usize, bytes: &[u8]) -> Event {
        let mut event = self.into();
        event.patches.push((at, bytes.to_vec()));
        event
    }
}

impl<T: Into<Event>> IntoEvent for T {}
