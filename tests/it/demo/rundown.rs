//! Who is there: at the session's begin, at its end, and when processes come and go.

use std::collections::HashSet;

use super::code::Code;
use super::machine::{self, LENGTH, Machine, Module, SYSTEM};
use super::managed::{Body, METHODS};
use super::random::hash;
use super::stories::Stories;
use crate::synth::kernel::{image, perfinfo, system, thread};
use crate::synth::{Event, Image, IntoEvent, Process, Thread, clr, image_id};

/// What the clock shows at the begin: 2.7 hours after the machine's start, at 10 MHz.
pub(super) const BEGIN: i64 = 97_531_246_800;
pub(super) const TICKS_PER_MS: i64 = 10_000;

/// The sampling interval: 1 ms in units of 100 ns.
const INTERVAL: u32 = 10_000;
/// The tool that records.
const TOOL: (u32, u32) = (6120, 6124);
/// Group masks: process, thread, image load; profile.
const MASKS: [u32; 8] = [0x7, 0x2, 0, 0, 0, 0, 0, 0];

/// A millisecond of the recording on the clock.
pub(super) fn at(ms: i64) -> i64 {
    BEGIN + ms * TICKS_PER_MS
}

/// The events so far, in no order.
pub(super) struct Tape {
    machine: Machine,
    pub events: Vec<(u16, i64, Event)>,
    versioned: HashSet<&'static str>,
}

/// Which event tells of an image.
type ImageKind = fn(u32, u64, u64, &str) -> Image;

impl Tape {
    pub(super) fn new(machine: Machine) -> Tape {
        Tape { machine, events: Vec::new(), versioned: HashSet::new() }
    }

    pub(super) fn put(&mut self, cpu: u16, time: i64, event: impl Into<Event>) {
        self.events.push((cpu, time, event.into()));
    }

