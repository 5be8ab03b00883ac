//! Functions that call themselves, directly or in a round.

/// The longest round that is recognised.
const LONGEST: usize = 16;

/// Leaves of what is there several times in a row, one entry or a round of them, the last: the leaf stays what it was.
/// Entries with equal keys are the same.
pub(super) fn fold<E: Copy, K: Copy + Eq>(path: &mut Vec<E>, key: impl Fn(E) -> K) {
    let mut folded: Vec<E> = Vec::with_capacity(path.len());
    let mut keys: Vec<K> = Vec::with_capacity(path.len());
    for entry in path.iter() {
        folded.push(*entry);
        keys.push(key(*entry));
        let length = keys.len();
        let is_round = |round: &usize| {
            let (before, last) = (length.checked_sub(2 * round), length - round);
            before.is_some_and(|before| keys.get(before..last) == keys.get(last..))
        };
        if let Some(round) = (1..=LONGEST.min(length)).find(is_round) {
            folded.drain(length - 2 * round..length - round);
            keys.truncate(length - round);
        }
    }
    *path = folded;
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn rounds_are_there_once() {
        for (stack, folded) in [
            ("ABC", "ABC"),
            ("ARRRB", "ARB"),
            ("ARQRQRB", "ARQRB"),
            ("ARQRQB", "ARQB"),
            ("XYZXYZXYZ", "XYZ"),
            ("AABAAB", "AB"),
            ("", ""),
        ] {
            let mut path: Vec<char> = stack.chars().collect();
            fold(&mut path, |entry| entry);
            assert_eq!(path.iter().collect::<String>(), folded, "{stack}");
        }
    }

    #[test]
    fn of_what_is_the_same_the_last_is_left() {
        // A function at several of its lines.
        let mut path = vec![("a", 1), ("r", 5), ("q", 2), ("r", 6), ("q", 3), ("r", 7), ("r", 8)];
        fold(&mut path, |(function, _)| function);
        assert_eq!(path, [("a", 1), ("r", 6), ("q", 3), ("r", 8)]);
    }
}
