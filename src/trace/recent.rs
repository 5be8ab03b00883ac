//! The last events that a stack may belong to, so that a stack without any is known to be an orphan.
//!
//! The last [`REMEMBERED`] in order of time count; a stack of an earlier moment is taken to have an owner.

use std::collections::VecDeque;

use crate::clock::Ticks;
use crate::etl::digest::{BufferAt, Place};

use super::awaiting::{AT_ONE_MOMENT, partition_back};

/// Events that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Buffers of which events are remembered: a crafted file may have an event in each.
const MOST_LISTS: usize = 1 << 10;

/// An event of a digest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) time: Ticks,
    /// Whose it is.
    pub(super) of: u32,
    /// Where its record starts in its buffer.
    pub(super) offset: u32,
}

/// Remembers events: one by one as they come, or those of a whole buffer as soon as it begins.
#[derive(Debug, Default)]
pub(super) struct Recent {
    single: VecDeque<(Ticks, u32)>,
    /// In the order of their last events.
    lists: VecDeque<List>,
    /// Events in all lists, and how many there may be before the oldest lists are looked at.
    listed: usize,
    full_at: usize,
    /// The time of the last event in a list that was forgotten.
    forgotten: Option<Ticks>,
    /// The memory of forgotten lists.
    spare: Vec<Vec<Noted>>,
}

/// Events of one buffer, in order of time.
#[derive(Debug)]
struct List {
    buffer: (u32, u32),
    span: (Ticks, Ticks),
    events: Vec<Noted>,
    /// How many have been visited.
    visited: usize,
}

impl List {
    /// How many of its events come before a place.
    fn before(&self, place: Place) -> usize {
        if self.span.1 < place.time {
            return self.events.len();
        }
        let is_before = |event: &Noted| {
            (event.time, self.buffer, event.offset) < (place.time, place.buffer, place.offset)
        };
        self.events.partition_point(is_before)
    }

    /// How many of its events come before a moment.
    fn before_time(&self, time: Ticks) -> usize {
        match self.span {
            (_, last) if last < time => self.events.len(),
            (first, _) if first >= time => 0,
            _ => self.events.partition_point(|event| event.time < time),
        }
    }
}

/// What is remembered of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// There was such an event.
    Event,
    /// There was none.
    Nothing,
    /// It is too long ago.
    Forgotten,
}

impl Recent {
    /// Takes the next event.
    #[inline]
    pub(super) fn push(&mut self, time: Ticks, of: u32) {
        if self.single.len() == REMEMBERED {
            self.single.pop_front();
        }
        self.single.push_back((time, of));
    }

