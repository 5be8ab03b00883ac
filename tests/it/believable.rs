//! Generated recordings hold exactly what the generator says, whatever their options.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use etwprof::etl::Recording;
use etwprof::profile::{Category, Filter, Profile};
use etwprof::symbols::Unnamed;
use etwprof::trace::{Keep, Lost, Parts, Trace};

use crate::support::reading;
use crate::synth::Clock;
use crate::synth::believable::{Contents, Options, generate, shapes};

/// A small one: 4 processors, 12 programs.
fn small() -> Options {
    Options {
        processors: 4,
        processes: 12,
        threads: Some(60),
        stacks: 400,
        methods: 50,
        buffer_size: 64 << 10,
        starts: 20.0,
        ..Options::like(shapes::DESKTOP, 3_000_000, 7)
    }
}

fn made(options: &Options) -> (Vec<u8>, Contents) {
    let mut bytes = Cursor::new(Vec::new());
    let contents = generate(options, &mut bytes).unwrap();
    (bytes.into_inner(), contents)
}

/// What the library finds in the recording.
fn found(bytes: Vec<u8>, buffers: u64) -> Contents {
    let size = bytes.len() as u64;
    let recording = Recording::from_bytes("believable.etl", bytes).unwrap();
    let reading = reading::every_way(&recording, |builder| builder.keep(Keep::ALL));
    assert_eq!(reading.damage, []);
    let trace = Arc::new(reading.value);
    assert_eq!(trace.lost, Lost::default());
    let with_parts = |parts: Parts| {
        let samples = trace.samples.iter();
        samples.filter(|sample| trace.stack(sample.stack).parts() == parts).count() as u64
    };
    assert_eq!(with_parts(Parts::None), 0);
    let in_dpc = trace.samples.iter().filter(|sample| trace.runner(sample.runner).tid == 0).count() as u64;
    let bodies = trace.code.bodies();
    let waits = trace.kept.switches.iter().map(|switch| switch.stack);
    let waits = waits.chain(trace.kept.readied.iter().map(|ready| ready.stack));
    let (begin, end) = trace.span.unwrap();
    Contents {
        bytes: size,
        buffers,
        milliseconds: ((end.0 - begin.0) / (trace.clock.frequency as i64 / 1_000)) as u64,
        records: trace.events - 1, // the file's header is one
        samples: trace.samples.len() as u64 + trace.idle.samples,
        idle: trace.idle.samples,
        idle_in_dpc: in_dpc,
        user_only: with_parts(Parts::User),
        both: with_parts(Parts::KernelAndUser),
        kernel_only: with_parts(Parts::Kernel) - in_dpc,
        stacks: distinct_stacks(&trace),
        in_methods: in_methods(&trace),
        processes: trace.processes.len() as u64,
        threads: trace.threads.len() as u64,
        images: trace.mappings.iter().count() as u64,
        methods_loaded: bodies.len() as u64,
        methods_unloaded: bodies.iter().filter(|body| body.until.is_some()).count() as u64,
        switches: trace.kept.switches.len() as u64,
        ready: trace.kept.readied.len() as u64,
        wait_parts: waits.map(|stack| parts(&trace, stack)).sum(),
        ..Contents::default()
    }
}

fn parts(trace: &Trace, stack: etwprof::trace::StackId) -> u64 {
    let stack = trace.stack(stack);
    u64::from(stack.kernel.is_some()) + u64::from(stack.user.is_some())
}

/// Of each program, however often it ran.
fn distinct_stacks(trace: &Trace) -> u64 {
    let of = |sample: &etwprof::trace::Sample| {
        let process = trace.process(trace.runner(sample.runner).process).unwrap();
        (process.label().to_owned(), sample.stack)
    };
    trace.samples.iter().map(of).collect::<BTreeSet<_>>().len() as u64
}

fn in_methods(trace: &Arc<Trace>) -> u64 {
    let profile = Profile::new(trace, &Filter::default(), &Unnamed);
    let leaf = |sample: &&etwprof::profile::Sample| profile.stacks.leaf(sample.stack).unwrap().category;
    profile.samples.iter().filter(|sample| leaf(sample) == Category::ManagedJit).count() as u64
}

