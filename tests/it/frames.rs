//! Which address a function is looked up by.

use std::cell::RefCell;

use etwprof::profile::{Filter, Naming, Profile};
use etwprof::symbols::{Function, Names};
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
