//! Whether what `--stop-when` waits for has happened.

use std::time::Duration;

use etwprof::clock::Clock;
use etwprof::profile::Matcher;
use etwprof::trace::lookout::{Ended, Sights};

use super::targets::Targets;
use super::words::Share;
use crate::cli::args::StopWhen;

/// What a recording waits for.
pub(super) struct Conditions<'a> {
    all: &'a [StopWhen],
    sights: Sights,
    clock: Clock,
    /// How often in a row the targets used so much of the processors, for each condition.
    busy: Vec<u32>,
}

/// Looks in a row that must find processors busy: a second.
const BUSY_LOOKS: u32 = 2;

impl<'a> Conditions<'a> {
    pub(super) fn new(all: &'a [StopWhen], sights: Sights, clock: Clock) -> Conditions<'a> {
        Conditions { all, sights, clock, busy: vec![0; all.len()] }
    }

    /// What has happened of it since the last look, as the end of "stopped: ...".
    pub(super) fn happened(&mut self, targets: &Targets, share: &Share) -> Option<String> {
        if self.all.is_empty() {
            return None;
        }
        let pauses = self.sights.longest_pauses();
        let longest =
            pauses.iter().filter(|(pid, _)| targets.include(**pid)).max_by_key(|(_, ticks)| **ticks);
        let ended = self.sights.ended();
        let find = |is: &dyn Fn(&Ended) -> bool| {
            let Ended { pid, name, status } = ended.iter().find(|ended| is(ended))?;
            Some(format!("{name} ({pid}) ended with exit code {status}"))
        };
        let happened = |(condition, busy): (&StopWhen, &mut u32)| match condition {
            StopWhen::Cpu(percent) => {
                let now = share.percent.filter(|now| now >= percent);
                *busy = if now.is_some() { *busy + 1 } else { 0 };
                let now = now.filter(|_| *busy >= BUSY_LOOKS)?;
                Some(format!("{} used {now:.1}% of {} CPUs", targets.label(), share.processors))
            }
            StopWhen::Gc(time) => {
                let (pid, ticks) = longest?;
                let pause = Duration::from_nanos(self.clock.nanoseconds_in(*ticks).try_into().unwrap_or(0));
                let name = targets.names(&[*pid]).join("");
                (pause >= *time).then(|| {
                    format!("{name} stood still for {:.1} ms for a collection", pause.as_secs_f64() * 1e3)
                })
            }
            StopWhen::File(path) => path.exists().then(|| format!("{} is there", path.display())),
            // Whoever reads counters says so.
            StopWhen::Counter(_) => None,
            StopWhen::ExitOf(pid) => find(&|ended| ended.pid == *pid),
            StopWhen::Exit(name) => find(&|ended| is_named(name, &ended.name)),
        };
        self.all.iter().zip(&mut self.busy).filter_map(happened).next()
    }
}

fn is_named(wanted: &Matcher, name: &str) -> bool {
    wanted.matches_executable(name)
}
