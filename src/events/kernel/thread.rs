//! Thread events (group 05): life, names, context switches.

use crate::bytes::Utf16;
use crate::event::Event;

use super::Phase;

/// A thread start, end, or rundown record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread<'a> {
    /// What is said of the thread.
    pub phase: Phase,
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// Where its code began (Win32StartAddr); 0 where the record does not say.
    pub start_address: u64,
    /// Its thread environment block; 0 where the record does not say.
    pub teb: u64,
    /// Its name, in the newer records.
    pub name: Utf16<'a>,
}

/// Layouts (version 3 verified on real files; 0 to 2 on real payloads):
///
/// - 0: thread, process — in this order
/// - 1: process, thread; for starts StackBase, StackLimit, UserStackBase, UserStackLimit, StartAddr, Win32StartAddr
/// - 2: as 1 always, then TebBase, SubProcessTag
/// - 3: Affinity in place of StartAddr; four bytes of priorities and flags, and lately a name, at the end
pub(super) fn decode<'a>(event: &Event<'a>, phase: Phase) -> Option<Thread<'a>> {
    let mut r = event.reader();
    let p = event.pointer;
    let (first, second) = (r.u32()?, r.u32()?);
    let (pid, tid) = if event.version == 0 { (second, first) } else { (first, second) };
    let mut thread = Thread { phase, pid, tid, start_address: 0, teb: 0, name: Utf16::default() };
    if event.version >= 1 {
        // End records of version 1 hold the two ids only.
        let start = r.skip(5 * p.bytes()).and_then(|()| p.read(&mut r));
        thread.start_address = start.unwrap_or(0);
    }
    if event.version >= 2 {
        thread.teb = p.read(&mut r).unwrap_or(0);
    }
    if event.version >= 3 && r.skip(4 + 4).is_some() {
        thread.name = r.utf16();
    }
    Some(thread)
}

/// A thread was given a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadName<'a> {
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// The name.
    pub name: Utf16<'a>,
}

pub(super) fn decode_name<'a>(event: &Event<'a>) -> Option<ThreadName<'a>> {
    let mut r = event.reader();
    Some(ThreadName { pid: r.u32()?, tid: r.u32()?, name: r.utf16() })
}

/// A processor turned from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextSwitch {
    /// The thread that runs now; a stack of this event is its own.
    pub new_tid: u32,
    /// The thread that ran.
    pub old_tid: u32,
    /// The new thread's priority.
    pub new_priority: i8,
    /// The old thread's priority.
    pub old_priority: i8,
    /// Why the old thread left: see [`ContextSwitch::reason`].
    pub old_wait_reason: u8,
    /// 0 if it waits in kernel mode, 1 in user mode.
    pub old_wait_mode: u8,
    /// The state that the old thread is in now: see [`ContextSwitch::leaving`].
    pub old_state: u8,
    /// How long the new thread had waited, in clock interrupts.
    pub new_wait_time: u32,
}

/// 24 bytes, the same in versions 2 to 4; in version 1 the wait time stands first of the last fields too
/// (real payloads).
pub(super) fn decode_switch(event: &Event<'_>) -> Option<ContextSwitch> {
    let mut r = event.reader();
    let (new_tid, old_tid) = (r.u32()?, r.u32()?);
    let (new_priority, old_priority) = (r.i8()?, r.i8()?);
    r.skip(2)?;
    let (old_wait_reason, old_wait_mode, old_state) = (r.u8()?, r.u8()?, r.u8()?);
    r.skip(1)?;
    let new_wait_time = r.u32()?;
    Some(ContextSwitch {
        new_tid,
        old_tid,
        new_priority,
        old_priority,
        old_wait_reason,
        old_wait_mode,
        old_state,
        new_wait_time,
    })
}

/// A thread was made ready to run; a stack of this event is that of the thread which did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadyThread {
    /// The readied thread.
    pub tid: u32,
    /// 0 none, 1 its wait ended, 2 a boost.
    pub adjust_reason: u8,
    /// The priority it gained.
    pub adjust_increment: i8,
    /// 1 readied from a DPC, 2 its kernel stack was swapped out, 4 its process was.
    pub flags: u8,
}

impl ReadyThread {
    /// True if a deferred procedure call made it ready, on the back of whatever thread ran there.
    pub fn is_from_interrupt(&self) -> bool {
        self.flags & 1 != 0
    }
}

pub(super) fn decode_ready(event: &Event<'_>) -> Option<ReadyThread> {
    let mut r = event.reader();
    Some(ReadyThread { tid: r.u32()?, adjust_reason: r.u8()?, adjust_increment: r.i8()?, flags: r.u8()? })
}
