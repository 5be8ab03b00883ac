//! One file from one address: time limits, size limit, retries, and every failure by its cause.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::thread;
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, RETRY_AFTER};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use super::lookup::Outcome;
use super::store::{Proxy, StoreOptions};

const MAX_REDIRECTS: u32 = 5;
/// What is read of the page that comes with an error, in bytes.
const MAX_ERROR_PAGE: u64 = 16 * 1024;
/// The longest wait that a server may ask for before the next try.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Fetches files over HTTP. Connections are kept and shared between threads.
pub(super) struct Client {
    agent: ureq::Agent,
    tries: u32,
    pause: Duration,
}

/// A failed request: the cause, and whether another try may do better.
struct Failed {
    outcome: Outcome,
    /// Wait this long before the next try. `None`: it is of no use.
    again: Option<Duration>,
}

impl Client {
    /// # Errors
    /// The address of the proxy cannot be read.
    pub(super) fn new(options: &StoreOptions) -> Result<Client, ureq::Error> {
        let tls = TlsConfig::builder()
            .provider(if cfg!(windows) { TlsProvider::NativeTls } else { TlsProvider::Rustls })
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let times = &options.timeouts;
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .user_agent(concat!("etwprof/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(MAX_REDIRECTS)
            .max_idle_connections(2 * options.parallel)
            .max_idle_connections_per_host(options.parallel)
            .timeout_resolve(Some(times.connect))
            .timeout_connect(Some(times.connect))
            .timeout_recv_response(Some(times.answer))
            .timeout_per_read(Some(times.stall))
            .timeout_per_write(Some(times.stall))
            .timeout_global(Some(times.total));
        let config = match &options.proxy {
            Proxy::Environment => config,
            Proxy::Direct => config.proxy(None),
            Proxy::Address(address) => config.proxy(Some(ureq::Proxy::new(address)?)),
        };
        Ok(Client { agent: config.build().into(), tries: options.tries.max(1), pause: options.pause })
    }

    /// Gets `url` into `file`, of which nothing else is kept, at most `limit` bytes; returns their number.
    ///
    /// `arrived` is called as bytes come, with their number so far (decoded) and the number announced.
    ///
    /// # Errors
    /// What came of the last try. `file` may then hold anything.
    pub(super) fn get(
        &self,
        url: &str,
        file: &mut File,
        limit: u64,
        arrived: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<u64, Outcome> {
        let (mut pause, mut done) = (self.pause, 0);
        loop {
            done += 1;
            let Err(failed) = self.get_once(url, file, limit, arrived) else {
                return file.metadata().map(|m| m.len()).map_err(not_stored);
            };
            match failed.again {
                Some(asked) if done < self.tries => thread::sleep(asked.max(pause)),
                _ => return Err(with_tries(failed.outcome, done)),
            }
            pause *= 2;
        }
    }

    fn get_once(
        &self,
        url: &str,
        file: &mut File,
        limit: u64,
        arrived: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<(), Failed> {
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .map_err(|e| Failed::last(not_stored(e)))?;
        // A redirect must not leave TLS.
        let request = self.agent.get(url).config().https_only(url.starts_with("https:")).build();
        let mut response = request.call().map_err(|e| Failed::from_error(e, "waiting for the answer"))?;
        if let Err(failed) = check_status(response.status(), response.headers()) {
            // A connection can be used again once its answer has been read.
            let mut rest = response.body_mut().with_config().limit(MAX_ERROR_PAGE).reader();
            let _ = io::copy(&mut rest, &mut io::sink());
            return Err(failed);
        }
        let plain = check_encoding(response.headers())?;
        let announced = number(response.headers(), CONTENT_LENGTH.as_str());
        if let Some(size) = announced.filter(|&size| size > limit) {
            return Err(Failed::last(Outcome::OverLimit { size, limit }));
        }
        // While it is encoded, the announced length says nothing of the size of the file.
        let total = announced.filter(|_| plain);
        let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; 64 * 1024];
        let mut received = 0;
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Failed::from_body(e, received, total)),
            };
            received += read as u64;
            if received > limit {
                return Err(Failed::last(Outcome::OverLimit { size: received, limit }));
            }
            let chunk = buffer.get(..read).unwrap_or_default();
            file.write_all(chunk).map_err(|e| Failed::last(not_stored(e)))?;
            arrived(received, total);
        }
        match total {
            Some(promised) if promised != received => Err(Failed::cut_short(received, total)),
            _ => Ok(()),
        }
    }
}

