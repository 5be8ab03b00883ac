//! What is in a recording: machine, times, processes, modules, samples, losses.

mod activity;
mod counters;
mod text;
mod trimmed;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::clock::{ClockKind, UNIX_EPOCH};
use crate::etl::Recording;
use crate::event::Ticks;
use crate::events::clr::Sku;
use crate::profile::{Balance, Category, Cut, Profile, Resolution, Unresolved};
use crate::report::disk::Sums;
use crate::report::findings::Findings;
use crate::report::interrupts;
use crate::report::{json, time_of_day, time_zone};
use crate::symbols::resolver::{ModuleReport, Symbols};
use crate::trace::code::Host;
use crate::trace::{Lost, Mapping, Merged, ModuleId, Process, ProcessId, Trace};

use activity::Activities;
pub use activity::Activity;
pub use counters::CounterInfo;
pub use text::write;
pub use trimmed::TrimmedInfo;

/// The whole of it, as `info --json` prints it. Fields are only ever added; `null` is what nothing tells.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// The files.
    pub files: Vec<FileInfo>,
    /// The machine.
    pub machine: MachineInfo,
    /// The clock.
    pub clock: ClockInfo,
    /// When the first record was written, RFC 3339.
    pub start_utc: Option<String>,
    /// What the machine's wall clocks showed then beside UTC, in minutes east of it.
    pub utc_offset_minutes: Option<i32>,
    /// The same moment by these clocks: `09:00:14.250`.
    #[serde(skip)]
    pub start_time_of_day: String,
    /// Their zone: `UTC-08:00`.
    #[serde(skip)]
    pub time_zone: String,
    /// Seconds from the first record to the last event or the closing of the log, whichever is later.
    pub duration_seconds: f64,
    /// What it was trimmed to; `null` if it was not.
    pub trimmed: Option<TrimmedInfo>,
    /// All events.
    pub events: EventsInfo,
    /// The account of all samples.
    pub samples: SamplesInfo,
    /// The sampling intervals of the samples, in 100 ns, by how many samples ran at each.
    pub sampling_intervals: Vec<IntervalInfo>,
    /// What disks did and which pages were read, whatever samples are kept; `null` without any.
    pub disk: Option<Sums>,
    /// DPCs and interrupts by their kinds, whatever samples are kept.
    pub interrupts: Vec<interrupts::Row>,
    /// The counters that were recorded beside the samples.
    pub counters: Vec<CounterInfo>,
    /// Context switches; 0 where they are not kept ([`Keep`](crate::trace::Keep)).
    pub context_switches: u64,
    /// How far the recording can be trusted, and what stands out.
    #[serde(flatten)]
    pub findings: Findings,
    /// What was lost.
    pub lost: Lost,
    /// What could not be read.
    pub damaged: Vec<DamageInfo>,
    /// Processes, most samples first.
    pub processes: Vec<ProcessInfo>,
    /// Images, most samples first.
    pub modules: Vec<ModuleInfo>,
}

/// A file of the recording.
#[derive(Clone, Debug, Serialize)]
pub struct FileInfo {
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its buffers.
    pub buffers: usize,
    /// The session's name.
    pub session: String,
}

/// The machine that recorded.
#[derive(Clone, Debug, Serialize)]
pub struct MachineInfo {
    /// Logical processors.
    pub cpus: u32,
    /// The build number of the operating system.
    pub os_build: u32,
    /// The product's name.
    pub os_name: Option<String>,
    /// Bytes of a pointer.
    pub pointer_size: usize,
    /// x86, x64 or arm64.
    pub architecture: Option<&'static str>,
    /// The machine's name.
    pub name: Option<String>,
}

/// The clock of the recording's times.
#[derive(Clone, Debug, Serialize)]
pub struct ClockInfo {
    /// Which clock.
    pub kind: ClockKind,
    /// Its units in a second.
    pub frequency: u64,
}

/// Events of all kinds.
#[derive(Clone, Debug, Serialize)]
pub struct EventsInfo {
    /// How many.
    pub total: u64,
}

/// The account of all samples.
#[derive(Clone, Debug, Serialize)]
pub struct SamplesInfo {
    /// Where every sample went.
    #[serde(flatten)]
    pub balance: Balance,
    /// The kept samples by the category of their leaf.
    pub categories: BTreeMap<Category, u64>,
    /// Kept samples whose stacks are not whole, because the recording asked for too much.
    pub cut: Cut,
    /// How much has a name, with the symbols on this machine.
    pub named: NamedInfo,
    /// What of their times was given up to take less memory; `None` for nothing.
    pub merged: Option<Merged>,
}

