//! Flame graphs as SVG, in the colours of the console and the page.
//!
//! The file is a picture for whatever shows SVG. In a browser its script fits it to the window, and adds zoom, search and
//! a switch between the two directions. Names from recordings are text in it, never markup.

mod boxes;
#[cfg(feature = "flamegraph")]
pub mod classic;

use std::hash::Hash;
use std::io::{self, Write};

use crate::profile::{Arranged, Category, Counted, Metric};

use super::colours;
use super::console::middle;
use super::format::{Content, Format, Needs, Picture, Tops};
use super::label::Labels;
use super::narrow::narrow;
use super::text::{self, count, duration, one_line, signed};
use boxes::{Boxes, Drawing, Drawn};

/// The callers on top: the format of most people, as a stack of a hundred frames would otherwise open on an empty page.
pub const FORMAT: Format = Format {
    name: "svg",
    endings: &[".svg"],
    about: "Flame graph with the callers on top",
    viewers: "any browser",
    content: Content::Plain,
    tops: Tops::AsAsked,
    needs: Needs::NOTHING,
    write: |mut out, picture| write(&mut out, picture.arranged, picture.labels, &titles(picture)),
};

fn titles(picture: &Picture<'_>) -> Options {
    let (arranged, timeline) = (picture.arranged, picture.timeline(1));
    let seconds = |time: i64| time as f64 / 1e7;
    let (samples, time) = (signed(arranged.counts.total()), duration(seconds(arranged.values.total())));
    let metric = picture.profile().metric;
    let mut subtitle = match metric.counted {
        Counted::Samples if metric == Metric::CPU => format!("{samples} samples, {time} of CPU"),
        _ => {
            let amount = text::amount(metric, arranged.values.total());
            let amount = amount.map(|amount| format!(", {amount}")).unwrap_or_default();
            format!("{}{amount}", text::samples(arranged.balance.kept, metric))
        }
    };
    subtitle += &format!(" in {}", duration(seconds(timeline.length)));
    if let (Some(_), _) | (_, Some(_)) = picture.range {
        let (start, end) = (timeline.start, timeline.start.saturating_add(timeline.length));
        subtitle += &format!(" ({:.2}–{:.2} s)", seconds(start), seconds(end));
    }
    Options {
        title: format!("{}: {}", super::text::capital(metric.name), picture.subject(&timeline)),
        subtitle,
        chosen: picture.chosen.to_owned(),
        metric,
        inverted: picture.shape.inverted,
    }
}

/// What is written over the graph, and how it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The title.
    pub title: String,
    /// The line under it; empty for none.
    pub subtitle: String,
    /// What of a recording is shown, if it is not all: a line under both.
    pub chosen: String,
    /// What the values are.
    pub metric: Metric,
    /// The tree begins with the leaves.
    pub inverted: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (title, subtitle, chosen) = Default::default();
        Options { title, subtitle, chosen, metric: Metric::CPU, inverted: false }
    }
}

/// Columns of the drawing without a browser, in pixels.
const WIDTH: f64 = 1200.0;
/// Left and right of it.
const MARGIN: f64 = 10.0;
/// A row of boxes.
const ROW: usize = 17;
/// A line of the head.
const LINE: usize = 18;
/// Of a letter: 12 pixels high, of a font whose letters are as wide as each other.
const LETTER: f64 = 7.23;
/// A box that would be narrower is not drawn.
const NARROWEST: f64 = 0.1;

/// Writes a tree as a flame graph. Frames have the colour of their kind of code, which the legend explains. A narrow box
/// shows the method and not its module. A tree without samples gives a graph that says so.
pub fn write<E: Copy + Eq + Hash>(
    out: &mut impl Write,
    arranged: &Arranged<E>,
    labels: &impl Labels<E>,
    options: &Options,
) -> io::Result<()> {
    let boxes = Boxes::new(arranged, labels);
    let least = (boxes.total() as f64 * NARROWEST / (WIDTH - 2.0 * MARGIN)).ceil().max(1.0);
    let Drawing { boxes: drawn, hidden } = boxes.draw(least as i64);
    let legend = boxes.legend(&drawn, options.inverted);
    let depth = drawn.iter().map(|drawn| drawn.depth + 1).max().unwrap_or(1);
    let head = Head::new(options, &legend, hidden);
    let height = head.height() + depth * ROW + LINE;
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" data-row=\"{ROW}\" data-letter=\"{LETTER}\">"
    )?;
    writeln!(out, "<title>{}</title>", xml(&options.title))?;
    style(out, &legend)?;
    writeln!(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n<g id=\"boxes\">")?;
    let scale = (WIDTH - 2.0 * MARGIN) / boxes.total().max(1) as f64;
    for drawn in &drawn {
        write_box(out, &boxes, drawn, scale, head.height() + drawn.depth * ROW, options.metric)?;
    }
    writeln!(out, "</g>")?;
    head.write(out)?;
    if boxes.total() == 0 {
        writeln!(out, "<text class=\"none\" x=\"600\" y=\"{}\">no samples</text>", height - 6)?;
    }
    let script = concat!("'use strict'\n", include_str!("../narrow.js"), include_str!("flamegraph.js"));
    writeln!(out, "<script><![CDATA[\n{script}]]></script>\n</svg>")
}

