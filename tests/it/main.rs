//! The integration tests: one binary, with a folder for each room of the library, and what they share in `support`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod support;
mod synth;

mod accounting;
mod architecture;
mod baselines;
mod beliefs;
mod believable;
mod compare;
mod demo;
mod findings;
mod firefox;
mod golden;
mod hostile;
mod tables;

mod cli {
    mod choosing;
    mod chosen_events;
    mod commands;
    mod counters;
    mod counters_beside;
    mod diagnosis;
    mod diff;
    mod disk;
    mod formats;
    #[cfg(feature = "mcp")]
    mod mcp;
    mod output_files;
    mod report;
    mod runtimes;
    mod servers;
    mod shaping;
    mod strict;
    mod symbolize;
    mod trim;
    mod trim_anonymous;
    mod trim_portable;
    mod trim_waits;
    mod view;
    mod view_symbols;
    pub mod waits;
}

mod clr {
    mod during;
    mod gc;
    mod heap;
    mod jit;
    mod profile;
    mod real;
    mod reports;
    mod synthetic;
    mod threading;
}

mod counters {
    mod blocks;
    mod diagnosis;
    mod framework;
    mod kinds;
    mod registry_files;
    #[cfg(unix)]
    mod runtime;
    mod streams;
}

mod etl {
    mod ahead;
    mod containers;
    mod data;
    mod live_file;
    mod ring;
    mod writer;
}

mod events {
    mod payloads;
}

mod lines {
    mod hostile;
    mod portable;
    mod precompiled;
    mod reports;
    mod table;
    mod windows;
}

mod profile {
    mod patterns;
    mod shape;
}

mod r2r {
    mod hostile;
    mod names;
    mod real;
    mod synthetic;
}

mod resolve {
    mod composite;
    mod names;
    mod paths;
    mod runs;
    mod verdicts;
}

#[cfg(windows)]
mod session {
    mod live;
}

mod store {
    mod access;
    mod cabinet;
    mod cache;
    mod fetch;
    mod health;
    mod layout;
    mod path;
}

mod symbols {
    mod assembly;
    mod breakpad;
    mod code;
    mod dwarf;
    mod extents;
    mod malformed;
    mod pe;
    mod peer;
    mod spelling;
    mod truth;
}

mod trace {
    mod broken;
    mod chosen;
    mod counters;
    mod digest;
    mod disk;
    mod frames;
    mod images;
    mod interrupts;
    mod join;
    mod kept;
    mod lifetimes;
    mod lookout;
    mod merging;
    mod repair;
    mod slots;
    mod waits;
}

mod viewers {
    mod demo;
    mod metrics;
    mod otlp;
    mod pprof;
    mod speedscope;
}
