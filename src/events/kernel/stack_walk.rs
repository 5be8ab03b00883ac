//! StackWalk events (group 18): stacks of earlier events, whole or by key.

use crate::event::{Event, ExtendedItems, Pointer, Ticks};

/// The frames of a stack, leaf first, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    pointer: Pointer,
}

/// Which addresses are the kernel's, for both pointer widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpace {
    /// Where it begins on a 32-bit system.
    start_32: u64,
}

/// The first kernel address of a 64-bit system, as ARM64 has it too; x64's own kernel begins above it.
const KERNEL_64: u64 = 0xFFFF_0000_0000_0000;
/// The first kernel address of a 32-bit system without /3GB.
const KERNEL_32: u64 = 0x8000_0000;
/// The 64 KiB below the kernel are nobody's.
const NO_MANS_LAND: u64 = 0x1_0000;

impl Default for KernelSpace {
    fn default() -> Self {
        KernelSpace { start_32: KERNEL_32 }
    }
}

impl KernelSpace {
    /// That of a machine with this highest user-mode address (SystemConfig): a 32-bit system may leave its programs 3 GiB.
    /// An address that leaves them less than the usual 2 GiB is not believed.
    pub fn above(highest_user_address: u64) -> Self {
        let start = highest_user_address.saturating_add(NO_MANS_LAND + 1);
        KernelSpace { start_32: if start <= 1 << 32 { start.max(KERNEL_32) } else { KERNEL_32 } }
    }

    /// True for an address of the kernel's on a system of this pointer width.
    pub fn contains(self, address: u64, pointer: Pointer) -> bool {
        address
            >= match pointer {
                Pointer::Bits32 => self.start_32,
                Pointer::Bits64 => KERNEL_64,
            }
    }
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

/// Stack 32: event time u64, process, thread, frames. Keys 37, 38: event time u64, process, thread, key P.
/// Definitions 34, 35, 36: key P, frames. All but 34 verified on net.4.5.2.x64.etl.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<StackWalk<'a>>> {
    let mut r = event.reader();
    let p = event.pointer;
    Some(Some(match event.opcode {
        32 => StackWalk::Stack {
            event_time: Ticks(r.i64()?),
            pid: r.u32()?,
            tid: r.u32()?,
            frames: Frames::new(r.rest(), p),
        },
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
