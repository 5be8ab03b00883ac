//! The call tree on a console, and the hottest functions below it, where the eye rests.
//!
//! Deep stacks are mostly chains: one caller, one callee, a hundred times. Indenting each step would push the text off
//! the screen, so a chain stays in one column, and `↓` says that a line is called by the one above. Indentation grows
//! only where the tree branches, and frames of a chain that neither use time nor lose a share are one line:
//!
//! ```text
//! incl %  excl %  incl ms  call tree
//!  100.0            1,000  orders.exe (4210)
//!  100.0            1,000  ↓ ntdll!RtlUserThreadStart
//!                          ⋮ 12 frames: kernel32, orders
//!  100.0            1,000  ↓ orders!Serve
//!   70.0     1.0      700  ├ orders!Work
//!   69.0    69.0      690  │ ↓ orders!Hash
//!   30.0    30.0      300  └ orders!Wait
//! ```

pub(super) mod chain;
mod colours;
mod columns;
pub(super) mod drawing;
mod hottest;
mod legend;
mod report;

use std::hash::Hash;
use std::io::{self, Write};

use console::truncate_str;

use crate::prefix_tree::NodeId;
use crate::profile::{Arranged, Category, Metric, Node, Value};

use super::label::Labels;
use super::text::count;
use chain::{Link, Piece};
pub(super) use colours::{DIM, HEAD};
use columns::{Amount, Columns, Leading, Numbers};
pub(super) use drawing::middle;
use drawing::{Bars, Mark};
pub use report::FORMAT;

/// How much of the tree to show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Leave out nodes with a smaller inclusive share of all samples, in percent.
    pub min_percent: f64,
    /// Leave out nodes deeper than this many frames.
    pub max_depth: Option<usize>,
    /// Give every frame of a chain its line.
    pub all_frames: bool,
    /// Cut lines at this many columns, and show as many numbers as have room.
    pub width: Option<usize>,
    /// What the values are.
    pub metric: Metric,
    /// List the hottest functions below the tree.
    pub hottest: bool,
    /// Show the heaviest branch only: of the nodes at the top the greatest, of its callees the greatest, and so on. What goes
    /// elsewhere is one line for each node that it leaves.
    pub hot: bool,
    /// Explain columns, marks and colours at the end.
    pub legend: bool,
    /// What the tree is, over its column.
    pub head: &'static str,
    /// The tree begins with the leaves: below a function stand its callers, and its own share is nowhere.
    pub inverted: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            min_percent: 1.0,
            max_depth: None,
            all_frames: false,
            width: None,
            metric: Metric::CPU,
            hottest: true,
            hot: false,
            legend: false,
            head: "call tree",
            inverted: false,
        }
    }
}

/// Writes the tree with these labels, and its hottest functions. Styles are ANSI sequences; a stream that does not want
/// them strips them.
pub fn write<E: Copy + Eq + Hash>(
    out: &mut impl Write,
    arranged: &Arranged<E>,
    labels: &impl Labels<E>,
    options: &Options,
) -> io::Result<()> {
    let total = Amount { samples: arranged.counts.total(), value: arranged.values.total() };
    let columns = Columns::new(total, options.metric, options.width);
    let mut printer = Printer { arranged, labels, options, columns, total, bars: Bars::default(), out };
    printer.tree()?;
    if options.hottest {
        printer.hottest()?;
    }
    if options.legend { legend::write(out, options.width) } else { Ok(()) }
}

struct Printer<'a, E, L, W> {
    arranged: &'a Arranged<E>,
    labels: &'a L,
    options: &'a Options,
    columns: Columns,
    total: Amount,
    bars: Bars,
    out: &'a mut W,
}

/// What is still to be written.
struct Rest {
    level: usize,
    mark: Mark,
    what: What,
}

enum What {
    /// A node, and all below it.
    Node {
        id: NodeId,
        depth: usize,
    },
    Hidden(Hidden),
}

