//! The integration tests: one binary, with its support code beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]
mod r2r_hostile;
mod r2r_image;
mod r2r_names;
mod r2r_real;
mod r2r_synthetic;
