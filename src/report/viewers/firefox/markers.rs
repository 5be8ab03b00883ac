//! What happened beside the samples: processes and threads that came and went, images that were loaded, methods that
//! were compiled, collections and the pauses for them, exceptions, waits for locks, threads of the pool.
//!
//! A trace does not keep which thread did most of it, so all are with the main thread of their process.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use super::json::{Json, Milliseconds, OrNull};
use super::tables::{Tables, category_number};
use super::threads::{Group, Owners, since};
use crate::event::Ticks;
use crate::events::clr::{GcKind, PoolReason};
use crate::profile::{Category, Moment, Tier};
use crate::report::format::Picture;
use crate::trace::code::{BodyId, BodyKind};
use crate::trace::{Collection, Contended, Mapping, PoolChange, ProcessId, ThreadId, Thrown, Trace};

/// A thing that happened.
pub(super) struct Marker {
    kind: Kind,
    /// In 100 ns since the recording's first record.
    start: i64,
    /// Of what took time, when it was over.
    end: Option<i64>,
    of: Subject,
}

/// What it happened to.
enum Subject {
    Process(ProcessId),
    Thread(ThreadId),
    Image(Mapping),
    Body(BodyId),
    Collection(Collection),
    Pause,
    Exception(Thrown),
    Contended(Contended),
    Pool(PoolChange),
}

/// What a field says. Texts may be long and the same for many: each is there only while it is written.
enum Value<'t> {
    Text(Cow<'t, str>),
    Number(u64),
    /// Addresses need more digits than the viewer's numbers have.
    Address(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Process,
    ThreadStart,
    ThreadEnd,
    ImageLoad,
    ImageUnload,
    Compiled,
    Collection,
    Pause,
    Exception,
    Contended,
    Pool,
}

/// A field of a kind of marker: its key, how it is shown, and what it is called.
type Field = (&'static str, &'static str, &'static str);

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Process,
        Kind::ThreadStart,
        Kind::ThreadEnd,
        Kind::ImageLoad,
        Kind::ImageUnload,
        Kind::Compiled,
        Kind::Collection,
        Kind::Pause,
        Kind::Exception,
        Kind::Contended,
        Kind::Pool,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Process => "Process",
            Kind::ThreadStart => "Thread start",
            Kind::ThreadEnd => "Thread end",
            Kind::ImageLoad => "Image load",
            Kind::ImageUnload => "Image unload",
            Kind::Compiled => "JIT",
            Kind::Collection => "GC",
            Kind::Pause => "GC pause",
            Kind::Exception => "Exception",
            Kind::Contended => "Lock wait",
            Kind::Pool => "Thread pool",
        }
    }

    fn fields(self) -> &'static [Field] {
        match self {
            Kind::Process => {
                &[("commandLine", "string", "Command line"), ("parent", "integer", "Parent process")]
            }
            Kind::ThreadStart | Kind::ThreadEnd => &[
                ("thread", "integer", "Thread"),
                ("name", "string", "Name"),
                ("startAddress", "string", "Start address"),
            ],
            Kind::ImageLoad | Kind::ImageUnload => {
                &[("path", "string", "Path"), ("base", "string", "Base"), ("size", "bytes", "Size")]
            }
            Kind::Compiled => &[
                ("method", "string", "Method"),
                ("tier", "string", "Tier"),
                ("address", "string", "Address"),
                ("size", "bytes", "Size"),
            ],
            Kind::Collection => &[
                ("generation", "integer", "Generation"),
                ("reason", "string", "Reason"),
                ("kind", "string", "Kind"),
                ("number", "integer", "Number"),
                ("heap", "bytes", "Heap after it"),
            ],
            Kind::Pause => &[],
            Kind::Exception => &[("exception", "string", "Exception"), ("thread", "integer", "Thread")],
            Kind::Contended => &[("thread", "integer", "Thread"), ("owner", "integer", "Held by thread")],
            Kind::Pool => &[("threads", "integer", "Threads"), ("reason", "string", "Reason")],
        }
    }

    fn category(self) -> Category {
        match self {
            Kind::Compiled => Category::JitCompiler,
            Kind::Collection | Kind::Pause | Kind::Exception | Kind::Contended | Kind::Pool => {
                Category::Runtime
            }
            _ => Category::Heading,
        }
    }
}

/// The range of time that was chosen.
pub(super) fn range(picture: &Picture<'_>) -> RangeInclusive<Ticks> {
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.at(&picture.profile().trace));
    let (from, to) = picture.range;
    moment(from).unwrap_or(Ticks(i64::MIN))..=moment(to).unwrap_or(Ticks(i64::MAX))
}

