//! The call tree against a slow and obvious count: texts of whole paths, and how many samples begin with each.

use std::collections::BTreeMap;

use etwprof::profile::{CallTree, Detail, Entry, Filter, Grouping, Matcher, Moment, Profile};
use etwprof::report::Spelling;
use etwprof::symbols::Unnamed;
use proptest::prelude::*;

use crate::support::reading;
use crate::synth::{Etl, Image, Process, START, Sample, Thread};

/// Inclusive and exclusive samples by the path of a node, the root first.
type Counts = BTreeMap<Vec<String>, (i64, i64)>;

/// For every node, inclusive is exclusive plus the inclusive counts of its children.
#[track_caller]
pub fn assert_sums(tree: &CallTree<Entry>) {
    let inclusive = |ids: &[_]| ids.iter().map(|id| tree.node(*id).unwrap().inclusive()).sum::<i64>();
    assert_eq!(inclusive(tree.roots()), tree.total());
    for (_, node) in tree.nodes() {
        assert_eq!(node.inclusive(), node.exclusive() + inclusive(tree.children(node)));
        assert!(node.inclusive() > 0, "no node without a sample");
    }
}

/// The tree has the nodes and counts of `profile`'s samples, and no other.
#[track_caller]
pub fn assert_is_tree_of(tree: &CallTree<Entry>, profile: &Profile, by_thread: bool) {
    let (trace, spelling) = (&profile.trace, Spelling::new(profile, Detail::default()));
    let mut expected = Counts::new();
    for sample in &profile.samples {
        let runner = profile.runner(sample);
        let process = trace.process(runner.process).unwrap();
        let mut path = vec![format!("{} ({})", process.label(), process.pid)];
        if by_thread {
            let name = runner.thread.map_or("", |thread| trace.thread(thread).unwrap().name.as_str());
            path.push(format!("thread {} {name}", runner.tid).trim_end().to_owned());
        }
        let entries = profile.stacks.entries(sample.stack);
        let mut code: Vec<_> = entries.map(|entry| spelling.text(entry)).collect();
        code.reverse();
        path.extend(code);
        for depth in 1..=path.len() {
            expected.entry(path[..depth].to_vec()).or_default().0 += 1;
        }
        expected.entry(path).or_default().1 += 1;
    }

    let mut found = Counts::new();
    for (id, node) in tree.nodes() {
        let mut path: Vec<String> = tree.path(id).map(|node| spelling.text(node.entry)).collect();
        path.reverse();
        let twice = found.insert(path, (node.inclusive(), node.exclusive()));
        assert_eq!(twice, None, "two nodes of one path");
    }
    assert!(found == expected, "{} nodes, {} by hand", found.len(), expected.len());
}

/// A sample: processor, thread, and its stack by the numbers of functions, leaf first.
#[derive(Clone, Debug)]
pub struct Shot {
    processor: u16,
    thread: usize,
    context: u8,
    kernel: Vec<u8>,
    user: Vec<u8>,
}

const THREADS: [(u32, u32); 4] = [(40, 41), (40, 43), (50, 51), (0, 0)];

pub fn shot() -> impl Strategy<Value = Shot> {
    // Few functions, so that stacks share their roots; the same one again and again, as recursion does.
    let frames = || prop::collection::vec(0..4_u8, 0..6);
    (0..2_u16, 0..THREADS.len(), 0..8_u8, frames(), frames()).prop_map(
        |(processor, thread, context, kernel, user)| Shot { processor, thread, context, kernel, user },
    )
}

fn filter() -> impl Strategy<Value = Filter> {
    let some = |of: &[u32]| prop::collection::vec(prop::sample::select(of.to_vec()), 0..2);
    let name = |of: &[&'static str]| {
        let name = prop::sample::select(of.to_vec()).prop_map(|name| Matcher::parse(name).unwrap());
        prop::collection::vec(name, 0..2)
    };
    let time = || {
        let moment = (0..60_u32).prop_map(|ms| Moment::Seconds(f64::from(ms) / 1e3));
        prop::option::weighted(0.3, moment)
    };
    let processes = (some(&[0, 40, 50, 99]), name(&["a.exe", "B.EXE", "none.exe"]), any::<bool>());
    let threads = (some(&[41, 43, 51, 99]), name(&["Worker 1", "none"]));
    let cpus = prop::collection::vec((0..3_u16).prop_map(|cpu| cpu..=cpu), 0..2);
    (processes, threads, cpus, any::<bool>(), time(), time()).prop_map(
        |((pids, names, children), (tids, threads), cpus, include_idle, from, to)| Filter {
            pids,
            names,
            children,
            tids,
            threads,
            cpus,
            include_idle,
            from,
            to,
            during: None,
            beside: false,
        },
    )
}

