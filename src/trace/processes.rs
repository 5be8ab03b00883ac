//! The processes and threads of a trace.

use rustc_hash::FxHashMap;

use crate::event::{NO_ID, Ticks};
use crate::events::kernel::{self, Phase};
use crate::sink::Running;

use super::lifetimes::{Life, Lifetimes};

/// A process of the trace: an index into [`Trace::processes`](super::Trace::processes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// A thread of the trace: an index into [`Trace::threads`](super::Trace::threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// One process. Its id may have had other owners before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The system's id; [`NO_ID`] for samples whose process nothing tells.
    pub pid: u32,
    /// The id of the process that made it; 0 for none.
    pub parent_pid: u32,
    /// The executable's file name; empty where nothing tells it.
    pub name: String,
    /// The command line; empty for system processes.
    pub command_line: String,
    /// A 32-bit process on a 64-bit system.
    pub wow64: bool,
    /// When it was there.
    pub life: Life,
    /// When it was created, as a FILETIME, where the system was asked: a live recording does so at its start.
    pub created: Option<i64>,
    key: u64,
}

impl Process {
    /// The name to show: that of the executable, or a description in words.
    pub fn label(&self) -> &str {
        match (self.name.as_str(), self.pid) {
            ("", 0) => "Idle",
            ("", 4) => "System",
            ("", NO_ID) => "unknown process",
            ("", _) => "unnamed process",
            (name, _) => name,
        }
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The system's id.
    pub tid: u32,
    /// The id of its process.
    pub pid: u32,
    /// Its name; mostly empty.
    pub name: String,
    /// Where its code began; 0 where nothing tells it.
    pub start_address: u64,
    /// When it was there.
    pub life: Life,
}

/// Collects process records.
#[derive(Debug)]
pub(super) struct Processes {
    lives: Lifetimes,
    all: Vec<Process>,
    /// The latest process of an id and a kernel object.
    by_key: FxHashMap<(u32, u64), u32>,
}

impl Processes {
    pub(super) fn new(early_ticks: i64) -> Self {
        Processes { lives: Lifetimes::new(early_ticks), all: Vec::new(), by_key: FxHashMap::default() }
    }

    /// Takes one record. `exit` is the moment of its exit time, where it has one.
    pub(super) fn record(&mut self, record: &kernel::Process<'_>, time: Ticks, exit: Option<Ticks>) {
        let pid = record.pid;
        let index = match record.phase {
            Phase::Start => self.lives.start(pid, time),
            Phase::End => self.lives.end(pid, time),
            Phase::RundownStart => self.lives.seen(pid),
            Phase::RundownEnd => match self.lives.latest(pid) {
                // A process that has ended but is still listed is no new one.
                Some(latest) if record.key != 0 && self.key(latest) == record.key => latest,
                _ => self.lives.seen(pid),
            },
            Phase::Defunct => match self.by_key.get(&(pid, record.key)).copied() {
                Some(known) => {
                    if self.lives.latest(pid) == Some(known) {
                        self.lives.end(pid, exit.unwrap_or(time));
                    }
                    known
                }
                None => self.lives.before_all(pid, exit.unwrap_or(time)),
            },
        };
        self.fit();
        let Some(process) = self.all.get_mut(index as usize) else { return };
        process.pid = pid;
        process.key = record.key;
        self.by_key.insert((pid, record.key), index);
        if record.phase != Phase::End || process.parent_pid == 0 {
            process.parent_pid = record.parent_pid;
        }
        process.wow64 |= record.is_wow64();
        if process.name.is_empty() {
            process.name = record.image_file_name.to_string();
        }
        if process.command_line.is_empty() && !record.command_line.is_empty() {
            process.command_line = record.command_line.to_string();
        }
    }

    /// Takes what the system's own list says of a process that was there between `from` and `until`.
    pub(super) fn there(&mut self, running: &Running, from: Ticks, until: Ticks) {
        let index = self.lives.there(running.pid, from, until);
        self.fit();
        let Some(process) = self.all.get_mut(index as usize) else { return };
        process.pid = running.pid;
        if process.parent_pid == 0 {
            process.parent_pid = running.parent;
        }
        if process.name.is_empty() {
            process.name.clone_from(&running.name);
        }
        process.wow64 |= running.wow64;
        process.created = running.created;
    }

