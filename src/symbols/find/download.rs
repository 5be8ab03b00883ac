//! One file from one address: time limits, size limit, redirects, tries, and every failure by its cause.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_RANGE,
    LAST_MODIFIED, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::address::{is_of, redirected};
use super::connection::{AnswerBy, agent};
use super::credentials::{Credentials, basic};
use super::health::Call;
use super::login::Login;
use super::lookup::Outcome;
use super::options::{StoreOptions, Timeouts};
use super::proxy::Proxies;

const MAX_REDIRECTS: usize = 5;
/// What is read of the page that comes with an error, in bytes.
const MAX_ERROR_PAGE: u64 = 16 * 1024;
/// The longest wait that a server may ask for before the next try.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Fetches files over HTTP. Connections are kept and shared between threads.
pub(super) struct Client {
    agent: Agent,
    proxies: Proxies,
    credentials: Credentials,
    logins: Vec<Login>,
    timeouts: Timeouts,
    tries: u32,
    pause: Duration,
}

/// A failed request: the cause, and what may do better.
struct Failed {
    outcome: Outcome,
    again: Again,
}

enum Again {
    Never,
    /// Another try, after so long at least.
    After(Duration),
    /// The server itself is in trouble: it gets a pause, of so long at least.
    Server(Duration),
}

/// What a download that was cut off can go on from (RFC 9110, 14).
struct Resume {
    received: u64,
    total: u64,
    /// Names this state of the file on the server.
    validator: String,
}

