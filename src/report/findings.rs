//! Findings, as text and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::findings::{self, Doubt, Evidence, Part, Quality, Reason, Sort, Waited};
use crate::profile::{Detail, Entry, Profile};
use crate::symbols::resolver::Symbols;

use super::console::{DIM, HEAD};
use super::spelling::Spelling;
use super::text::{count, counted, duration, json, milliseconds, nanoseconds, one_line};

/// Findings with all their texts.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// How far the recording can be trusted: `good`, `usable` or `poor`.
    pub quality: Quality,
    /// Why it cannot be trusted more, the gravest first.
    pub reasons: Vec<String>,
    /// The findings, those of the largest share first.
    pub findings: Vec<Finding>,
}

/// Something worth knowing.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is called in all versions.
    pub id: &'static str,
    /// What was found.
    pub title: &'static str,
    /// The program that it is about; `null` for the machine or the recording. It may come from a file, and hold anything.
    pub program: Option<String>,
    /// How much of all CPU time it is about, from 0 to 1; of time or of events where the evidence says so.
    pub share: f64,
    /// What shows it.
    pub evidence: Vec<Fact>,
    /// What to do.
    pub advice: &'static str,
}

/// A fact that shows a finding.
#[derive(Clone, Debug, Serialize)]
pub struct Fact {
    /// What it is about, in one word.
    pub about: &'static str,
    /// The fact in words. It may hold names from a file, and with them anything.
    pub text: String,
    /// Its numbers: times in ns, shares from 0 to 1, all else counts.
    #[serde(serialize_with = "whole_numbers")]
    pub numbers: BTreeMap<&'static str, f64>,
    /// What it consists of, the largest first; may be empty.
    pub rows: Vec<Row>,
}

/// A part of something.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// A function, module or program. It may come from a file, and hold anything.
    pub name: String,
    /// Its samples.
    pub samples: u64,
    /// Their time in ns.
    pub ns: i64,
    /// Of a module without names, why it has none, in one word.
    pub symbols: Option<&'static str>,
}

impl Quality {
    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            Quality::Good => "good",
            Quality::Usable => "usable",
            Quality::Poor => "poor",
        }
    }
}

/// Ids and counts without a point.
fn whole_numbers<S: Serializer>(numbers: &BTreeMap<&'static str, f64>, to: S) -> Result<S::Ok, S::Error> {
    // What a f64 has exactly.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let number = |value: f64| match value.fract() == 0.0 && value.abs() <= MOST {
        true => Number::from(value as i64),
        false => Number::from_f64(value).unwrap_or_else(|| Number::from(0)),
    };
    to.collect_map(numbers.iter().map(|(name, value)| (name, number(*value))))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// `1,234.0 ms`, of 100 ns.
fn ms(value: i64) -> String {
    format!("{} ms", milliseconds(value))
}

fn of(part: i64, whole: i64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn reason(doubt: &Doubt) -> String {
    match doubt.reason {
        Reason::FewSamples(0) => "no sample was kept".to_owned(),
        Reason::FewSamples(kept) => format!("only {}", counted(kept, "sample", "samples")),
        Reason::Lost { events, buffers } => match (events, buffers) {
            (events, 0) => format!("{} lost", counted(events, "event was", "events were")),
            (0, buffers) => format!("{} lost", counted(buffers, "buffer was", "buffers were")),
            (events, buffers) => {
                format!(
                    "{} and {} were lost",
                    counted(events, "event", "events"),
                    counted(buffers, "buffer", "buffers")
                )
            }
        },
        Reason::Starved(there) => format!("a processor has only {} of its samples", percent(there)),
        Reason::Unnamed(share) => format!("{} of the samples end in code without a name", percent(share)),
        Reason::NoStack(share) => format!("{} of the samples have no stack", percent(share)),
        Reason::Broken(share) => format!("{} of the stacks are broken", percent(share)),
    }
}

/// Makes texts of facts.
struct Words<'a> {
    profile: &'a Profile,
    spelling: &'a Spelling<'a>,
}

