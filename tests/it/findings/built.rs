//! Recordings of one program, built from stacks of names.

use std::collections::BTreeMap;
use std::sync::Arc;

use etwprof::etl::Recording;
use etwprof::findings::{Evidence, Finding, Findings};
use etwprof::profile::{Filter, Profile};
use etwprof::symbols::resolver::Symbols;
use etwprof::symbols::{Function, FunctionName, Names};
use etwprof::trace::{Keep, ModuleId, Trace};

use crate::support::reading;
use crate::support::stacks::exact;
use crate::synth::{Etl, Image, Process, START, Thread, clr};

pub const PID: u32 = 42;
pub const TID: u32 = 43;
/// 1 ms of a 10 MHz clock: the sampling interval.
pub const MS: i64 = 10_000;

/// A line of a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// A method that was compiled at run time: module, type, method.
    Method(String, String, String),
    /// A function of an image: its module and its name.
    Native(String, String),
}

pub fn method(module: &str, type_name: &str, method: &str) -> Line {
    Line::Method(module.into(), type_name.into(), method.into())
}

pub fn native(module: &str, function: &str) -> Line {
    Line::Native(module.into(), function.into())
}

/// The program's own code.
pub fn own(name: &str) -> Line {
    method("Orders", "Orders.Program", name)
}

/// Drivers and the kernel.
const KERNEL: [&str; 7] = ["ntoskrnl", "ntkrnlmp", "ntkrnlpa", "ntkrpamp", "hal", "Ntfs", "FLTMGR"];

/// A recording that is being built.
pub struct Built {
    pub etl: Etl,
    /// Each line, and where it is.
    lines: BTreeMap<Line, u64>,
    images: BTreeMap<String, u64>,
    drivers: Vec<String>,
    /// What the functions of images are called, by their RVAs.
    functions: BTreeMap<u64, Function>,
    /// When the next sample is taken.
    pub now: i64,
}

impl Names for Built {
    fn functions(&self, _: ModuleId, rva: u64) -> Vec<&Function> {
        self.functions.range(..=rva).next_back().map(|(_, function)| function).into_iter().collect()
    }
}

impl Built {
    /// Of a machine with four processors, and one program with a .NET runtime.
    pub fn new() -> Built {
        Built::of("orders.exe")
    }

    /// The same with another program.
    pub fn of(program: &str) -> Built {
        let etl = Etl::new()
            .cpus(4)
            .event(0, START + 1, Process::dc_start(0, "Idle"))
            .event(0, START + 1, Process::dc_start(4, "System"))
            .event(0, START + 1, Process::dc_start(PID, program))
            .event(0, START + 1, Thread::dc_start(PID, TID));
        Built {
            etl,
            lines: BTreeMap::new(),
            images: BTreeMap::new(),
            drivers: KERNEL.map(str::to_owned).into(),
            functions: BTreeMap::new(),
            now: START + 100 * MS,
        }
    }

    /// The same with another driver than those that every machine has.
    pub fn with_driver(mut self, name: &str) -> Built {
        self.drivers.push(name.into());
        self
    }

    /// Any event.
    pub fn event(mut self, cpu: u16, time: i64, event: impl Into<crate::synth::Event>) -> Built {
        self.etl = self.etl.event(cpu, time, event);
        self
    }

    /// So many samples with this stack, the root first: two milliseconds apart, so that no thread runs all the time.
    pub fn samples(self, count: usize, stack: &[Line]) -> Built {
        self.samples_of(PID, TID, count, 2 * MS, stack)
    }

    /// The same of any thread, so far apart.
    pub fn samples_of(mut self, pid: u32, tid: u32, count: usize, apart: i64, stack: &[Line]) -> Built {
        let addresses: Vec<u64> = stack.iter().rev().map(|line| self.address(line)).collect();
        for _ in 0..count {
            self.etl = self.etl.sampled(0, self.now, pid, tid, &addresses);
            self.now += apart;
        }
        self
    }

