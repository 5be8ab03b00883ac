//! A live recording, written to a file as it comes.
//!
//! Events of a live session are records again: kernel events with the short heads that the kernel's own files have, others
//! with their GUIDs. Levels, keywords, tasks and activities are 0, because events do not carry them; no reader needs them to
//! know an event.

use std::io;

use crate::clock::{Clock, Ticks};
use crate::debug_id::DebugId;
use crate::event::{Event, Kind, NO_ID, Pointer};
use crate::guid::Guid;
use crate::guids::{self, EVENT_TRACE, IMAGE, PERF_INFO, PROCESS, SYSTEM_CONFIG, THREAD};
use crate::origin::Origin;
use crate::sink::{Inventory, Loaded, Running, Sink};

use super::records::{Classic, Hooked, ImageIdentity, Manifest, Merged, Message};
use super::{Ending, FileHeader, Layout, Output, Writer};

const TRACELOGGING: u8 = 11;
/// Longer records are none.
const LONGEST: usize = u16::MAX as usize;
/// The size of buffers. Each processor's is written once a second at least, and padded to this.
const BUFFER_SIZE: u32 = 64 << 10;
/// The size of buffers that stay in their places, where each record must fit into one.
const RING_BUFFER_SIZE: u32 = 128 << 10;
/// As real-time sessions and private loggers have none: a file that grows.
const SEQUENTIAL: u32 = 1;
/// A file of a bounded size.
const CIRCULAR: u32 = 2;

/// The record of an event, without its level, keyword, task and activity; `None` for the head of a log, and for what
/// no record has room for.
pub fn record_of(event: &Event<'_>) -> Option<Vec<u8>> {
    let Event { time, provider, opcode, version, pointer, pid, tid, items, payload, .. } = *event;
    if payload.len() + items.len() + 80 > LONGEST {
        return None;
    }
    match (event.kind, guids::hook_group(provider, opcode)) {
        (Kind::Classic, Some(_)) if provider == EVENT_TRACE && opcode == 0 => None,
        (Kind::Classic, Some(group)) => {
            let hooked = Hooked { group, opcode, version, pointer, time };
            Some(match pid == NO_ID && tid == NO_ID {
                true => hooked.perf_info(payload),
                false => hooked.system(pid, tid, payload),
            })
        }
        (Kind::Classic, None) => {
            let version = version.into();
            let writer = (pid, tid);
            let classic = Classic { task: provider, opcode, level: 0, version, pointer, writer, time };
            Some(classic.record(payload))
        }
        (Kind::Manifest(id), _) => {
            let manifest = Manifest {
                provider,
                id,
                version,
                // That of events that describe themselves.
                channel: if event.tracelogging_name().is_some() { TRACELOGGING } else { 0 },
                level: 0,
                opcode,
                task: 0,
                keyword: 0,
                activity: Guid::ZERO,
                pointer,
                writer: (pid, tid),
                time,
            };
            Some(manifest.record_with(items, payload))
        }
        (Kind::Message(number), _) => {
            Some(Message { provider, number, pointer, writer: (pid, tid), time }.record(payload))
        }
        (Kind::Unknown(_), _) => None,
    }
}

/// Takes events for a sink, and writes them to a file as well, if there is one.
#[derive(Debug)]
pub struct Tee<S, W: Output> {
    sink: S,
    file: Option<LiveFile<W>>,
}

/// What became of the file.
#[derive(Debug)]
pub struct Written {
    /// Its size in bytes; or why it ends before the recording does.
    pub size: io::Result<u64>,
    /// Events that it has.
    pub events: u64,
}

