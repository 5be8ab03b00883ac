//! The call tree on a console.
//!
//! Deep stacks are mostly chains: one caller, one callee, a hundred times. Indenting each step would push the text off
//! the screen, so a chain stays in one column, and indentation grows only where the tree branches:
//!
//! ```text
//!   100.0%  1,000      0  orders.exe (4210)
//!   100.0%  1,000      0  ntdll!RtlUserThreadStart
//!    70.0%    700     10  ├─ orders!Work
//!    69.0%    690    690  │  orders!Hash
//!    30.0%    300    300  └─ orders!Wait
//! ```

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use console::truncate_str;

use crate::prefix_tree::NodeId;
use crate::profile::{CallTree, Category, Node};

use super::text::{count, one_line};

/// How much of the tree to show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Leave out nodes with a smaller inclusive share of all samples, in percent.
    pub min_percent: f64,
    /// Leave out nodes deeper than this many frames.
    pub max_depth: Option<usize>,
    /// Cut lines at this many columns.
    pub width: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options { min_percent: 1.0, max_depth: None, width: None }
    }
}

const DIM: Style = Style::new().dimmed();
const HOT: Style = AnsiColor::Red.on_default().bold();
const WARM: Style = AnsiColor::Yellow.on_default();

/// The colour of a kind of code; the flame graph has the same.
fn style(category: Category) -> Style {
    match category {
        Category::Heading => Style::new().bold(),
        Category::Kernel => AnsiColor::Yellow.on_default(),
        Category::Native => AnsiColor::Blue.on_default(),
        Category::ManagedJit => AnsiColor::Green.on_default(),
        Category::ManagedPrecompiled => AnsiColor::BrightGreen.on_default(),
        Category::Runtime => AnsiColor::BrightBlue.on_default(),
        Category::Gc => AnsiColor::Magenta.on_default(),
        Category::JitCompiler => AnsiColor::Cyan.on_default(),
        Category::Stub => AnsiColor::Green.on_default().dimmed(),
        Category::JavaScript => AnsiColor::BrightYellow.on_default(),
        Category::Unresolved => AnsiColor::BrightBlack.on_default(),
    }
}

/// Writes `tree`. Styles are ANSI sequences; a stream that does not want them strips them.
pub fn write(out: &mut impl Write, tree: &CallTree, options: &Options) -> io::Result<()> {
    let widest = count(tree.total()).len().max("exclusive".len());
    let mut printer = Printer { tree, options, widest, out };
    printer.header()?;
    printer.run()
}

struct Printer<'a, W> {
    tree: &'a CallTree<'a>,
    options: &'a Options,
    /// The width of the columns of counts.
    widest: usize,
    out: &'a mut W,
}

