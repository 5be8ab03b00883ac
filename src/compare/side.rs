//! Call trees of names that mean the same everywhere.

use rustc_hash::FxHashMap;

use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{Arranged, Balance, CallTree, Category, Cut, Values};

use super::shaped::Shaped;

/// What a node of a call tree is, in every recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The same in every recording and in every build.
    pub key: String,
    /// How it reads.
    pub label: String,
    /// The module that the label begins with; empty for one without.
    pub module: String,
    /// The kind of code.
    pub category: Category,
}

/// A name: an index into [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// The names of all trees that are compared.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<Name>,
    numbers: FxHashMap<(String, Category), NameId>,
    /// By key, code and headings apart, the first name that has it.
    first: FxHashMap<(String, bool), NameId>,
    /// The first name of the same key, for each.
    same: Vec<NameId>,
}

impl Names {
    /// The number of a name. Of several with one key and category, the last one's label counts: the newest run is read last.
    pub fn number(&mut self, name: Name) -> NameId {
        let of_key = (name.key.clone(), name.category);
        if let Some(known) = self.numbers.get(&of_key) {
            if let Some(place) = self.names.get_mut(known.0 as usize) {
                *place = name;
            }
            return *known;
        }
        let id = NameId(self.names.len() as u32);
        let by_key = (name.key.clone(), name.category == Category::Heading);
        self.same.push(*self.first.entry(by_key).or_insert(id));
        self.numbers.insert(of_key, id);
        self.names.push(name);
        id
    }

    /// The first name with the same key: a method may be compiled in one run and precompiled in another, and is the same.
    pub fn same(&self, id: NameId) -> NameId {
        self.same.get(id.0 as usize).copied().unwrap_or(id)
    }

    /// A name by its number.
    pub fn get(&self, id: NameId) -> Option<&Name> {
        self.names.get(id.0 as usize)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (NameId, &Name)> + Clone {
        (0..).map(NameId).zip(&self.names)
    }
}

/// A node of a call tree, as it is told: after the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The place of the node above it among the steps; `None` at the top.
    pub parent: Option<usize>,
    /// What it is.
    pub name: NameId,
    /// The samples that end in it.
    pub samples: i64,
    /// Their time in ns.
    pub ns: i64,
}

/// The call tree of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its nodes, with samples and with their time in ns. Nodes that are one by their names are one.
    pub arranged: Arranged<NameId>,
    /// How long was recorded, in seconds; `None` where nobody says.
    pub seconds: Option<f64>,
    /// The variance of what chance gives a node, over its mean: 1 for samples of which each counts one, and more where they
    /// differ ([`Profile::dispersion`](crate::profile::Profile::dispersion)).
    pub dispersion: f64,
    /// How its tree was made; `None` where nobody says.
    pub shaped: Option<Shaped>,
    /// Its names have keys of their own; else they were made of the labels, which may differ from build to build.
    pub has_keys: bool,
}

impl Run {
    /// Adds up nodes.
    pub fn new(steps: impl IntoIterator<Item = Step>, seconds: Option<f64>) -> Run {
        let mut tree: PrefixTree<NameId> = PrefixTree::default();
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut ends: Vec<(NodeId, i64, i64)> = Vec::new();
        for Step { parent, name, samples, ns } in steps {
            let above = parent.and_then(|parent| nodes.get(parent).copied());
            let node = tree.child(above, name);
            nodes.push(node);
            if samples != 0 || ns != 0 {
                ends.push((node, samples, ns));
            }
        }
        let arranged = Arranged {
            counts: CallTree::count(&tree, ends.iter().map(|(node, samples, _)| (*node, *samples))),
            values: Values::count(&tree, ends.iter().map(|(node, _, ns)| (*node, *ns))),
            groups: Vec::new(),
            balance: Balance::default(),
            left_out: Vec::new(),
            ends: Vec::new(),
            cut: Cut::default(),
            gave_up: Vec::new(),
        };
        Run { arranged, seconds, dispersion: 1.0, shaped: None, has_keys: true }
    }

    /// Its samples.
    pub fn samples(&self) -> i64 {
        self.arranged.counts.total()
    }

    /// Their time in ns.
    pub fn ns(&self) -> i64 {
        self.arranged.values.total()
    }

    /// The time of a sample in ns, on average; `None` without samples or time.
    pub fn interval(&self) -> Option<f64> {
        let (samples, ns) = (self.samples(), self.ns());
        (samples > 0 && ns > 0).then(|| ns as f64 / samples as f64)
    }
}

/// One run or several of the same program.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The runs.
    pub runs: Vec<Run>,
}

impl Side {
    /// The samples of all runs.
    pub fn samples(&self) -> i64 {
        self.runs.iter().map(Run::samples).sum()
    }

    /// Their time in ns.
    pub fn ns(&self) -> i64 {
        self.runs.iter().map(Run::ns).sum()
    }

    /// How long all runs were recorded, in seconds; `None` where one of them does not say.
    pub fn seconds(&self) -> Option<f64> {
        self.runs.iter().map(|run| run.seconds).sum()
    }
}
