//! The same on a console.

use std::io::{self, Write};

use crate::clock::ClockKind;
use crate::events::clr::Sku;
use crate::profile::Unresolved;
use crate::report::account;
use crate::report::interrupts;
use crate::report::strip::blocks;
use crate::report::text::{counted, merged_samples};
use crate::report::{bytes, count, cut_stacks, duration, filtered_out, one_line};
use crate::winpath;

use super::{ClrInfo, FramesInfo, Info, ProcessInfo, RundownInfo, SamplesInfo};

/// Rows of processes and modules on a console; `--json` has them all.
const ROWS: usize = 15;

/// Writes it for people.
pub fn write(out: &mut impl Write, info: &Info) -> io::Result<()> {
    for file in &info.files {
        let (path, buffers) = (one_line(&file.path), counted(file.buffers as u64, "buffer", "buffers"));
        writeln!(out, "{path}  {}, {buffers}", bytes(file.bytes))?;
    }
    writeln!(out)?;
    let machine = &info.machine;
    let mut what = vec![format!("{} processors", machine.cpus)];
    what.extend(machine.architecture.map(str::to_owned));
    what.push(format!("build {}", machine.os_build));
    what.extend(machine.os_name.clone());
    row(out, "machine", &what.join(", "))?;
    let start = info.start_utc.as_deref().unwrap_or("an unknown time");
    let local = match info.utc_offset_minutes {
        Some(_) => format!(" ({}, {})", info.start_time_of_day, info.time_zone),
        None => String::new(),
    };
    row(out, "recorded", &format!("{start}{local}, {}", duration(info.duration_seconds)))?;
    if let Some(trimmed) = &info.trimmed {
        row(out, "trimmed", &trimmed.text())?;
    }
    row(out, "clock", &format!("{}, {} Hz", clock_name(info.clock.kind), count(info.clock.frequency)))?;
    row(out, "events", &count(info.events.total))?;
    samples(out, info)?;
    if let Some(disk) = &info.disk {
        row(out, "disk", &format!("{} (`etwprof disk` lists them)", disk.text()))?;
    }
    if !info.interrupts.is_empty() {
        row(out, "DPCs, ISRs", &interrupts::text_of(&info.interrupts))?;
    }
    if !info.counters.is_empty() {
        let text = format!("{} recorded (`etwprof counters` shows them)", count(info.counters.len() as u64));
        row(out, "counters", &text)?;
    }
    if info.context_switches > 0 {
        let switches = counted(info.context_switches, "context switch", "context switches");
        row(out, "switches", &format!("{switches} (`etwprof threads` and `waits` show who waited)"))?;
    }
    losses(out, info)?;
    row(out, "quality", &info.findings.quality_text())?;
    findings(out, info)?;
    process_table(out, info)?;
    runtime_table(out, info)?;
    module_table(out, info)
}

fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{name:<12}{}", one_line(value))
}

fn clock_name(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Qpc => "performance counter",
        ClockKind::SystemTime => "system time",
        ClockKind::CpuCycle => "CPU cycles (drifts between processors)",
    }
}

