//! One HTTP request, read with limits: whoever sends it is not known yet.

use std::io::{self, Read};

/// The request line and all headers, bytes.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// The body, bytes: a question for the names of half a million addresses.
const LONGEST_BODY: usize = 8 << 20;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
    Options,
}

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// From the first `/` to the query.
    pub(super) path: String,
    pub(super) host: String,
    /// The page that asks, as a browser says it.
    pub(super) origin: Option<String>,
    /// The client unpacks gzip.
    pub(super) takes_gzip: bool,
    /// A browser asks first whether a public page may reach this machine.
    pub(super) asks_for_private_network: bool,
    pub(super) body: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// The connection ended or failed, and nobody waits for an answer.
    #[error("the connection ended")]
    Gone,
    #[error("the request took too long")]
    TooSlow,
    #[error("this is no HTTP request that is understood here")]
    Malformed,
    #[error("the headers are too long")]
    LongHead,
    #[error("the body is too long")]
    LongBody,
    #[error("the length of the body is missing")]
    NoLength,
    #[error("only GET, HEAD, POST and OPTIONS are understood")]
    Method,
}

impl Refused {
    /// The status of the answer.
    pub(super) fn status(&self) -> u16 {
        match self {
            Refused::Gone | Refused::Malformed => 400,
            Refused::TooSlow => 408,
            Refused::LongHead => 431,
            Refused::LongBody => 413,
            Refused::NoLength => 411,
            Refused::Method => 405,
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Refused::TooSlow,
            _ => Refused::Gone,
        }
    }
}

impl Request {
    /// Reads one request, and nothing behind it; its body only if it `may_ask`.
    pub(super) fn read(
        from: &mut impl Read,
        may_ask: impl FnOnce(&Request) -> bool,
    ) -> Result<Request, Refused> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        let (head, mut request, length) = loop {
            let read = match from.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                return Err(Refused::Gone);
            }
            bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
            let (seen, is_long) = match bytes.get(..LONGEST_HEAD) {
                Some(head) => (head, true),
                None => (&*bytes, false),
            };
            if let Some((head, request, length)) = Request::head(seen)? {
                break (head, request, length);
            }
            if is_long {
                return Err(Refused::LongHead);
            }
        };
        if length > LONGEST_BODY {
            return Err(Refused::LongBody);
        }
        if !may_ask(&request) {
            return Ok(request);
        }
        request.body = bytes.split_off(head.min(bytes.len()));
        let missing = length.saturating_sub(request.body.len());
        request.body.truncate(length);
        from.take(missing as u64).read_to_end(&mut request.body)?;
        match request.body.len() == length {
            true => Ok(request),
            false => Err(Refused::Gone),
        }
    }

    /// The length of the head, what it says, and the length of the body; `None` while it is not whole.
    fn head(bytes: &[u8]) -> Result<Option<(usize, Request, usize)>, Refused> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Refused::LongHead),
            Err(_) => return Err(Refused::Malformed),
        };
        let method = match parsed.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            Some("OPTIONS") => Method::Options,
            _ => return Err(Refused::Method),
        };
        // Whatever is in the path matters only if it is one of ours, which have nothing to unescape.
        let target = parsed.path.filter(|target| target.starts_with('/')).ok_or(Refused::Malformed)?;
        let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
        let one = |name: &str| {
            let mut values = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            match (values.next(), values.next()) {
                (None, _) => Ok(None),
                (Some(header), None) => {
                    std::str::from_utf8(header.value).map(Some).map_err(|_| Refused::Malformed)
                }
                // Of two that differ, others may take the other one.
                (Some(_), Some(_)) => Err(Refused::Malformed),
            }
        };
        if one("Transfer-Encoding")?.is_some() {
            return Err(Refused::NoLength);
        }
        let length = match one("Content-Length")? {
            // `parse` would take a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .map_err(|_| if digits.is_empty() { Refused::Malformed } else { Refused::LongBody })?,
            Some(_) => return Err(Refused::Malformed),
            None if method == Method::Post => return Err(Refused::NoLength),
            None => 0,
        };
        let request = Request {
            method,
            path,
            host: one("Host")?.ok_or(Refused::Malformed)?.to_owned(),
            origin: one("Origin")?.map(str::to_owned),
            takes_gzip: one("Accept-Encoding")?.is_some_and(takes_gzip),
            asks_for_private_network: one("Access-Control-Request-Private-Network")? == Some("true"),
            body: Vec::new(),
        };
        Ok(Some((head, request, length)))
    }
}

/// `gzip`, `deflate, gzip;q=0.5`, but not `gzip;q=0`.
fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse().ok());
        is_gzip && weight.is_none_or(|weight: f32| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use proptest::prelude::*;

    use super::{LONGEST_HEAD, Method, Refused, Request};

    fn read(mut bytes: &[u8]) -> Result<Request, u16> {
        Request::read(&mut bytes, |_| true).map_err(|refused| refused.status())
    }

    /// Gives one byte at a time.
    struct Slowly<'b>(&'b [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn a_request_is_read_however_it_is_cut() {
        let text = b"POST /x/y?z HTTP/1.1\r\nhost: a:1\r\nOrigin: https://b\r\naccept-encoding: br, gzip\r\n\
            Content-Length: 3\r\n\r\nabcNEXT";
        let expected = Request {
            method: Method::Post,
            path: "/x/y".to_owned(),
            host: "a:1".to_owned(),
            origin: Some("https://b".to_owned()),
            takes_gzip: true,
            asks_for_private_network: false,
            body: b"abc".to_vec(),
        };
        assert_eq!(read(text), Ok(expected));
        let slowly = Request::read(&mut Slowly(text), |_| true).unwrap();
        assert_eq!(Ok(slowly), read(text));
        for end in 0..text.len() - b"NEXT".len() {
            assert!(matches!(Request::read(&mut &text[..end], |_| true), Err(Refused::Gone)), "{end}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_status() {
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(LONGEST_HEAD));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
        for (text, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/2\r\nHost: a\r\n\r\n", 400),
            ("\u{16}\u{3}\u{1}\0\u{5}", 400),
            ("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
            ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\nx", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\nx", 413),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\nx", 413),
            (&long, 431),
            (&many, 431),
        ] {
            assert_eq!(read(text.as_bytes()), Err(status), "{text:.80}");
        }
    }

    #[test]
    fn gzip_may_be_refused() {
        for (accepted, takes) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("xgzip", false),
            ("", false),
        ] {
            assert_eq!(super::takes_gzip(accepted), takes, "{accepted}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _read = read(&bytes);
        }

        /// Lines of a request, some of them damaged: there is an answer, and a request that is read fits its limits.
        #[test]
        fn no_damage_breaks_the_reader(
            lines in prop::collection::vec("(Host|Content-Length|Origin|Transfer-Encoding|[ -~]{0,9}): ?[ -~é]{0,20}", 0..80),
            at in 0..200_usize,
            byte in any::<u8>(),
        ) {
            let mut bytes = format!("POST /a HTTP/1.1\r\n{}\r\n\r\nbody", lines.join("\r\n")).into_bytes();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Ok(request) = read(&bytes) {
                prop_assert!(request.path.starts_with('/') && request.body.len() <= 4);
            }
        }
    }
}