/// Whether an event is one that later ones are about.
pub type IsFact = fn(&Event<'_>) -> bool;

/// A second file, for the newest of what happens; the first then has what else a reader needs to know.
#[derive(Debug)]
pub struct Newest<W> {
    /// The file.
    pub out: W,
    /// How many bytes it may have. It has two buffers for each processor at least.
    pub bytes: u64,
    /// True for an event that later ones cannot be understood without, which is kept however old it is.
    pub is_fact: IsFact,
}

/// A file that a live recording is written to.
#[derive(Debug)]
pub struct LiveFile<W: Output> {
    file: Part<W>,
    newest: Option<(Part<W>, IsFact)>,
    clock: Clock,
    pointer: Pointer,
    events: u64,
    last: Ticks,
    /// When the file was last whole.
    whole: Ticks,
    inventory: Inventory,
}

impl<S, W: Output> Tee<S, W> {
    /// Only the sink.
    pub fn without_file(sink: S) -> Self {
        Tee { sink, file: None }
    }

    /// The sink, and a file that begins with what `origin` knows. `name` is what the file is called in its header.
    pub fn with_file(sink: S, origin: &Origin, name: &str, out: W) -> Self {
        Tee { sink, file: Some(LiveFile::begin(origin, name, out, None)) }
    }

    /// The sink, a file with all that is needed to understand what happens, and one with the newest of that: two parts of one
    /// recording.
    pub fn with_newest(sink: S, origin: &Origin, name: &str, out: W, newest: Newest<W>) -> Self {
        Tee { sink, file: Some(LiveFile::begin(origin, name, out, Some(newest))) }
    }

    /// The sink, and the file, which is still to be [finished](LiveFile::finish).
    pub fn split(self) -> (S, Option<LiveFile<W>>) {
        (self.sink, self.file)
    }
}

impl<S: Sink, W: Output + Send + 'static> Sink for Tee<S, W> {
    fn event(&mut self, event: &Event<'_>) {
        self.sink.event(event);
        if let Some(file) = &mut self.file {
            file.event(event);
        }
    }

    fn inventory(&mut self, inventory: Inventory) {
        if let Some(file) = &mut self.file {
            file.inventory = inventory.clone();
        }
        self.sink.inventory(inventory);
    }
}

/// A writer until something goes wrong, which ends it; what was written stays.
#[derive(Debug)]
struct Part<W: Output>(Result<Writer<W>, io::Error>);

impl<W: Output> Part<W> {
    fn attempt(&mut self, write: impl FnOnce(&mut Writer<W>) -> io::Result<()>) {
        if let Ok(writer) = &mut self.0
            && let Err(error) = write(writer)
        {
            self.0 = Err(error);
        }
    }

    /// The size in bytes.
    fn finish(self, ending: Ending) -> io::Result<u64> {
        self.0.and_then(|writer| writer.finish(ending))
    }
}

impl<W: Output> LiveFile<W> {
    fn begin(origin: &Origin, name: &str, out: W, newest: Option<Newest<W>>) -> Self {
        let Origin { clock, machine, platform, .. } = origin;
        let header = |mode| {
            let header = FileHeader {
                base: clock.base,
                writer: (std::process::id(), 0),
                pointer: machine.pointer,
                os_build: machine.os_build,
                processors: machine.processors,
                maximum_size: 0,
                mode,
                platform: *platform,
                frequency: clock.frequency,
                start: clock.base_utc,
                clock: clock.kind,
                session: "etwprof".to_owned(),
                file: name.to_owned(),
            };
            header.record()
        };
        let layout = |buffer_size| Layout { buffer_size, compress: false, logger: 0, clock: *clock };
        let facts = facts(origin);
        let facts: Vec<&[u8]> = facts.iter().map(Vec::as_slice).collect();
        let newest = newest.map(|Newest { out, bytes, is_fact }| {
            let buffers = u32::try_from(bytes / u64::from(RING_BUFFER_SIZE)).unwrap_or(u32::MAX);
            let buffers = buffers.max(2 * machine.processors);
            let writer = Writer::ring(out, layout(RING_BUFFER_SIZE), &header(CIRCULAR), &[], buffers);
            (Part(writer), is_fact)
        });
        let mut file = LiveFile {
            file: Part(Writer::new(out, layout(BUFFER_SIZE), &header(SEQUENTIAL), &facts)),
            newest,
            clock: *clock,
            pointer: machine.pointer,
            events: 0,
            last: clock.base,
            whole: clock.base,
            inventory: Inventory::default(),
        };
        file.complete(Ending::default());
        file
    }

