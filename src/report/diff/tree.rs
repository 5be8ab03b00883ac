//! Where in the call tree the change lies: the calls that lead to what changed, of both sides together.

use std::io::{self, Write};

use console::truncate_str;
use serde::Serialize;

use crate::compare::{Change, Comparison, Measure, Names, Together};
use crate::prefix_tree::NodeId;
use crate::profile::Category;
use crate::report::console::chain::{self, Link, Piece};
use crate::report::console::drawing::{Bars, Mark};
use crate::report::console::{DIM, HEAD};
use crate::report::label::Label;
use crate::report::text::{count, milliseconds};

use super::{Row, change_ms};

/// The branches that changed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tree {
    /// Its nodes: a node before those below it, siblings with the larger change first, either way.
    pub nodes: Vec<Branch>,
    /// How many ends of branches were left out beyond those that were wanted.
    pub left_out: usize,
    /// How many nodes that are not in `nodes` changed by no more than chance explains.
    pub noise: usize,
}

/// A node, judged by the samples in it and below it.
#[derive(Clone, Debug, Serialize)]
pub struct Branch {
    /// The place of the node above it in `nodes`; `None` at the top.
    pub parent: Option<usize>,
    /// What became of it.
    #[serde(flatten)]
    pub row: Row,
    /// What changed in the node itself, in ns.
    pub own_ns: f64,
    /// How many nodes right below it changed and are not in the tree.
    pub left_out: usize,
    /// Their changes together, in ns.
    pub left_out_ns: f64,
    /// One of them changed by more than chance explains.
    #[serde(skip)]
    left_out_significant: bool,
    #[serde(skip)]
    category: Category,
}

/// What is known of the nodes while branches are chosen.
struct Nodes<'c> {
    together: &'c Together,
    changes: Vec<Option<&'c Change<NodeId>>>,
}

impl Nodes<'_> {
    fn change(&self, id: NodeId) -> Option<&Change<NodeId>> {
        self.changes.get(id.0 as usize).copied().flatten()
    }

    fn delta_ns(&self, id: NodeId) -> f64 {
        self.change(id).map_or(0.0, |change| change.delta_ns)
    }

    /// Where branches end, the most important ones first: in what changed if nothing below it did by more than chance
    /// explains; with `noise` also in what changed and calls nothing.
    fn ends(&self, noise: bool) -> Vec<NodeId> {
        let tree = &self.together.tree;
        let mut changed_below = vec![false; self.changes.len()];
        let mut ends = Vec::new();
        let nodes: Vec<_> = tree.nodes().collect();
        // Children come after their parents.
        for (id, node) in nodes.into_iter().rev() {
            let Some(change) = self.change(id) else { continue };
            let below = changed_below.get(id.0 as usize).copied().unwrap_or_default();
            let is_leaf = tree.children(node).is_empty();
            if (change.significant && !below) || (noise && is_leaf && change.delta_ns != 0.0) {
                ends.push((id, change));
            }
            let above = node.parent.and_then(|parent| changed_below.get_mut(parent.0 as usize));
            if let Some(above) = above {
                *above |= below || change.significant;
            }
        }
        ends.sort_by(|(one, a), (other, b)| {
            let by_size = || b.delta_ns.abs().total_cmp(&a.delta_ns.abs());
            b.significant.cmp(&a.significant).then_with(by_size).then_with(|| one.cmp(other))
        });
        ends.into_iter().map(|(id, _)| id).collect()
    }
}

