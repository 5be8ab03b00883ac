//! DPCs and interrupts as a table: by routine, module, processor or kind.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::events::kernel::InterruptKind;
use crate::profile::{Entry, Filter, FrameId, Profile};
use crate::trace::{CodeAddress, InterruptSpan, Place, PlaceAt, RunnerId, Trace};

use super::grid::{Csv, Grid};
use super::runtimes::fine_ms;
use super::spelling::Spelling;
use super::table::grid_rest;
use super::text::{cell, count, duration, json};

/// What a row is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A routine of a driver.
    #[default]
    Routine,
    /// A driver.
    Module,
    /// A processor.
    Processor,
    /// ISRs, DPCs, ....
    Kind,
}

/// What the rows are sorted by, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The time that they ran themselves.
    #[default]
    Time,
    /// How many there were.
    Count,
    /// The longest.
    Longest,
}

/// Which routine interrupted a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An interrupt service routine.
    Isr,
    /// That of a message-signalled interrupt.
    MessageIsr,
    /// A DPC.
    Dpc,
    /// A DPC of a timer.
    TimerDpc,
    /// A DPC that runs in a thread.
    ThreadedDpc,
}

impl Kind {
    fn of(kind: InterruptKind) -> Kind {
        match kind {
            InterruptKind::Isr { .. } => Kind::Isr,
            InterruptKind::MessageIsr { .. } => Kind::MessageIsr,
            InterruptKind::Dpc => Kind::Dpc,
            InterruptKind::TimerDpc => Kind::TimerDpc,
            InterruptKind::ThreadedDpc => Kind::ThreadedDpc,
        }
    }

    /// In words.
    fn text(self) -> &'static str {
        match self {
            Kind::Isr => "ISR",
            Kind::MessageIsr => "message-signalled ISR",
            Kind::Dpc => "DPC",
            Kind::TimerDpc => "timer DPC",
            Kind::ThreadedDpc => "threaded DPC",
        }
    }
}

/// DPCs and interrupts, added up.
#[derive(Clone, Debug, Serialize)]
pub struct Interrupts {
    /// What a row is of.
    pub by: By,
    /// The time that is looked at, in ns since the first record.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// All of them.
    pub total: Row,
    /// The rows, in the order of what they are sorted by.
    pub rows: Vec<Row>,
    /// How many rows were left out.
    pub left_out: usize,
}

/// DPCs and interrupts of a routine, a module, ....
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The routine, the module, the processor or the kind; empty of all together. It comes from files, and may hold anything.
    pub name: String,
    /// What they were, where all were the same.
    pub kind: Option<Kind>,
    /// How many ran.
    pub count: u64,
    /// How long, from the start of each to its end.
    pub total_ns: i64,
    /// How long of that others ran that had interrupted them.
    pub nested_ns: i64,
    /// The longest, from its begin to its end.
    pub longest_ns: i64,
    /// When that began, in ns since the first record.
    pub longest_start_ns: i64,
    /// The time that they ran themselves, without nested ones, in percent of the time of one processor.
    pub processor_percent: f64,
}

/// DPCs and interrupts while they are added up. Times are in ticks.
#[derive(Clone, Debug, Default)]
struct Sum {
    kinds: FxHashSet<Kind>,
    count: u64,
    total: i64,
    own: i64,
    longest: Option<InterruptSpan>,
}

