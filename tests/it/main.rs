//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod accounting;
mod baselines;
mod commands;
mod containers;
mod data;
mod demo;
mod frames;
mod golden;
mod images;
mod join;
mod lifetimes;
mod payloads;
mod stacks;
mod support;
mod synth;
