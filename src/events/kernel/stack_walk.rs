//! StackWalk events (group 18): stacks of earlier events, whole or by key.

use crate::bytes::Reader;
use crate::event::{Event, ExtendedItems, Kind, Pointer, Ticks};

/// The frames of a stack, leaf first, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    pointer: Pointer,
}

impl<'a> Frames<'a> {
    /// Frames of `pointer` width in `bytes`; bytes beyond the last whole one are left out.
    pub fn new(bytes: &'a [u8], pointer: Pointer) -> Self {
        Frames { bytes, pointer }
    }

    /// The addresses from the leaf on, without the zeros that WOW64 borders leave.
    pub fn addresses(&self) -> impl DoubleEndedIterator<Item = u64> + use<'a> {
        let (wide, narrow) = match self.pointer {
            Pointer::Bits64 => (self.bytes.as_chunks::<8>().0, [].as_slice()),
            Pointer::Bits32 => ([].as_slice(), self.bytes.as_chunks::<4>().0),
        };
        let wide = wide.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let narrow = narrow.iter().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        wide.chain(narrow).filter(|address| *address != 0)
    }

    /// The width of its addresses.
    pub fn pointer(&self) -> Pointer {
        self.pointer
    }
}

/// One StackWalk record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackWalk<'a> {
    /// A fragment of the stack of the event at `event_time` on `tid`: its kernel part or its user part.
    Stack {
        /// The time of the event that the stack belongs to.
        event_time: Ticks,
        /// The thread's process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The fragment.
        frames: Frames<'a>,
    },
    /// The same by reference; the frames come later under the key.
    Key {
        /// The time of the event that the stack belongs to.
        event_time: Ticks,
        /// The thread's process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The key.
        key: u64,
        /// True for the kernel part.
        kernel: bool,
    },
    /// The frames of a key.
    Definition {
        /// The key; the same value can be live for a kernel part and a user part.
        key: u64,
        /// The fragment.
        frames: Frames<'a>,
        /// True when the key was made just now; false when it leaves the cache, or the session ends.
        created: bool,
    },
}

impl<'a> StackWalk<'a> {
    /// Reads the payload of a [`StackWalk::Stack`], which has opcode 32.
    #[inline]
    pub fn read_stack(payload: &'a [u8], pointer: Pointer) -> Option<StackWalk<'a>> {
        let mut r = Reader::new(payload);
        let (event_time, pid, tid) = (Ticks(r.i64()?), r.u32()?, r.u32()?);
        Some(StackWalk::Stack { event_time, pid, tid, frames: Frames::new(r.rest(), pointer) })
    }
}

/// Stack 32: event time u64, process, thread, frames. Keys 37, 38: event time u64, process, thread, key P.
/// Definitions 34, 35, 36: key P, frames. All but 34 verified on net.4.5.2.x64.etl.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<StackWalk<'a>>> {
    let mut r = event.reader();
    let p = event.pointer;
    Some(Some(match event.opcode {
        32 => StackWalk::read_stack(event.payload, p)?,
        37 | 38 => StackWalk::Key {
            event_time: Ticks(r.i64()?),
            pid: r.u32()?,
            tid: r.u32()?,
            key: p.read(&mut r)?,
            kernel: event.opcode == 37,
        },
        34..=36 => StackWalk::Definition {
            key: p.read(&mut r)?,
            frames: Frames::new(r.rest(), p),
            created: event.opcode == 34,
        },
        _ => return Some(None),
    }))
}

/// The event of Kernel-EventTracing whose stack is the user part of what its thread did in the kernel.
pub const LATE_USER_STACK: Kind = Kind::Manifest(18);

/// The stack that an event carries itself, as an extended item: match id u64, then addresses. A 32-bit process on a
/// 64-bit system has 64-bit frames too (verified on net.4.5.2.x64.etl).
pub fn own_stack<'a>(event: &Event<'a>) -> Option<Frames<'a>> {
    event.extended().find_map(|(kind, data)| {
        let pointer = match kind {
            ExtendedItems::STACK64 => Pointer::Bits64,
            ExtendedItems::STACK32 => Pointer::Bits32,
            _ => return None,
        };
        Some(Frames::new(data.get(8..)?, pointer))
    })
}
