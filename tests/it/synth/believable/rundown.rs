//! What a session writes of what runs when it begins and when it ends, and of processes that come and go.

use crate::synth::kernel::system;
use crate::synth::kernel::{image, perfinfo, process, thread};
use crate::synth::{Clock, Event, Guid, IntoEvent, clr, image_id};

use super::Options;
use super::population::{Population, Process, SYSTEM};
use super::space::{Image, Space};

/// The id of the process that has the kernel's images.
const IDLE: u32 = 0;
const TIME_DATE_STAMP: u32 = 0x5f3c_1a00;

/// What is there when the session begins. Methods are loaded right after it: see [`method_load`].
pub(super) fn start(options: &Options, population: &Population) -> Vec<Vec<Event>> {
    let mhz = match options.clock {
        Clock::CpuCycles { mhz } => mhz,
        _ => 2995,
    };
    let architecture = if options.pointer_size == 4 { 0 } else { 9 };
    let mut events = vec![
        system::cpu_config(mhz, options.processors.into(), "BELIEVABLE", architecture),
        system::extension(system::SAMPLING_MASKS),
        perfinfo::collection_start(10_000),
        process::Process::dc_start(IDLE, "Idle").into(),
        thread::Thread::dc_start(IDLE, 0).into(),
    ];
    for driver in &population.drivers {
        events.push(mapping(image::Image::dc_start, IDLE, driver));
    }
    for (number, of) in population.processes.iter().enumerate() {
        events.push(described(process::Process::dc_start(of.pid, &of.name), of, number));
        events.extend(of.thread_ids().map(|tid| thread::Thread::dc_start(of.pid, tid).into()));
        events.extend(of.images.iter().map(|image| mapping(image::Image::dc_start, of.pid, image)));
    }
    events.push(system::rundown_complete());
    events.into_iter().map(|event| vec![event]).collect()
}

/// What is there when the session ends, and what the merge adds; what has one time in one list.
pub(super) fn end(population: &Population) -> Vec<Vec<Event>> {
    let mut moments =
        vec![vec![system::end_extension(system::SAMPLING_MASKS), perfinfo::collection_end(10_000)]];
    moments.extend(population.drivers.iter().map(|driver| identified(IDLE, driver)));
    for (number, of) in population.processes.iter().enumerate() {
        moments.push(of.thread_ids().map(|tid| thread::Thread::dc_end(of.pid, tid).into()).collect());
        moments.extend(of.images.iter().map(|image| identified(of.pid, image)));
        moments.push(vec![described(process::Process::dc_end(of.pid, &of.name), of, number)]);
    }
    moments.push(vec![
        process::Process::dc_end(IDLE, "Idle").into(),
        image_id::volume_mapping(r"\Device\HarddiskVolume2\", r"C:\"),
        image_id::volume_mapping(r"\SystemRoot\", r"C:\Windows\"),
    ]);
    moments
}

/// A process ends.
pub(super) fn process_end(population: &Population, number: usize) -> Vec<Event> {
    let of = &population.processes[number];
    let mut events: Vec<Event> = Vec::new();
    events.extend(of.thread_ids().map(|tid| thread::Thread::end(of.pid, tid).into()));
    events.extend(of.images.iter().map(|image| mapping(image::Image::unload, of.pid, image)));
    events.push(process::Process::end(of.pid, &of.name).into());
    events
}

/// A process begins.
pub(super) fn process_start(population: &Population, number: usize) -> Vec<Event> {
    let of = &population.processes[number];
    let system = &population.processes[SYSTEM];
    let mut events = vec![described(process::Process::start(of.pid, &of.name), of, number)];
    let creator = (system.pid, system.pid + 4);
    events.extend(of.thread_ids().map(|tid| thread::Thread::start(of.pid, tid).by(creator.0, creator.1)));
    events.extend(of.images.iter().map(|image| mapping(image::Image::load, of.pid, image)));
    events
}

fn described(event: process::Process, of: &Process, number: usize) -> Event {
    let path = format!(r#""C:\Program Files\Believable\{}" --number {number} --quiet"#, of.name);
    event.command_line(if number == SYSTEM { "" } else { &path }).into()
}

fn mapping(kind: fn(u32, u64, u64, &str) -> image::Image, pid: u32, image: &Image) -> Event {
    kind(pid, image.base, image.size, &image.path).checksum((image.base >> 12) as u32).into()
}

/// An image with its identity, which lies before it.
fn identified(pid: u32, image: &Image) -> Vec<Event> {
    let name = image.path.rsplit('\\').next().unwrap_or(&image.path);
    let mut guid = [0xB5; 16];
    guid[..8].copy_from_slice(&image.base.to_le_bytes());
    vec![
        image_id::image_id(pid, image.base, image.size, TIME_DATE_STAMP, name),
        image_id::dbg_id_rsds(pid, image.base, Guid(guid), 1, &image.pdb),
        mapping(image::Image::dc_end, pid, image),
    ]
}

/// The .NET runtime of a process, before its methods.
pub(super) fn runtime(of: &Process) -> Vec<Event> {
    let path = format!(r"C:\Program Files\Believable\{}", of.name.replace(".exe", ".dll"));
    vec![
        clr::runtime_start(of.pid, &of.name, r"C:\Program Files\dotnet\shared\8.0.10\coreclr.dll"),
        clr::Module::load(of.pid, MODULE, &path).into(),
    ]
}

const MODULE: u64 = 0x7ff8_1000_4000;

/// A method, by its place and by how many were there before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub(super) place: u32,
    pub(super) generation: u32,
}

impl Method {
    fn names(self) -> [String; 3] {
        let Method { place, generation } = self;
        let (space, class) = (place % 40, place % 400);
        [
            format!(
                "Believable.Services.Area{space:02}.Handlers.RequestHandler{class:03}`2[System.__Canon,System.Collections.Generic.KeyValuePair`2[System.Int32,System.__Canon]]"
            ),
            format!("Handle{place}_{generation}"),
            "instance class System.Threading.Tasks.Task`1<!!0>  (class [System.Runtime]System.Collections.Generic.IEnumerable`1<!0>,int32,valuetype System.Threading.CancellationToken)"
                .to_owned(),
        ]
    }

    fn event(self, kind: fn(u32, u64, u32, [&str; 3]) -> clr::Method, of: &Process, space: &Space) -> Event {
        let (start, size) = space.method(self.place);
        let names = self.names();
        let id = 0x7ff8_2000_0000 + u64::from(self.place) * 0x40 + (u64::from(self.generation) << 32);
        let method = kind(of.pid, start, size, names.each_ref().map(String::as_str));
        method.id(id).module(MODULE).token(0x0600_0001 + self.place).into()
    }

    pub(super) fn load(self, of: &Process, space: &Space) -> Event {
        self.event(clr::Method::load, of, space)
    }

    pub(super) fn unload(self, of: &Process, space: &Space) -> Event {
        self.event(clr::Method::unload, of, space)
    }

    pub(super) fn rundown(self, of: &Process, space: &Space) -> Event {
        self.event(clr::Method::dc_end, of, space)
    }
}
