//! Samples chosen by what is in their stacks, by processor, by family and by the clock: against a walk along every stack.

use etwprof::profile::{Balance, Category, Filter, FrameId, FrameSet, Moment, Profile, Sample, StackFilter};
use etwprof::symbols::Unnamed;
use proptest::prelude::*;

use super::oracle::{etl_of, shot};
use crate::support::reading;
use crate::synth::{Etl, Process, START, Thread};

/// A set of frames by bits: frame n is in it if bit n modulo 16 is set.
fn frames(profile: &Profile, bits: u16) -> FrameSet {
    let ids = (0..profile.stacks.frames().len() as u32).map(FrameId);
    ids.filter(|id| bits >> (id.0 % 16) & 1 == 1).collect()
}

#[track_caller]
fn assert_sums(balance: &Balance) {
    assert_eq!(balance.kept + balance.idle + balance.filtered, balance.total);
    assert_eq!(balance.filtered, balance.filtered_by.sum());
    let stacks = &balance.stacks;
    assert_eq!(stacks.user_only + stacks.kernel_and_user + stacks.kernel_only + stacks.none, balance.kept);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stacks_are_kept_by_what_one_finds_in_them(
        shots in prop::collection::vec(shot(), 0..40),
        modules in prop::option::of(any::<u16>()),
        functions in prop::option::of(any::<u16>()),
        excluded in prop::option::of(any::<u16>().prop_map(|bits| bits & 0x1111)),
        kernel in prop::option::of(any::<bool>()),
        pid in prop::option::of(prop::sample::select(vec![40_u32, 50])),
    ) {
        let trace = reading::synthetic(etl_of(&shots));
        let filter = Filter { pids: pid.into_iter().collect(), ..Filter::default() };
        let all = Profile::new(&trace, &filter, &Unnamed);
        let set = |bits: Option<u16>| bits.map(|bits| frames(&all, bits));
        let category = |kernel| vec![if kernel { Category::Kernel } else { Category::Native }];
        let filter = StackFilter {
            modules: set(modules),
            functions: set(functions),
            excluded: set(excluded),
            categories: kernel.map(category),
        };
        let has = |sample: &Sample, set: &Option<FrameSet>, none: bool| match set {
            Some(set) => all.stacks.frames_of(sample.stack).any(|frame| set.contains(frame)),
            None => none,
        };
        let leaf = |sample: &Sample| {
            let leaf = all.stacks.frames_of(sample.stack).next().unwrap();
            all.stacks.frame(leaf).unwrap().category
        };
        let mut by = all.balance.filtered_by;
        let mut kept = Vec::new();
        for sample in &all.samples {
            if !has(sample, &filter.modules, true) {
                by.module += 1;
            } else if !has(sample, &filter.functions, true) {
                by.function += 1;
            } else if has(sample, &filter.excluded, false) {
                by.exclude += 1;
            } else if filter.categories.as_ref().is_some_and(|wanted| !wanted.contains(&leaf(sample))) {
                by.category += 1;
            } else {
                kept.push(*sample);
            }
        }
        let narrowed = all.with_stacks(&filter);
        assert_sums(&narrowed.balance);
        prop_assert_eq!(narrowed.balance.filtered_by, by);
        prop_assert_eq!(narrowed.balance.total, all.balance.total);
        prop_assert_eq!(narrowed.samples, kept);
        if filter.keeps_all() {
            prop_assert_eq!(all.with_stacks(&filter).balance, all.balance);
        }
    }

    /// Whatever the order in which filters come, they keep the same samples.
    #[test]
    fn the_two_kinds_of_filters_do_not_disturb_each_other(
        shots in prop::collection::vec(shot(), 0..40),
        functions: u16,
        cpu in 0..2_u16,
    ) {
        let trace = reading::synthetic(etl_of(&shots));
        let all = Profile::new(&trace, &Filter::default(), &Unnamed);
        let facts = Filter { cpus: vec![cpu..=cpu], ..Filter::default() };
        let stacks = StackFilter { functions: Some(frames(&all, functions)), ..StackFilter::default() };
        let one = all.filtered(&facts).with_stacks(&stacks);
        let other = all.with_stacks(&stacks).filtered(&facts);
        prop_assert_eq!(&one.samples, &other.samples);
        assert_sums(&one.balance);
        assert_sums(&other.balance);
    }

    #[test]
    fn idle_samples_are_counted_or_kept_and_the_sum_is_the_same(shots in prop::collection::vec(shot(), 0..40)) {
        let counted = reading::synthetic(etl_of(&shots));
        let kept = reading::synthetic_with_idle(etl_of(&shots));
        prop_assert_eq!(kept.idle.samples, 0);
        let profile = |trace, include_idle| {
            Profile::new(trace, &Filter { include_idle, ..Filter::default() }, &Unnamed)
        };
        let (without, with) = (profile(&counted, false), profile(&kept, true));
        assert_sums(&with.balance);
        prop_assert_eq!(with.balance.idle, 0);
        prop_assert_eq!(with.balance.kept, without.balance.kept + without.balance.idle);
        // Who asks for them and does not want them has what he would have without.
        let again = profile(&kept, false);
        prop_assert_eq!(again.balance, without.balance);
        prop_assert_eq!(with.filtered(&Filter::default()).balance, without.balance);
        let moments = |profile: &Profile| profile.samples.iter().map(|sample| sample.time).collect::<Vec<_>>();
        prop_assert_eq!(moments(&again), moments(&without));
    }
}