impl Findings {
    /// What stands out in `profile`, with the usual names.
    pub fn of(profile: &Profile, symbols: &Symbols) -> Findings {
        let spelling = Spelling::new(profile, Detail::default());
        Findings::new(&findings::Findings::new(profile, symbols), profile, &spelling)
    }

    /// The quality and its reasons: `usable: 12.0% of the stacks are broken`.
    pub fn quality_text(&self) -> String {
        let word = self.quality.text();
        if self.reasons.is_empty() { word.to_owned() } else { format!("{word}: {}", self.reasons.join("; ")) }
    }

    /// The texts of findings in `profile`.
    pub fn new(found: &findings::Findings, profile: &Profile, spelling: &Spelling<'_>) -> Findings {
        let words = Words { profile, spelling };
        let finding = |finding: &findings::Finding| Finding {
            id: finding.kind.id,
            title: finding.kind.title,
            program: finding.program.as_ref().map(program),
            share: finding.share,
            evidence: finding.evidence.iter().map(|evidence| words.fact(evidence)).collect(),
            advice: finding.kind.advice,
        };
        Findings {
            quality: found.quality,
            reasons: found.doubts.iter().map(reason).collect(),
            findings: found.findings.iter().map(finding).collect(),
        }
    }
}

/// `cl.exe`, `cl.exe (12 processes)`.
fn program(program: &findings::Program) -> String {
    match program.processes.len() {
        1 => program.name.clone(),
        processes => format!("{} ({processes} processes)", program.name),
    }
}

