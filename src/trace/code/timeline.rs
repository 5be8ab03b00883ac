//! From the records of one process, in order of time, to bodies of code with their times.
//!
//! - A load makes a body from now on; a little earlier in truth, as the event is written after the code is ready.
//! - A load does not end an older body of the same method: tiers and re-JITs live side by side.
//! - An unload ends the body at its start address. So does a load over the same bytes: the unload was lost, or the
//!   engine moves code and tells none.
//! - What is only told by a rundown or an unload was there since nobody knows when: from the beginning, or from when
//!   its bytes were last used by another body.
//! - Live events and one or two rundowns tell the same body several times.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::events::clr::{Phase, Tier};

use super::collector::{MapRecord, MethodRecord};
use super::{Body, BodyKind, ModuleIdOf, Name, PairRange};
use crate::trace::processes::ProcessId;

/// Builds the bodies of one process.
pub(super) struct Timeline<'a> {
    process: ProcessId,
    bodies: &'a mut Vec<Body>,
    /// How long before its load event a body may run.
    early: i64,
    /// Code outside images, and precompiled code inside them: two layers that do not replace each other.
    compiled: Layer,
    precompiled: Layer,
    /// The body told last for a method, but for cold parts: the owner of the next live map. A re-compiled body has a
    /// re-JIT id where its map has 0 (534 of 534 in the diaghub session), so that tells nothing.
    latest: FxHashMap<u64, u32>,
    /// Maps that came before their body.
    early_maps: FxHashMap<u64, PairRange>,
}

#[derive(Default)]
struct Layer {
    /// Live bodies by start address; they do not overlap.
    live: BTreeMap<u64, u32>,
    used: Used,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(process: ProcessId, bodies: &'a mut Vec<Body>, early: i64) -> Self {
        Timeline {
            process,
            bodies,
            early,
            compiled: Layer::default(),
            precompiled: Layer::default(),
            latest: FxHashMap::default(),
            early_maps: FxHashMap::default(),
        }
    }

    /// Takes one record. `module` is asked for the module of a new body.
    pub(super) fn method(&mut self, record: &MethodRecord, module: ModuleIdOf<'_>) {
        let end = record.start.saturating_add(record.size);
        let layer = match record.kind.hides_images() {
            true => &mut self.compiled,
            false => &mut self.precompiled,
        };
        // What begins last before its end is the same code, or what it overlaps, if anything is.
        let last_byte = record.start.max(end.saturating_sub(1));
        let last = layer.live.range(..=last_byte).next_back().map(|(start, index)| (*start, *index));
        let body = last.and_then(|(_, index)| self.bodies.get(index as usize));
        let overlaps = body.is_some_and(|body| body.end() > record.start);
        let same = last
            .filter(|(start, _)| *start == record.start && body.is_some_and(|body| is_same(body, record)))
            .map(|(_, index)| index);
        let time = record.time;
        let index = match same {
            Some(index) => {
                let Some(body) = self.bodies.get_mut(index as usize) else { return };
                complete(body, record);
                if record.phase == Phase::Unload {
                    body.until = Some(time);
                    layer.live.remove(&record.start);
                    layer.used.set(record.start, end, time);
                }
                index
            }
            None => {
                let ended_just_now = record.phase == Phase::Unload
                    && self.latest.get(&record.method).is_some_and(|index| {
                        let body = self.bodies.get(*index as usize);
                        body.is_some_and(|body| body.until.is_some() && is_same(body, record))
                    });
                if ended_just_now {
                    return; // told twice
                }
                if overlaps {
                    layer.end_overlapping(self.bodies, record.start, end, time);
                }
                let used = layer.used.latest(record.start, end);
                let from = match record.phase {
                    Phase::Load => {
                        let early = Ticks(time.0.saturating_sub(self.early));
                        Some(used.map_or(early, |used| used.max(early)))
                    }
                    Phase::Unload | Phase::RundownStart | Phase::RundownEnd => used,
                };
                let index = self.bodies.len() as u32;
                let until = (record.phase == Phase::Unload).then_some(time);
                if until.is_some() {
                    layer.used.set(record.start, end, time);
                } else if record.size > 0 {
                    layer.live.insert(record.start, index);
                }
                self.bodies.push(Body {
                    process: self.process,
                    kind: record.kind,
                    start: record.start,
                    size: record.size,
                    open_ended: record.open_ended,
                    from,
                    until,
                    loaded: (record.phase == Phase::Load).then_some(time),
                    flags: record.flags,
                    method: record.method,
                    token: record.token,
                    rejit: record.rejit,
                    instance: record.instance,
                    module: module(record),
                    name: record.name,
                    il_map: PairRange::default(),
                });
                index
            }
        };
        if !record.flags.is_cold() {
            self.latest.insert(record.method, index);
            if let Some(map) = self.early_maps.remove(&record.method) {
                self.attach(index, map);
            }
        }
    }

