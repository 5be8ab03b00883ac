//! What is kept of a recording that is made smaller: some processes, a time, some providers, and whatever a profile of
//! them needs.
//!
//! Two readings choose, by the processes and threads of a [`Trace`] that was read before. The first, a survey,
//! notes what later records refer to: keys of stacks, the times of events that own a stack, the threads that the chosen ones
//! gave way to or were made ready by, and what these did last before the wanted time and first after it. In the second, [`Trim`] says of each record by itself whether it is kept, so
//! that buffers can be chosen from on any thread.
//!
//! Kept whatever is chosen: what the session says of itself and its machine, kernel modules, and sampling intervals.
//! Kept of the chosen processes whatever the time and the provider: their processes, threads, images and compiled code. An
//! [event](crate::events::trimmed) behind the header says what was chosen.

mod anonymous;
mod layout;
mod namesakes;
mod owners;
mod pseudonyms;
mod survey;
mod switches;

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::debug_id::DebugId;
use crate::etl::digest::Record;
use crate::etl::writer::{self, ImageIdentity, Keep, Merged};
use crate::etl::{Reading, Recording};
use crate::event::{Event, Kind, NO_ID};
use crate::events::clr::Clr;
use crate::events::kernel::{Image, ImageId, Kernel, StackWalk};
use crate::events::trimmed::{self, Trimmed, in_order};
use crate::events::{Decoded, decode};
use crate::guid::Guid;
use crate::guids::{
    ETWPROF, EVENT_TRACE, IMAGE, IMAGE_ID, LOST_EVENT, META_DATA, STACK_WALK, SYS_CONFIG, SYSTEM_CONFIG,
    WIN_SAT,
};
use crate::trace::{ProcessId, Trace};
use crate::winpath::file_name;

use owners::Owners;
use pseudonyms::Pseudonyms;
use survey::{Noted, Survey};
use switches::Side;

/// What is wanted of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// These processes; `None` for all.
    pub processes: Option<Vec<ProcessId>>,
    /// Events from this moment on.
    pub from: Option<Ticks>,
    /// Events before this moment.
    pub to: Option<Ticks>,
    /// Events of these providers, or kernel events of these tasks; all if there are none.
    pub providers: Vec<Guid>,
}

impl Choice {
    /// True if nothing is left out.
    pub fn is_all(&self) -> bool {
        *self == Choice::default()
    }

    /// What is left of a trace, which may have been trimmed before.
    fn trimmed(&self, trace: &Trace) -> Trimmed {
        let Choice { processes, from, to, providers } = self;
        let before = trace.trimmed.clone().unwrap_or_default();
        let pid = |process: &ProcessId| trace.process(*process).map(|process| process.pid);
        let pids = processes.as_ref().map(|chosen| in_order(chosen.iter().filter_map(pid)));
        Trimmed {
            pids: pids.or(before.pids),
            from: from.max(&before.from).to_owned(),
            to: to.iter().chain(&before.to).min().copied(),
            some_providers: before.some_providers || !providers.is_empty(),
        }
    }
}

/// The kinds of records that are counted apart, by the numbers that [`Trim`] gives: names for programs.
pub const KINDS: [&str; 9] = [
    "samples",
    "context_switches",
    "stacks",
    "processes_and_threads",
    "images",
    "compiled_code",
    "disk_io",
    "other_events",
    "unknown_layout",
];

const SAMPLES: usize = 0;
const SWITCHES: usize = 1;
const STACKS: usize = 2;
const PROCESSES: usize = 3;
const IMAGES: usize = 4;
const CODE: usize = 5;
const DISK: usize = 6;
const OTHER: usize = 7;
const UNKNOWN: usize = 8;

/// Chooses records.
#[derive(Debug)]
pub struct Trim {
    choice: Choice,
    /// What is left, of what an earlier trim had left; `None` for everything.
    trimmed: Option<Trimmed>,
    owners: Owners,
    noted: Noted,
    /// What stands in the place of names, if they are replaced.
    pseudonyms: Option<Mutex<Pseudonyms>>,
    /// The identities that images are given, by process, base and size.
    identities: Identities,
}

