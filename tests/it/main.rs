//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]
#[cfg(windows)]
mod accounting;
mod baselines;
mod clr_real;
mod clr_reports;
mod clr_synthetic;
mod commands;
mod containers;
mod data;
mod demo;
mod frames;
mod golden;
mod hostile;
mod images;
mod join;
mod lifetimes;
#[cfg(windows)]
mod live;
mod payloads;
mod r2r_hostile;
mod r2r_image;
mod r2r_names;
mod r2r_real;
mod r2r_synthetic;
mod resolve_names;
mod resolve_runs;
mod resolve_support;
mod resolve_verdicts;
mod stacks;
mod store_cabinet;
mod store_cache;
mod store_fetch;
mod store_layout;
mod store_path;
mod store_support;
mod support;
mod symbolize_command;
mod symbols_breakpad;
mod symbols_malformed;
mod symbols_pe;
mod symbols_peer;
mod symbols_truth;
mod synth;
