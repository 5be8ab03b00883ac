//! Public symbols: records in one stream, and in another the way to them by name and by address.
//! (llvm.org/docs/PDB/PublicStream.html, GlobalStream.html)

use super::{Bytes, Public, bytes, hash, place, symbol};

const S_PUB32: u16 = 0x110E;
const FUNCTION: u32 = 2;
const BUCKETS: usize = 4096;

/// The records, and their offsets in the order of their addresses.
pub(super) fn records(publics: &[Public]) -> (Vec<Vec<u8>>, Vec<u32>) {
    let record =
        |public: &Public| symbol(S_PUB32, place(bytes().u32(FUNCTION), public.rva).ansiz(&public.name));
    let records: Vec<Vec<u8>> = publics.iter().map(record).collect();
    let mut order: Vec<(u32, u32)> = publics.iter().map(|public| public.rva).zip(offsets(&records)).collect();
    order.sort_unstable();
    (records, order.into_iter().map(|(_, offset)| offset).collect())
}

fn offsets(records: &[Vec<u8>]) -> Vec<u32> {
    let next = |next: &mut u32, record: &Vec<u8>| Some(std::mem::replace(next, *next + record.len() as u32));
    records.iter().scan(0, next).collect()
}

/// The hash table of names and the map of addresses.
pub(super) fn stream(publics: &[Public], records: &[Vec<u8>], order: &[u32]) -> Vec<u8> {
    let mut entries: Vec<(usize, usize, String, u32)> = publics
        .iter()
        .zip(offsets(records))
        .map(|(public, offset)| {
            let name = &public.name;
            (hash(name) as usize % BUCKETS, name.len(), name.to_ascii_lowercase(), offset)
        })
        .collect();
    entries.sort_unstable();

    // Offsets count from one here; each is referred to once.
    let list = entries.iter().fold(bytes(), |bytes, entry| bytes.u32(entry.3 + 1).u32(1)).finish();
    let mut present = vec![0u32; BUCKETS / 32 + 1];
    let mut starts = bytes();
    let mut last = None;
    for (index, (bucket, ..)) in entries.iter().enumerate() {
        if last.replace(*bucket) != Some(*bucket) {
            present[bucket / 32] |= 1 << (bucket % 32);
            // As if an entry had twelve bytes, which it has in memory.
            starts = starts.u32(12 * index as u32);
        }
    }
    let present = present.into_iter().fold(bytes(), Bytes::u32).finish();
    let starts = starts.finish();
    let table = bytes()
        .u32(u32::MAX)
        .u32(0xEFFE_0000 + 19_990_810)
        .u32(list.len() as u32)
        .u32((present.len() + starts.len()) as u32)
        .raw(&list)
        .raw(&present)
        .raw(&starts)
        .finish();
    // No thunks of incremental links; sections.
    let header = bytes().u32(table.len() as u32).u32(4 * order.len() as u32).zeros(16).u32(0);
    order.iter().fold(header.raw(&table), |bytes, &offset| bytes.u32(offset)).finish()
}
