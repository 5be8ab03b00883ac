//! From events to states.

use rustc_hash::FxHashMap;

use crate::clock::Ticks;
use crate::event::NO_ID;
use crate::events::kernel::{ContextSwitch, Leaving, ReadyThread};
use crate::trace::processes::{ProcessId, ThreadId};
use crate::trace::sample::{Context, Runner};
use crate::trace::{Stacked, Trace};

use super::{Span, State, ThreadTimes, Waits, Waker};

/// A thread may be made ready by another processor while it is still on its way out of its own.
const ON_ITS_WAY_SECONDS: f64 = 0.001;

/// Processors above this number are none.
const MOST_PROCESSORS: u16 = 4_096;

pub(super) fn waits(trace: &Trace) -> Option<Waits> {
    let switches = &trace.kept.switches;
    let window = (switches.first()?.time, switches.last()?.time);
    let mut builder = Builder::new(trace, window);
    let mut is_whole = builder.whole.start <= window.0;
    let mut readied = (0..).zip(&trace.kept.readied).peekable();
    for (index, switch) in (0..).zip(switches) {
        // At one tick of a coarse clock a thread is made ready before it is given a processor.
        while let Some((index, event)) = readied.next_if(|(_, event)| event.time <= switch.time) {
            builder.readied(index, event);
        }
        if !is_whole && builder.whole.start <= switch.time {
            is_whole = true;
            builder.forget_processors();
        }
        builder.switch(index, switch);
    }
    Some(builder.finish())
}

/// A range of time.
type Range = (Ticks, Ticks);

/// A thread while its states are put together.
#[derive(Debug)]
struct Row {
    times: ThreadTimes,
    /// Its switches are there: those of others were left out when the recording was trimmed.
    is_chosen: bool,
    now: Now,
    /// It was made ready while it still ran: when, and by which event.
    early: Option<(Ticks, u32)>,
    /// Of its spans, those from here on await the switch that ends them.
    open: usize,
}

/// What is believed of a thread since a moment; `Unknown` where the next event will tell.
#[derive(Clone, Copy, Debug)]
struct Now {
    state: State,
    since: Ticks,
    processor: Option<u16>,
    left: Option<u32>,
    readied: Option<u32>,
}

impl Now {
    fn unknown(since: Ticks) -> Now {
        Now { state: State::Unknown, since, processor: None, left: None, readied: None }
    }
}

impl Row {
    fn push(&mut self, state: State, start: Ticks, end: Ticks) {
        let (start, end) = (start.max(self.times.start), end.min(self.times.end));
        if start >= end {
            return;
        }
        let Now { processor, left, readied, .. } = self.now;
        if let Some(last) = self.times.spans.last_mut()
            && (last.state, state) == (State::Unknown, State::Unknown)
        {
            last.end = end;
            return;
        }
        let processor = processor.filter(|_| state == State::Running);
        let span = Span { state, start, end, processor, left, came: None, readied };
        self.times.spans.push(span);
    }

    /// What is believed of it holds until `time`; of a running thread, at most until a gap in its processor's switches.
    fn close(&mut self, time: Ticks, gaps: &[Range]) {
        let Now { state, since, .. } = self.now;
        match gap(gaps, since, time) {
            Some((from, _)) if state == State::Running => {
                self.push(State::Running, since, from);
                self.push(State::Unknown, from, time);
            }
            _ => self.push(state, since, time),
        }
    }

    /// A thread that does not run may have run where switches of any processor are missing.
    fn settle(&mut self, time: Ticks, gaps: &[Range]) {
        let Now { state, since, .. } = self.now;
        if state == State::Running {
            return;
        }
        if let Some((from, to)) = gap(gaps, since, time) {
            if state == State::Unknown {
                // Nothing has been seen of it since it was last known.
                self.now.state = State::Blocked;
            }
            self.push(self.now.state, since, from);
            self.now = Now::unknown(to);
            self.push(State::Unknown, from, to);
            self.open = self.times.spans.len();
        }
    }

    /// It ran again by this switch.
    fn came(&mut self, switch: u32) {
        for span in self.times.spans.iter_mut().skip(self.open) {
            span.came = Some(switch);
        }
        self.open = self.times.spans.len();
    }
}

/// A processor while its switches are read.
#[derive(Clone, Debug, Default)]
struct Processor {
    /// Who runs: `None` where it is not known, `Some(None)` for the idle thread.
    runs: Option<Option<u32>>,
    /// From when on every switch of it is there.
    since: Option<Ticks>,
    /// Who ran, for whoever asks later.
    ran: Vec<(Ticks, Waker)>,
}

/// Where switches are missing, in order, without overlaps.
#[derive(Debug, Default)]
struct Gaps {
    /// Of each processor.
    of: FxHashMap<u16, Vec<Range>>,
    /// Of any.
    any: Vec<Range>,
}