fn write_box<E: Copy + Eq + Hash>(
    out: &mut impl Write,
    boxes: &Boxes<'_, '_, E>,
    drawn: &Drawn,
    scale: f64,
    y: usize,
    metric: Metric,
) -> io::Result<()> {
    let Some(label) = boxes.label(drawn) else { return Ok(()) };
    let (x, width) = (MARGIN + drawn.start as f64 * scale, drawn.samples as f64 * scale);
    let name = xml(&label.text);
    let class = class(label.category);
    let (depth, samples) = (drawn.depth, drawn.samples);
    writeln!(out, "<g class=\"{class}\" data-d=\"{depth}\" data-n=\"{samples}\"><title>{name}")?;
    let percent = 100.0 * samples as f64 / boxes.total().max(1) as f64;
    let inlined = if label.inlined { "inlined, " } else { "" };
    write!(out, "{inlined}{percent:.2} %")?;
    if metric.counted == Counted::Samples {
        let noun = if metric == Metric::CPU { plural(samples) } else { metric.samples };
        write!(out, ", {} {noun}", count(samples.unsigned_abs()))?;
    }
    if let Some(amount) = text::amount(metric, drawn.value) {
        write!(out, ", {amount}")?;
    }
    if drawn.own > 0 && drawn.own < samples {
        write!(out, "; {:.2} % in itself", 100.0 * drawn.own as f64 / boxes.total().max(1) as f64)?;
    }
    write!(out, "</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"/>", ROW - 1)?;
    let columns = ((width - 6.0) / LETTER).max(0.0) as usize;
    if columns >= 3 {
        let text = match label.category {
            Category::Heading => middle(&one_line(&label.text), columns).into(),
            _ => narrow(&label.text, columns),
        };
        write!(out, "<text x=\"{:.2}\" y=\"{}\">{}</text>", x + 3.0, y + 12, xml(&text))?;
    }
    writeln!(out, "</g>")
}

fn plural(samples: i64) -> &'static str {
    if samples == 1 { "sample" } else { "samples" }
}

/// What stands over the boxes.
struct Head<'l> {
    title: String,
    lines: Vec<String>,
    legend: &'l [(Category, f64)],
    rows: usize,
}

impl<'l> Head<'l> {
    fn new(options: &Options, legend: &'l [(Category, f64)], hidden: usize) -> Head<'l> {
        let mut subtitle = options.subtitle.clone();
        if hidden > 0 {
            let separator = if subtitle.is_empty() { "" } else { "; " };
            let noun = if hidden == 1 { "box is" } else { "boxes are" };
            subtitle += &format!("{separator}{} {noun} too narrow to be drawn", count(hidden as u64));
        }
        let lines = [&subtitle, &options.chosen].into_iter().filter(|line| !line.is_empty());
        let mut head = Head {
            title: xml(&options.title),
            lines: lines.map(|line| xml(line)).collect(),
            legend,
            rows: 0,
        };
        head.rows = head.keys().last().map_or(0, |(_, row, _)| row + 1);
        head
    }

    fn height(&self) -> usize {
        30 + (self.lines.len() + self.rows) * LINE + 6
    }

    /// The entries of the legend, with their places: pixels from the left, row, text.
    fn keys(&self) -> impl Iterator<Item = (f64, usize, String)> {
        let (mut x, mut row) = (MARGIN, 0);
        self.legend.iter().map(move |(category, percent)| {
            let text = format!("{} {percent:.1} %", category.text());
            let width = 16.0 + (text.chars().count() + 2) as f64 * LETTER;
            if x + width > WIDTH - MARGIN && x > MARGIN {
                (x, row) = (MARGIN, row + 1);
            }
            let at = x;
            x += width;
            (at, row, text)
        })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let height = self.height();
        writeln!(out, "<g id=\"head\"><rect class=\"page\" width=\"100%\" height=\"{height}\"/>")?;
        writeln!(out, "<text class=\"title\" x=\"{MARGIN}\" y=\"24\">{}</text>", self.title)?;
        for (number, line) in self.lines.iter().enumerate() {
            writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\">{line}</text>", 42 + number * LINE)?;
        }
        let top = 30 + self.lines.len() * LINE;
        writeln!(out, "<g id=\"legend\" data-y=\"{top}\">")?;
        for ((category, _), (x, row, text)) in self.legend.iter().zip(self.keys()) {
            let y = top + row * LINE;
            let class = class(*category);
            writeln!(
                out,
                "<g class=\"{class}\" transform=\"translate({x:.2} {y})\"><title>samples that end in code of this kind\
                 </title><rect y=\"3\" width=\"11\" height=\"11\"/><text x=\"16\" y=\"12\">{text}</text></g>",
            )?;
        }
        writeln!(out, "</g></g>")
    }
}

/// The class of the boxes of a kind of code.
fn class(category: Category) -> String {
    category.text().replace(' ', "-").to_lowercase()
}

fn style(out: &mut impl Write, legend: &[(Category, f64)]) -> io::Result<()> {
    writeln!(out, "<style>\n{}", include_str!("flamegraph.css"))?;
    let categories = || [Category::Heading].into_iter().chain(legend.iter().map(|(category, _)| *category));
    for category in categories() {
        writeln!(out, ".{} rect {{ fill: {} }}", class(category), colours::of(category).light)?;
    }
    writeln!(out, "@media (prefers-color-scheme: dark) {{")?;
    for category in categories() {
        writeln!(out, ".{} rect {{ fill: {} }}", class(category), colours::of(category).dark)?;
    }
    writeln!(out, "}}\n</style>")
}

/// Text on one line between tags.
fn xml(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