    /// What the merge step found out about the system.
    pub(super) fn system(&mut self) {
        let installed = 133_700_000_000_000_000;
        self.put(0, BEGIN, image_id::system_paths(r"C:\Windows\system32", r"C:\Windows\"));
        self.put(
            0,
            BEGIN,
            image_id::build_info(installed, "26100.1.amd64fre.ge_release.240331-1435", "Windows 11 Pro"),
        );
        let volumes = [
            (r"\??\", ""),
            (r"\SystemRoot\", r"C:\Windows\"),
            (r"\Device\HarddiskVolume3\", r"C:\"),
            (r"\Device\HarddiskVolume5\", r"D:\"),
            (r"\Device\LanmanRedirector\", r"\\"),
            (r"\Device\Mup\", r"\\"),
        ];
        for (nt, dos) in volumes {
            self.put(0, BEGIN, image_id::volume_mapping(nt, dos));
        }
    }

    /// The rundown at the begin, on processor 1 from the second millisecond on. Samples flow already.
    pub(super) fn begin(&mut self) {
        let mut time = at(2);
        let cpu = 1;
        self.put(0, BEGIN + 40, system::extension(MASKS).by(TOOL.0, TOOL.1));
        self.put(0, BEGIN + 60, perfinfo::collection_start(INTERVAL).by(TOOL.0, TOOL.1));
        self.put(0, BEGIN + 90, system::cpu_config(2_995, 4, "DEMO-PC", 9).by(TOOL.0, TOOL.1));
        for process in self.machine.processes.iter().filter(|process| process.alive.0 < 0) {
            self.put(cpu, time, describe(process, Process::dc_start));
            for event in threads(self.machine, process, Thread::dc_start) {
                time += 3;
                self.put(cpu, time, event);
            }
            for module in process.modules {
                time += 25;
                self.image(cpu, time, Image::dc_start, process.id, module);
            }
            time += 40;
        }
        for module in self.machine.kernel {
            time += 12;
            self.image(cpu, time, Image::dc_start, 0, module);
        }
        self.put(cpu, time + 30, system::rundown_complete());
    }

    /// The rundown at the end, on processor 2, from `time` on. Returns when it was complete.
    pub(super) fn end(&mut self, mut time: i64) -> i64 {
        let cpu = 2;
        self.put(cpu, time, system::end_extension(MASKS));
        self.put(cpu, time + 20, perfinfo::collection_end(INTERVAL).by(TOOL.0, TOOL.1));
        for process in self.machine.processes.iter().filter(|process| process.alive.1 > LENGTH) {
            time += 40;
            self.put(cpu, time, describe(process, Process::dc_end));
            for event in threads(self.machine, process, Thread::dc_end) {
                time += 3;
                self.put(cpu, time, event);
            }
            for module in process.modules {
                time += 25;
                self.image(cpu, time, Image::dc_end, process.id, module);
            }
        }
        for module in self.machine.kernel {
            time += 12;
            self.image(cpu, time, Image::dc_end, 0, module);
        }
        self.put(cpu, time + 10, image::kernel_base(self.machine.kernel[0].base));
        self.put(cpu, time + 20, system::rundown_complete());
        time + 20
    }

    /// The processes that start and end while the recording runs.
    pub(super) fn comings_and_goings(&mut self) {
        for process in self.machine.processes {
            if process.alive.0 > 0 {
                self.process_start(3, at(process.alive.0), process);
            }
            if process.alive.1 < LENGTH {
                self.process_end(3, at(process.alive.1), process);
            }
        }
    }

    fn process_start(&mut self, cpu: u16, mut time: i64, process: &machine::Process) {
        let creator = process.parent + 4;
        self.put(cpu, time, describe(process, Process::start).by(process.parent, creator));
        let mut threads = process.threads.iter();
        let main = threads.next().expect("a process has a thread");
        self.put(
            cpu,
            time + 260,
            lay_out(self.machine, process.id, main, Thread::start).by(process.parent, creator),
        );
        for module in process.modules {
            time += 900;
            self.image(cpu, time, Image::load, process.id, module);
        }
        for other in threads {
            let time = at(other.busy.0) - 3_000;
            self.put(
                cpu,
                time,
                lay_out(self.machine, process.id, other, Thread::start).by(process.id, main.id),
            );
            let naming = thread::set_name(process.id, other.id, other.name).by(process.id, other.id);
            self.put(cpu, time + 420, naming);
        }
    }

    fn process_end(&mut self, cpu: u16, mut time: i64, process: &machine::Process) {
        let main = process.threads.first().expect("a process has a thread");
        for other in process.threads {
            self.put(
                cpu,
                time,
                lay_out(self.machine, process.id, other, Thread::end).by(process.id, other.id),
            );
        }
        for module in process.modules {
            time += 30;
            self.image(cpu, time, Image::unload, process.id, module);
        }
        let end = describe(process, Process::end).exit_status(0);
        self.put(cpu, time + 200, end.by(process.id, main.id));
    }

    /// An image event, and before it what the merge step knows of the file.
    fn image(&mut self, cpu: u16, time: i64, kind: ImageKind, process: u32, module: &Module) {
        let (base, size, stamp) = (module.base, module.size, module.time_date_stamp());
        if self.versioned.insert(module.path) {
            self.put(cpu, time, image_id::file_version(size, stamp, module.file(), "10.0.26100.1"));
        }
        self.put(cpu, time, image_id::image_id(process, base, size.into(), stamp, module.file()));
        let (id, age, pdb) = module.pdb();
        let is_managed = matches!(module.stem(), "System.Private.CoreLib" | "Orders.Core");
        let of_pdb = if is_managed { image_id::dbg_id_il_rsds } else { image_id::dbg_id_rsds };
        self.put(cpu, time, of_pdb(process, base, id, age, &pdb));

        let image = kind(process, base, size.into(), &module.nt_path()).checksum(module.checksum());
        let image = image.default_base(if module.is_kernel() { 0x1_4000_0000 } else { base });
        let is_rundown = [Image::dc_start as ImageKind, Image::dc_end]
            .iter()
            .any(|&other| std::ptr::fn_addr_eq(other, kind));
        // The rundown of user processes has neither time stamp nor ids.
        if is_rundown && process != 0 {
            self.put(cpu, time, image);
        } else {
            let writer = if process == 0 { TOOL } else { (process, process + 4) };
            self.put(cpu, time, image.time_date_stamp(stamp).by(writer.0, writer.1));
        }
    }

    /// The methods that were compiled while the recording ran, told by the thread that compiled them.
    pub(super) fn compilations(&mut self, code: &Code) {
        for body in &code.bodies {
            if let Some(ms) = body.from {
                let thread = self.machine.id(if body.tier == 4 { 7372 } else { 7344 });
                let orders = self.machine.orders();
                self.put(2, at(ms) - 800, method(orders, body, clr::Method::load).by(orders, thread));
            }
        }
    }

    /// The runtime's rundown after the session's end, from `time` on.
    pub(super) fn clr_rundown(&mut self, code: &Code, mut time: i64) {
        let cpu = 0;
        let machine = self.machine;
        let (orders, teller) = (machine.orders(), machine.id(7388));
        let by = |event: Event| event.by(orders, teller);
        self.put(cpu, time, by(clr::dc_end_init(orders)));
        let coreclr = r"C:\Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.10\coreclr.dll";
        let command_line = r"C:\Services\Orders\orders.exe --book equities --port 7450";
        self.put(cpu, time + 900, by(clr::runtime_dc(orders, command_line, coreclr)));
        time += 1_800;
        for body in &code.bodies {
            self.put(cpu, time, by(method(orders, body, clr::Method::dc_end).into()));
            let map: Vec<(i32, u32)> = il_map(body);
            self.put(cpu, time + 30, by(clr::il_to_native_map_dc_end(orders, method_id(body), 0, &map)));
            time += 160;
        }
        // Of precompiled code the runtime tells the methods that ran.
        for symbol in Stories::new().functions() {
            let Some(method) = precompiled(code, symbol) else { continue };
            self.put(cpu, time, by(method.into()));
            time += 60;
        }
        for module in self.machine.processes.iter().flat_map(|process| process.modules) {
            let (precompiled, id) = match module.stem() {
                "System.Private.CoreLib" => (0x20, CORELIB_ID),
                "Orders.Core" => (0, ORDERS_CORE_ID),
                _ => continue,
            };
            let (guid, age, pdb) = module.pdb();
            let path = format!(r"C:\{}", module.path);
            let event = clr::Module::dc_end(orders, id, &path).flags(0x8 | precompiled);
            self.put(cpu, time, by(event.managed_pdb(guid, age, &pdb).into()));
            time += 200;
        }
        self.put(cpu, time, by(clr::dc_end_complete(orders)));
    }
}

/// The runtime's handles of the two managed modules.
const CORELIB_ID: u64 = 0x7FFA_EFA4_4000;
const ORDERS_CORE_ID: u64 = 0x7FFA_F01E_6230;

fn method_id(body: &Body) -> u64 {
    0x7FFA_F01E_9000 + 0x38 * (hash(body.method.key) % 0x400)
}

fn method(orders: u32, body: &Body, kind: fn(u32, u64, u32, [&str; 3]) -> clr::Method) -> clr::Method {
    let source = body.method;
    let is_stub = source.class == "dynamicClass";
    let index = METHODS.iter().position(|method| method.key == source.key).expect("a method of the table");
    let token = 0x0600_0000 + if is_stub { 0 } else { 1 + u32::try_from(index).expect("few methods") };
    let flags = 0x8 | if is_stub { 0x1 } else { 0 };
    kind(orders, body.start, body.size, [source.class, source.name, source.signature])
        .id(method_id(body))
        .module(ORDERS_CORE_ID)
        .token(token)
        .flags(flags)
        .tier(body.tier)
}

/// A method of the framework, whose image has its code: `System.Private.CoreLib!Namespace.Class.Method`. `None` for
/// functions of other modules.
fn precompiled(code: &Code, symbol: &str) -> Option<clr::Method> {
    let name = symbol.strip_prefix("System.Private.CoreLib!")?;
    let (class, name) = name.rsplit_once('.').expect("a class and a method");
    let arguments = match class.rsplit_once('`') {
        None => "",
        Some((_, "1")) => "[System.__Canon]",
        Some(_) => "[System.__Canon,System.__Canon]",
    };
    let class = format!("{class}{arguments}");
    let (rva, size) = code.function(symbol);
    let start = code.module("System.Private.CoreLib").base + u64::from(rva);
    let id = CORELIB_ID + 0x1000 + 0x20 * (hash(symbol) % 0x4000);
    let method = clr::Method::dc_end(code.machine.orders(), start, size, [class.as_str(), name, "void  ()"]);
    Some(method.id(id).module(CORELIB_ID).token(0x0600_0000 + (hash(symbol) % 0x6000) as u32).flags(0))
}

/// A line for each 24 bytes of code, between prolog and epilog.
fn il_map(body: &Body) -> Vec<(i32, u32)> {
    const PROLOG: i32 = -2;
    const EPILOG: i32 = -3;
    let inner = (14..body.size - 12).step_by(24).zip(0..).map(|(native, line)| (line * 9, native));
    [(PROLOG, 0)].into_iter().chain(inner).chain([(EPILOG, body.size - 9)]).collect()
}

fn describe(process: &machine::Process, kind: fn(u32, &str) -> Process) -> Process {
    let is_users = process.parent >= 5_000;
    let sid: &[u32] = if is_users { &[21, 1_004_336_348, 1_177_238_915, 682_003_330, 1_001] } else { &[18] };
    kind(process.id, process.name)
        .parent(process.parent)
        .session(if is_users { 1 } else { 0 })
        .key(0xFFFF_A70C_0000_0000 + u64::from(process.id) * 0x1080)
        .directory_table(0x1_0000_2000 + (u64::from(process.id) << 14))
        .sid(5, sid)
        .command_line(process.command_line)
}

/// The threads of a process; those of the idle process are one for each processor.
fn threads(machine: Machine, process: &machine::Process, kind: fn(u32, u32) -> Thread) -> Vec<Thread> {
    if process.id == 0 {
        return (0..4)
            .map(|cpu| kind(0, 0).affinity(1 << cpu).user_stack(0, 0).teb(0).priorities(0, 5, 0))
            .collect();
    }
    process.threads.iter().map(|thread| lay_out(machine, process.id, thread, kind)).collect()
}

fn lay_out(machine: Machine, process: u32, thread: &machine::Thread, kind: fn(u32, u32) -> Thread) -> Thread {
    let number = u64::from(thread.id);
    let kernel_stack = 0xFFFF_8102_0000_0000 + number * 0x8000;
    let event = kind(process, thread.id)
        .kernel_stack(kernel_stack + 0x7000, kernel_stack + 0x1000)
        .affinity(0xF)
        .priorities(thread.priority, 5, 2)
        .name(thread.name);
    if process == SYSTEM {
        return event.user_stack(0, 0).teb(0).win32_start(machine.kernel[0].base + 0x0040_1000);
    }
    let user_stack = 0x00B3_1000_0000 + number * 0x10_0000;
    event
        .user_stack(user_stack, user_stack - 0x4000)
        .teb(0x00B3_0E00_0000 + number * 0x2000)
        .win32_start(0x7FFB_9C6C_0000 + machine.slide + 0x5_A0F0)
}