    /// Takes the events of a buffer that begins, and leaves an empty list in their place. They count from their own places
    /// on. `forget` gets what has not been visited of the lists that are too old to matter.
    pub(super) fn begin(
        &mut self,
        buffer: &BufferAt,
        events: &mut Vec<Noted>,
        mut forget: impl FnMut(&[Noted]),
    ) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let span = (first.time, last.time);
        self.listed += events.len();
        if self.listed > self.full_at || self.lists.len() >= MOST_LISTS {
            self.forget(buffer.time, &mut forget);
            self.full_at = 2 * self.listed.max(REMEMBERED);
        }
        let events = std::mem::replace(events, self.spare.pop().unwrap_or_default());
        // Most begin in the order in which they end; a quiet processor's buffer lasts longer than others.
        let longer = self.lists.iter().rev().take_while(|list| list.span.1 > span.1).count();
        self.lists
            .insert(self.lists.len() - longer, List { buffer: buffer.buffer, span, events, visited: 0 });
    }

    /// Forgets the lists behind whose last event there are enough others before `now`, and the oldest of too many.
    fn forget(&mut self, now: Ticks, forget: &mut impl FnMut(&[Noted])) {
        let is_enough = |lists: &VecDeque<List>, oldest: &List| {
            let later = lists.iter().filter(|list| list.span.0 > oldest.span.1 && list.span.1 < now);
            later.map(|list| list.events.len()).sum::<usize>() >= REMEMBERED
        };
        let mut too_many = if self.lists.len() < MOST_LISTS { 0 } else { MOST_LISTS / 4 };
        while let Some(oldest) = self.lists.front()
            && (too_many > 0 || is_enough(&self.lists, oldest))
        {
            let Some(mut oldest) = self.lists.pop_front() else { break };
            too_many = too_many.saturating_sub(1);
            self.listed -= oldest.events.len();
            self.forgotten = self.forgotten.max(Some(oldest.span.1));
            forget(oldest.events.get(oldest.visited..).unwrap_or_default());
            oldest.events.clear();
            self.spare.push(oldest.events);
        }
    }

    /// Gives the events of lists that have not been given yet, as far as they come before `now`; all of them without it.
    pub(super) fn visit(&mut self, now: Option<Place>, mut visit: impl FnMut(&[Noted])) {
        for list in self.lists.iter_mut().filter(|list| list.visited < list.events.len()) {
            let until = now.map_or(list.events.len(), |now| list.before(now)).max(list.visited);
            visit(list.events.get(list.visited..until).unwrap_or_default());
            list.visited = until;
        }
    }

    /// Whether there was an event at `time` for which `is_it` holds, before the place `now`.
    pub(super) fn at(&self, time: Ticks, now: Place, is_it: impl Fn(u32) -> bool) -> Memory {
        let single = &self.single;
        let from = partition_back(single.len(), |index| single.get(index).is_some_and(|(at, _)| *at < time));
        let of_moment = single.range(from..).take(AT_ONE_MOMENT).take_while(|(at, _)| *at == time);
        if of_moment.into_iter().any(|(_, of)| is_it(*of)) {
            return Memory::Event;
        }
        if self.forgotten.is_some_and(|last| time <= last) {
            return Memory::Forgotten;
        }
        let mut since = single.len() - from;
        let mut allowance = AT_ONE_MOMENT;
        for list in &self.lists {
            if since >= REMEMBERED {
                break;
            }
            let (from, until) = (list.before_time(time), list.before(now));
            let events = list.events.get(from..until).unwrap_or_default();
            let of_moment = events.iter().take(allowance).take_while(|event| event.time == time);
            if of_moment.inspect(|_| allowance -= 1).any(|event| is_it(event.of)) {
                return Memory::Event;
            }
            since += events.len();
        }
        if since >= REMEMBERED { Memory::Forgotten } else { Memory::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_LISTS, Memory, Noted, REMEMBERED, Recent};
    use crate::clock::Ticks;
    use crate::etl::digest::{BufferAt, Place};

    fn begin(recent: &mut Recent, number: u32, times: impl Iterator<Item = i64>) -> usize {
        let mut offsets = 0..;
        let note = |time| Noted { time: Ticks(time), of: number, offset: offsets.next().unwrap_or(0) };
        let mut notes: Vec<Noted> = times.map(note).collect();
        let span = (notes[0].time, notes[notes.len() - 1].time);
        let buffer = BufferAt { buffer: (0, number), processor: 0, time: span.0, span };
        recent.begin(&buffer, &mut notes, |_| ());
        assert!(notes.is_empty(), "the list is taken");
        recent.lists.iter().map(|list| list.events.len()).sum()
    }

    #[test]
    fn of_a_buffer_counts_what_came_before() {
        let mut recent = Recent::default();
        begin(&mut recent, 1, [10, 20, 20, 30].into_iter());
        begin(&mut recent, 2, [20, 40].into_iter());
        let at = |time, buffer, offset| Place { time: Ticks(time), buffer: (0, buffer), offset };
        let ask = |time, now, whose| recent.at(Ticks(time), now, |of| of == whose);
        assert_eq!(ask(20, at(25, 1, 9), 1), Memory::Event);
        assert_eq!(ask(20, at(25, 1, 9), 2), Memory::Event);
        assert_eq!(ask(20, at(20, 1, 9), 2), Memory::Nothing, "it comes after");
        assert_eq!(ask(20, at(20, 1, 1), 1), Memory::Nothing, "so does the second record of the first");
        assert_eq!(ask(20, at(20, 1, 2), 1), Memory::Event);
        assert_eq!(ask(15, at(99, 3, 0), 1), Memory::Nothing);
    }

    #[test]
    fn what_is_long_ago_is_forgotten_and_takes_no_memory() {
        let now = |time| Place { time: Ticks(time), buffer: (9, 9), offset: 0 };
        let (mut lists, mut single) = (Recent::default(), Recent::default());
        let (each, all) = (1_000, 5 * REMEMBERED as i64);
        let mut most = 0;
        for (number, first) in (0..).zip((0..all).step_by(each)) {
            let times = first..first + each as i64;
            times.clone().for_each(|time| single.push(Ticks(time), number));
            most = most.max(begin(&mut lists, number, times));
        }
        assert!(most <= 3 * REMEMBERED, "{most} are remembered");
        let end = all - all % each as i64 + each as i64;
        for ago in [1, 500, REMEMBERED as i64 - 1, REMEMBERED as i64, REMEMBERED as i64 + 1, all] {
            let time = Ticks(end - ago);
            for is_it in [true, false] {
                let answers = [&lists, &single].map(|recent| recent.at(time, now(end), |_| is_it));
                if answers[0] != Memory::Event {
                    assert_eq!(answers[0], answers[1], "{ago} ago");
                }
                if ago < REMEMBERED as i64 {
                    assert_eq!(answers[1], if is_it { Memory::Event } else { Memory::Nothing }, "{ago} ago");
                }
            }
        }
    }

    #[test]
    fn a_list_that_lasts_keeps_no_others() {
        let mut recent = Recent::default();
        let (each, buffers) = (1_000, 500);
        begin(&mut recent, 0, [0, each * buffers].into_iter());
        let mut most = 0;
        for number in 1..buffers {
            most = most.max(begin(&mut recent, number as u32, number * each..(number + 1) * each));
        }
        assert!(most <= 3 * REMEMBERED, "{most} are remembered");
        let now = Place { time: Ticks(each * buffers - 1), buffer: (0, 0), offset: 0 };
        assert_eq!(recent.at(Ticks(each * buffers - 500), now, |_| false), Memory::Nothing);
        assert_eq!(recent.at(Ticks(1), now, |_| false), Memory::Forgotten);
    }

    #[test]
    fn buffers_with_an_event_each_do_not_add_up() {
        let mut recent = Recent::default();
        for number in 0..3 * MOST_LISTS as u32 {
            begin(&mut recent, number, std::iter::once(i64::from(number)));
            assert!(recent.lists.len() <= MOST_LISTS);
        }
        let now = Place { time: Ticks(i64::MAX), buffer: (0, 0), offset: 0 };
        let newest = 3 * MOST_LISTS as i64 - 1;
        assert_eq!(recent.at(Ticks(newest), now, |_| true), Memory::Event);
        assert_eq!(recent.at(Ticks(newest), now, |_| false), Memory::Nothing);
        assert_eq!(recent.at(Ticks(5), now, |_| false), Memory::Forgotten);
    }
}