/// Identities of images that a recording does not have, by the id of the process (0 for kernel modules), where the image
/// is mapped, and the size of the mapping.
pub type Identities = FxHashMap<(u32, u64, u64), Identity>;

/// What finds the symbols of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The link time in its header.
    pub timestamp: u32,
    /// Its file name.
    pub name: String,
    /// Its PDB: the path that the image names, and what the PDB carries.
    pub pdb: Option<(String, DebugId)>,
    /// That of its IL, if it has native code as well.
    pub managed_pdb: Option<(String, DebugId)>,
}

impl Trim {
    /// Looks through a recording, whose processes and threads `trace` has. `progress` gets the number of bytes that have
    /// been read.
    pub fn new(
        recording: &Recording,
        trace: &Trace,
        choice: Choice,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64),
    ) -> Trim {
        let owners = Owners::new(trace, choice.processes.as_deref());
        let trimmed = (!choice.is_all()).then(|| choice.trimmed(trace));
        let trim = Trim { choice, trimmed, owners, ..Trim::all() };
        if trim.choice.is_all() {
            return trim;
        }
        let reading = recording.digest(&trim, threads, progress, || Survey::new(&trim));
        let Reading { value: (survey, _), .. } = reading;
        let noted = survey.finish(trace);
        Trim { noted, ..trim }
    }

    /// Keeps everything.
    pub fn all() -> Trim {
        Trim {
            choice: Choice::default(),
            trimmed: None,
            owners: Owners::all(),
            noted: Noted::default(),
            pseudonyms: None,
            identities: Identities::default(),
        }
    }

    /// Adds the events that tell the PDBs of images, before the images' own.
    #[must_use]
    pub fn identifying(self, identities: Identities) -> Trim {
        Trim { identities, ..self }
    }

    /// Replaces what records say of users, machines, folders and command lines, by words of the same length. Events whose
    /// layout is not known are left out, as are those that are not laid out as their headers say; what is behind the known
    /// fields of others becomes zeros.
    #[must_use]
    pub fn anonymous(self) -> Trim {
        Trim { pseudonyms: Some(Mutex::default()), ..self }
    }

    fn is_in_time(&self, time: Ticks) -> bool {
        matches!(self.side(time), Side::Inside)
    }

    /// True for an event of the wanted providers.
    fn is_provided(&self, event: &Event<'_>) -> bool {
        let wanted = &self.choice.providers;
        wanted.is_empty() || wanted.contains(&event.provider)
    }

    /// True if an event that is no fact of its process is wanted, as far as the time and its provider decide.
    fn is_wanted(&self, event: &Event<'_>) -> bool {
        self.is_in_time(event.time) && self.is_provided(event)
    }

    /// True for a process whose images and code are kept.
    fn needs(&self, pid: u32) -> bool {
        matches!(pid, 0 | 4) || self.owners.is_ever(pid) || self.noted.partners_with_stacks.contains(&pid)
    }

    /// True for the method of another process without which one of a chosen process would read otherwise, and for what
    /// says which module it is of.
    fn names(&self, pid: u32, clr: &Clr<'_>) -> bool {
        self.noted.namesakes.get(&pid).is_some_and(|starts| match clr {
            Clr::Method(method) => starts.contains(&method.start),
            Clr::R2rEntryPoint(method) => starts.contains(&method.entry),
            Clr::IlMap(_) | Clr::JitMemory(_) => false,
            _ => true,
        })
    }

    /// The kind of an event, and whether it is kept.
    fn decide(&self, event: &Event<'_>) -> (usize, bool) {
        let Event { time, pid, tid, .. } = *event;
        if is_of_session(event) {
            return (OTHER, true);
        }
        match decode(event) {
            Ok(Decoded::Kernel(kernel)) => self.kernel(&kernel, event),
            Ok(Decoded::Clr(clr)) => {
                let is_code = is_code(&clr);
                let is_kept = if is_code {
                    self.needs(pid) || self.names(pid, &clr)
                } else {
                    self.owners.has(pid, tid, time) && self.is_wanted(event)
                };
                (CODE, is_kept)
            }
            Ok(Decoded::JavaScript(_)) => (CODE, self.needs(pid)),
            // Those of the whole machine were chosen for whatever was recorded.
            Ok(Decoded::Counter(value)) => {
                let is_kept = value.pid == 0 || self.owners.is_ever(value.pid);
                (OTHER, is_kept && self.is_wanted(event))
            }
            // What is left now stands behind the header.
            Ok(Decoded::Trimmed(_)) => (OTHER, false),
            // The times of files' versions are those of their images.
            Ok(Decoded::Other) if event.provider == IMAGE_ID => (IMAGES, self.noted.images.contains(&time)),
            Ok(Decoded::Other) | Err(_) => {
                let is_kept = match (pid, tid) {
                    // Nobody's, unless a stack says so.
                    (NO_ID, NO_ID) => self.owners.is_all() || self.noted.owners.contains(&time),
                    _ => self.owners.has(pid, tid, time),
                };
                (OTHER, is_kept && self.is_wanted(event))
            }
        }
    }

    fn kernel(&self, kernel: &Kernel<'_>, event: &Event<'_>) -> (usize, bool) {
        let Event { time, pid, tid, .. } = *event;
        // A process that is started, or a file that is mapped, by a chosen one may own a stack of it.
        let is_done_by = || self.owners.has(pid, tid, time);
        match kernel {
            Kernel::Sample(sample) => {
                let is_owner = self.owners.is_thread(sample.tid, time) || self.noted.named(time, sample.tid);
                (SAMPLES, is_owner && self.is_wanted(event))
            }
            Kernel::CounterSample(sample) => {
                let is_owner = self.owners.is_thread(sample.tid, time) || self.noted.named(time, sample.tid);
                (SAMPLES, is_owner && self.is_wanted(event))
            }
            Kernel::ContextSwitch(switch) => {
                let is_side = |tid| self.owners.is_thread(tid, time);
                let is_border = self.noted.watched.is_some_and(|(first, last)| time == first || time == last);
                let is_kept = is_side(switch.new_tid) || is_side(switch.old_tid) || is_border;
                let is_noted = self.noted.switches.contains(&(time, event.processor));
                (SWITCHES, is_kept && self.is_wanted(event) || is_noted)
            }
            Kernel::ReadyThread(ready) => {
                let is_side = |tid| self.owners.is_thread(tid, time);
                let is_kept = (is_side(ready.tid) || is_side(tid)) && self.is_wanted(event);
                (SWITCHES, is_kept || self.noted.readied.contains(&(time, ready.tid)))
            }
            Kernel::PageFault(fault) => {
                let is_owner = match fault.tid {
                    Some(tid) => self.owners.is_thread(tid, time),
                    None if tid == NO_ID => self.owners.is_all() || self.noted.owners.contains(&time),
                    None => self.owners.has(pid, tid, time),
                };
                (OTHER, is_owner && self.is_wanted(event))
            }
            Kernel::DiskIoInit(init) => {
                let tid = init.tid.filter(|tid| *tid != NO_ID).unwrap_or(tid);
                (DISK, self.owners.has(NO_ID, tid, time) && self.is_wanted(event))
            }
            Kernel::DiskIo(io) => (
                DISK,
                self.owners.is_all() && self.is_wanted(event) || self.noted.disk.contains(&(time, io.irp)),
            ),
            Kernel::FileName(name) => (DISK, self.owners.is_all() || self.noted.files.contains(&name.key)),
            Kernel::StackWalk(walk) => (STACKS, self.keeps_stack(walk, time)),
            Kernel::Process(process) => {
                let is_kept = matches!(process.pid, 0 | 4) || self.owners.is_ever(process.pid);
                (PROCESSES, is_kept || self.noted.partners.contains(&process.pid) || is_done_by())
            }
            Kernel::Thread(thread) => {
                let is_partner = self.noted.partner_threads.contains(&thread.tid);
                (PROCESSES, is_partner || self.owners.is_ever(thread.pid) || is_done_by())
            }
            Kernel::ThreadName(name) => {
                let is_partner = self.noted.partner_threads.contains(&name.tid);
                (PROCESSES, is_partner || self.owners.is_ever(name.pid))
            }
            Kernel::Image(Image { pid, .. }) => (IMAGES, self.needs(*pid) || is_done_by()),
            Kernel::ImageId(id) => {
                (IMAGES, process(id).map_or_else(|| self.noted.images.contains(&time), |pid| self.needs(pid)))
            }
            Kernel::ProfileInterval(_) | Kernel::Cpu(_) | Kernel::SysConfig(_) | Kernel::Lost(_) => {
                (OTHER, true)
            }
            Kernel::Interrupt(_) => {
                (OTHER, (self.owners.is_all() || self.noted.owners.contains(&time)) && self.is_wanted(event))
            }
        }
    }

    /// The records that stand before that of an image, if it is to have an identity.
    fn identity(&self, event: &Event<'_>) -> Vec<Vec<u8>> {
        if event.provider != IMAGE || self.identities.is_empty() {
            return Vec::new();
        }
        let Ok(Decoded::Kernel(Kernel::Image(image))) = decode(event) else { return Vec::new() };
        let Image { pid, base, size, .. } = image;
        let Some(Identity { timestamp, name, pdb, managed_pdb }) = self.identities.get(&(pid, base, size))
        else {
            return Vec::new();
        };
        let merged = Merged { pointer: event.pointer, time: event.time };
        let image = ImageIdentity { base, size, pid, timestamp: *timestamp, name };
        // Of a path that says where the PDB was built, its name finds it as well.
        let path = |path: &str| match &self.pseudonyms {
            Some(_) => file_name(path).to_owned(),
            None => path.to_owned(),
        };
        let pdb = pdb.as_ref().map(|(pdb, id)| merged.pdb(&image, *id, &path(pdb)));
        let managed = managed_pdb.as_ref().map(|(pdb, id)| merged.managed_pdb(&image, *id, &path(pdb)));
        std::iter::once(merged.image(&image)).chain(pdb).chain(managed).collect()
    }

    /// Stacks follow their events. A stack may complete those of later events of its thread, so one whose
    /// event came before the wanted time is kept if it was written in it.
    fn keeps_stack(&self, walk: &StackWalk<'_>, written: Ticks) -> bool {
        match walk {
            StackWalk::Stack { event_time, pid, tid, .. } | StackWalk::Key { event_time, pid, tid, .. } => {
                self.is_stack_wanted(*event_time, written, *pid, *tid)
                    || self.noted.named(*event_time, *tid)
                    || self.noted.late.contains(&(*event_time, written, *tid))
            }
            StackWalk::Definition { key, .. } => self.noted.keys.contains(key),
        }
    }

    /// True for a stack of a chosen process in the wanted time.
    fn is_stack_wanted(&self, event_time: Ticks, written: Ticks, pid: u32, tid: u32) -> bool {
        let is_in_time = self.choice.from.is_none_or(|from| from <= written)
            && self.choice.to.is_none_or(|to| event_time < to);
        let providers = &self.choice.providers;
        let is_provided = providers.is_empty() || providers.contains(&STACK_WALK);
        is_in_time && is_provided && self.owners.has(pid, tid, event_time)
    }
}

