//! Whose an event is, and what its stack is, once everything has been read.

use crate::clock::Ticks;
use crate::event::{NO_ID, Pointer};

use super::awaiting::{Awaiting, Owner};
use super::join::Join;
use super::processes::{Processes, ThreadId, Threads};
use super::sample::{Runner, Stack};

/// What says, in the end, whose an event is.
pub(super) struct Resolver<'a> {
    pub(super) join: &'a mut Join,
    pub(super) threads: &'a Threads,
    pub(super) processes: &'a mut Processes,
    pub(super) pointer: Pointer,
}

impl Resolver<'_> {
    /// The id of its process, whose event it is, and its stack; `None` if nobody wants its process.
    pub(super) fn resolve<F: Owner>(&mut self, raw: &Awaiting<F>) -> Option<(u32, Runner, Stack)> {
        let tid = raw.fact.tid();
        let (thread, of_thread) = self.thread(tid, raw.time);
        let pid = pid_of(raw, of_thread);
        if self.join.is_unwanted(pid) {
            return None;
        }
        let process = self.processes.at(pid, raw.time);
        let kernel = self.join.kernel_stack(raw, self.pointer);
        let stack = Stack { kernel, user: self.join.resolved(raw.user) };
        Some((pid, Runner { process, tid, thread }, stack))
    }

    /// A thread that is only named.
    pub(super) fn runner(&mut self, tid: u32, time: Ticks) -> Runner {
        let (thread, pid) = self.thread(tid, time);
        let pid = if tid == 0 { 0 } else { pid.unwrap_or(NO_ID) };
        Runner { process: self.processes.at(pid, time), tid, thread }
    }

    /// The thread with an id, and the id of its process. The idle threads are nobody.
    fn thread(&self, tid: u32, time: Ticks) -> (Option<ThreadId>, Option<u32>) {
        let thread = if tid == 0 { None } else { self.threads.at(tid, time) };
        (thread, thread.and_then(|thread| self.threads.pid(thread)))
    }
}

/// The process that the stack names; else that of the thread; the idle thread is of process 0.
fn pid_of<F: Owner>(raw: &Awaiting<F>, of_thread: Option<u32>) -> u32 {
    match raw.pid {
        NO_ID if raw.fact.tid() == 0 => 0,
        NO_ID => of_thread.unwrap_or(NO_ID),
        pid => pid,
    }
}
