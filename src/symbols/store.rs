//! Finds symbol files and images by their identity: on this machine, in stores and caches, on symbol servers.
//!
//! A file is used only when the caller's check says that it is the very one that was asked for; what does not match
//! is named in the answer. Servers are asked by several threads, in the order of the requests, which should be by
//! how much each matters.
//!
//! ```no_run
//! use etwprof::symbols::{key::FileKey, lookup::Verdict, path::SymbolPath, store::{Store, StoreOptions}};
//!
//! let path = SymbolPath::parse("srv*https://msdl.microsoft.com/download/symbols")?;
//! let store = Store::new(&path, StoreOptions::default());
//! let key = FileKey::pdb("ntkrnlmp.pdb", [0x11; 16], 1);
//! let lookup = store.find(&key, &[], &|file| match std::fs::metadata(file) {
//!     Ok(_) => Verdict::Matches, // A real check reads the GUID and age out of the file.
//!     Err(e) => Verdict::Unreadable(e.to_string()),
//! });
//! for attempt in &lookup.attempts {
//!     eprintln!("{attempt}");
//! }
//! # Ok::<(), etwprof::symbols::path::SymbolPathError>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcetera::BaseStrategy;

use super::archive::Archive;
use super::cache::Cache;
use super::download::Client;
use super::key::FileKey;
use super::lookup::{Lookup, Verify};
use super::parallel::with_helpers;
use super::path::{Element, SymbolPath, Tier};
use super::search::Search;
use super::server::Server;
use super::tree::Tree;

/// How a [`Store`] works.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Ask no server. Caches and folders are still looked into.
    pub offline: bool,
    /// Ask again for what is remembered as failed.
    pub retry_failed: bool,
    /// The cache of this user; see [`user_cache`]. Without one, a server whose chain names no cache gives nothing.
    pub user_cache: Option<PathBuf>,
    /// What servers and cabinets may produce.
    pub limits: Limits,
    /// How long a request may take.
    pub timeouts: Timeouts,
    /// Requests for one address before it counts as failed, at least 1.
    pub tries: u32,
    /// The wait before the second try. It doubles with every further one.
    pub pause: Duration,
    /// How long it is remembered that a server does not have a file.
    pub remember_missing: Duration,
    /// How long it is remembered that a server failed over a file: errors and time-outs.
    pub remember_trouble: Duration,
    /// Files looked for at once.
    pub parallel: usize,
    /// How servers are reached.
    pub proxy: Proxy,
    /// Half-written files in a cache are removed when they were not written to for so long. It must be longer than
    /// [`Timeouts::stall`], or the downloads of another process are at risk.
    pub stale_after: Duration,
}

/// The largest files that are accepted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one file, as it is sent and as it is when decoded and expanded.
    pub file: u64,
    /// Expanded bytes for each byte of a cabinet, looked at from 16 MiB up.
    pub cabinet_ratio: u64,
}

/// The time limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To find the server, and again to connect to it.
    pub connect: Duration,
    /// From the request to the end of the answer's headers.
    pub answer: Duration,
    /// Without a byte.
    pub stall: Duration,
    /// For the whole file.
    pub total: Duration,
}

/// How servers are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// As `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    Environment,
    /// Directly.
    Direct,
    /// By the proxy at this address, such as `http://proxy:8080`.
    Address(String),
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            offline: false,
            retry_failed: false,
            user_cache: user_cache(),
            limits: Limits { file: 4 << 30, cabinet_ratio: 250 },
            timeouts: Timeouts {
                connect: Duration::from_secs(10),
                answer: Duration::from_secs(30),
                stall: Duration::from_secs(30),
                total: Duration::from_secs(30 * 60),
            },
            tries: 3,
            pause: Duration::from_millis(300),
            remember_missing: Duration::from_secs(24 * 60 * 60),
            remember_trouble: Duration::from_secs(10 * 60),
            parallel: 8,
            proxy: Proxy::Environment,
            stale_after: Duration::from_secs(15 * 60),
        }
    }
}

/// The cache of this user, in the system's place for caches: `%LOCALAPPDATA%`, `~/Library/Caches`,
/// `$XDG_CACHE_HOME` or `~/.cache`, and there `etwprof/symbols`. `None` when the user has no home.
pub fn user_cache() -> Option<PathBuf> {
    let folders = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(folders.cache_dir().join("etwprof").join("symbols"))
}

/// One file to find.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What.
    pub key: &'a FileKey,
    /// Full paths to look at first, such as the path in the image's RSDS record and that beside the image. They
    /// may come from a trace: paths on a network are not opened, and relative ones neither.
    pub hints: &'a [PathBuf],
    /// False for a file that is welcome and not worth a request: then only this machine is searched.
    pub ask_servers: bool,
    /// The check of a candidate. The file it is given may still have a temporary name.
    pub verify: &'a Verify<'a>,
}

