//! The demo trace: `examples/demo.etl`, three seconds of a small machine that never was.
//!
//! A 64-bit Windows 11 with four processors runs `orders.exe`, an order service in C++ and .NET, and
//! `indexer.exe`, which walks folders and starts `hasher.exe`. It is sampled at 1 kHz. Everything in the file is
//! made by [`synth`](crate::synth) from the tables here, with a fixed seed: the same bytes each time.
//!
//! - [`machine`]: the modules, processes and threads;
//! - [`managed`]: the methods of the order service, and when each was compiled;
//! - [`stories`] and `stories.txt`: what each thread does, as call paths with weights;
//! - [`code`]: functions and methods to addresses;
//! - [`rundown`]: the records at the session's begin and end and those of processes that come and go;
//! - [`recording`]: the scheduler and the sampler;
//! - [`random`]: the seeded numbers.

mod code;
mod machine;
mod managed;
mod random;
mod recording;
mod rundown;
mod stories;

use std::fs;
use std::path::Path;

/// What an `.etl` of this size must stay below, to be no burden in the repository.
const SIZE_LIMIT: usize = 300_000;

#[test]
fn the_demo_trace_is_what_its_generator_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.etl");
    let made = recording::record();
    assert!(made.len() < SIZE_LIMIT, "{} bytes are too many for a demo", made.len());
    if std::env::var_os("ETWPROF_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let same = made.iter().zip(&kept).take_while(|(a, b)| a == b).count();
    assert!(
        made == kept,
        "{} differs from what its generator makes, from byte {same} of {} on; \
         ETWPROF_BLESS=1 writes it anew",
        path.display(),
        kept.len(),
    );
}
