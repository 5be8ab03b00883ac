//! The differential flame graph, drawn by inferno: what grew is red, what shrank is blue.

use std::io::{self, Write};

use inferno::flamegraph::TextTruncateDirection;
use inferno::flamegraph::color::{BackgroundColor, Color};

use crate::compare::{NameId, Names, Together};
use crate::profile::Metric;
use crate::report::folded;
use crate::report::label::{Label, Labels};
use crate::report::text::one_line;

/// Names as labels.
struct Labelled<'n>(&'n Names);

impl Labels<NameId> for Labelled<'_> {
    fn label(&self, id: NameId) -> Label<'_> {
        let name = self.0.get(id);
        Label {
            text: name.map_or("", |name| name.label.as_str()).into(),
            category: name.map_or(crate::profile::Category::Heading, |name| name.category),
            inlined: false,
        }
    }
}

/// Writes both sides as an SVG. Boxes are as wide as the time of the second side; what is on the first side only has no box.
/// `scale` makes the first comparable.
pub fn write_graph(
    out: &mut dyn Write,
    names: &Names,
    together: &Together,
    metric: Metric,
    scale: f64,
    title: &str,
) -> io::Result<()> {
    let texts = folded::names(&together.tree, &Labelled(names));
    let mut lines: Vec<String> = Vec::new();
    for (id, _) in together.tree.nodes() {
        let us = |ns: f64| (ns / 1e3).round().max(0.0) as u64;
        let ends =
            |values: &crate::profile::Values| values.node(id).map_or(0, |value| value.exclusive()) as f64;
        let (before, after) = (us(scale * ends(&together.before)), us(ends(&together.after)));
        if before > 0 || after > 0 {
            let path = together.tree.path(id).filter_map(|node| texts.get(&node.entry));
            let mut path: Vec<&str> = path.map(String::as_str).collect();
            path.reverse();
            lines.push(format!("{} {before} {after}", path.join(";")));
        }
    }
    lines.sort_unstable();
    let mut inferno = inferno::flamegraph::Options::default();
    inferno.title = one_line(title).into_owned();
    inferno.subtitle = Some(format!(
        "red: more {} of its own, blue: less; widths are those of the second side",
        metric.name
    ));
    inferno.count_name = "µs".to_owned();
    inferno.text_truncate_direction = TextTruncateDirection::Left;
    inferno.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    inferno.no_sort = true;
    inferno::flamegraph::from_lines(&mut inferno, lines.iter().map(String::as_str), out)
}
