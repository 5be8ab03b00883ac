//! The first reading: what the records that are kept refer to.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Ticks;
use crate::etl::digest::{BufferAt, Digester, InOrder, Record, RecordAt};
use crate::event::{Event, NO_ID};
use crate::events::kernel::{Kernel, StackWalk};
use crate::events::{Decoded, decode};
use crate::guids::{DISK_IO, IMAGE_ID, PAGE_FAULT, STACK_WALK, THREAD, group_task};
use crate::trace::Trace;

use super::namesakes::{Namesakes, namesakes};
use super::switches::Switches;
use super::{Trim, process};

/// A page that was read from a file.
const HARD_FAULT: u8 = 32;

/// What was noted.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Keys of stacks.
    pub(super) keys: FxHashSet<u64>,
    /// The times of events that own a stack of a chosen process.
    pub(super) owners: FxHashSet<Ticks>,
    /// Events whose threads are of other processes, or not known to be of the chosen ones, and which are kept with
    /// their stacks: time and thread, [`NO_ID`] for any.
    pub(super) events: FxHashSet<(Ticks, u32)>,
    /// The times of the identities of images.
    pub(super) images: FxHashSet<Ticks>,
    /// Threads of other processes that switched with the chosen ones, and their processes.
    pub(super) partner_threads: FxHashSet<u32>,
    pub(super) partners: FxHashSet<u32>,
    /// The times of the first and the last context switch: threads are watched between the two, so both are kept.
    pub(super) watched: Option<(Ticks, Ticks)>,
    /// Disk I/O of chosen threads: when it was done, and its request.
    pub(super) disk: FxHashSet<(Ticks, u64)>,
    /// The keys of files that disk I/O and hard faults of chosen threads name.
    pub(super) files: FxHashSet<u64>,
    /// Other processes of which there are stacks.
    pub(super) partners_with_stacks: FxHashSet<u32>,
    /// Methods of other processes without which those of the chosen ones would read otherwise.
    pub(super) namesakes: Namesakes,
    /// Context switches of others, or beside the wanted time, that are kept: when and on which processor.
    pub(super) switches: FxHashSet<(Ticks, u16)>,
    /// Events that made a thread ready, of a chosen thread beside the wanted time or by one without its name: when, and which was
    /// made ready.
    pub(super) readied: FxHashSet<(Ticks, u32)>,
    /// Stacks that were begun by an event that is not kept, and written when one that is had come: the times of the event and
    /// of the stack, and the thread. They may be the user part of both.
    pub(super) late: FxHashSet<(Ticks, Ticks, u32)>,
}

impl Noted {
    /// True for an event that is kept though its thread is not chosen, and for its stacks.
    pub(super) fn named(&self, time: Ticks, tid: u32) -> bool {
        self.events.contains(&(time, tid)) || self.events.contains(&(time, NO_ID))
    }
}

/// Takes notes in order of time: an event comes before its stacks.
pub(super) struct Survey<'t> {
    trim: &'t Trim,
    noted: Noted,
    /// Requests of chosen threads that are not done.
    requests: FxHashSet<u64>,
    switches: Switches,
    /// The last event of each thread that is kept and may own a stack.
    last: FxHashMap<u32, Ticks>,
}

impl<'t> Survey<'t> {
    pub(super) fn new(trim: &'t Trim) -> Self {
        Survey {
            trim,
            noted: Noted::default(),
            requests: FxHashSet::default(),
            switches: Switches::default(),
            last: FxHashMap::default(),
        }
    }

    /// The processes of partners are known at the end.
    pub(super) fn finish(self, trace: &Trace) -> Noted {
        let mut noted = self.noted;
        self.switches.finish(self.trim, &mut noted);
        let partners = trace.threads.iter().filter(|thread| noted.partner_threads.contains(&thread.tid));
        noted.partners = partners.map(|thread| thread.pid).collect();
        noted.partners.extend(&noted.partners_with_stacks);
        if !self.trim.owners.is_all() {
            let is_kept = |pid| self.trim.owners.is_ever(pid) || noted.partners_with_stacks.contains(&pid);
            noted.namesakes = namesakes(trace, is_kept);
            noted.partners.extend(noted.namesakes.keys());
        }
        noted
    }

    /// An event is kept with its stacks.
    fn keep(&mut self, time: Ticks, tid: u32) {
        self.noted.events.insert((time, tid));
        if !self.trim.choice.providers.is_empty() {
            self.last.insert(tid, time);
        }
    }

