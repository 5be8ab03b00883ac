//! What says who ran, who waited and who was woken, beside the events of the wanted threads and time: what each thread did
//! last before that time and first after it, and who ran on the processor that made one ready.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Ticks;
use crate::event::{Event, NO_ID};
use crate::events::kernel::{ContextSwitch, ReadyThread};

use super::Trim;
use super::survey::Noted;

/// A switch: when and on which processor.
type At = (Ticks, u16);

/// Takes notes of context switches and ready threads.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// The last switch of each processor: when, and to which thread.
    on: FxHashMap<u16, (Ticks, u32)>,
    /// What each chosen thread did last before the wanted time.
    before: FxHashMap<u32, Before>,
    /// The last switch before the wanted time: threads are watched from there on.
    last_before: Option<At>,
    /// The times of the last events before the wanted time that made a thread ready, and the thread.
    stacks: FxHashMap<Ticks, u32>,
    /// There was a switch after the wanted time.
    has_after: bool,
    /// The threads that had a switch since, and those that were made ready.
    switched: FxHashSet<u32>,
    readied: FxHashSet<u32>,
}

/// What a thread did last.
#[derive(Debug, Default)]
struct Before {
    /// It was given a processor or lost it, and who had that before or afterwards.
    switch: Option<(At, u32)>,
    readied: Option<Readied>,
}

/// It was made ready since.
#[derive(Debug)]
struct Readied {
    time: Ticks,
    /// The thread that the event names.
    tid: u32,
    /// The switch to whoever ran on its processor.
    waker: Option<(At, u32)>,
    /// The processes and threads of its stacks, and their keys.
    owners: Vec<(u32, u32)>,
    keys: Vec<u64>,
}

/// Where a moment is, beside the wanted time.
pub(super) enum Side {
    Before,
    Inside,
    After,
}

impl Trim {
    pub(super) fn side(&self, time: Ticks) -> Side {
        match (self.choice.from, self.choice.to) {
            (Some(from), _) if time < from => Side::Before,
            (_, Some(to)) if to <= time => Side::After,
            _ => Side::Inside,
        }
    }
}

impl Switches {
    pub(super) fn switch(
        &mut self,
        trim: &Trim,
        noted: &mut Noted,
        switch: &ContextSwitch,
        event: &Event<'_>,
    ) {
        let Event { time, processor, .. } = *event;
        if !trim.is_provided(event) {
            return;
        }
        let (new, old) = (switch.new_tid, switch.old_tid);
        self.on.insert(processor, (time, new));
        let is_chosen = |tid: u32| tid != 0 && trim.owners.is_thread(tid, time);
        let sides = [(new, old), (old, new)].into_iter().filter(|(tid, _)| is_chosen(*tid));
        match trim.side(time) {
            Side::Inside => {}
            Side::Before => {
                self.last_before = Some((time, processor));
                for (tid, other) in sides {
                    let now = Before { switch: Some(((time, processor), other)), readied: None };
                    let before = self.before.insert(tid, now);
                    self.forget(before);
                }
            }
            Side::After => {
                if !std::mem::replace(&mut self.has_after, true) {
                    noted.switches.insert((time, processor));
                }
                for (tid, other) in sides {
                    if self.switched.insert(tid) {
                        noted.switches.insert((time, processor));
                        noted.partner(trim, other, time);
                        if tid == new {
                            noted.events.insert((time, tid));
                        }
                    }
                }
            }
        }
    }

    pub(super) fn readied(&mut self, trim: &Trim, noted: &mut Noted, ready: &ReadyThread, event: &Event<'_>) {
        let Event { time, processor, tid, .. } = *event;
        if !trim.is_provided(event) {
            return;
        }
        // Where the event names nobody, whoever ran on its processor did it.
        let waker = self.on.get(&processor).filter(|_| tid == NO_ID);
        let waker = waker.map(|(since, waker)| ((*since, processor), *waker));
        if !trim.owners.is_thread(ready.tid, time) {
            // What chosen threads do to others is theirs, too, as are its stacks.
            let is_chosen = waker.is_some_and(|(_, waker)| waker != 0 && trim.owners.is_thread(waker, time));
            if is_chosen && trim.is_in_time(time) {
                noted.readied(trim, time, ready.tid, tid);
                noted.partner(trim, ready.tid, time);
            }
            return;
        }
        match trim.side(time) {
            Side::Inside => noted.waker(trim, waker),
            Side::Before => {
                let readied = Readied { time, tid, waker, owners: Vec::new(), keys: Vec::new() };
                let before = self.before.entry(ready.tid).or_default().readied.replace(readied);
                self.forget(Some(Before { switch: None, readied: before }));
                self.stacks.insert(time, ready.tid);
            }
            Side::After => {
                if !self.switched.contains(&ready.tid) && self.readied.insert(ready.tid) {
                    noted.readied(trim, time, ready.tid, tid);
                    noted.waker(trim, waker);
                }
            }
        }
    }

    /// A stack that may be that of an event which made a thread ready.
    pub(super) fn stack(&mut self, event_time: Ticks, pid: u32, tid: u32, key: Option<u64>) {
        let Some(ready) = self.stacks.get(&event_time) else { return };
        if let Some(Before { readied: Some(readied), .. }) = self.before.get_mut(ready) {
            readied.owners.push((pid, tid));
            readied.keys.extend(key);
        }
    }

    fn forget(&mut self, before: Option<Before>) {
        if let Some(Readied { time, .. }) = before.and_then(|before| before.readied) {
            self.stacks.remove(&time);
        }
    }

    /// What threads did last before the wanted time is known at the end.
    pub(super) fn finish(self, trim: &Trim, noted: &mut Noted) {
        noted.switches.extend(self.last_before);
        for (chosen, before) in self.before {
            if let Some((at, other)) = before.switch {
                noted.switches.insert(at);
                noted.partner(trim, other, at.0);
            }
            if let Some(Readied { time, tid, waker, owners, keys }) = before.readied {
                noted.readied(trim, time, chosen, tid);
                noted.waker(trim, waker);
                noted.keys.extend(keys);
                for (pid, tid) in owners.into_iter().filter(|(pid, _)| !trim.owners.is_ever(*pid)) {
                    noted.partners_with_stacks.insert(pid);
                    noted.partner_threads.insert(tid);
                }
            }
        }
    }
}

impl Noted {
    /// A thread that may be another process's.
    fn partner(&mut self, trim: &Trim, tid: u32, time: Ticks) {
        if !trim.owners.is_thread(tid, time) {
            self.partner_threads.insert(tid);
        }
    }

    /// An event that made a thread ready, and which thread did it, as it says.
    fn readied(&mut self, trim: &Trim, time: Ticks, woken: u32, tid: u32) {
        self.readied.insert((time, woken));
        self.events.insert((time, tid));
        if tid != NO_ID {
            self.partner(trim, tid, time);
        }
    }

    /// The switch to a thread that made a chosen one ready, unless it is kept anyway.
    fn waker(&mut self, trim: &Trim, waker: Option<(At, u32)>) {
        let Some((at, waker)) = waker else { return };
        let is_chosen = trim.owners.is_thread(waker, at.0);
        if !is_chosen || !trim.is_in_time(at.0) {
            self.switches.insert(at);
        }
        if !is_chosen {
            self.partner_threads.insert(waker);
        }
    }
}
