//! A live recording as plain text, for whoever looks for a fault in it: first what was done, then what came of it.
//!
//! Times are seconds since the start of the journal, by this process's clock or, for records, by the time in their
//! headers. A value that makes no sense is shown as it is: that is what the report is for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::event::{Kind, NO_ID, Ticks};
use crate::events::names;
use crate::guids::provider_name;
use crate::prefix_tree::NodeId;
use crate::profile::Profile;
use crate::session::diagnosis::{Call, Diagnosis, Few, Observed, OfProcessor, Phase, Seen, What};
use crate::symbols::local_images::Identified;
use crate::trace::{Before, Context, ModuleId, Parts, Trace};

use super::text::{bytes, count, one_line};

/// Writes what was done: `arguments` are those of the program, `result` how it ended.
pub fn write(
    out: &mut impl Write,
    diagnosis: &Diagnosis,
    arguments: &[String],
    result: &str,
) -> io::Result<()> {
    writeln!(out, "etwprof {} diagnosis", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "arguments: {}", one_line(&arguments.join(" ")))?;
    writeln!(out, "result: {}", one_line(result))?;
    writeln!(
        out,
        "performance counter: {} a second, {} at the start",
        diagnosis.frequency, diagnosis.start.0
    )?;
    facts(out, diagnosis)?;
    calls(out, diagnosis)?;
    health(out, diagnosis)?;
    for session in &diagnosis.sessions {
        Session { session, diagnosis }.write(out)?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "\n== {text}")
}

fn seconds(time: Duration) -> String {
    format!("{:10.4}", time.as_secs_f64())
}

fn facts(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "facts: when, what")?;
    for fact in &diagnosis.facts {
        writeln!(out, "{}  {}: {}", seconds(fact.at), one_line(&fact.name), one_line(&fact.value))?;
    }
    Ok(())
}

fn calls(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "calls: when, milliseconds, code (0 is success), function, arguments")?;
    let mut phases = diagnosis.phases.iter().peekable();
    for call in &diagnosis.calls {
        while let Some((at, phase)) = phases.next_if(|(at, _)| *at <= call.at) {
            writeln!(out, "{}  -- {}", seconds(*at), phase_name(*phase))?;
        }
        let (took, code) = match call.end {
            Some((took, code)) => (format!("{:.3}", took.as_secs_f64() * 1e3), code.to_string()),
            None => ("...".to_owned(), "goes on".to_owned()),
        };
        let Call { at, name, arguments, repeats, longest, .. } = call;
        write!(out, "{}  {took:>10}  {code:>7}  {name}  {}", seconds(*at), one_line(arguments))?;
        match repeats {
            0 => writeln!(out)?,
            more => writeln!(out, "  (and {more} more, up to {:.3} ms)", longest.as_secs_f64() * 1e3)?,
        }
    }
    for (at, phase) in phases {
        writeln!(out, "{}  -- {}", seconds(*at), phase_name(*phase))?;
    }
    Ok(())
}

fn health(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(
        out,
        "how it went: when, events, samples, idle, buffers, used, lost events, lost buffers, dropped, batches waiting, memory",
    )?;
    for (at, status) in &diagnosis.health {
        let (samples, losses) = (&status.samples, &status.losses);
        writeln!(
            out,
            "{}  {:>10} {:>9} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>4}/{} {:>10}",
            seconds(*at),
            status.events,
            samples.all,
            samples.idle,
            status.buffers,
            status.buffers_used,
            losses.events,
            losses.buffers,
            losses.dropped,
            status.waiting.0,
            status.waiting.1,
            bytes(status.memory),
        )?;
    }
    Ok(())
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "before the kernel's events are on",
        Phase::FirstSecond => "first second of the kernel's events",
        Phase::Sampling => "after the first second",
        Phase::Off => "kernel's events off",
        Phase::Stopped => "kernel session stopped",
    }
}

/// What came of one session, and the clock that its times are of.
struct Session<'a> {
    session: &'a Observed,
    diagnosis: &'a Diagnosis,
}

