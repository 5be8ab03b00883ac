//! Folded stacks: one line for each distinct stack, `root;caller;callee count`.

use std::io::{self, Write};

use crate::profile::CallTree;

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
    let leaves = tree.nodes().filter(|(_, node)| node.leaf > 0);
    leaves.map(|(id, node)| {
        let mut frames: Vec<String> = tree.path(id).map(|frame| name(&frame.text)).collect();
        frames.reverse();
        format!("{} {}", frames.join(";"), node.leaf)
    })
}

/// A frame's text with nothing in it that means something in the format: `;` parts frames (`[u8; 8]` has one), and a
/// line that starts with `#` is a remark.
pub(super) fn name(text: &str) -> String {
    let text = one_line(text).replace(';', ":");
    match text.strip_prefix('#') {
        Some(rest) => format!("＃{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_cannot_break_the_format() {
        assert_eq!(name("a!f<[u8; 8]>"), "a!f<[u8: 8]>");
        assert_eq!(name("# x"), "＃ x");
        assert_eq!(name("two\nlines"), "two?lines");
    }
}
