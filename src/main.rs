//! The `etwprof` program.

fn main() {}