impl Gaps {
    /// From the last switch of a processor before a missing buffer to the first after it.
    fn new(trace: &Trace, window: Range) -> Gaps {
        let mut gaps = Gaps::default();
        if trace.missing.is_empty() {
            return gaps;
        }
        let mut missing: FxHashMap<Option<u16>, Vec<Ticks>> = FxHashMap::default();
        for one in &trace.missing {
            missing.entry(one.processor).or_default().push(one.until);
        }
        missing.values_mut().for_each(|moments| moments.sort_unstable());
        let of = |processor| missing.get(&processor).map(Vec::as_slice).unwrap_or_default();
        let mut times: FxHashMap<u16, Vec<Ticks>> = FxHashMap::default();
        for switch in &trace.kept.switches {
            times.entry(switch.processor).or_default().push(switch.time);
        }
        for (processor, times) in times {
            let lists = [of(Some(processor)), of(None)];
            let is_gap = |after: Option<&Ticks>, until: Option<&Ticks>| {
                lists.iter().any(|moments| {
                    let first = moments.partition_point(|moment| after.is_some_and(|after| moment <= after));
                    moments.get(first).is_some_and(|moment| until.is_none_or(|until| moment <= until))
                })
            };
            let next = times.iter().map(Some).chain([None]);
            let ranges = [None].into_iter().chain(times.iter().map(Some)).zip(next);
            let ranges = ranges.filter(|(after, until)| is_gap(*after, *until));
            let range = |(after, until): (Option<&Ticks>, Option<&Ticks>)| {
                (after.copied().unwrap_or(window.0), until.copied().unwrap_or(window.1))
            };
            let ranges = joined(ranges.map(range).collect());
            gaps.any.extend(&ranges);
            gaps.of.insert(processor, ranges);
        }
        gaps.any = joined(std::mem::take(&mut gaps.any));
        gaps
    }

    fn of(&self, processor: u16) -> &[Range] {
        self.of.get(&processor).map(Vec::as_slice).unwrap_or_default()
    }
}

/// All gaps that reach into a time, as one.
fn gap(gaps: &[Range], since: Ticks, until: Ticks) -> Option<Range> {
    let first = gaps.partition_point(|(_, to)| *to <= since);
    let after = gaps.partition_point(|(from, _)| *from < until);
    let inside = gaps.get(first..after)?;
    let (from, to) = (inside.first()?.0, inside.last()?.1);
    Some((from.max(since), to.min(until)))
}

struct Builder<'a> {
    trace: &'a Trace,
    window: Range,
    rows: Vec<Row>,
    /// By the thread, or by the id of one that the trace does not know; `None` for one that is not there in the window.
    known: FxHashMap<(Option<ThreadId>, u32), Option<u32>>,
    processors: Vec<Processor>,
    gaps: Gaps,
    on_its_way: i64,
    /// The time of which every switch is there: of that before and after it, a trim keeps the last and the first of each
    /// thread.
    whole: std::ops::Range<Ticks>,
    contradictions: u64,
}

