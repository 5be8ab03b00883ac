//! Input that nobody vouches for: wrong files, cut files, damaged files, and files made to hurt.
//!
//! Each gives an error that names file and byte, or a result with the damage in it; never a panic, a hang, or memory
//! far beyond the file. [`read_all`] takes bytes through every room of the offline half and checks on the way what
//! must hold whatever the bytes are.
//!
//! - [`wrong_files`]: what is no recording;
//! - [`cut`]: files that end early, at every byte;
//! - [`flipped`]: every byte changed, every field at its extremes;
//! - [`payloads`]: every decoder, with payloads of every length;
//! - [`buffers`]: odd buffers beside good ones;
//! - [`seeds`]: what the fuzz targets start from;
//! - [`multiply`]: files in which a little is shown often;
//! - [`shrinking`]: files that become shorter while they are read;
//! - [`names`]: names that would change a terminal;
//! - [`blow_up`]: files made to take time or memory, given to the program under a limit.

mod blow_up;
mod buffers;
mod cut;
mod flipped;
mod multiply;
mod names;
mod payloads;
mod seeds;
mod shrinking;
mod wrong_files;

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use etwprof::etl::{Damage, EtlError, Recording};
use etwprof::profile::{Detail, Grouping, Shape, Timeline};
use etwprof::report::events::{self, Counter};
use etwprof::report::info::{self, Info};
use etwprof::report::{Spelling, console, folded, strip};
use etwprof::trace::Trace;
use etwprof::{Analysis, Options};

use crate::support::shown::{CODE, KERNEL};
use crate::synth::kernel::{perfinfo, process, system, thread};
use crate::synth::{
    Etl, Event, Image, IntoEvent, Item, Origin, Process, START, Sample, Thread, clr, guid, image_id,
    stack_walk,
};

/// What could be read.
#[derive(Debug)]
struct Outcome {
    trace: Arc<Trace>,
    damage: Vec<Damage>,
    /// Sizes of all reports together.
    written: usize,
}

/// From bytes to every report.
fn read_all(bytes: &[u8]) -> Result<Outcome, EtlError> {
    let recording = Recording::from_bytes("hostile.etl", bytes.to_vec())?;
    let mut progress = |_| {};
    let counted = recording.fold(NonZeroUsize::MIN, &mut progress, Counter::default, Counter::event);
    let analysis = Analysis::read(recording, &[], &Options { symbols: None, ..Options::default() }, &())
        .expect("nobody cuts bytes");
    let (profile, damage) = (&analysis.profile, analysis.damage.clone());
    let trace = Arc::clone(&profile.trace);
    assert_eq!(counted.damage, damage, "two readings find the same");
    let rows = counted.value.rows();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), trace.events);

    let balance = &profile.balance;
    assert_eq!(balance.total, trace.samples.len() as u64 + trace.idle.samples);
    assert_eq!(balance.total, balance.kept + balance.idle + balance.filtered);
    let stacks = &balance.stacks;
    assert_eq!(balance.kept, stacks.user_only + stacks.kernel_and_user + stacks.kernel_only + stacks.none);
    assert!(trace.samples.is_sorted_by_key(|sample| sample.time));

    let detail = Detail::default();
    let arranged = profile.arrange(&Shape { grouping: Grouping::Thread, detail, ..Shape::default() });
    let tree = &arranged.counts;
    assert_eq!(tree.total() as u64, balance.kept);
    for (_, node) in tree.nodes() {
        let below =
            tree.children(node).iter().filter_map(|child| tree.node(*child)).map(|child| child.inclusive());
        assert_eq!(node.inclusive(), node.exclusive() + below.sum::<i64>());
    }
    let mut out = Sink::default();
    let labels = Spelling::new(profile, detail);
    let info = Info::new(&analysis);
    let all = console::Options { min_percent: 0.0, ..Default::default() };
    let timeline = Timeline::new(profile, &arranged.left_out, (None, None), strip::bins(None));
    assert_eq!(timeline.all.samples, balance.kept);
    assert_eq!(timeline.all.bins.iter().sum::<i64>(), profile.total());
    let written = events::write(&mut out, &rows)
        .and_then(|()| events::write_json(&mut out, &rows))
        .and_then(|()| info::write(&mut out, &info))
        .and_then(|()| info::write_json(&mut out, &info))
        .and_then(|()| folded::write(&mut out, tree, &labels))
        .and_then(|()| strip::write(&mut out, &timeline, trace.machine.processors, &labels, None))
        .and_then(|()| console::write(&mut out, &arranged, &labels, &all));
    written.expect("a sink takes everything");
    Ok(Outcome { trace, damage, written: out.0 })
}

/// Counts what is written.
#[derive(Default)]
struct Sink(usize);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const PID: u32 = 40;
const TID: u32 = 44;

