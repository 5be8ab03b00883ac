//! Files that end early.

use super::{buffer_places, read_all, small};
use crate::support::data;
use crate::synth::{Etl, START, Sample};

/// Cut at every byte, a file gives what lies before the cut, and says that it was cut.
#[test]
fn at_every_byte() {
    for compressed in [false, true] {
        let file = small(compressed);
        let whole = read_all(&file).unwrap().trace.events;
        let places = buffer_places(&file);
        let mut before = 0;
        for length in 0..file.len() {
            let Ok(outcome) = read_all(&file[..length]) else {
                // Without the header record there is no recording.
                assert!(before == 0, "{length} bytes are refused, fewer were not");
                continue;
            };
            let events = outcome.trace.events;
            assert!(before <= events && events <= whole, "{length} bytes give {events} events");
            before = events;
            // In the fill behind a buffer's records nothing is lost.
            let place = places.iter().find(|place| place.contains(&length)).unwrap();
            let saved = u32::from_le_bytes(file[place.start + 4..place.start + 8].try_into().unwrap());
            let records_end =
                if compressed && place.start > 0 { place.end } else { place.start + saved as usize };
            let zeros = file[place.start..length].iter().all(|byte| *byte == 0);
            let cut = length < records_end && !zeros;
            assert_eq!(!outcome.damage.is_empty(), cut, "{length} bytes: {:?}", outcome.damage);
            assert!(outcome.damage.iter().all(|damage| damage.offset <= length as u64));
        }
        assert_eq!(read_all(&file).unwrap().trace.events, whole);
    }
}

/// Real files, cut in many places: at the start, and spread over the file.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_files() {
    let traces = data::traces();
    let mut read = 0;
    for path in traces.iter().filter(|path| path.metadata().unwrap().len() < 1_000_000) {
        let file = std::fs::read(path).unwrap();
        let Ok(whole) = read_all(&file) else { continue };
        let step = (file.len() / 12).max(1);
        for length in
            (0..400).step_by(7).chain((step..file.len()).step_by(step)).filter(|at| *at < file.len())
        {
            let Ok(outcome) = read_all(&file[..length]) else { continue };
            read += 1;
            assert!(outcome.trace.events <= whole.trace.events, "{} cut to {length}", path.display());
        }
    }
    assert!(read > 200, "{read} cut files could be read");
}

/// The space that a session reserved and never used, and a file that ends at a buffer's border.
#[test]
fn zeros_behind_the_buffers_are_no_damage() {
    let file = Etl::new().buffer_size(1024).event(0, START + 5, Sample::new(1, 2));
    let outcome = read_all(&file.clone().bytes(&[0; 4096]).finish()).unwrap();
    assert_eq!((outcome.trace.events, outcome.damage), (2, vec![]));
    let outcome = read_all(&file.bytes(&[7; 4096]).finish()).unwrap();
    assert_eq!((outcome.trace.events, outcome.damage.len()), (2, 1));
    assert_eq!(outcome.damage[0].offset, 2048);
}
