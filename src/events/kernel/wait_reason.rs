//! Why a thread left its processor.

use std::fmt;

use super::thread::ContextSwitch;

/// Why a thread left its processor, as the kernel numbers it: a KWAIT_REASON.
///
/// Up to 37 they are in the public documentation of the class CSwitch; the later ones are in that of the WDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitReason(pub u8);

/// In the order of their numbers, in brackets.
const NAMES: [&str; 40] = [
    "[Executive]",
    "[FreePage]",
    "[PageIn]",
    "[PoolAllocation]",
    "[DelayExecution]",
    "[Suspended]",
    "[UserRequest]",
    "[WrExecutive]",
    "[WrFreePage]",
    "[WrPageIn]",
    "[WrPoolAllocation]",
    "[WrDelayExecution]",
    "[WrSuspended]",
    "[WrUserRequest]",
    "[WrEventPair]",
    "[WrQueue]",
    "[WrLpcReceive]",
    "[WrLpcReply]",
    "[WrVirtualMemory]",
    "[WrPageOut]",
    "[WrRendezvous]",
    "[WrKeyedEvent]",
    "[WrTerminated]",
    "[WrProcessInSwap]",
    "[WrCpuRateControl]",
    "[WrCalloutStack]",
    "[WrKernel]",
    "[WrResource]",
    "[WrPushLock]",
    "[WrMutex]",
    "[WrQuantumEnd]",
    "[WrDispatchInt]",
    "[WrPreempted]",
    "[WrYieldExecution]",
    "[WrFastMutex]",
    "[WrGuardedMutex]",
    "[WrRundown]",
    "[WrAlertByThreadId]",
    "[WrDeferredPreempt]",
    "[WrPhysicalFault]",
];

impl WaitReason {
    /// Its name; `None` for a number that is newer than this list.
    pub fn name(self) -> Option<&'static str> {
        let name = NAMES.get(usize::from(self.0))?;
        name.strip_prefix('[')?.strip_suffix(']')
    }

    /// The thread did not wait for anything: its quantum was over, another thread pre-empted it, or it gave way.
    fn is_pre_emption(self) -> bool {
        const QUANTUM_END: u8 = 30;
        const YIELD_EXECUTION: u8 = 33;
        (QUANTUM_END..=YIELD_EXECUTION).contains(&self.0)
    }

    /// The same in brackets, as remarks on stacks are; `[blocked]` where it has no name.
    pub fn bracketed(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("[blocked]")
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "reason {}", self.0),
        }
    }
}

/// What a thread does when it leaves its processor (a KTHREAD_STATE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaving {
    /// It could go on, but another thread runs: it was pre-empted, its quantum was over, or it gave way.
    Ready,
    /// It waits.
    Waiting,
    /// It is gone.
    Ended,
}

impl ContextSwitch {
    /// Why the old thread left the processor.
    pub fn reason(&self) -> WaitReason {
        WaitReason(self.old_wait_reason)
    }

    /// What the old thread does from now on.
    pub fn leaving(&self) -> Leaving {
        const READY: u8 = 1;
        const RUNNING: u8 = 2;
        const STANDBY: u8 = 3;
        const TERMINATED: u8 = 4;
        const DEFERRED_READY: u8 = 7;
        match self.old_state {
            READY | STANDBY | DEFERRED_READY => Leaving::Ready,
            TERMINATED => Leaving::Ended,
            // The kernel may not have changed its state yet when it records the switch. With any other reason such a thread
            // may have gone to sleep.
            RUNNING if self.reason().is_pre_emption() => Leaving::Ready,
            _ => Leaving::Waiting,
        }
    }
}
