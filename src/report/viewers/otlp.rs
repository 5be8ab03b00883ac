//! OpenTelemetry profiles: `ProfilesData` of `opentelemetry.proto.profiles.v1development`.
//!
//! Two messages, one after the other, are one that has the fields of both; a message inside of them that both have is
//! merged in the same way. So the dictionary is written in many small parts. Of the samples, those of one process are in
//! memory, as bytes.

use std::io::{self, Write};

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use crate::interned::Interned;
use crate::prefix_tree::NodeId;
use crate::profile::Category;
use crate::report::format::{Content, Format, Needs, Picture, Tops};

use super::code::{self, Code, StackId, Strings};
use super::remarks::{remarks, since_1970, span};
use super::threads::{Process, Threads, samples};
use super::values::Values;

/// The format.
pub const FORMAT: Format = Format {
    name: "otlp",
    endings: &[".otlp"],
    about: "OpenTelemetry profile",
    viewers: "OpenTelemetry collectors",
    content: Content::Binary,
    tops: Tops::Code,
    needs: Needs { ends: true, lines: true, code: true, ..Needs::NOTHING },
    write,
};

/// The release of opentelemetry-proto that the messages are of. Fields have changed their meaning, and a reader may be of
/// another.
const REVISION: &str = "1.10.0";

/// `ResourceProfiles` with its parts as bytes, which read the same as messages.
#[derive(Clone, PartialEq, Message)]
struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    scope_profiles: Vec<Vec<u8>>,
}

/// `ScopeProfiles` in the same way.
#[derive(Clone, PartialEq, Message)]
struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    profiles: Vec<Vec<u8>>,
}

/// `ProfilesData` with the profiles of a process.
#[derive(Clone, PartialEq, Message)]
struct OfProcess {
    #[prost(bytes = "vec", repeated, tag = "1")]
    resource_profiles: Vec<Vec<u8>>,
}

/// What samples refer to, beside their code.
struct Tables {
    strings: Strings,
    /// Number 0 is no stack.
    stacks: Interned<Option<StackId>>,
    /// Number 0 is no attribute.
    attributes: Interned<Option<Attribute>>,
}

/// A key and its value; texts by their [`Strings`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attribute {
    key: u32,
    value: AttributeValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum AttributeValue {
    Text(String),
    Texts(Vec<String>),
    Number(u32),
}

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let mut tables =
        Tables { strings: Strings::new(), stacks: Interned::default(), attributes: Interned::default() };
    tables.stacks.number(None);
    tables.attributes.number(None);
    let code = Code::new(picture, &mut tables.strings);
    put_processes(out, picture, &code, &mut tables)?;
    put_dictionary(out, picture, &code, tables)
}

/// The index of something in a table of which entry 0 is nothing.
fn index(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(0)
}

fn put_processes(
    out: &mut dyn Write,
    picture: &Picture<'_>,
    code: &Code,
    tables: &mut Tables,
) -> io::Result<()> {
    let threads = Threads::new(picture);
    let process_of = |thread: usize| threads.threads.get(thread).map_or(0, |thread| thread.process);
    // Process, thread, stack, sample: what is alike comes together, and stays in order of time.
    let mut all: Vec<(usize, usize, Option<StackId>, u32, NodeId)> = samples(picture)
        .map(|(end, sample)| {
            let thread = threads.of(sample);
            (process_of(thread), thread, code.stack(end.node), end.sample, end.node)
        })
        .collect();
    all.sort_unstable();
    let (head, values) = (head(picture, tables).encode_to_vec(), Values::of(picture));
    for of_process in all.chunk_by(|one, other| one.0 == other.0) {
        let Some(process) = of_process.first().and_then(|first| threads.processes.get(first.0)) else {
            continue;
        };
        let mut profile = head.clone();
        for alike in of_process.chunk_by(|one, other| (one.1, one.2) == (other.1, other.2)) {
            let Some((_, thread, stack, _, node)) = alike.first() else { continue };
            let attributes = attributes_of(picture, &threads, *thread, *node, tables);
            let profiled = || alike.iter().filter_map(|each| picture.profile().samples.get(each.3 as usize));
            let clock = picture.profile().trace.clock;
            let time = |time| u64::try_from(since_1970(clock.filetime(time))).unwrap_or(0);
            let sample = otlp::Sample {
                stack_index: index(tables.stacks.number(*stack)),
                attribute_indices: attributes,
                values: profiled().map(|sample| values.value(sample.value)).collect(),
                timestamps_unix_nano: profiled().map(|sample| time(sample.time)).collect(),
                ..otlp::Sample::default()
            };
            let part = otlp::Profile { samples: vec![sample], ..otlp::Profile::default() };
            profile.extend_from_slice(&part.encode_to_vec());
        }
        let scope = ScopeProfiles { scope: Some(scope()), profiles: vec![profile] }.encode_to_vec();
        let resource = Some(resource(process));
        let resource = ResourceProfiles { resource, scope_profiles: vec![scope] }.encode_to_vec();
        out.write_all(&OfProcess { resource_profiles: vec![resource] }.encode_to_vec())?;
    }
    Ok(())
}

