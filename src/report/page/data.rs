//! The data of a page.
//!
//! It lies in the page as base64 of gzip. Unpacked, it is a line of JSON, the [`Head`], and behind its line feed columns of
//! numbers ([`Column`]), one after the other without a gap:
//!
//! 1. for the nodes of the call tree ([`Tree`]): `up`, `name`;
//! 2. for their parts: `step`, `above`, `line`;
//! 3. for each thread, in the order of the head, its records ([`Threads`]): `cell`, `part`, `samples`, and `value` unless
//!    the head says what each sample stands for.
//!
//! The head says how many numbers each column has. The sum of all values is the CPU time of the kept samples.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::{Compression, GzBuilder};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::profile::{Arranged, Category, Shape, Unit};
use crate::report::colours;
use crate::report::format::Picture;
use crate::report::named::NamesOf;
use crate::report::spelling::Spelling;
use crate::report::text::{one_line, time_of_day, time_zone};

use super::counters::{Counter, counters};
use super::facts::Facts;
use super::lanes::{Lane, lanes};
use super::threads::Threads;
use super::tree::Tree;

#[cfg(doc)]
use super::column::Column;

/// What stands before the columns.
#[derive(Serialize)]
struct Head<'a> {
    /// What was recorded.
    title: &'a str,
    metric: Metric,
    /// All kept samples.
    samples: i64,
    /// What they stand for.
    total: i64,
    /// What each stands for, if that is the same for all.
    each: Option<i64>,
    /// Logical processors.
    processors: u32,
    clock: Clock,
    /// The tree was asked for with callees first.
    inverted: bool,
    categories: Vec<Kind>,
    names: Names<'a>,
    lines: Lines<'a>,
    processes: Vec<Cow<'a, str>>,
    threads: Vec<ThreadHead<'a>>,
    /// What happened beside the CPU use.
    lanes: Vec<Lane>,
    /// What was counted beside the samples.
    counters: Vec<Counter<'a>>,
    nodes: usize,
    parts: usize,
    facts: Facts,
}

/// What is counted.
#[derive(Serialize)]
struct Metric {
    name: &'static str,
    /// `time` in 100 ns, `bytes` or `count`.
    unit: &'static str,
}

/// Times in 100 ns; moments count from the recording's first record.
#[derive(Serialize)]
struct Clock {
    /// When the first cell begins.
    start: i64,
    /// How long all cells are.
    length: i64,
    cell: i64,
    cells: i64,
    /// What the wall clock showed at the first record.
    time_of_day: String,
    zone: String,
}

/// A kind of code.
#[derive(Serialize)]
struct Kind {
    name: &'static str,
    /// As `#rrggbb`, on a light and on a dark page.
    colours: [String; 2],
}

/// The names of functions, as columns.
#[derive(Default, Serialize)]
struct Names<'a> {
    text: Vec<Cow<'a, str>>,
    /// Indices into [`Head::categories`].
    category: Vec<usize>,
    /// Why it is no name; empty for one.
    unnamed: Vec<&'static str>,
}

/// Source lines, as columns.
#[derive(Default, Serialize)]
struct Lines<'a> {
    files: Vec<Cow<'a, str>>,
    /// Indices into `files`.
    file: Vec<usize>,
    /// From 1.
    line: Vec<u32>,
}

#[derive(Serialize)]
struct ThreadHead<'a> {
    process: usize,
    name: Cow<'a, str>,
    records: usize,
}

/// Writes the data of a picture.
pub(super) fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    // The page turns the tree over itself.
    let upright = upright(picture);
    let (arranged, labels) = match &upright {
        Some((arranged, labels)) => (arranged, labels),
        None => (picture.arranged, picture.labels),
    };
    let names = NamesOf::new(arranged, labels);
    let timeline = picture.timeline(1);
    let tree = Tree::new(picture, arranged, &names);
    let threads = Threads::new(picture.profile(), arranged, labels, &timeline, &tree);
    let profile = picture.profile();
    let clock = &profile.trace.clock;
    let subject = picture.subject(&timeline);
    let head = Head {
        title: &one_line(&subject),
        metric: Metric {
            name: profile.metric.name,
            unit: match profile.metric.unit {
                Unit::Time => "time",
                Unit::Bytes => "bytes",
                Unit::Count => "count",
            },
        },
        samples: arranged.counts.total(),
        total: arranged.values.total(),
        each: threads.each,
        processors: profile.trace.machine.processors,
        clock: Clock {
            start: threads.start,
            length: threads.length,
            cell: threads.cell,
            cells: threads.cells(),
            time_of_day: time_of_day(clock, clock.base),
            zone: time_zone(clock),
        },
        inverted: picture.shape.inverted,
        categories: categories().map(Kind::of).collect(),
        names: Names::new(&names, labels),
        lines: Lines::new(&tree),
        processes: threads.processes.iter().map(|name| one_line(name)).collect(),
        threads: threads
            .threads
            .iter()
            .map(|thread| ThreadHead {
                process: thread.process,
                name: one_line(&thread.name),
                records: thread.records,
            })
            .collect(),
        lanes: lanes(profile, &threads),
        counters: counters(profile, &threads),
        nodes: tree.nodes,
        parts: tree.parts,
        facts: Facts::new(picture, arranged, labels, &names, &timeline),
    };
    let base64 = EncoderWriter::new(out, &STANDARD);
    let mut out = GzBuilder::new().write(base64, Compression::default());
    serde_json::to_writer(&mut out, &head)?;
    out.write_all(b"\n")?;
    for column in [&tree.up, &tree.name, &tree.step, &tree.above, &tree.line] {
        out.write_all(column.bytes())?;
    }
    for thread in &threads.threads {
        for column in [&thread.cell, &thread.part, &thread.samples, &thread.value] {
            out.write_all(column.bytes())?;
        }
    }
    out.finish()?.finish()?;
    Ok(())
}

/// The same samples with callers first, where the picture has callees first.
fn upright<'p>(picture: &Picture<'p>) -> Option<(Arranged, Spelling<'p>)> {
    if !picture.shape.inverted {
        return None;
    }
    let arranged = (picture.arrange)(&Shape { inverted: false, ..picture.shape.clone() });
    let labels = picture.labels.clone().with_groups(&arranged.groups);
    Some((arranged, labels))
}

fn categories() -> impl Iterator<Item = Category> {
    [Category::Heading].into_iter().chain(Category::CODE)
}

impl Kind {
    fn of(category: Category) -> Kind {
        let colour = colours::of(category);
        Kind { name: category.text(), colours: [colour.light.to_string(), colour.dark.to_string()] }
    }
}

impl<'a> Names<'a> {
    fn new(names: &'a NamesOf, labels: &Spelling<'_>) -> Names<'a> {
        let mut all = Names::default();
        for (_, name) in names.all() {
            all.text.push(one_line(&name.text));
            all.category.push(categories().position(|kind| kind == name.category).unwrap_or(0));
            all.unnamed.push(labels.unnamed(name.entry).map_or("", |why| why.text()));
        }
        all
    }
}

impl<'a> Lines<'a> {
    fn new(tree: &Tree<'a>) -> Lines<'a> {
        let mut all = Lines::default();
        let mut files: FxHashMap<&str, usize> = FxHashMap::default();
        for line in &tree.lines {
            let file = *files.entry(&line.file).or_insert_with(|| {
                all.files.push(one_line(&line.file));
                all.files.len() - 1
            });
            all.file.push(file);
            all.line.push(line.line);
        }
        all
    }
}
