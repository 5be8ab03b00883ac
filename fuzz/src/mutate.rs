//! Changes to an .etl file that leave it one: whole records and buffers, fields of a known meaning.
//!
//! A fuzzer that flips bytes breaks sizes, and a broken size costs a buffer; what lies behind it is then never tried.

/// The bytes of a buffer header.
const HEADER: usize = 72;

/// Values at which something happens.
const ODD: [u64; 12] =
    [0, 1, 7, 8, 71, 72, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, i64::MAX as u64, i64::MIN as u64];

/// Changes one thing in the file of `size` bytes at the start of `data`; gives its new size. `None` where the file has
/// no place for a change.
pub fn mutate(data: &mut [u8], size: usize, seed: u32) -> Option<usize> {
    let mut random = Random(u64::from(seed) << 1 | 1);
    let file = data.get_mut(..size)?;
    let buffers = buffers(file);
    let buffer = *random.pick(&buffers)?;
    let records = records(file, buffer);
    match random.below(8) {
        // A field of a buffer header.
        0 => put(file, buffer.0 + random.below(18) * 4, random.width(), random.odd()),
        // A field of a record: its header, or its payload.
        1..=4 => {
            let record = *random.pick(&records)?;
            let at = record.0 + random.below((record.1 - record.0) / 2) * 2;
            put(file, at, random.width(), random.odd());
        }
        // The kind of a record: another header type, another opcode, another version.
        5 => {
            let record = *random.pick(&records)?;
            const TYPES: [u8; 11] = [1, 2, 3, 4, 0x0A, 0x0B, 0x10, 0x11, 0x12, 0x13, 0x14];
            let at = *random.pick(&[0, 2, 6, 7])?;
            let value = if at == 2 { TYPES[random.below(TYPES.len())] } else { random.below(80) as u8 };
            *file.get_mut(record.0 + at)? = value;
        }
        // One record's payload over another's.
        6 => {
            let (from, to) = (*random.pick(&records)?, *random.pick(&records)?);
            let length = (from.1 - from.0).min(to.1 - to.0).saturating_sub(8);
            file.copy_within(from.0 + 8..from.0 + 8 + length, to.0 + 8);
        }
        // A buffer once more, at the end.
        _ => {
            let copy = file.get(buffer.0..buffer.1)?.to_vec();
            data.get_mut(size..size + copy.len())?.copy_from_slice(&copy);
            return Some(size + copy.len());
        }
    }
    Some(size)
}

/// Start and end of each buffer.
fn buffers(file: &[u8]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(size) = u32_at(file, at).map(|size| size as usize)
        && size >= HEADER
        && at + size <= file.len()
    {
        all.push((at, at + size));
        at += size;
    }
    all
}

/// Start and end of each record of a plain buffer.
fn records(file: &[u8], (start, end): (usize, usize)) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut at = start + HEADER;
    while let Some(head) = file.get(at..end).and_then(|rest| rest.first_chunk::<8>()) {
        let place = if matches!(head[2], 1..=4 | 0x10 | 0x11) { 4 } else { 0 };
        let size = usize::from(u16::from_le_bytes([head[place], head[place + 1]]));
        if head[3] & 0x80 == 0 || size < 8 || at + size > end {
            break;
        }
        all.push((at, at + size));
        at += size.next_multiple_of(8);
    }
    all
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn put(file: &mut [u8], at: usize, width: usize, value: u64) {
    if let Some(field) = file.get_mut(at..at + width) {
        field.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    fn width(&mut self) -> usize {
        [1, 2, 4, 8][self.below(4)]
    }

    fn odd(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(1 << 16) as u64,
            _ => ODD[self.below(ODD.len())],
        }
    }
}
