//! Ids that are used again: who had a process or thread id at a moment.
//!
//! Windows gives the id of an ended process or thread to a new one, within one trace too. Starts and ends may be
//! missing on either side: what ran before the session is told by the start rundown, or only by the end rundown, or
//! only by its end.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::event::Ticks;

/// The life of one process or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// When it began; `None` if it was there before the recording.
    pub start: Option<Ticks>,
    /// When it ended; `None` if it outlived the recording.
    pub end: Option<Ticks>,
}

/// Lives by id. Events must be told in order of time.
#[derive(Debug)]
pub(super) struct Lifetimes {
    lives: Vec<Life>,
    /// Indices of the lives of each id, in order of their starts.
    by_id: FxHashMap<u32, VecDeque<u32>>,
    /// How long before its start record something may already be seen.
    early: i64,
}

/// An event may carry a time shortly before the start record of its process (TraceLog allows the same).
pub(super) const EARLY_SECONDS: f64 = 0.010;

impl Lifetimes {
    pub(super) fn new(early_ticks: i64) -> Self {
        Lifetimes { lives: Vec::new(), by_id: FxHashMap::default(), early: early_ticks }
    }

    pub(super) fn life(&self, index: u32) -> Option<Life> {
        self.lives.get(index as usize).copied()
    }

