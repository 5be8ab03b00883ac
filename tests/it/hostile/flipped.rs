//! Every byte changed, every field at its extremes.

use super::{buffer_places, read_all, small};
use crate::support::data;
use crate::support::luck::Luck;

/// Events of each buffer of a file, by reading it without that buffer.
fn events_of_buffers(file: &[u8]) -> Vec<u64> {
    let whole = read_all(file).unwrap().trace.events;
    let without = |place: &std::ops::Range<usize>| {
        let rest = [&file[..place.start], &file[place.end..]].concat();
        whole - read_all(&rest).unwrap().trace.events
    };
    let mut events = vec![1]; // the header record
    events.extend(buffer_places(file)[1..].iter().map(without));
    events
}

/// A change anywhere costs its own buffer and no other.
#[track_caller]
fn check(file: &[u8], at: usize, change: &[u8], whole: u64, place: usize, own: u64) {
    let mut changed = file.to_vec();
    let end = (at + change.len()).min(file.len());
    changed[at..end].copy_from_slice(&change[..end - at]);
    match read_all(&changed) {
        Ok(outcome) => {
            // A buffer whose records changed may also give more of them.
            let events = outcome.trace.events;
            assert!(
                events + own >= whole,
                "{change:02x?} at {at} in buffer {place}: {events} events of {whole}, the buffer has {own}; {:?}",
                outcome.damage
            );
        }
        Err(error) => assert!(place == 0, "{change:02x?} at {at} in buffer {place}: {error}"),
    }
}

fn check_all(file: &[u8], changes: impl Fn(&[u8], usize) -> Vec<Vec<u8>>) {
    let whole = read_all(file).unwrap().trace.events;
    let events = events_of_buffers(file);
    assert_eq!(events.iter().sum::<u64>(), whole);
    for (index, place) in buffer_places(file).into_iter().enumerate() {
        for at in place.clone() {
            for mut change in changes(file, at) {
                change.truncate(place.end - at);
                check(file, at, &change, whole, index, events[index]);
            }
        }
    }
}

#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn every_byte_of_plain_buffers() {
    check_all(&small(false), |file, at| {
        [0x01, 0x80, 0xFF].iter().map(|flip| vec![file[at] ^ flip]).collect()
    });
}

#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn every_byte_of_compressed_buffers() {
    check_all(&small(true), |file, at| [0x01, 0x80, 0xFF].iter().map(|flip| vec![file[at] ^ flip]).collect());
}

/// Fields lie at even places and have 2, 4 or 8 bytes.
#[test]
#[cfg_attr(windows, ignore = "long, and no different on another system")]
fn every_field_at_its_extremes() {
    for compressed in [false, true] {
        check_all(&small(compressed), |_, at| {
            if at % 2 != 0 {
                return Vec::new();
            }
            let top = |value: u64| value.to_le_bytes().to_vec();
            vec![
                vec![0xFF; 2],
                vec![0; 4],
                vec![0xFF, 0xFF, 0xFF, 0x7F],
                top(u64::MAX),
                top(i64::MAX as u64),
                top(i64::MIN as u64),
                top(1),
            ]
        });
    }
}

/// Real files with random damage: a few bytes anywhere.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_files_with_flipped_bytes() {
    let traces = data::traces();
    let mut luck = Luck(0x9E37_79B9_7F4A_7C15);
    let mut read = 0;
    for path in traces.iter().filter(|path| path.metadata().unwrap().len() < 400_000) {
        let file = std::fs::read(path).unwrap();
        for _ in 0..6 {
            let mut changed = file.clone();
            for _ in 0..1 + luck.next(30) {
                let at = luck.next(changed.len());
                changed[at] = luck.next(256) as u8;
            }
            read += usize::from(read_all(&changed).is_ok());
        }
    }
    assert!(read > 100, "{read} damaged files could be read");
}