impl Words<'_> {
    fn fact(&self, evidence: &Evidence) -> Fact {
        let fact = |about, text, numbers: &[(&'static str, f64)]| Fact {
            about,
            text,
            numbers: numbers.iter().copied().collect(),
            rows: Vec::new(),
        };
        let ns = |value: i64| nanoseconds(value) as f64;
        match evidence {
            Evidence::Cpu { samples, value, of: whole } => fact(
                "CPU",
                format!(
                    "{} of {} CPU time ({}), {}",
                    ms(*value),
                    ms(*whole),
                    percent(of(*value, *whole)),
                    counted(*samples, "sample", "samples")
                ),
                &[("samples", *samples as f64), ("ns", ns(*value)), ("of_ns", ns(*whole))],
            ),
            Evidence::Parts(parts) => self.parts(parts),
            Evidence::Pauses { count: pauses, total, longest, of: whole } => fact(
                "pauses",
                format!(
                    "{} of {} in {} ({}), the longest {}",
                    ms(*total),
                    ms(*whole),
                    counted(*pauses, "pause", "pauses"),
                    percent(of(*total, *whole)),
                    ms(*longest)
                ),
                &[
                    ("pauses", *pauses as f64),
                    ("ns", ns(*total)),
                    ("longest_ns", ns(*longest)),
                    ("of_ns", ns(*whole)),
                ],
            ),
            Evidence::Collections { count: collections, generations, reasons } => {
                let by_generation = generations
                    .iter()
                    .map(|(generation, number)| format!("{} of generation {generation}", count(*number)));
                let by_reason = reasons
                    .iter()
                    .map(|(reason, number)| format!("{} for {}", count(*number), reason.text()));
                let list: Vec<String> = by_generation.chain(by_reason).collect();
                fact(
                    "collections",
                    format!("{}: {}", counted(*collections, "collection", "collections"), list.join(", ")),
                    &[("collections", *collections as f64)],
                )
            }
            Evidence::Exceptions { count: exceptions, per_second, types } => {
                let types: Vec<String> =
                    types.iter().map(|(name, number)| format!("{name} {}", count(*number))).collect();
                fact(
                    "exceptions",
                    format!(
                        "{}, {per_second:.0} a second: {}",
                        counted(*exceptions, "exception", "exceptions"),
                        types.join(", ")
                    ),
                    &[("exceptions", *exceptions as f64), ("per_second", *per_second)],
                )
            }
            Evidence::Waits { what, count: waits, threads, total, longest, of: whole } => fact(
                match what {
                    Waited::Lock => "locks",
                    Waited::Disk => "disks",
                    Waited::Processor => "processor",
                },
                format!(
                    "{} of {} took {} in {}, the longest {}",
                    counted(*waits, "wait", "waits"),
                    counted(*threads, "thread", "threads"),
                    ms(*total),
                    ms(*whole),
                    ms(*longest)
                ),
                &[
                    ("waits", *waits as f64),
                    ("threads", *threads as f64),
                    ("total_ns", ns(*total)),
                    ("longest_ns", ns(*longest)),
                    ("of_ns", ns(*whole)),
                ],
            ),
            Evidence::Starved { count: times, most, span } => fact(
                "thread pool",
                format!(
                    "{} because work waited, up to {} in {}",
                    counted(*times, "thread was added", "threads were added"),
                    count((*most).into()),
                    ms(*span)
                ),
                &[("added", *times as f64), ("threads", f64::from(*most)), ("span_ns", ns(*span))],
            ),
            Evidence::Compiled { methods } => fact(
                "methods",
                format!("{} compiled while the program was sampled", counted(*methods, "method", "methods")),
                &[("methods", *methods as f64)],
            ),
            Evidence::Thread { pid, tid, name, of_process, busy, span } => {
                let (from, to) = span;
                let at = |time| self.profile.trace.clock.seconds(time);
                let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
                fact(
                    "thread",
                    format!(
                        "thread {tid}{name} of process {pid} has {} of its CPU time, and ran {} of the time from {:.3} s to \
                         {:.3} s",
                        percent(*of_process),
                        percent(*busy),
                        at(*from),
                        at(*to)
                    ),
                    &[
                        ("pid", f64::from(*pid)),
                        ("tid", f64::from(*tid)),
                        ("of_process", *of_process),
                        ("busy", *busy),
                        ("from_ns", 1e9 * at(*from)),
                        ("to_ns", 1e9 * at(*to)),
                    ],
                )
            }
            Evidence::Sampled { processors, interval } => {
                let list =
                    processors.iter().map(|(processor, there)| format!("{processor}: {}", percent(*there)));
                let worst = processors.iter().map(|(_, there)| *there).fold(1.0, f64::min);
                fact(
                    "processors",
                    format!(
                        "of one sample every {}, processors have {}",
                        duration(*interval as f64 / 1e7),
                        list.collect::<Vec<_>>().join(", ")
                    ),
                    &[("processors", processors.len() as f64), ("worst", worst)],
                )
            }
            Evidence::Interrupts { dpc, isr, busiest } => {
                let busiest = busiest.map(|(processor, share)| {
                    format!("; on processor {processor} {} of its time", percent(share))
                });
                fact(
                    "interrupts",
                    format!(
                        "{} in DPCs, {} in ISRs{}",
                        counted(*dpc, "sample", "samples"),
                        counted(*isr, "sample", "samples"),
                        busiest.unwrap_or_default()
                    ),
                    &[("dpc", *dpc as f64), ("isr", *isr as f64)],
                )
            }
            Evidence::Lost { lost, events } => {
                let losses = super::account::losses(lost).into_iter().filter(|(number, _)| *number > 0);
                let list: Vec<String> =
                    losses.map(|(number, what)| format!("{} {what}", count(number))).collect();
                fact(
                    "losses",
                    format!("{}; {} are there", list.join(", "), counted(*events, "event", "events")),
                    &[
                        ("lost_events", lost.events as f64),
                        ("lost_buffers", lost.buffers as f64),
                        ("events", *events as f64),
                    ],
                )
            }
            Evidence::Breaks(breaks) => {
                let mut list: Vec<_> = breaks.iter().collect();
                list.sort_by_key(|(cause, samples)| (std::cmp::Reverse(**samples), **cause));
                let broken = breaks.values().sum::<u64>();
                let list: Vec<String> = list
                    .into_iter()
                    .map(|(cause, samples)| format!("{}: {}", count(*samples), cause.text()))
                    .collect();
                fact("stacks", list.join("; "), &[("broken", broken as f64)])
            }
            Evidence::Stackless { none, without_user, of: kept } => fact(
                "stacks",
                format!(
                    "of {}, {} have no stack, and {} lack the part in user mode",
                    counted(*kept, "sample", "samples"),
                    count(*none),
                    count(*without_user)
                ),
                &[("none", *none as f64), ("without_user", *without_user as f64), ("samples", *kept as f64)],
            ),
        }
    }

    fn parts(&self, parts: &findings::Parts) -> Fact {
        let row = |(part, samples, value): &(Part, u64, i64)| {
            let (name, symbols) = self.name(part);
            Row { name, samples: *samples, ns: nanoseconds(*value), symbols }
        };
        let rows: Vec<Row> = parts.rows.iter().map(row).collect();
        let shown = parts.rows.iter().zip(&rows).map(|((_, _, value), row)| {
            let symbols =
                row.symbols.map(|word| format!(" ({})", word.replace('_', " "))).unwrap_or_default();
            format!("{}{symbols} {}", row.name, ms(*value))
        });
        let mut list: Vec<String> = shown.collect();
        if parts.left_out > 0 {
            list.push(format!("{} more", count(parts.left_out as u64)));
        }
        let about = match parts.sort {
            Sort::Functions => "functions",
            Sort::Callers => "callers",
            Sort::Modules => "modules",
            Sort::Programs => "programs",
        };
        Fact { about, text: list.join(", "), numbers: BTreeMap::new(), rows }
    }

    fn name(&self, part: &Part) -> (String, Option<&'static str>) {
        match part {
            Part::Frame(id) => {
                let frame = self.profile.stacks.frame(*id);
                let is_unnamed =
                    frame.is_some_and(|frame| frame.function.is_none() && frame.module.is_some());
                let entry = if is_unnamed { Entry::Unnamed(*id) } else { Entry::Frame(*id) };
                (self.spelling.text(entry), None)
            }
            Part::Module(id, symbols) => {
                let module = self.profile.trace.module(*id);
                (module.map(|module| module.name().to_owned()).unwrap_or_default(), *symbols)
            }
            Part::Program(name) => (name.clone(), None),
        }
    }
}