/// How much of the kept samples has a name.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct NamedInfo {
    /// Samples whose leaf has one.
    pub leaves: u64,
    /// Frames that have one, each counted once for every sample that it is in.
    pub frames: u64,
    /// All frames, counted so.
    pub all_frames: u64,
}

/// A sampling interval.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalInfo {
    /// In 100 ns.
    pub interval: u64,
    /// Samples that stand for this much.
    pub samples: u64,
}

/// A damaged place.
#[derive(Clone, Debug, Serialize)]
pub struct DamageInfo {
    /// The file.
    pub file: String,
    /// The byte in it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: u32,
    /// The id of the process that made it.
    pub parent_pid: u32,
    /// The executable's name.
    pub name: String,
    /// The command line.
    pub command_line: String,
    /// When it began, in seconds since the first record; `null` if before.
    pub start_seconds: Option<f64>,
    /// When it ended; `null` if it did not.
    pub end_seconds: Option<f64>,
    /// Its kept samples.
    pub samples: u64,
    /// Its CPU time in equal parts of the time in which processors were sampled.
    #[serde(skip)]
    when: Vec<i64>,
    /// What its runtimes did beside its code.
    #[serde(flatten)]
    pub activity: Activity,
    /// Its .NET runtimes.
    pub clr: Vec<ClrInfo>,
    /// Bodies of .NET methods that are known of it.
    pub methods: usize,
    /// Whether its runtimes listed what they had; `null` for a process without one.
    pub rundown: Option<RundownInfo>,
    /// The frames of its samples.
    pub frames: FramesInfo,
}

/// A .NET runtime.
#[derive(Clone, Debug, Serialize)]
pub struct ClrInfo {
    /// Its number in its process.
    pub id: u16,
    /// Its version.
    pub version: String,
    /// desktop, coreclr or mono.
    pub sku: Sku,
    /// Its file.
    pub path: String,
    /// What it did beside the code of its process.
    #[serde(flatten)]
    pub activity: Activity,
}

/// Whether the runtimes of a process listed what they had.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RundownInfo {
    /// A list was begun.
    pub begun: bool,
    /// All lists were completed.
    pub completed: bool,
}

/// Frames, each counted once for every sample that it is in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FramesInfo {
    /// Frames with a name.
    pub resolved: u64,
    /// The others, by why they have none.
    pub unresolved: BTreeMap<Unresolved, u64>,
}

/// An image in a process.
#[derive(Clone, Debug, Serialize)]
pub struct ModuleInfo {
    /// The process; 0 for kernel modules.
    pub pid: u32,
    /// Its path.
    pub path: String,
    /// Where it is mapped.
    pub base: u64,
    /// The size of the mapping.
    pub size: u64,
    /// The link time in its header.
    pub timestamp: Option<u32>,
    /// The PDB's name.
    pub pdb_name: Option<String>,
    /// The PDB's GUID.
    pub pdb_guid: Option<String>,
    /// The PDB's age.
    pub pdb_age: Option<u32>,
    /// Kept samples whose leaf is in it.
    pub samples: u64,
    /// What became of its symbols; `null` for a module that no sample hits.
    pub symbols: Option<SymbolsInfo>,
}

/// What became of a module's symbols, on this machine and without asking a server.
#[derive(Clone, Debug, Serialize)]
pub struct SymbolsInfo {
    /// `resolved`, `public`, `exports`, `no_names`, `no_il`, `no_id`, `not_found`, `mismatch`, `unreadable`, `skipped`.
    pub verdict: &'static str,
    /// The same in a sentence, for people.
    pub detail: String,
    /// Distinct addresses that samples hit.
    pub addresses: usize,
    /// Of these, how many have a name.
    pub named: usize,
}

