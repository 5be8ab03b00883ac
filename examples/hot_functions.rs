//! Prints the ten hottest named functions of a recording: `cargo run --example hot_functions -- examples/demo.etl`
use std::collections::HashMap;

use etwprof::profile::{Detail, Entry, Grouping};
use etwprof::report::Spelling;
use etwprof::{Analysis, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    let profile = Analysis::open(&files, &Options::default(), &())?.profile;
    let (tree, _) = profile.tree(Grouping::default(), Detail::default());
    let mut samples: HashMap<Entry, i64> = HashMap::new();
    for (_, node) in tree.nodes() {
        *samples.entry(node.entry).or_default() += node.exclusive();
    }
    let named = |entry| matches!(entry, Entry::Frame(id) if profile.stacks.is_named(id));
    let mut rows: Vec<_> = samples.into_iter().filter(|(entry, _)| named(*entry)).collect();
    rows.sort_by_key(|(entry, samples)| (-samples, *entry));
    let spelling = Spelling::new(&profile, Detail::default());
    for (entry, samples) in rows.iter().take(10) {
        println!("{samples:>9}  {}", spelling.text(*entry));
    }
    Ok(())
}
