//! Folded stacks: one line for each distinct stack, `root;caller;callee count`.

use std::io::{self, Write};

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::profile::{CallTree, Category};

use super::format::{Content, Format, Needs, Picture, Tops};
use super::label::{Label, Labels};
use super::text::one_line;

/// The format.
pub const FORMAT: Format = Format {
    name: "folded",
    endings: &[".folded", ".txt"],
    about: "Folded stacks",
    viewers: "flamegraph.pl, inferno, speedscope, Firefox Profiler, Perfetto",
    content: Content::Plain,
    tops: Tops::AsAsked,
    needs: Needs::NOTHING,
    write: write_picture,
};

fn write_picture(mut out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    write(&mut out, &picture.arranged.counts, picture.labels)
}

/// Writes every node in which something ends, in the tree's order.
pub fn write<E: Copy + Eq + Hash>(
    out: &mut impl Write,
    tree: &CallTree<E>,
    labels: &impl Labels<E>,
) -> io::Result<()> {
    for line in lines(tree, &names(tree, labels)) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The names of the entries of `tree` in the format: an entry stands in many lines.
pub(super) fn names<E: Copy + Eq + Hash>(
    tree: &CallTree<E>,
    labels: &impl Labels<E>,
) -> FxHashMap<E, String> {
    let mut names = FxHashMap::default();
    for (_, node) in tree.nodes() {
        names.entry(node.entry).or_insert_with(|| name(&labels.label(node.entry)));
    }
    names
}

/// The lines of the format.
pub(super) fn lines<'t, E: Copy + Eq + Hash>(
    tree: &'t CallTree<E>,
    names: &'t FxHashMap<E, String>,
) -> impl Iterator<Item = String> + 't {
    tree.nodes().filter(|(_, node)| node.leaf != 0).map(|(id, node)| {
        let mut path: Vec<&str> =
            tree.path(id).filter_map(|node| names.get(&node.entry)).map(String::as_str).collect();
        path.reverse();
        format!("{} {}", path.join(";"), node.leaf)
    })
}

/// A label's text with nothing in it that means something in the format: `;` parts frames (`[u8; 8]` has one), a line
/// that starts with `#` is a remark, and a number behind a blank is a count: of two the first is that of a run to compare
/// with. A function `adds 400` keeps its look with a no-break space. No sample ends in a heading (`thread 12`).
fn name(label: &Label<'_>) -> String {
    let text = one_line(&label.text).replace(';', ":");
    let text = match text.strip_prefix('#') {
        Some(rest) => format!("＃{rest}"),
        None => text,
    };
    match text.trim_end().rsplit_once(' ') {
        Some((name, number))
            if label.category != Category::Heading
                && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            format!("{name}\u{a0}{number}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::name;
    use crate::profile::Category;
    use crate::report::Label;

    fn named(text: &str, category: Category) -> String {
        name(&Label { text: text.into(), category, inlined: false })
    }

    #[test]
    fn names_cannot_break_the_format() {
        for (text, written) in [
            ("a!f<[u8; 8]>", "a!f<[u8: 8]>"),
            ("# x", "＃ x"),
            ("two\nlines", "two?lines"),
            ("M!adds 400", "M!adds\u{a0}400"),
            ("M!adds 4.5 ", "M!adds\u{a0}4.5"),
            ("M!adds 400 x", "M!adds 400 x"),
        ] {
            assert_eq!(named(text, Category::Native), written);
        }
        assert_eq!(named("thread 12", Category::Heading), "thread 12");
    }
}