impl Client {
    pub(super) fn new(options: &StoreOptions, logins: &[Login]) -> Client {
        let tls = TlsConfig::builder()
            .provider(if cfg!(windows) { TlsProvider::NativeTls } else { TlsProvider::Rustls })
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .user_agent(concat!("etwprof/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(2 * options.parallel)
            .max_idle_connections_per_host(options.parallel)
            .timeout_per_write(Some(options.timeouts.stall));
        Client {
            agent: agent(config.build()),
            proxies: Proxies::new(&options.proxy, &|name| std::env::var(name).ok()),
            credentials: options.credentials.clone(),
            logins: logins.to_vec(),
            timeouts: options.timeouts,
            tries: options.tries.max(1),
            pause: options.pause,
        }
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
        call: &Call<'_>,
        arrived: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<u64, Outcome> {
        // Windows may look for a proxy for a while, which is not the server's time.
        let _known_now = url.parse().map(|to| self.proxies.of(&to));
        let (mut pause, mut done, mut back) = (self.pause, 0, false);
        let (mut resume, mut last) = (None, None);
        loop {
            let leave = call.leave(back)?;
            // The server is up, and drops the connection over this file again and again.
            if let Some(outcome) = last.take().filter(|_| done >= self.tries && !leave.is_probe) {
                return Err(outcome);
            }
            let (begun, patience) = (Instant::now(), call.patience());
            if patience.is_zero() {
                let over = call.budget.used_up().unwrap_or(Outcome::NoTime);
                call.no_answer(leave, &over, true, Duration::ZERO);
                return Err(over);
            }
            let before = resume.as_ref().map_or(0, |resume: &Resume| resume.received);
            let result = self.get_once(url, file, limit, (call, patience), &mut resume, arrived);
            let Err(Failed { outcome, again }) = result else {
                return file.metadata().map(|m| m.len()).map_err(not_stored);
            };
            let timed_out = matches!(outcome, Outcome::TimedOut { .. });
            if timed_out && !call.may_go_on(begun, patience < self.timeouts.answer) {
                return Err(Outcome::Silent { waited: begun.elapsed() });
            }
            back = matches!(again, Again::Server(_)) || timed_out;
            let pause_asked = if let Again::Server(asked) = again { asked } else { Duration::ZERO };
            // Of a probe the others wait to hear, whatever came of it.
            let began = (back || leave.is_probe) && call.no_answer(leave, &outcome, timed_out, pause_asked);
            let is_cause = began || !back;
            // As long as a download gets on, its tries are not counted.
            let gets_on = resume.as_ref().is_some_and(|resume| resume.received > before);
            match gets_on {
                true => (done, pause) = (0, self.pause),
                false => done += u32::from(is_cause),
            }
            let asked = match again {
                Again::Never => return Err(outcome),
                Again::Server(_) => {
                    last = Some(with_tries(outcome, done));
                    continue;
                }
                _ if done >= self.tries => return Err(with_tries(outcome, done)),
                Again::After(asked) => asked.max(pause),
            };
            let _waiting = call.wait();
            thread::sleep(call.budget.time_left().map_or(asked, |left| asked.min(left)));
            pause *= 2;
        }
    }

    /// Asks for the file, along redirects; what comes of it is an answer with a status that is no redirect.
    fn ask(
        &self,
        url: &str,
        (call, patience): (&Call<'_>, Duration),
        resume: Option<&Resume>,
    ) -> Result<Response<Body>, Failed> {
        let bad = |why: String| Failed::last(Outcome::BadRedirect(why));
        let times = &self.timeouts;
        let mut to: Uri = url.parse().map_err(|_| bad(format!("{url} is no address")))?;
        // All of it shares the time for the answer.
        let _limit = AnswerBy::set(Instant::now().checked_add(times.answer.min(patience)));
        for _ in 0..=MAX_REDIRECTS {
            let proxy = self.proxies.of(&to).map_err(|why| Failed::last(Outcome::Unreachable(why)))?;
            let mut request = self.agent.get(&to);
            for (name, value) in self.headers(call.server, &to) {
                request = request.header(name, value);
            }
            // A tunnel has its own.
            if to.scheme_str() == Some("http")
                && let Some((user, password)) =
                    proxy.as_ref().and_then(|p| Some((p.username()?, p.password())))
            {
                request = request.header(PROXY_AUTHORIZATION, basic(user, password.unwrap_or_default()));
            }
            if let Some(Resume { received, validator, .. }) = resume {
                request = request
                    .header(RANGE, format!("bytes={received}-"))
                    .header(IF_RANGE, validator)
                    .header(ACCEPT_ENCODING, "identity");
            }
            let request = request
                .config()
                .proxy(proxy.clone())
                .timeout_resolve(Some(times.connect.min(patience)))
                .timeout_connect(Some(times.connect.min(patience)))
                .timeout_recv_response(Some(times.answer.min(patience)))
                .timeout_per_read(Some(times.stall.min(patience)))
                .timeout_global(call.budget.time_left());
            let response = request.build().call();
            let mut response = response.map_err(|error| {
                let failed = Failed::from_error(error, "waiting for the answer", call);
                failed.by_way_of(proxy.as_ref()).of_host(call.server, &to)
            })?;
            let status = response.status().as_u16();
            if is_busy(status) {
                call.refused()
            } else {
                call.heard()
            }
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let location = text(response.headers(), &LOCATION).unwrap_or_default();
            let next = redirected(&to, location).ok_or_else(|| bad(format!("to {location:?}")))?;
            if to.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
                return Err(bad(format!("from https to {next}")));
            }
            drain(&mut response);
            to = next;
        }
        Err(bad(format!("more than {MAX_REDIRECTS} in a row")))
    }

    /// What a server is told of us beyond the request: only the server that the path names, and not who it redirects to.
    fn headers(&self, server: &str, to: &Uri) -> Vec<(String, String)> {
        if !is_of(server, to) {
            return Vec::new();
        }
        let mut headers = self.credentials.headers(to);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            let login = self.logins.iter().find(|login| login.server() == server);
            let login = login.map(|login| (login.user(), login.password()));
            let login = login.or_else(|| self.credentials.login(to));
            headers.extend(login.map(|(user, password)| ("authorization".to_owned(), basic(user, password))));
        }
        headers
    }

    fn get_once(
        &self,
        url: &str,
        file: &mut File,
        limit: u64,
        (call, patience): (&Call<'_>, Duration),
        resume: &mut Option<Resume>,
        arrived: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<(), Failed> {
        let _waiting = call.wait();
        let mut response = self.ask(url, (call, patience), resume.as_ref())?;
        let part = resume.take();
        let from = match &part {
            Some(resume) if response.status() == 206 => {
                if !continues(response.headers(), resume) {
                    drain(&mut response);
                    return Err(Failed::cut_short(resume.received, Some(resume.total)));
                }
                resume.received
            }
            // The rest of another state of the file would begin where this one ends.
            Some(resume) if response.status() == 416 => {
                drain(&mut response);
                return Err(Failed::cut_short(resume.received, Some(resume.total)));
            }
            _ => 0,
        };
        if from == 0
            && let Err(failed) = check_status(response.status().as_u16(), response.headers())
        {
            drain(&mut response);
            // An error of the server takes nothing from what is here.
            *resume = part;
            return Err(failed);
        }
        file.set_len(from)
            .and_then(|()| file.seek(SeekFrom::Start(from)))
            .map_err(|e| Failed::last(not_stored(e)))?;
        let plain = check_encoding(response.headers())?;
        let announced = number(response.headers(), &CONTENT_LENGTH).map(|rest| from.saturating_add(rest));
        if let Some(size) = announced.filter(|&size| size > limit) {
            return Err(Failed::last(Outcome::OverLimit { size, limit }));
        }
        // While it is encoded, the announced length says nothing of the size of the file.
        let total = announced.filter(|_| plain);
        let validator = validator(response.headers());
        let mut received = from;
        let body = response.body_mut().with_config().limit(u64::MAX).reader();
        let result = receive(body, file, (limit, total), call, &mut received, arrived);
        if let (Err(Failed { again: Again::After(_), .. }), Some(total), Some(validator)) =
            (&result, total, validator)
        {
            *resume = Some(Resume { received, total, validator });
        }
        result
    }
}

/// Receives the body, of which the file may have a part.
fn receive(
    mut body: impl Read,
    file: &mut File,
    (limit, total): (u64, Option<u64>),
    call: &Call<'_>,
    received: &mut u64,
    arrived: &mut dyn FnMut(u64, Option<u64>),
) -> Result<(), Failed> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Failed::from_body(e, *received, total, call)),
        };
        call.heard();
        let chunk = buffer.get(..read).unwrap_or_default();
        if *received == 0 && is_page(chunk) {
            return Err(Failed::last(Outcome::WebPage));
        }
        if *received + read as u64 > limit {
            return Err(Failed::last(Outcome::OverLimit { size: *received + read as u64, limit }));
        }
        file.write_all(chunk).map_err(|e| Failed::last(not_stored(e)))?;
        *received += read as u64;
        arrived(*received, total);
    }
    match total {
        Some(promised) if promised != *received => Err(Failed::cut_short(*received, total)),
        _ => Ok(()),
    }
}