impl Interrupts {
    /// Those that end in the time of `filter`, on its processors. `profile` has them as its samples
    /// ([`Measured::Interrupts`](crate::profile::Measured::Interrupts)), so that its routines have names.
    pub fn new(
        profile: &Profile,
        spelling: &Spelling<'_>,
        filter: &Filter,
        by: By,
        sort: Sort,
    ) -> Interrupts {
        let trace = &*profile.trace;
        let mut names = Names::new(profile, spelling);
        let mut rows: FxHashMap<(String, Option<Kind>), Sum> = FxHashMap::default();
        let mut total = Sum::default();
        for span in filter.interrupts(trace) {
            let kind = Kind::of(span.kind);
            let key = match by {
                By::Routine => (names.routine(span), Some(kind)),
                By::Module => (names.module(span), None),
                By::Processor => (format!("processor {}", span.processor), None),
                By::Kind => (kind.text().to_owned(), Some(kind)),
            };
            rows.entry(key).or_default().add(span);
            total.add(span);
        }
        let period = filter.period(trace);
        let (first, last) = trace.span.unwrap_or((trace.clock.base, trace.clock.base));
        let ns = |time| trace.clock.nanoseconds(time);
        let (start_ns, end_ns) = (ns(first.max(period.start)), ns(last.min(period.end)));
        let all_ns = end_ns.saturating_sub(start_ns).max(1);
        let mut rows: Vec<Row> =
            rows.into_iter().map(|((name, _), sum)| sum.row(trace, name, all_ns)).collect();
        rows.sort_by(|a, b| b.size(sort).cmp(&a.size(sort)).then_with(|| a.place().cmp(&b.place())));
        let total = total.row(trace, String::new(), all_ns);
        Interrupts { by, start_ns, end_ns, total, rows, left_out: 0 }
    }

    /// Leaves out all rows but the first `rows`.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Interrupts {
        self.left_out += self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        self
    }
}

impl Sum {
    fn add(&mut self, span: &InterruptSpan) {
        if self.longest.is_none_or(|longest| longest.ticks() < span.ticks()) {
            self.longest = Some(*span);
        }
        self.count += 1;
        self.total = self.total.saturating_add(span.ticks());
        self.own = self.own.saturating_add(span.own_ticks());
        self.kinds.insert(Kind::of(span.kind));
    }

    fn row(&self, trace: &Trace, name: String, all_ns: i64) -> Row {
        let mut kinds = self.kinds.iter().copied();
        let kind = kinds.next().filter(|_| kinds.next().is_none());
        let ns = |ticks| trace.clock.nanoseconds_in(ticks);
        Row {
            name,
            kind,
            count: self.count,
            total_ns: ns(self.total),
            nested_ns: ns(self.total) - ns(self.own),
            longest_ns: self.longest.map_or(0, |longest| ns(longest.ticks())),
            longest_start_ns: self.longest.map_or(0, |longest| trace.clock.nanoseconds(longest.start)),
            processor_percent: 100.0 * ns(self.own) as f64 / all_ns as f64,
        }
    }
}

impl Row {
    /// How long they ran themselves, in ns.
    fn own_ns(&self) -> i64 {
        self.total_ns.saturating_sub(self.nested_ns)
    }

    fn size(&self, sort: Sort) -> i64 {
        match sort {
            Sort::Time => self.own_ns(),
            Sort::Count => i64::try_from(self.count).unwrap_or(i64::MAX),
            Sort::Longest => self.longest_ns,
        }
    }

    fn place(&self) -> (&str, Option<Kind>) {
        (&self.name, self.kind)
    }
}

/// The names of routines.
struct Names<'a> {
    profile: &'a Profile,
    spelling: &'a Spelling<'a>,
    frames: FxHashMap<Place, FrameId>,
    /// Where each routine is, and as what.
    known: FxHashMap<u64, PlaceAt>,
}

