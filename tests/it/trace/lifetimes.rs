//! Who had an id, and what was mapped at an address, at a moment: one test for each rule.

use etwprof::trace::Trace;
use serde_json::Value;

use crate::support::reading;
use crate::support::stacks::{machine, stacks, stacks_of};
use crate::synth::{Etl, IntoEvent, Process, START, Sample, Thread, kernel};

const T: i64 = START + 1_000_000; // 0.1 s
const MS: i64 = 10_000;

/// A sample without a stack: only tables tell its process.
fn bare(etl: Etl, time: i64, thread: u32) -> Etl {
    etl.event(0, time, Sample::new(0xa, thread))
}

fn owners(etl: Etl) -> Vec<String> {
    stacks(etl).iter().map(|stack| stack.split(':').next().unwrap().to_owned()).collect()
}

fn names(trace: &Trace) -> Vec<&str> {
    let mut names: Vec<&str> = trace.processes.iter().map(|process| process.label()).collect();
    names.sort_unstable();
    names
}

mod processes {
    use super::*;

    #[test]
    fn an_id_is_used_again() {
        let etl = machine()
            .sampled(0, T, 40, 41, &[0xa])
            .event(0, T + MS, Process::end(40, "a.exe"))
            .event(0, T + 90 * MS, Process::start(40, "new.exe").parent(50))
            .sampled(0, T + 91 * MS, 40, 99, &[0xa]);
        let trace = reading::synthetic(etl);
        assert_eq!(stacks_of(&trace), ["a.exe: 0xa", "new.exe: 0xa"]);
        assert_eq!(names(&trace), ["System", "a.exe", "b.exe", "new.exe"]);
        let new = trace.processes.iter().find(|process| process.name == "new.exe").unwrap();
        assert_eq!((new.parent_pid, new.life.start.map(|time| time.0)), (50, Some(T + 90 * MS)));
    }

    #[test]
    fn an_id_is_used_again_and_the_end_was_lost() {
        let etl = machine()
            .sampled(0, T, 40, 41, &[0xa])
            .event(0, T + 90 * MS, Process::start(40, "new.exe"))
            .sampled(0, T + 91 * MS, 40, 99, &[0xa]);
        assert_eq!(owners(etl), ["a.exe", "new.exe"]);
    }

    #[test]
    fn shortly_before_its_start_and_after_its_end() {
        let etl = machine()
            .sampled(0, T, 60, 61, &[0xa]) // 9 ms before
            .event(0, T + 9 * MS, Process::start(60, "short.exe"))
            .event(0, T + 20 * MS, Process::end(60, "short.exe"))
            .sampled(0, T + 21 * MS, 60, 61, &[0xb]);
        assert_eq!(owners(etl), ["short.exe", "short.exe"]);
    }

    /// Samples flow while the rundown is being written.
    #[test]
    fn sampled_before_the_rundown_comes_to_it() {
        let etl = bare(Etl::new(), START, 61).sampled(0, START + 5, 60, 61, &[0xb]);
        let etl = etl.event(0, START + 90 * MS, Process::dc_start(60, "c.exe")).event(
            0,
            START + 90 * MS,
            Thread::dc_start(60, 61),
        );
        assert_eq!(stacks(etl), ["c.exe: [no stack] 0xa", "c.exe: 0xb"]);
    }

    #[test]
    fn every_version_and_width_with_and_without_a_user() {
        for version in 0..=6 {
            for pointer_size in [4, 8] {
                let process =
                    || Process::dc_start(60, "c.exe").parent(50).command_line("c.exe -x").version(version);
                let users =
                    [process(), process().no_sid(), process().sid_behind_null(5, &[21, 1, 2, 3, 1000])];
                for process in users {
                    let etl = Etl::new().pointer_size(pointer_size).event(0, T, process);
                    let trace = reading::synthetic(etl);
                    let at = format!("version {version}, {pointer_size} bytes");
                    assert_eq!(trace.lost.malformed_events, 0, "{at}");
                    let process = &trace.processes[0];
                    assert_eq!(
                        (process.pid, process.parent_pid, process.name.as_str()),
                        (60, 50, "c.exe"),
                        "{at}"
                    );
                    assert_eq!(process.command_line, if version >= 2 { "c.exe -x" } else { "" }, "{at}");
                }
            }
        }
    }