/// Whether a body begins as HTML or XML does, and no symbol file.
fn is_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    matches!(start, [b'<', b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..])
}

/// A connection can be used again once its answer has been read.
fn drain(response: &mut Response<Body>) {
    let mut rest = response.body_mut().with_config().limit(MAX_ERROR_PAGE).reader();
    let _ = io::copy(&mut rest, &mut io::sink());
}

fn check_status(status: u16, headers: &HeaderMap) -> Result<(), Failed> {
    match status {
        // 203: a proxy changed something, or a log-in page follows.
        200 | 203 => Ok(()),
        404 | 410 => Err(Failed::last(Outcome::NotThere)),
        401 => Err(Failed::last(Outcome::LogIn { status, schemes: schemes(headers, &WWW_AUTHENTICATE) })),
        407 => Err(Failed::last(Outcome::LogIn { status, schemes: schemes(headers, &PROXY_AUTHENTICATE) })),
        // RFC 6585, 6: the network wants a log-in.
        511 => Err(Failed::last(Outcome::LogIn { status, schemes: Vec::new() })),
        403 => Err(Failed::last(Outcome::Forbidden(Some(status)))),
        408 | 429 | 500..=599 => {
            // Seconds; the form with a date is left to the usual pause.
            let asked = Duration::from_secs(number(headers, &RETRY_AFTER).unwrap_or(0)).min(MAX_WAIT);
            let again = if is_busy(status) { Again::Server(asked) } else { Again::After(asked) };
            Err(Failed { outcome: Outcome::ServerError { status, tries: 1 }, again })
        }
        status => Err(Failed::last(Outcome::ServerError { status, tries: 1 })),
    }
}