impl Finding {
    /// What was found, and where: `Exceptions are thrown often in orders.exe`.
    pub fn heading(&self) -> String {
        let program = self.program.as_ref().map(|program| format!(" in {}", one_line(program)));
        format!("{}{}", self.title, program.unwrap_or_default())
    }
}

/// Writes it for people. With the `width` of a terminal the lines end there.
pub fn write(out: &mut impl Write, findings: &Findings, width: Option<usize>) -> io::Result<()> {
    writeln!(out, "{HEAD}data quality:{HEAD:#} {}", findings.quality_text())?;
    if findings.findings.is_empty() {
        return writeln!(out, "\nnothing that stands out");
    }
    let width = width.unwrap_or(usize::MAX);
    for finding in &findings.findings {
        let (share, head) = (percent(finding.share), finding.heading());
        writeln!(out, "\n{share:>6}  {HEAD}{head}{HEAD:#}  {DIM}{}{DIM:#}", finding.id)?;
        for fact in &finding.evidence {
            let text = format!("{:<12}{}", fact.about, one_line(&fact.text));
            write_wrapped(out, &text, 8, 12, width)?;
        }
        write_wrapped(out, &format!("{:<12}{}", "advice", finding.advice), 8, 12, width)?;
    }
    Ok(())
}

/// Writes a text in lines of at most `width` columns, `indent` columns in, the later ones `more` columns further.
fn write_wrapped(
    out: &mut impl Write,
    text: &str,
    indent: usize,
    more: usize,
    width: usize,
) -> io::Result<()> {
    let room = width.saturating_sub(indent + more).max(20);
    let (head, rest) = text.split_at_checked(more).unwrap_or((text, ""));
    let mut lines: Vec<String> = vec![String::new()];
    for word in rest.split(' ') {
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty()
            && console::measure_text_width(line) + 1 + console::measure_text_width(word) > room
        {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    for (number, line) in lines.iter().enumerate() {
        let head = if number == 0 { head } else { "" };
        writeln!(out, "{:indent$}{DIM}{head:<more$}{DIM:#}{line}", "")?;
    }
    Ok(())
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    json(out, findings)
}
