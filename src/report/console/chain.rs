//! Which frames of a chain of single calls are worth a line.
//!
//! A stack is mostly chains: one caller, one callee, a hundred times. Of a chain one wants to see how it begins, where it
//! ends, and whatever happens between: a frame that uses time itself, or one in which a share goes elsewhere. The rest
//! is one line.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::report::label::Label;
use crate::report::text::{count, one_line};

/// What is known of a frame of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) struct Link {
    /// What is in it and below it.
    pub(in crate::report) inclusive: i64,
    /// What is in it.
    pub(in crate::report) exclusive: i64,
    /// A process, a thread or a remark: no code.
    pub(in crate::report) heading: bool,
}

/// A part of a chain, by the places of its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) enum Piece {
    /// A frame with a line of its own.
    Shown(usize),
    /// Frames that share one line.
    Folded(Range<usize>),
}

/// Fewer frames than this keep their lines: folding two saves one line, and hides two names.
const FEWEST: usize = 3;

/// A folded chain names this many modules.
const MODULES: usize = 6;

/// Folds a chain. Shown are its ends, headings with the frame below them, frames with at least `notable` of their own, and
/// frames that pass on less than nine tenths of what the last line above passed on.
pub(in crate::report) fn fold(chain: &[Link], notable: f64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut folded = 0..0;
    let mut passed_on = 0;
    let mut below_heading = true;
    for (place, link) in chain.iter().enumerate() {
        let goes_on = chain.get(place + 1).map_or(0, |next| next.inclusive.unsigned_abs());
        let loses = u128::from(goes_on) * 10 < u128::from(passed_on) * 9;
        let own = link.exclusive != 0 && link.exclusive.unsigned_abs() as f64 >= notable;
        let last = place + 1 == chain.len();
        if below_heading || link.heading || own || loses || last {
            close(&mut pieces, folded);
            pieces.push(Piece::Shown(place));
            folded = place + 1..place + 1;
            passed_on = goes_on;
        } else {
            folded.end = place + 1;
        }
        below_heading = link.heading;
    }
    close(&mut pieces, folded);
    pieces
}

/// The line of folded frames: how many there are, and of which modules.
pub(in crate::report) fn folded_text<'l>(frames: impl Iterator<Item = Label<'l>>) -> String {
    let mut known = FxHashSet::default();
    let (mut number, mut modules) = (0_u64, Vec::new());
    for label in frames {
        number += 1;
        if let Some(module) = label.module()
            && known.insert(module.to_owned())
            && modules.len() < MODULES
        {
            modules.push(one_line(module).into_owned());
        }
    }
    let mut text = format!("⋮ {} frames", count(number));
    if !modules.is_empty() {
        text += &format!(": {}", modules.join(", "));
    }
    if known.len() > modules.len() {
        let more = known.len() - modules.len();
        let noun = if more == 1 { "module" } else { "modules" };
        text += &format!(" and {} more {noun}", count(more as u64));
    }
    text
}

/// Ends a run of frames that are not worth a line.
fn close(pieces: &mut Vec<Piece>, folded: Range<usize>) {
    if folded.len() < FEWEST {
        pieces.extend(folded.map(Piece::Shown));
    } else {
        pieces.push(Piece::Folded(folded));
    }
}

#[cfg(test)]
mod tests {
    use super::Piece::{Folded, Shown};
    use super::{Link, Piece, fold};

    fn links(chain: &[(i64, i64)]) -> Vec<Link> {
        chain
            .iter()
            .map(|(inclusive, exclusive)| Link {
                inclusive: *inclusive,
                exclusive: *exclusive,
                heading: false,
            })
            .collect()
    }

    /// With 10 as notable.
    fn folded(chain: &[(i64, i64)]) -> Vec<Piece> {
        fold(&links(chain), 10.0)
    }

    #[test]
    fn ends_are_shown() {
        assert_eq!(folded(&[(9, 9)]), [Shown(0)]);
        assert_eq!(folded(&[(100, 0); 5]), [Shown(0), Folded(1..4), Shown(4)]);
        assert_eq!(folded(&[(100, 0); 4]), [0, 1, 2, 3].map(Shown), "two are not worth it");
        assert_eq!(folded(&[]), []);
    }

    #[test]
    fn frames_with_time_of_their_own_are_shown() {
        let mut chain = [(100, 0); 9];
        chain[4] = (100, 10);
        chain[6] = (90, 9);
        assert_eq!(folded(&chain), [Shown(0), Folded(1..4), Shown(4), Folded(5..8), Shown(8)]);
    }

    #[test]
    fn frames_that_lose_a_share_are_shown() {
        // A tenth stays: 90 of 100 go on. Behind the frame with 90 only 80 do.
        let chain =
            [(100, 0), (100, 0), (90, 0), (90, 0), (90, 0), (80, 0), (80, 0), (80, 0), (80, 0), (80, 0)];
        assert_eq!(folded(&chain), [Shown(0), Folded(1..4), Shown(4), Folded(5..9), Shown(9)]);
        // Slowly too.
        let slowly: Vec<(i64, i64)> = (0..20).map(|step| (100 - 3 * step, 0)).collect();
        let shown = folded(&slowly).into_iter().filter(|piece| matches!(piece, Shown(_))).count();
        assert!(shown > 5, "{shown}");
    }

    #[test]
    fn headings_are_shown_and_what_begins_below_them() {
        let mut chain = links(&[(100, 0); 8]);
        chain[0].heading = true;
        assert_eq!(fold(&chain, 10.0), [Shown(0), Shown(1), Folded(2..7), Shown(7)]);
    }

    #[test]
    fn every_frame_is_in_one_piece() {
        for length in 0..30_i64 {
            let chain: Vec<(i64, i64)> = (0..length).map(|at| (200 - at * at / 5, at * 7 % 11)).collect();
            let mut next = 0;
            for piece in folded(&chain) {
                let places = match piece {
                    Shown(place) => place..place + 1,
                    Folded(places) => places,
                };
                assert_eq!(places.start, next);
                next = places.end;
            }
            assert_eq!(next, chain.len());
        }
    }
}
