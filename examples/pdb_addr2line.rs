//! The addresses on stdin by way of the `pdb-addr2line` crate: one side of `scripts/bench-symbolize`.
//!
//! `pdb_addr2line FILE.pdb < RVAS` prints the frames of each address, innermost first.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, Write};

fn main() {
    let path = std::env::args_os().nth(1).expect("usage: pdb_addr2line FILE.pdb < RVAS");
    let bytes = std::fs::read(path).expect("a readable file");
    let pdb = pdb_addr2line::pdb::PDB::open(std::io::Cursor::new(bytes)).expect("a PDB");
    let data = pdb_addr2line::ContextPdbData::try_from_pdb(pdb).expect("a readable PDB");
    let context = data.make_context().expect("a readable PDB");
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let rva = u32::from_str_radix(line.expect("text").trim_start_matches("0x"), 16).expect("an RVA");
        let found = context.find_frames(rva).expect("readable symbols");
        for frame in found.map(|found| found.frames).unwrap_or_default() {
            let (function, file) = (frame.function.unwrap_or_default(), frame.file.unwrap_or_default());
            writeln!(out, "{function} {file}:{}", frame.line.unwrap_or_default()).expect("stdout");
        }
        writeln!(out).expect("stdout");
    }
}
