//! Which address a function is looked up by.

use std::cell::RefCell;

use etwprof::profile::{CallTree, Filter, Grouping, Naming, Profile};
use etwprof::report::{flamegraph, folded};
use etwprof::symbols::{Function, FunctionName, Names};
use etwprof::trace::ModuleId;

use crate::stacks::{machine, stacks};
use crate::support::reading;
use crate::synth::{Etl, Image, START};

const KERNEL: u64 = 0xffff_8000_0000_0000;
const A: u64 = 0x40_0000;

/// Knows no names and remembers what was asked.
#[derive(Default)]
struct Asked(RefCell<Vec<u64>>);

impl Names for Asked {
    fn functions(&self, _: ModuleId, rva: u64) -> &[Function] {
        self.0.borrow_mut().push(rva);
        &[]
    }
}

fn with_modules() -> Etl {
    machine()
        .event(0, START + 2, Image::dc_start(0, KERNEL, 0x1000, "ntoskrnl.exe"))
        .event(0, START + 2, Image::dc_start(40, A, 0x1000, "a.exe"))
        .event(0, START + 2, Image::dc_start(40, A + 0x1000, 0x1000, "next.dll"))
}

/// The leaf as it is; of every return address, the first user frame under a kernel part too, the byte before it.
#[test]
fn return_addresses_are_looked_up_one_byte_before() {
    let frames = [KERNEL + 0x10, KERNEL + 0x20, A + 0x30, A + 0x40];
    let trace = reading::synthetic(with_modules().sampled(0, START + 100, 40, 41, &frames));
    let asked = Asked::default();
    Profile::new(&trace, &Filter::default(), &asked, Naming::default());
    let mut asked = asked.0.into_inner();
    asked.sort_unstable();
    assert_eq!(asked, [0x10, 0x1f, 0x2f, 0x3f]);
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
    Profile::new(&trace, &Filter::default(), &asked, Naming::default());
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

/// Names every address `adds 400`, as F# and scripts may.
struct Adds([Function; 1]);

impl Names for Adds {
    fn functions(&self, _: ModuleId, _: u64) -> &[Function] {
        &self.0
    }
}

/// In folded stacks a number behind a blank is a count, and of two counts the first is another run's: the picture would
/// be a comparison then, and the name cut.
#[test]
fn a_name_that_ends_in_a_number_is_no_comparison() {
    let trace = reading::synthetic(with_modules().sampled(0, START + 100, 40, 41, &[A + 0x10, A + 0x20]));
    let name = FunctionName::Text("adds 400".into());
    let names = Adds([Function { name, file: None, line: None, inlined: false, approximate: false }]);
    let profile = Profile::new(&trace, &Filter::default(), &names, Naming::default());
    let tree = CallTree::new(&profile, &trace, Grouping { by_process: true, by_thread: true });
    let mut out = Vec::new();
    folded::write(&mut out, &tree).unwrap();
    let folded = String::from_utf8(out).unwrap();
    assert_eq!(folded, "a.exe (40);thread 41;a!adds\u{a0}400;a!adds\u{a0}400 1\n");
    // As flamegraph.pl and inferno look for a second count.
    let (stack, _) = folded.trim_end().rsplit_once(' ').unwrap();
    assert!(!stack.rsplit_once(' ').unwrap().1.bytes().all(|byte| byte.is_ascii_digit()));
    let mut out = Vec::new();
    let options = flamegraph::Options { title: "t".into(), subtitle: String::new() };
    flamegraph::write(&mut out, &tree, &options).unwrap();
    let svg = String::from_utf8(out).unwrap();
    let titles = svg.matches("<title>a!adds\u{a0}400 (1 samples, 100.00%)</title>");
    assert_eq!(titles.count(), 2, "{svg}");
}
