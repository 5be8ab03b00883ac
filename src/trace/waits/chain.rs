//! What a thread waited for: who made it ready, what the waking thread had been waiting for before, and so on, back to the
//! moment at which it blocked.

use rustc_hash::FxHashSet;

use crate::clock::Ticks;
use crate::trace::Trace;

use super::{State, Wait, Waits, Waker};

/// What filled a wait, the last first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chain {
    /// The threads that it waited for, each while it ran or waited for a processor. With what came before them
    /// ([`Chain::end`]) they fill the blocked time without a gap.
    pub links: Vec<Link>,
    /// What came before them.
    pub end: ChainEnd,
    /// From when on the links are known: when the thread blocked, unless the chain ends before it gets there.
    pub since: Ticks,
}

/// A thread that another one waited for, in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// An index into [`Waits::threads`].
    pub thread: usize,
    /// It ran, or was ready; or nobody knows.
    pub state: State,
    /// From when on.
    pub start: Ticks,
    /// Until when.
    pub end: Ticks,
    /// The event by which it made the next one ready, in the last of its links: an index into
    /// [`Kept::readied`](crate::trace::Kept::readied).
    pub readied: Option<u32>,
}

/// How a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainEnd {
    /// The links fill the whole wait.
    Filled,
    /// An interrupt made the next thread ready: a device, a timer.
    Interrupt,
    /// No event says who did.
    NoEvent,
    /// Nothing is known of what the thread did before.
    Unknown,
    /// Each waited for the next in a ring, as the events have it.
    Cycle,
    /// The chain is longer than that.
    TooLong,
}

/// More links say nothing to anybody.
const MOST_LINKS: usize = 1_000;

impl Waits {
    /// What filled the blocked time of a wait.
    pub fn chain(&self, trace: &Trace, wait: &Wait) -> Chain {
        let from = wait.blocked.start;
        let mut links: Vec<Link> = Vec::new();
        let (mut time, mut event) = (wait.blocked.end, wait.blocked.readied);
        let mut seen = FxHashSet::default();
        let end = loop {
            let Some(ready) = event.and_then(|event| trace.kept.readied.get(event as usize)) else {
                break ChainEnd::NoEvent;
            };
            if !seen.insert(event) {
                break ChainEnd::Cycle;
            }
            let thread = match self.waker(trace, ready) {
                Waker::Thread(thread) => thread,
                Waker::Interrupt => break ChainEnd::Interrupt,
                Waker::Unknown => break ChainEnd::NoEvent,
            };
            let spans = self.threads.get(thread).map(|row| row.spans.as_slice()).unwrap_or_default();
            // The readied event names this thread while it ran, and before it blocked again.
            let mut at = spans.partition_point(|span| span.start < time);
            let mut first = event;
            let next = loop {
                let Some(span) = at.checked_sub(1).and_then(|at| spans.get(at)) else {
                    break Err(ChainEnd::Unknown);
                };
                at -= 1;
                if span.state == State::Blocked && first.is_none() {
                    break Ok(span.readied);
                }
                if links.len() >= MOST_LINKS {
                    break Err(ChainEnd::TooLong);
                }
                let start = span.start.max(from);
                let link =
                    Link { thread, state: span.state, start, end: time.min(span.end), readied: first.take() };
                // What is blocked cannot make anybody ready: the events contradict each other.
                let state = if link.state == State::Blocked { State::Unknown } else { link.state };
                links.push(Link { state, ..link });
                time = start;
                if state == State::Unknown {
                    break Err(ChainEnd::Unknown);
                }
                if time <= from {
                    break Err(ChainEnd::Filled);
                }
            };
            match next {
                Ok(readied) => event = readied,
                Err(end) => break end,
            }
        };
        Chain { links, end, since: time }
    }
}