/// A line still to be written.
enum Line {
    Node { id: NodeId, indent: String, connector: &'static str, depth: usize },
    Hidden { nodes: usize, samples: u64, indent: String, connector: &'static str },
}

impl<W: Write> Printer<'_, W> {
    fn header(&mut self) -> io::Result<()> {
        let width = self.widest;
        let heading = format!("{:>7}  {:>width$}  {:>width$}  function", "", "inclusive", "exclusive");
        self.line(&format!("{DIM}{heading}{DIM:#}"))
    }

    /// A line, cut where the terminal ends.
    fn line(&mut self, line: &str) -> io::Result<()> {
        match self.options.width {
            Some(width) => writeln!(self.out, "{}", truncate_str(line, width, "…")),
            None => writeln!(self.out, "{line}"),
        }
    }

    /// Walks the tree with a stack of its own: a trace may be deeper than the program's.
    fn run(&mut self) -> io::Result<()> {
        let mut lines = Vec::new();
        let total = self.tree.total();
        if self.tree.roots().len() != 1 {
            let (width, total) = (self.widest, count(total));
            self.line(&format!("{:>6.1}%  {total:>width$}  {:>width$}  all processes", 100.0, 0))?;
        }
        self.push_children(&mut lines, self.tree.roots(), total, "", 0);
        while let Some(line) = lines.pop() {
            match line {
                Line::Hidden { nodes, samples, indent, connector } => {
                    self.hidden(nodes, samples, &indent, connector)?;
                }
                Line::Node { id, indent, connector, depth } => {
                    let Some(node) = self.tree.node(id) else { continue };
                    self.node(node, &indent, connector)?;
                    let below = format!("{indent}{}", continuation(connector));
                    self.push_children(&mut lines, self.tree.children(node), node.node, &below, depth + 1);
                }
            }
        }
        Ok(())
    }

    /// Puts what is to be shown of `children` on `lines`, the first on top. `samples` is what they have together.
    fn push_children(
        &self,
        lines: &mut Vec<Line>,
        children: &[NodeId],
        samples: u64,
        indent: &str,
        depth: usize,
    ) {
        let deep = self.options.max_depth.is_some_and(|deepest| depth >= deepest);
        let inclusive = |id: NodeId| self.tree.node(id).map_or(0, Node::inclusive);
        let shown = if deep { 0 } else { children.partition_point(|id| self.matters(inclusive(*id))) };
        let (shown, left_out) = children.split_at_checked(shown).unwrap_or((children, &[]));
        let hidden = samples - shown.iter().map(|id| inclusive(*id)).sum::<u64>();
        // What is left out is worth a line when it would have been worth one as a single node, or cut by depth.
        let tell = !left_out.is_empty() && (deep || self.matters(hidden));
        let chain = shown.len() + usize::from(tell) == 1;
        let connector = |last: bool| match (chain, last) {
            (true, _) => "",
            (false, false) => "├─ ",
            (false, true) => "└─ ",
        };
        if tell {
            let (nodes, indent) = (left_out.len(), indent.to_owned());
            lines.push(Line::Hidden { nodes, samples: hidden, indent, connector: connector(true) });
        }
        for (index, id) in shown.iter().enumerate().rev() {
            let last = index + 1 == shown.len() && !tell;
            lines.push(Line::Node { id: *id, indent: indent.to_owned(), connector: connector(last), depth });
        }
    }

    fn matters(&self, samples: u64) -> bool {
        samples > 0 && self.percent(samples) >= self.options.min_percent
    }

    fn percent(&self, samples: u64) -> f64 {
        100.0 * samples as f64 / self.tree.total().max(1) as f64
    }

    fn node(&mut self, node: &Node, indent: &str, connector: &str) -> io::Result<()> {
        let frame = self.tree.frame(node);
        let text = frame.map_or("", |frame| frame.text.as_str());
        let style = style(frame.map_or(Category::Unresolved, |frame| frame.category));
        let inlined = frame.is_some_and(|frame| frame.inlined);
        let exclusive = self.percent(node.exclusive());
        let heat = if exclusive >= 10.0 {
            HOT
        } else if exclusive >= 2.0 {
            WARM
        } else {
            Style::new()
        };
        let width = self.widest;
        let numbers = format!(
            "{:>6.1}%  {:>width$}  {heat}{:>width$}{heat:#}",
            self.percent(node.inclusive()),
            count(node.inclusive()),
            count(node.exclusive()),
        );
        let text = one_line(text);
        let remark = if inlined { format!("{DIM} (inlined){DIM:#}") } else { String::new() };
        self.line(&format!("{numbers}  {DIM}{indent}{connector}{DIM:#}{style}{text}{style:#}{remark}"))
    }

    fn hidden(&mut self, nodes: usize, samples: u64, indent: &str, connector: &str) -> io::Result<()> {
        let width = self.widest;
        let noun = if nodes == 1 { "node" } else { "nodes" };
        let (percent, samples) = (self.percent(samples), count(samples));
        let nodes = count(nodes as u64);
        self.line(&format!(
            "{DIM}{percent:>6.1}%  {samples:>width$}  {:>width$}  {indent}{connector}… {nodes} more {noun}{DIM:#}",
            "",
        ))
    }
}

/// What stands below a connector.
fn continuation(connector: &str) -> &'static str {
    match connector {
        "├─ " => "│  ",
        "└─ " => "   ",
        _ => "",
    }
}
