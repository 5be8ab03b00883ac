//! The part of a stack that has to do with one function.

use crate::profile::FrameSet;
use crate::profile::frame::Entry;

/// Leaves out the stacks that a function is not in, and cuts the others. A stack that it is in several times counts
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// The function, by all of its frames; or several functions, which count as one.
    pub functions: FrameSet,
    /// What is left of a stack.
    pub part: Part,
}

/// A part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, without what lies between the outermost call of the function and the innermost.
    Through,
    /// From the outermost call on.
    From,
    /// Down to the outermost call.
    Callers,
}

impl Focus {
    /// True for a frame of the function.
    pub(super) fn is_at(&self, entry: Entry) -> bool {
        entry.frame().is_some_and(|frame| self.functions.contains(frame))
    }

    /// Cuts a path that starts with the root. False if the function is not in it.
    pub(super) fn cut(&self, path: &mut Vec<Entry>) -> bool {
        let first = path.iter().position(|entry| self.is_at(*entry));
        let last = path.iter().rposition(|entry| self.is_at(*entry));
        let Some((first, last)) = first.zip(last) else { return false };
        match self.part {
            Part::Through => drop(path.drain(first + 1..=last)),
            Part::From => drop(path.drain(..first)),
            Part::Callers => path.truncate(first + 1),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Focus, Part};
    use crate::profile::frame::{Entry, FrameId, Remark};

    #[test]
    fn a_stack_is_cut_at_its_function_and_counts_once() {
        let frames = |numbers: &[u32]| numbers.iter().map(|n| Entry::Frame(FrameId(*n))).collect::<Vec<_>>();
        // main 1, F 7, Q 2, F 7, leaf 3.
        for (part, left) in
            [(Part::Through, &[1, 7, 3][..]), (Part::From, &[7, 2, 7, 3]), (Part::Callers, &[1, 7])]
        {
            let focus = Focus { functions: [FrameId(7)].into_iter().collect(), part };
            let mut path = frames(&[1, 7, 2, 7, 3]);
            assert!(focus.cut(&mut path));
            assert_eq!(path, frames(left), "{part:?}");
            let mut alone = frames(&[7]);
            assert!(focus.cut(&mut alone));
            assert_eq!(alone, frames(&[7]), "{part:?}");
            assert!(!focus.cut(&mut frames(&[1, 2])));
            assert!(!focus.cut(&mut vec![Entry::Remark(Remark::NoStack)]));
        }
    }
}
