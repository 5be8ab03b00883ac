//! Finds symbol files and images by their identity: on this machine, in stores and caches, on symbol servers.
//!
//! A file is used only when the caller's check says that it is the very one that was asked for; what does not match
//! is named in the answer. Servers are asked by several threads, in the order of the requests, which should be by
//! how much each matters.
//!
//! ```no_run
//! use etwprof::debug_id::DebugId;
//! use etwprof::guid::Guid;
//! use etwprof::symbols::{find::{key::FileKey, lookup::Checked, path::SymbolPath, options::StoreOptions, store::Store}};
//!
//! let path = SymbolPath::parse("srv*https://msdl.microsoft.com/download/symbols")?;
//! let store = Store::new(&path, StoreOptions::default());
//! let id = DebugId { guid: Guid::from_u128(0x11f77284_4ede_7667_a523_4b0e7b07eef1), age: 1 };
//! let key = FileKey::pdb("ntkrnlmp.pdb", id);
//! let lookup = store.find(&key, &[], &|file| match std::fs::metadata(file) {
//!     Ok(_) => Checked::Matches, // A real check reads the GUID and age out of the file.
//!     Err(e) => Checked::Unreadable(e.to_string()),
//! });
//! for attempt in &lookup.attempts {
//!     eprintln!("{attempt}");
//! }
//! # Ok::<(), etwprof::symbols::find::path::NotUnderstood>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::key::FileKey;
use super::lookup::{Lookup, Verify};
use super::options::StoreOptions;
use super::path::SymbolPath;
use super::request::{OnProgress, Progress, Request};
use super::route::Route;
use super::search::Search;
use crate::symbols::parallel::in_parallel;

/// The places of a symbol path, ready to be searched from several threads.
pub struct Store {
    route: Route,
}

impl Store {
    /// Prepares the places of a symbol path. Nothing is opened or asked yet.
    pub fn new(path: &SymbolPath, options: StoreOptions) -> Store {
        Store { route: Route::new(path, options) }
    }

    /// Looks for one file: at the hints, then along the path. Blocks until it is found or every place has answered.
    pub fn find(&self, key: &FileKey, hints: &[PathBuf], verify: &Verify<'_>) -> Lookup {
        let verify = Box::new(|file: &Path| verify(file));
        let request = Request { key: key.clone(), hints: hints.to_vec(), ask_servers: true, verify };
        Search::new(&self.route, &request, &mut |_, _| ()).run()
    }

    /// Looks for many files at once; the answers are in the order of the requests, and so is the work begun.
    pub fn find_all(&self, requests: &[Request<'_>], progress: &OnProgress<'_>) -> Vec<Lookup> {
        let find = |request: &Request<'_>| {
            let name = request.key.name().unwrap_or("?");
            progress(name, Progress::Started);
            let mut arrived = |bytes, total| progress(name, Progress::Receiving { bytes, total });
            let lookup = Search::new(&self.route, request, &mut arrived).run();
            progress(name, Progress::Finished(&lookup));
            lookup
        };
        thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            // Where no thread can be made, the wait is as long and nobody hears of it.
            let _reporter =
                thread::Builder::new().spawn_scoped(scope, || self.report_silence(is_done, progress));
            let found = in_parallel(self.route.options.parallel, requests, find);
            drop(done);
            found
        })
    }

    /// Reports each time that nothing came for a while, until the other end of `done` is dropped.
    fn report_silence(&self, done: mpsc::Receiver<()>, progress: &OnProgress<'_>) {
        let every = self.route.options.report_silence.max(Duration::from_millis(10));
        let mut next = every;
        while done.recv_timeout(every / 5) == Err(RecvTimeoutError::Timeout) {
            match self.route.budget.longest_wait() {
                Some((silent, server, file)) if silent >= next => {
                    progress(&file, Progress::Waiting { server: &server, seconds: silent.as_secs() });
                    next = silent + every;
                }
                Some((silent, ..)) if silent + every >= next => {}
                _ => next = every,
            }
        }
    }
}
