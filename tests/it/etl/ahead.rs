//! Buffers digested on several threads: the same order as on one, and an end when a thread panics.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use etwprof::clock::Ticks;
use etwprof::etl::Recording;
use etwprof::etl::digest::{BufferAt, Digester, InOrder, Record, RecordAt};

use crate::synth::{Etl, START, Sample};

/// 4,000 samples of four processors, in some 300 buffers.
fn recording() -> Recording {
    let mut etl = Etl::new().cpus(4).buffer_size(512);
    for number in 0..4_000 {
        etl = etl.event(number as u16 % 4, START + 1 + number / 3, Sample::new(number as u64, 41));
    }
    Recording::from_bytes("ahead.etl", etl.finish()).unwrap()
}

/// Counts the records of a buffer and leaves each second one.
struct EachSecond {
    panics_at: Ticks,
}

impl Digester for EachSecond {
    type Worker = u64;
    type Digest = u64;
    type Item = Ticks;

    fn worker(&self, _thread: usize) -> u64 {
        0
    }

    fn record(&self, worker: &mut u64, digest: &mut u64, record: &Record<'_>) -> Option<Ticks> {
        assert!(record.time() != self.panics_at, "as the test wants");
        (*worker, *digest) = (*worker + 1, *digest + 1);
        digest.is_multiple_of(2).then(|| record.time())
    }
}

#[derive(Default)]
struct Taken {
    records: u64,
    begun: Vec<(u32, u32)>,
    items: Vec<(Ticks, (u32, u32), u32)>,
}

impl InOrder<EachSecond> for Taken {
    fn buffer(&mut self, buffer: &BufferAt, digest: &mut u64) {
        self.records += std::mem::take(digest);
        self.begun.push(buffer.buffer);
    }

    fn item(&mut self, item: Ticks, record: &RecordAt<'_>) {
        assert_eq!((item, record.event().time), (record.place.time, record.place.time));
        assert!(self.begun.contains(&record.place.buffer), "its buffer has begun");
        self.items.push((item, record.place.buffer, record.place.offset));
    }
}

fn read(panics_at: Ticks, threads: usize) -> (Taken, Vec<u64>) {
    let threads = NonZeroUsize::new(threads).unwrap();
    recording().digest(&EachSecond { panics_at }, threads, &mut |_| (), Taken::default).value
}

#[test]
fn any_number_of_threads_gives_the_same_order() {
    let (one, _) = read(Ticks(0), 1);
    assert_eq!(one.records, 4_001, "and the header's");
    assert!(one.begun.len() > 100 && one.items.len() > 1_800);
    assert!(one.items.is_sorted());
    for threads in [2, 3, 16, 1_000] {
        let (taken, workers) = read(Ticks(0), threads);
        assert_eq!(
            (taken.begun, taken.items, taken.records),
            (one.begun.clone(), one.items.clone(), one.records)
        );
        assert_eq!(workers.iter().sum::<u64>(), one.records, "each buffer is digested once");
    }
}

#[test]
fn a_panic_of_any_thread_ends_the_reading() {
    for threads in [1, 2, 5] {
        for panics_at in [START + 1, START + 700, START + 1_333] {
            let result = catch_unwind(AssertUnwindSafe(|| read(Ticks(panics_at), threads)));
            assert!(result.is_err(), "{threads} threads, at {panics_at}");
        }
    }
}
