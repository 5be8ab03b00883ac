//! The answer to a request, with the headers that keep it in its place.

use std::io::{self, Write};

use etwprof::mmap::Mapped;
use flate2::read::GzDecoder;

use super::request::Refused;

/// What is answered.
#[derive(Debug)]
pub(super) struct Answer<'d> {
    pub(super) status: u16,
    body: Body<'d>,
    /// More headers.
    headers: Vec<(&'static str, String)>,
}

#[derive(Debug)]
enum Body<'d> {
    Empty,
    Bytes { kind: &'static str, bytes: Vec<u8> },
    Document(&'d Document),
}

/// What a viewer opens.
#[derive(Debug)]
pub(super) struct Document {
    /// Its media type.
    pub(super) kind: &'static str,
    /// Packed by gzip.
    pub(super) packed: bool,
    pub(super) bytes: Mapped,
}

pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What a page from here may do: run what is in it, and load nothing. The page itself allows less, its own scripts by
/// their hashes.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl<'d> Answer<'d> {
    /// One without a body.
    pub(super) fn empty(status: u16) -> Answer<'static> {
        Answer { status, body: Body::Empty, headers: Vec::new() }
    }

    pub(super) fn text(status: u16, text: &str) -> Answer<'static> {
        let bytes = format!("{text}\n").into_bytes();
        Answer { status, body: Body::Bytes { kind: TEXT, bytes }, headers: Vec::new() }
    }

    pub(super) fn json(bytes: Vec<u8>) -> Answer<'static> {
        Answer { status: 200, body: Body::Bytes { kind: JSON, bytes }, headers: Vec::new() }
    }

    pub(super) fn document(document: &'d Document) -> Answer<'d> {
        Answer { status: 200, body: Body::Document(document), headers: Vec::new() }
    }

    pub(super) fn refused(refused: &Refused) -> Answer<'static> {
        let answer = Answer::text(refused.status(), &refused.to_string());
        match refused {
            Refused::Method => answer.with("Allow", "GET, HEAD, POST, OPTIONS"),
            _ => answer,
        }
    }

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer<'d> {
        self.headers.push((name, value.into()));
        self
    }

    /// Writes it to one who wants its body or not, and unpacks gzip or not.
    pub(super) fn write(&self, out: &mut impl Write, body: bool, takes_gzip: bool) -> io::Result<()> {
        write!(out, "HTTP/1.1 {} {}\r\n", self.status, reason(self.status))?;
        let (kind, length) = match &self.body {
            Body::Empty => (None, Some(0)),
            Body::Bytes { kind, bytes } => (Some(kind), Some(bytes.len())),
            // The end of the connection is the end of what is unpacked on the way.
            Body::Document(document) if document.packed && !takes_gzip => (Some(&document.kind), None),
            Body::Document(document) => (Some(&document.kind), Some(document.bytes.len())),
        };
        if let Some(kind) = kind {
            write!(out, "Content-Type: {kind}\r\n")?;
        }
        if let Some(length) = length {
            write!(out, "Content-Length: {length}\r\n")?;
        }
        if let Body::Document(Document { packed: true, .. }) = &self.body {
            if takes_gzip {
                write!(out, "Content-Encoding: gzip\r\n")?;
            }
            write!(out, "Vary: Accept-Encoding\r\n")?;
        }
        for (name, value) in &self.headers {
            write!(out, "{name}: {value}\r\n")?;
        }
        write!(
            out,
            "Connection: close\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\r\n"
        )?;
        match &self.body {
            Body::Bytes { bytes, .. } if body => out.write_all(bytes)?,
            Body::Document(document) if body && length.is_none() => {
                io::copy(&mut GzDecoder::new(&*document.bytes), out)?;
            }
            Body::Document(document) if body => out.write_all(&document.bytes)?,
            _ => {}
        }
        out.flush()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use etwprof::mmap::Mapped;
    use flate2::{Compression, write::GzEncoder};

    use super::{Answer, Document};

    fn written(answer: &Answer<'_>, body: bool, takes_gzip: bool) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        answer.write(&mut bytes, body, takes_gzip).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body = bytes.split_off(end);
        (String::from_utf8(bytes).unwrap(), body)
    }

    #[test]
    fn a_packed_document_is_unpacked_for_who_cannot() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(b"{}").unwrap();
        let packed = packer.finish().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&packed).unwrap();
        let document = Document { kind: "application/json", packed: true, bytes: Mapped::of(&file).unwrap() };
        let answer = Answer::document(&document);
        let (head, body) = written(&answer, true, true);
        assert!(head.contains("Content-Encoding: gzip\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", packed.len())), "{head}");
        assert_eq!(body, packed);
        let (head, body) = written(&answer, true, false);
        assert!(!head.contains("Encoding: gzip") && !head.contains("Content-Length"), "{head}");
        assert_eq!(body, b"{}");
        assert!(written(&answer, false, true).1.is_empty());
    }
}