/// The markers of each process, in order of time, within the range that was chosen.
pub(super) fn markers(picture: &Picture<'_>, groups: &[Group<'_>]) -> FxHashMap<ProcessId, Vec<Marker>> {
    let trace: &Trace = &picture.profile().trace;
    let range = range(picture);
    let instant = |kind: Kind, time: Option<Ticks>, of: Subject| {
        let time = time.filter(|time| range.contains(time))?;
        Some(Marker { kind, start: since(trace, time), end: None, of })
    };
    let interval = |kind, (start, end): (Ticks, Option<Ticks>), of| {
        let overlaps = start <= *range.end() && end.unwrap_or(start) >= *range.start();
        overlaps.then(|| Marker {
            kind,
            start: since(trace, start),
            end: end.map(|end| since(trace, end)),
            of,
        })
    };
    let mut all: FxHashMap<ProcessId, Vec<Marker>> = FxHashMap::default();
    for group in groups {
        let markers = all.entry(group.id).or_default();
        markers.extend(of_process(trace, group, &range));
        for mapping in trace.mappings.of(group.id) {
            markers.extend(instant(Kind::ImageLoad, mapping.start, Subject::Image(*mapping)));
            markers.extend(instant(Kind::ImageUnload, mapping.end, Subject::Image(*mapping)));
        }
    }
    let owners = Owners::new(trace);
    for (id, thread) in (0..).map(ThreadId).zip(&trace.threads) {
        let Some(markers) = owners.of(thread).and_then(|owner| all.get_mut(&owner)) else { continue };
        markers.extend(instant(Kind::ThreadStart, thread.life.start, Subject::Thread(id)));
        markers.extend(instant(Kind::ThreadEnd, thread.life.end, Subject::Thread(id)));
    }
    let compiled = trace.managed.compilations.iter();
    let compiled = compiled.filter_map(|one| Some(((one.process, one.end?), one.start?)));
    let began: FxHashMap<(ProcessId, Ticks), Ticks> = compiled.collect();
    for (id, body) in (0..).map(BodyId).zip(trace.code.bodies()) {
        let is_method = matches!(body.kind, BodyKind::Jitted | BodyKind::Dynamic) && !body.flags.is_cold();
        if let Some(markers) = all.get_mut(&body.process).filter(|_| is_method) {
            let began = body.loaded.and_then(|loaded| Some((loaded, *began.get(&(body.process, loaded))?)));
            markers.extend(match began {
                Some((loaded, start)) => interval(Kind::Compiled, (start, Some(loaded)), Subject::Body(id)),
                None => instant(Kind::Compiled, body.loaded, Subject::Body(id)),
            });
        }
    }
    let managed = &trace.managed;
    for collection in &managed.collections {
        if let Some(markers) = all.get_mut(&collection.process) {
            let time = (collection.start, collection.end);
            markers.extend(interval(Kind::Collection, time, Subject::Collection(*collection)));
        }
    }
    for pause in managed.pauses.iter().filter(|pause| pause.is_for_gc) {
        if let Some(markers) = all.get_mut(&pause.process) {
            markers.extend(interval(Kind::Pause, (pause.start, pause.end), Subject::Pause));
        }
    }
    for thrown in &managed.exceptions {
        if let Some(markers) = all.get_mut(&thrown.process) {
            markers.extend(instant(Kind::Exception, Some(thrown.time), Subject::Exception(*thrown)));
        }
    }
    for contended in managed.contentions.iter().filter(|contended| !contended.is_native) {
        if let Some(markers) = all.get_mut(&contended.process) {
            let time = (contended.start, contended.end);
            markers.extend(interval(Kind::Contended, time, Subject::Contended(*contended)));
        }
    }
    for change in &managed.pool {
        if let Some(markers) = all.get_mut(&change.process) {
            markers.extend(instant(Kind::Pool, Some(change.time), Subject::Pool(*change)));
        }
    }
    all.values_mut().for_each(|markers| markers.sort_by_key(|marker| marker.start));
    all
}

/// The life of a process, as far as it is within the recording.
fn of_process(trace: &Trace, group: &Group<'_>, range: &RangeInclusive<Ticks>) -> Option<Marker> {
    let (first, last) = trace.span?;
    let life = group.process.life;
    let start = life.start.unwrap_or(first).max(*range.start());
    let end = life.end.unwrap_or(last).min(*range.end());
    let (start, end) = (since(trace, start), since(trace, end.max(start)));
    Some(Marker { kind: Kind::Process, start, end: Some(end), of: Subject::Process(group.id) })
}