impl Info {
    /// Gathers everything. The profile says which samples count.
    pub fn new(analysis: &Analysis) -> Info {
        let Analysis { recording, damage, profile, symbols } = analysis;
        let trace = &*profile.trace;
        let resolutions = profile.resolution();
        let files = recording.as_deref().map_or(&[][..], Recording::files);
        let clock = trace.clock;
        let last = trace.span.map_or(clock.base, |(_, last)| last);
        let ends = files.iter().map(|file| file.header().end);
        let closed = (ends.max().unwrap_or(0) as f64 - clock.base_utc as f64) / 1e7;
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Info {
            files: files
                .iter()
                .map(|file| FileInfo {
                    path: file.path().display().to_string(),
                    bytes: file.size(),
                    buffers: file.buffer_count(),
                    session: file.header().session.clone(),
                })
                .collect(),
            machine: MachineInfo {
                cpus: trace.machine.processors,
                os_build: trace.machine.os_build,
                os_name: text(&trace.machine.os_name),
                pointer_size: trace.machine.pointer.bytes(),
                architecture: architecture(trace.machine.architecture),
                name: text(&trace.machine.name),
            },
            clock: ClockInfo { kind: clock.kind, frequency: clock.frequency },
            start_utc: utc(clock.base_utc),
            utc_offset_minutes: clock.utc_offset,
            start_time_of_day: time_of_day(&clock, clock.base),
            time_zone: time_zone(&clock),
            duration_seconds: clock.seconds(last).max(closed).max(0.0),
            trimmed: TrimmedInfo::new(trace),
            events: EventsInfo { total: trace.events },
            samples: SamplesInfo {
                balance: profile.balance,
                categories: profile.categories(),
                cut: profile.cut(),
                named: named(profile, &resolutions),
                merged: trace.merged,
            },
            sampling_intervals: intervals(trace),
            disk: (!trace.disk.is_empty()).then(|| Sums::of(trace)),
            interrupts: interrupts::by_kind(trace),
            counters: counters::counters(trace),
            context_switches: trace.kept.switches.len() as u64,
            findings: Findings::of(profile, symbols),
            lost: trace.lost.clone(),
            damaged: damage
                .iter()
                .map(|damage| DamageInfo {
                    file: damage.path.display().to_string(),
                    offset: damage.offset,
                    what: damage.kind.to_string(),
                })
                .collect(),
            processes: processes(trace, profile, resolutions),
            modules: modules(trace, profile, symbols),
        }
    }
}

fn named(profile: &Profile, resolutions: &BTreeMap<ProcessId, Resolution>) -> NamedInfo {
    let all = Resolution::sum(resolutions.values());
    NamedInfo { leaves: profile.named_leaves(), frames: all.resolved, all_frames: all.total() }
}

fn architecture(code: Option<u16>) -> Option<&'static str> {
    Some(match code? {
        0 => "x86",
        9 => "x64",
        12 => "arm64",
        _ => return None,
    })
}

/// A FILETIME as RFC 3339, if it is a date that anybody records at.
fn utc(filetime: i64) -> Option<String> {
    const YEAR_3000: i64 = 441_481_536_000_000_000;
    if !(UNIX_EPOCH..YEAR_3000).contains(&filetime) {
        return None;
    }
    let since = u64::try_from(filetime - UNIX_EPOCH).ok()?;
    let time = SystemTime::UNIX_EPOCH + Duration::new(since / 10_000_000, (since % 10_000_000) as u32 * 100);
    Some(humantime::format_rfc3339_micros(time).to_string())
}

fn intervals(trace: &Trace) -> Vec<IntervalInfo> {
    let mut samples = trace.idle.by_weight.clone();
    for sample in &trace.samples {
        *samples.entry(u64::from(sample.weight) / sample.count().max(1)).or_default() += sample.count();
    }
    let mut rows: Vec<IntervalInfo> =
        samples.into_iter().map(|(interval, samples)| IntervalInfo { interval, samples }).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.interval));
    rows
}

/// Parts of the time that a strip shows.
const SLOTS: usize = 20;

fn processes(
    trace: &Trace,
    profile: &Profile,
    mut resolutions: BTreeMap<ProcessId, Resolution>,
) -> Vec<ProcessInfo> {
    let mut samples = vec![0; trace.processes.len()];
    let mut activities = Activities::new(trace);
    let mut when = vec![vec![0; SLOTS]; trace.processes.len()];
    let (first, last) = trace.sampled().unwrap_or_default();
    let slot = (last.0.saturating_sub(first.0) / SLOTS as i64).saturating_add(1).max(1);
    for sample in &profile.samples {
        let process = profile.runner(sample).process.0 as usize;
        if let Some(count) = samples.get_mut(process) {
            *count += sample.count();
        }
        let at = usize::try_from(sample.time.0.saturating_sub(first.0) / slot).unwrap_or(0);
        if let Some(time) = when.get_mut(process).and_then(|when| when.get_mut(at)) {
            *time += sample.value;
        }
    }
    let seconds = |time: Ticks| trace.clock.seconds(time);
    let row = |((id, process), samples): ((ProcessId, &Process), u64)| {
        let host = trace.code.host(id).filter(|_| trace.is_whole(id));
        let place = id.0 as usize;
        ProcessInfo {
            pid: process.pid,
            parent_pid: process.parent_pid,
            name: process.label().to_owned(),
            command_line: process.command_line.clone(),
            start_seconds: process.life.start.map(seconds),
            end_seconds: process.life.end.map(seconds),
            samples,
            when: when.get_mut(place).map(std::mem::take).unwrap_or_default(),
            activity: activities.processes.remove(&id).unwrap_or_default(),
            clr: host.map(|host| clr(host, id, &mut activities)).unwrap_or_default(),
            methods: host.map_or(0, |host| host.methods),
            rundown: host.filter(|host| host.is_clr()).map(|host| RundownInfo {
                begun: host.rundown.has_begun(),
                completed: host.rundown.is_complete(),
            }),
            frames: frames(resolutions.remove(&id).unwrap_or_default()),
        }
    };
    let ids = (0..).map(ProcessId).zip(&trace.processes);
    let mut rows: Vec<ProcessInfo> = ids.zip(samples).map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.pid));
    rows
}