fn samples(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let SamplesInfo { balance: samples, categories, cut, named, merged } = &info.samples;
    if samples.total == 0 {
        return row(out, "samples", "none: this recording has no CPU samples");
    }
    let interval = match info.sampling_intervals.as_slice() {
        [one] => format!(" every {}", duration(one.interval as f64 / 1e7)),
        _ => String::new(),
    };
    let text = format!(
        "{}{interval} = {} kept + {} idle + {}",
        count(samples.total),
        count(samples.kept),
        count(samples.idle),
        filtered_out(samples)
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
    if stacks.broken + stacks.repaired > 0 {
        let text = format!("{} stacks, {} more repaired", count(stacks.broken), count(stacks.repaired));
        row(out, "broken", &text)?;
    }
    if let Some(merged) = merged {
        row(out, "merged", &merged_samples(merged))?;
    }
    if cut.samples > 0 {
        row(out, "cut", &cut_stacks(cut))?;
    }
    let text = format!("{} in DPCs, {} in ISRs", count(samples.dpc), count(samples.isr));
    row(out, "interrupts", &text)?;
    let mut leaves: Vec<_> = categories.iter().filter(|(_, samples)| **samples > 0).collect();
    leaves.sort_by_key(|(category, samples)| (std::cmp::Reverse(**samples), **category));
    let leaves = leaves.iter().map(|(category, samples)| format!("{} {}", count(**samples), category.text()));
    row(out, "leaves", &leaves.collect::<Vec<_>>().join(", "))?;
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let text = format!(
        "{:.1}% of samples by their leaf, {:.1}% of frames",
        percent(named.leaves, samples.kept),
        percent(named.frames, named.all_frames)
    );
    row(out, "named", &text)
}

fn losses(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let parts: Vec<String> = account::losses(&info.lost)
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

/// What stands out, without its evidence.
fn findings(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let findings = &info.findings.findings;
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{:>9}  finding (`etwprof findings` shows the evidence)", "share")?;
    for finding in findings {
        writeln!(out, "{:>8.1}%  {}", 100.0 * finding.share, finding.heading())?;
    }
    Ok(())
}

fn process_table(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let sampled: Vec<_> = info.processes.iter().filter(|process| process.samples > 0).collect();
    let rows = if sampled.is_empty() { info.processes.iter().collect() } else { sampled };
    writeln!(
        out,
        "\n{:>9}  {:>6}  {:>6}  {:<20}  {:<24}  command line",
        "samples", "share", "pid", "when", "process"
    )?;
    for process in rows.iter().take(ROWS) {
        let share = 100.0 * process.samples as f64 / info.samples.balance.kept.max(1) as f64;
        let (samples, pid) = (count(process.samples), process.pid);
        let name = one_line(&process.name).into_owned();
        let line = one_line(&process.command_line).into_owned();
        let when = blocks(&process.when, process.when.iter().copied().max().unwrap_or(0));
        writeln!(out, "{samples:>9}  {share:>5.1}%  {pid:>6}  {when:<20}  {name:<24}  {}", shortened(&line))?;
    }
    let total = info.processes.len();
    let shown = rows.len().min(ROWS);
    if total > shown {
        writeln!(out, "{:>9}  {} more", "…", count((total - shown) as u64))?;
    }
    Ok(())
}

/// The .NET processes: what is known of their code, and why it is no more.
fn runtime_table(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let managed = |process: &&ProcessInfo| {
        let not_asked = process.frames.unresolved.contains_key(&Unresolved::RuntimeNotAsked);
        process.rundown.is_some() || not_asked
    };
    let rows: Vec<&ProcessInfo> = info.processes.iter().filter(managed).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{:>9}  {:>7}  {:>6}  {:<9}  .NET", "methods", "named", "pid", "rundown")?;
    for process in rows.iter().take(ROWS) {
        let rundown = match process.rundown {
            None | Some(RundownInfo { begun: false, completed: false }) => "none",
            Some(RundownInfo { completed: true, .. }) => "complete",
            Some(_) => "cut short",
        };
        let FramesInfo { resolved, unresolved } = &process.frames;
        let all = resolved + unresolved.values().sum::<u64>();
        let code = unresolved.iter().filter(|(cause, _)| cause.is_of_runtime());
        let worst = code.max_by_key(|(_, frames)| **frames);
        let named = 100.0 * *resolved as f64 / all.max(1) as f64;
        let mut what: Vec<String> = process.clr.iter().map(|clr| clr.text()).collect();
        what.extend(worst.map(|(cause, _)| cause.text().to_owned()));
        what.extend(process.activity.text());
        let (methods, pid) = (count(process.methods as u64), process.pid);
        writeln!(
            out,
            "{methods:>9}  {named:>6.1}%  {pid:>6}  {rundown:<9}  {}",
            one_line(&[process.name.clone(), what.join("; ")].join(": "))
        )?;
    }
    if rows.len() > ROWS {
        writeln!(out, "{:>9}  {} more", "…", count((rows.len() - ROWS) as u64))?;
    }
    Ok(())
}

impl ClrInfo {
    fn text(&self) -> String {
        let line = match self.sku {
            Sku::Desktop => ".NET Framework",
            Sku::CoreClr => ".NET",
            Sku::Mono => "Mono",
            Sku::Unknown => "runtime",
        };
        format!("{line} {}", self.version)
    }
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
        let share = 100.0 * module.samples as f64 / info.samples.balance.kept.max(1) as f64;
        let (samples, pid) = (count(module.samples), module.pid);
        let pdb = module.pdb_name.as_deref().map_or("no PDB id", winpath::file_name);
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
