//! Which address a function is looked up by.

use std::cell::RefCell;

use etwprof::profile::{Detail, Filter, Grouping, Profile, Shape};
use etwprof::report::{Spelling, flamegraph, folded};
use etwprof::symbols::{Evidence, Function, FunctionName, Names};
use etwprof::trace::ModuleId;

use crate::support::reading;
use crate::support::stacks::{exact, machine, stacks};
use crate::synth::{Etl, Image, Process, START, Sample, Thread, stack_walk};

const KERNEL: u64 = 0xffff_8000_0000_0000;
const A: u64 = 0x40_0000;

/// Knows no names and remembers what was asked.
#[derive(Default)]
struct Asked(RefCell<Vec<u64>>);

impl Names for Asked {
    fn functions(&self, _: ModuleId, rva: u64) -> Vec<&Function> {
        self.0.borrow_mut().push(rva);
        Vec::new()
    }
}

fn with_modules() -> Etl {
    machine()
        .event(0, START + 2, Image::dc_start(0, KERNEL, 0x1000, "ntoskrnl.exe"))
        .event(0, START + 2, Image::dc_start(40, A, 0x1000, "a.exe"))
        .event(0, START + 2, Image::dc_start(40, A + 0x1000, 0x1000, "next.dll"))
}

/// The leaf as it is, and so the first user frame under a kernel part: the instruction that was interrupted, or the one
/// behind a system call. Of every return address the byte before it.
#[test]
fn return_addresses_are_looked_up_one_byte_before() {
    let frames = [KERNEL + 0x10, KERNEL + 0x20, A + 0x30, A + 0x40];
    let trace = reading::synthetic(with_modules().sampled(0, START + 100, 40, 41, &frames));
    let asked = Asked::default();
    Profile::new(&trace, &Filter::default(), &asked);
    let mut asked = asked.0.into_inner();
    asked.sort_unstable();
    assert_eq!(asked, [0x10, 0x1f, 0x30, 0x3f]);
}

/// The kernel may call back into user mode: inside a user fragment too, a user frame right below the kernel's is no
/// return address. A kernel frame below the user's is looked up as one.
#[test]
fn a_user_frame_below_kernel_frames_is_looked_up_as_it_is() {
    let frames = [A + 0x10, A + 0x20, KERNEL + 0x30, KERNEL + 0x40, A + 0x50, A + 0x60];
    let etl = with_modules().event(0, START + 100, Sample::new(frames[0], 41)).event(
        0,
        START + 104,
        stack_walk::full(START + 100, 40, 41, &frames),
    );
    let asked = Asked::default();
    Profile::new(&reading::synthetic(etl), &Filter::default(), &asked);
    let mut asked = asked.0.into_inner();
    asked.sort_unstable();
    assert_eq!(asked, [0x10, 0x1f, 0x2f, 0x3f, 0x50, 0x5f]);
}

/// One address as a leaf and as a return address are two places.
#[test]
fn a_leaf_and_a_return_address_at_one_place() {
    let etl = with_modules().sampled(0, START + 100, 40, 41, &[A + 0x30]).sampled(
        0,
        START + 200,
        40,
        41,
        &[A + 0x10, A + 0x30],
    );
    let trace = reading::synthetic(etl);
    let asked = Asked::default();
    Profile::new(&trace, &Filter::default(), &asked);
    let mut asked = asked.0.into_inner();
    asked.sort_unstable();
    assert_eq!(asked, [0x10, 0x2f, 0x30]);
}

/// A call may be the last instruction of its module: its return address is where the next module begins.
#[test]
fn a_return_address_at_the_end_of_a_module_is_of_that_module() {
    let etl = with_modules().sampled(0, START + 100, 40, 41, &[A + 0x10, A + 0x1000]).sampled(
        0,
        START + 200,
        40,
        41,
        &[A + 0x1000],
    );
    assert_eq!(stacks(etl), ["a.exe: a!0x1000 a!0x10", "a.exe: next!0x0"]);
}