/// One sample every millisecond.
pub fn etl_of(shots: &[Shot]) -> Etl {
    let mut etl = Etl::new()
        .cpus(2)
        .event(0, START + 1, Process::dc_start(40, "a.exe"))
        .event(0, START + 1, Process::dc_start(50, "b.exe").parent(40))
        .event(0, START + 1, Process::dc_start(4, "System"))
        .event(0, START + 2, Image::dc_start(0, 0xffff_f800_0000_0000, 0x2000, "ntoskrnl.exe"))
        .event(0, START + 2, Image::dc_start(40, 0x40_0000, 0x1000, "a.exe"))
        .event(0, START + 2, Image::dc_start(50, 0x40_0000, 0x2000, "b.exe"));
    for (process, thread) in THREADS {
        let name = if thread == 43 { "Worker 1" } else { "" };
        etl = etl.event(0, START + 3, Thread::dc_start(process, thread).name(name));
    }
    for (index, shot) in (1..).zip(shots) {
        let time = START + 10_000 * index;
        let (process, thread) = THREADS[shot.thread];
        let kernel = shot.kernel.iter().map(|function| 0xffff_f800_0000_0100 + u64::from(*function) * 0x900);
        let user = shot.user.iter().map(|function| 0x40_0100 + u64::from(*function) * 0x500);
        let frames: Vec<u64> = kernel.chain(user).collect();
        let sample = Sample::new(frames.first().copied().unwrap_or(0x1234), thread);
        etl = match (shot.context, frames.is_empty()) {
            (0, _) => etl.event(shot.processor, time, sample.dpc()),
            (1, _) => etl.event(shot.processor, time, sample.isr()),
            (_, true) => etl.event(shot.processor, time, sample),
            (_, false) => etl.sampled(shot.processor, time, process, thread, &frames),
        };
    }
    etl
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_are_what_one_counts_by_hand(
        shots in prop::collection::vec(shot(), 0..40),
        filter in filter(),
        by_thread: bool,
    ) {
        let etl = etl_of(&shots);
        let trace =
            if filter.include_idle { reading::synthetic_with_idle(etl) } else { reading::synthetic(etl) };
        prop_assert_eq!(trace.sample_count(), shots.len() as u64);
        let profile = Profile::new(&trace, &filter, &Unnamed);
        let balance = &profile.balance;
        prop_assert_eq!(balance.kept + balance.idle + balance.filtered, balance.total);
        prop_assert_eq!(balance.kept, super::kept_by_hand(&trace, &filter));
        prop_assert_eq!(balance.kept, profile.samples.len() as u64);
        let stacks = &balance.stacks;
        let parts = stacks.user_only + stacks.kernel_and_user + stacks.kernel_only + stacks.none;
        prop_assert_eq!(parts, balance.kept);
        let (tree, _) = profile.tree(if by_thread { Grouping::Thread } else { Grouping::Process }, Detail::default());
        prop_assert_eq!(tree.total() as u64, balance.kept);
        assert_sums(&tree);
        assert_is_tree_of(&tree, &profile, by_thread);
        // A named profile is filtered as the trace is.
        let everything = Filter { include_idle: filter.include_idle, ..Filter::default() };
        let all = Profile::new(&trace, &everything, &Unnamed);
        let filtered = all.filtered(&filter);
        prop_assert_eq!(&filtered.balance, balance);
        let (again, _) = filtered.tree(if by_thread { Grouping::Thread } else { Grouping::Process }, Detail::default());
        assert_is_tree_of(&again, &filtered, by_thread);
    }
}
