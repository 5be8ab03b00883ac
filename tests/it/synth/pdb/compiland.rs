//! The stream of a compiland: procedures with inlined calls, and the lines of both.
//! (llvm.org/docs/PDB/CodeViewSymbols.html, ModiStream.html; cvinfo.h: `PROCSYM32`, `INLINESITESYM`, `CV_DebugSLinesHeader_t`)

use super::headers::{Strings, files};
use super::types::{Ids, PROCEDURE};
use super::{Bytes, Compiland, Function, Inlined, bytes, place, symbol};

const S_END: u16 = 0x0006;
const S_OBJNAME: u16 = 0x1101;
const S_GPROC32: u16 = 0x1110;
const S_COMPILE3: u16 = 0x113C;
const S_INLINESITE: u16 = 0x114D;
const S_INLINESITE_END: u16 = 0x114E;

const LINES: u32 = 0xF2;
const FILES: u32 = 0xF4;
const INLINEE_LINES: u32 = 0xF6;

/// Binary annotations: how the code and lines of an inlined call go on.
const CODE_OFFSET: u32 = 3;
const CODE_LENGTH: u32 = 4;
const LINE_OFFSET: u32 = 6;

/// Signature of today's form of symbols and lines (C13).
const SIGNATURE: u32 = 4;
const CPP: u32 = 1;
const X64: u16 = 0xD0;

/// The parts of the stream.
pub(super) struct Streams {
    pub symbols: Vec<u8>,
    pub lines: Vec<u8>,
}

impl Streams {
    /// With no references to global symbols at the end.
    pub(super) fn joined(self) -> Vec<u8> {
        [self.symbols, self.lines, vec![0; 4]].concat()
    }
}

pub(super) fn streams(compiland: &Compiland, strings: &mut Strings, ids: &mut Ids) -> Streams {
    let mut symbols = bytes().u32(SIGNATURE).finish();
    symbols.extend(symbol(S_OBJNAME, bytes().u32(0).ansiz(&compiland.object)));
    let versions = [19, 38, 33_135, 0, 14, 38, 33_135, 0];
    let compiler = versions.into_iter().fold(bytes().u32(CPP).u16(X64), Bytes::u16);
    symbols.extend(symbol(S_COMPILE3, compiler.ansiz("Microsoft (R) Optimizing Compiler")));
    compiland.functions.iter().for_each(|function| procedure(&mut symbols, function, ids));

    // A file is named by the place of its entry in this list: name, no checksum, two bytes up to eight.
    let files = files(compiland);
    let entry = |list: Bytes, file: &&str| list.u32(strings.offset(file)).u8(0).u8(0).u16(0);
    let mut lines = part(FILES, files.iter().fold(bytes(), entry));
    let file =
        |name: &str| 8 * files.iter().position(|file| *file == name).expect("a file of the list") as u32;
    for function in &compiland.functions {
        let rows = function.lines.iter().fold(bytes(), |rows, &(offset, line)| {
            rows.u32(offset).u32(line | 0x8000_0000) // a statement
        });
        let rows = rows.finish();
        let header = place(bytes(), function.rva).u16(0).u32(function.size);
        let block =
            header.u32(file(&function.file)).u32(function.lines.len() as u32).u32(12 + rows.len() as u32);
        lines.extend(part(LINES, block.raw(&rows)));
    }
    let mut inlinees: Vec<(u32, u32, u32)> = Vec::new();
    compiland.functions.iter().for_each(|function| {
        visit(&function.inlined, &mut |call| {
            let line = (ids.function(&call.function), file(&call.file), call.line);
            if !inlinees.contains(&line) {
                inlinees.push(line);
            }
        });
    });
    if !inlinees.is_empty() {
        let entry = |list: Bytes, &(id, file, line): &(u32, u32, u32)| list.u32(id).u32(file).u32(line);
        lines.extend(part(INLINEE_LINES, inlinees.iter().fold(bytes().u32(0), entry)));
    }
    Streams { symbols, lines }
}

fn visit<'a>(inlined: &'a [Inlined], step: &mut impl FnMut(&'a Inlined)) {
    for call in inlined {
        step(call);
        visit(&call.inlined, step);
    }
}

/// A part of the lines: kind, length, contents up to a multiple of four.
fn part(kind: u32, contents: Bytes) -> Vec<u8> {
    let mut contents = contents.finish();
    contents.resize(contents.len().next_multiple_of(4), 0);
    bytes().u32(kind).u32(contents.len() as u32).raw(&contents).finish()
}

fn procedure(symbols: &mut Vec<u8>, function: &Function, ids: &mut Ids) {
    let start = symbols.len();
    let at = |end: u32| {
        // No parent, the end, no next; size, and the code between prolog and epilog; type, place, flags, name.
        let head = bytes().u32(0).u32(end).u32(0).u32(function.size).u32(4).u32(function.size - 1);
        symbol(S_GPROC32, place(head.u32(PROCEDURE), function.rva).u8(0).ansiz(&function.name))
    };
    symbols.extend(at(0));
    calls(symbols, start as u32, &function.inlined, ids);
    let whole = at(symbols.len() as u32);
    symbols[start..start + whole.len()].copy_from_slice(&whole);
    symbols.extend(symbol(S_END, bytes()));
}

fn calls(symbols: &mut Vec<u8>, parent: u32, inlined: &[Inlined], ids: &mut Ids) {
    for call in inlined {
        let start = symbols.len();
        let id = ids.function(&call.function);
        let at =
            |end: u32| symbol(S_INLINESITE, bytes().u32(parent).u32(end).u32(id).raw(&annotations(call)));
        symbols.extend(at(0));
        calls(symbols, start as u32, &call.inlined, ids);
        let whole = at(symbols.len() as u32);
        symbols[start..start + whole.len()].copy_from_slice(&whole);
        symbols.extend(symbol(S_INLINESITE_END, bytes()));
    }
}

/// From the function's begin and the inlined one's first line on: to each row its steps, at last the row's length.
fn annotations(call: &Inlined) -> Vec<u8> {
    let mut all = Vec::new();
    let (mut code, mut line) = (0, call.line);
    for &(offset, to) in &call.lines {
        let step = i64::from(to) - i64::from(line);
        if step != 0 {
            all.extend(compressed(LINE_OFFSET));
            // The sign is the lowest bit.
            all.extend(compressed((step.unsigned_abs() as u32) << 1 | u32::from(step < 0)));
        }
        all.extend([compressed(CODE_OFFSET), compressed(offset - code)].concat());
        (code, line) = (offset, to);
    }
    all.extend([compressed(CODE_LENGTH), compressed(call.end - code)].concat());
    all
}

/// A number in one, two or four bytes, big end first, with its length in the first bits.
fn compressed(value: u32) -> Vec<u8> {
    match value {
        0..0x80 => vec![value as u8],
        0x80..0x4000 => (value as u16 | 0x8000).to_be_bytes().to_vec(),
        _ => (value | 0xC000_0000).to_be_bytes().to_vec(),
    }
}