fn check_status(status: StatusCode, headers: &HeaderMap) -> Result<(), Failed> {
    match status.as_u16() {
        200 => Ok(()),
        404 | 410 => Err(Failed::last(Outcome::NotThere)),
        code @ (401 | 403 | 407) => Err(Failed::last(Outcome::Forbidden(Some(code)))),
        code @ (408 | 429 | 500..=599) => {
            // Seconds; the form with a date is left to the usual pause.
            let asked = Duration::from_secs(number(headers, RETRY_AFTER.as_str()).unwrap_or(0)).min(MAX_WAIT);
            Err(Failed { outcome: Outcome::ServerError { status: code, tries: 1 }, again: Some(asked) })
        }
        status => Err(Failed::last(Outcome::ServerError { status, tries: 1 })),
    }
}

/// Whether the body comes as the file is. gzip is decoded on the way; nothing else was asked for.
fn check_encoding(headers: &HeaderMap) -> Result<bool, Failed> {
    let encoding = headers.get(CONTENT_ENCODING).map(|v| String::from_utf8_lossy(v.as_bytes()));
    match encoding.as_deref().map(str::trim) {
        None | Some("" | "identity") => Ok(true),
        // Exactly the spelling that the client decodes.
        Some("gzip") => Ok(false),
        Some(other) => Err(Failed::last(Outcome::Unreadable(format!(
            "sent in the encoding {other:?}, which was not asked for"
        )))),
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

impl Failed {
    fn last(outcome: Outcome) -> Failed {
        Failed { outcome, again: None }
    }

    fn may_pass(outcome: Outcome) -> Failed {
        Failed { outcome, again: Some(Duration::ZERO) }
    }

    fn cut_short(received: u64, promised: Option<u64>) -> Failed {
        Failed::may_pass(Outcome::CutShort { received, promised })
    }

    fn from_error(error: ureq::Error, doing: &'static str) -> Failed {
        use ureq::{Error, Timeout};
        match error {
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                Failed::may_pass(Outcome::TimedOut { phase: "connecting", tries: 1 })
            }
            // The time for the whole file is up, and would be again.
            Error::Timeout(Timeout::Global) => {
                Failed::last(Outcome::TimedOut { phase: "receiving the file", tries: 1 })
            }
            Error::Timeout(_) => Failed::may_pass(Outcome::TimedOut { phase: doing, tries: 1 }),
            Error::TooManyRedirects => {
                Failed::last(Outcome::BadRedirect(format!("more than {MAX_REDIRECTS} in a row")))
            }
            Error::RequireHttpsOnly(to) => Failed::last(Outcome::BadRedirect(format!("from https to {to}"))),
            Error::BadUri(why) => Failed::last(Outcome::BadRedirect(why)),
            Error::HostNotFound => Failed::last(Outcome::Unreachable("no such host".to_owned())),
            Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                Failed::may_pass(Outcome::Unreachable("the connection was refused".to_owned()))
            }
            // A certificate that is not accepted.
            Error::Io(e) if e.kind() == io::ErrorKind::InvalidData => {
                Failed::last(Outcome::Unreachable(e.to_string()))
            }
            Error::Io(e) => Failed::may_pass(Outcome::Unreachable(e.to_string())),
            // TLS, proxy and protocol errors: another try would go the same way.
            other => Failed::last(Outcome::Unreachable(other.to_string())),
        }
    }

    fn from_body(error: io::Error, received: u64, promised: Option<u64>) -> Failed {
        use io::ErrorKind as Kind;
        if matches!(error.kind(), Kind::UnexpectedEof | Kind::ConnectionReset | Kind::ConnectionAborted) {
            return Failed::cut_short(received, promised);
        }
        match ureq::Error::from(error) {
            error @ ureq::Error::Timeout(_) => Failed::from_error(error, "receiving the file"),
            // Broken chunks, or a gzip stream that is none.
            other => Failed::may_pass(Outcome::Unreadable(other.to_string())),
        }
    }
}

fn with_tries(mut outcome: Outcome, done: u32) -> Outcome {
    if let Outcome::ServerError { tries, .. } | Outcome::TimedOut { tries, .. } = &mut outcome {
        *tries = done;
    }
    outcome
}

pub(super) fn not_stored(error: io::Error) -> Outcome {
    Outcome::NotStored(error.to_string())
}
