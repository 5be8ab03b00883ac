//! Functions that no table gives: found by following the code.
//!
//! Starts are what the image lists and what reached code calls. A function is what its start reaches by branches,
//! never beyond the next start.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::code::{Code, Flow};
use super::starts::{self, ALIGNMENT, PADDING};

/// Of one table.
const MOST_TARGETS: usize = 1024;

const NOP: u8 = 0x90;
const FRAME: [u8; 3] = [0x55, 0x8b, 0xec];

/// The functions of an image's code.
#[derive(Debug)]
pub(super) struct Followed<'a> {
    code: Code<'a>,
    starts: Vec<u32>,
    /// The last answer: callers ask for addresses in ascending order.
    last: Cell<Option<(u32, u32)>>,
}

impl<'a> Followed<'a> {
    /// Follows all code that `seeds` reach.
    pub(super) fn new(code: Code<'a>, certain: Vec<u32>, seeds: Vec<u32>) -> Self {
        let starts = starts::find(&code, certain, seeds);
        Followed { code, starts, last: Cell::new(None) }
    }

    /// The last start in `range`.
    pub(super) fn last_start(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let next = self.starts.partition_point(|start| start <= range.end());
        self.starts.get(next.checked_sub(1)?).copied().filter(|start| range.contains(start))
    }

    /// The function that holds `rva`.
    pub(super) fn at(&self, rva: u32) -> Option<Range<u32>> {
        let next = self.starts.partition_point(|start| *start <= rva);
        let start = *self.starts.get(next.checked_sub(1)?)?;
        let end = match self.last.get() {
            Some((last, end)) if last == start => end,
            _ => self.end_of(start, self.starts.get(next).copied().unwrap_or(u32::MAX)),
        };
        self.last.set(Some((start, end)));
        (rva < end).then_some(start..end)
    }

    /// Where the function at `start` ends, at `bound` at the latest.
    fn end_of(&self, start: u32, bound: u32) -> u32 {
        let mut runs = Runs {
            code: &self.code,
            within: start..bound,
            runs: BTreeMap::new(),
            branches: Vec::new(),
            jumps: Vec::new(),
        };
        runs.follow(start);
        for _ in 0..MOST_ROUNDS {
            let end = runs.end();
            let inside = runs.jumps.iter().map(|(_, target)| *target).filter(|target| *target < end);
            let inside: Vec<u32> = inside.filter(|target| !runs.has(*target)).collect();
            if inside.is_empty() {
                return end;
            }
            inside.into_iter().for_each(|target| runs.follow(target));
        }
        runs.end()
    }
}

/// How often jumps within a function may lead to code that has more of them.
const MOST_ROUNDS: usize = 8;

/// Branches and jumps of one function. Real ones have thousands at most.
const MOST_EDGES: usize = 1 << 16;

/// The code that one function was seen to reach.
struct Runs<'c, 'a> {
    code: &'c Code<'a>,
    within: Range<u32>,
    /// Pieces without a gap: the end of each by its start.
    runs: BTreeMap<u32, u32>,
    /// Branches from here to there.
    branches: Vec<(u32, u32)>,
    /// The same of unconditional jumps, which may lead to another function.
    jumps: Vec<(u32, u32)>,
}