/// Nodes that are not shown.
#[derive(Clone, Copy)]
struct Hidden {
    nodes: usize,
    amount: Amount,
    /// They are called by code, and not the first of their stacks.
    called: bool,
    /// There are others that are shown.
    more: bool,
    why: Why,
}

/// Why nodes are not shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Their share is too small.
    Small,
    /// They are too deep.
    Deep,
    /// Another one is heavier, and only that is shown.
    NotHeaviest,
}

impl<E: Copy + Eq + Hash, L: Labels<E>, W: Write> Printer<'_, E, L, W> {
    /// A line, cut where the terminal ends.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let line = line.trim_end();
        match self.options.width {
            Some(width) => writeln!(self.out, "{}", truncate_str(line, width, "…")),
            None => writeln!(self.out, "{line}"),
        }
    }

    fn head(&mut self, leading: Leading, name: &str) -> io::Result<()> {
        let heads = self.columns.heads(leading);
        self.line(&format!("{HEAD}{heads}{name}{HEAD:#}"))
    }

    /// The columns behind the numbers.
    fn room(&self) -> Option<usize> {
        Some(self.options.width?.saturating_sub(self.columns.width()))
    }

    /// Walks the tree with a stack of its own: a trace may be deeper than the program's.
    fn tree(&mut self) -> io::Result<()> {
        self.head(Leading::Inclusive, self.options.head)?;
        let roots = self.arranged.counts.roots();
        if roots.len() != 1 {
            let numbers = Numbers { inclusive: Some(self.total), exclusive: None };
            let numbers = self.columns.numbers(Leading::Inclusive, numbers);
            let all = self.labels.all();
            self.line(&format!("{numbers}{HEAD}{all}{HEAD:#}"))?;
        }
        let mut rest = Vec::new();
        let (shown, hidden) = self.choose(roots, self.total, 0, false);
        self.put(&mut rest, shown, hidden, 0, roots.len() == 1);
        while let Some(Rest { level, mark, what }) = rest.pop() {
            self.bars.back_to(level);
            match what {
                What::Hidden(hidden) => self.hidden(mark, &hidden)?,
                What::Node { id, depth } => {
                    let chain = self.chain(id, depth);
                    self.pieces(&chain, mark)?;
                    let end = chain.last().and_then(|id| Some((self.arranged.counts.node(*id)?, *id)));
                    if let Some((node, id)) = end {
                        let depth = depth + chain.len();
                        let (shown, hidden) = self.below(id, node, depth);
                        self.put(&mut rest, shown, hidden, depth, false);
                    }
                }
            }
        }
        Ok(())
    }

    /// A node and what follows it alone.
    fn chain(&self, first: NodeId, depth: usize) -> Vec<NodeId> {
        let mut chain = vec![first];
        let mut id = first;
        while let Some(node) = self.arranged.counts.node(id) {
            match self.below(id, node, depth + chain.len()) {
                ([only], None) => id = *only,
                _ => break,
            }
            chain.push(id);
        }
        chain
    }

    /// Which of a node's children are shown.
    fn below(&self, id: NodeId, node: &Node<E>, depth: usize) -> (&[NodeId], Option<Hidden>) {
        let values = self.arranged.values.node(id).map_or(0, |node| node.node);
        let passes = Amount { samples: node.node, value: values };
        let called = self.labels.label(node.entry).category != Category::Heading;
        self.choose(self.arranged.counts.children(node), passes, depth, called)
    }

    /// Which of `children` are shown, and what is to be said of the others. `all` is what they have together.
    fn choose<'c>(
        &self,
        children: &'c [NodeId],
        all: Amount,
        depth: usize,
        called: bool,
    ) -> (&'c [NodeId], Option<Hidden>) {
        let deep = self.options.max_depth.is_some_and(|deepest| depth >= deepest);
        let matters = |id: &NodeId| self.matters(self.amount(*id).samples);
        let most = if self.options.hot { 1 } else { usize::MAX };
        let shown = if deep { 0 } else { children.partition_point(matters).min(most) };
        let (shown, left_out) = children.split_at_checked(shown).unwrap_or((children, &[]));
        let mut amount = all;
        for id in shown {
            let of_shown = self.amount(*id);
            amount.samples = amount.samples.saturating_sub(of_shown.samples);
            amount.value = amount.value.saturating_sub(of_shown.value);
        }
        // What is left out is worth a line when it would have been worth one as a single node, or cut by depth; and if
        // little is shown, where it is no trifle.
        let is_notable =
            self.matters(amount.samples) || self.columns.percent(amount.samples).abs() >= NOTABLE;
        // Of the heaviest branch the forks matter, where a tenth goes elsewhere.
        let is_fork = amount.samples.unsigned_abs() >= all.samples.unsigned_abs() / 10;
        let is_notable = is_notable && (!self.options.hot || is_fork);
        let counted = !left_out.is_empty() && (deep || is_notable);
        let more = !shown.is_empty();
        let why = match (deep, self.options.hot && more) {
            (true, _) => Why::Deep,
            (false, true) => Why::NotHeaviest,
            (false, false) => Why::Small,
        };
        let hidden = counted.then_some(Hidden { nodes: left_out.len(), amount, called, more, why });
        (shown, hidden)
    }

    /// Puts them on `rest`, the first on top.
    fn put(
        &self,
        rest: &mut Vec<Rest>,
        shown: &[NodeId],
        hidden: Option<Hidden>,
        depth: usize,
        is_top: bool,
    ) {
        let level = self.bars.level();
        if self.options.hot
            && let ([id], Some(hidden)) = (shown, hidden)
        {
            // What goes elsewhere comes first: the branch stays in one column, and its end is the end.
            let node = Rest { level, mark: Mark::Next, what: What::Node { id: *id, depth } };
            let aside = Mark::Beside { last: false };
            return rest.extend([node, Rest { level, mark: aside, what: What::Hidden(hidden) }]);
        }
        let alone = shown.len() + usize::from(hidden.is_some()) == 1;
        let counted = hidden.is_some();
        rest.extend(hidden.map(|hidden| {
            let mark = if alone { Mark::Instead } else { Mark::Beside { last: true } };
            Rest { level, mark, what: What::Hidden(hidden) }
        }));
        for (index, id) in shown.iter().enumerate().rev() {
            let last = index + 1 == shown.len() && !counted;
            let mark = match (is_top, alone) {
                (true, _) => Mark::Top,
                (false, true) => Mark::Next,
                (false, false) => Mark::Beside { last },
            };
            rest.push(Rest { level, mark, what: What::Node { id: *id, depth } });
        }
    }

    fn amount(&self, id: NodeId) -> Amount {
        let samples = self.arranged.counts.node(id).map_or(0, Node::inclusive);
        let value = self.arranged.values.node(id).map_or(0, Value::inclusive);
        Amount { samples, value }
    }

    fn own(&self, id: NodeId) -> Amount {
        let samples = self.arranged.counts.node(id).map_or(0, Node::exclusive);
        let value = self.arranged.values.node(id).map_or(0, Value::exclusive);
        Amount { samples, value }
    }

    fn matters(&self, samples: i64) -> bool {
        samples != 0 && self.columns.percent(samples).abs() >= self.options.min_percent
    }

    /// The lines of a chain, and the bars for what is below it.
    fn pieces(&mut self, chain: &[NodeId], mark: Mark) -> io::Result<()> {
        let mut mark = mark;
        for piece in self.folded(chain) {
            match piece {
                Piece::Shown(place) => {
                    if let Some(id) = chain.get(place) {
                        self.node(*id, mark)?;
                    }
                }
                Piece::Folded(places) => self.fold(chain.get(places).unwrap_or_default())?,
            }
            self.bars.below(mark);
            mark = Mark::Next;
        }
        Ok(())
    }

    fn folded(&self, chain: &[NodeId]) -> Vec<Piece> {
        if self.options.all_frames {
            return (0..chain.len()).map(Piece::Shown).collect();
        }
        let link = |id: &NodeId| {
            let node = self.arranged.counts.node(*id);
            Link {
                inclusive: node.map_or(0, Node::inclusive),
                exclusive: node.map_or(0, Node::exclusive),
                heading: node.is_some_and(|node| self.labels.label(node.entry).category == Category::Heading),
            }
        };
        let links: Vec<Link> = chain.iter().map(link).collect();
        // What is shown as a leaf is shown in a chain.
        let notable = self.options.min_percent.min(NOTABLE) / 100.0;
        chain::fold(&links, notable * self.total.samples.unsigned_abs() as f64)
    }

    fn node(&mut self, id: NodeId, mark: Mark) -> io::Result<()> {
        let Some(node) = self.arranged.counts.node(id) else { return Ok(()) };
        let exclusive = Some(self.own(id)).filter(|own| own.samples != 0 && !self.options.inverted);
        let numbers = Numbers { inclusive: Some(self.amount(id)), exclusive };
        let numbers = self.columns.numbers(Leading::Inclusive, numbers);
        let label = self.labels.label(node.entry);
        let name = self.bars.node(mark, &label, self.room());
        self.line(&format!("{numbers}{name}"))
    }

    /// One line for frames of a chain: how many there are, and of which modules.
    fn fold(&mut self, frames: &[NodeId]) -> io::Result<()> {
        let mut exclusive = Amount::default();
        for id in frames {
            let own = self.own(*id);
            exclusive.samples = exclusive.samples.saturating_add(own.samples);
            exclusive.value = exclusive.value.saturating_add(own.value);
        }
        let labels =
            frames.iter().filter_map(|id| Some(self.labels.label(self.arranged.counts.node(*id)?.entry)));
        let text = chain::folded_text(labels);
        let exclusive = Some(exclusive).filter(|own| own.samples != 0 && !self.options.inverted);
        self.remark(Mark::Instead, Numbers { inclusive: None, exclusive }, &text)
    }

    fn hidden(&mut self, mark: Mark, hidden: &Hidden) -> io::Result<()> {
        let Hidden { nodes, amount, called, more, why } = *hidden;
        let mut text = format!("… {}", count(nodes as u64));
        text += match (more, why) {
            (_, Why::NotHeaviest) => " other",
            (true, _) => " more",
            (false, _) => "",
        };
        text += match (called, self.options.inverted) {
            (false, _) => " node",
            (true, false) => " callee",
            (true, true) => " caller",
        };
        if nodes != 1 {
            text.push('s');
        }
        text += &match why {
            Why::Deep => ", cut by --max-depth".to_owned(),
            Why::Small => format!(" below {} %", self.options.min_percent),
            Why::NotHeaviest => String::new(),
        };
        self.remark(mark, Numbers { inclusive: Some(amount), exclusive: None }, &text)
    }

    /// A line about lines that are not there.
    fn remark(&mut self, mark: Mark, numbers: Numbers, text: &str) -> io::Result<()> {
        let numbers = self.columns.numbers(Leading::Inclusive, numbers);
        let text = self.bars.remark(mark, text, self.room());
        self.line(&format!("{DIM}{numbers}{DIM:#}{text}"))
    }

    fn hottest(&mut self) -> io::Result<()> {
        let hottest = hottest::hottest(self.arranged, self.labels);
        if hottest.rows.is_empty() {
            return Ok(());
        }
        self.line("")?;
        self.head(Leading::Exclusive, "hottest functions")?;
        for (label, numbers) in &hottest.rows {
            let numbers = self.columns.numbers(Leading::Exclusive, *numbers);
            let name = drawing::name(label, self.room());
            self.line(&format!("{numbers}{name}"))?;
        }
        if hottest.more > 0 {
            let numbers = Numbers { inclusive: None, exclusive: Some(hottest.rest) };
            let numbers = self.columns.numbers(Leading::Exclusive, numbers);
            let functions = if hottest.more == 1 { "function" } else { "functions" };
            let more = count(hottest.more as u64);
            self.line(&format!("{DIM}{numbers}… {more} more {functions}{DIM:#}"))?;
        }
        Ok(())
    }
}

/// Frames with this exclusive share, in percent, are never folded.
const NOTABLE: f64 = 1.0;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
