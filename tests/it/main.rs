//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod data;
mod demo;
mod hostile;
mod support;
mod symbols_breakpad;
mod symbols_malformed;
mod symbols_truth;
mod synth;