/// Whether a status is no word on the file: too many requests, or a server that is overloaded, in maintenance or not there
/// behind its gateway.
fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502..=504)
}

/// The ways to log in that are offered, such as `Negotiate` and `Basic`.
fn schemes(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let mut schemes: Vec<String> = Vec::new();
    for value in headers.get_all(name).iter().filter_map(|value| value.to_str().ok()) {
        // Several challenges may share a line; a parameter of one has a `=`.
        for part in value.split(',') {
            let word = part.split_whitespace().next().unwrap_or_default();
            let is_scheme = word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if is_scheme && !schemes.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                schemes.push(word.to_owned());
            }
        }
    }
    schemes
}

/// Whether the body comes as the file is. gzip is decoded on the way; nothing else was asked for.
fn check_encoding(headers: &HeaderMap) -> Result<bool, Failed> {
    match text(headers, &CONTENT_ENCODING) {
        None | Some("" | "identity") => Ok(true),
        // Exactly the spelling that the client decodes.
        Some("gzip") => Ok(false),
        Some(other) => Err(Failed::last(Outcome::Unreadable(format!(
            "sent in the encoding {other:?}, which was not asked for"
        )))),
    }
}

/// What names this very state of a file: a strong entity tag, or the time of the last change.
fn validator(headers: &HeaderMap) -> Option<String> {
    let tag = text(headers, &ETAG).filter(|tag| tag.starts_with('"'));
    tag.or_else(|| text(headers, &LAST_MODIFIED)).map(str::to_owned)
}

