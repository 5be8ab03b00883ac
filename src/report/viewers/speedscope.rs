//! Profiles for speedscope: the sampled profiles of its
//! [file format](https://www.speedscope.app/file-format-schema.json).

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::interned::Interned;
use crate::prefix_tree::NodeId;
use crate::profile::Entry;
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::report::label::Labels;
use crate::report::text::{json_element, one_line};

use super::remarks::{Cutter, TOOL};
use super::threads::{Threads, samples};
use super::values::Values;

/// The format.
pub const FORMAT: Format = Format {
    name: "speedscope",
    endings: &[".speedscope.json"],
    about: "speedscope profile",
    viewers: "speedscope.app",
    content: Content::Plain,
    tops: Tops::Code,
    needs: Needs { ends: true, ..Needs::NOTHING },
    write,
};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// A function. Of a line speedscope would make a function of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// So much at the end of a stack: of a process, where its name stands above the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spent {
    process: Option<usize>,
    node: NodeId,
    value: i64,
}

fn write(mut out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let threads = Threads::new(picture);
    let frames = Frames::new(picture, &threads);
    write!(
        out,
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"{TOOL}\",\"activeProfileIndex\":0,\"shared\":{{\"frames\":["
    )?;
    for (index, frame) in frames.all.iter().enumerate() {
        write!(out, "{}", if index == 0 { "\n" } else { ",\n" })?;
        json_element(&mut out, frame)?;
    }
    write!(out, "\n]}},\n\"profiles\":[\n")?;
    let (values, cutter) = (Values::of(picture), Cutter::new(picture));
    let mut stacks = Stacks { picture, frames, values, cutter };
    stacks.write(out, "All threads", &all_threads(picture, &threads))?;
    let mut by_thread: Vec<Vec<Spent>> = vec![Vec::new(); threads.threads.len()];
    for (end, sample) in samples(picture) {
        let Some(thread) = by_thread.get_mut(threads.of(sample)) else { continue };
        add(thread, Spent { process: None, node: end.node, value: sample.value });
    }
    for (thread, spent) in threads.threads.iter().zip(by_thread) {
        let process = threads.process_of(thread).map_or("", |process| process.text.as_str());
        out.write_all(b",\n")?;
        stacks.write(out, &format!("{process} / {}", thread.text), &spent)?;
    }
    let mut title = one_line(picture.title).into_owned();
    if let Some(remark) = stacks.cutter.remark() {
        title += &format!(" ({remark})");
    }
    write!(out, "\n],\"name\":")?;
    json_element(&mut out, &title)?;
    writeln!(out, "}}")
}

/// One after the other, equal neighbours are one.
fn add(all: &mut Vec<Spent>, spent: Spent) {
    match all.last_mut() {
        Some(last) if (last.process, last.node) == (spent.process, spent.node) => {
            last.value = last.value.saturating_add(spent.value);
        }
        _ => all.push(spent),
    }
}

/// The samples of all threads in the order of a flame graph, each stack once: the order of time would mix threads that
/// ran at once. Of several processes each stack begins with its own.
fn all_threads(picture: &Picture<'_>, threads: &Threads) -> Vec<Spent> {
    let ranks = ranks(picture);
    let several = threads.processes.len() > 1;
    let process_of = |thread: usize| threads.threads.get(thread).map(|thread| thread.process);
    let mut spent: Vec<(u32, Spent)> = samples(picture)
        .map(|(end, sample)| {
            let process = process_of(threads.of(sample)).filter(|_| several);
            let rank = ranks.get(end.node.0 as usize).copied().unwrap_or(u32::MAX);
            (rank, Spent { process, node: end.node, value: sample.value })
        })
        .collect();
    spent.sort_unstable_by_key(|(rank, spent)| (spent.process, *rank));
    let mut all = Vec::new();
    for (_, spent) in spent {
        add(&mut all, spent);
    }
    all
}

/// The place of each node in the tree, depth first, the greatest children first.
fn ranks(picture: &Picture<'_>) -> Vec<u32> {
    let tree = &picture.arranged.counts;
    let mut ranks = vec![u32::MAX; tree.nodes().count()];
    let mut next: Vec<NodeId> = tree.roots().iter().rev().copied().collect();
    let mut rank = 0;
    while let Some(id) = next.pop() {
        if let Some(of) = ranks.get_mut(id.0 as usize) {
            *of = rank;
        }
        rank += 1;
        if let Some(node) = tree.node(id) {
            next.extend(tree.children(node).iter().rev());
        }
    }
    ranks
}

/// The frames of a file.
struct Frames {
    all: Vec<Frame>,
    of_entries: FxHashMap<Entry, u32>,
    /// By process.
    of_processes: Vec<u32>,
}

impl Frames {
    fn new(picture: &Picture<'_>, threads: &Threads) -> Frames {
        let mut all = Interned::default();
        let process = |name: &String| Frame { name: name.clone(), file: None };
        let of_processes = match threads.processes.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(|each| all.number(process(&each.text))).collect(),
        };
        let mut of_entries = FxHashMap::default();
        for (_, node) in picture.arranged.counts.nodes() {
            of_entries.entry(node.entry).or_insert_with(|| all.number(frame(picture, node.entry)));
        }
        Frames { all: all.into_things(), of_entries, of_processes }
    }
}

fn frame(picture: &Picture<'_>, entry: Entry) -> Frame {
    let facts = entry.frame().and_then(|frame| picture.profile().stacks.frame(frame));
    // Code without a name that is one entry may be of many files.
    let line = facts.and_then(|frame| frame.line.as_ref());
    Frame {
        name: one_line(&picture.labels.label(entry).text).into_owned(),
        file: line.map(|line| one_line(&line.file).into_owned()),
    }
}

/// Writes profiles.
struct Stacks<'p> {
    picture: &'p Picture<'p>,
    frames: Frames,
    values: Values,
    cutter: Cutter,
}

impl Stacks<'_> {
    fn write(&mut self, mut out: &mut dyn Write, name: &str, spent: &[Spent]) -> io::Result<()> {
        write!(out, "{{\"type\":\"sampled\",\"name\":")?;
        json_element(&mut out, &name)?;
        // speedscope refuses what is negative.
        let weights = spent.iter().map(|spent| self.values.value(spent.value).max(0));
        let weights: Vec<i64> = weights.collect();
        let end = weights.iter().fold(0, |sum: i64, weight| sum.saturating_add(*weight));
        // It knows no unit of things.
        let unit = if self.values.unit == "count" { "none" } else { self.values.unit };
        write!(out, ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{end},\"samples\":[")?;
        for (index, spent) in spent.iter().enumerate() {
            write!(out, "{}", if index == 0 { "\n" } else { ",\n" })?;
            json_element(&mut out, &self.stack(spent))?;
        }
        write!(out, "\n],\"weights\":[")?;
        for (index, weight) in weights.iter().enumerate() {
            write!(out, "{}{weight}", if index == 0 { "" } else { "," })?;
        }
        write!(out, "]}}")
    }

    /// The stack of what was spent, from its root on.
    fn stack(&mut self, spent: &Spent) -> Vec<u32> {
        let frames = &self.frames;
        let code = self.picture.arranged.counts.path(spent.node);
        let mut stack = self.cutter.cut(code.filter_map(|node| frames.of_entries.get(&node.entry).copied()));
        stack.extend(spent.process.and_then(|process| frames.of_processes.get(process)));
        stack.reverse();
        stack
    }
}
