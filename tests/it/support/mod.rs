//! What the tests stand on: the real data and the built program.

#[allow(dead_code, reason = "each test uses the part it needs")]
pub mod command;
pub mod data;
pub mod luck;
#[allow(dead_code, reason = "each test uses the part it needs")]
pub mod reading;
