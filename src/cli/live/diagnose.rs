//! `--diagnose FILE`: what a report of a fault needs to know of a recording.
//!
//! The file is written anew every second, so that it is there after a hang, a crash or a second Ctrl-C too. Nothing that
//! goes wrong with it stops a recording.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use etwprof::profile::{Filter, Profile};
use etwprof::report::diagnosis;
use etwprof::session::journal;
use etwprof::symbols::Unnamed;
use etwprof::symbols::local_images::Identified;
use etwprof::trace::{ModuleId, Trace};

use crate::cli::{say, usage};

pub(super) struct Diagnose {
    path: PathBuf,
    /// What is known once the events have been read.
    trace: Arc<Mutex<Vec<u8>>>,
    /// Dropped at the end.
    running: Option<Sender<()>>,
    writer: Option<JoinHandle<()>>,
}

const EVERY: Duration = Duration::from_secs(1);

impl Diagnose {
    /// From now on everything is written down. Fails if the file cannot be written.
    pub(super) fn start(path: &Path) -> Result<Diagnose> {
        journal::start();
        write(path, b"", "it runs")
            .map_err(|error| usage::cannot("write the --diagnose file", path, &error))?;
        let trace = Arc::new(Mutex::new(Vec::new()));
        let (running, ended) = mpsc::channel::<()>();
        let (to, known) = (path.to_owned(), trace.clone());
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Whether it can be written is said at the end.
                let _ = write(&to, &known, "it runs, or was ended");
            }
        };
        let writer = std::thread::Builder::new().name("diagnosis".to_owned()).spawn(work).ok();
        Ok(Diagnose { path: path.to_owned(), trace, running: Some(running), writer })
    }

    /// Adds what the trace shows. `opened` are modules with what their files were.
    pub(super) fn trace(&self, trace: &Arc<Trace>, filter: &Filter, opened: &[(ModuleId, Identified)]) {
        let profile = Profile::new(trace, filter, &Unnamed);
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = diagnosis::write_trace(&mut text, &profile, opened);
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Writes it for the last time, and says where it is.
    pub(super) fn finish(mut self, error: Option<&anyhow::Error>, quiet: bool) {
        drop(self.running.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let result = error.map_or("it ended well".to_owned(), |error| format!("it failed: {error:#}"));
        match write(&self.path, &trace, &result) {
            Ok(()) if quiet => {}
            Ok(()) => say::note(format_args!(
                "wrote {} for a bug report; it names programs and paths on this machine",
                self.path.display()
            )),
            Err(error) => {
                say::warning(format_args!("--diagnose: cannot write {}: {error}", self.path.display()));
            }
        }
    }
}

fn write(path: &Path, trace: &[u8], result: &str) -> std::io::Result<()> {
    let mut text = Vec::new();
    let arguments: Vec<String> = std::env::args().collect();
    diagnosis::write(&mut text, &journal::so_far(), &arguments, result)?;
    text.extend_from_slice(trace);
    std::fs::write(path, text)
}