impl Keep for Trim {
    fn left_out(&self, record: &Record<'_>) -> Option<usize> {
        let event = record.event();
        if self.pseudonyms.is_some() && !anonymous::is_known(&event) {
            return Some(UNKNOWN);
        }
        if self.choice.is_all() {
            return None;
        }
        let (kind, is_kept) = self.decide(&event);
        (!is_kept).then_some(kind)
    }

    fn is_all(&self) -> bool {
        self.choice.is_all() && !self.rewrites()
    }

    fn opening(&self, header: &Event<'_>) -> Option<Vec<u8>> {
        let (items, payload) = (trimmed::items(), trimmed::payload(self.trimmed.as_ref()?));
        let event = Event {
            provider: ETWPROF,
            kind: Kind::Manifest(0),
            opcode: 0,
            version: 0,
            pid: 0,
            tid: 0,
            items: &items,
            payload: &payload,
            ..*header
        };
        writer::record_of(&event)
    }

    fn rewrites(&self) -> bool {
        self.pseudonyms.is_some() || !self.identities.is_empty()
    }

    fn rewritten(&self, event: &Event<'_>, record: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut records = self.identity(event);
        let anonymous = self.pseudonyms.as_ref().and_then(|pseudonyms| {
            // A lock that somebody left in a panic holds words all the same.
            let mut pseudonyms = pseudonyms.lock().unwrap_or_else(PoisonError::into_inner);
            anonymous::without_secrets(&mut pseudonyms, event, record)
        });
        if records.is_empty() && anonymous.is_none() {
            return None;
        }
        records.push(anonymous.unwrap_or_else(|| record.to_vec()));
        Some(records)
    }
}

