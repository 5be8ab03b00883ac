//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod data;
mod demo;
#[cfg(windows)]
mod live;
mod r2r_hostile;
mod r2r_image;
mod r2r_names;
mod r2r_real;
mod r2r_synthetic;
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
