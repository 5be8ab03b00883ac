//! What the fuzz targets share: the way of a recording through every room, and a mutator that keeps files whole.

mod mutate;

use std::io;
use std::num::NonZeroUsize;

use etwprof::etl::Recording;
use etwprof::profile::{Detail, Grouping, Shape, Timeline};
use etwprof::report::events::{self, Counter};
use etwprof::report::info::{self, Info};
use etwprof::report::{Spelling, console, flamegraph, folded, strip};
use etwprof::{Analysis, Options};

pub use mutate::mutate;

/// From a recording to every report.
pub fn read_all(recording: Recording) {
    let counted = recording.fold(NonZeroUsize::MIN, &mut |_| {}, Counter::default, Counter::event);
    let analysis = Analysis::read(recording, &[], &Options { symbols: None, ..Options::default() }, &())
        .expect("nobody cuts bytes");
    let profile = &analysis.profile;
    let rows = counted.value.rows();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), profile.trace.events);
    assert_eq!(counted.damage, analysis.damage);

    let balance = profile.balance;
    assert_eq!(balance.total, profile.trace.sample_count());
    assert_eq!(balance.total, balance.kept + balance.idle + balance.filtered);
    let detail = Detail::default();
    let arranged = profile.arrange(&Shape { grouping: Grouping::Thread, detail, ..Shape::default() });
    let tree = &arranged.counts;
    assert_eq!(tree.total() as u64, balance.kept);

    let out = &mut io::sink();
    let (info, labels) = (Info::new(&analysis), Spelling::new(profile, detail));
    let all = console::Options { min_percent: 0.0, ..Default::default() };
    events::write(out, &rows).expect("a sink takes all");
    events::write_json(out, &rows).expect("a sink takes all");
    info::write(out, &info).expect("a sink takes all");
    info::write_json(out, &info).expect("JSON has a form for every value");
    folded::write(out, tree, &labels).expect("a sink takes all");
    let timeline = Timeline::new(profile, &arranged.left_out, (None, None), strip::bins(None));
    strip::write(out, &timeline, profile.trace.machine.processors, &labels, None).expect("a sink takes all");
    console::write(out, &arranged, &labels, &all).expect("a sink takes all");
    flamegraph::write(out, &arranged, &labels, &flamegraph::Options::default()).expect("a sink takes all");
}