    /// Takes one map. A live one follows its body, one of a rundown precedes it (verified on net.4.5.2.x64.etl).
    pub(super) fn il_map(&mut self, map: &MapRecord) {
        match self.latest.get(&map.method).copied() {
            Some(index) if map.phase == Phase::Load => self.attach(index, map.pairs),
            _ => drop(self.early_maps.insert(map.method, map.pairs)),
        }
    }

    /// Maps whose body did not follow belong to the one before.
    pub(super) fn finish(mut self) {
        for (method, map) in std::mem::take(&mut self.early_maps) {
            if let Some(index) = self.latest.get(&method).copied() {
                self.attach(index, map);
            }
        }
    }

    fn attach(&mut self, index: u32, map: PairRange) {
        if let Some(body) = self.bodies.get_mut(index as usize)
            && body.il_map.is_empty()
        {
            body.il_map = map;
        }
    }
}

impl Layer {
    /// Ends what is live in these bytes.
    fn end_overlapping(&mut self, bodies: &mut [Body], start: u64, end: u64, time: Ticks) {
        if start >= end {
            return;
        }
        while let Some((live_start, index)) = self.live.range(..end).next_back().map(|(s, i)| (*s, *i)) {
            let Some(body) = bodies.get_mut(index as usize) else { return };
            if body.end() <= start {
                return;
            }
            body.until = Some(time);
            self.live.remove(&live_start);
            self.used.set(live_start, body.end(), time);
        }
    }
}

/// The same code: told by a live event and a rundown, or by two sessions.
fn is_same(body: &Body, record: &MethodRecord) -> bool {
    let same_name = |a: Option<Name>, b: Option<Name>| a.zip(b).is_none_or(|(a, b)| a == b);
    body.start == record.start
        && body.size == record.size
        && body.method == record.method
        && body.instance == record.instance
        && same_name(body.name, record.name)
}

/// Takes what another record of the same code adds.
fn complete(body: &mut Body, record: &MethodRecord) {
    body.name = body.name.or(record.name);
    if body.flags.tier() == Tier::Unknown {
        body.flags = record.flags;
    }
    // Without its name a stub passes for another dynamic method.
    if record.kind == BodyKind::IlStub {
        body.kind = record.kind;
    }
}

/// When bytes were last in use, by ranges of addresses that do not overlap.
#[derive(Default)]
struct Used(BTreeMap<u64, (u64, Ticks)>);

impl Used {
    /// They were used until `time`, which is not before any told earlier.
    fn set(&mut self, start: u64, end: u64, time: Ticks) {
        if start >= end {
            return;
        }
        while let Some((from, (to, then))) = self.0.range(..end).next_back().map(|(f, v)| (*f, *v)) {
            if to <= start {
                break;
            }
            self.0.remove(&from);
            if to > end {
                self.0.insert(end, (to, then));
            }
            if from < start {
                self.0.insert(from, (start, then));
                break;
            }
        }
        self.0.insert(start, (end, time));
    }

    /// The last use of any of these bytes.
    fn latest(&self, start: u64, end: u64) -> Option<Ticks> {
        if start >= end {
            return None;
        }
        let overlapping = self.0.range(..end).rev().take_while(|(_, (to, _))| *to > start);
        overlapping.map(|(_, (_, time))| *time).max()
    }
}

#[cfg(test)]
mod tests {
    use super::Used;
    use crate::event::Ticks;

    proptest::proptest! {
        #[test]
        fn used_is_an_array_of_times(ranges: Vec<(u8, u8)>, start: u8, length: u8) {
            let mut used = Used::default();
            let mut array = [None; 512];
            for (time, (start, length)) in (0..).zip(ranges) {
                let (start, end) = (u64::from(start), u64::from(start) + u64::from(length));
                used.set(start, end, Ticks(time));
                array[start as usize..end as usize].fill(Some(Ticks(time)));
            }
            let (start, end) = (usize::from(start), usize::from(start) + usize::from(length));
            let expected = array[start..end].iter().flatten().max().copied();
            proptest::prop_assert_eq!(used.latest(start as u64, end as u64), expected);
        }
    }
}
