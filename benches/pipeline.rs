//! How fast a recording is read, step by step: `scripts/bench` runs this and prints a table.
//!
//! The synthetic trace is made once: a million events of four processors, in which every sample has a kernel and a
//! user stack. Real traces join in where `ETWPROF_TEST_DATA` names a folder with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

#[path = "../tests/it/synth/mod.rs"]
mod synth;

use std::hint::black_box;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use etwprof::analysis;
use etwprof::etl::writer::{self, KeepAll, Output};
use etwprof::etl::{Recording, xpress};
use etwprof::event::Event;
use etwprof::events::decode;
use etwprof::profile::{Detail, Filter, Grouping, Profile};
use etwprof::session::{Batch, Window};
use etwprof::symbols::Unnamed;
use etwprof::trace::{Builder, Trace};
use synth::kernel::thread::CSwitch;
use synth::{Etl, Image, Process, START, Sample, Thread, stack_walk};

const CODE: u64 = 0x7ff6_0000_0000;
const KERNEL: u64 = 0xFFFF_8000_0000_0000;
const PROCESSES: u32 = 8;
const SAMPLES: u64 = 250_000;
/// Distinct stacks of each part in each process.
const STACKS: u64 = 500;

/// A million events: for each sample the sample, both parts of its stack, and a context switch.
fn busy(processors: u16) -> Vec<u8> {
    let mut etl =
        Etl::new().cpus(processors.into()).event(0, START, Image::dc_start(0, KERNEL, 0x10_0000, "k.sys"));
    for process in 1..=PROCESSES {
        let pid = process * 100;
        etl = etl
            .event(0, START, Process::dc_start(pid, "busy.exe"))
            .event(0, START, Thread::dc_start(pid, pid + 4))
            .event(0, START, Image::dc_start(pid, CODE, 0x100_0000, r"C:\busy.exe"));
    }
    // Stacks share their callers and differ near the leaf, as real ones do.
    let frames = |base: u64, depth: u64, stack: u64| -> Vec<u64> {
        (0..depth)
            .map(|frame| base + 0x40 * (frame * 8 + if frame < 4 { stack >> frame } else { 0 }))
            .collect()
    };
    let mut random = 1u64;
    for number in 0..SAMPLES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pid = 100 * (1 + (random >> 40) as u32 % PROCESSES);
        let kernel = (random >> 33) % STACKS;
        let user = (kernel * 7 + (random >> 20) % 4) % STACKS;
        let (cpu, time) = ((number % u64::from(processors)) as u16, START + 100 * number as i64);
        let (kernel, user) = (frames(KERNEL, 8, kernel), frames(CODE, 16, user));
        etl = etl
            .event(cpu, time, Sample::new(kernel[0], pid + 4))
            .event(cpu, time + 2, stack_walk::full(time, pid, pid + 4, &kernel))
            .event(cpu, time + 20, stack_walk::full(time, pid, pid + 4, &user))
            .event(cpu, time + 40, CSwitch::new(pid + 4, 0));
    }
    etl.finish()
}

fn build(recording: &Recording) -> Trace {
    analysis::trace(recording, &mut |_| {}).value
}

fn count(recording: &Recording) -> u64 {
    recording.fold(NonZeroUsize::MIN, &mut |_| {}, || 0, |count, _| *count += 1).value
}

/// Reads every byte once: what the machine's memory allows at most.
fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum, word| sum ^ u64::from_le_bytes(*word))
}

fn decode_one(decoded: &mut u64, event: &Event<'_>) {
    *decoded += u64::from(black_box(decode(event)).is_ok());
}

fn steps(criterion: &mut Criterion, name: &str, recording: &Recording) {
    let events = count(recording);
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Elements(events));
    group.bench_function("merge", |bencher| bencher.iter(|| count(recording)));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| recording.fold(NonZeroUsize::MIN, &mut |_| {}, || 0, decode_one).value);
    });
    group.bench_function("trace", |bencher| bencher.iter(|| build(recording).samples.len()));
    let trace = Arc::new(build(recording));
    group.throughput(Throughput::Elements(trace.samples.len() as u64));
    if !trace.samples.is_empty() {
        let filter = Filter::default();
        group.bench_function("profile", |bencher| {
            bencher.iter(|| Profile::new(&trace, &filter, &Unnamed).samples.len());
        });
        let profile = Profile::new(&trace, &filter, &Unnamed);
        let grouping = Grouping::Thread;
        group.bench_function("tree", |bencher| {
            bencher.iter(|| profile.tree(grouping, Detail::default()).0.total());
        });
    }
    group.finish();
}