impl Tree {
    /// The `ends` largest changes and the calls that lead to them, of a comparison by the nodes of `together`; with `noise`
    /// also changes that chance explains.
    pub fn new(
        names: &Names,
        together: &Together,
        comparison: &Comparison<NodeId>,
        noise: bool,
        ends: usize,
    ) -> Tree {
        let tree = &together.tree;
        let mut changes = vec![None; tree.nodes().count()];
        for change in &comparison.rows {
            if let Some(place) = changes.get_mut(change.key.0 as usize) {
                *place = Some(change);
            }
        }
        let known = Nodes { together, changes };
        let all_ends = known.ends(noise);
        let mut is_shown = vec![false; known.changes.len()];
        for end in all_ends.iter().take(ends) {
            let mut next = Some(*end);
            // What is above a node that is shown is shown.
            while let Some(id) = next
                && let Some(shown) = is_shown.get_mut(id.0 as usize).filter(|shown| !**shown)
            {
                *shown = true;
                next = tree.node(id).and_then(|node| node.parent);
            }
        }
        let is_shown = |id: &NodeId| is_shown.get(id.0 as usize).copied().unwrap_or_default();
        let noise = |change: &&Change<NodeId>| {
            !change.significant && change.delta_ns != 0.0 && !is_shown(&change.key)
        };
        let mut whole = Tree {
            nodes: Vec::new(),
            left_out: all_ends.len().saturating_sub(ends),
            noise: comparison.rows.iter().filter(noise).count(),
        };
        let chosen = |family: &[NodeId], parent: Option<usize>| {
            let mut shown: Vec<NodeId> = family.iter().copied().filter(is_shown).collect();
            // The last one is the first to be taken.
            shown.sort_by(|a, b| {
                let size = |id: &NodeId| known.delta_ns(*id).abs();
                size(a).total_cmp(&size(b)).then_with(|| b.cmp(a))
            });
            shown.into_iter().map(move |id| (id, parent)).collect::<Vec<_>>()
        };
        // A walk with a stack of its own: a trace may be deeper than the program's.
        let mut next = chosen(tree.roots(), None);
        while let Some((id, parent)) = next.pop() {
            let (Some(node), Some(change)) = (tree.node(id), known.change(id)) else { continue };
            let Some(name) = names.get(node.entry) else { continue };
            let family = tree.children(node);
            next.extend(chosen(family, Some(whole.nodes.len())));
            let below: f64 = family.iter().map(|id| known.delta_ns(*id)).sum();
            let hidden = family.iter().filter(|id| !is_shown(id)).filter_map(|id| known.change(*id));
            let hidden: Vec<_> = hidden.filter(|change| change.delta_ns != 0.0).collect();
            whole.nodes.push(Branch {
                parent,
                row: Row::new(name.label.clone(), name.module.clone(), change, Measure::Inclusive),
                own_ns: change.delta_ns - below,
                left_out: hidden.len(),
                left_out_ns: hidden.iter().map(|change| change.delta_ns).sum(),
                left_out_significant: hidden.iter().any(|change| change.significant),
                category: name.category,
            });
        }
        whole
    }

    /// Writes it as lines, with styles. With the `width` of a terminal the lines end there.
    pub fn write(&self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        if self.nodes.is_empty() {
            writeln!(out, "no branch of the call tree changed by more than chance explains")?;
        } else {
            Printer::new(self, width, out).tree()?;
        }
        match self.left_out {
            0 => {}
            1 => writeln!(out, "… 1 more branch (-n shows more)")?,
            more => writeln!(out, "… {} more branches (-n shows more)", count(more as u64))?,
        }
        match self.noise {
            0 => Ok(()),
            1 => writeln!(out, "… 1 more node changed within noise"),
            more => writeln!(out, "… {} more nodes changed within noise", count(more as u64)),
        }
    }
}

struct Printer<'t, W> {
    tree: &'t Tree,
    children: Vec<Vec<usize>>,
    /// The largest change of each node and those below it, either way, in ns.
    largest: Vec<f64>,
    widths: [usize; 4],
    width: Option<usize>,
    bars: Bars,
    out: &'t mut W,
}

const HEADS: [&str; 4] = ["change ms", "change", "before ms", "after ms"];

/// What is still to be written.
struct Rest {
    level: usize,
    mark: Mark,
    what: What,
}

enum What {
    /// A node, and all below it.
    Node(usize),
    /// What is not shown below a node.
    Hidden(usize),
}

impl<'t, W: Write> Printer<'t, W> {
    fn new(tree: &'t Tree, width: Option<usize>, out: &'t mut W) -> Printer<'t, W> {
        let mut children = vec![Vec::new(); tree.nodes.len()];
        let mut widths = HEADS.map(str::len);
        for (place, branch) in tree.nodes.iter().enumerate() {
            if let Some(siblings) = branch.parent.and_then(|parent| children.get_mut(parent)) {
                siblings.push(place);
            }
            for (width, cell) in widths.iter_mut().zip(cells(&branch.row)) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut largest: Vec<f64> = tree.nodes.iter().map(|branch| branch.row.delta_ns.abs()).collect();
        // Children come after their parents.
        for (place, branch) in tree.nodes.iter().enumerate().rev() {
            let below = largest.get(place).copied().unwrap_or_default();
            if let Some(above) = branch.parent.and_then(|parent| largest.get_mut(parent)) {
                *above = above.max(below);
            }
        }
        Printer { tree, children, largest, widths, width, bars: Bars::default(), out }
    }