/// True for an event that says what later ones are about: machines, processes, threads, images, files and compiled code. Of
/// all others, those of one time can be kept without those before.
pub fn is_fact(event: &Event<'_>) -> bool {
    match decode(event) {
        _ if is_of_session(event) => true,
        Ok(Decoded::Kernel(kernel)) => matches!(
            kernel,
            Kernel::Process(_)
                | Kernel::Thread(_)
                | Kernel::ThreadName(_)
                | Kernel::Image(_)
                | Kernel::ImageId(_)
                | Kernel::FileName(_)
                | Kernel::StackWalk(StackWalk::Definition { .. })
                | Kernel::ProfileInterval(_)
                | Kernel::Cpu(_)
                | Kernel::SysConfig(_)
                | Kernel::Lost(_)
        ),
        Ok(Decoded::Clr(clr)) => is_code(&clr),
        Ok(Decoded::JavaScript(_) | Decoded::Trimmed(_)) => true,
        Ok(Decoded::Counter(_)) => false,
        Ok(Decoded::Other) | Err(_) => event.provider == IMAGE_ID,
    }
}

/// True for what a session says of itself and its machine.
fn is_of_session(event: &Event<'_>) -> bool {
    matches!(event.provider, EVENT_TRACE | SYSTEM_CONFIG | SYS_CONFIG | META_DATA | WIN_SAT | LOST_EVENT)
}

/// True for what says where compiled code is and what it is called; the rest is what happened.
fn is_code(clr: &Clr<'_>) -> bool {
    matches!(
        clr,
        Clr::Method(_)
            | Clr::IlMap(_)
            | Clr::JitMemory(_)
            | Clr::R2rEntryPoint(_)
            | Clr::Module(_)
            | Clr::DomainModule(_)
            | Clr::Assembly(_)
            | Clr::AppDomain(_)
            | Clr::Runtime(_)
            | Clr::RundownBegin { .. }
            | Clr::RundownComplete { .. }
            | Clr::TieredSettings(_)
    )
}

/// The process of an image's identity. The version of a file has none: it belongs to the identity before it, of the same
/// time.
fn process(id: &ImageId<'_>) -> Option<u32> {
    match id {
        ImageId::File { pid, .. }
        | ImageId::Pdb { pid, .. }
        | ImageId::NoPdb { pid, .. }
        | ImageId::Mark { pid, .. } => Some(*pid),
        _ => None,
    }
}
