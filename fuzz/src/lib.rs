//! What the fuzz targets share: the way of a recording through every room, and a mutator that keeps files whole.

mod mutate;

use std::io;

use etwprof::etl::Recording;
use etwprof::profile::{CallTree, Filter, Grouping, Naming, Profile};
use etwprof::report::events::{self, Counter};
use etwprof::report::info::{self, Info};
use etwprof::report::{console, flamegraph, folded};
use etwprof::symbols::Unnamed;
use etwprof::symbols::resolver::Symbols;
use etwprof::trace::Builder;

pub use mutate::mutate;

/// From a recording to every report.
pub fn read_all(recording: &Recording) {
    let counted = recording.fold(&mut |_| {}, Counter::default, Counter::event);
    let read = recording.fold(&mut |_| {}, || Builder::for_recording(recording), Builder::event);
    let trace = read.value.finish();
    let rows = counted.value.rows();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), trace.events);
    assert_eq!(counted.damage, read.damage);

    let profile = Profile::new(&trace, &Filter::default(), &Unnamed, Naming::default());
    let balance = profile.balance;
    assert_eq!(balance.total, trace.sample_count());
    assert_eq!(balance.total, balance.kept + balance.idle + balance.filtered);
    let tree = CallTree::new(&profile, &trace, Grouping { by_process: true, by_thread: true });
    assert_eq!(tree.total(), balance.kept);

    let out = &mut io::sink();
    let info = Info::new(recording, &trace, &profile, &Symbols::default(), &read.damage);
    let titles = flamegraph::Options { title: "fuzz".into(), subtitle: String::new() };
    let all = console::Options { min_percent: 0.0, ..Default::default() };
    events::write(out, &rows).expect("a sink takes all");
    events::write_json(out, &rows).expect("a sink takes all");
    info::write(out, &info).expect("a sink takes all");
    info::write_json(out, &info).expect("JSON has a form for every value");
    folded::write(out, &tree).expect("a sink takes all");
    console::write(out, &tree, &all).expect("a sink takes all");
    flamegraph::write(out, &tree, &titles).expect("inferno takes every tree");
}
