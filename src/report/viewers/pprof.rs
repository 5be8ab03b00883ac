//! Profiles for pprof: `perftools.profiles.Profile` of google/pprof's `proto/profile.proto`, gzipped.
//!
//! The bytes of two messages, one after the other, are those of one message that has the fields of both. So the profile is
//! written as many small ones, and is never in memory as a whole.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::prefix_tree::NodeId;
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::trace::Module;

use super::code::{self, Code, StackId, Strings};
use super::remarks::{Cutter, remarks, span};
use super::threads::{Threads, samples};
use super::values::Values;

/// The format.
pub const FORMAT: Format = Format {
    name: "pprof",
    endings: &[".pb.gz", ".pprof"],
    about: "pprof profile",
    viewers: "go tool pprof, Pyroscope, Parca, Perfetto",
    content: Content::Binary,
    tops: Tops::Code,
    needs: Needs { ends: true, lines: true, code: true, ..Needs::NOTHING },
    write,
};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The leaf first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
    #[prost(int64, tag = "4")]
    num_unit: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    memory_start: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// The innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    /// Left out: where it equals the name, pprof cuts template arguments off.
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    // The header of the archive has neither a time nor a name.
    let mut out = GzEncoder::new(out, Compression::default());
    let mut strings = Strings::new();
    let code = Code::new(picture, &mut strings);
    put(&mut out, &head(picture, &mut strings))?;
    let threads = Threads::new(picture);
    put_samples(&mut out, picture, &threads, &code, &mut strings)?;
    for mapping in mappings(picture, &threads, &code, &mut strings) {
        put(&mut out, &Profile { mapping: vec![mapping], ..Profile::default() })?;
    }
    for (id, location) in (1..).zip(&code.locations) {
        let line = |line: &code::Line| Line { function_id: id_of(line.function), line: line.line.into() };
        let location = Location {
            id,
            mapping_id: location.module.map_or(0, id_of),
            address: location.address,
            line: location.lines.iter().map(line).collect(),
        };
        put(&mut out, &Profile { location: vec![location], ..Profile::default() })?;
    }
    for (id, function) in (1..).zip(&code.functions) {
        let (name, filename) = (function.name.into(), function.file.into());
        let function = Function { id, name, filename, ..Function::default() };
        put(&mut out, &Profile { function: vec![function], ..Profile::default() })?;
    }
    for text in strings.into_texts() {
        put(&mut out, &Profile { string_table: vec![text], ..Profile::default() })?;
    }
    out.finish()?.flush()
}

/// Writes some fields of the profile.
fn put(out: &mut impl Write, part: &Profile) -> io::Result<()> {
    out.write_all(&part.encode_to_vec())
}

/// No id is 0.
fn id_of(index: u32) -> u64 {
    u64::from(index) + 1
}

fn head(picture: &Picture<'_>, strings: &mut Strings) -> Profile {
    let mut text = |text| i64::from(strings.number(text));
    let values = Values::of(picture);
    let samples = ValueType { kind: text("samples"), unit: text("count") };
    let measured = ValueType { kind: text(&values.kind), unit: text(values.unit) };
    let period = values.period(picture);
    let span = span(picture);
    Profile {
        sample_type: vec![samples, measured],
        period_type: period.map(|_| measured),
        period: period.unwrap_or(0),
        default_sample_type: measured.kind,
        time_nanos: span.start,
        duration_nanos: span.length,
        comment: remarks(picture).iter().map(|remark| text(remark)).collect(),
        ..Profile::default()
    }
}

/// Samples with the same stack and labels are one.
fn put_samples(
    out: &mut impl Write,
    picture: &Picture<'_>,
    threads: &Threads,
    code: &Code,
    strings: &mut Strings,
) -> io::Result<()> {
    let (mut cutter, values) = (Cutter::new(picture), Values::of(picture));
    let mut all: Vec<(usize, Option<StackId>, NodeId, i64, i64)> = samples(picture)
        .map(|(end, sample)| {
            (threads.of(sample), code.stack(end.node), end.node, sample.value, sample.count.into())
        })
        .collect();
    all.sort_unstable();
    for alike in all.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let Some((thread, Some(stack), node, ..)) = alike.first() else { continue };
        let sum = alike.iter().fold(0, |sum: i64, (.., value, _)| sum.saturating_add(*value));
        let sample = Sample {
            location_id: cutter.cut(code.locations_of(*stack).map(id_of)),
            value: vec![alike.iter().map(|(.., samples)| samples).sum(), values.value(sum)],
            label: labels(picture, threads, *thread, *node, strings),
        };
        put(out, &Profile { sample: vec![sample], ..Profile::default() })?;
    }
    let comment = cutter.remark().map(|remark| strings.number(&remark).into());
    put(out, &Profile { comment: comment.into_iter().collect(), ..Profile::default() })
}

fn labels(
    picture: &Picture<'_>,
    threads: &Threads,
    thread: usize,
    node: NodeId,
    strings: &mut Strings,
) -> Vec<Label> {
    let thread = threads.threads.get(thread);
    let process = thread.and_then(|thread| threads.process_of(thread));
    let category = code::category(picture, node).map(|category| category.text());
    let texts = [
        ("process", process.map(|process| process.text.as_str())),
        ("thread", thread.map(|thread| thread.text.as_str())),
        ("category", category),
    ];
    let numbers =
        [("pid", process.and_then(|process| process.pid)), ("tid", thread.and_then(|thread| thread.tid))];
    let mut number = |text| i64::from(strings.number(text));
    let mut labels = Vec::new();
    for (key, text) in texts {
        labels.extend(text.map(|text| Label { key: number(key), str: number(text), ..Label::default() }));
    }
    for (key, id) in numbers {
        // Without a unit, pprof takes the key for it.
        let label = |id| Label { key: number(key), num: i64::from(id), num_unit: number("id"), str: 0 };
        labels.extend(id.map(label));
    }
    labels
}

/// The images. The first is the program for pprof: that of the busiest process.
fn mappings(picture: &Picture<'_>, threads: &Threads, code: &Code, strings: &mut Strings) -> Vec<Mapping> {
    let program = threads.processes.first().map_or("", |process| process.name.as_str());
    let is_program = |module: &Module| module.file_name().eq_ignore_ascii_case(program);
    let modules = (1..).zip(&code.modules).filter_map(|(id, module)| {
        let module = picture.profile().trace.module(*module)?;
        Some((id, module))
    });
    let mut modules: Vec<(u64, &Module)> = modules.collect();
    modules.sort_by_key(|(_, module)| !is_program(module));
    let mapping = |(id, module): (u64, &Module)| Mapping {
        id,
        // Addresses are relative to the image: each process may have it at another place.
        memory_start: 0,
        memory_limit: module.size,
        filename: strings.number(&module.path).into(),
        build_id: strings.number(&code::build_id(module).unwrap_or_default()).into(),
        // All that is known of them is here: nothing is to be looked up.
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    };
    modules.into_iter().map(mapping).collect()
}
