//! Folded stacks: one line for each distinct stack, `root;caller;callee count`.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::profile::{CallTree, Category, Frame, FrameId, Node};

use super::text::one_line;

/// Writes every node in which samples end, in the tree's order.
pub fn write(out: &mut impl Write, tree: &CallTree) -> io::Result<()> {
    for line in lines(tree) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The lines of the format.
pub(super) fn lines<'t>(tree: &'t CallTree<'_>) -> impl Iterator<Item = String> + 't {
    // A frame stands in many lines.
    let mut names: FxHashMap<FrameId, String> = FxHashMap::default();
    for (_, node) in tree.nodes() {
        names.entry(node.frame).or_insert_with(|| tree.frame(node).map(name).unwrap_or_default());
    }
    let leaves = tree.nodes().filter(|(_, node)| node.leaf > 0);
    leaves.map(move |(_, node)| {
        let up = |node: &&Node| tree.node(node.parent?);
        let path = std::iter::successors(Some(node), up);
        let mut frames: Vec<&str> =
            path.filter_map(|node| names.get(&node.frame)).map(String::as_str).collect();
        frames.reverse();
        format!("{} {}", frames.join(";"), node.leaf)
    })
}

/// A frame's text with nothing in it that means something in the format: `;` parts frames (`[u8; 8]` has one), a line
/// that starts with `#` is a remark, and a number behind a blank is a count: of two the first is that of a run to compare
/// with. A function `adds 400` keeps its look with a no-break space. No sample ends in a heading (`thread 12`).
pub(super) fn name(frame: &Frame) -> String {
    let text = one_line(&frame.text).replace(';', ":");
    let text = match text.strip_prefix('#') {
        Some(rest) => format!("＃{rest}"),
        None => text,
    };
    match text.trim_end().rsplit_once(' ') {
        Some((name, number))
            if frame.category != Category::Heading
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
    use crate::profile::{Category, Frame};

    fn named(text: &str, category: Category) -> String {
        name(&Frame { text: text.into(), category, module: None, inlined: false, unresolved: None })
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
