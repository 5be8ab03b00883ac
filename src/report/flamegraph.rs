//! Flame graphs as SVG, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, TextTruncateDirection};

use crate::profile::{CallTree, Category};

use super::folded;
use super::text::{count, one_line};

/// What is written over the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The title.
    pub title: String,
    /// The line under it; empty for none.
    pub subtitle: String,
}

/// Writes `tree` as a flame graph with the callers on top: a stack of a hundred frames would otherwise open on an
/// empty page.
///
/// Frames are coloured by the kind of code. A tree without samples gives a graph that says so.
pub fn write(out: &mut impl Write, tree: &CallTree, options: &Options) -> io::Result<()> {
    let mut lines: Vec<String> = folded::lines(tree).collect();
    // inferno wants sorted lines, and would refuse none at all.
    lines.sort_unstable();
    if lines.is_empty() {
        return empty(out, options);
    }
    let mut palette = palette(tree);
    let mut inferno = inferno::flamegraph::Options::default();
    inferno.title = one_line(&options.title).into_owned();
    inferno.subtitle = Some(one_line(&options.subtitle).into_owned()).filter(|subtitle| !subtitle.is_empty());
    inferno.count_name = "samples".to_owned();
    inferno.notes = format!("{} samples", count(tree.total()));
    inferno.direction = Direction::Inverted;
    inferno.text_truncate_direction = TextTruncateDirection::Right;
    inferno.bgcolors = Some(BackgroundColor::Flat(Color { r: 250, g: 250, b: 250 }));
    inferno.palette_map = Some(&mut palette);
    inferno.no_sort = true;
    inferno::flamegraph::from_lines(&mut inferno, lines.iter().map(String::as_str), out)
}

/// What inferno calls the frame of all samples inside; it shows as "all".
const ROOT: &str = "";

fn palette(tree: &CallTree) -> PaletteMap {
    let mut palette = PaletteMap::default();
    palette.insert(ROOT, colour(Category::Heading, ROOT));
    for (_, node) in tree.nodes() {
        if let Some(frame) = tree.frame(node) {
            let name = folded::name(frame);
            let colour = colour(frame.category, &name);
            palette.insert(name, colour);
        }
    }
    palette
}

/// The kind of code gives the hue, the name a shade of it, so that neighbours can be told apart.
fn colour(category: Category, name: &str) -> Color {
    let shade = (name.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte)) % 40) as u8;
    let (r, g, b) = match category {
        Category::Heading => (200, 200, 205),
        Category::Kernel => (215 + shade, 130 + shade, 60),
        Category::Native => (100 + shade, 150 + shade, 215 + shade),
        Category::ManagedJit => (80 + shade, 185 + shade, 80 + shade),
        Category::ManagedPrecompiled => (140 + shade, 190 + shade, 95 + shade),
        Category::Runtime => (125 + shade, 130 + shade, 200 + shade),
        Category::Gc => (195 + shade, 90 + shade, 165 + shade),
        Category::JitCompiler => (60 + shade, 175 + shade, 185 + shade),
        Category::Stub => (155 + shade, 180 + shade, 155 + shade),
        Category::JavaScript => (205 + shade, 195 + shade, 70),
        Category::Unresolved => (150 + shade, 150 + shade, 150 + shade),
    };
    Color { r, g, b }
}

fn empty(out: &mut impl Write, options: &Options) -> io::Result<()> {
    let title = one_line(&options.title).replace(['<', '>', '&'], "");
    writeln!(
        out,
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="80" viewBox="0 0 1200 80">
<rect width="100%" height="100%" fill="#eeeeee"/>
<text x="600" y="32" text-anchor="middle" font-family="monospace" font-size="17">{title}</text>
<text x="600" y="58" text-anchor="middle" font-family="monospace" font-size="12">no samples</text>
</svg>"##
    )
}