/// One event of every kind that there is, in every kind of record.
pub fn everything() -> Vec<Event> {
    let pdb = guid("01020304-0506-0708-090a-0b0c0d0e0f10");
    let kernel: Vec<Event> = vec![
        system::cpu_config(2_995, 1, "box", 9),
        perfinfo::collection_start(10_000),
        Process::dc_start(PID, "a.exe").command_line("a.exe -x").into(),
        Process::start(PID + 4, "b.exe").version(2).into(),
        Process::end(PID + 4, "b.exe").version(1).sid(5, &[18]).into(),
        Process::defunct(PID + 8, "c.exe").exit_time(133_916_868_000_000_010).into(),
        Thread::dc_start(PID, TID).name("main").into(),
        Thread::start(PID, TID + 4).version(2).into(),
        Thread::end(PID, TID + 4).version(1).into(),
        thread::set_name(PID, TID, "worker"),
        thread::ready(TID, true),
        image_id::image_id(PID, CODE, 0x1000, 7, "a.exe"),
        image_id::dbg_id_rsds(PID, CODE, pdb, 1, "a.pdb"),
        image_id::dbg_id_il_rsds(PID, CODE, pdb, 1, "a.il.pdb"),
        image_id::dbg_id_none(PID, CODE),
        image_id::file_version(0x1000, 7, "a.exe", "1.0"),
        image_id::volume_mapping(r"\Device\HarddiskVolume3\", r"C:\"),
        image_id::system_paths(r"C:\Windows\system32", r"C:\Windows\"),
        Image::dc_start(PID, CODE, 0x1000, r"\Device\HarddiskVolume3\a.exe").into(),
        Image::load(PID, CODE + 0x8000, 0x1000, r"\Device\HarddiskVolume3\b.dll").into(),
        Image::unload(PID, CODE + 0x8000, 0x1000, r"\Device\HarddiskVolume3\b.dll").version(2).into(),
        Image::dc_end(0, KERNEL, 0x1000, r"\SystemRoot\x.sys").into(),
        perfinfo::dpc(START, KERNEL),
        perfinfo::isr(START, KERNEL, 3),
        perfinfo::mark("here"),
        process::terminate(PID),
        Event::kernel(0x2F, 200, 9, |bytes| bytes.u64(1)),
    ];
    let compact = Event::from(Sample::new(CODE + 1, TID)).compact();
    let full = Event::from(Sample::new(CODE + 2, TID)).full();
    let instance = full.clone().instance(1, 2, pdb);
    let wow64 = Event::from(Sample::new(0x40_0000, TID)).pointer_size(4);
    let traced = Event::manifest(pdb, 1, 0, |bytes| bytes.u32(1))
        .item(Item::schema("hello", &[0, 0]))
        .item(Item::provider_traits("Some.Provider"))
        .item(Item::stack64(1, &[CODE, CODE + 1]));
    let message = Event::message(10, |bytes| bytes.u32(5));
    let timed = message.clone().message_fields(Some(1), Some(Origin::Message(pdb)), true).by(PID, TID);
    let unknown = Event::from(Sample::new(CODE, TID)).patch(2, &[0x77]).patch(0, &32u16.to_le_bytes());
    let method = clr::runtime_start(PID, "a.exe", "coreclr.dll");
    let mut all = kernel;
    all.extend([compact, full, instance, wow64, traced, method, timed, message, unknown]);
    all
}

/// [`everything`] and a few samples with stacks, in buffers of 1 KiB.
pub fn small(compressed: bool) -> Vec<u8> {
    let mut etl = Etl::new().buffer_size(1024);
    if compressed {
        etl = etl.compressed();
    }
    let mut time = START;
    for event in everything() {
        time += 10;
        etl = etl.event(0, time, event);
    }
    for index in 0..6 {
        time += 100;
        etl = etl.sampled(0, time, PID, TID, &[KERNEL + index, CODE + index, CODE + 0x20]);
        let (of, key) = (time + 10, 0x9000 + index);
        etl = etl.event(0, of, Sample::new(KERNEL, TID));
        etl = etl.event(0, of + 1, stack_walk::kernel_key(of, PID, TID, key));
        etl = etl.event(0, of + 2, stack_walk::user_key(of, PID, TID, key));
        etl = etl.event(0, of + 3, stack_walk::key_delete(key, &[KERNEL, KERNEL + 4]));
        etl = etl.event(0, of + 4, stack_walk::key_rundown(key, &[CODE + 9]));
    }
    etl.finish()
}

/// Where each buffer of a file without damage starts and ends.
fn buffer_places(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let size = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        places.push(at..at + size);
        at += size;
    }
    places
}

#[test]
fn the_small_files_are_whole() {
    for compressed in [false, true] {
        let outcome = read_all(&small(compressed)).unwrap();
        assert_eq!(outcome.damage, []);
        assert_eq!(outcome.trace.samples.len(), 16);
        assert_eq!(outcome.trace.lost.malformed_events, 0);
        assert!(buffer_places(&small(compressed)).len() >= 5);
        assert!(outcome.written > 1_000);
    }
}