    #[test]
    fn the_end_rundown_may_be_all_there_is() {
        let etl = Etl::new().sampled(0, T, 60, 61, &[0xa]).event(
            0,
            T + MS,
            Process::dc_end(60, "c.exe").command_line("c.exe -x").parent(50),
        );
        let trace = reading::synthetic(etl);
        let process = trace.processes.iter().find(|process| process.pid == 60).unwrap();
        assert_eq!((process.name.as_str(), process.command_line.as_str()), ("c.exe", "c.exe -x"));
        assert_eq!((process.life.start, process.life.end, process.parent_pid), (None, None, 50));
        assert_eq!(stacks_of(&trace), ["c.exe: 0xa"]);
    }

    #[test]
    fn the_end_may_be_all_there_is() {
        let etl = Etl::new().sampled(0, T, 60, 61, &[0xa]).event(0, T + MS, Process::end(60, "c.exe"));
        assert_eq!(owners(etl), ["c.exe"]);
    }

    #[test]
    fn both_rundowns_tell_of_one_process() {
        let trace = reading::synthetic(machine().event(0, T, Process::dc_end(40, "a.exe")));
        assert_eq!(names(&trace), ["System", "a.exe", "b.exe"]);
    }

    #[test]
    fn the_header_of_a_start_names_the_creator() {
        let start = Process::start(60, "child.exe").parent(40).by(40, 41);
        let trace = reading::synthetic(machine().event(0, T, start).sampled(0, T + MS, 60, 61, &[0xa]));
        assert_eq!(names(&trace), ["System", "a.exe", "b.exe", "child.exe"]);
        assert_eq!(stacks_of(&trace), ["child.exe: 0xa"]);
    }

    /// The end rundown lists processes that ended long ago, beside the one that has their id now.
    #[test]
    fn a_defunct_process_beside_a_live_one() {
        let etl = machine().sampled(0, T, 40, 41, &[0xa]).event(
            0,
            T + MS,
            Process::defunct(40, "old.exe").key(0x7777),
        );
        let trace = reading::synthetic(etl);
        assert_eq!(names(&trace), ["System", "a.exe", "b.exe", "old.exe"]);
        assert_eq!(stacks_of(&trace), ["a.exe: 0xa"]);
        let live = trace.processes.iter().find(|process| process.name == "a.exe").unwrap();
        assert_eq!(live.life.end, None);
    }

    #[test]
    fn a_defunct_process_whose_id_another_has_now() {
        let etl = machine()
            .event(0, T, Process::end(40, "a.exe"))
            .event(0, T + 20 * MS, Process::start(40, "new.exe").key(0x7777))
            .sampled(0, T + 30 * MS, 40, 41, &[0xa])
            .event(0, T + 90 * MS, Process::defunct(40, "a.exe")); // the key of the first
        let trace = reading::synthetic(etl);
        assert_eq!(names(&trace), ["System", "a.exe", "b.exe", "new.exe"], "told twice, there once");
        assert_eq!(stacks_of(&trace), ["new.exe: 0xa"]);
    }

    #[test]
    fn a_defunct_process_that_ended_in_the_trace() {
        let exit = 133_916_868_000_000_000 + 500_000; // 50 ms in; the clocks have the same unit
        let etl = machine().event(0, T, Process::defunct(40, "a.exe").exit_time(exit));
        let trace = reading::synthetic(etl);
        let process = trace.processes.iter().find(|process| process.pid == 40).unwrap();
        assert_eq!(process.life.end.map(|time| time.0), Some(START + 500_000));
    }

    #[test]
    fn a_process_that_nothing_names() {
        assert_eq!(stacks(machine().sampled(0, T, 77, 78, &[0xa])), ["unnamed process: 0xa"]);
        assert_eq!(stacks(bare(machine(), T, 78)), ["unknown process: [no stack] 0xa"]);
    }

    #[test]
    fn no_process_is_made_up_that_nothing_tells_of() {
        let trace = reading::synthetic(Etl::new().event(0, T, Process::dc_start(40, "a.exe")));
        assert_eq!(names(&trace), ["a.exe"]);
    }

    #[test]
    fn idle_threads_are_of_process_0_on_every_processor() {
        let etl =
            machine().event(0, T, Sample::new(0xa, 0).dpc()).event(3, T + MS, Sample::new(0xa, 0).isr());
        assert_eq!(owners(etl), ["Idle", "Idle"]);
    }

    #[test]
    fn wow64_is_a_flag() {
        let etl = Etl::new().event(0, T, Process::dc_start(40, "a.exe").flags(2)).event(
            0,
            T,
            Process::dc_start(50, "b.exe").flags(1 | 4 | 8),
        );
        let trace = reading::synthetic(etl);
        let wow64: Vec<bool> = trace.processes.iter().map(|process| process.wow64).collect();
        assert_eq!(wow64, [true, false]);
    }

