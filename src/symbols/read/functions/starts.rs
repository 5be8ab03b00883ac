//! Function starts in code: all that is reached from those that the image lists.

use super::code::{Code, Flow};

/// Functions begin at multiples of this where there is padding between them.
pub(super) const ALIGNMENT: u32 = 16;

/// What linkers for Windows fill the room between functions with: `int3`.
pub(super) const PADDING: u8 = 0xcc;

/// The starts of `code`, ascending: `listed` ones, what their code calls, what lies behind padding, and so on.
pub(super) fn find(code: &Code<'_>, listed: Vec<u32>, reached: Vec<u32>) -> Vec<u32> {
    let mut search = Search {
        code,
        reached: Reached::new(code),
        open: listed.iter().copied().chain(reached).collect(),
        certain: listed.into_iter().filter(|start| code.has(*start)).collect(),
        called: Vec::new(),
    };
    while let Some(at) = search.open.pop() {
        search.follow(at);
    }
    settled(search.certain, search.called)
}

struct Search<'c, 'a> {
    code: &'c Code<'a>,
    reached: Reached,
    /// Where to go on.
    open: Vec<u32>,
    certain: Vec<u32>,
    called: Vec<Call>,
}

/// Ordered by target, then by the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    target: u32,
    from: u32,
}

impl Search<'_, '_> {
    /// Follows code to where it goes away.
    fn follow(&mut self, at: u32) {
        for instruction in self.code.instructions(at) {
            if !self.reached.mark(instruction.at) {
                return;
            }
            match instruction.flow {
                Flow::Next => {}
                Flow::Branch(target) => self.open.push(target),
                Flow::Call(target) => {
                    // `call $+5` asks where it is.
                    if target != instruction.end && self.code.has(target) {
                        self.called.push(Call { target, from: instruction.at });
                        self.open.push(target);
                    }
                }
                Flow::Jump(target) => {
                    self.open.push(target);
                    self.jump_table(instruction.at);
                    return self.behind_padding(instruction.end);
                }
                Flow::Switch(table) => {
                    // Each entry once, however many jumps use it.
                    let entries = std::iter::successors(Some(table), |at| at.checked_add(4));
                    for (at, target) in entries.zip(self.code.switch(table)) {
                        if !self.reached.mark(at) {
                            break;
                        }
                        self.open.push(target);
                    }
                    return;
                }
                Flow::Away => return self.behind_padding(instruction.end),
                Flow::Trap => return,
            }
        }
    }

    /// Padding at the end of a function shows where the next one begins. Behind a trap it does not: calls that never
    /// come back have one behind them, within functions.
    fn behind_padding(&mut self, end: u32) {
        let Some(start) = end.checked_next_multiple_of(ALIGNMENT) else { return };
        let padding = self.code.between(end, start).filter(|bytes| !bytes.is_empty());
        let is_padded = padding.is_some_and(|bytes| bytes.iter().all(|byte| *byte == PADDING));
        let goes_on =
            self.code.bytes_from(start).and_then(<[u8]>::first).is_some_and(|byte| *byte != PADDING);
        if is_padded && goes_on {
            self.certain.push(start);
            self.open.push(start);
        }
    }

    /// Incremental linking calls each function by way of a table of jumps: all in it are starts, and all that it leads
    /// to.
    fn jump_table(&mut self, at: u32) {
        const JUMP: u32 = 5;
        const FEWEST: usize = 8;
        let code = self.code;
        let jump = move |at: u32| {
            let [0xe9, a, b, c, d] = *code.bytes_from(at)?.first_chunk()? else { return None };
            let target = at.wrapping_add(JUMP).wrapping_add(u32::from_le_bytes([a, b, c, d]));
            code.has(target).then_some((at, target))
        };
        let step = |step: fn(u32, u32) -> Option<u32>| {
            let places = std::iter::successors(step(at, JUMP), move |at| step(*at, JUMP));
            places.map_while(jump)
        };
        let (before, behind) = (step(u32::checked_sub), step(u32::checked_add));
        if before.clone().take(FEWEST).count() + behind.clone().take(FEWEST).count() < FEWEST {
            return;
        }
        self.certain.extend(jump(at).into_iter().flat_map(|(at, target)| [at, target]));
        for side in [Box::new(before) as Box<dyn Iterator<Item = (u32, u32)>>, Box::new(behind)] {
            for (at, target) in side {
                if !self.reached.mark(at) {
                    break;
                }
                self.certain.extend([at, target]);
                self.open.push(target);
            }
        }
    }
}

/// All starts, ascending. What is called is one if some call comes from another function: a `finally` block is called too,
/// by its own function.
fn settled(mut starts: Vec<u32>, mut calls: Vec<Call>) -> Vec<u32> {
    /// Real code is settled after four.
    const MOST_ROUNDS: usize = 32;
    starts.sort_unstable();
    starts.dedup();
    calls.sort_unstable();
    // The first and the last call say it.
    let targets = calls.chunk_by(|a, b| a.target == b.target);
    let mut open: Vec<(u32, u32, u32)> = targets
        .filter_map(|calls| Some((calls.first()?.target, calls.first()?.from, calls.last()?.from)))
        .collect();
    for _ in 0..MOST_ROUNDS {
        let mut found = Vec::new();
        open.retain(|&(target, first, last)| {
            let next = starts.partition_point(|start| *start <= target);
            let before = next.checked_sub(1).and_then(|index| starts.get(index)).copied().unwrap_or(0);
            let behind = starts.get(next).copied().unwrap_or(u32::MAX);
            if before != target && (first < before || last >= behind) {
                found.push(target);
                return false;
            }
            before != target
        });
        if found.is_empty() {
            break;
        }
        starts.extend(found);
        starts.sort_unstable();
    }
    starts
}

/// One bit for each byte of code.
struct Reached {
    sections: Vec<(u32, Vec<u64>)>,
}

impl Reached {
    fn new(code: &Code<'_>) -> Self {
        let bits = |(rva, bytes): &(u32, &[u8])| (*rva, vec![0; bytes.len().div_ceil(64)]);
        Reached { sections: code.sections().iter().map(bits).collect() }
    }

    /// Marks a byte; false if it is no code or was marked before.
    fn mark(&mut self, rva: u32) -> bool {
        let bits = self.sections.iter_mut().find_map(|(start, bits)| {
            let at = rva.checked_sub(*start)?;
            bits.get_mut(at as usize / 64).map(|bits| (bits, 1 << (at % 64)))
        });
        bits.is_some_and(|(bits, bit)| {
            let is_new = *bits & bit == 0;
            *bits |= bit;
            is_new
        })
    }
}
