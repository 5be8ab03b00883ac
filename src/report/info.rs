//! What is in a recording: machine, times, processes, modules, samples, losses.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::etl::{ClockKind, Damage, Recording};
use crate::event::Ticks;
use crate::profile::{Balance, Profile};
use crate::symbols::resolver::{ModuleReport, Symbols};
use crate::trace::{Lost, Mapping, ModuleId, Process, Trace};

use super::text::{bytes, count, duration, one_line};

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
    /// Seconds from the first record to the last event or the closing of the log, whichever is later.
    pub duration_seconds: f64,
    /// All events.
    pub events: EventsInfo,
    /// The account of all samples.
    pub samples: Balance,
    /// The sampling intervals of the samples, in 100 ns, by how many samples ran at each.
    pub sampling_intervals: Vec<IntervalInfo>,
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
    /// `resolved`, `public`, `exports`, `no_names`, `no_id`, `not_found`, `mismatch`, `unreadable`, `skipped`.
    pub verdict: &'static str,
    /// The same in a sentence, for people.
    pub detail: String,
    /// Distinct addresses that samples hit.
    pub addresses: usize,
    /// Of these, how many have a name.
    pub named: usize,
}

impl Info {
    /// Gathers everything. `profile` says which samples count.
    pub fn new(
        recording: &Recording,
        trace: &Trace,
        profile: &Profile,
        symbols: &Symbols,
        damage: &[Damage],
    ) -> Info {
        let clock = trace.clock;
        let last = trace.span.map_or(clock.base, |(_, last)| last);
        let closed = (recording.header().end as f64 - clock.base_utc as f64) / 1e7;
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Info {
            files: recording
                .files()
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
                pointer_size: trace.pointer_bytes(),
                architecture: architecture(trace.machine.architecture),
                name: text(&trace.machine.name),
            },
            clock: ClockInfo { kind: clock.kind, frequency: clock.frequency },
            start_utc: utc(clock.base_utc),
            duration_seconds: clock.seconds(last).max(closed).max(0.0),
            events: EventsInfo { total: trace.events },
            samples: profile.balance,
            sampling_intervals: intervals(trace),
            lost: trace.lost.clone(),
            damaged: damage
                .iter()
                .map(|damage| DamageInfo {
                    file: damage.path.display().to_string(),
                    offset: damage.offset,
                    what: damage.kind.to_string(),
                })
                .collect(),
            processes: processes(trace, profile),
            modules: modules(trace, profile, symbols),
        }
    }
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
    const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
    const YEAR_3000: i64 = 441_481_536_000_000_000;
    if !(UNIX_EPOCH..YEAR_3000).contains(&filetime) {
        return None;
    }
    let since = u64::try_from(filetime - UNIX_EPOCH).ok()?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(since * 100);
    Some(humantime::format_rfc3339_micros(time).to_string())
}

fn intervals(trace: &Trace) -> Vec<IntervalInfo> {
    let mut samples: FxHashMap<u64, u64> = FxHashMap::default();
    for sample in &trace.samples {
        *samples.entry(sample.weight).or_default() += 1;
    }
    let mut rows: Vec<IntervalInfo> =
        samples.into_iter().map(|(interval, samples)| IntervalInfo { interval, samples }).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.interval));
    rows
}

fn processes(trace: &Trace, profile: &Profile) -> Vec<ProcessInfo> {
    let mut samples = vec![0; trace.processes.len()];
    for sample in &profile.samples {
        if let Some(count) = samples.get_mut(sample.process.0 as usize) {
            *count += 1;
        }
    }
    let seconds = |time: Ticks| trace.clock.seconds(time);
    let row = |(process, samples): (&Process, u64)| ProcessInfo {
        pid: process.pid,
        parent_pid: process.parent_pid,
        name: process.label().to_owned(),
        command_line: process.command_line.clone(),
        start_seconds: process.life.start.map(seconds),
        end_seconds: process.life.end.map(seconds),
        samples,
    };
    let mut rows: Vec<ProcessInfo> = trace.processes.iter().zip(samples).map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.pid));
    rows
}

fn modules(trace: &Trace, profile: &Profile, symbols: &Symbols) -> Vec<ModuleInfo> {
    let reports: FxHashMap<ModuleId, &ModuleReport> =
        symbols.modules.iter().map(|report| (report.module, report)).collect();
    let mut samples: FxHashMap<usize, u64> = FxHashMap::default();
    for sample in &profile.samples {
        let kernel = trace.is_kernel_address(sample.address);
        if let Some(mapping) = trace.mappings.at(sample.process, sample.address, kernel, sample.time).mapping
        {
            *samples.entry(mapping).or_default() += 1;
        }
    }
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
            pdb_guid: pdb.map(|pdb| pdb.guid.to_string()),
            pdb_age: pdb.map(|pdb| pdb.age),
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

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, info: &Info) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, info)?;
    writeln!(out)
}

/// Rows of processes and modules on a console; `--json` has them all.
const ROWS: usize = 15;

