//! A stream of a PDB, read where it lies.
//!
//! A PDB is a multi-stream file: a small file system of fixed-size pages. A stream is a list of pages, mostly
//! consecutive, but a long stream never is: two pages in each `page size` pages belong to the free page map. Read
//! as one slice it would be copied; the type stream alone is a third of a PDB, of which a look-up needs a few
//! records. So a [`Stream`] keeps the runs and copies only what straddles two of them.

use std::borrow::Cow;

use super::read_at::ReadAt;

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
    /// Joins pieces of the file into a stream. Pieces that follow each other in the file become one.
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
        let len = usize::from(self.u16(offset)?);
        let kind = self.u16(offset + 2)?;
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
}
