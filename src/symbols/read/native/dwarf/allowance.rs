//! How much one file may make us read and keep.
//!
//! DWARF shares: many entries may point to one table of abbreviations, one list of ranges, one line program, one
//! text. Followed for each of them, a small file can stand for any amount of work and memory. Compilers share
//! little, so what is read and kept stays near the size of the file; a file that goes far beyond has no more names.

/// Bytes that any file may make us read.
const READ_FLOOR: u64 = 128 << 20;
/// And how many times its own size beyond that: each part is read at most a few times.
const READ_FACTOR: u64 = 16;
/// Items that any file may make us keep.
const KEEP_FLOOR: usize = 1 << 18;
/// Bytes of the file for each further item. The entry of a function or an inlined call has a dozen at least.
const BYTES_FOR_ITEM: usize = 2;

/// What is left of it.
#[derive(Debug)]
pub(super) struct Allowance {
    bytes: u64,
    items: usize,
}

impl Allowance {
    /// For a file with so many bytes of DWARF.
    pub(super) fn new(size: usize) -> Self {
        Allowance {
            bytes: READ_FLOOR + READ_FACTOR * size as u64,
            items: KEEP_FLOOR.max(size / BYTES_FOR_ITEM),
        }
    }

    /// Takes bytes to read; `None` when there are not so many left, and then none are.
    pub(super) fn read(&mut self, bytes: usize) -> Option<()> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.unwrap_or(0);
        left.map(drop)
    }

    /// Takes items of up to 16 bytes to keep.
    pub(super) fn keep(&mut self, items: usize) -> Option<()> {
        self.items = self.items.checked_sub(items)?;
        Some(())
    }

    /// Work that keeps something. What it took is free again when it fails.
    pub(super) fn keeping<T>(&mut self, work: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.items;
        let done = work(self);
        if done.is_none() {
            self.items = before;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Allowance;

    #[test]
    fn what_failed_work_kept_is_free_again() {
        let mut allowance = Allowance { bytes: 10, items: 10 };
        assert_eq!(allowance.keeping(|allowance| allowance.keep(7).and_then(|()| allowance.keep(4))), None);
        assert_eq!(allowance.keeping(|allowance| allowance.keep(10)), Some(()));
        assert_eq!(allowance.keep(1), None);
        assert_eq!(allowance.read(4), Some(()));
        assert_eq!(allowance.read(7), None);
        assert_eq!(allowance.read(1), None);
    }
}