/// What the library does not count stays as the generator says.
#[track_caller]
fn check(options: &Options) -> Contents {
    let (bytes, said) = made(options);
    let expected = Contents { interrupts: 0, key_definitions: 0, ..said.clone() };
    assert_eq!(found(bytes, said.buffers), expected, "{options:?}");
    let least = if options.compressed { 6 } else { 9 };
    assert!(said.bytes * 10 > options.size * least, "{} bytes", said.bytes);
    assert!(said.samples > 1_000 && said.both > 0 && said.kernel_only > 0);
    said
}

#[test]
fn a_recording_like_each_real_one() {
    let desktop = check(&small());
    assert!(desktop.idle * 10 > desktop.samples * 8 && desktop.switches > 0 && desktop.interrupts > 0);
    let like = Options::like(shapes::DOTNET, 400_000, 7);
    let dotnet = check(&Options {
        stack_keys: like.stack_keys,
        compressed: like.compressed,
        managed: like.managed,
        churn: like.churn,
        switches: 0.0,
        shape: like.shape,
        size: like.size,
        ..small()
    });
    assert!(dotnet.in_methods > 0 && dotnet.methods_unloaded > 0 && dotnet.key_definitions > 0);
}

#[test]
fn stacks_by_keys_that_are_used_again() {
    let few_keys = Options { stack_keys: true, stacks: 6_000, idle: 0.2, ..small() };
    let contents = check(&few_keys);
    assert!(contents.key_definitions > 2 * 1_024, "some keys stand for one part after the other");
    check(&Options { pointer_size: 4, ..few_keys });
}

#[test]
fn waits_with_stacks() {
    let options = Options { switches: 1.5, ready: true, wait_stacks: true, idle: 0.5, ..small() };
    let contents = check(&options);
    assert!(contents.ready > 0 && contents.wait_parts > contents.switches);
    check(&Options { stack_keys: true, ..options.clone() });
    check(&Options { idle: 0.0, ..options });
}

#[test]
fn methods_that_come_and_go() {
    let options = Options { managed: 3, methods: 200, churn: 1_000.0, idle: 0.3, size: 8_000_000, ..small() };
    let contents = check(&options);
    assert!(contents.methods_unloaded > 500 && contents.in_methods > 100, "{contents}");
    check(&Options { pointer_size: 4, compressed: true, ..options });
}

#[test]
fn every_clock() {
    for clock in [Clock::Raw { freq: 3_320_310 }, Clock::SystemTime, Clock::CpuCycles { mhz: 2_995 }] {
        check(&Options { clock, ..small() });
    }
}

#[test]
fn one_processor_and_many() {
    check(&Options { processors: 1, ..small() });
    let many = check(&Options { processors: 96, size: 12_000_000, idle: 0.0, ..small() });
    assert!(many.idle < many.samples / 20, "threads enough for all of them");
    check(&Options { buffer_size: 1 << 20, pointer_size: 4, size: 10_000_000, ..small() });
}

#[test]
fn stacks_deep_and_flat_and_few() {
    let deep = Options { depth: 4.0, fresh: 4.0, idle: 0.1, ..small() };
    assert!(check(&deep).samples < check(&Options { depth: 0.1, ..deep.clone() }).samples);
    let few = check(&Options { stacks: 1, ..deep });
    assert!(few.stacks <= 14, "one of each program, of System, and of the idle thread's DPCs");
}

#[test]
fn a_compressed_file_is_smaller_and_has_the_same() {
    let plain = small();
    let packed = Options { compressed: true, size: 1_000_000, ..small() };
    let (plain, packed) = (check(&plain), check(&packed));
    assert!(plain.bytes / plain.records > 2 * (packed.bytes / packed.records));
}

#[test]
fn a_seed_makes_the_file() {
    let (bytes, contents) = made(&small());
    let (again, same) = made(&small());
    assert!(bytes == again && contents == same);
    assert!(made(&Options { seed: 8, ..small() }).0 != bytes);
}
