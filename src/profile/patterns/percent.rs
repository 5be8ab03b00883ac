//! Fold%: what is small joins its caller, on the finished tree.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{Arranged, CallTree, End, Value, Values};

impl<E: Copy + Eq + Hash> Arranged<E> {
    /// The same without nodes whose value is below `percent` of the total. What is in and below them counts as its
    /// caller's own.
    ///
    /// A node stays if it is not small, or if all nodes of its `name` together are not, or if it `always_stays`, as
    /// PerfView's BROKEN does. Below one that goes nothing stays. Roots that go become one root, `rest`. Values of
    /// differences may be negative: a node is as small as its sum is near 0, and where the total is not above 0, as
    /// where `percent` is not, all stay.
    pub fn without_small<K: Clone + Eq + Hash>(
        &self,
        percent: f64,
        name: impl Fn(E) -> K,
        always_stays: impl Fn(E) -> bool,
        rest: E,
    ) -> Arranged<E> {
        let total = self.values.total();
        if !(percent > 0.0 && total > 0) {
            return self.clone();
        }
        let is_small = |value: i64| value.unsigned_abs() as f64 * 100.0 < percent * total as f64;
        let rows = self.table(|entry| Some(name(entry)));
        let small: FxHashMap<K, bool> =
            rows.into_iter().map(|row| (row.key, is_small(row.inclusive_value))).collect();
        let mut tree: PrefixTree<E> = PrefixTree::default();
        // For each node where it is in `tree`, and whether it stays.
        let mut places: Vec<(NodeId, bool)> = Vec::new();
        let mut leaves = Vec::new();
        for (id, node) in self.counts.nodes() {
            let value = self.values.node(id).map_or(0, Value::inclusive);
            let parent = node.parent.and_then(|parent| places.get(parent.0 as usize).copied());
            let goes = || {
                is_small(value)
                    && small.get(&name(node.entry)).is_some_and(|small| *small)
                    && !always_stays(node.entry)
            };
            let place = match parent {
                Some((place, false)) => (place, false),
                Some((place, true)) if goes() => (place, false),
                None if goes() => (tree.child(None, rest), false),
                parent => (tree.child(parent.map(|(place, _)| place), node.entry), true),
            };
            places.push(place);
            leaves.push((id, place.0));
        }
        let moved = |end: &End| Some(End { node: places.get(end.node.0 as usize)?.0, ..*end });
        let counts =
            leaves.iter().filter_map(|(id, place)| Some((*place, self.counts.node(*id)?.exclusive())));
        let values =
            leaves.iter().filter_map(|(id, place)| Some((*place, self.values.node(*id)?.exclusive())));
        Arranged {
            counts: CallTree::count(&tree, counts),
            values: Values::count(&tree, values),
            groups: self.groups.clone(),
            balance: self.balance,
            left_out: self.left_out.clone(),
            ends: self.ends.iter().filter_map(moved).collect(),
            cut: self.cut,
            gave_up: self.gave_up.clone(),
        }
    }
}
