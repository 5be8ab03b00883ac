//! Kernel events, and those that a merge adds about the kernel's.
//!
//! Layouts go by opcode, version and pointer width. Fields are only ever appended: a version newer than those known
//! here is read as the newest known, its tail left alone.

mod block;
mod disk_io;
mod file_io;
mod image;
mod page_fault;
mod perf_info;
mod process;
mod stack_walk;
mod system;
mod thread;
mod wait_reason;

pub use block::sid_text;
pub use disk_io::{DiskIo, DiskIoInit, DiskIoKind};
pub use file_io::{FileName, Naming};
pub use image::{Image, ImageId};
pub use page_fault::{FaultKind, FaultRead, PageFault};
pub use perf_info::{CounterSample, Interrupt, InterruptKind, ProfileInterval, Sample};
pub use process::Process;
pub use stack_walk::{Frames, LATE_USER_STACK, StackWalk, own_stack};
pub use system::{Cpu, Lost, SysConfig};
pub use thread::{ContextSwitch, ReadyThread, Thread, ThreadName};
pub use wait_reason::{Leaving, WaitReason};

use crate::event::Event;

use crate::guids::{
    DISK_IO, FILE_IO, IMAGE, IMAGE_ID, LOST_EVENT, PAGE_FAULT, PERF_INFO, PROCESS, STACK_WALK, SYS_CONFIG,
    SYSTEM_CONFIG, THREAD,
};

/// What a record says of a process, thread or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It begins now.
    Start,
    /// It ends now.
    End,
    /// It was there when the session began.
    RundownStart,
    /// It is there while the session ends.
    RundownEnd,
    /// It has ended, but something still holds the kernel object (processes only).
    Defunct,
}

/// A decoded kernel event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel<'a> {
    /// A process began, ended, or is there.
    Process(Process<'a>),
    /// A thread began, ended, or is there.
    Thread(Thread<'a>),
    /// A thread was named.
    ThreadName(ThreadName<'a>),
    /// A processor changed threads.
    ContextSwitch(ContextSwitch),
    /// A thread was made ready.
    ReadyThread(ReadyThread),
    /// An image was mapped, unmapped, or is there.
    Image(Image<'a>),
    /// The identity of an image's file.
    ImageId(ImageId<'a>),
    /// A CPU sample.
    Sample(Sample),
    /// A sample of a performance counter.
    CounterSample(CounterSample),
    /// A page fault.
    PageFault(PageFault),
    /// The sampling interval.
    ProfileInterval(ProfileInterval<'a>),
    /// A DPC or interrupt.
    Interrupt(Interrupt),
    /// A disk has done what it was asked for.
    DiskIo(DiskIo),
    /// A disk is asked for something.
    DiskIoInit(DiskIoInit),
    /// The name of a file.
    FileName(FileName<'a>),
    /// A stack, or a part of how one is told.
    StackWalk(StackWalk<'a>),
    /// The machine's processors.
    Cpu(Cpu<'a>),
    /// The machine's volumes.
    SysConfig(SysConfig<'a>),
    /// A loss.
    Lost(Lost),
}

/// Decodes a classic event; the outer `None` if its payload is too short for its layout, the inner `None` if the
/// event is of no use here.
#[inline]
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<Option<Kernel<'a>>> {
    Some(match (event.provider, event.opcode) {
        (PERF_INFO, 46) => Some(Kernel::Sample(perf_info::decode_sample(event)?)),
        (PERF_INFO, 47) => Some(Kernel::CounterSample(perf_info::decode_counter_sample(event)?)),
        (PAGE_FAULT, _) => page_fault::decode(event)?.map(Kernel::PageFault),
        (STACK_WALK, _) => stack_walk::decode(event)?.map(Kernel::StackWalk),
        (THREAD, 36) => Some(Kernel::ContextSwitch(thread::decode_switch(event)?)),
        (THREAD, 50) => Some(Kernel::ReadyThread(thread::decode_ready(event)?)),
        (THREAD, 72) => Some(Kernel::ThreadName(thread::decode_name(event)?)),
        (THREAD, opcode) => match phase(opcode) {
            Some(phase) => Some(Kernel::Thread(thread::decode(event, phase)?)),
            None => None,
        },
        (PROCESS, 39) => Some(Kernel::Process(process::decode(event, Phase::Defunct)?)),
        (PROCESS, opcode) => match phase(opcode) {
            Some(phase) => Some(Kernel::Process(process::decode(event, phase)?)),
            None => None,
        },
        (IMAGE, 10) => Some(Kernel::Image(image::decode(event, Phase::Start)?)),
        (IMAGE, opcode @ 2..=4) => match phase(opcode) {
            Some(phase) => Some(Kernel::Image(image::decode(event, phase)?)),
            None => None,
        },
        (IMAGE_ID, _) => image::decode_id(event)?.map(Kernel::ImageId),
        (PERF_INFO, 72..=74) => Some(Kernel::ProfileInterval(perf_info::decode_interval(event)?)),
        (PERF_INFO, 50 | 66..=69) => Some(Kernel::Interrupt(perf_info::decode_interrupt(event)?)),
        (SYSTEM_CONFIG, 10) => Some(Kernel::Cpu(system::decode_cpu(event)?)),
        (SYS_CONFIG, _) => system::decode_sys_config(event)?.map(Kernel::SysConfig),
        (LOST_EVENT, 32) => Some(Kernel::Lost(Lost::Event)),
        (LOST_EVENT, 33) => Some(Kernel::Lost(Lost::Buffer)),
        (LOST_EVENT, 34) => Some(Kernel::Lost(Lost::File)),
        (DISK_IO, 12 | 13 | 15) => disk_io::decode_init(event)?.map(Kernel::DiskIoInit),
        (DISK_IO, _) => disk_io::decode(event)?.map(Kernel::DiskIo),
        (FILE_IO, _) => file_io::decode(event)?.map(Kernel::FileName),
        _ => None,
    })
}

fn phase(opcode: u8) -> Option<Phase> {
    Some(match opcode {
        1 => Phase::Start,
        2 => Phase::End,
        3 => Phase::RundownStart,
        4 => Phase::RundownEnd,
        _ => return None,
    })
}