impl<'a> Names<'a> {
    fn new(profile: &'a Profile, spelling: &'a Spelling<'a>) -> Names<'a> {
        let frames = profile.stacks.places().collect();
        Names { profile, spelling, frames, known: FxHashMap::default() }
    }

    fn frame(&mut self, span: &InterruptSpan) -> Option<FrameId> {
        let trace = &*self.profile.trace;
        let known = self.known.get(&span.routine).filter(|known| known.holds_at(span.end)).copied();
        let at = known.unwrap_or_else(|| {
            let code = CodeAddress { address: span.routine, is_return: false };
            let at = trace.locate(trace.runner(RunnerId(u32::MAX)).process, code, span.end);
            self.known.insert(span.routine, at);
            at
        });
        self.frames.get(&at.place).copied()
    }

    fn routine(&mut self, span: &InterruptSpan) -> String {
        match self.frame(span) {
            Some(frame) => self.spelling.text(Entry::Frame(frame)),
            None => format!("0x{:x}", span.routine),
        }
    }

    fn module(&mut self, span: &InterruptSpan) -> String {
        let module = self.frame(span).map(|frame| self.spelling.module(Entry::Frame(frame)));
        module.filter(|module| !module.is_empty()).unwrap_or_else(|| "(no module)".to_owned())
    }
}

/// All DPCs and interrupts of a trace by their kinds.
pub(super) fn by_kind(trace: &Trace) -> Vec<Row> {
    let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
    trace.interrupts.iter().for_each(|span| sums.entry(Kind::of(span.kind)).or_default().add(span));
    let length = trace.span.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
    let all_ns = trace.clock.nanoseconds_in(length).max(1);
    sums.into_iter().map(|(kind, sum)| sum.row(trace, kind.text().to_owned(), all_ns)).collect()
}

/// `138,599 ISRs, 13,487 DPCs: 1.2 s, 7.0% of one CPU`.
pub(super) fn text_of(rows: &[Row]) -> String {
    let part =
        |row: &Row| format!("{} {}{}", count(row.count), row.name, if row.count == 1 { "" } else { "s" });
    let parts: Vec<String> = rows.iter().map(part).collect();
    let own = rows.iter().fold(0, |sum: i64, row| sum.saturating_add(row.own_ns()));
    let percent: f64 = rows.iter().map(|row| row.processor_percent).sum();
    format!("{}: {}, {percent:.1}% of one processor", parts.join(", "), duration(own as f64 / 1e9))
}

/// Writes the table. With the `width` of a terminal the lines end there, and bars show the time.
pub fn write(out: &mut impl Write, interrupts: &Interrupts, width: Option<usize>) -> io::Result<()> {
    let Interrupts { by, total, rows, .. } = interrupts;
    let all = (interrupts.end_ns.saturating_sub(interrupts.start_ns)) as f64 / 1e9;
    writeln!(
        out,
        "{} DPCs and interrupts in {}: {} together, {:.2}% of one processor\n",
        count(total.count),
        duration(all),
        duration(total.own_ns() as f64 / 1e9),
        total.processor_percent
    )?;
    let what = match by {
        By::Routine => "routine",
        By::Module => "module",
        By::Processor => "processor",
        By::Kind => "kind",
    };
    let mut grid = Grid::new(["count", "total ms", "nested ms", "longest ms", "% of a CPU"], what);
    for row in rows {
        let numbers = [
            count(row.count),
            fine_ms(row.total_ns),
            fine_ms(row.nested_ns),
            fine_ms(row.longest_ns),
            format!("{:.2}%", row.processor_percent),
        ];
        let name = match row.kind.filter(|_| *by == By::Routine) {
            Some(kind) => format!("{} ({})", row.name, kind.text()),
            None => row.name.clone(),
        };
        grid.row(numbers, row.own_ns(), name);
    }
    grid.write(out, width)?;
    grid_rest(out, interrupts.left_out)
}

/// Writes it as JSON.
pub fn write_json(out: &mut impl Write, interrupts: &Interrupts) -> io::Result<()> {
    json(out, interrupts)
}

/// Writes the rows as CSV, with a head.
pub fn write_csv(out: &mut impl Write, interrupts: &Interrupts) -> io::Result<()> {
    const HEAD: [&str; 8] = [
        "name",
        "kind",
        "count",
        "total_ns",
        "nested_ns",
        "longest_ns",
        "longest_start_ns",
        "processor_percent",
    ];
    let mut csv = Csv::new(out, &HEAD)?;
    for row in &interrupts.rows {
        csv.row(&Row { name: cell(&row.name).into_owned(), ..row.clone() })?;
    }
    csv.finish()
}
