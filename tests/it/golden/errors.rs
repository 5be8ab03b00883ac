//! What is printed on stderr when something is wrong, with the exit code: one command line after the other.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use zip::write::SimpleFileOptions;

use super::compare;
use crate::support::command;
use crate::support::stacks::machine;
use crate::synth::kernel::perfinfo::mark;
use crate::synth::{Etl, Process, START};

/// Whatever system it is.
const LINES: &[&str] = &[
    // The command.
    "nonsense",
    "trace.etl",
    "a.etl.zip -o a.svg",
    "app.exe",
    "--no-such-flag",
    "man no-such-command",
    "completions tcsh",
    // Flags.
    "convert",
    "convert demo.etl --no-such-flag",
    "convert demo.etl --top 10",
    "convert demo.etl --ofline",
    "convert demo.etl --threads --threads",
    "convert demo.etl --parameters --raw-names",
    "convert demo.etl --pid many",
    "convert demo.etl --min-percent 200",
    "convert demo.etl --from soon",
    "convert demo.etl --from 2 --to 1s",
    "convert demo.etl --to 9999h",
    "convert demo.etl -f png",
    "symbols demo.etl --fetch --offline",
    "--all --pid 1",
    "--all --duration 1m30",
    "--all --frequency 9000",
    "--forward-exit-code",
    "grant",
    "grant jo --me",
    "revoke jo --me",
    // Files.
    "convert no-such.etl",
    "info folder",
    "events empty.etl",
    "convert notes.etl",
    "convert cut.zip",
    "convert other.zip",
    "convert demo.etl demo.etl",
    "convert demo.etl silent.etl",
    "convert silent.etl",
    "convert lossy.etl",
    "convert lossy.etl --quiet",
    // Where the result goes.
    "convert demo.etl -o a.png",
    "convert demo.etl -o folder -f svg",
    "convert demo.etl -o no-such-folder/a.svg",
    "convert demo.etl -o demo.etl -f tree",
    "convert demo.etl -o flame.svg --no-symbols",
    "convert demo.etl -o flame.svg --no-symbols --quiet",
    // Where symbols are.
    "convert demo.etl --images no-such-folder",
    "convert demo.etl --symbols foo*bar",
    "convert demo.etl --symbols symsrv*other.dll*x",
    "convert demo.etl --symbols cache*https://example.com",
    "convert demo.etl --symbols ftp://example.com",
    "convert demo.etl --symbols https:///",
    "convert demo.etl --symbols https://example.com/?a=b",
    "convert demo.etl --symbols https://ann:secret@example.com/?a=b",
    // Filters.
    "convert demo.etl --name nobody",
    "convert demo.etl --name ORDER",
    "convert demo.etl --name nobody --name orders --no-symbols -o a.folded",
    "convert demo.etl --pid 99999",
    "convert demo.etl --tid 99999",
    "convert demo.etl --from 1h",
    "convert demo.etl --from 11:00:16",
    "convert demo.etl --from 24:00",
    "convert demo.etl --thread nobody",
    "convert demo.etl --module core",
    "convert demo.etl --function CompareT",
    "convert demo.etl --function /(/",
    "convert demo.etl --category other",
    "convert demo.etl --category javascript",
    "convert demo.etl --cpu 9",
    "convert demo.etl --cpu 3-1",
    "info demo.etl --name nobody",
    "symbols demo.etl --name nobody",
    // Addresses.
    "symbolize",
    "symbolize no-such.exe 1",
    "symbolize folder 1",
    "symbolize notes.etl 1",
    "symbolize notes.etl zz",
    "symbolize notes.etl 1 --pdb no-such.pdb",
    "symbolize cut.pdb 1",
];

/// Where nothing can be recorded.
#[cfg(not(windows))]
const ELSEWHERE: &[&str] =
    &["--all", "--pid 1 --duration 1s", "-- app.exe", "sessions", "grant jo", "revoke", "permissions"];

/// Where no file is at the paths that the demo recorded.
#[cfg(not(windows))]
const SYMBOLS: &[&str] = &[
    "convert demo.etl -o a.folded --offline --symbols srv*cache*https://symbols.invalid",
    "convert demo.etl -o a.folded --name hasher",
    "symbols demo.etl --name hasher --symbols srv*cache*https://symbols.invalid",
];

#[test]
fn errors() {
    compare("errors.txt", &printed(LINES));
}

#[cfg(not(windows))]
#[test]
fn errors_where_nothing_can_be_recorded() {
    compare("errors-elsewhere.txt", &printed(ELSEWHERE));
}

#[cfg(not(windows))]
#[test]
fn one_line_for_each_cause_of_missing_names() {
    compare("symbols.txt", &printed(SYMBOLS));
}

fn printed(lines: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let mut text = String::new();
    for line in lines {
        let mut command = command::command();
        command.current_dir(folder.path()).args(line.split(' ')).env("_NT_SYMBOL_PATH", "no-symbols");
        let output = command::output(command.env("COLUMNS", "80"));
        writeln!(text, "$ etwprof {line}\n{}[exit code {}]\n", output.stderr, output.code).unwrap();
    }
    text
}

/// The files that the lines name.
fn prepare(folder: &Path) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(project.join("examples").join("demo.etl"), folder.join("demo.etl")).unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
    let zip = |name: &str| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(&[7; 4000]).unwrap();
        archive.finish().unwrap().into_inner()
    };
    let cut = zip("a.etl");
    let silent = Etl::new().event(0, START, Process::dc_start(4, "System")).finish();
    let lossy = machine().lost(7, 0).sampled(0, START + 9, 40, 41, &[0xa]);
    let mut lossy = lossy.event(0, START + 99, mark(&"long ".repeat(1_000))).finish();
    lossy.truncate(64 * 1024 + 2_000); // inside of the mark
    for (name, bytes) in [
        ("empty.etl", Vec::new()),
        ("notes.etl", "no recording, but long enough to be one ".repeat(10).into_bytes()),
        ("cut.zip", cut[..cut.len() - 30].to_vec()),
        ("other.zip", zip("readme.txt")),
        ("cut.pdb", b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec()),
        ("silent.etl", silent),
        ("lossy.etl", lossy),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
}