impl Runs<'_, '_> {
    fn follow(&mut self, start: u32) {
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if self.has(at) || self.branches.len() + self.jumps.len() > MOST_EDGES {
                continue;
            }
            let next = self.runs.range(at..).next().map_or(self.within.end, |(start, _)| *start);
            let mut end = at;
            for instruction in self.code.instructions(at) {
                if instruction.at >= next || instruction.end > self.within.end {
                    break;
                }
                if self.is_frame(instruction.at) {
                    self.within.end = self.within.end.min(instruction.at);
                    break;
                }
                end = instruction.end;
                match instruction.flow {
                    Flow::Next => {}
                    Flow::Call(_) if self.is_padded(end) => break,
                    Flow::Call(_) => {}
                    Flow::Branch(target) if self.within.contains(&target) => {
                        self.branches.push((instruction.at, target));
                        open.push(target);
                    }
                    Flow::Branch(_) => {}
                    Flow::Switch(table) => {
                        let targets = self.code.switch(table).take(MOST_TARGETS);
                        let inside = targets.filter(|target| self.within.contains(target));
                        self.jumps.extend(inside.map(|target| (instruction.at, target)));
                        break;
                    }
                    // No compiler writes a jump to the next instruction: there another function begins.
                    Flow::Jump(target) if target == end => {
                        self.within.end = self.within.end.min(end);
                        break;
                    }
                    Flow::Jump(target) => {
                        if self.within.contains(&target) {
                            self.jumps.push((instruction.at, target));
                        }
                        break;
                    }
                    Flow::Away | Flow::Trap => break,
                }
            }
            self.runs.insert(at, end);
        }
    }

    fn has(&self, rva: u32) -> bool {
        self.runs.range(..=rva).next_back().is_some_and(|(_, end)| rva < *end)
    }

    /// Whether nothing but `nop`s follow up to where functions begin: a call in front of them does not come back.
    fn is_padded(&self, end: u32) -> bool {
        let next = end.checked_next_multiple_of(ALIGNMENT);
        let nops = next.and_then(|next| self.code.between(end, next)).unwrap_or_default();
        !nops.is_empty() && nops.iter().all(|byte| *byte == NOP)
    }

    /// Whether a frame is set up, `push ebp; mov ebp, esp`, and not by the function's own first instructions: assembly
    /// may fall into another function.
    fn is_frame(&self, at: u32) -> bool {
        const FIRST_INSTRUCTIONS: u32 = 8;
        at.saturating_sub(self.within.start) > FIRST_INSTRUCTIONS
            && self.code.between(at, at.saturating_add(3)).is_some_and(|bytes| bytes == FRAME)
    }

    /// Whether a function of x86 may begin here: with room on the stack, or with a frame.
    fn is_prologue(&self, start: u32) -> bool {
        let bytes = self.code.bytes_from(start).unwrap_or_default();
        [&FRAME[..], &[0x83, 0xec], &[0x81, 0xec]].iter().any(|first| bytes.starts_with(first))
    }

    /// The end of the last piece that no border separates from the start.
    fn end(&self) -> u32 {
        let mut edges: Vec<(u32, u32)> = self.branches.iter().chain(&self.jumps).copied().collect();
        edges.retain(|(_, to)| *to > self.within.start && self.has(*to));
        edges.sort_unstable();
        // Of each edge and those behind it, how far back one goes.
        let mut back: Vec<u32> = edges.iter().map(|(_, to)| *to).collect();
        for index in (1..back.len()).rev() {
            if let Some([before, behind]) = back.get_mut(index - 1..=index) {
                *before = (*before).min(*behind);
            }
        }
        let (mut end, mut edge, mut ahead) = (self.within.start, 0, 0);
        for (start, run_end) in &self.runs {
            while let Some((_, to)) = edges.get(edge).filter(|(from, _)| from < start) {
                ahead = if self.is_prologue(*to) { ahead } else { to.max(&ahead).to_owned() };
                edge += 1;
            }
            let is_crossed = ahead > *start || back.get(edge).is_some_and(|to| to < start);
            if *start > self.within.start && self.is_border(end, *start, is_crossed) {
                break;
            }
            end = end.max(*run_end);
        }
        end.min(self.within.end)
    }

    /// Whether a function ends at `end` and another begins at `start`: between the two is padding, or nothing, and no
    /// branch but to `start`, which is what assembly does to go on in another function.
    fn is_border(&self, end: u32, start: u32, is_crossed: bool) -> bool {
        let all = |byte: u8| {
            let between = self.code.between(end, start);
            between.is_some_and(|bytes| bytes.iter().all(|other| *other == byte))
        };
        let is_aligned = start.is_multiple_of(ALIGNMENT);
        let is_padded = is_aligned && end < start && all(PADDING);
        let is_near = end == start || (end < start && all(NOP));
        is_padded || (is_near && !is_crossed && (is_aligned || self.is_prologue(start)))
    }
}