    /// Where a line is.
    pub fn address(&mut self, line: &Line) -> u64 {
        if let Some(known) = self.lines.get(line) {
            return *known;
        }
        let number = 1 + self.lines.len() as u64;
        let address = match line {
            Line::Method(module, type_name, method) => {
                let (start, module) = (0x7ffa_1000_0000 + 0x1000 * number, self.assembly(module));
                let load = clr::Method::load(PID, start, 0x100, [type_name, method, "void  ()"]);
                self.there(START + 10, load.module(module).id(number));
                start + 0x10
            }
            Line::Native(module, function) => {
                let base = self.image(module);
                let name = FunctionName::Native(Arc::from(&**function));
                let evidence = etwprof::symbols::Evidence::Public;
                self.functions.insert(0x1000 * number, exact(name, evidence));
                base + 0x1000 * number + 0x10
            }
        };
        self.lines.insert(line.clone(), address);
        address
    }

    fn there(&mut self, time: i64, event: impl Into<crate::synth::Event>) {
        self.etl = std::mem::take(&mut self.etl).event(0, time, event);
    }

    fn assembly(&mut self, name: &str) -> u64 {
        let number = 1 + self.images.len() as u64;
        if let Some(known) = self.images.get(name) {
            return *known;
        }
        self.there(START + 5, clr::Module::load(PID, number, &format!(r"C:\app\{name}.dll")));
        self.images.insert(name.into(), number);
        number
    }

    fn image(&mut self, name: &str) -> u64 {
        if let Some(known) = self.images.get(name) {
            return *known;
        }
        let number = 1 + self.images.len() as u64;
        let is_driver = self.drivers.iter().any(|driver| driver == name);
        let (base, pid, ending) = match is_driver {
            true => (0xffff_f801_0000_0000, 0, if name.starts_with("nt") { "exe" } else { "sys" }),
            false => (0x7ff6_0000_0000, PID, "dll"),
        };
        let base = base + 0x1000_0000 * number;
        let path = format!(r"\Device\HarddiskVolume3\Windows\System32\{name}.{ending}");
        self.there(START + 5, Image::dc_start(pid, base, 0x100_0000, &path));
        self.images.insert(name.into(), base);
        base
    }

    pub fn profile(&self) -> Profile {
        let trace: Arc<Trace> = reading::synthetic(self.etl.clone());
        assert_eq!(trace.lost.malformed_events, 0);
        Profile::new(&trace, &Filter::default(), self)
    }

    /// Of a reading that keeps context switches and disk I/O.
    pub fn findings_with_waits(&self) -> Findings {
        let recording = Recording::from_bytes("built.etl", self.etl.clone().finish()).unwrap();
        let keep = Keep { switches: true, readied: true, disk: true, ..Keep::default() };
        let trace = Arc::new(reading::every_way(&recording, |builder| builder.keep(keep)).value);
        Findings::new(&Profile::new(&trace, &Filter::default(), self), &Symbols::default())
    }

    pub fn findings(&self) -> Findings {
        Findings::new(&self.profile(), &Symbols::default())
    }
}

/// What was found, by its id.
pub fn ids(findings: &Findings) -> Vec<&'static str> {
    findings.findings.iter().map(|finding| finding.kind.id).collect()
}

#[track_caller]
pub fn finding<'f>(findings: &'f Findings, id: &str) -> &'f Finding {
    let found = findings.findings.iter().find(|finding| finding.kind.id == id);
    found.unwrap_or_else(|| panic!("no {id} in {:?}", ids(findings)))
}

/// The samples of the first part of a sort.
pub fn parts(finding: &Finding, sort: etwprof::findings::Sort) -> Vec<u64> {
    let of_sort = finding.evidence.iter().find_map(|evidence| match evidence {
        Evidence::Parts(parts) if parts.sort == sort => Some(parts),
        _ => None,
    });
    of_sort.map(|parts| parts.rows.iter().map(|(_, samples, _)| *samples).collect()).unwrap_or_default()
}