impl Session<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Observed { session, first, counts, off_clock, lost, processors, clr } = self.session;
        heading(out, &format!("{session} session: records by phase; first and last time, records, what"))?;
        for ((phase, what), count) in counts {
            let (first, last) = (self.at(count.first), self.at(count.last));
            writeln!(out, "{first} {last}  {:>9}  {:<35} {}", count.events, phase_name(*phase), name(what))?;
        }
        heading(
            out,
            &format!(
                "{session} session: by processor; records, samples, mean and longest milliseconds until they came"
            ),
        )?;
        for (processor, of) in processors {
            let OfProcessor { events, samples, on_clock, latest, late } = of;
            let mean = self.milliseconds(late / i64::try_from(*on_clock).unwrap_or(i64::MAX).max(1));
            let longest = self.milliseconds(*latest);
            writeln!(out, "{processor:>5}  {events:>10}  {samples:>10}  {mean:>12.3}  {longest:>12.3}")?;
        }
        self.few(out, "first records", first)?;
        self.few(out, "records more than 5 s off the clock", off_clock)?;
        self.few(out, "records of losses", lost)?;
        if clr.is_empty() {
            return Ok(());
        }
        heading(
            out,
            &format!("{session} session: .NET events by process; process, id, records, first and last time"),
        )?;
        // The runtime says that it is there; its lists begin and end; then all others together.
        const TELLING: [u16; 5] = [187, 147, 145, 148, 146];
        let processes: BTreeSet<u32> = clr.keys().map(|(pid, _)| *pid).collect();
        for pid in processes {
            for id in TELLING {
                match clr.get(&(pid, id)) {
                    Some(count) => writeln!(
                        out,
                        "{pid:>8}  {id:>5}  {:>9}  {} {}",
                        count.events,
                        self.at(count.first),
                        self.at(count.last)
                    )?,
                    None => writeln!(out, "{pid:>8}  {id:>5}  none",)?,
                }
            }
            let others = clr.range((pid, 0)..=(pid, u16::MAX)).filter(|((_, id), _)| !TELLING.contains(id));
            let others: u64 = others.map(|(_, count)| count.events).sum();
            writeln!(out, "{pid:>8}  others  {others:>8}")?;
        }
        Ok(())
    }

    fn few(&self, out: &mut impl Write, what: &str, few: &Few) -> io::Result<()> {
        let session = self.session.session;
        let all = count(few.all);
        heading(
            out,
            &format!(
                "{session} session: {what}, {} of {all}; written, came, raw time, processor, process, thread, bytes, what",
                few.first.len()
            ),
        )?;
        for seen in &few.first {
            let Seen { time, came, phase, what, processor, pid, tid, size } = seen;
            writeln!(
                out,
                "{} {}  {:>20}  {processor:>4} {:>6} {:>6} {size:>6}  {}  {}",
                self.at(*time),
                self.at(*came),
                time.0,
                id(*pid),
                id(*tid),
                name(what),
                phase_name(*phase),
            )?;
        }
        Ok(())
    }

    fn at(&self, time: Ticks) -> String {
        format!("{:10.4}", self.seconds(i128::from(time.0) - i128::from(self.diagnosis.start.0)))
    }

    fn milliseconds(&self, ticks: i64) -> f64 {
        self.seconds(i128::from(ticks)) * 1e3
    }

    fn seconds(&self, ticks: i128) -> f64 {
        ticks as f64 / self.diagnosis.frequency.max(1) as f64
    }
}

fn id(id: u32) -> String {
    if id == NO_ID { "-".to_owned() } else { id.to_string() }
}

/// A kind of event in words, as far as it has them, with the numbers that are beyond doubt.
fn name(what: &What) -> String {
    let provider = provider_name(what.provider).map_or_else(|| what.provider.to_string(), str::to_owned);
    let name = names::known_name(what.provider, what.kind, what.opcode)
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let number = match what.kind {
        Kind::Classic => format!("opcode {}", what.opcode),
        Kind::Manifest(id) => format!("id {id}"),
        Kind::Message(number) => format!("message {number}"),
        Kind::Unknown(header) => format!("header {header}"),
    };
    format!("{provider}{name} ({number}, version {})", what.version)
}

/// Writes what became of the events: samples with their stacks, .NET processes, images, kernel modules. `opened` are
/// image files, each with what came of opening it.
pub fn write_trace(
    out: &mut impl Write,
    profile: &Profile,
    opened: &[(ModuleId, Identified)],
) -> io::Result<()> {
    let trace = &*profile.trace;
    let balance = &profile.balance;
    heading(out, "samples")?;
    writeln!(
        out,
        "total {} = kept {} + idle {} + filtered {}; events {}; {:?}",
        balance.total, balance.kept, balance.idle, balance.filtered, trace.events, trace.lost
    )?;
    before(out, trace)?;
    stacks(out, trace)?;
    frames(out, trace, profile)?;
    heading(out, "image files: path, what came of opening it")?;
    for (module, identified) in opened {
        let path = trace.module(*module).map_or("", |module| &module.path);
        let result = match identified {
            Identified::Same => "opened, and it is the one".to_owned(),
            Identified::Another(what) => format!("another build: {what}"),
            Identified::Unreadable(error) => format!("cannot be read: {error}"),
        };
        writeln!(out, "{}: {}", one_line(path), one_line(&result))?;
    }
    heading(out, "kernel modules: base, bytes, path")?;
    for mapping in trace.mappings.iter() {
        if let Some(module) = trace.module(mapping.module).filter(|module| module.kernel) {
            writeln!(out, "{:#018x}  {:>9}  {}", mapping.base, mapping.size, one_line(&module.path))?;
        }
    }
    Ok(())
}

