//! The flame graph as most people know it: the callers at the bottom, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::TextTruncateDirection;
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::{Category, Entry};
use crate::report::colours::{self, Rgb};
use crate::report::folded;
use crate::report::format::{Format, Picture};
use crate::report::label::Labels;
use crate::report::spelling::Spelling;
use crate::report::text::{one_line, signed};

use super::{Options, titles};

/// The format.
pub const FORMAT: Format = Format {
    name: "flame",
    endings: &[".flame.svg"],
    about: "Flame graph with the callers at the bottom",
    write,
    ..super::FORMAT
};

/// What inferno calls the box of all samples inside; it shows as "all".
const ALL: &str = "";

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let (tree, labels) = (&picture.arranged.counts, picture.labels);
    let names = folded::names(tree, labels);
    // What is negative has no width.
    let is_negative = |line: &String| line.rsplit_once(' ').is_some_and(|(_, value)| value.starts_with('-'));
    let mut lines: Vec<String> = folded::lines(tree, &names).filter(|line| !is_negative(line)).collect();
    let options = titles(picture);
    if lines.is_empty() {
        // inferno draws nothing then.
        return super::write(&mut { out }, picture.arranged, labels, &options);
    }
    // It wants sorted lines.
    lines.sort_unstable();
    let mut palette = palette(&names, labels);
    let mut inferno = inferno::flamegraph::Options::default();
    inferno.title = one_line(&options.title).into_owned();
    inferno.subtitle = Some(subtitle(&options, picture));
    inferno.count_name = "samples".to_owned();
    inferno.notes = format!("{} samples", signed(tree.total()));
    inferno.text_truncate_direction = TextTruncateDirection::Left;
    inferno.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    inferno.palette_map = Some(&mut palette);
    inferno.no_sort = true;
    inferno::flamegraph::from_lines(&mut inferno, lines.iter().map(String::as_str), out)
}

/// The second line, with the colours of the kinds of code that samples end in.
fn subtitle(options: &Options, picture: &Picture<'_>) -> String {
    let nodes = picture.arranged.counts.nodes().filter(|(_, node)| node.exclusive() > 0);
    let own: FxHashSet<Category> = nodes.map(|(_, node)| picture.labels.label(node.entry).category).collect();
    let kinds = Category::CODE.into_iter().filter(|kind| own.contains(kind));
    let legend = kinds.map(|kind| format!("{} {}", colours::of(kind).name, kind.text()));
    let legend = legend.collect::<Vec<_>>().join(", ");
    let parts = [&options.subtitle, &options.chosen, &legend].map(|part| one_line(part).into_owned());
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn palette(names: &FxHashMap<Entry, String>, labels: &Spelling<'_>) -> PaletteMap {
    let mut palette = PaletteMap::default();
    let colour = |category| {
        let Rgb(r, g, b) = colours::of(category).light;
        Color { r, g, b }
    };
    palette.insert(ALL, colour(Category::Heading));
    for (entry, name) in names {
        palette.insert(name.clone(), colour(labels.label(*entry).category));
    }
    palette
}
