//! A whole file: events, trace, profile, every report.
#![no_main]

use etwprof::etl::Recording;
use etwprof_fuzz::{mutate, read_all};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(recording) = Recording::from_bytes("fuzz.etl", bytes.to_vec()) {
        read_all(recording);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Every fourth change is libFuzzer's own.
    let own = if seed % 4 == 0 { None } else { mutate(data, size, seed) };
    own.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
