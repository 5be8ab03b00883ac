//! Finds the real data: traces, images and symbol files that others recorded and built.
//!
//! It is not part of the project. `ETWPROF_TEST_DATA` names a folder with it, unpacked; without that it is looked
//! for in `../shared/data` beside the project, and unpacked into `target/data`. Where there is none, `build.rs` leaves
//! out `--cfg real_data`, and the tests that need it are ignored. With `CI=true` they run all the same, and fail,
//! unless `ETWPROF_TEST_DATA=absent` states that this machine has none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs, process};

/// A file or folder of the real data, by its unpacked path: `data::file("etl/wpr/sonde-test.etl")`. Fails the test
/// where it is missing.
#[track_caller]
pub fn file(path: &str) -> PathBuf {
    let root = root();
    let found = root.join(path);
    assert!(found.exists(), "the real data in {} has no {path}", root.display());
    found
}

/// A file of the real data as it was packed: an archive that [`file`] has only unpacked. Fails as [`file`] does.
#[track_caller]
pub fn packed(path: &str) -> PathBuf {
    let found = packed_root().join(path);
    assert!(found.is_file(), "there is no {}", found.display());
    found
}

/// Beside a folder that `scripts/fetch-data` made are the files as they came.
fn packed_root() -> PathBuf {
    let fetched = env::var_os("ETWPROF_TEST_DATA").map(|folder| Path::new(&folder).with_file_name("packed"));
    let fetched = fetched.filter(|folder| folder.is_dir());
    fetched.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"))
}

/// Every trace in the real data, sorted. Fails as [`file`] does.
#[track_caller]
pub fn traces() -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit(&file("etl"), &mut |path, _| {
        if path.extension().is_some_and(|e| e == "etl") {
            found.push(path.to_owned());
        }
    });
    found.sort();
    found
}

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(find)
}

fn find() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    match env::var_os("ETWPROF_TEST_DATA").filter(|v| !v.is_empty()) {
        Some(folder) => {
            assert!(Path::new(&folder).is_dir(), "ETWPROF_TEST_DATA: no folder {}", folder.display());
            PathBuf::from(folder)
        }
        None => {
            let packed = packed_root();
            let script = packed.join("unpack.py");
            assert!(script.is_file(), "the real data is missing: there is no {}", script.display());
            unpacked(&packed, &project.join("target"))
        }
    }
}

/// `target/data`, made or made again when it does not come from these packed files.
fn unpacked(packed: &Path, target: &Path) -> PathBuf {
    let data = target.join("data");
    let listing = listing(packed);
    let is_current = || fs::read_to_string(data.join(".listing")).is_ok_and(|l| l == listing);
    if is_current() {
        return data;
    }

    // Another test process may do the same now: each unpacks for itself, and the first to finish wins.
    let mine = target.join(format!("data-{}", process::id()));
    let _ = fs::remove_dir_all(&mine);
    fs::create_dir_all(target).expect("target is writable");
    let status =
        Command::new("python3").arg(packed.join("unpack.py")).arg(&mine).stdout(Stdio::null()).status();
    assert!(status.is_ok_and(|s| s.success()), "python3 unpack.py failed for {}", packed.display());
    fs::write(mine.join(".listing"), &listing).expect("target is writable");
    if !is_current() {
        let old = target.join(format!("data-old-{}", process::id()));
        let _ = fs::rename(&data, &old);
        let _ = fs::rename(&mine, &data);
        let _ = fs::remove_dir_all(&old);
    }
    let _ = fs::remove_dir_all(&mine);
    assert!(is_current(), "the real data could not be moved to {}", data.display());
    data
}

/// The packed files and their sizes, one per line, the same on every OS.
fn listing(packed: &Path) -> String {
    let mut lines = Vec::new();
    visit(packed, &mut |path, len| {
        let path = path.strip_prefix(packed).unwrap_or(path);
        lines.push(format!("{} {len}\n", path.display()).replace('\\', "/"));
    });
    lines.sort();
    lines.concat()
}

fn visit(folder: &Path, seen: &mut impl FnMut(&Path, u64)) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let entry = entry.expect("a readable folder");
        let metadata = entry.metadata().expect("readable metadata");
        if metadata.is_dir() {
            visit(&entry.path(), seen);
        } else {
            seen(&entry.path(), metadata.len());
        }
    }
}