fn clr(host: &Host, process: ProcessId, activities: &mut Activities) -> Vec<ClrInfo> {
    let version = |[major, minor, build, revision]: [u16; 4]| format!("{major}.{minor}.{build}.{revision}");
    let runtimes = host.runtimes.iter();
    runtimes
        .map(|runtime| ClrInfo {
            id: runtime.instance,
            version: version(runtime.version),
            sku: runtime.sku,
            path: runtime.path.clone(),
            activity: activities.take(process, runtime.instance, host.runtimes.len() == 1),
        })
        .collect()
}

fn frames(resolution: Resolution) -> FramesInfo {
    let Resolution { resolved, unresolved, .. } = resolution;
    FramesInfo { resolved, unresolved: unresolved.into_iter().collect() }
}

fn modules(trace: &Trace, profile: &Profile, symbols: &Symbols) -> Vec<ModuleInfo> {
    let reports: FxHashMap<ModuleId, &ModuleReport> =
        symbols.modules.iter().map(|report| (report.module, report)).collect();
    let samples = leaves_by_mapping(trace, profile);
    let row = |(index, mapping): (usize, &Mapping)| {
        let module = trace.module(mapping.module)?;
        let pid = if module.kernel { 0 } else { trace.process(mapping.process)?.pid };
        let pdb = module.pdb.as_ref();
        Some(ModuleInfo {
            pid,
            path: module.path.clone(),
            base: mapping.base,
            size: mapping.size,
            timestamp: Some(module.timestamp).filter(|timestamp| *timestamp != 0),
            pdb_name: pdb.map(|pdb| pdb.name.clone()),
            pdb_guid: pdb.map(|pdb| pdb.id.guid.to_string()),
            pdb_age: pdb.map(|pdb| pdb.id.age),
            samples: samples.get(&index).copied().unwrap_or(0),
            symbols: reports.get(&mapping.module).map(|report| SymbolsInfo {
                verdict: report.verdict.word(),
                detail: report.verdict.to_string(),
                addresses: report.addresses,
                named: report.named,
            }),
        })
    };
    let mut rows: Vec<ModuleInfo> = trace.mappings.iter().enumerate().filter_map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.pid, row.base));
    rows
}

/// Kept samples whose leaf is in an image, by the index of its mapping.
fn leaves_by_mapping(trace: &Trace, profile: &Profile) -> FxHashMap<usize, u64> {
    // Kernel modules serve all processes.
    let of = |module: ModuleId, process: ProcessId| {
        let kernel = trace.module(module).is_some_and(|module| module.kernel);
        (module, if kernel { None } else { Some(process) })
    };
    let mut mappings: FxHashMap<_, Vec<(usize, &Mapping)>> = FxHashMap::default();
    for (index, mapping) in trace.mappings.iter().enumerate() {
        mappings.entry(of(mapping.module, mapping.process)).or_default().push((index, mapping));
    }
    let mut samples = FxHashMap::default();
    for sample in &profile.samples {
        let Some(module) = profile.stacks.leaf(sample.stack).and_then(|leaf| leaf.module) else { continue };
        let Some(mapped) = mappings.get(&of(module, profile.runner(sample).process)) else { continue };
        let there = mapped.iter().find(|(_, mapping)| mapping.covers(sample.time));
        if let Some((index, _)) = there.or(mapped.first()) {
            *samples.entry(*index).or_default() += sample.count();
        }
    }
    samples
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, info: &Info) -> io::Result<()> {
    json(out, info)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_that_nobody_records_at_are_none() {
        assert_eq!(utc(133_916_868_000_000_010).as_deref(), Some("2025-05-14T09:00:00.000001Z"));
        assert_eq!(utc(441_481_535_999_999_990).as_deref(), Some("2999-12-31T23:59:59.999999Z"));
        for filetime in [i64::MIN, 0, 116_444_735_999_999_999, 441_481_536_000_000_000, i64::MAX] {
            assert_eq!(utc(filetime), None);
        }
    }
}