/// What [`Store::find_all`] tells while it works.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The search began.
    Started,
    /// A server sends a file.
    Receiving {
        /// Bytes of the file so far.
        bytes: u64,
        /// Bytes in all, if the server says.
        total: Option<u64>,
    },
    /// The search is over.
    Finished(&'a Lookup),
}

/// The places of a symbol path, ready to be searched from several threads.
pub struct Store {
    pub(super) sources: Vec<Source>,
    pub(super) user_cache: Option<Arc<Cache>>,
    /// Or why no server can be asked.
    pub(super) client: Result<Client, String>,
    pub(super) options: StoreOptions,
}

/// One element of the path.
pub(super) enum Source {
    Folder(PathBuf),
    Tree(Tree),
    Archive(Archive),
    /// Nearest first.
    Chain(Vec<Link>),
}

/// One store of a chain.
#[derive(Clone)]
pub(super) enum Link {
    Store(Arc<Cache>),
    Server(Arc<Server>),
}

impl Store {
    /// Prepares the places of a symbol path. Nothing is opened or asked yet.
    pub fn new(path: &SymbolPath, options: StoreOptions) -> Store {
        let client = Client::new(&options).map_err(|e| format!("the proxy: {e}"));
        let mut links = Links { options: &options, stores: Vec::new(), servers: Vec::new() };
        let user_cache = options.user_cache.clone().map(|root| links.store(root));
        let mut in_front: Vec<Link> = Vec::new();
        let mut sources = Vec::new();
        for element in path.elements() {
            match element {
                Element::Folder(folder) => sources.push(Source::Folder(folder.clone())),
                Element::Tree(folder) => sources.push(Source::Tree(Tree::new(folder.clone()))),
                Element::Archive(file) => sources.push(Source::Archive(Archive::new(file.clone()))),
                Element::Cache(tier) => in_front.extend(links.link(tier)),
                Element::Server(tiers) => {
                    let chain = tiers.iter().filter_map(|tier| links.link(tier));
                    sources.push(Source::Chain(in_front.iter().cloned().chain(chain).collect()));
                }
            }
        }
        Store { sources, user_cache, client, options }
    }

    /// Looks for one file: at the hints, then along the path. Blocks until it is found or every place has answered.
    pub fn find(&self, key: &FileKey, hints: &[PathBuf], verify: &Verify<'_>) -> Lookup {
        Search::new(self, &Request { key, hints, ask_servers: true, verify }, &mut |_, _| ()).run()
    }

    /// Looks for many files at once; the answers are in the order of the requests, and so is the work begun.
    ///
    /// `progress` is called with the number of a request, from several threads.
    pub fn find_all(
        &self,
        requests: &[Request<'_>],
        progress: &(dyn Fn(usize, Progress<'_>) + Sync),
    ) -> Vec<Lookup> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(vec![Lookup::default(); requests.len()]);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(number) else { return };
                progress(number, Progress::Started);
                let mut arrived = |bytes, total| progress(number, Progress::Receiving { bytes, total });
                let lookup = Search::new(self, request, &mut arrived).run();
                progress(number, Progress::Finished(&lookup));
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(slot) = done.get_mut(number) {
                    *slot = lookup;
                }
            }
        };
        with_helpers(self.options.parallel.min(requests.len()).saturating_sub(1), work);
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Folders and servers by name, so that one that stands in the path twice is swept and given up once.
struct Links<'a> {
    options: &'a StoreOptions,
    stores: Vec<Arc<Cache>>,
    servers: Vec<Arc<Server>>,
}

impl Links<'_> {
    /// `None` for the user's cache where there is none.
    fn link(&mut self, tier: &Tier) -> Option<Link> {
        Some(match tier {
            Tier::UserCache => Link::Store(self.store(self.options.user_cache.clone()?)),
            Tier::Folder(folder) => Link::Store(self.store(folder.clone())),
            Tier::Url(base) => {
                let known = self.servers.iter().find(|s| s.base() == base).cloned();
                Link::Server(known.unwrap_or_else(|| {
                    let server = Arc::new(Server::new(base.clone()));
                    self.servers.push(Arc::clone(&server));
                    server
                }))
            }
        })
    }

    fn store(&mut self, root: PathBuf) -> Arc<Cache> {
        self.stores.iter().find(|s| s.root() == Path::new(&root)).cloned().unwrap_or_else(|| {
            let store = Arc::new(Cache::new(root, self.options.stale_after));
            self.stores.push(Arc::clone(&store));
            store
        })
    }
}
