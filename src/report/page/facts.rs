//! What a page says of its recording: what was recorded, what stands out, and how far the numbers can be trusted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::profile::{Arranged, Category, Timeline};
use crate::report::account::{losses, reasons};
use crate::report::findings;
use crate::report::format::Picture;
use crate::report::info::Info;
use crate::report::named::NamesOf;
use crate::report::spelling::Spelling;
use crate::report::text::{count, cut_stacks, duration, one_line, share};
use crate::symbols::resolver::ModuleReport;

/// Functions among the findings, at most.
const HOTTEST: usize = 3;
/// Shares below are no finding, in percent.
const NOTABLE: f64 = 5.0;
/// Shares of time that something costs which does no work of the program's own: findings from here on, in percent.
const OVERHEAD: f64 = 2.0;
/// Modules without names that are listed, at most.
const MODULES: usize = 50;
/// Damaged places that are listed, at most.
const DAMAGES: usize = 50;

/// The facts.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// What was recorded: names and values.
    summary: Vec<(&'static str, String)>,
    findings: Vec<Finding>,
    /// What else stands out, with evidence and advice.
    notes: Vec<Note>,
    /// How far the recording can be trusted.
    quality: String,
    /// All samples of the recording.
    samples: u64,
    /// Where they went: kept, idle, filtered out and by what.
    balance: Vec<(String, u64)>,
    /// The kept samples by the parts of their stacks.
    stacks: Vec<(&'static str, u64)>,
    /// What was lost.
    losses: Vec<(&'static str, u64)>,
    /// What could not be read.
    damage: Vec<String>,
    /// Frames of kept samples, each counted once for every sample that it is in.
    frames: u64,
    /// Of these, those without a name, by why.
    unnamed: Vec<(&'static str, u64)>,
    /// Modules whose functions have no names, or only guessed ones.
    modules: Vec<Module>,
    /// How many more there are.
    more_modules: usize,
}

/// Something that stands out.
#[derive(Debug, Serialize)]
struct Finding {
    /// `hot`, `cost` or `doubt`: a function, time that something costs, and what makes the numbers less sure.
    kind: &'static str,
    text: String,
    /// The function, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<u32>,
}

/// What stands out, with evidence and advice.
#[derive(Debug, Serialize)]
struct Note {
    text: String,
    /// Of all CPU time, from 0 to 1.
    share: f64,
    /// What the evidence is about, and in words.
    evidence: Vec<(&'static str, String)>,
    advice: &'static str,
}

/// Findings that the page states as doubts, and lists under the data quality.
const DOUBTS: [&str; 4] = ["broken-stacks", "lost-events", "missing-symbols", "no-stacks"];

impl Note {
    fn new(finding: &findings::Finding) -> Note {
        let evidence = finding.evidence.iter();
        Note {
            text: finding.heading(),
            share: finding.share,
            evidence: evidence.map(|fact| (fact.about, one_line(&fact.text).into_owned())).collect(),
            advice: finding.advice,
        }
    }
}

/// A module without names.
#[derive(Debug, Serialize)]
struct Module {
    name: String,
    /// Kept samples that hit it.
    samples: u64,
    /// Of its addresses, how many have a name.
    named: usize,
    addresses: usize,
    /// Why.
    why: String,
}

impl Facts {
    /// `arranged`, which `labels` spells, is the tree of the picture with callers first.
    pub(super) fn new(
        picture: &Picture<'_>,
        arranged: &Arranged,
        labels: &Spelling<'_>,
        names: &NamesOf,
        timeline: &Timeline,
    ) -> Facts {
        let analysis = picture.analysis;
        let info = Info::new(analysis);
        let balance = arranged.balance;
        let stacks = &balance.stacks;
        let mut parts = vec![("kept".to_owned(), balance.kept), ("idle".to_owned(), balance.idle)];
        parts.extend(
            reasons(&balance.filtered_by)
                .into_iter()
                .map(|(samples, by)| (format!("left out by {by}"), samples)),
        );
        let resolution = analysis.profile.resolution_of_all();
        let unnamed = resolution.causes().into_iter().map(|cause| (cause.cause.text(), cause.frames));
        let modules: Vec<&ModuleReport> =
            analysis.symbols.modules.iter().filter(|module| !module.verdict.is_named()).collect();
        let damage = info.damaged.iter().take(DAMAGES);
        Facts {
            summary: summary(picture, &info, timeline),
            findings: findings(arranged, labels, names, &info, &kinds(picture)),
            notes: info
                .findings
                .findings
                .iter()
                .filter(|finding| !DOUBTS.contains(&finding.id))
                .map(Note::new)
                .collect(),
            quality: info.findings.quality_text(),
            samples: balance.total,
            balance: parts,
            stacks: nonzero([
                ("user code only", stacks.user_only),
                ("kernel and user code", stacks.kernel_and_user),
                ("kernel code only", stacks.kernel_only),
                ("no stack", stacks.none),
                ("broken: do not reach the start of their thread", stacks.broken),
                ("repaired", stacks.repaired),
            ]),
            losses: nonzero(losses(&info.lost).map(|(number, what)| (what, number))),
            damage: damage
                .map(|damage| {
                    let file = damage.file.rsplit(['/', '\\']).next().unwrap_or_default();
                    one_line(&format!("{file} at byte {}: {}", count(damage.offset), damage.what))
                        .into_owned()
                })
                .collect(),
            frames: resolution.total(),
            unnamed: unnamed.collect(),
            more_modules: modules.len().saturating_sub(MODULES),
            modules: modules.into_iter().take(MODULES).map(|module| Module::new(picture, module)).collect(),
        }
    }
}

impl Module {
    fn new(picture: &Picture<'_>, report: &ModuleReport) -> Module {
        let module = picture.profile().trace.module(report.module);
        let why = report.verdict.cause().unwrap_or_else(|| report.verdict.to_string());
        Module {
            name: one_line(module.map_or("", |module| module.file_name())).into_owned(),
            samples: report.samples,
            named: report.named,
            addresses: report.addresses,
            why: one_line(&why).into_owned(),
        }
    }
}

fn nonzero<const N: usize>(all: [(&'static str, u64); N]) -> Vec<(&'static str, u64)> {
    all.into_iter().filter(|(_, number)| *number > 0).collect()
}

fn summary(picture: &Picture<'_>, info: &Info, timeline: &Timeline) -> Vec<(&'static str, String)> {
    let machine = &info.machine;
    let mut what = vec![format!("{} processors", machine.cpus)];
    what.extend(machine.architecture.map(str::to_owned));
    what.extend(machine.os_name.clone());
    what.push(format!("build {}", machine.os_build));
    let start = info.start_utc.as_deref().unwrap_or("an unknown time");
    let local = match info.utc_offset_minutes {
        Some(_) => format!(" ({} {})", info.start_time_of_day, info.time_zone),
        None => String::new(),
    };
    let interval = match info.sampling_intervals.as_slice() {
        [one] => format!("every {}", duration(one.interval as f64 / 1e7)),
        several => format!("at {} rates", several.len()),
    };
    let named = &info.samples.named;
    let rows = [
        ("Recording", picture.title.to_owned()),
        ("Chosen", picture.chosen.to_owned()),
        ("Recorded", format!("{start}{local}")),
        ("Machine", what.join(", ")),
        (
            "Range",
            format!("{} of {}", duration(timeline.length as f64 / 1e7), duration(info.duration_seconds)),
        ),
        ("Sampled", interval),
        (
            "Names",
            format!(
                "{} of samples end in a named function, {} of frames have a name",
                share(named.leaves as i64, info.samples.balance.kept as i64),
                share(named.frames as i64, named.all_frames as i64)
            ),
        ),
        ("Made by", format!("etwprof {}", env!("CARGO_PKG_VERSION"))),
    ];
    let said = rows.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name, one_line(&text).into_owned())).collect()
}

fn percent(part: i64, whole: i64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// What the samples with code of each kind stand for, whatever the picture folds; nothing where it leaves samples out.
fn kinds(picture: &Picture<'_>) -> BTreeMap<Category, i64> {
    match picture.arranged.left_out.is_empty() {
        true => picture.profile().values_with_code(picture.shape.detail.inlined),
        false => BTreeMap::new(),
    }
}

fn findings(
    arranged: &Arranged,
    labels: &Spelling<'_>,
    names: &NamesOf,
    info: &Info,
    kinds: &BTreeMap<Category, i64>,
) -> Vec<Finding> {
    let total = arranged.values.total();
    let mut findings = Vec::new();
    let mut hottest = arranged.table(|entry| names.of(entry));
    hottest.retain(|row| percent(row.exclusive_value, total) >= NOTABLE);
    hottest.sort_by_key(|row| (Reverse(row.exclusive_value), row.key));
    for row in hottest.iter().take(HOTTEST) {
        let Some(name) = names.get(row.key) else { continue };
        let unnamed = labels.unnamed(name.entry).map_or("", |_| ", code without a name,");
        let (text, share) = (one_line(&name.text), share(row.exclusive_value, total));
        findings.push(Finding {
            kind: "hot",
            text: format!("{text}{unnamed} itself uses {share} of the CPU time"),
            name: Some(row.key.0),
        });
    }
    let mut say = |kind, text| findings.push(Finding { kind, text, name: None });
    let below = |category| kinds.get(&category).copied().unwrap_or(0);
    for (category, what) in [
        (Category::Gc, "Garbage collection, with what it calls,"),
        (Category::JitCompiler, "The JIT compiler, with what it calls,"),
        (Category::Kernel, "The kernel"),
    ] {
        if percent(below(category), total) >= OVERHEAD {
            say("cost", format!("{what} uses {} of the CPU time", share(below(category), total)));
        }
    }
    let balance = &arranged.balance;
    let kept = balance.kept as i64;
    let mut doubt = |samples: u64, text: &str| {
        if samples > 0 {
            let share = share(samples as i64, kept);
            say("doubt", format!("{} samples ({share}) {text}", count(samples)));
        }
    };
    doubt(balance.stacks.broken, "have a broken stack: their callers are not all known");
    doubt(balance.stacks.none, "have no stack: their callers are not known");
    let unnamed = info.samples.balance.kept.saturating_sub(info.samples.named.leaves);
    if percent(unnamed as i64, info.samples.balance.kept as i64) >= OVERHEAD {
        doubt(unnamed, "end in code without a name; the data quality below lists the reasons");
    }
    if info.lost.events + info.lost.buffers > 0 {
        let (events, buffers) = (count(info.lost.events), count(info.lost.buffers));
        say(
            "doubt",
            format!("The session lost {events} events and {buffers} buffers: samples may be missing"),
        );
    }
    if !info.damaged.is_empty() {
        say(
            "doubt",
            format!("{} places of the recording could not be read", count(info.damaged.len() as u64)),
        );
    }
    if arranged.cut.samples > 0 {
        say("doubt", cut_stacks(&arranged.cut));
    }
    findings
}
