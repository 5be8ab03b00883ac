//! The programs of a profile: the processes of one executable together, because ten compilers are one story.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::profile::{Profile, Sample};
use crate::trace::ProcessId;

/// The processes of one executable that have samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// The name of the executable.
    pub name: String,
    /// Its processes, those with samples, in ascending order.
    pub processes: Vec<ProcessId>,
    /// Their samples.
    pub samples: u64,
    /// Their CPU time, in 100 ns.
    pub value: i64,
    /// The times of their first and last sample.
    pub span: (Ticks, Ticks),
    /// How long each was there, all together: from its first sample to its last, in 100 ns.
    pub time: i64,
}

/// A program: an index into [`Programs::all`].
pub(super) type ProgramId = usize;

/// All programs, and whose each sample is.
#[derive(Debug, Default)]
pub(super) struct Programs {
    pub(super) all: Vec<Program>,
    /// The samples of each, by their places in the profile.
    pub(super) samples: Vec<Vec<u32>>,
    /// By the number of the runner.
    of: Vec<Option<ProgramId>>,
    of_processes: FxHashMap<ProcessId, ProgramId>,
}

impl Programs {
    pub(super) fn new(profile: &Profile) -> Programs {
        let trace = &profile.trace;
        let mut programs = Programs::default();
        let mut by_name: FxHashMap<String, ProgramId> = FxHashMap::default();
        let mut spans: FxHashMap<ProcessId, (Ticks, Ticks)> = FxHashMap::default();
        let mut by_runner: Vec<Option<Option<ProgramId>>> = vec![None; trace.runners.len()];
        for (number, sample) in (0..).zip(&profile.samples) {
            let Some(place) = by_runner.get_mut(sample.runner.0 as usize) else { continue };
            let id = *place.get_or_insert_with(|| {
                let process = profile.runner(sample).process;
                // What interrupts the idle process is nobody's program.
                let known = trace.process(process).filter(|known| known.pid != 0)?;
                let id = *by_name.entry(known.label().to_lowercase()).or_insert(programs.all.len());
                if id == programs.all.len() {
                    programs.all.push(Program {
                        name: known.label().to_owned(),
                        processes: Vec::new(),
                        samples: 0,
                        value: 0,
                        span: (sample.time, sample.time),
                        time: 0,
                    });
                    programs.samples.push(Vec::new());
                }
                if programs.of_processes.insert(process, id).is_none() {
                    programs.all.get_mut(id)?.processes.push(process);
                }
                Some(id)
            });
            let Some(id) = id else { continue };
            let process = profile.runner(sample).process;
            spans.entry(process).or_insert((sample.time, sample.time)).1 = sample.time;
            if let Some((program, samples)) = programs.all.get_mut(id).zip(programs.samples.get_mut(id)) {
                samples.push(number);
                program.samples += sample.count();
                program.value = program.value.saturating_add(sample.value);
                program.span.1 = sample.time;
            }
        }
        let clock = trace.clock;
        for program in &mut programs.all {
            program.processes.sort_unstable();
            let spans = program.processes.iter().filter_map(|process| spans.get(process));
            let length =
                |(from, to): &(Ticks, Ticks)| clock.filetime(*to).saturating_sub(clock.filetime(*from));
            program.time = spans.map(length).sum();
        }
        programs.of = by_runner.into_iter().map(Option::flatten).collect();
        programs
    }

    /// Whose a sample is; `None` for what interrupts the idle process.
    pub(super) fn of(&self, sample: &Sample) -> Option<ProgramId> {
        self.of.get(sample.runner.0 as usize).copied().flatten()
    }

    /// Whose a process is, if it has samples.
    pub(super) fn of_process(&self, process: ProcessId) -> Option<ProgramId> {
        self.of_processes.get(&process).copied()
    }

    pub(super) fn get(&self, id: ProgramId) -> Option<&Program> {
        self.all.get(id)
    }
}