    /// The latest life of `id`.
    pub(super) fn latest(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id)?.back().copied()
    }

    /// The latest life of `id` if it has not ended.
    pub(super) fn live(&self, id: u32) -> Option<u32> {
        self.latest(id).filter(|index| self.life(*index).is_some_and(|life| life.end.is_none()))
    }

    /// It starts at `time`. A life of the same id whose end was lost ends here.
    pub(super) fn start(&mut self, id: u32, time: Ticks) -> u32 {
        if let Some(live) = self.live(id) {
            self.set_end(live, time);
        }
        self.push(id, Life { start: Some(time), end: None })
    }

    /// It is seen alive by a rundown: the live one, or one that began unseen.
    pub(super) fn seen(&mut self, id: u32) -> u32 {
        match self.latest(id) {
            Some(index) => match self.life(index).and_then(|life| life.end) {
                None => index,
                Some(end) => self.push(id, Life { start: Some(end), end: None }),
            },
            None => self.push(id, Life { start: None, end: None }),
        }
    }

    /// It ends at `time`. A second end of the same life is left alone (threads report theirs twice at times).
    pub(super) fn end(&mut self, id: u32, time: Ticks) -> u32 {
        match self.latest(id) {
            Some(index) => {
                if self.life(index).is_some_and(|life| life.end.is_none()) {
                    self.set_end(index, time);
                }
                index
            }
            None => self.push(id, Life { start: None, end: Some(time) }),
        }
    }

    /// It was there at some time between `from` and `until`, as the system's own list says: the life that events report
    /// of that time; else one between the lives that they report.
    pub(super) fn there(&mut self, id: u32, from: Ticks, until: Ticks) -> u32 {
        let lives = &self.lives;
        let life = |index: &u32| lives.get(*index as usize).copied();
        let of_id = self.by_id.entry(id).or_default();
        let place = of_id.partition_point(|index| life(index).is_some_and(|life| life.start <= Some(until)));
        let before = place.checked_sub(1).and_then(|place| of_id.get(place));
        let end = before.and_then(|index| life(index)?.end);
        if let Some(index) = before
            && end.is_none_or(|end| from < end)
        {
            return *index;
        }
        let life = Life { start: end, end: of_id.get(place).and_then(|index| life(index)?.start) };
        let index = self.lives.len() as u32;
        of_id.insert(place, index);
        self.lives.push(life);
        index
    }

    /// One that ended before all others of its id.
    pub(super) fn before_all(&mut self, id: u32, end: Ticks) -> u32 {
        let index = self.add(Life { start: None, end: Some(end) });
        self.by_id.entry(id).or_default().push_front(index);
        index
    }

    /// A life that no event told of: for an id that is only mentioned.
    pub(super) fn unseen(&mut self, id: u32) -> u32 {
        self.before_all(id, Ticks(i64::MIN))
    }

    /// Whose `id` it was at `time`. An ended life keeps its id until the next one begins.
    pub(super) fn at(&self, id: u32, time: Ticks) -> Option<u32> {
        let of_id = self.by_id.get(&id)?;
        if of_id.len() == 1 {
            let soon = Some(Ticks(time.0.saturating_add(self.early)));
            return of_id
                .front()
                .copied()
                .filter(|only| self.life(*only).is_some_and(|life| life.start <= soon));
        }
        let last_by = |time: Ticks| {
            let starts = |index: &u32| self.life(*index).is_some_and(|life| life.start <= Some(time));
            of_id.partition_point(starts).checked_sub(1).and_then(|place| of_id.get(place)).copied()
        };
        let soon = last_by(Ticks(time.0.saturating_add(self.early)))?;
        // One that starts within the tolerance owns the moment only if nobody else is alive.
        let now = last_by(time);
        match now {
            Some(now) if self.life(now).is_some_and(|life| life.end.is_none_or(|end| time < end)) => {
                Some(now)
            }
            _ => Some(soon),
        }
    }

    /// The first life of `id`.
    pub(super) fn first(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id)?.front().copied()
    }

    fn push(&mut self, id: u32, life: Life) -> u32 {
        let index = self.add(life);
        self.by_id.entry(id).or_default().push_back(index);
        index
    }

    fn add(&mut self, life: Life) -> u32 {
        self.lives.push(life);
        (self.lives.len() - 1) as u32
    }

    /// No life ends before it started: the starts of its successors stay in order.
    fn set_end(&mut self, index: u32, time: Ticks) {
        if let Some(life) = self.lives.get_mut(index as usize) {
            life.end = Some(life.start.map_or(time, |start| start.max(time)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Life, Lifetimes};
    use crate::event::Ticks;

    #[test]
    fn ids_are_used_again() {
        let mut lives = Lifetimes::new(10);
        let old = lives.seen(7);
        assert_eq!(lives.end(7, Ticks(100)), old);
        assert_eq!(lives.end(7, Ticks(101)), old, "a second end changes nothing");
        let new = lives.start(7, Ticks(200));
        assert_eq!(lives.life(old), Some(Life { start: None, end: Some(Ticks(100)) }));
        assert_eq!(lives.at(7, Ticks(50)), Some(old));
        assert_eq!(lives.at(7, Ticks(150)), Some(old), "the last owner keeps an unused id");
        assert_eq!(lives.at(7, Ticks(189)), Some(old));
        assert_eq!(lives.at(7, Ticks(190)), Some(new), "seen just before its start record");
        assert_eq!(lives.at(7, Ticks(900)), Some(new));
        assert_eq!(lives.at(8, Ticks(0)), None);
    }

    #[test]
    fn a_live_owner_is_not_robbed_by_the_tolerance() {
        let mut lives = Lifetimes::new(10);
        let old = lives.seen(7);
        let new = lives.start(7, Ticks(200)); // the end of the old one was lost
        assert_eq!(lives.at(7, Ticks(195)), Some(old));
        assert_eq!(lives.at(7, Ticks(200)), Some(new));
    }

    #[test]
    fn an_end_before_its_start_leaves_the_order() {
        let mut lives = Lifetimes::new(10);
        lives.start(7, Ticks(100));
        lives.end(7, Ticks(i64::MIN));
        let second = lives.seen(7);
        assert_eq!(lives.life(second), Some(Life { start: Some(Ticks(100)), end: None }));
        let third = lives.start(7, Ticks(300));
        assert_eq!(lives.at(7, Ticks(100)), Some(second));
        assert_eq!(lives.at(7, Ticks(300)), Some(third));
        assert_eq!(lives.at(7, Ticks(5)), None);
    }

    #[test]
    fn a_list_of_the_system_fills_what_no_event_reports() {
        let life = |lives: &Lifetimes, index| lives.life(index).unwrap();
        let (from, until) = (Ticks(100), Ticks(110));
        let mut lives = Lifetimes::new(10);
        let index = lives.there(7, from, until);
        assert_eq!(life(&lives, index), Life { start: None, end: None }, "no event at all");
        assert_eq!(lives.there(7, from, until), index);

        // It starts, or ends, while the list is made; or was there all the time.
        for (id, start, end) in [(1, Some(105), None), (2, None, Some(105)), (3, None, None)] {
            let known = match start {
                Some(start) => lives.start(id, Ticks(start)),
                None => lives.seen(id),
            };
            end.map(|end| lives.end(id, Ticks(end)));
            assert_eq!(lives.there(id, from, until), known);
        }

        // Events report only those before and after it.
        let first = lives.end(4, Ticks(50));
        let last = lives.start(4, Ticks(200));
        let index = lives.there(4, from, until);
        assert_eq!(life(&lives, index), Life { start: Some(Ticks(50)), end: Some(Ticks(200)) });
        assert_eq!([40, 100, 250].map(|time| lives.at(4, Ticks(time))), [first, index, last].map(Some));
    }

    #[test]
    fn only_an_end_or_a_late_start() {
        let mut lives = Lifetimes::new(10);
        let ended = lives.end(1, Ticks(50));
        assert_eq!(lives.at(1, Ticks(5)), Some(ended));
        let started = lives.start(2, Ticks(50));
        assert_eq!(lives.at(2, Ticks(5)), None);
        assert_eq!(lives.at(2, Ticks(45)), Some(started));
        assert_eq!(lives.first(2), Some(started));
    }
}
