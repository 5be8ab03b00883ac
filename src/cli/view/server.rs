//! A server for one viewer on this machine.
//!
//! Every user of the machine can connect, and every page in a browser can make the browser connect. So the path begins with
//! a random token; the host must be the loopback address, for a page elsewhere may call it by a name of its own (DNS
//! rebinding); and of other pages only one, if any, may read answers. A request has a time to arrive in, what follows its
//! head is read only of who may ask, and there are never more than so many at once: whoever keeps them all busy delays
//! others, and no more.

use std::io::{self, BufWriter, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::request::{Method, Refused, Request};

/// Requests at once.
const MOST_AT_ONCE: usize = 32;
/// For a request to arrive.
const ARRIVAL: Duration = Duration::from_secs(3);
/// Without a byte taken, while an answer is sent.
const STALL: Duration = Duration::from_secs(30);
/// For what a client still sends when it has its answer.
const REST: Duration = Duration::from_secs(1);

/// What is served.
pub(super) trait Site: Send + Sync + 'static {
    /// The one page elsewhere whose scripts may read the answers: its origin.
    fn friend(&self) -> Option<&'static str>;

    /// The answer to a request; `path` is what follows `/TOKEN`.
    fn answer(&self, method: Method, path: &str, body: &[u8]) -> Answer<'_>;
}

/// A server that listens.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl Server {
    /// Listens on loopback: at this port, or at any that is free.
    pub(super) fn listen(port: Option<u16>) -> io::Result<Server> {
        let port = port.unwrap_or(0);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).or_else(|error| {
            // A machine may have no IPv4. What is wrong with the port is wrong in both.
            match error.kind() {
                io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported => {
                    TcpListener::bind((Ipv6Addr::LOCALHOST, port))
                }
                _ => Err(error),
            }
        })?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let token = format!("{:032x}", u128::from_ne_bytes(random));
        Ok(Server { address: listener.local_addr()?, listener, token })
    }

    /// `http://127.0.0.1:PORT/TOKEN`.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}", self.address, self.token)
    }

    /// Answers from now on, on threads of its own, until the program ends.
    pub(super) fn serve(self, site: impl Site) -> io::Result<()> {
        let Server { listener, address, token } = self;
        let door = Arc::new(Door { site, address, token, inside: AtomicUsize::new(0) });
        thread::Builder::new().name("view".to_owned()).spawn(move || {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => door.admit(stream),
                    // Out of handles, mostly: they come back when requests end.
                    Err(_) => thread::sleep(Duration::from_millis(50)),
                }
            }
        })?;
        Ok(())
    }
}

/// What stands between the site and whoever asks.
struct Door<S> {
    site: S,
    address: SocketAddr,
    token: String,
    /// Requests that are being answered.
    inside: AtomicUsize,
}

impl<S: Site> Door<S> {
    /// Answers on a thread of its own.
    fn admit(self: &Arc<Self>, stream: TcpStream) {
        let before = self.inside.fetch_add(1, Ordering::SeqCst);
        let guest = Guest(Arc::clone(self));
        let serve = move || {
            let door = &guest.0;
            let _ended = door.handle(&stream);
        };
        if before >= MOST_AT_ONCE {
            // Without a thread and without waiting: `guest` goes, and the connection with it.
            return drop(serve);
        }
        // Where no thread can be made, the same.
        let _thread = thread::Builder::new().name("view".to_owned()).spawn(serve);
    }

    fn handle(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(STALL))?;
        let mut arriving = Until { stream, end: Instant::now() + ARRIVAL };
        let request = Request::read(&mut arriving, |request| self.check(request).1.is_ok());
        let mut out = BufWriter::with_capacity(64 << 10, stream);
        match &request {
            Err(Refused::Gone) => return Ok(()),
            Err(refused) => Answer::refused(refused).write(&mut out, true, false)?,
            Ok(request) => {
                self.answer(request).write(&mut out, request.method != Method::Head, request.takes_gzip)?;
            }
        }
        drop(out);
        // To close while something is unread would take the answer back.
        stream.shutdown(Shutdown::Write)?;
        let mut rest = Until { stream, end: Instant::now() + REST };
        io::copy(&mut rest, &mut io::sink()).map(drop)
    }

    /// The other page that may read the answer, if it asks; and what follows the token, or the refusal.
    fn check<'r>(&self, request: &'r Request) -> (Option<&'static str>, Result<&'r str, Answer<'static>>) {
        let refused = |status, text| Err(Answer::text(status, text));
        if !self.is_own_host(&request.host) {
            return (None, refused(421, "this server answers to its loopback address only"));
        }
        let friend = match request.origin.as_deref() {
            None => None,
            Some(origin) if origin.strip_prefix("http://") == Some(&request.host) => None,
            Some(origin) if Some(origin) == self.site.friend() => self.site.friend(),
            Some(_) => return (None, refused(403, "this page may not ask")),
        };
        let path = self.behind_token(&request.path);
        (friend, path.map_or_else(|| refused(404, "there is nothing here"), Ok))
    }

    fn answer(&self, request: &Request) -> Answer<'_> {
        let (friend, path) = self.check(request);
        let answer = match path {
            Err(refusal) => refusal,
            Ok(_) if request.method == Method::Options && friend.is_some() => {
                let answer = Answer::empty(204)
                    .with("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
                    .with("Access-Control-Allow-Headers", "Content-Type")
                    .with("Access-Control-Max-Age", "600");
                match request.asks_for_private_network {
                    true => answer.with("Access-Control-Allow-Private-Network", "true"),
                    false => answer,
                }
            }
            Ok(path) => self.site.answer(request.method, path, &request.body),
        };
        match friend {
            Some(friend) => answer.with("Access-Control-Allow-Origin", friend).with("Vary", "Origin"),
            None => answer,
        }
    }

    /// True for the address that it listens on, by number or as `localhost`. A browser leaves out port 80.
    fn is_own_host(&self, host: &str) -> bool {
        let port = self.address.port();
        let name = match (host.strip_suffix(&format!(":{port}")), port) {
            (Some(name), _) => name,
            (None, 80) => host,
            (None, _) => return false,
        };
        let own = match self.address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        name == own || name.eq_ignore_ascii_case("localhost")
    }

    /// What follows the token, from its `/` on; `None` without the right one, whose length is no secret.
    fn behind_token<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (token, rest) = path.strip_prefix('/')?.split_at_checked(self.token.len())?;
        // All of it is compared: how long that takes says nothing of where they differ.
        let differ = token.bytes().zip(self.token.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
        (std::hint::black_box(differ) == 0 && rest.starts_with('/')).then_some(rest)
    }
}

/// A request that is being answered.
struct Guest<S>(Arc<Door<S>>);

impl<S> Drop for Guest<S> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads until a moment, however the bytes trickle.
struct Until<'s> {
    stream: &'s TcpStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}