    /// Makes files of what there is that can be read.
    fn complete(&mut self, ending: Ending) {
        self.file.attempt(|writer| writer.complete(ending));
        if let Some((newest, _)) = &mut self.newest {
            newest.attempt(|writer| writer.complete(ending));
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let Some(record) = record_of(event) else { return };
        let part = match &mut self.newest {
            Some((newest, is_fact)) if !is_fact(event) => newest,
            _ => &mut self.file,
        };
        part.attempt(|writer| writer.record(event.processor, event.time, &record));
        self.events += 1;
        self.last = self.last.max(event.time);
        // Whoever ends the program, or the machine, finds a file with all but the last second.
        if self.last.0.saturating_sub(self.whole.0) >= i64::try_from(self.clock.frequency).unwrap_or(i64::MAX)
        {
            let end = self.clock.filetime(self.last);
            self.whole = self.last;
            self.complete(Ending { end, ..Ending::default() });
        }
    }

    /// What ran before the recording, which the file will list: whoever knows better may take out what is contradicted.
    pub fn inventory_mut(&mut self) -> &mut Inventory {
        &mut self.inventory
    }

    /// Ends the file with what ran before the recording, and the PDBs of images: those that `pdbs` knows by process and base,
    /// each with the link time of its image.
    pub fn finish(
        mut self,
        ending: Ending,
        pdbs: impl Fn(u32, u64) -> Option<(u32, String, DebugId)>,
    ) -> Written {
        let inventory = std::mem::take(&mut self.inventory);
        let time = inventory.from;
        let list = Listed { pointer: self.pointer, time };
        let merged = Merged { pointer: self.pointer, time };
        // In buffers of their own: they are of another time than what is open.
        self.file.attempt(Writer::flush_all);
        let processes = inventory.processes.iter().map(|process| list.process(process));
        let threads = inventory.threads.iter().map(|(tid, pid)| list.thread(*pid, *tid));
        let modules = inventory.modules.iter().flat_map(|module| {
            let Loaded { pid, base, size, path } = module;
            let known = pdbs(*pid, *base);
            let timestamp = known.as_ref().map_or(0, |(timestamp, ..)| *timestamp);
            let name = crate::winpath::file_name(path);
            let image = ImageIdentity { base: *base, size: *size, pid: *pid, timestamp, name };
            let id = known.map(|(_, pdb, id)| [merged.image(&image), merged.pdb(&image, id, &pdb)]);
            id.into_iter().flatten().chain([list.image(module, timestamp)]).collect::<Vec<_>>()
        });
        for record in processes.chain(threads).chain(modules) {
            self.file.attempt(|writer| writer.record(0, time, &record));
            self.events += 1;
        }
        let newest = self.newest.map_or(Ok(0), |(newest, _)| newest.finish(ending));
        let size = self.file.finish(ending).and_then(|size| Ok(size + newest?));
        Written { size, events: self.events }
    }
}

/// What is known of the machine and the session from the start: processors, build, folders, volumes, sampling interval.
fn facts(origin: &Origin) -> Vec<Vec<u8>> {
    let Origin { clock, machine, interval, windows, volumes, .. } = origin;
    let (pointer, time) = (machine.pointer, clock.base);
    let merged = Merged { pointer, time };
    let mut records = vec![cpu(origin)];
    if !machine.os_name.is_empty() {
        records.push(merged.build(0, &machine.os_build.to_string(), &machine.os_name));
    }
    if !windows.is_empty() {
        records.push(merged.system_paths(&format!(r"{}\system32", windows.trim_end_matches('\\')), windows));
    }
    let slash = |text: &str| format!(r"{}\", text.trim_end_matches('\\'));
    records.extend(volumes.iter().map(|(device, drive)| merged.volume(&slash(device), &slash(drive))));
    if let Some(interval) = interval {
        // The timer's, from the start on.
        let mut payload = Vec::new();
        for field in [0, *interval, *interval] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
        payload.extend("Timer".encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        records.extend(hooked(PERF_INFO, 73, 3, pointer, time).map(|hooked| hooked.perf_info(&payload)));
    }
    records
}

fn hooked(task: Guid, opcode: u8, version: u8, pointer: Pointer, time: Ticks) -> Option<Hooked> {
    let group = guids::hook_group(task, opcode)?;
    Some(Hooked { group, opcode, version, pointer, time })
}

/// SystemConfig CPU, version 3: speed, processors, memory, two numbers, the machine's name in 256 characters, its domain's in
/// 134, hyper-threading; the highest address of user mode; the architecture.
fn cpu(origin: &Origin) -> Vec<u8> {
    let Origin { clock, machine, platform, .. } = origin;
    let width = machine.pointer.bytes();
    let mut payload = Vec::new();
    for field in [platform.cpu_mhz, machine.processors, 0, 4096, 65_536] {
        payload.extend_from_slice(&field.to_le_bytes());
    }
    payload.extend(machine.name.encode_utf16().take(255).flat_map(u16::to_le_bytes));
    payload.resize(20 + 512 + 268 + 2 * width, 0);
    payload.extend_from_slice(&machine.architecture.unwrap_or_default().to_le_bytes());
    payload.resize(payload.len() + 6, 0);
    let hooked = hooked(SYSTEM_CONFIG, 10, 3, machine.pointer, clock.base);
    hooked.map_or_else(Vec::new, |hooked| hooked.system(0, 0, &payload))
}

/// Writes what was there when the recording began, as the kernel's own lists do.
struct Listed {
    pointer: Pointer,
    time: Ticks,
}

const DC_START: u8 = 3;
/// The exit status of what still runs.
const STILL_ACTIVE: u32 = 259;

impl Listed {
    fn record(&self, task: Guid, version: u8, payload: &[u8]) -> Vec<u8> {
        let hooked = hooked(task, DC_START, version, self.pointer, self.time);
        hooked.map_or_else(Vec::new, |hooked| hooked.system(0, 0, payload))
    }

    fn push_pointers(&self, payload: &mut Vec<u8>, values: &[u64]) {
        for value in values {
            payload.extend_from_slice(value.to_le_bytes().get(..self.pointer.bytes()).unwrap_or_default());
        }
    }

    /// Version 4, without a user.
    fn process(&self, process: &Running) -> Vec<u8> {
        let mut payload = Vec::new();
        // The kernel's object, of which only the id is known.
        self.push_pointers(&mut payload, &[u64::from(process.pid) << 4]);
        for field in [process.pid, process.parent, 0, STILL_ACTIVE] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
        self.push_pointers(&mut payload, &[0]);
        payload.extend_from_slice(&(2 * u32::from(process.wow64)).to_le_bytes());
        payload.extend_from_slice(&[0; 4]);
        payload.extend_from_slice(process.name.as_bytes());
        // The end of the name; command line, package and application are empty.
        payload.extend_from_slice(&[0; 7]);
        self.record(PROCESS, 4, &payload)
    }

    /// Version 3.
    fn thread(&self, pid: u32, tid: u32) -> Vec<u8> {
        let mut payload = Vec::new();
        payload.extend_from_slice(&pid.to_le_bytes());
        payload.extend_from_slice(&tid.to_le_bytes());
        self.push_pointers(&mut payload, &[0; 7]);
        payload.extend_from_slice(&[0; 8]);
        self.record(THREAD, 3, &payload)
    }

    /// Version 3.
    fn image(&self, module: &Loaded, timestamp: u32) -> Vec<u8> {
        let mut payload = Vec::new();
        self.push_pointers(&mut payload, &[module.base, module.size]);
        for field in [module.pid, 0, timestamp, 0] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
        self.push_pointers(&mut payload, &[module.base]);
        payload.extend_from_slice(&[0; 16]);
        payload.extend(module.path.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        self.record(IMAGE, 3, &payload)
    }
}