/// A time of the test in seconds.
const fn at(seconds: f64) -> i64 {
    START + (seconds * 1e7) as i64
}

fn kept_pids(etl: Etl, filter: &Filter) -> Vec<u32> {
    let trace = reading::synthetic(etl);
    let kept = filter.processes(&trace);
    let mut pids: Vec<u32> =
        trace.processes.iter().zip(kept).filter(|(_, kept)| *kept).map(|(process, _)| process.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn children_are_those_born_while_their_parent_lived_and_theirs() {
    let etl = || {
        Etl::new()
            .event(0, at(0.1), Process::dc_start(0, "Idle").parent(0))
            .event(0, at(0.1), Process::dc_start(4, "System").parent(0))
            .event(0, at(0.1), Process::dc_start(10, "shell.exe").parent(4))
            .event(0, at(0.1), Process::dc_start(20, "old.exe").parent(10))
            .event(0, at(0.1), Process::dc_start(30, "other.exe").parent(99))
            .event(0, at(1.0), Process::start(40, "make.exe").parent(10))
            .event(0, at(2.0), Process::start(50, "cc.exe").parent(40))
            .event(0, at(3.0), Process::end(40, "make.exe"))
            // The id of a parent that is gone.
            .event(0, at(4.0), Process::start(60, "late.exe").parent(40))
            .event(0, at(5.0), Process::start(40, "second.exe").parent(30))
            .event(0, at(6.0), Process::start(70, "of second.exe").parent(40))
            .event(0, at(7.0), Process::start(80, "of cc.exe").parent(50))
    };
    let family = |pids: &[u32], names: &[&str]| Filter {
        pids: pids.to_vec(),
        names: names.iter().map(|name| name.parse().unwrap()).collect(),
        children: true,
        ..Filter::default()
    };
    assert_eq!(kept_pids(etl(), &family(&[10], &[])), [10, 20, 40, 50, 80]);
    assert_eq!(kept_pids(etl(), &family(&[], &["make"])), [40, 50, 80]);
    assert_eq!(kept_pids(etl(), &family(&[], &["second"])), [40, 70]);
    assert_eq!(kept_pids(etl(), &family(&[30], &[])), [30, 40, 70]);
    assert_eq!(kept_pids(etl(), &family(&[50], &[])), [50, 80]);
    // Nobody is the child of 0, which stands for no parent.
    assert_eq!(kept_pids(etl(), &family(&[0], &[])), [0]);
    assert_eq!(kept_pids(etl(), &family(&[4], &[])), [4, 10, 20, 40, 50, 80]);
    let alone = Filter { children: false, ..family(&[10], &[]) };
    assert_eq!(kept_pids(etl(), &alone), [10]);
}

#[test]
fn names_of_processes_and_threads_are_globs_and_regular_expressions() {
    let etl = Etl::new()
        .event(0, at(0.1), Process::dc_start(40, "Orders.exe"))
        .event(0, at(0.1), Process::dc_start(50, "OrderMail.exe"))
        .event(0, at(0.1), Thread::dc_start(40, 41).name("Worker 1"))
        .event(0, at(0.1), Thread::dc_start(40, 42).name("Worker 12"))
        .event(0, at(0.1), Thread::dc_start(50, 51).name(""))
        .sampled(0, at(0.2), 40, 41, &[0x1000])
        .sampled(0, at(0.3), 40, 42, &[0x1000])
        .sampled(0, at(0.4), 50, 51, &[0x1000]);
    let trace = reading::synthetic(etl);
    let kept = |names: &[&str], threads: &[&str], tids: &[u32]| {
        let matchers = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let filter = Filter {
            names: matchers(names),
            threads: matchers(threads),
            tids: tids.to_vec(),
            ..Filter::default()
        };
        Profile::new(&trace, &filter, &Unnamed).balance.kept
    };
    assert_eq!(kept(&["order*"], &[], &[]), 3);
    assert_eq!(kept(&["orders"], &[], &[]), 2);
    assert_eq!(kept(&["/mail/"], &[], &[]), 1);
    assert_eq!(kept(&["order"], &[], &[]), 0);
    assert_eq!(kept(&[], &["worker ?"], &[]), 1);
    assert_eq!(kept(&[], &["worker*"], &[]), 2);
    assert_eq!(kept(&[], &["*"], &[]), 2, "no name is no name");
    assert_eq!(kept(&[], &["worker 1"], &[51]), 2, "ids and names add up");
    assert_eq!(kept(&["/mail/"], &["worker 1"], &[]), 0, "different kinds narrow down");
}

/// The header of a synthetic file says Central Europe, and its start is 2025-05-14T09:00:00Z: 11:00:00 there, in summer.
#[test]
fn times_of_day_are_those_of_the_machine_that_recorded() {
    let mut etl = Etl::new().event(0, START + 1, Process::dc_start(40, "a.exe")).event(
        0,
        START + 1,
        Thread::dc_start(40, 41),
    );
    for second in 0..10 {
        etl = etl.sampled(0, at(f64::from(second) + 0.5), 40, 41, &[0x1000]);
    }
    let trace = reading::synthetic(etl);
    assert_eq!(trace.clock.utc_offset, Some(120));
    let kept = |from, to| {
        let filter = Filter { from, to, ..Filter::default() };
        Profile::new(&trace, &filter, &Unnamed).balance.kept
    };
    let second = 10_000_000;
    let time = |hour: u64, seconds: u64| (hour * 3600 + seconds) * second;
    assert_eq!(kept(Some(Moment::TimeOfDay(time(11, 4))), None), 6);
    assert_eq!(kept(Some(Moment::UtcTimeOfDay(time(9, 4))), None), 6);
    assert_eq!(kept(Some(Moment::TimeOfDay(time(11, 0))), Some(Moment::UtcTimeOfDay(time(9, 3)))), 3);
    assert_eq!(kept(Some(Moment::TimeOfDay(time(11, 4) + second / 2)), Some(Moment::Seconds(4.6))), 1);
    assert_eq!(kept(Some(Moment::TimeOfDay(time(10, 59))), None), 0, "tomorrow");
    assert_eq!(kept(Some(Moment::TimeOfDay(time(9, 4))), None), 6, "it can only be of UTC");
    assert_eq!(kept(Some(Moment::UtcTimeOfDay(time(11, 4))), None), 0);
}
