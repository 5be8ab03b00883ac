//! Traces over real images: processes that map them, and samples at addresses in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use etwprof::symbols::find::key::{FileId, FileKey};
use tempfile::{TempDir, tempdir};

use crate::support::command::{Output, command, output};
use crate::support::store::pdb_of_image;
use crate::synth::{Etl, Guid, Image, IntoEvent, Process, START, Thread, image_id};

pub const PROCESS: u32 = 4200;
pub const NAME: &str = "app.exe";

/// A real image as a trace tells of it.
#[derive(Clone, Debug)]
pub struct Module {
    /// The path in the trace.
    pub path: String,
    pub base: u64,
    pub size: u32,
    pub timestamp: u32,
    pub checksum: u32,
    /// Path, GUID and age of its PDB.
    pub pdb: Option<(String, [u8; 16], u32)>,
}

impl Module {
    /// The image file `real`, mapped at `base`, with the identity that its header tells.
    pub fn of(real: &Path, path: &str, base: u64) -> Module {
        let bytes = fs::read(real).unwrap();
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let pe = u32_at(0x3C) as usize;
        let has_pdb = bytes.windows(4).any(|w| w == b"RSDS");
        let pdb = has_pdb.then(|| {
            let key = pdb_of_image(real);
            let FileId::Pdb(id) = key.id() else { panic!("the key of a PDB") };
            (key.recorded().to_owned(), id.guid.to_bytes(), id.age)
        });
        Module {
            path: path.to_owned(),
            base,
            size: u32_at(pe + 80),
            timestamp: u32_at(pe + 8),
            checksum: u32_at(pe + 88),
            pdb,
        }
    }

    /// The key of its PDB.
    pub fn pdb_key(&self) -> FileKey {
        let (path, guid, age) = self.pdb.as_ref().expect("an image with a PDB");
        crate::support::store::pdb_key(path, *guid, *age)
    }

    /// The key of the image itself.
    pub fn image_key(&self) -> FileKey {
        FileKey::image(&self.path, self.timestamp, self.size)
    }

    pub fn at(&self, rva: u32) -> u64 {
        self.base + u64::from(rva)
    }
}

/// Where a key lies on a server.
pub fn on_server(key: &FileKey) -> String {
    let name = key.name().unwrap();
    format!("/{name}/{}/{name}", key.index())
}

/// How much a trace tells of its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Merged: the ids of PDBs.
    Pdb,
    /// Not merged, loaded while the session ran: time stamp, size and checksum.
    Load,
    /// Not merged, there before: size and checksum only.
    Rundown,
}

/// A trace in the making.
pub struct Recording {
    etl: Etl,
    time: i64,
    threads: Vec<u32>,
}

impl Recording {
    /// One process with these modules; those in the kernel's half are everybody's.
    pub fn of(modules: &[Module], told: Told) -> Recording {
        let mut etl = Etl::new().event(0, START + 1, Process::dc_start(PROCESS, NAME));
        for (time, module) in (START + 10..).step_by(10).zip(modules) {
            let process = if module.base >= 0xFFFF_8000_0000_0000 { 0 } else { PROCESS };
            let Module { path, base, size, timestamp, checksum, pdb } = module;
            let image = match told {
                Told::Load => Image::load(process, *base, (*size).into(), path).time_date_stamp(*timestamp),
                _ => Image::dc_start(process, *base, (*size).into(), path),
            };
            if told == Told::Pdb {
                etl =
                    etl.event(0, time, image_id::image_id(process, *base, (*size).into(), *timestamp, path));
                if let Some((pdb, guid, age)) = pdb {
                    etl = etl.event(0, time, image_id::dbg_id_rsds(process, *base, Guid(*guid), *age, pdb));
                }
            }
            etl = etl.event(0, time, image.checksum(*checksum));
        }
        Recording { etl, time: START + 100_000, threads: Vec::new() }
    }

    /// When it was recorded, as FILETIME.
    pub fn recorded(mut self, filetime: i64) -> Recording {
        self.etl = self.etl.start_time(filetime);
        self
    }

    /// Another event, before all samples.
    pub fn event(mut self, event: impl IntoEvent) -> Recording {
        self.etl = self.etl.event(0, START + 5_000, event);
        self
    }

    /// A sample of a thread with this stack, leaf first.
    pub fn stack(mut self, thread: u32, frames: &[u64]) -> Recording {
        if !self.threads.contains(&thread) {
            self.threads.push(thread);
            self.etl = self.etl.event(0, START + 2, Thread::dc_start(PROCESS, thread));
        }
        self.time += 1_000;
        self.etl = self.etl.sampled(0, self.time, PROCESS, thread, frames);
        self
    }

    pub fn write(self, path: &Path) -> PathBuf {
        fs::write(path, self.etl.finish()).unwrap();
        path.to_owned()
    }
}

/// A folder with a trace and a cache, and the program run in it.
pub struct Bench {
    pub folder: TempDir,
    pub trace: PathBuf,
}

impl Bench {
    pub fn new(recording: Recording) -> Bench {
        let folder = tempdir().unwrap();
        let trace = recording.write(&folder.path().join("trace.etl"));
        Bench { folder, trace }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program; its user has the home `home` in the folder.
    pub fn command(&self, verb: &str, args: &[&str]) -> Command {
        let mut command = command();
        for name in ["HOME", "LOCALAPPDATA", "XDG_CACHE_HOME"] {
            command.env(name, self.path("home"));
        }
        command.arg(verb).arg(&self.trace).args(args);
        command
    }

    #[track_caller]
    pub fn run(&self, verb: &str, args: &[&str]) -> Output {
        output(&mut self.command(verb, args)).success()
    }

    /// The folded stacks without process and count, each with what stands before it.
    #[track_caller]
    pub fn stacks(&self, args: &[&str]) -> Vec<String> {
        let output = self.run("convert", &[&["-f", "folded"], args].concat());
        let heading = format!("{NAME} ({PROCESS});");
        let frames = |line: &str| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            assert!(count.parse::<u64>().is_ok(), "{line}");
            stack.strip_prefix(&heading).unwrap_or(stack).to_owned()
        };
        let mut stacks: Vec<String> = output.text().lines().map(frames).collect();
        stacks.sort();
        stacks
    }

    /// The modules that `etwprof symbols --json` tells of.
    #[track_caller]
    pub fn symbols(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let output = self.run("symbols", &[&["--json"], args].concat());
        serde_json::from_str(output.text()).unwrap()
    }
}
