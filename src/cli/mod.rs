//! The command line: one file for each command.

pub(crate) mod symbolize;