/// A profile without samples.
fn head(picture: &Picture<'_>, tables: &mut Tables) -> otlp::Profile {
    let remarks = tables.attribute("pprof.profile.comment", AttributeValue::Texts(remarks(picture)));
    let mut text = |text| index(tables.strings.number(text));
    let values = Values::of(picture);
    let measured = otlp::ValueType { type_strindex: text(&values.kind), unit_strindex: text(values.unit) };
    let period = values.period(picture);
    let span = span(picture);
    otlp::Profile {
        sample_type: Some(measured),
        period_type: period.map(|_| measured),
        period: period.unwrap_or(0),
        time_unix_nano: u64::try_from(span.start).unwrap_or(0),
        // The last sample is inside.
        duration_nano: u64::try_from(span.length.saturating_add(1)).unwrap_or(0),
        attribute_indices: vec![remarks],
        ..otlp::Profile::default()
    }
}

fn text(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.to_owned())) }
}

fn attribute(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "etwprof".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        attributes: vec![attribute("opentelemetry.proto.version", text(REVISION))],
        ..InstrumentationScope::default()
    }
}

fn resource(process: &Process) -> Resource {
    let pid = process.pid.map(|pid| AnyValue { value: Some(Value::IntValue(i64::from(pid))) });
    let mut attributes = vec![
        // Without it, backends call every process unknown.
        attribute("service.name", text(&process.name)),
        attribute("process.executable.name", text(&process.name)),
        attribute("os.type", text("windows")),
    ];
    attributes.extend(pid.map(|pid| attribute("process.pid", pid)));
    Resource { attributes, ..Resource::default() }
}

/// What the samples of a thread in a stack have in common.
fn attributes_of(
    picture: &Picture<'_>,
    threads: &Threads,
    thread: usize,
    node: NodeId,
    tables: &mut Tables,
) -> Vec<i32> {
    let Some(thread) = threads.threads.get(thread) else { return Vec::new() };
    let mut all = vec![tables.attribute("thread.name", AttributeValue::Text(thread.text.clone()))];
    all.extend(thread.tid.map(|tid| tables.attribute("thread.id", AttributeValue::Number(tid))));
    let category = code::category(picture, node).map(|category| category.text().to_owned());
    all.extend(category.map(|category| tables.attribute("etwprof.category", AttributeValue::Text(category))));
    all
}

impl Tables {
    fn attribute(&mut self, key: &str, value: AttributeValue) -> i32 {
        let key = self.strings.number(key);
        index(self.attributes.number(Some(Attribute { key, value })))
    }
}

/// Writes some entries of the tables.
fn put(out: &mut dyn Write, part: otlp::ProfilesDictionary) -> io::Result<()> {
    let part = otlp::ProfilesData { dictionary: Some(part), ..otlp::ProfilesData::default() };
    out.write_all(&part.encode_to_vec())
}