/// Whether an answer brings just the part that is missing: `bytes 1000-2999/3000`.
fn continues(headers: &HeaderMap, resume: &Resume) -> bool {
    let range = text(headers, &CONTENT_RANGE).and_then(|range| range.strip_prefix("bytes "));
    let expected = format!("{}-{}/{}", resume.received, resume.total.saturating_sub(1), resume.total);
    // Not every server heeds If-Range.
    let is_same = validator(headers).is_none_or(|validator| validator == resume.validator);
    is_same
        && range.is_some_and(|range| range.trim() == expected)
        && matches!(check_encoding(headers), Ok(true))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

impl Failed {
    fn last(outcome: Outcome) -> Failed {
        Failed { outcome, again: Again::Never }
    }

    fn may_pass(outcome: Outcome) -> Failed {
        Failed { outcome, again: Again::After(Duration::ZERO) }
    }

    fn cut_short(received: u64, promised: Option<u64>) -> Failed {
        Failed::may_pass(Outcome::CutShort { received, promised })
    }

    fn of_server(why: &str) -> Failed {
        Failed { outcome: Outcome::Unreachable(why.to_owned()), again: Again::Server(Duration::ZERO) }
    }

    fn from_error(error: ureq::Error, doing: &'static str, call: &Call<'_>) -> Failed {
        use io::ErrorKind as Kind;
        use ureq::{Error, Timeout};
        match error {
            Error::Timeout(Timeout::Global) => Failed::last(call.budget.time_up()),
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                Failed::may_pass(Outcome::TimedOut { phase: "connecting", tries: 1 })
            }
            Error::Timeout(_) => Failed::may_pass(Outcome::TimedOut { phase: doing, tries: 1 }),
            Error::BadUri(why) => Failed::last(Outcome::BadRedirect(why)),
            // A server that was there before has not lost its name for good.
            Error::HostNotFound if call.is_stranger() => {
                Failed::last(Outcome::Unreachable("no such host".to_owned()))
            }
            Error::HostNotFound => Failed::of_server("no such host"),
            Error::Io(e) => match e.kind() {
                Kind::ConnectionRefused => Failed::of_server("the connection was refused"),
                Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
                    Failed::of_server("the connection was dropped")
                }
                // No network, or no way there.
                Kind::NetworkUnreachable | Kind::HostUnreachable if call.is_stranger() => {
                    Failed::last(Outcome::Unreachable(e.to_string()))
                }
                // A certificate that is not accepted.
                Kind::InvalidData => Failed::last(Outcome::Unreachable(e.to_string())),
                _ => Failed::of_server(&e.to_string()),
            },
            Error::ConnectionFailed => Failed::of_server("no connection"),
            Error::ConnectProxyFailed(why) => match proxy_status(&why) {
                Some(407) => Failed::last(Outcome::LogIn { status: 407, schemes: Vec::new() }),
                Some(502..=504) => Failed::of_server(&why),
                _ => Failed::last(Outcome::Unreachable(why)),
            },
            // What came is no HTTP.
            Error::Protocol(_) => Failed::cut_short(0, None),
            // TLS and proxy errors, unless a connection that broke is behind them.
            other => match broken_connection(&other) {
                true => Failed::of_server("the connection was dropped"),
                false => Failed::last(Outcome::Unreachable(other.to_string())),
            },
        }
    }

    /// Names the proxy over which there is no connection.
    fn by_way_of(mut self, proxy: Option<&ureq::Proxy>) -> Failed {
        if let (Outcome::Unreachable(why), Some(proxy)) = (&mut self.outcome, proxy) {
            why.push_str(&format!(", by way of the proxy {}:{}", proxy.host(), proxy.port()));
        }
        self
    }

    /// What is wrong with a host that the server sends us to says nothing of the server.
    fn of_host(self, server: &str, to: &Uri) -> Failed {
        match self.outcome {
            Outcome::Unreachable(why) if !is_of(server, to) => {
                let host = to.host().unwrap_or_default();
                Failed::last(Outcome::BadRedirect(format!("to {host}: {why}")))
            }
            _ => self,
        }
    }

    fn from_body(error: io::Error, received: u64, promised: Option<u64>, call: &Call<'_>) -> Failed {
        use io::ErrorKind as Kind;
        if matches!(error.kind(), Kind::UnexpectedEof | Kind::ConnectionReset | Kind::ConnectionAborted) {
            return Failed::cut_short(received, promised);
        }
        match ureq::Error::from(error) {
            error @ ureq::Error::Timeout(_) => Failed::from_error(error, "receiving the file", call),
            // Broken chunks, or a gzip stream that is none.
            other => Failed::may_pass(Outcome::Unreadable(other.to_string())),
        }
    }
}

/// What a proxy answered that was to open a tunnel, out of ureq's words: `proxy server responded 407/407`.
fn proxy_status(why: &str) -> Option<u16> {
    why.rsplit(' ').next()?.split('/').next()?.parse().ok()
}

fn broken_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    use io::ErrorKind as Kind;
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(|error| error.downcast_ref::<io::Error>()).any(|error| {
        matches!(error.kind(), Kind::ConnectionReset | Kind::ConnectionAborted | Kind::UnexpectedEof)
    })
}

fn with_tries(mut outcome: Outcome, done: u32) -> Outcome {
    match &mut outcome {
        Outcome::ServerError { tries, .. } | Outcome::TimedOut { tries, .. } => *tries = done,
        // Of the connection for this file; the server is up for others.
        Outcome::Unreachable(_) => outcome = Outcome::CutShort { received: 0, promised: None },
        _ => {}
    }
    outcome
}

pub(super) fn not_stored(error: io::Error) -> Outcome {
    Outcome::NotStored(error.to_string())
}
