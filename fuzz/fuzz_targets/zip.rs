//! Any bytes as a zip archive of recordings.
#![no_main]

use std::fs;

use etwprof::etl::Recording;
use etwprof_fuzz::read_all;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Archives come by path only. The fuzzer's processes do not share one.
    let path = std::env::temp_dir().join(format!("etwprof-fuzz-{}.zip", std::process::id()));
    fs::write(&path, bytes).expect("the temporary folder takes files");
    if let Ok(recording) = Recording::open(&[&path]) {
        read_all(recording);
    }
});