    /// Whose `pid` it was at `time`; one made up if nothing tells.
    pub(super) fn at(&mut self, pid: u32, time: Ticks) -> ProcessId {
        let index = self.lives.at(pid, time).unwrap_or_else(|| self.lives.unseen(pid));
        self.fit();
        if let Some(process) = self.all.get_mut(index as usize) {
            process.pid = pid;
        }
        ProcessId(index)
    }

    pub(super) fn finish(self) -> Vec<Process> {
        let mut all = self.all;
        for (index, process) in (0..).zip(&mut all) {
            if let Some(life) = self.lives.life(index) {
                // A made-up process has no end that anybody saw.
                process.life = Life { end: life.end.filter(|end| end.0 != i64::MIN), ..life };
            }
        }
        all
    }

    fn key(&self, index: u32) -> u64 {
        self.all.get(index as usize).map_or(0, |process| process.key)
    }

    /// Makes room for the lives that were added.
    fn fit(&mut self) {
        while self.lives.life(self.all.len() as u32).is_some() {
            self.all.push(Process {
                pid: NO_ID,
                parent_pid: 0,
                name: String::new(),
                command_line: String::new(),
                wow64: false,
                life: Life { start: None, end: None },
                created: None,
                key: 0,
            });
        }
    }
}

/// Collects thread records.
#[derive(Debug)]
pub(super) struct Threads {
    lives: Lifetimes,
    all: Vec<Thread>,
    /// Names that came before any other record of their thread.
    early_names: FxHashMap<u32, String>,
}

impl Threads {
    pub(super) fn new(early_ticks: i64) -> Self {
        Threads { lives: Lifetimes::new(early_ticks), all: Vec::new(), early_names: FxHashMap::default() }
    }

    pub(super) fn record(&mut self, record: &kernel::Thread<'_>, time: Ticks) {
        let tid = record.tid;
        let index = match record.phase {
            Phase::Start => self.lives.start(tid, time),
            Phase::End => self.lives.end(tid, time),
            Phase::RundownEnd if self.ended_in(tid, record.pid) => return,
            Phase::RundownStart | Phase::RundownEnd | Phase::Defunct => self.lives.seen(tid),
        };
        self.fit(tid, record.pid);
        let Some(thread) = self.all.get_mut(index as usize) else { return };
        if record.start_address != 0 {
            thread.start_address = record.start_address;
        }
        if !record.name.is_empty() {
            if !record.name.reads(&thread.name) {
                thread.name = record.name.to_string();
            }
        } else if let Some(name) = self.early_names.remove(&tid) {
            thread.name = name;
        }
    }

    /// Takes a thread of the system's own list that was there between `from` and `until`.
    pub(super) fn there(&mut self, tid: u32, pid: u32, from: Ticks, until: Ticks) {
        self.lives.there(tid, from, until);
        self.fit(tid, pid);
    }

    pub(super) fn name(&mut self, record: &kernel::ThreadName<'_>) {
        let name = record.name.to_string();
        match self.lives.live(record.tid).and_then(|index| self.all.get_mut(index as usize)) {
            Some(thread) => thread.name = name,
            None => drop(self.early_names.insert(record.tid, name)),
        }
    }

    /// Whose `tid` it was at `time`. A thread may be sampled before its start record, so its first owner is taken to
    /// have had the id from the beginning.
    pub(super) fn at(&self, tid: u32, time: Ticks) -> Option<ThreadId> {
        self.lives.at(tid, time).or_else(|| self.lives.first(tid)).map(ThreadId)
    }

    pub(super) fn pid(&self, thread: ThreadId) -> Option<u32> {
        self.all.get(thread.0 as usize).map(|thread| thread.pid)
    }

    pub(super) fn finish(self) -> Vec<Thread> {
        let mut all = self.all;
        for (index, thread) in (0..).zip(&mut all) {
            if let Some(life) = self.lives.life(index) {
                thread.life = life;
            }
        }
        all
    }

    /// Makes room for the life that was added.
    fn fit(&mut self, tid: u32, pid: u32) {
        while self.lives.life(self.all.len() as u32).is_some() {
            let name = self.early_names.remove(&tid).unwrap_or_default();
            let life = Life { start: None, end: None };
            self.all.push(Thread { tid, pid, name, start_address: 0, life });
        }
    }

    /// True if the latest owner of `tid` was of process `pid` and has ended: the end rundown may list it all the same.
    fn ended_in(&self, tid: u32, pid: u32) -> bool {
        self.lives.live(tid).is_none()
            && self.lives.latest(tid).and_then(|index| self.pid(ThreadId(index))) == Some(pid)
    }
}
