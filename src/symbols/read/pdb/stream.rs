//! A stream of a PDB, read where it lies.
//!
//! A PDB is a multi-stream file: a small file system of fixed-size pages. A stream is a list of pages, mostly
//! consecutive, but a long stream never is: two pages in each `page size` pages belong to the free page map. Read
//! as one slice it would be copied; the type stream alone is a third of a PDB, of which a look-up needs a few
//! records. So a [`Stream`] keeps the runs and copies only what straddles two of them.

use std::borrow::Cow;

use super::read_at::ReadAt;
use crate::mmap;

/// A stretch of a stream that is one stretch of the file as well.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    /// Offset in the stream.
    start: usize,
    bytes: &'a [u8],
}

/// The bytes of one stream, borrowed from the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream<'a> {
    runs: Vec<Run<'a>>,
    len: usize,
}

impl<'a> Stream<'a> {
    /// Joins pieces of the file into a stream.
    pub(super) fn from_pieces(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut stream = Stream::default();
        for bytes in pieces {
            stream.runs.push(Run { start: stream.len, bytes });
            stream.len += bytes.len();
        }
        stream
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn run_at(&self, offset: usize) -> Option<Run<'a>> {
        if let [only] = self.runs.as_slice() {
            return Some(*only);
        }
        let next = self.runs.partition_point(|run| run.start <= offset);
        self.runs.get(next.checked_sub(1)?).copied()
    }

    /// `len` bytes at `offset`; `None` when the stream ends before.
    pub(super) fn bytes(&self, offset: usize, len: usize) -> Option<Cow<'a, [u8]>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        let run = self.run_at(offset)?;
        if let Some(bytes) = run.bytes.get(offset - run.start..).and_then(|rest| rest.get(..len)) {
            return Some(Cow::Borrowed(bytes));
        }
        let mut copy = Vec::with_capacity(len);
        while copy.len() < len {
            let run = self.run_at(offset + copy.len())?;
            let rest = run.bytes.get(offset + copy.len() - run.start..)?;
            copy.extend_from_slice(rest.get(..(len - copy.len()).min(rest.len()))?);
        }
        Some(Cow::Owned(copy))
    }

    /// The part of `len` bytes from `offset` on; `None` when the stream ends before.
    pub(super) fn part(&self, offset: usize, len: usize) -> Option<Stream<'a>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len)?;
        let first = self.runs.partition_point(|run| run.start + run.bytes.len() <= offset);
        let runs = self.runs.get(first..)?.iter().take_while(|run| run.start < end);
        let inside = |run: &Run<'a>| {
            let (skip, stop) = (offset.saturating_sub(run.start), run.bytes.len().min(end - run.start));
            run.bytes.get(skip..stop)
        };
        Some(Stream::from_pieces(runs.filter_map(inside)))
    }

    /// Lets the system fetch all of it at once, where it would fetch page by page.
    pub(super) fn will_be_read(&self) {
        self.runs.iter().for_each(|run| mmap::will_be_read(run.bytes));
    }

    /// The text at `offset`, up to its zero.
    pub(super) fn cstr(&self, offset: usize) -> Option<Cow<'a, [u8]>> {
        let mut len = 0;
        loop {
            let run = self.run_at(offset.checked_add(len)?)?;
            let rest = run.bytes.get(offset + len - run.start..).filter(|rest| !rest.is_empty())?;
            match rest.iter().position(|byte| *byte == 0) {
                Some(end) => return self.bytes(offset, len + end),
                None => len += rest.len(),
            }
        }
    }

    pub(super) fn u16(&self, offset: usize) -> Option<u16> {
        self.bytes(offset, 2)?.u16_at(0)
    }

    pub(super) fn u32(&self, offset: usize) -> Option<u32> {
        self.bytes(offset, 4)?.u32_at(0)
    }

    /// The CodeView record at `offset`: its kind, what follows the kind, and the offset of the next record.
    ///
    /// Symbols and types share this frame: a 16-bit length that does not count itself, and a 16-bit kind.
    pub(super) fn record(&self, offset: usize) -> Option<(u16, Cow<'a, [u8]>, usize)> {
        let head = self.bytes(offset, 4)?;
        let (len, kind) = (usize::from(head.u16_at(0)?), head.u16_at(2)?);
        Some((kind, self.bytes(offset + 4, len.checked_sub(2)?)?, offset + 2 + len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_straddle_runs_are_joined_and_others_are_borrowed() {
        let stream = Stream::from_pieces([&b"abcd"[..], b"ef", b"ghij"]);
        assert!(matches!(stream.bytes(1, 3), Some(Cow::Borrowed(b"bcd"))));
        assert_eq!(stream.bytes(3, 5).unwrap().as_ref(), b"defgh");
        assert_eq!(stream.bytes(8, 3), None);
        assert_eq!(stream.bytes(usize::MAX, 2), None);
        assert_eq!(stream.bytes(10, 0).unwrap().as_ref(), b"");
    }

    #[test]
    fn a_part_is_a_stream_of_the_same_bytes() {
        let whole = b"abcdefghij";
        let stream = Stream::from_pieces([&b"abcd"[..], b"ef", b"ghij"]);
        for start in 0..=whole.len() {
            for end in start..=whole.len() {
                let part = stream.part(start, end - start).unwrap();
                assert_eq!(part.bytes(0, part.len()).unwrap_or_default(), &whole[start..end]);
                assert_eq!(part.bytes(0, part.len() + 1), None);
            }
        }
        assert!(stream.part(4, 7).is_none() && stream.part(usize::MAX, 2).is_none());
    }

    #[test]
    fn a_text_ends_at_its_zero_in_whatever_run() {
        let stream = Stream::from_pieces([&b"abcd"[..], b"ef", b"g\0hi"]);
        assert_eq!(stream.cstr(2).unwrap().as_ref(), b"cdefg");
        assert_eq!(stream.cstr(7).unwrap().as_ref(), b"");
        assert_eq!(stream.cstr(8), None, "it has no end");
        assert_eq!(stream.cstr(100), None);
    }
}
