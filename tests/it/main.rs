//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod support;
mod symbolize_command;
mod symbols_breakpad;
mod symbols_malformed;
mod symbols_pe;
mod symbols_peer;
mod symbols_truth;
