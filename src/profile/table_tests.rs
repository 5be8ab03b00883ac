//! Tables of trees made by hand. Every expected number is counted from the list of stacks above it.

use super::Row;
use crate::profile::{Arranged, Balance, CallTree, Cut};

type Stack = (&'static [&'static str], i64);

/// A sample is worth 10 each.
fn arranged(stacks: &[Stack]) -> Arranged<&'static str> {
    let tree = |worth| CallTree::new(stacks.iter().map(|(stack, samples)| (stack.to_vec(), samples * worth)));
    let (counts, values) = (tree(1), tree(10));
    of(counts, values)
}

fn of<E>(counts: CallTree<E>, values: CallTree<E>) -> Arranged<E> {
    let (groups, gave_up) = (Vec::new(), Vec::new());
    let (balance, cut) = (Balance::default(), Cut::default());
    let (left_out, ends) = (Vec::new(), Vec::new());
    let values = (&values).into();
    Arranged { counts, values, groups, balance, cut, gave_up, left_out, ends }
}

/// Key, exclusive and inclusive, by key; the values must be ten times as much.
fn shown<K: Clone + Ord>(rows: &[Row<K>]) -> Vec<(K, i64, i64)> {
    let mut shown: Vec<_> = rows.iter().map(|row| (row.key.clone(), row.exclusive, row.inclusive)).collect();
    for row in rows {
        assert_eq!((row.exclusive_value, row.inclusive_value), (row.exclusive * 10, row.inclusive * 10));
    }
    shown.sort();
    shown
}

/// `f` calls itself directly, through `g`, and ends as `f` and as `g`.
const RECURSION: &[Stack] = &[
    (&["p", "f", "f", "g"], 1),
    (&["p", "f", "g", "f"], 2),
    (&["p", "f", "f", "f"], 4),
    (&["p", "h"], 8),
    (&["p", "h", "f"], 16),
];

#[test]
fn a_sample_counts_once_in_a_row_however_often_its_stack_has_the_key() {
    let rows = arranged(RECURSION).table(Some);
    assert_eq!(shown(&rows), [("f", 22, 23), ("g", 1, 3), ("h", 8, 24), ("p", 0, 31)]);
}

#[test]
fn nodes_without_a_key_belong_to_no_row() {
    let rows = arranged(RECURSION).table(|name| (name == "g").then_some(()));
    assert_eq!(shown(&rows), [((), 1, 3)]);
}

#[test]
fn callers_are_a_set_for_each_stack() {
    let callers = |name: &'static str| {
        let rows = arranged(RECURSION).calls(|caller, callee| (callee == name).then_some(caller));
        shown(&rows).into_iter().map(|(key, _, samples)| (key, samples)).collect::<Vec<_>>()
    };
    // f f f has two calls of f by f, and is one stack of four samples.
    assert_eq!(callers("f"), [("f", 5), ("g", 2), ("h", 16), ("p", 7)]);
    assert_eq!(callers("g"), [("f", 3)]);
    assert_eq!(callers("p"), []);
}

#[test]
fn callees_are_a_set_for_each_stack() {
    let callees = |name: &'static str| {
        let rows = arranged(RECURSION).calls(|caller, callee| (caller == name).then_some(callee));
        shown(&rows).into_iter().map(|(key, _, samples)| (key, samples)).collect::<Vec<_>>()
    };
    assert_eq!(callees("f"), [("f", 5), ("g", 3)]);
    assert_eq!(callees("g"), [("f", 2)]);
    assert_eq!(callees("p"), [("f", 7), ("h", 24)]);
}

#[test]
fn a_share_goes_to_the_nearest_key_above() {
    let stacks: &[Stack] = &[
        (&["P1", "T1", "f"], 1),
        (&["P1", "T2", "f", "g"], 2),
        (&["P2", "f"], 4),
        (&["P1"], 8),
        (&["f", "g"], 16),
    ];
    let of =
        |first: char| shown(&arranged(stacks).shares(move |name| name.starts_with(first).then_some(name)));
    assert_eq!(of('P'), [("P1", 11, 11), ("P2", 4, 4)]);
    assert_eq!(of('T'), [("T1", 1, 1), ("T2", 2, 2)]);
}

#[test]
fn a_deep_stack_needs_no_deep_program() {
    let stack: Vec<u32> = (0..200_000).map(|depth| depth % 2).collect();
    let tree = || CallTree::new([(stack.clone(), 1)]);
    let arranged = of(tree(), tree());
    let rows = arranged.calls(|caller, callee| Some((caller, callee)));
    let samples: Vec<_> = rows.iter().map(|row| (row.key, row.inclusive)).collect();
    assert_eq!(samples, [((0, 1), 1), ((1, 0), 1)]);
}