/// What lives in the kernel under a name of its own has no user part to miss. Where images were not recorded, nobody
/// knows who does.
#[test]
fn only_processes_with_user_mode_miss_their_user_stack() {
    let kernel_stack = |etl: Etl, pid, tid, time| etl.sampled(0, time, pid, tid, &[KERNEL + 0x2000]);
    let with_registry = |etl: Etl| {
        let etl = etl.event(0, START + 2, Process::dc_start(60, "Registry")).event(
            0,
            START + 2,
            Thread::dc_start(60, 61),
        );
        let etl = kernel_stack(etl, 60, 61, START + 100);
        kernel_stack(etl, 40, 41, START + 200)
    };
    let text = |process: &str| format!("{process} 0xffff800000002000");
    let missing = |process: &str| text(&format!("{process} [user stack missing]"));
    assert_eq!(stacks(with_registry(with_modules())), [text("Registry:"), missing("a.exe:")]);
    assert_eq!(stacks(with_registry(machine())), [missing("Registry:"), missing("a.exe:")]);
    // Linux processes of WSL run in user mode without an image of Windows.
    let etl = with_registry(with_modules()).sampled(0, START + 300, 60, 61, &[0xa]);
    assert_eq!(stacks(etl), [missing("Registry:"), missing("a.exe:"), "Registry: 0xa".to_owned()]);
}

/// Names every address `adds 400`, as F# and scripts may.
struct Adds([Function; 1]);

impl Names for Adds {
    fn functions(&self, _: ModuleId, _: u64) -> Vec<&Function> {
        self.0.iter().collect()
    }
}

/// In folded stacks a number behind a blank is a count, and of two counts the first is another run's: the picture would
/// be a comparison then, and the name cut.
#[test]
fn a_name_that_ends_in_a_number_is_no_comparison() {
    let trace = reading::synthetic(with_modules().sampled(0, START + 100, 40, 41, &[A + 0x10, A + 0x20]));
    let name = FunctionName::Text("adds 400".into());
    let names = Adds([exact(name, Evidence::Pdb)]);
    let profile = Profile::new(&trace, &Filter::default(), &names);
    let detail = Detail::default();
    let arranged = profile.arrange(&Shape { grouping: Grouping::Thread, detail, ..Shape::default() });
    let labels = Spelling::new(&profile, detail);
    let mut out = Vec::new();
    folded::write(&mut out, &arranged.counts, &labels).unwrap();
    let folded = String::from_utf8(out).unwrap();
    assert_eq!(folded, "a.exe (40);thread 41;a!adds\u{a0}400;a!adds\u{a0}400 1\n");
    // As flamegraph.pl and inferno look for a second count.
    let (stack, _) = folded.trim_end().rsplit_once(' ').unwrap();
    assert!(!stack.rsplit_once(' ').unwrap().1.bytes().all(|byte| byte.is_ascii_digit()));
    let mut out = Vec::new();
    flamegraph::write(&mut out, &arranged, &labels, &flamegraph::Options::default()).unwrap();
    let svg = String::from_utf8(out).unwrap();
    assert_eq!(svg.matches("<title>a!adds 400\n100.00 %, 1 sample").count(), 2, "{svg}");
}

/// Names each address by itself.
struct Each(Vec<(u64, Function)>);

impl Names for Each {
    fn functions(&self, _: ModuleId, rva: u64) -> Vec<&Function> {
        self.0.iter().filter(|(at, _)| *at == rva).map(|(_, function)| function).collect()
    }
}

/// Two functions that read alike stay two: the counts of each are its own.
#[test]
fn native_names_are_short_unless_exact_ones_are_asked_for() {
    let etl = with_modules()
        .sampled(0, START + 100, 40, 41, &[A + 0x10])
        .sampled(0, START + 200, 40, 41, &[A + 0x20])
        .sampled(0, START + 300, 40, 41, &[A + 0x20])
        .sampled(0, START + 400, 40, 41, &[A + 0x30]);
    let trace = reading::synthetic(etl);
    let native = |name: &str| exact(FunctionName::Native(name.into()), Evidence::Pdb);
    let script = "f<a,b >";
    let names = Each(vec![
        (0x10, native("std::vector<int,std::allocator<int> >::f::__l2::<lambda_1>::operator()")),
        (0x20, native("std::vector<int,std::allocator<int> >::f::__l2::<lambda_2>::operator()")),
        (0x30, exact(FunctionName::Text(script.into()), Evidence::Pdb)),
    ]);
    let profile = Profile::new(&trace, &Filter::default(), &names);
    let text = |raw: bool| {
        let detail = Detail { raw, ..Detail::default() };
        let (tree, _) = profile.tree(Grouping::default(), detail);
        let mut out = Vec::new();
        folded::write(&mut out, &tree, &Spelling::new(&profile, detail)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        text(false),
        ["a!f<a,b > 1", "a!std::vector<int>::f::<lambda> 1", "a!std::vector<int>::f::<lambda> 2"]
    );
    assert_eq!(
        text(true),
        [
            "a!f<a,b > 1",
            "a!std::vector<int,std::allocator<int> >::f::__l2::<lambda_1>::operator() 1",
            "a!std::vector<int,std::allocator<int> >::f::__l2::<lambda_2>::operator() 2",
        ]
    );
}
