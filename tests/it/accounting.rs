//! Every sample is accounted for: by kind, by the parts of its stack, by filters, and in the call tree.

mod choosing;
mod oracle;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use etwprof::profile::{Cut, Detail, Filter, Grouping, Moment, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::{Context, Parts, Process, Sample, Trace};

use crate::support::reading::{self, info, json, number};
use crate::support::{command, data};

const X64: &str = "etl/perfview/net.4.5.2.x64.etl";
const WINDOWS_7: &str = "etl/perfview/PerfViewData.etl";

/// TraceEvent's count of samples is `kept`; the parts were counted from the file's records by hand.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_of_the_x64_trace() {
    let file = data::file(X64);
    let info = info(&file);
    for (pointer, expected) in [
        ("/samples/total", 79_528),
        ("/samples/idle", 73_208),
        ("/samples/kept", 6_320),
        ("/samples/filtered", 0),
        ("/samples/dpc", 84 + 23),
        ("/samples/isr", 21 + 7),
        ("/samples/stacks/user_only", 5_556),
        ("/samples/stacks/kernel_and_user", 458 + 51), // 51 by the user part of an earlier event
        ("/samples/stacks/kernel_only", 253),
        ("/samples/stacks/none", 2),
        ("/events/total", 179_474),
        ("/lost/events", 0),
        ("/lost/buffers", 0),
        ("/lost/sequence_gaps", 0),
        ("/lost/orphan_stacks", 0),
        ("/lost/undefined_stack_keys", 0),
        ("/lost/malformed_events", 0),
    ] {
        assert_eq!(number(&info, pointer), expected, "{pointer}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_of_the_windows_7_trace() {
    let file = data::file(WINDOWS_7);
    let info = info(&file);
    for (pointer, expected) in
        [("/samples/total", 16_865), ("/samples/kept", 4_854), ("/samples/idle", 12_011)]
    {
        assert_eq!(number(&info, pointer), expected, "{pointer}");
    }
    let parts = ["user_only", "kernel_and_user", "kernel_only", "none"];
    let stacks: u64 = parts.iter().map(|part| number(&info, &format!("/samples/stacks/{part}"))).sum();
    assert_eq!(stacks, 4_854);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn classes_of_samples_in_the_x64_trace() {
    let file = data::file(X64);
    let trace = reading::file(&file);
    let count = |of: &dyn Fn(&Sample) -> bool| trace.samples.iter().filter(|sample| of(sample)).count();
    let tid = |s: &Sample| trace.runner(s.runner).tid;

    assert_eq!(trace.idle.samples, 73_208);
    assert_eq!(count(&|s| tid(s) == 0 && s.context == Context::Dpc), 84);
    assert_eq!(count(&|s| tid(s) == 0 && s.context == Context::Isr), 21);
    assert_eq!(count(&|s| tid(s) != 0 && s.context == Context::Thread), 6_185);
    assert_eq!(count(&|s| tid(s) != 0 && s.context == Context::Dpc), 23);
    assert_eq!(count(&|s| tid(s) != 0 && s.context == Context::Isr), 7);
    let idle = |cpu| trace.idle.by_processor.get(&cpu).copied().unwrap_or(0) as usize;
    let per_processor: Vec<usize> = (0..8).map(|cpu| idle(cpu) + count(&|s| s.processor == cpu)).collect();
    assert_eq!(per_processor, [9_946, 9_951, 9_910, 9_937, 9_952, 9_948, 9_944, 9_940]);
    assert_eq!(count(&|s| s.weight == 10_000), 79_528 - 73_208, "1 ms each");
    assert_eq!(trace.idle.by_weight, [(10_000, 73_208)].into());
    let (first, last) = trace.idle.span.unwrap();
    assert!(trace.clock.seconds(first) > 0.0 && trace.clock.seconds(last) < 11.0);

    let interrupt = |s: &Sample| matches!(s.context, Context::Dpc | Context::Isr);
    let kernel_only = |s: &Sample| trace.stack(s.stack).parts() == Parts::Kernel;
    let pid = |s: &Sample| trace.process(trace.runner(s.runner).process).unwrap().pid;
    assert_eq!(count(&|s| kernel_only(s) && interrupt(s)), 134, "interrupts have no user part");
    assert_eq!(count(&|s| kernel_only(s) && !interrupt(s) && pid(s) == 4), 102, "System has no user mode");
    assert_eq!(count(&|s| kernel_only(s) && !interrupt(s) && pid(s) != 4), 17, "their user part never came");
    assert_eq!(count(&|s| interrupt(s) && trace.stack(s.stack).user.is_some()), 0);
}

/// The stack's first frame is the sampled address (but for two in WOW64's ntdll), and the process that a stack names
/// is that of its thread.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn stacks_belong_to_their_samples() {
    let file = data::file(X64);
    let trace = reading::file(&file);
    let stack = |s: &Sample| trace.stack(s.stack);
    let with_stack: Vec<&Sample> = trace.samples.iter().filter(|s| stack(s).parts() != Parts::None).collect();
    let leaf = |s: &Sample| stack(s).kernel.or(stack(s).user).and_then(|part| trace.addresses.value(part));
    assert_eq!(with_stack.iter().filter(|s| leaf(s) != Some(s.address)).count(), 2);

    let runner = |s: &Sample| trace.runner(s.runner);
    let of_threads: Vec<_> =
        with_stack.iter().filter_map(|s| Some((s, trace.thread(runner(s).thread?)?))).collect();
    assert_eq!(of_threads.len(), 6_214);
    for (sample, thread) in of_threads {
        assert_eq!(trace.process(runner(sample).process).unwrap().pid, thread.pid);
    }
    // The deepest stack of one event in the file; a user part from another event may lie under a kernel part.
    let fragments = with_stack.iter().flat_map(|s| stack(s).kernel.into_iter().chain(stack(s).user));
    assert!(fragments.map(|part| trace.addresses.path(part).count()).all(|depth| (1..=111).contains(&depth)));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_tree_and_folded_stacks_hold_all_that_is_kept() {
    for path in [X64, WINDOWS_7] {
        let file = data::file(path);
        let kept = number(&info(&file), "/samples/kept");
        for threads in [&[][..], &["--threads"]] {
            let args = [OsStr::new("convert"), file.as_os_str(), OsStr::new("-f"), OsStr::new("folded")];
            let output = command::etwprof(args.into_iter().chain(threads.iter().map(OsStr::new))).success();
            assert_eq!(folded_sum(output.text()), kept);
        }
        let trace = reading::file(&file);
        let profile = Profile::new(&trace, &Filter::default(), &Unnamed);
        for by_thread in [false, true] {
            let (tree, cut) =
                profile.tree(if by_thread { Grouping::Thread } else { Grouping::Process }, Detail::default());
            assert_eq!(tree.total() as u64, kept);
            assert_eq!(cut, Cut::default(), "a real recording is never cut");
            oracle::assert_sums(&tree);
            oracle::assert_is_tree_of(&tree, &profile, by_thread);
        }
    }
}

fn folded_sum(folded: &str) -> u64 {
    folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// `kept + idle + filtered = total`, whatever the filter; and what one half of a filter keeps, the other leaves out.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn filters_lose_no_sample() {
    let file = data::file(X64);
    let samples = |filter: &[&str]| filtered(&file, filter);
    let all = samples(&[]);
    let mut kept_by_process = 0;
    for process in info(&file)["processes"].as_array().unwrap() {
        let pid = process["pid"].to_string();
        let of_process = samples(&["--pid", &pid]);
        assert_eq!(of_process.kept, number(process, "/samples"), "process {pid}");
        kept_by_process += of_process.kept;
    }
    assert_eq!(kept_by_process, all.kept);

    let (before, after) = (samples(&["--to", "5.5s"]), samples(&["--from", "5.5s"]));
    assert_eq!(before.kept + after.kept, all.kept);
    assert!(before.kept > 0 && after.kept > 0);

    let named = samples(&["--name", "TEST.X64"]);
    assert_eq!(named.kept, samples(&["--name", "Test.x64.exe"]).kept);
    assert_eq!(named.kept, samples(&["--pid", "3676"]).kept);
    let two = samples(&["--name", "test.x64", "--pid", "4"]);
    assert_eq!(two.kept, named.kept + samples(&["--pid", "4"]).kept, "names and pids add up");
    let thread = samples(&["--tid", "3680"]);
    assert!(0 < thread.kept && thread.kept <= named.kept);
    assert_eq!(thread.kept, samples(&["--tid", "3680", "--pid", "3676"]).kept);
    assert_eq!(samples(&["--tid", "3680", "--pid", "4"]).kept, 0);
}

/// A method has one name, whatever else is shown: what is kept of a trace reads as it does in the whole.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_name_of_a_method_does_not_depend_on_the_filter() {
    for path in [X64, WINDOWS_7] {
        let file = data::file(path);
        let folded = |filter: &[&str]| {
            let args = [OsStr::new("convert"), file.as_os_str(), OsStr::new("-f"), OsStr::new("folded")];
            let filter = ["--offline"].iter().chain(filter).map(OsStr::new);
            command::etwprof(args.into_iter().chain(filter)).success().text().to_owned()
        };
        let all = folded(&[]);
        let whole: HashSet<&str> = all.lines().collect();
        let mut lines = 0;
        for process in info(&file)["processes"].as_array().unwrap() {
            if number(process, "/samples") > 0 {
                let one = folded(&["--pid", &process["pid"].to_string()]);
                let other: Vec<&str> = one.lines().filter(|line| !whole.contains(line)).collect();
                assert_eq!(other, [""; 0], "{path}");
                lines += one.lines().count();
            }
        }
        // Two lines read alike where a process has two modules of one name, for code of 32 bits and of 64.
        assert_eq!(lines, all.lines().count());
    }
}

/// The share of samples with a known function is that of leaves with a name, wherever it is from.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_share_of_known_functions_is_that_of_named_leaves() {
    let file = data::file(X64);
    let args = [OsStr::new("convert"), file.as_os_str(), OsStr::new("-f"), OsStr::new("folded")];
    let output = command::etwprof(args.into_iter().chain([OsStr::new("--offline")])).success();
    let (mut named, mut all) = (0, 0);
    for (stack, samples) in output.text().lines().filter_map(|line| line.rsplit_once(' ')) {
        let leaf = stack.rsplit(';').next().unwrap();
        let samples: u64 = samples.parse().unwrap();
        named += if leaf.starts_with("0x") || leaf.ends_with("!?") { 0 } else { samples };
        all += samples;
    }
    let share = format!("named: {:.1}% of samples by their leaf,", 100.0 * named as f64 / all as f64);
    assert!(named > 0 && output.stderr.contains(&share), "{share} {}", output.stderr);
}

struct Balance {
    kept: u64,
}

#[track_caller]
fn filtered(file: &Path, filter: &[&str]) -> Balance {
    let args = [OsStr::new("info"), OsStr::new("--json"), file.as_os_str()];
    let info = json(args.into_iter().chain(filter.iter().map(OsStr::new)));
    let [total, idle, kept, filtered] =
        ["total", "idle", "kept", "filtered"].map(|name| number(&info, &format!("/samples/{name}")));
    assert_eq!(kept + idle + filtered, total, "{filter:?}");
    assert_eq!((total, idle), (79_528, 73_208), "idle samples are idle under any filter");
    let parts = ["user_only", "kernel_and_user", "kernel_only", "none"];
    let stacks: u64 = parts.iter().map(|part| number(&info, &format!("/samples/stacks/{part}"))).sum();
    assert_eq!(stacks, kept, "{filter:?}");
    assert!(number(&info, "/samples/stacks/broken") <= kept);
    let of_processes: u64 = info["processes"].as_array().unwrap().iter().map(|p| number(p, "/samples")).sum();
    assert_eq!(of_processes, kept, "{filter:?}");
    Balance { kept }
}

/// Samples of one trace as one would count them by hand.
fn kept_by_hand(trace: &Trace, filter: &Filter) -> u64 {
    let keeps = |sample: &&Sample| {
        let process = trace.process(trace.runner(sample.runner).process).unwrap();
        let runner = trace.runner(sample.runner);
        let seconds = trace.clock.seconds(sample.time);
        let at = |moment| match moment {
            Moment::Seconds(seconds) => seconds,
            other => panic!("{other:?}"),
        };
        let is_named = |process: &Process| {
            let named = filter.names.iter().any(|name| name.text().eq_ignore_ascii_case(&process.name));
            named || filter.pids.contains(&process.pid)
        };
        // Only the second process has a parent in the trace, the first.
        let is_child = || {
            let parent = trace.processes.iter().find(|parent| parent.pid == process.parent_pid);
            filter.children && process.parent_pid != 0 && parent.is_some_and(is_named)
        };
        let thread = runner.thread.map_or("", |thread| trace.thread(thread).unwrap().name.as_str());
        let no_process = filter.pids.is_empty() && filter.names.is_empty();
        let no_thread = filter.tids.is_empty() && filter.threads.is_empty();
        (no_process || is_named(process) || is_child())
            && (no_thread
                || filter.tids.contains(&runner.tid)
                || filter.threads.iter().any(|name| name.text() == thread))
            && (filter.cpus.is_empty() || filter.cpus.contains(&(sample.processor..=sample.processor)))
            && filter.from.is_none_or(|from| at(from) <= seconds)
            && filter.to.is_none_or(|to| seconds < at(to))
            && (filter.include_idle || runner.tid != 0 || sample.context != Context::Thread)
    };
    trace.samples.iter().filter(keeps).count() as u64
}