    fn tree(&mut self) -> io::Result<()> {
        let heads = self.numbers(&HEADS);
        self.line(&format!("{HEAD}{heads}call tree{HEAD:#}"))?;
        let roots = self.tree.nodes.iter().enumerate().filter(|(_, branch)| branch.parent.is_none());
        let mut rest: Vec<Rest> =
            roots.map(|(root, _)| Rest { level: 0, mark: Mark::Top, what: What::Node(root) }).collect();
        rest.reverse();
        while let Some(Rest { level, mark, what }) = rest.pop() {
            self.bars.back_to(level);
            match what {
                What::Hidden(node) => self.hidden(mark, node)?,
                What::Node(first) => {
                    let chain = self.chain(first);
                    self.pieces(&chain, mark)?;
                    if let Some(last) = chain.last() {
                        self.put_below(*last, &mut rest);
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts what is below a node on `rest`, the first on top.
    fn put_below(&self, node: usize, rest: &mut Vec<Rest>) {
        let level = self.bars.level();
        let children = self.children(node);
        let counted = self.is_hidden_shown(node);
        if counted {
            let mark = if children.is_empty() { Mark::Instead } else { Mark::Beside { last: true } };
            rest.push(Rest { level, mark, what: What::Hidden(node) });
        }
        for (index, child) in children.iter().enumerate().rev() {
            let last = index + 1 == children.len() && !counted;
            rest.push(Rest { level, mark: Mark::Beside { last }, what: What::Node(*child) });
        }
    }

    fn children(&self, node: usize) -> &[usize] {
        self.children.get(node).map_or(&[], Vec::as_slice)
    }

    /// What is not shown has a line where the tree forks, and where it is a tenth of what changed below or more.
    fn is_hidden_shown(&self, node: usize) -> bool {
        let largest = self.largest.get(node).copied().unwrap_or_default();
        let is_fork = self.children(node).len() > 1;
        self.tree.nodes.get(node).is_some_and(|branch| {
            branch.left_out > 0 && (is_fork || 10.0 * branch.left_out_ns.abs() >= largest)
        })
    }

    /// A node and what follows it alone.
    fn chain(&self, first: usize) -> Vec<usize> {
        let mut chain = vec![first];
        let mut node = first;
        while let [only] = self.children(node)
            && !self.is_hidden_shown(node)
        {
            node = *only;
            chain.push(node);
        }
        chain
    }

    /// The lines of a chain, and the bars for what is below it.
    fn pieces(&mut self, chain: &[usize], mark: Mark) -> io::Result<()> {
        let link = |node: &usize| {
            let branch = self.tree.nodes.get(*node)?;
            Some(Link {
                // Where changes cancel out, what matters is that they are passed on.
                inclusive: self.largest.get(*node).copied().unwrap_or_default() as i64,
                exclusive: branch.own_ns as i64,
                heading: branch.category == Category::Heading,
            })
        };
        let links: Vec<Link> = chain.iter().filter_map(link).collect();
        let most = links.iter().map(|link| link.inclusive.unsigned_abs()).max().unwrap_or(0);
        let mut mark = mark;
        for piece in chain::fold(&links, most as f64 / 10.0) {
            match piece {
                Piece::Shown(place) => {
                    if let Some(branch) = chain.get(place).and_then(|node| self.tree.nodes.get(*node)) {
                        let numbers = self.numbers(&cells(&branch.row));
                        let name = self.bars.node(mark, &label(branch), self.room());
                        self.line(&format!("{numbers}{name}"))?;
                    }
                }
                Piece::Folded(places) => {
                    let frames = chain.get(places).unwrap_or_default().iter();
                    let labels = frames.filter_map(|node| self.tree.nodes.get(*node)).map(label);
                    self.remark(Mark::Instead, "", &chain::folded_text(labels))?;
                }
            }
            self.bars.below(mark);
            mark = Mark::Next;
        }
        Ok(())
    }

    fn hidden(&mut self, mark: Mark, node: usize) -> io::Result<()> {
        let Some(branch) = self.tree.nodes.get(node) else { return Ok(()) };
        let more = if mark == Mark::Instead { "" } else { " more" };
        let noun = match (branch.category, branch.left_out) {
            (Category::Heading, 1) => "node",
            (Category::Heading, _) => "nodes",
            (_, 1) => "callee",
            (..) => "callees",
        };
        let why = if branch.left_out_significant { "" } else { " within noise" };
        let text = format!("… {}{more} {noun}{why}", count(branch.left_out as u64));
        self.remark(mark, &change_ms(branch.left_out_ns), &text)
    }

    /// A line about lines that are not there.
    fn remark(&mut self, mark: Mark, change: &str, text: &str) -> io::Result<()> {
        let numbers = self.numbers(&[change, "", "", ""]);
        let text = self.bars.remark(mark, text, self.room());
        self.line(&format!("{DIM}{numbers}{DIM:#}{text}"))
    }

    fn numbers(&self, cells: &[impl AsRef<str>; 4]) -> String {
        let cells = cells.iter().zip(self.widths);
        cells.map(|(cell, width)| format!("{:>width$}  ", cell.as_ref())).collect()
    }

    /// The columns behind the numbers.
    fn room(&self) -> Option<usize> {
        Some(self.width?.saturating_sub(self.widths.iter().map(|width| width + 2).sum()))
    }

    /// A line, cut where the terminal ends.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let line = line.trim_end();
        match self.width {
            Some(width) => writeln!(self.out, "{}", truncate_str(line, width, "…")),
            None => writeln!(self.out, "{line}"),
        }
    }
}

fn cells(row: &Row) -> [String; 4] {
    [
        change_ms(row.delta_ns),
        row.marked_growth(),
        milliseconds(row.scaled_ns() / 100),
        milliseconds(row.after_ns / 100),
    ]
}

fn label(branch: &Branch) -> Label<'_> {
    Label { text: branch.row.name.as_str().into(), category: branch.category, inlined: false }
}
