//! A live recording of which only the newest is kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etwprof::etl::Recording;
use etwprof::etl::writer::{Ending, Newest, Tee, record_of};
use etwprof::event::{Event, Ticks};
use etwprof::sink::Sink;
use etwprof::trim::is_fact;
use tempfile::TempDir;

use super::live_file::{Nobody, Shared, folded};
use crate::support::stacks::machine;
use crate::support::{data, reading};
use crate::synth::{Etl, START};

/// Buffers of a ring have this size.
const BUFFER: usize = 128 << 10;

/// An event by what it says.
type Said = (i64, String, Vec<u8>);

fn said(event: &Event<'_>) -> Said {
    (event.time.0, format!("{} {:?} {}", event.provider, event.kind, event.opcode), event.payload.to_vec())
}

/// The events of each processor that are no facts, and all facts.
fn told(recording: &Recording) -> (BTreeMap<u16, Vec<Said>>, Vec<Said>) {
    let (mut moments, mut facts) = (BTreeMap::<u16, Vec<Said>>::new(), Vec::new());
    reading::events(recording, |event| match is_fact(event) {
        _ if record_of(event).is_none() => {}
        true => facts.push(said(event)),
        false => moments.entry(event.processor).or_default().push(said(event)),
    });
    facts.sort();
    (moments, facts)
}

/// Plays a recording to a ring of so many bytes, and gives what it is looked at by others at the end: two files.
fn played(recording: &Recording, bytes: u64, is_finished: bool) -> (TempDir, [PathBuf; 2]) {
    let outs = [Shared::new(usize::MAX), Shared::new(usize::MAX)];
    let newest = Newest { out: outs[1].clone(), bytes, is_fact };
    let mut tee = Tee::with_newest(Nobody(0), &recording.origin(), "live.etl", outs[0].clone(), newest);
    reading::events(recording, |event| tee.event(event));
    if is_finished {
        let size = tee.split().1.unwrap().finish(Ending::default(), |_, _| None).size.unwrap();
        assert_eq!(size, outs.iter().map(|out| out.bytes().len() as u64).sum::<u64>());
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["live.etl.part", "live.etl.newest.part"].map(|name| folder.path().join(name));
    for (path, out) in paths.iter().zip(&outs) {
        std::fs::write(path, out.bytes()).unwrap();
    }
    (folder, paths)
}

/// Each processor has its newest events, in order and without a gap.
#[track_caller]
fn is_suffix(kept: &BTreeMap<u16, Vec<Said>>, all: &BTreeMap<u16, Vec<Said>>) {
    for (processor, kept) in kept {
        let all = &all[processor];
        let all = &all[all.len() - kept.len().min(all.len())..];
        let other = kept.iter().zip(all).position(|(kept, all)| kept != all);
        let other = other.map(|at| (at, &kept[at], &all[at]));
        assert!(
            other.is_none() && kept.len() == all.len(),
            "processor {processor}: {other:?} of {}",
            kept.len()
        );
    }
}

/// What happened since all processors have their events.
fn from(kept: &BTreeMap<u16, Vec<Said>>) -> i64 {
    kept.values().map(|events| events[0].0).max().unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_newest_of_real_recordings() {
    for (file, slots) in [("etl/xperf/slow-ppt.etl", 40), ("etl/perfview/net.4.5.2.x64.etl", 20)] {
        let whole = data::file(file);
        let recording = Recording::open(std::slice::from_ref(&whole)).unwrap();
        let (_folder, paths) = played(&recording, (slots * BUFFER) as u64, true);
        let ring = std::fs::metadata(&paths[1]).unwrap().len() as usize;
        // Behind a header buffer, every place is used and none more.
        assert_eq!(ring, (slots + 1) * BUFFER, "{file}");
        let both = Recording::open(&paths).unwrap();
        let ((all, facts), (kept, known)) = (told(&recording), told(&both));
        is_suffix(&kept, &all);
        // Buffers are full: all but the last of each processor, to a few records.
        let bytes: usize = kept.values().flatten().map(|(.., payload)| payload.len()).sum();
        assert!(bytes > (slots - all.len()) * BUFFER * 6 / 10, "{file}: {bytes} in {slots} buffers");
        let kept_of = |facts: &[Said]| facts.iter().filter(|fact| known.binary_search(fact).is_ok()).count();
        assert!(
            kept_of(&facts) * 1000 >= facts.len() * 999,
            "{file}: {} of {}",
            kept_of(&facts),
            facts.len()
        );
        // Whatever is kept has the names that it has in the whole recording. A second later no stack is cut in two.
        let (clock, since) = (recording.origin().clock, from(&kept));
        let seconds = clock.seconds(Ticks(since)) + 0.5;
        let folded = |files: &[&Path]| folded(files, &["--from", &format!("{seconds}s")]);
        let lines = folded(&[&paths[0], &paths[1]]);
        assert_eq!(lines, folded(&[&whole]), "{file} from {seconds} s");
        assert!(lines.len() > 20, "{file}: {}", lines.len());
        assert_eq!(reading::trace(&both).lost.buffers, reading::file(&whole).lost.buffers, "{file}");
    }
}

/// So many samples of each of three processors, with 30 frames, 1 ms apart.
fn samples(number: i64) -> Etl {
    let frames: Vec<u64> = (0..30).map(|frame| 0x1000 + 16 * frame).collect();
    (0..number).fold(machine(), |etl, step| {
        let processor = (step % 3) as u16;
        etl.sampled(processor, START + 10_000 * (1 + step), 40, 41, &frames)
    })
}

#[test]
fn a_ring_that_is_cut_short_has_the_newest_but_for_the_last_second() {
    let recording = Recording::from_bytes("a.etl", samples(9_500).finish()).unwrap();
    let (_folder, paths) = played(&recording, 8 * BUFFER as u64, false);
    let both = Recording::open(&paths).unwrap();
    let (kept, known) = told(&both);
    let (all, facts) = told(&recording);
    let mut of_all = 0;
    for (processor, kept) in &kept {
        let all = &all[processor];
        let last = kept.last().unwrap();
        let end = all.iter().position(|event| event == last).unwrap() + 1;
        assert!(all[..end].ends_with(kept), "processor {processor}");
        // 10 MHz.
        assert!(all.last().unwrap().0 - last.0 < 10_100_000, "processor {processor}");
        of_all += kept.len();
    }
    assert!(of_all > 1_000, "{of_all}");
    assert!(facts.iter().all(|fact| known.contains(fact)));
    assert_eq!(reading::trace(&both).lost.buffers, 0);
}

#[test]
fn what_fits_is_kept_whole() {
    let recording = Recording::from_bytes("a.etl", samples(600).finish()).unwrap();
    let (_folder, paths) = played(&recording, 1 << 30, true);
    let both = Recording::open(&paths).unwrap();
    assert_eq!(told(&both).0, told(&recording).0);
    // No more room is taken than is needed: a buffer of each processor and the first.
    assert!(std::fs::metadata(&paths[1]).unwrap().len() as usize <= 5 * BUFFER);
}

#[test]
fn each_processor_has_two_buffers_however_small_the_ring_is() {
    let recording = Recording::from_bytes("a.etl", samples(9_000).finish()).unwrap();
    let (_folder, paths) = played(&recording, 1, true);
    let both = Recording::open(&paths).unwrap();
    let (kept, all) = (told(&both).0, told(&recording).0);
    is_suffix(&kept, &all);
    assert_eq!(kept.len(), 3);
}