impl<'a> Builder<'a> {
    fn new(trace: &'a Trace, window: Range) -> Builder<'a> {
        let mut builder = Builder {
            trace,
            window,
            rows: Vec::new(),
            known: FxHashMap::default(),
            processors: Vec::new(),
            gaps: Gaps::new(trace, window),
            on_its_way: trace.clock.ticks(ON_ITS_WAY_SECONDS),
            whole: trace.period(),
            contradictions: 0,
        };
        let mut processes: FxHashMap<u32, Vec<ProcessId>> = FxHashMap::default();
        for (id, process) in (0..).map(ProcessId).zip(&trace.processes) {
            processes.entry(process.pid).or_default().push(id);
        }
        for (id, thread) in (0..).map(ThreadId).zip(&trace.threads) {
            let of_pid = processes.get(&thread.pid).map(Vec::as_slice).unwrap_or_default();
            let at = thread.life.start.or(thread.life.end).unwrap_or(window.1);
            let there = |id: &&ProcessId| {
                let life = trace.process(**id).map(|process| process.life);
                life.is_some_and(|life| life.start <= Some(at) && life.end.is_none_or(|end| at <= end))
            };
            let process = of_pid.iter().find(there).or(of_pid.last()).copied();
            let process = process.unwrap_or(ProcessId(u32::MAX));
            builder.row(Runner { process, tid: thread.tid, thread: Some(id) });
        }
        builder
    }

    /// The row of a thread; `None` for the idle ones, and for one that is not there in the window.
    fn row(&mut self, runner: Runner) -> Option<u32> {
        let Runner { process, tid, thread } = runner;
        if tid == 0 || tid == NO_ID {
            return None;
        }
        let key = key(runner);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let life = thread.and_then(|id| self.trace.thread(id)).map(|thread| thread.life);
        let start = life.and_then(|life| life.start).unwrap_or(self.window.0).max(self.window.0);
        let end = life.and_then(|life| life.end).unwrap_or(self.window.1).min(self.window.1);
        let row = (start < end).then_some(self.rows.len() as u32);
        if row.is_some() {
            let times = ThreadTimes { process, tid, thread, start, end, switches: 0, spans: Vec::new() };
            let is_chosen = self.trace.is_whole(process);
            self.rows.push(Row { times, is_chosen, now: Now::unknown(start), early: None, open: 0 });
        }
        self.known.insert(key, row);
        row
    }

    /// A row, if the switches of its thread are there.
    fn chosen(&self, row: Option<u32>) -> Option<u32> {
        row.filter(|row| self.rows.get(*row as usize).is_some_and(|row| row.is_chosen))
    }

    /// Of processors, only those are known whose threads still run there.
    fn forget_processors(&mut self) {
        for (number, processor) in (0..).zip(&mut self.processors) {
            let row = processor.runs.flatten().and_then(|row| self.rows.get(row as usize));
            let is_there =
                row.is_some_and(|row| row.now.state == State::Running && row.now.processor == Some(number));
            if !is_there {
                processor.runs = None;
            }
        }
    }

    fn switch(&mut self, index: u32, switch: &Stacked<ContextSwitch>) {
        let (time, number) = (switch.time, switch.processor);
        let old = switch.other.and_then(|id| self.row(self.trace.runner(id)));
        let new = self.row(self.trace.runner(switch.runner));
        if number >= MOST_PROCESSORS {
            return;
        }
        if self.processors.len() <= usize::from(number) {
            self.processors.resize(usize::from(number) + 1, Processor::default());
        }
        let is_known = !self.trace.has_some_processes() || self.chosen(new).is_some();
        let Some(processor) = self.processors.get_mut(usize::from(number)) else { return };
        // One that ends leaves its processor when its id is free again.
        let still = processor.runs.flatten().filter(|row| {
            self.rows.get(*row as usize).is_some_and(|row| row.times.tid == switch.fact.old_tid)
        });
        let old = still.or(old);
        let last = processor.ran.last().map_or(self.window.0, |(time, _)| *time);
        // What came after a thread of another process was left out.
        let mut believed = std::mem::replace(&mut processor.runs, is_known.then_some(new));
        let since = match gap(self.gaps.of(number), last, time) {
            Some((_, to)) => {
                // Nobody is believed to have run to the end of it.
                if let Some(Some(ran)) = believed.take().filter(|ran| *ran != old) {
                    lose(&mut self.rows, ran, number, time, self.gaps.of(number));
                }
                to
            }
            None => processor.since.unwrap_or(self.window.0),
        };
        processor.since = Some(since);
        let who = match new {
            Some(new) => Waker::Thread(new as usize),
            None if switch.fact.new_tid == 0 => Waker::Interrupt,
            None => Waker::Unknown,
        };
        processor.ran.push((time, who));
        if believed.is_some_and(|believed| believed != old) {
            self.contradictions += u64::from(self.whole.contains(&time));
            // Whoever was believed to run there went at some time since.
            if let Some(ran) = believed.flatten() {
                lose(&mut self.rows, ran, number, time, &[]);
            }
        }
        if let Some(old) = self.chosen(old) {
            self.leave(old, index, switch, believed.is_none().then_some(since));
        }
        if let Some(new) = self.chosen(new) {
            self.come(new, index, switch);
        }
    }

    /// A thread leaves its processor. If nothing was known of that one, but every switch since a moment is there, it ran
    /// since then.
    fn leave(&mut self, row: u32, index: u32, switch: &Stacked<ContextSwitch>, ran_since: Option<Ticks>) {
        let Some(row) = self.rows.get_mut(row as usize) else { return };
        let (time, on) = (switch.time, Some(switch.processor));
        if time < row.times.start {
            // Somebody who had its id before.
            return;
        }
        if row.now.state == State::Running && row.now.processor == on {
            row.close(time, self.gaps.of(switch.processor));
        } else {
            row.settle(time, &self.gaps.any);
            let Now { state, since, .. } = row.now;
            match ran_since.map(|from| from.max(since)) {
                Some(from) if state == State::Unknown => {
                    row.push(State::Unknown, since, from);
                    row.now = Now { state: State::Running, processor: on, ..Now::unknown(from) };
                    row.close(time, &[]);
                }
                _ => row.push(State::Unknown, since, time),
            }
        }
        row.open = row.times.spans.len();
        let state = match switch.fact.leaving() {
            Leaving::Ready => State::Ready,
            Leaving::Waiting => State::Blocked,
            Leaving::Ended => {
                row.times.end = row.times.end.min(time);
                State::Unknown
            }
        };
        row.now = Now { state, left: Some(index), ..Now::unknown(time) };
    }

    /// A thread is given a processor.
    fn come(&mut self, row: u32, index: u32, switch: &Stacked<ContextSwitch>) {
        let has_ready_events = !self.trace.kept.readied.is_empty();
        let Some(row) = self.rows.get_mut(row as usize) else { return };
        let time = switch.time;
        if row.now.state == State::Running {
            self.contradictions += u64::from(self.whole.contains(&time));
            row.push(State::Unknown, row.now.since, time);
            row.open = row.times.spans.len();
        } else {
            row.settle(time, &self.gaps.any);
            let since = row.now.since;
            let early = row.early.filter(|(at, _)| since.0.saturating_sub(at.0) <= self.on_its_way);
            match (row.now.state, early) {
                (State::Blocked, Some((_, event))) => {
                    (row.now.state, row.now.readied) = (State::Ready, Some(event));
                }
                (State::Unknown, _) => {
                    row.now.state = if has_ready_events { State::Ready } else { State::Blocked };
                }
                _ => {}
            }
            row.close(time, &[]);
            row.came(index);
        }
        row.early = None;
        row.times.switches += 1;
        row.now = Now { state: State::Running, processor: Some(switch.processor), ..Now::unknown(time) };
    }

    /// A thread is made ready.
    fn readied(&mut self, index: u32, event: &Stacked<ReadyThread>) {
        let row = event.other.and_then(|id| self.row(self.trace.runner(id)));
        let Some(row) = self.chosen(row).and_then(|row| self.rows.get_mut(row as usize)) else { return };
        let time = event.time;
        row.settle(time, &self.gaps.any);
        match row.now.state {
            State::Running => row.early = Some((time, index)),
            State::Ready => {}
            State::Blocked | State::Unknown => {
                row.now = Now { state: State::Blocked, readied: Some(index), ..row.now };
                row.close(time, &[]);
                row.now = Now { state: State::Ready, since: time, ..row.now };
            }
        }
    }

    fn finish(mut self) -> Waits {
        let mut sampled: Vec<Option<Ticks>> = vec![None; self.rows.len()];
        let ran = self.trace.samples.iter().filter(|sample| sample.context == Context::Thread);
        for sample in ran {
            let row = self.known.get(&key(self.trace.runner(sample.runner))).copied().flatten();
            if let Some(last) = row.and_then(|row| sampled.get_mut(row as usize)) {
                *last = Some(sample.time);
            }
        }
        for (row, sampled) in self.rows.iter_mut().zip(sampled) {
            let end = row.times.end;
            if !row.is_chosen {
                row.close(end, &[]);
                continue;
            }
            row.settle(end, &self.gaps.any);
            match row.now {
                Now { state: State::Running, processor: Some(processor), .. } => {
                    row.close(end, self.gaps.of(processor));
                }
                Now { state: State::Unknown, since, .. } => {
                    // It ran through, or not at all.
                    let ran = sampled.is_some_and(|last| since <= last);
                    row.now.state = if ran { State::Running } else { State::Blocked };
                    row.close(end, &[]);
                }
                _ => row.close(end, &[]),
            }
        }
        let runners = self.trace.runners.iter();
        let rows = runners.map(|runner| self.known.get(&key(*runner)).copied().flatten()).collect();
        Waits {
            rows,
            before: Ticks(i64::MAX),
            window: self.window,
            has_ready_events: !self.trace.kept.readied.is_empty(),
            threads: self.rows.into_iter().map(|row| row.times).collect(),
            contradictions: self.contradictions,
            processors: self.processors.into_iter().map(|processor| processor.ran).collect(),
        }
    }
}

/// What tells threads apart: the thread, or the id of one that the trace does not know.
fn key(runner: Runner) -> (Option<ThreadId>, u32) {
    (runner.thread, if runner.thread.is_some() { 0 } else { runner.tid })
}

/// A thread was believed to run on a processor, and does not any more.
fn lose(rows: &mut [Row], row: u32, processor: u16, time: Ticks, gaps: &[Range]) {
    let Some(row) = rows.get_mut(row as usize) else { return };
    let Now { state, since, processor: on, .. } = row.now;
    if state != State::Running || on != Some(processor) {
        return;
    }
    if gap(gaps, since, time).is_some() {
        row.close(time, gaps);
    } else {
        row.push(State::Unknown, since, time);
    }
    row.open = row.times.spans.len();
    row.now = Now::unknown(time);
}

/// Overlapping ranges as one, in order.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => joined.push((from, to)),
        }
    }
    joined
}