    fn kernel(&mut self, kernel: &Kernel<'_>, event: &Event<'_>) {
        let (trim, time) = (self.trim, event.time);
        let is_thread = |tid| trim.owners.is_thread(tid, time);
        match kernel {
            Kernel::ContextSwitch(switch) => {
                self.switches.switch(trim, &mut self.noted, switch, event);
                if trim.is_wanted(event) {
                    let first = self.noted.watched.map_or(time, |(first, _)| first);
                    self.noted.watched = Some((first, time));
                }
                if trim.kernel(kernel, event).1 {
                    let partners =
                        [switch.new_tid, switch.old_tid].into_iter().filter(|tid| !is_thread(*tid));
                    self.noted.partner_threads.extend(partners);
                    if !is_thread(switch.new_tid) || !trim.choice.providers.is_empty() {
                        self.keep(time, switch.new_tid);
                    }
                }
            }
            Kernel::ReadyThread(ready) => {
                self.switches.readied(trim, &mut self.noted, ready, event);
                if trim.kernel(kernel, event).1 {
                    let known =
                        [ready.tid, event.tid].into_iter().filter(|tid| *tid != NO_ID && !is_thread(*tid));
                    self.noted.partner_threads.extend(known);
                    if event.tid == NO_ID || !is_thread(event.tid) || !trim.choice.providers.is_empty() {
                        self.keep(time, event.tid);
                    }
                }
            }
            Kernel::StackWalk(StackWalk::Stack { event_time, pid, tid, .. }) => {
                self.stack((*event_time, time), *pid, *tid, None);
            }
            Kernel::StackWalk(StackWalk::Key { event_time, pid, tid, key, .. }) => {
                self.stack((*event_time, time), *pid, *tid, Some(*key));
            }
            Kernel::ImageId(id) if process(id).is_some_and(|pid| trim.needs(pid)) => {
                self.noted.images.insert(time);
            }
            // With providers, stacks go by the events that are kept.
            Kernel::Sample(sample) if trim.kernel(kernel, event).1 => {
                self.keep(time, sample.tid);
            }
            Kernel::CounterSample(sample) if trim.kernel(kernel, event).1 => {
                self.keep(time, sample.tid);
            }
            Kernel::PageFault(fault) if trim.kernel(kernel, event).1 => {
                self.noted.files.extend(fault.read.map(|read| read.file));
                if !trim.choice.providers.is_empty() {
                    self.keep(time, fault.tid.unwrap_or(event.tid));
                }
            }
            Kernel::DiskIoInit(init) => {
                if trim.kernel(kernel, event).1 {
                    self.requests.insert(init.irp);
                } else {
                    self.requests.remove(&init.irp);
                }
            }
            Kernel::DiskIo(io) => {
                // Where neither the event nor its head names the thread, the request does.
                let requested = self.requests.remove(&io.irp);
                let tid = io.tid.into_iter().chain([event.tid]).find(|tid| *tid != NO_ID);
                if tid.map_or(requested, is_thread) && trim.is_wanted(event) {
                    self.noted.disk.insert((time, io.irp));
                    self.noted.files.extend(io.file);
                }
            }
            _ => {}
        }
    }

    fn stack(&mut self, (event_time, written): (Ticks, Ticks), pid: u32, tid: u32, key: Option<u64>) {
        let trim = self.trim;
        if trim.is_stack_wanted(event_time, written, pid, tid) {
            self.noted.owners.insert(event_time);
            if !trim.owners.is_thread(tid, event_time) {
                self.noted.events.insert((event_time, tid));
            }
        } else if self.noted.named(event_time, tid) {
            if !trim.owners.is_ever(pid) {
                self.noted.partners_with_stacks.insert(pid);
                self.noted.partner_threads.insert(tid);
            }
        } else if self.last.get(&tid).is_some_and(|last| event_time < *last && *last <= written) {
            self.noted.late.insert((event_time, written, tid));
        } else {
            self.switches.stack(event_time, pid, tid, key);
            return;
        }
        self.noted.keys.extend(key);
    }
}

impl Digester for Trim {
    type Worker = ();
    type Digest = ();
    type Item = ();

    fn worker(&self, _thread: usize) {}

    /// Stacks, switches, disk I/O, and identities of images; with providers all of their events, which may own a stack.
    #[inline]
    fn record(&self, (): &mut (), (): &mut (), record: &Record<'_>) -> Option<()> {
        let is_wanted = match record.hook() {
            Some(hook) => match group_task(hook.group) {
                STACK_WALK | DISK_IO => true,
                THREAD if matches!(hook.opcode, 36 | 50) => true,
                PAGE_FAULT if hook.opcode == HARD_FAULT => true,
                task => self.choice.providers.contains(&task),
            },
            None => {
                let provider = record.event().provider;
                let is_followed = matches!(provider, DISK_IO | IMAGE_ID | STACK_WALK | THREAD);
                is_followed || self.choice.providers.contains(&provider)
            }
        };
        is_wanted.then_some(())
    }
}

impl InOrder<Trim> for Survey<'_> {
    fn buffer(&mut self, _buffer: &BufferAt, (): &mut ()) {}

    fn item(&mut self, (): (), record: &RecordAt<'_>) {
        let event = record.event();
        let decoded = decode(&event);
        if let Ok(Decoded::Kernel(kernel)) = &decoded {
            self.kernel(kernel, &event);
        }
        // Those that name their threads in the payload are kept by now.
        let is_named = matches!(
            decoded,
            Ok(Decoded::Kernel(
                Kernel::Sample(_)
                    | Kernel::CounterSample(_)
                    | Kernel::StackWalk(_)
                    | Kernel::ContextSwitch(_)
                    | Kernel::ReadyThread(_)
                    | Kernel::PageFault(_)
            ))
        );
        let providers = &self.trim.choice.providers;
        if !is_named && providers.contains(&event.provider) && self.trim.decide(&event).1 {
            self.keep(event.time, event.tid);
        }
    }
}