/// From where it is known what ran before the recording.
fn before(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let Before { listed_at_start, listed_at_end, only_in_inventory, closed, kernel_is_hidden } = trace.before;
    heading(out, "what ran before: from where it is known")?;
    writeln!(out, "{listed_at_start:>9}  records in the kernel's list at the start (DCStart)")?;
    writeln!(out, "{listed_at_end:>9}  records in its list at the end (DCEnd)")?;
    writeln!(out, "{only_in_inventory:>9}  images that only the system's own list has")?;
    writeln!(out, "{closed:>9}  processes that could not be looked into")?;
    let hidden = if kernel_is_hidden { "does not say" } else { "says" };
    writeln!(out, "the system {hidden} where kernel modules are")
}

/// Samples by what was going on and the parts of their stacks, with the depths of these.
fn stacks(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    heading(out, "samples by stack: samples, mean and largest depth, what the processor did, parts")?;
    let mut depths: FxHashMap<NodeId, u64> = FxHashMap::default();
    let mut depth = |part: Option<NodeId>| {
        part.map_or(0, |part| {
            *depths.entry(part).or_insert_with(|| trace.addresses.path(part).count() as u64)
        })
    };
    let mut kinds: BTreeMap<(&str, &str), (u64, u64, u64)> = BTreeMap::new();
    for sample in &trace.samples {
        let stack = trace.stack(sample.stack);
        let deep = depth(stack.kernel) + depth(stack.user);
        let (samples, sum, most) = kinds.entry((context(sample.context), parts(stack.parts()))).or_default();
        (*samples, *sum, *most) =
            (*samples + sample.count(), *sum + deep * sample.count(), (*most).max(deep));
    }
    for ((context, parts), (samples, sum, most)) in kinds {
        let mean = sum as f64 / samples.max(1) as f64;
        writeln!(out, "{samples:>9}  {mean:>7.1}  {most:>5}  {context:<9} {parts}")?;
    }
    for (samples, what) in [(trace.idle.samples, "idle"), (trace.unwanted, "of other processes")] {
        if samples > 0 {
            writeln!(out, "{samples:>9}  {:>7}  {:>5}  {what}, not kept", "", "")?;
        }
    }
    Ok(())
}

fn context(context: Context) -> &'static str {
    match context {
        Context::Thread => "thread",
        Context::Dpc => "DPC",
        Context::Isr => "ISR",
    }
}

fn parts(parts: Parts) -> &'static str {
    match parts {
        Parts::None => "no stack",
        Parts::User => "user only",
        Parts::Kernel => "kernel only",
        Parts::KernelAndUser => "kernel and user",
    }
}