fn put_dictionary(
    out: &mut dyn Write,
    picture: &Picture<'_>,
    code: &Code,
    mut tables: Tables,
) -> io::Result<()> {
    use otlp::ProfilesDictionary as Part;
    // Entry 0 of every table is nothing.
    put(
        out,
        Part {
            mapping_table: vec![otlp::Mapping::default()],
            location_table: vec![otlp::Location::default()],
            function_table: vec![otlp::Function::default()],
            link_table: vec![otlp::Link::default()],
            ..Part::default()
        },
    )?;
    for module in &code.modules {
        let Some(module) = picture.profile().trace.module(*module) else { continue };
        let id = code::build_id(module);
        let id = id.map(|id| tables.attribute("etwprof.pdb.id", AttributeValue::Text(id)));
        let mapping = otlp::Mapping {
            // Addresses are relative to the image: each process may have it at another place.
            memory_start: 0,
            memory_limit: module.size,
            filename_strindex: index(tables.strings.number(&module.path)),
            attribute_indices: id.into_iter().collect(),
            ..otlp::Mapping::default()
        };
        put(out, Part { mapping_table: vec![mapping], ..Part::default() })?;
    }
    for location in &code.locations {
        let kind = frame_type(location.category);
        let kind = kind.map(|kind| tables.attribute("profile.frame.type", AttributeValue::Text(kind.into())));
        let line = |line: &code::Line| otlp::Line {
            function_index: index(line.function + 1),
            line: line.line.into(),
            column: 0,
        };
        let location = otlp::Location {
            mapping_index: location.module.map_or(0, |module| index(module + 1)),
            address: location.address,
            lines: location.lines.iter().map(line).collect(),
            attribute_indices: kind.into_iter().collect(),
        };
        put(out, Part { location_table: vec![location], ..Part::default() })?;
    }
    for function in &code.functions {
        let (name_strindex, filename_strindex) = (index(function.name), index(function.file));
        let function = otlp::Function { name_strindex, filename_strindex, ..otlp::Function::default() };
        put(out, Part { function_table: vec![function], ..Part::default() })?;
    }
    for stack in tables.stacks.into_things() {
        let locations = stack.into_iter().flat_map(|stack| code.locations_of(stack));
        let stack = otlp::Stack { location_indices: locations.map(|id| index(id + 1)).collect() };
        put(out, Part { stack_table: vec![stack], ..Part::default() })?;
    }
    for attribute in tables.attributes.into_things() {
        let attribute = attribute.map(otlp::KeyValueAndUnit::from).unwrap_or_default();
        put(out, Part { attribute_table: vec![attribute], ..Part::default() })?;
    }
    for text in tables.strings.into_texts() {
        put(out, Part { string_table: vec![text], ..Part::default() })?;
    }
    Ok(())
}

impl From<Attribute> for otlp::KeyValueAndUnit {
    fn from(Attribute { key, value }: Attribute) -> Self {
        let value = match value {
            AttributeValue::Text(value) => text(&value),
            AttributeValue::Texts(all) => {
                let values = all.iter().map(|value| text(value)).collect();
                AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) }
            }
            AttributeValue::Number(value) => AnyValue { value: Some(Value::IntValue(i64::from(value))) },
        };
        otlp::KeyValueAndUnit { key_strindex: index(key), value: Some(value), unit_strindex: 0 }
    }
}

/// The value of `profile.frame.type` of OpenTelemetry's semantic conventions. There is none for scripts of engines other
/// than V8, and the engine of these is not V8.
fn frame_type(category: Category) -> Option<&'static str> {
    match category {
        Category::Kernel => Some("kernel"),
        Category::Native | Category::Runtime | Category::Gc | Category::JitCompiler => Some("native"),
        Category::ManagedJit | Category::ManagedPrecompiled | Category::Stub => Some("dotnet"),
        Category::JavaScript => Some("javascript"),
        Category::Heading | Category::Unresolved => None,
    }
}