fn synthetic(criterion: &mut Criterion) {
    let bytes = busy(4);
    let mut group = criterion.benchmark_group("memory");
    group.sample_size(10).throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("read", |bencher| bencher.iter(|| sum(&bytes)));
    group.finish();
    steps(criterion, "4 processors", &Recording::from_bytes("busy.etl", bytes).unwrap());
    let recording = Recording::from_bytes("busier.etl", busy(64)).unwrap();
    let mut group = criterion.benchmark_group("64 processors");
    group.sample_size(10).throughput(Throughput::Elements(count(&recording)));
    group.bench_function("merge", |bencher| bencher.iter(|| count(&recording)));
    group.finish();
}

/// What the two threads of a live recording do: the callback copies, the builder orders and builds. The events come as
/// a session hands them out, one processor's buffer after the other.
fn live(criterion: &mut Criterion) {
    const PROCESSORS: u16 = 4;
    let recording = Recording::from_bytes("busy.etl", busy(PROCESSORS)).unwrap();
    let handed_out = || {
        let start = || (Vec::new(), (0..PROCESSORS).map(|_| Batch::default()).collect::<Vec<_>>());
        let step = |(done, open): &mut (Vec<Batch>, Vec<Batch>), event: &Event<'_>| {
            let batch = &mut open[usize::from(event.processor)];
            batch.push(event);
            if batch.is_full() {
                done.push(std::mem::take(batch));
            }
        };
        let (mut done, open) = recording.fold(NonZeroUsize::MIN, &mut |_| {}, start, step).value;
        done.extend(open);
        done
    };
    let batches = handed_out();
    let mut group = criterion.benchmark_group("live");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Elements(count(&recording)));
    let mut copy = Batch::default();
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            for batch in &batches {
                copy.clear();
                (0..batch.len()).for_each(|index| copy.push(&batch.event(index).unwrap()));
            }
        });
    });
    let span = 2 * recording.clock().frequency as i64;
    group.bench_function("order", |bencher| {
        let order = |batches: Vec<Batch>| {
            let (mut window, mut events) = (Window::new(span), 0);
            let mut emit = |_: &Event<'_>| events += 1;
            batches.into_iter().for_each(|batch| window.push(batch, &mut emit, &mut drop));
            window.finish(&mut emit);
            events
        };
        bencher.iter_batched(handed_out, order, BatchSize::PerIteration);
    });
    group.bench_function("order and build", |bencher| {
        let build = |batches: Vec<Batch>| {
            let (mut window, mut builder) = (Window::new(span), Builder::new(&recording.origin()));
            let mut emit = |event: &Event<'_>| builder.event(event);
            batches.into_iter().for_each(|batch| window.push(batch, &mut emit, &mut drop));
            window.finish(&mut emit);
            builder
        };
        bencher.iter_batched(handed_out, build, BatchSize::PerIteration);
    });
    group.finish();
}

fn compression(criterion: &mut Criterion) {
    let plain = &busy(1)[..8 << 20];
    let packed: Vec<Vec<u8>> = plain.chunks(64 << 10).map(synth::xpress::compress).collect();
    let mut group = criterion.benchmark_group("xpress");
    group.sample_size(20).throughput(Throughput::Bytes(plain.len() as u64));
    let mut out = Vec::new();
    group.bench_function("decompress", |bencher| {
        bencher.iter(|| {
            for (packed, plain) in packed.iter().zip(plain.chunks(64 << 10)) {
                out.clear();
                xpress::decompress(packed, plain.len(), &mut out).unwrap();
            }
            out.len()
        });
    });
    group.finish();
}

/// A recording written again, as it is and compressed: by one thread, into memory that is there.
fn writing(criterion: &mut Criterion) {
    let bytes = busy(4);
    let mut group = criterion.benchmark_group("writer");
    group.sample_size(10).throughput(Throughput::Bytes(bytes.len() as u64));
    let mut out = Cursor::new(Vec::with_capacity(2 * bytes.len()));
    let recording = Recording::from_bytes("busy.etl", bytes).unwrap();
    for (name, compress) in [("copy", false), ("compress", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear().unwrap();
                let one = NonZeroUsize::MIN;
                writer::copy(&recording, &KeepAll, compress, one, &mut |_| {}, &mut out).unwrap().value.bytes
            });
        });
    }
    group.finish();
}

fn real(criterion: &mut Criterion) {
    let Some(data) = std::env::var_os("ETWPROF_TEST_DATA").map(PathBuf::from).filter(|data| data.is_dir())
    else {
        eprintln!("SKIPPED the real traces: ETWPROF_TEST_DATA names no folder");
        return;
    };
    for path in ["etl/perfview/net.4.5.2.x64.etl", "etl/msbuild/PerfViewData.etl"] {
        let path = data.join(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("real");
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("");
        match Recording::open(&[&path]) {
            Ok(recording) => steps(criterion, &format!("{folder} {name}"), &recording),
            Err(error) => eprintln!("SKIPPED {name}: {error}"),
        }
    }
}

criterion_group!(benches, compression, synthetic, live, writing, real);
criterion_main!(benches);