fn frames(out: &mut impl Write, trace: &Trace, profile: &Profile) -> io::Result<()> {
    heading(
        out,
        "frames of kept samples by process: all, .NET methods, outside images, causes of these, process",
    )?;
    let mut processes: Vec<_> = profile.resolution().into_iter().collect();
    processes.sort_by_key(|(process, _)| process.0);
    for (process, resolution) in processes {
        let causes: Vec<String> = resolution
            .causes()
            .iter()
            .map(|cause| format!("{} {}", cause.frames, cause.cause.text()))
            .collect();
        let process = trace.process(process);
        writeln!(
            out,
            "{:>9}  {:>9}  {:>9}  {} ({})  [{}]",
            resolution.total(),
            resolution.managed,
            resolution.outside_images(),
            process.map_or("unknown process".into(), |process| one_line(process.label())),
            process.map_or(0, |process| process.pid),
            causes.join(", "),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Pointer};
    use crate::guids::{CLR_RUNDOWN, PERF_INFO};
    use crate::session::diagnosis::Fact;
    use crate::session::{Losses, SampleCounts, Status};

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn call(at: Duration, name: &'static str, end: Option<(Duration, u32)>) -> Call {
        Call { at, name, arguments: "session 0x64".to_owned(), end, repeats: 0, longest: Duration::ZERO }
    }

    fn event(time: i64, provider: crate::guid::Guid, kind: Kind, opcode: u8) -> Event<'static> {
        Event {
            time: Ticks(time),
            provider,
            kind,
            opcode,
            version: 2,
            pointer: Pointer::Bits64,
            processor: 1,
            pid: 4210,
            tid: NO_ID,
            items: &[],
            payload: &[0; 16],
        }
    }

    fn text(diagnosis: &Diagnosis) -> String {
        let mut text = Vec::new();
        write(&mut text, diagnosis, &["etwprof".to_owned(), "--all".to_owned()], "it ended\nwell").unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn calls_and_phases_stand_in_their_order_and_one_that_hangs_is_seen() {
        let mut again = call(at(30), "ControlTraceW", Some((at(2), 0)));
        (again.repeats, again.longest) = (7, at(9));
        let diagnosis = Diagnosis {
            frequency: 10_000_000,
            facts: vec![Fact { at: at(1), name: "Windows".to_owned(), value: "11\u{1b}[2J".to_owned() }],
            calls: vec![
                call(at(10), "StartTraceW", Some((at(5), 1450))),
                again,
                call(at(50), "TraceSetInformation", None),
            ],
            phases: vec![(at(20), Phase::FirstSecond), (at(60), Phase::Stopped)],
            ..Diagnosis::default()
        };
        let text = text(&diagnosis);
        let calls: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("== calls")).skip(1).take(5).collect();
        assert_eq!(
            calls,
            [
                "    0.0100       5.000     1450  StartTraceW  session 0x64",
                "    0.0200  -- first second of the kernel's events",
                "    0.0300       2.000        0  ControlTraceW  session 0x64  (and 7 more, up to 9.000 ms)",
                "    0.0500         ...  goes on  TraceSetInformation  session 0x64",
                "    0.0600  -- kernel session stopped",
            ]
        );
        assert!(text.contains("    0.0010  Windows: 11?[2J\n"), "{text}");
        assert!(text.contains("result: it ended?well\n"), "{text}");
    }

    #[test]
    fn a_session_shows_its_records_by_phase_processor_and_runtime() {
        let mut seen = Observed { session: "kernel", ..Observed::default() };
        let sample = event(1_500, PERF_INFO, Kind::Classic, 46);
        seen.event(&sample, Ticks(2_000), Phase::FirstSecond, 1000);
        seen.event(&event(9_000_000, PERF_INFO, Kind::Classic, 46), Ticks(2_500), Phase::Sampling, 1000);
        for id in [147, 145, 144] {
            seen.event(
                &event(1_600, CLR_RUNDOWN, Kind::Manifest(id), 0),
                Ticks(2_600),
                Phase::Sampling,
                1000,
            );
        }
        let diagnosis =
            Diagnosis { start: Ticks(1_000), frequency: 1000, sessions: vec![seen], ..Diagnosis::default() };
        let text = text(&diagnosis);
        let line = |wanted: &str| {
            text.lines().find(|line| line.contains(wanted)).unwrap_or_else(|| panic!("no {wanted} in {text}"))
        };
        let counted = line("first second of the kernel's events");
        assert!(counted.starts_with("    0.5000     0.5000          1  "), "{counted}");
        assert!(counted.ends_with("(opcode 46, version 2)") && counted.contains("PerfInfo"), "{counted}");
        assert!(
            text.contains("\n    1           5           2  "),
            "5 records, 2 samples of processor 1: {text}"
        );
        assert!(
            text.contains("more than 5 s off the clock, 1 of 1;") && text.contains(" 9000000 "),
            "{text}"
        );
        assert!(text.contains("\n    4210    147          1      0.6000     0.6000\n"), "{text}");
        assert!(
            text.contains("\n    4210    148  none\n    4210    146  none\n    4210  others         1\n"),
            "{text}"
        );
    }

    #[test]
    fn how_it_went_is_a_row_for_each_look() {
        let status = Status {
            events: 1000,
            samples: SampleCounts { all: 900, idle: 800, ..SampleCounts::default() },
            losses: Losses { events: 3, buffers: 2, dropped: 1, late: 0 },
            buffers: 64,
            buffers_used: 5,
            waiting: (7, 512),
            memory: 3 << 20,
            memory_left: 0,
        };
        let text = text(&Diagnosis { health: vec![(at(500), status)], ..Diagnosis::default() });
        let row = text.lines().find(|line| line.starts_with("    0.5000")).unwrap();
        let fields: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(fields, ["0.5000", "1000", "900", "800", "64", "5", "3", "2", "1", "7/512", "3.0", "MiB"]);
    }
}
