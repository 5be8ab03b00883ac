//! The container: a small file system of fixed-size pages.
//!
//! The first page says how large pages are and where the *directory* lies: the number of streams, their sizes in
//! bytes, then the page numbers of each, one stream behind the other. The directory is in pages itself; the list of
//! those is in further pages, which the first page lists. (`BIGMSF_HDR` in microsoft-pdb, PDB/msf/msf.cpp.)

use std::ops::Range;

use super::MAGIC;
use super::read_at::ReadAt;
use super::stream::Stream;

/// Where the first page has its fields.
const PAGE_SIZE: usize = 32;
const DIRECTORY_SIZE: usize = 44;
const LISTS_OF_PAGES: usize = 52;

/// The size of a stream that was deleted.
const DELETED: u32 = u32::MAX;

/// The streams of a file, found when they are asked for.
#[derive(Debug)]
pub(super) struct Msf<'a> {
    file: &'a [u8],
    page_size: usize,
    directory: Stream<'a>,
    streams: Vec<Extent>,
}

/// What the directory says of one stream.
#[derive(Clone, Copy, Debug)]
struct Extent {
    size: usize,
    /// Where in the directory its page numbers begin.
    pages: usize,
}

impl<'a> Msf<'a> {
    pub(super) fn open(file: &'a [u8]) -> Option<Self> {
        let page_size = file.u32_at(PAGE_SIZE)? as usize;
        if !file.starts_with(MAGIC) || !page_size.is_power_of_two() {
            return None;
        }
        let size = file.u32_at(DIRECTORY_SIZE)? as usize;
        let in_list = size.div_ceil(page_size).checked_mul(4)?;
        let lists = pages_of(file, page_size, file.get(LISTS_OF_PAGES..)?, in_list)?;
        let list = lists.bytes(0, lists.len())?;
        let directory = pages_of(file, page_size, &list, size)?;
        let count = directory.u32(0)? as usize;
        let mut pages = count.checked_mul(4)?.checked_add(4)?;
        if pages > directory.len() {
            return None;
        }
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let size = directory.u32(4 + 4 * index)?;
            let size = if size == DELETED { 0 } else { size as usize };
            streams.push(Extent { size, pages });
            pages = pages.checked_add(size.div_ceil(page_size).checked_mul(4)?)?;
        }
        Some(Msf { file, page_size, directory, streams })
    }

    /// A stream by its number, `None` when there is none or a page of it lies outside the file.
    pub(super) fn stream(&self, number: u16) -> Option<Stream<'a>> {
        let extent = self.streams.get(usize::from(number))?;
        let list = self.directory.bytes(extent.pages, 4 * extent.size.div_ceil(self.page_size))?;
        pages_of(self.file, self.page_size, &list, extent.size)
    }
}

/// The first `len` bytes of the pages with these numbers. A page belongs to one stream, so no stream is longer than the
/// file.
fn pages_of<'a>(file: &'a [u8], page_size: usize, numbers: &[u8], len: usize) -> Option<Stream<'a>> {
    if len > file.len() {
        return None;
    }
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for (index, done) in (0..len).step_by(page_size).enumerate() {
        let start = (numbers.u32_at(4 * index)? as usize).checked_mul(page_size)?;
        let end = start.checked_add(page_size.min(len - done))?;
        match pieces.last_mut() {
            Some(piece) if piece.end == start => piece.end = end,
            _ => pieces.push(start..end),
        }
    }
    let pieces = pieces.into_iter().map(|piece| file.get(piece));
    Some(Stream::from_pieces(pieces.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 16;

    /// A file whose pages are too small for a real one: the first four are the header, then pages by their letters.
    fn file(directory_pages: &[u32], directory: &[u32], pages: usize) -> Vec<u8> {
        let mut file = vec![0; 4 * PAGE];
        file[..MAGIC.len()].copy_from_slice(MAGIC);
        let mut put = |at: usize, value: u32| file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(32, PAGE as u32);
        put(44, 4 * directory.len() as u32);
        put(52, 4); // the list of the directory's pages is page 4
        file.extend((0..pages).flat_map(|page| [b'a' + page as u8; PAGE]));
        let mut put = |page: u32, words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let start = page as usize * PAGE;
            file[start..start + bytes.len()].copy_from_slice(&bytes);
        };
        put(4, directory_pages);
        directory_pages.iter().zip(directory.chunks(PAGE / 4)).for_each(|(page, words)| put(*page, words));
        file
    }

    #[test]
    fn streams_by_the_pages_that_the_directory_lists() {
        // Streams of 20, no, 33 and 3 bytes; the directory's own pages are out of order.
        let directory = [4, 20, u32::MAX, 33, 3, 8, 9, 12, 10, 11, 99];
        let file = file(&[7, 5, 6], &directory, 9);
        let msf = Msf::open(&file).unwrap();
        let text = |number| {
            let stream = msf.stream(number)?;
            Some(String::from_utf8(stream.bytes(0, stream.len())?.into_owned()).unwrap())
        };
        assert_eq!(text(0).unwrap(), format!("{}{}", "e".repeat(16), "f".repeat(4)));
        assert_eq!(msf.stream(1).unwrap().len(), 0);
        assert_eq!(text(2).unwrap(), format!("{}{}h", "i".repeat(16), "g".repeat(16)));
        assert_eq!(text(3), None, "its page lies behind the end of the file");
        assert_eq!(text(4), None);
    }

    #[test]
    fn a_directory_that_says_too_much_is_none() {
        for directory in [&[u32::MAX, 1][..], &[3, 1], &[]] {
            assert!(Msf::open(&file(&[5], directory, 4)).is_none(), "{directory:x?}");
        }
        let mut odd = file(&[5], &[0], 4);
        for size in [0u32, 3, 17, u32::MAX] {
            odd[32..36].copy_from_slice(&size.to_le_bytes());
            assert!(Msf::open(&odd).is_none(), "{size}");
        }
    }
}
