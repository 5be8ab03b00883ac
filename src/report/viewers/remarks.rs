//! What is said of a profile as a whole, in formats that have room for it.

use rustc_hash::FxHashMap;

use crate::clock::UNIX_EPOCH;
use crate::profile::{Metric, Unit};
use crate::report::account::{filtered_out, losses};
use crate::report::format::Picture;
use crate::report::text::{count, cut_stacks, merged_samples, nanoseconds, one_line};

use super::threads::samples;

/// The program and its version.
pub(super) const TOOL: &str = concat!("etwprof ", env!("CARGO_PKG_VERSION"));

/// What made it, of what, and how far it can be trusted: a line each.
pub(super) fn remarks(picture: &Picture<'_>) -> Vec<String> {
    let (balance, lost) = (&picture.arranged.balance, &picture.profile().trace.lost);
    let mut all = vec![TOOL.to_owned(), format!("recording: {}", one_line(picture.title))];
    let samples = picture.profile().metric.samples;
    let mut kept = format!("{samples}: {} of {} kept", count(balance.kept), count(balance.total));
    if balance.idle > 0 {
        kept += &format!(", {} idle", count(balance.idle));
    }
    if balance.filtered > 0 {
        kept += &format!(", {}", filtered_out(balance));
    }
    all.push(kept);
    let (broken, repaired) = (balance.stacks.broken, balance.stacks.repaired);
    if broken + repaired > 0 {
        all.push(format!("stacks: {} broken, {} repaired", count(broken), count(repaired)));
    }
    let damage = (picture.analysis.damage.len() as u64, "damaged places in the file");
    let lost = losses(lost).into_iter().chain([damage]).filter(|(number, _)| *number > 0);
    let lost: Vec<String> = lost.map(|(number, what)| format!("{} {what}", count(number))).collect();
    all.push(format!("lost: {}", if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") }));
    if let Some(merged) = &picture.profile().trace.merged {
        all.push(format!("samples that became one: {}", merged_samples(merged)));
    }
    if picture.arranged.cut.samples > 0 {
        all.push(cut_stacks(&picture.arranged.cut));
    }
    all
}

/// Cuts stacks in formats that write a stack again for each thread, or for each sample: a few bytes of a recording could
/// ask for any number of frames.
#[derive(Debug)]
pub(super) struct Cutter {
    left: u64,
    stacks: u64,
}

impl Cutter {
    pub(super) fn new(picture: &Picture<'_>) -> Cutter {
        Cutter { left: picture.profile().limit.written(), stacks: 0 }
    }

    /// The innermost frames of a stack, as many as may be written; the leaf in any case.
    pub(super) fn cut<T>(&mut self, mut leaf_first: impl Iterator<Item = T>) -> Vec<T> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).max(1);
        let stack: Vec<T> = leaf_first.by_ref().take(most).collect();
        self.left = self.left.saturating_sub(stack.len() as u64);
        self.stacks += u64::from(leaf_first.next().is_some());
        stack
    }

    /// What there is to say of it.
    pub(super) fn remark(&self) -> Option<String> {
        let cut = || {
            let stacks = count(self.stacks);
            format!(
                "{stacks} stacks are cut, as the file would be far larger than the recording; --no-limit keeps them"
            )
        };
        (self.stacks > 0).then(cut)
    }
}

/// When a profile was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// In ns since 1970.
    pub(super) start: i64,
    /// In ns.
    pub(super) length: i64,
}

/// The range of time in which samples were taken, or that of it which was chosen; with waits and events, which may be
/// outside of it.
pub(super) fn span(picture: &Picture<'_>) -> Span {
    let (timeline, clock) = (picture.timeline(1), picture.profile().trace.clock);
    let start = clock.base_utc.saturating_add(timeline.start);
    let end = start.saturating_add(timeline.length);
    let metric = picture.profile().metric;
    // A wait goes on from its time; a sample was taken at it.
    let lasts = metric.unit == Unit::Time && metric != Metric::CPU;
    let (start, end) = samples(picture).fold((start, end), |(start, end), (_, sample)| {
        let time = clock.filetime(sample.time);
        (start.min(time), end.max(time.saturating_add(if lasts { sample.value } else { 0 })))
    });
    Span { start: since_1970(start), length: nanoseconds(end.saturating_sub(start)) }
}

/// The ns since 1970 of a FILETIME.
pub(super) fn since_1970(filetime: i64) -> i64 {
    nanoseconds(filetime.saturating_sub(UNIX_EPOCH))
}

/// The sampling interval in 100 ns: where it was changed, the one that most samples stand for; 1 ms without any.
pub(super) fn interval(picture: &Picture<'_>) -> i64 {
    let mut by_value: FxHashMap<i64, u64> = FxHashMap::default();
    for (_, sample) in samples(picture) {
        *by_value.entry(sample.value / i64::from(sample.count).max(1)).or_default() += sample.count();
    }
    let most = by_value.into_iter().max_by_key(|(value, samples)| (*samples, std::cmp::Reverse(*value)));
    most.map_or(10_000, |(value, _)| value)
}
