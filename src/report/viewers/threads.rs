//! The processes and threads of a picture, for formats that have a place of their own for them.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::event::NO_ID;
use crate::profile::{End, Entry, Sample};
use crate::report::format::Picture;
use crate::report::text::one_line;
use crate::trace::{ProcessId, RunnerId};

/// The processes and threads with samples in a tree. What reads alike in a tree is one here, too: a process whose id was
/// used again by the same program.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The greatest value first.
    pub(super) processes: Vec<Process>,
    /// The greatest value first.
    pub(super) threads: Vec<Thread>,
    /// By [`RunnerId`], an index into `threads`.
    of_runners: FxHashMap<RunnerId, u32>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// The system's id; `None` for samples whose process is not known.
    pub(super) pid: Option<u32>,
    /// The name of the executable.
    pub(super) name: String,
    /// As a tree shows it: `app.exe (1234)`.
    pub(super) text: String,
    /// The sum of its samples.
    pub(super) value: i64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// An index into the processes.
    pub(super) process: usize,
    /// The system's id; `None` where it is not known.
    pub(super) tid: Option<u32>,
    /// As a tree shows it: `thread 12 worker`.
    pub(super) text: String,
    /// The sum of its samples.
    pub(super) value: i64,
}

impl Threads {
    pub(super) fn new(picture: &Picture<'_>) -> Threads {
        let trace = &picture.profile().trace;
        let mut all = Threads::default();
        // Processes by what is alike, threads by their process and id.
        let mut processes: FxHashMap<(u32, &str), usize> = FxHashMap::default();
        let mut threads: FxHashMap<(usize, u32), u32> = FxHashMap::default();
        for (_, sample) in samples(picture) {
            let index = *all.of_runners.entry(sample.runner).or_insert_with(|| {
                let runner = trace.runner(sample.runner);
                let (pid, name) = match trace.process(runner.process) {
                    Some(process) => (process.pid, process.label()),
                    None => (NO_ID, ""),
                };
                let process = *processes.entry((pid, name)).or_insert_with(|| {
                    all.processes.push(Process::new(picture, runner.process, pid, name));
                    all.processes.len() - 1
                });
                *threads.entry((process, runner.tid)).or_insert_with(|| {
                    let text = picture.labels.text(Entry::Thread(runner.process, runner.tid));
                    let tid = Some(runner.tid).filter(|tid| *tid != NO_ID);
                    all.threads.push(Thread { process, tid, text: one_line(&text).into_owned(), value: 0 });
                    all.threads.len() as u32 - 1
                })
            });
            let Some(thread) = all.threads.get_mut(index as usize) else { continue };
            thread.value = thread.value.saturating_add(sample.value);
            if let Some(process) = all.processes.get_mut(thread.process) {
                process.value = process.value.saturating_add(sample.value);
            }
        }
        all.sorted()
    }

    fn sorted(mut self) -> Threads {
        let process_values: Vec<i64> = self.processes.iter().map(|process| process.value).collect();
        let process_places = places(&process_values);
        let thread_values: Vec<i64> = self.threads.iter().map(|thread| thread.value).collect();
        let thread_places = places(&thread_values);
        self.processes = in_place(self.processes, &process_places);
        self.threads = in_place(self.threads, &thread_places);
        for thread in &mut self.threads {
            thread.process = process_places.get(thread.process).copied().unwrap_or(0);
        }
        for thread in self.of_runners.values_mut() {
            *thread = thread_places.get(*thread as usize).copied().unwrap_or(0) as u32;
        }
        self
    }

    /// The thread of a sample: an index into the threads.
    pub(super) fn of(&self, sample: &Sample) -> usize {
        self.of_runners.get(&sample.runner).map_or(0, |thread| *thread as usize)
    }

    /// The process of a thread.
    pub(super) fn process_of(&self, thread: &Thread) -> Option<&Process> {
        self.processes.get(thread.process)
    }
}

impl Process {
    fn new(picture: &Picture<'_>, id: ProcessId, pid: u32, name: &str) -> Process {
        let text = picture.labels.text(Entry::Process(id));
        let (name, text) = (one_line(name).into_owned(), one_line(&text).into_owned());
        Process { pid: Some(pid).filter(|pid| *pid != NO_ID), name, text, value: 0 }
    }
}

/// The samples of a tree with the nodes that they end in, in order of time.
pub(super) fn samples<'p>(picture: &Picture<'p>) -> impl Iterator<Item = (&'p End, &'p Sample)> + use<'p> {
    let all = &picture.analysis.profile.samples;
    picture.arranged.ends.iter().filter_map(|end| Some((end, all.get(end.sample as usize)?)))
}

/// Where each goes, when the greatest comes first; of equal ones, the first stays before the others.
fn places(values: &[i64]) -> Vec<usize> {
    let mut order: Vec<(Reverse<i64>, usize)> = values.iter().copied().map(Reverse).zip(0..).collect();
    order.sort_unstable();
    let mut places = vec![0; values.len()];
    for (place, (_, index)) in order.into_iter().enumerate() {
        if let Some(of) = places.get_mut(index) {
            *of = place;
        }
    }
    places
}

fn in_place<T>(things: Vec<T>, places: &[usize]) -> Vec<T> {
    let mut placed: Vec<(usize, T)> = places.iter().copied().zip(things).collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, thing)| thing).collect()
}
