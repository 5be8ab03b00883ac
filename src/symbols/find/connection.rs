//! Connections to servers and proxies: what ureq has no setting for.
//!
//! Finding a server, connecting, and its answer share one time limit; ureq limits each step by itself. And an `http:`
//! address is asked of a proxy with the whole address in the request (RFC 9112, 3.2.2), as proxies expect that; ureq
//! would ask for a tunnel, which many refuse to any port but 443.

// The initializer is `const`; clippy does not see that on Windows with GNU tools.
#![allow(clippy::missing_const_for_thread_local)]

use std::cell::Cell;
use std::time::Instant;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport, time,
};
use ureq::{Agent, Error};

thread_local! {
    /// A request is made by the thread that asks for it, over a connection that may come from another one.
    static ANSWER_BY: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The moment by which the server must have answered, for all requests of this thread until it is dropped.
pub(super) struct AnswerBy(());

impl AnswerBy {
    pub(super) fn set(moment: Option<Instant>) -> AnswerBy {
        ANSWER_BY.set(moment);
        AnswerBy(())
    }
}

impl Drop for AnswerBy {
    fn drop(&mut self) {
        ANSWER_BY.set(None);
    }
}

/// The time limit of the next step. The reason stays: it names the step.
fn limited(mut step: NextTimeout) -> Result<NextTimeout, Error> {
    if let Some(moment) = ANSWER_BY.get() {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Timeout(step.reason));
        }
        if left < *step.after {
            step.after = time::Duration::Exact(left);
        }
    }
    Ok(step)
}

/// Requests over such connections. `config` names no proxy: each request has its own.
pub(super) fn agent(config: Config) -> Agent {
    let connector = Limited { connector: DefaultConnector::default(), direct: config.clone() };
    Agent::with_parts(config, connector, LimitedResolver(DefaultResolver::default()))
}

#[derive(Debug)]
struct LimitedResolver(DefaultResolver);

impl Resolver for LimitedResolver {
    fn resolve(&self, uri: &Uri, config: &Config, step: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        self.0.resolve(uri, config, limited(step)?).map_err(|error| match error {
            // The system's words for a name that it does not know differ.
            Error::Io(_) => Error::HostNotFound,
            other => other,
        })
    }
}

#[derive(Debug)]
struct Limited {
    connector: DefaultConnector,
    /// To reach a proxy by.
    direct: Config,
}

impl Connector for Limited {
    type Out = Line;

    fn connect(&self, wanted: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Line>, Error> {
        let timeout = limited(wanted.timeout)?;
        let mut details = ConnectionDetails {
            uri: wanted.uri,
            addrs: wanted.addrs.clone(),
            config: wanted.config,
            timeout,
            request_level: wanted.request_level,
            resolver: wanted.resolver,
            now: wanted.now,
            current_time: wanted.current_time.clone(),
            run_connector: wanted.run_connector.clone(),
            register_shutdown: wanted.register_shutdown.clone(),
        };
        let mut origin = None;
        if let Some(proxy) = wanted.config.proxy().filter(|_| !wanted.needs_tls()) {
            details.addrs = wanted.resolver.resolve(proxy.uri(), &self.direct, timeout)?;
            (details.uri, details.config) = (proxy.uri(), &self.direct);
            origin = wanted.uri.authority().map(|authority| format!("http://{authority}"));
        }
        let transport = self.connector.connect(&details, None)?;
        Ok(transport.map(|transport| Line { transport, origin }))
    }
}

/// One connection.
#[derive(Debug)]
struct Line {
    transport: Box<dyn Transport>,
    /// What comes before the path in requests to a proxy.
    origin: Option<String>,
}

impl Transport for Line {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, step: NextTimeout) -> Result<(), Error> {
        let added = self.origin.as_deref().map_or(0, |origin| {
            insert_origin(self.transport.buffers().output(), amount, origin).unwrap_or(0)
        });
        self.transport.transmit_output(amount + added, limited(step)?)
    }

    fn await_input(&mut self, step: NextTimeout) -> Result<bool, Error> {
        self.transport.await_input(limited(step)?)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// Makes `GET /path` at the beginning of `output` an absolute address; how many bytes that adds. `None` if it is no
/// beginning of a request, or there is no room.
fn insert_origin(output: &mut [u8], amount: usize, origin: &str) -> Option<usize> {
    const METHOD: &[u8] = b"GET ";
    let added = origin.len();
    if !output.starts_with(b"GET /") || amount < METHOD.len() || amount + added > output.len() {
        return None;
    }
    output.copy_within(METHOD.len()..amount, METHOD.len() + added);
    output.get_mut(METHOD.len()..METHOD.len() + added)?.copy_from_slice(origin.as_bytes());
    Some(added)
}

#[cfg(test)]
mod tests {
    use super::insert_origin;

    #[test]
    fn a_request_gets_the_whole_address() {
        let mut output = *b"GET /a HTTP/1.1\r\nold old old old";
        assert_eq!(insert_origin(&mut output, 17, "http://h:1"), Some(10));
        assert!(output.starts_with(b"GET http://h:1/a HTTP/1.1\r\n"), "{}", output.escape_ascii());
        assert_eq!(insert_origin(&mut output, 27, "http://h:1"), None, "it has one");
        output[..6].copy_from_slice(b"GET /a");
        assert_eq!(insert_origin(&mut output, 32, "http://h:1"), None, "no room");
    }
}
