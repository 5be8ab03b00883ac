//! Writes a recording of any size that is shaped as a real one, and prints what is in it.
//!
//!     cargo run --release --example generate -- big.etl --size 1GB --seed 7
//!     cargo run --release --example generate -- busy.etl --size 500MB --idle 0 --stacks 500 --switches 1 --wait-stacks
//!
//! The same options give the same file. What is not set is as in the recording that `--like` names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

#[path = "../tests/it/synth/mod.rs"]
mod synth;

use std::fs::File;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use synth::Clock;
use synth::believable::{Options, generate, shapes};

#[derive(Clone, Copy, ValueEnum)]
enum Like {
    /// A quiet Windows 7 desktop: full stacks, context switches (xperf/slow-ppt.etl)
    Desktop,
    /// A .NET program on Windows 8: stack keys, compressed buffers (perfview/net.4.5.2.x64.etl)
    Dotnet,
}

#[derive(Clone, Copy, ValueEnum)]
enum ClockKind {
    /// Performance counter, 10 MHz
    Qpc,
    /// FILETIME
    System,
    /// Cycles at 2,995 MHz
    Cycles,
}

#[derive(Clone, Copy, ValueEnum)]
enum Bits {
    #[value(name = "32")]
    Thirtytwo,
    #[value(name = "64")]
    Sixtyfour,
}

/// Write a recording of any size that is shaped as a real one
#[derive(Parser)]
struct Args {
    /// The file to write
    out: PathBuf,
    /// About how large it is: 10MB to 16GB
    #[arg(long, value_parser = size, default_value = "100MB")]
    size: u64,
    /// Another seed gives another recording
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The real recording to be like
    #[arg(long, value_enum, default_value_t = Like::Desktop)]
    like: Like,
    /// Processors
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    processors: u16,
    /// Programs that run; System and Idle come on top
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    processes: u32,
    /// Threads of all programs together
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threads: Option<u32>,
    /// Idle share of all samples, 0 to 1
    #[arg(long, value_parser = share)]
    idle: Option<f64>,
    /// Different stacks
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=500_000))]
    stacks: u32,
    /// How deep stacks are: times the real recording
    #[arg(long, default_value_t = 1.0, value_parser = factor)]
    depth: f64,
    /// How many frames a stack does not share with others: times the real recording
    #[arg(long, default_value_t = 1.0, value_parser = factor)]
    fresh: f64,
    /// Stacks by keys
    #[arg(long)]
    stack_keys: Option<bool>,
    /// Compressed buffers
    #[arg(long)]
    compressed: Option<bool>,
    /// Context switches for each sample; 0 for none
    #[arg(long, value_parser = factor)]
    switches: Option<f64>,
    /// A ready thread before each switch to a thread
    #[arg(long)]
    ready: bool,
    /// Stacks of switches and ready threads
    #[arg(long)]
    wait_stacks: bool,
    /// Interrupts for each sample
    #[arg(long, value_parser = factor)]
    isrs: Option<f64>,
    /// Deferred procedure calls for each sample
    #[arg(long, value_parser = factor)]
    dpcs: Option<f64>,
    /// Programs with .NET
    #[arg(long)]
    managed: Option<u32>,
    /// Compiled methods of each of them at any time
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    methods: u32,
    /// Methods of each of them that are unloaded and replaced in a second
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    churn: Option<u32>,
    /// Processes that end and begin in ten seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    starts: u32,
    /// The clock of its times
    #[arg(long, value_enum, default_value_t = ClockKind::Qpc)]
    clock: ClockKind,
    /// Size of a buffer in KB
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(64..=1_024))]
    buffer: u32,
    /// Width of the system's pointers
    #[arg(long, value_enum, default_value_t = Bits::Sixtyfour)]
    bits: Bits,
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        unit => return Err(format!("{unit:?} is neither MB nor GB")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("{digits:?} is no number"))?;
    let bytes = (number * unit as f64) as u64;
    (10_000_000..=16_000_000_000).contains(&bytes).then_some(bytes).ok_or("10MB to 16GB".to_owned())
}

fn between(text: &str, limit: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    (0.0..=limit).contains(&number).then_some(number).ok_or(format!("0 to {limit}"))
}

fn share(text: &str) -> Result<f64, String> {
    between(text, 1.0)
}

fn factor(text: &str) -> Result<f64, String> {
    between(text, 10.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let shape = match args.like {
        Like::Desktop => shapes::DESKTOP,
        Like::Dotnet => shapes::DOTNET,
    };
    let like = Options::like(shape, args.size, args.seed);
    let options = Options {
        processors: args.processors,
        processes: args.processes,
        threads: args.threads,
        idle: args.idle.unwrap_or(like.idle),
        stacks: args.stacks,
        depth: args.depth,
        fresh: args.fresh,
        stack_keys: args.stack_keys.unwrap_or(like.stack_keys),
        compressed: args.compressed.unwrap_or(like.compressed),
        switches: args.switches.unwrap_or(like.switches),
        ready: args.ready,
        wait_stacks: args.wait_stacks,
        isrs: args.isrs.unwrap_or(like.isrs),
        dpcs: args.dpcs.unwrap_or(like.dpcs),
        managed: args.managed.unwrap_or(like.managed),
        methods: args.methods,
        churn: args.churn.map_or(like.churn, f64::from),
        starts: f64::from(args.starts) / 10.0,
        clock: match args.clock {
            ClockKind::Qpc => Clock::Qpc { freq: 10_000_000 },
            ClockKind::System => Clock::SystemTime,
            ClockKind::Cycles => Clock::CpuCycles { mhz: 2_995 },
        },
        buffer_size: args.buffer * 1024,
        pointer_size: match args.bits {
            Bits::Thirtytwo => 4,
            Bits::Sixtyfour => 8,
        },
        ..like
    };
    print!("{}", generate(&options, File::create(&args.out)?)?);
    Ok(())
}