/// Writes it for people.
pub fn write(out: &mut impl Write, info: &Info) -> io::Result<()> {
    for file in &info.files {
        writeln!(out, "{}  {}, {} buffers", file.path, bytes(file.bytes), count(file.buffers as u64))?;
    }
    writeln!(out)?;
    let machine = &info.machine;
    let mut what = vec![format!("{} processors", machine.cpus)];
    what.extend(machine.architecture.map(str::to_owned));
    what.push(format!("build {}", machine.os_build));
    what.extend(machine.os_name.clone());
    row(out, "machine", &what.join(", "))?;
    let start = info.start_utc.as_deref().unwrap_or("an unknown time");
    row(out, "recorded", &format!("{start}, {}", duration(info.duration_seconds)))?;
    row(out, "clock", &format!("{}, {} Hz", clock_name(info.clock.kind), count(info.clock.frequency)))?;
    row(out, "events", &count(info.events.total))?;
    samples(out, info)?;
    losses(out, info)?;
    process_table(out, info)?;
    module_table(out, info)
}

fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{name:<10}{}", one_line(value))
}

fn clock_name(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Qpc => "performance counter",
        ClockKind::SystemTime => "system time",
        ClockKind::CpuCycle => "CPU cycles (drifts between processors)",
    }
}

fn samples(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let samples = &info.samples;
    if samples.total == 0 {
        return row(out, "samples", "none: this recording has no CPU samples");
    }
    let interval = match info.sampling_intervals.as_slice() {
        [one] => format!(" every {}", duration(one.interval as f64 / 1e7)),
        _ => String::new(),
    };
    let text = format!(
        "{}{interval} = {} kept + {} idle + {} filtered out",
        count(samples.total),
        count(samples.kept),
        count(samples.idle),
        count(samples.filtered)
    );
    row(out, "samples", &text)?;
    let stacks = &samples.stacks;
    let text = format!(
        "{} user only, {} kernel and user, {} kernel only, {} none",
        count(stacks.user_only),
        count(stacks.kernel_and_user),
        count(stacks.kernel_only),
        count(stacks.none)
    );
    row(out, "stacks", &text)?;
    let text = format!("{} in DPCs, {} in interrupts", count(samples.dpc), count(samples.isr));
    row(out, "bystander", &text)
}

fn losses(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let lost = &info.lost;
    let parts: Vec<String> = [
        (lost.events, "events"),
        (lost.buffers, "buffers"),
        (lost.sequence_gaps, "gaps in the buffer sequence"),
        (lost.orphan_stacks, "stacks without their event"),
        (lost.undefined_stack_keys, "stacks whose key was never told"),
        (lost.malformed_events, "malformed events"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect();
    row(out, "lost", &if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") })?;
    for damage in &info.damaged {
        row(out, "damaged", &format!("{} at byte {}: {}", damage.file, damage.offset, damage.what))?;
    }
    Ok(())
}

fn process_table(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let sampled: Vec<_> = info.processes.iter().filter(|process| process.samples > 0).collect();
    let rows = if sampled.is_empty() { info.processes.iter().collect() } else { sampled };
    writeln!(out, "\n{:>9}  {:>6}  {:>6}  {:<24}  command line", "samples", "share", "pid", "process")?;
    for process in rows.iter().take(ROWS) {
        let share = 100.0 * process.samples as f64 / info.samples.kept.max(1) as f64;
        let (samples, pid) = (count(process.samples), process.pid);
        let name = one_line(&process.name).into_owned();
        let line = one_line(&process.command_line).into_owned();
        writeln!(out, "{samples:>9}  {share:>5.1}%  {pid:>6}  {name:<24}  {}", shortened(&line))?;
    }
    let total = info.processes.len();
    let shown = rows.len().min(ROWS);
    if total > shown {
        writeln!(out, "{:>9}  {} more", "…", count((total - shown) as u64))?;
    }
    Ok(())
}

fn module_table(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let rows: Vec<_> = info.modules.iter().filter(|module| module.samples > 0).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>9}  {:>6}  {:>6}  {:<10}  {:<34}  module",
        "samples", "share", "pid", "symbols", "PDB"
    )?;
    for module in rows.iter().take(ROWS) {
        let share = 100.0 * module.samples as f64 / info.samples.kept.max(1) as f64;
        let (samples, pid) = (count(module.samples), module.pid);
        let pdb = module.pdb_name.as_deref().map_or("no PDB id", crate::trace::file_name);
        let verdict = module.symbols.as_ref().map_or("", |symbols| symbols.verdict).replace('_', " ");
        let (pdb, path) = (one_line(pdb), one_line(&module.path));
        writeln!(out, "{samples:>9}  {share:>5.1}%  {pid:>6}  {verdict:<10}  {pdb:<34}  {path}")?;
    }
    if rows.len() > ROWS {
        writeln!(out, "{:>9}  {} more", "…", count((rows.len() - ROWS) as u64))?;
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}
