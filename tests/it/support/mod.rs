//! What the tests share: the real data, the built program, and test data of more than one room.

pub mod clr;
#[allow(dead_code, reason = "each test uses the part it needs")]
pub mod command;
pub mod composite;
pub mod data;
pub mod facts;
pub mod il_pdbs;
pub mod image;
pub mod luck;
pub mod native;
pub mod precompiled;
#[allow(dead_code, reason = "each test uses the part it needs")]
pub mod reading;
pub mod resolve;
pub mod shown;
pub mod stacks;
pub mod store;
pub mod viewed;
pub mod viewer;
