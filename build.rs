//! Finds out for the tests whether this machine has the recordings that some of them read: those are then compiled
//! with `--cfg real_data`, and are ignored without it. `tests/it/support/data.rs` says where the recordings are.

use std::env;
use std::path::Path;

fn main() {
    const PACKED: &str = "../shared/data/unpack.py";
    println!("cargo::rerun-if-env-changed=ETWPROF_TEST_DATA");
    println!("cargo::rerun-if-env-changed=CI");
    println!("cargo::rerun-if-changed={PACKED}");
    let is_here = match env::var("ETWPROF_TEST_DATA") {
        Ok(folder) if folder == "absent" => false,
        Ok(folder) if !folder.is_empty() => true,
        // In CI a test that cannot read its recording fails.
        _ => Path::new(PACKED).exists() || env::var("CI").is_ok_and(|value| value == "true"),
    };
    if is_here {
        println!("cargo::rustc-cfg=real_data");
    }
}