    #[test]
    fn command_lines_in_json() {
        let etl = machine().event(0, T, Process::start(60, "c.exe").command_line(r#"c.exe "a b" \ é"#));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.etl");
        std::fs::write(&path, etl.finish()).unwrap();
        let info = reading::info(&path);
        let find = |process: &&Value| process["pid"] == 60;
        let process = info["processes"].as_array().unwrap().iter().find(find).unwrap();
        assert_eq!(process["command_line"], r#"c.exe "a b" \ é"#);
        assert_eq!(process["start_seconds"], 0.1);
        assert_eq!(process["end_seconds"], Value::Null);
    }
}

mod threads {
    use super::*;

    #[test]
    fn the_table_tells_the_process_of_a_sample_without_a_stack() {
        assert_eq!(owners(bare(machine(), T, 51)), ["b.exe"]);
    }

    #[test]
    fn an_id_is_used_again_by_another_process() {
        let etl = bare(machine(), T, 41).event(0, T + MS, Thread::end(40, 41));
        let etl = bare(etl, T + 2 * MS, 41) // still the former's
            .event(0, T + 90 * MS, Thread::start(50, 41).by(50, 51));
        assert_eq!(owners(bare(etl, T + 91 * MS, 41)), ["a.exe", "a.exe", "b.exe"]);
    }

    #[test]
    fn an_end_may_be_told_twice() {
        let etl = machine()
            .event(0, T, Thread::end(40, 41))
            .event(0, T + MS, Thread::end(40, 41))
            .event(0, T + 20 * MS, Thread::start(50, 41).by(50, 51))
            .event(0, T + 90 * MS, Thread::dc_end(50, 41));
        let trace = reading::synthetic(bare(etl, T + 30 * MS, 41));
        let of_id: Vec<_> = trace.threads.iter().filter(|thread| thread.tid == 41).collect();
        assert_eq!(of_id.iter().map(|thread| thread.pid).collect::<Vec<_>>(), [40, 50]);
        assert_eq!(of_id[0].life.end.map(|time| time.0), Some(T));
        assert_eq!(of_id[1].life.end, None);
        assert_eq!(stacks_of(&trace), ["b.exe: [no stack] 0xa"]);
    }

    #[test]
    fn the_end_rundown_may_list_what_has_ended() {
        let etl = machine().event(0, T, Thread::end(40, 41)).event(0, T + MS, Thread::dc_end(40, 41));
        let trace = reading::synthetic(etl);
        assert_eq!(trace.threads.iter().filter(|thread| thread.tid == 41).count(), 1);
    }

    #[test]
    fn the_end_rundown_may_be_all_there_is() {
        let etl = bare(Etl::new().event(0, START, Process::dc_start(60, "c.exe")), T, 61);
        assert_eq!(owners(etl.clone().event(0, T + MS, Thread::dc_end(60, 61))), ["c.exe"]);
        assert_eq!(owners(etl.event(0, T + MS, Thread::end(60, 61))), ["c.exe"]);
    }

    #[test]
    fn sampled_before_its_start() {
        let etl = bare(machine(), T, 49).event(0, T + 3, Thread::start(50, 49).by(50, 51));
        assert_eq!(owners(etl), ["b.exe"]);
    }

    #[test]
    fn the_header_of_a_start_names_the_creator() {
        let etl = machine().event(0, T, Thread::start(50, 49).by(40, 41));
        assert_eq!(owners(bare(etl, T + MS, 49)), ["b.exe"]);
    }

    #[test]
    fn names() {
        let named = |etl: Etl| {
            let trace = reading::synthetic(etl);
            trace.threads.iter().find(|thread| thread.tid == 41).unwrap().name.clone()
        };
        assert_eq!(named(machine().event(0, T, kernel::thread::set_name(40, 41, "render"))), "render");
        assert_eq!(named(machine().event(0, T, Thread::dc_end(40, 41).name("late"))), "late");
        let early = Etl::new().event(0, T, kernel::thread::set_name(40, 41, "early"));
        assert_eq!(named(early.event(0, T + 1, Thread::dc_end(40, 41))), "early");
    }

    #[test]
    fn version_0_has_the_thread_first() {
        let etl = Etl::new().event(0, START, Process::dc_start(60, "c.exe"));
        let etl = etl.event(0, START, Thread::dc_start(60, 61).version(0));
        assert_eq!(owners(bare(etl, T, 61)), ["c.exe"]);
    }
}
