use super::{Dot, Load, Timeline, round_up};
use crate::trace::ProcessId;

const MS: i64 = 10_000;

/// A sample of 1 ms for each time in ms.
fn dots(row: usize, times: impl IntoIterator<Item = i64>) -> Vec<Dot> {
    times.into_iter().map(|time| Dot { time: time * MS, value: MS, samples: 1, row }).collect()
}

fn timeline(mut dots: Vec<Dot>, processes: u32, milliseconds: std::ops::Range<i64>, bins: usize) -> Timeline {
    dots.sort_by_key(|dot| dot.time);
    let ids: Vec<ProcessId> = (0..processes).map(ProcessId).collect();
    Timeline::count(dots.into_iter(), &ids, milliseconds.start * MS..milliseconds.end * MS, bins)
}

#[test]
fn samples_fall_into_bins_with_what_they_stand_for() {
    // Process 0 runs from 20 to 60 ms, process 1 has one sample of 3 ms, at the begin of a bin.
    let mut dots = dots(0, 20..60);
    dots.push(Dot { time: 40 * MS, value: 3 * MS, samples: 1, row: 1 });
    let timeline = timeline(dots, 2, 0..100, 10);
    // 100 ms in 10 bins: 10 ms; ten samples of 43/41 ms need 12.
    assert_eq!((timeline.start, timeline.length, timeline.bin), (0, 100 * MS, 12 * MS));
    // Bins begin at 0, 12, 24, 36, 48, 60, 72, 84, 96.
    let of_0 = [0, 4, 12, 12, 12, 0, 0, 0, 0].map(|ms| ms * MS);
    let of_1 = [0, 0, 0, 3, 0, 0, 0, 0, 0].map(|ms| ms * MS);
    let [(first, one), (second, other)] = timeline.processes.as_slice() else { panic!("two processes") };
    assert_eq!((first.0, &one.bins[..]), (0, &of_0[..]));
    assert_eq!((second.0, &other.bins[..]), (1, &of_1[..]));
    assert_eq!((other.samples, other.total, other.most), (1, 3 * MS, Some((40 * MS, 40 * MS))));
    let both: Vec<i64> = of_0.iter().zip(of_1).map(|(a, b)| a + b).collect();
    assert_eq!((&timeline.all.bins, timeline.all.total, timeline.all.samples), (&both, 43 * MS, 41));
    assert_eq!((timeline.peak(one), timeline.peak(&timeline.all)), (1.0, 1.25));
    assert_eq!(timeline.average(one), 0.4);
}

#[test]
fn stray_samples_do_not_say_since_when() {
    // One hundredth of 300 samples at each end: 3 at the start and 3 at the end are no more than that.
    let mut times = vec![0, 5, 10];
    times.extend(400..694);
    times.extend([900, 950, 990]);
    let one = timeline(dots(0, times), 1, 0..1000, 20);
    let load = &one.all;
    assert_eq!(load.samples, 300);
    assert_eq!(load.most, Some((400 * MS, 693 * MS)));
    // Steady work has all but its ends.
    let steady = timeline(dots(0, 0..1000), 1, 0..1000, 20);
    assert_eq!(steady.all.most, Some((10 * MS, 989 * MS)));
    assert!(steady.all.bins.iter().all(|bin| *bin == 50 * MS));
}

#[test]
fn what_lies_outside_the_range_is_in_its_ends() {
    let one = timeline(dots(0, [-5, 0, 5, 105]), 1, 0..100, 4);
    assert_eq!(one.bin, 25 * MS);
    assert_eq!(one.all.bins, [3 * MS, 0, 0, MS]);
}

#[test]
fn the_busiest_come_first_and_the_idle_not_at_all() {
    let mut all = dots(2, 0..30);
    all.extend(dots(0, 0..10));
    let order: Vec<u32> =
        timeline(all, 3, 0..100, 10).processes.iter().map(|(process, _)| process.0).collect();
    assert_eq!(order, [2, 0]);
}

#[test]
fn nothing_and_nonsense_are_counted_too() {
    let empty = timeline(Vec::new(), 0, 0..0, 0);
    assert_eq!((empty.length, &empty.all.bins[..], empty.all.most), (1, &[0][..], None));
    assert_eq!(empty.peak(&empty.all), 0.0);
    let ends = [i64::MIN, 0, i64::MAX].map(|time| Dot { time, value: i64::MAX, samples: 1, row: 7 });
    let ids = [ProcessId(0)];
    let odd = Timeline::count(ends.into_iter(), &ids, i64::MIN..i64::MAX, 10);
    assert_eq!((odd.all.samples, odd.all.total), (3, i64::MAX));
    assert!(odd.processes.is_empty());
    // Samples that stand for no time.
    let free = Timeline::count([Dot { time: 5, value: 0, samples: 1, row: 0 }].into_iter(), &ids, 0..10, 10);
    assert_eq!((free.all.samples, free.all.most), (1, None));
}

#[test]
fn bins_are_round() {
    for (least, round) in
        [(0, 10), (10, 10), (11, 12), (13, 15), (81, 100), (101, 120), (5_031_000, 6_000_000)]
    {
        assert_eq!(round_up(least), round);
    }
    assert!(round_up(i64::MAX) == i64::MAX);
}

#[test]
fn loads_add_up() {
    let mut sum = Load::default();
    for load in [
        Load { samples: 2, total: 5, bins: vec![1, 4], most: Some((3, 9)) },
        Load { samples: 1, total: 2, bins: vec![2, 0], most: Some((1, 2)) },
    ] {
        sum += &load;
    }
    assert_eq!(sum, Load { samples: 3, total: 7, bins: vec![3, 4], most: Some((1, 9)) });
}
