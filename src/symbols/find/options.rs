//! What a search may cost, and how servers are reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use etcetera::BaseStrategy;

use super::credentials::Credentials;

/// How a [`Store`](super::store::Store) works.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Ask no server. Caches and folders are still looked into.
    pub offline: bool,
    /// Ask again for what is remembered as failed.
    pub retry_failed: bool,
    /// The cache of this user; see [`user_cache`]. Without one, a server whose chain names no cache gives nothing.
    pub user_cache: Option<PathBuf>,
    /// What servers and cabinets may produce.
    pub limits: SizeLimits,
    /// How long a request may take.
    pub timeouts: Timeouts,
    /// How long nothing may arrive from any server before the rest of the run does without them. Servers that never
    /// answered share it. What was cut off is asked again by the next run.
    pub silence: Duration,
    /// How long servers may be waited for in all, silent or not; `None` without a limit. What was cut off is asked again
    /// by the next run.
    pub time: Option<Duration>,
    /// How long a server may refuse or drop connections before the rest of the run does without it.
    pub outage: Duration,
    /// [`Progress::Waiting`](super::request::Progress::Waiting) is reported each time it was silent for so long.
    pub report_silence: Duration,
    /// Requests for one address before it counts as failed, at least 1. Those that brought a part of the file do not
    /// count, nor those that failed in an [`outage`](StoreOptions::outage) of the server.
    pub tries: u32,
    /// The wait before the second try, and for a server that drops connections. It doubles with every further one.
    pub pause: Duration,
    /// How long it is remembered that a server does not have a file.
    pub remember_missing: Duration,
    /// How long it is remembered that a server failed over a file: errors and time-outs.
    pub remember_trouble: Duration,
    /// Files looked for at once.
    pub parallel: usize,
    /// How servers are reached.
    pub proxy: Proxy,
    /// What servers are given to let us in, beside the logins in the symbol path.
    pub credentials: Credentials,
    /// Half-written files in a cache are removed when they were not written to for so long. It must be longer than
    /// [`Timeouts::stall`], or the downloads of another process are at risk.
    pub stale_after: Duration,
}

/// The largest files that are accepted.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimits {
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
    /// To find the server, connect, and have the end of the answer's headers, along redirects.
    pub answer: Duration,
    /// Without a byte.
    pub stall: Duration,
}

/// How servers are reached. `Debug` shows no address, as it may have a login.
#[derive(Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As `_NT_SYMBOL_PROXY` says, or `HTTP_PROXY` for `http:` and `HTTPS_PROXY` for `https:` addresses, or `ALL_PROXY`, but
    /// for the hosts in `NO_PROXY`. Where none of them is set, on Windows as the user's settings say, with their scripts.
    Environment,
    /// Directly.
    Direct,
    /// By the proxy at this address, such as `http://proxy:8080`.
    Address(String),
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proxy::Environment => "Environment",
            Proxy::Direct => "Direct",
            Proxy::Address(_) => "Address",
        })
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            offline: false,
            retry_failed: false,
            user_cache: user_cache(),
            limits: SizeLimits { file: 4 << 30, cabinet_ratio: 250 },
            timeouts: Timeouts {
                connect: Duration::from_secs(30),
                answer: Duration::from_secs(30),
                stall: Duration::from_secs(30),
            },
            silence: Duration::from_secs(30),
            time: Some(Duration::from_secs(30 * 60)),
            outage: Duration::from_secs(15),
            report_silence: Duration::from_secs(5),
            tries: 3,
            pause: Duration::from_millis(300),
            remember_missing: Duration::from_secs(24 * 60 * 60),
            remember_trouble: Duration::from_secs(10 * 60),
            parallel: 8,
            proxy: Proxy::Environment,
            credentials: Credentials::default(),
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