/// What the fields of a marker say, in the order of [`Kind::fields`].
fn values<'t>(trace: &'t Trace, of: &Subject) -> Option<Vec<Value<'t>>> {
    use Value::{Address, Number, Text};
    Some(match of {
        Subject::Process(id) => {
            let process = trace.process(*id)?;
            vec![Text(process.command_line.as_str().into()), Number(process.parent_pid.into())]
        }
        Subject::Thread(id) => {
            let thread = trace.thread(*id)?;
            vec![Number(thread.tid.into()), Text(thread.name.as_str().into()), Address(thread.start_address)]
        }
        Subject::Image(mapping) => {
            let module = trace.module(mapping.module)?;
            vec![Text(module.path.as_str().into()), Address(mapping.base), Number(mapping.size)]
        }
        Subject::Collection(collection) => {
            let heap = collection.heap.map_or(0, |heap| heap.bytes());
            let generation = collection.generation.map_or(Text("".into()), |number| Number(number.into()));
            vec![
                generation,
                Text(collection.reason.text().into()),
                Text(collection.kind.map_or("", GcKind::text).into()),
                Number(collection.number.into()),
                if heap > 0 { Number(heap) } else { Text("".into()) },
            ]
        }
        Subject::Pause => Vec::new(),
        Subject::Exception(thrown) => {
            let name = trace.managed.exception_types.get(thrown.type_name as usize);
            vec![Text(name.map_or("", String::as_str).into()), Number(thrown.tid.into())]
        }
        Subject::Contended(contended) => {
            let owner = contended.owner.map_or(Text("".into()), Number);
            vec![Number(contended.tid.into()), owner]
        }
        Subject::Pool(change) => {
            let reason = change.reason.map_or("", PoolReason::text);
            vec![Number(change.threads.into()), Text(reason.into())]
        }
        Subject::Body(id) => {
            let body = trace.code.body(*id)?;
            let tier = Tier::of(body.flags, false).map_or("", Tier::text);
            let method = trace.code.name(body).map_or(String::new(), |name| match name.type_name {
                "" => name.method.to_owned(),
                type_name => format!("{type_name}.{}", name.method),
            });
            vec![Text(method.into()), Text(tier.into()), Address(body.start), Number(body.size)]
        }
    })
}

/// Writes the columns of the markers of a thread.
pub(super) fn write_markers<W: Write>(
    trace: &Trace,
    markers: &[Marker],
    tables: &mut Tables<'_>,
    json: &mut Json<W>,
) -> io::Result<()> {
    const INSTANT: u8 = 0;
    const INTERVAL: u8 = 1;
    let names: Vec<u32> = markers.iter().map(|marker| tables.string(marker.kind.name())).collect();
    json.key("data")?.array(|json| markers.iter().try_for_each(|marker| write_data(trace, marker, json)))?;
    json.column("name", names)?;
    json.column("startTime", markers.iter().map(|marker| Milliseconds(marker.start)))?;
    json.column("endTime", markers.iter().map(|marker| OrNull(marker.end.map(Milliseconds))))?;
    let phase = |marker: &Marker| if marker.end.is_some() { INTERVAL } else { INSTANT };
    json.column("phase", markers.iter().map(phase))?;
    json.column("category", markers.iter().map(|marker| category_number(marker.kind.category())))?;
    json.key("length")?.plain(markers.len())
}

fn write_data<W: Write>(trace: &Trace, marker: &Marker, json: &mut Json<W>) -> io::Result<()> {
    json.object(|json| {
        json.key("type")?.text(marker.kind.name())?;
        let values = values(trace, &marker.of).unwrap_or_default();
        for ((key, ..), value) in marker.kind.fields().iter().zip(&values) {
            match value {
                Value::Text(text) if text.is_empty() => {}
                Value::Text(text) => json.key(key)?.text(text)?,
                Value::Number(number) => json.key(key)?.plain(number)?,
                Value::Address(0) => {}
                Value::Address(address) => json.key(key)?.text(&format!("{address:#x}"))?,
            }
        }
        Ok(())
    })
}

/// How the viewer shows each kind, which belongs to the head of a profile.
pub(super) fn write_schemas<W: Write>(json: &mut Json<W>) -> io::Result<()> {
    json.array(|json| {
        Kind::ALL.into_iter().try_for_each(|kind| {
            json.object(|json| {
                json.key("name")?.text(kind.name())?;
                if let Some((key, ..)) = kind.fields().first() {
                    json.key("tableLabel")?.text(&format!("{{marker.data.{key}}}"))?;
                    json.key("chartLabel")?.text(&format!("{{marker.data.{key}}}"))?;
                }
                json.key("display")?
                    .array(|json| ["marker-chart", "marker-table"].iter().try_for_each(|at| json.text(at)))?;
                json.key("fields")?.array(|json| {
                    kind.fields().iter().try_for_each(|(key, format, label)| {
                        json.object(|json| {
                            json.key("key")?.text(key)?;
                            json.key("label")?.text(label)?;
                            json.key("format")?.text(format)
                        })
                    })
                })
            })
        })
    })
}
