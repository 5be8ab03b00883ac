//! The counters of saved blocks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use etwprof::counters::{Block, CounterPath, Dump, Names, readings};
use etwprof::report::counters as report;

use super::{list, show};
use crate::cli::args;
use crate::cli::usage::{self, Usage};

/// The longest file that is read, in bytes. A block of a big machine has a few MB.
const MOST_BYTES: u64 = 2 << 30;

/// How many values are shown at most: small blocks can be crafted to have very many.
const MOST_VALUES: usize = 5_000_000;

/// Shows what is in files, or the values of these counters.
pub(super) fn run(args: &args::Counters, files: &[&String], wanted: &[CounterPath]) -> Result<()> {
    let saved = open(files)?;
    let Some(last) = saved.blocks.last() else {
        bail!("no counters in {}: no block was saved", joined(files))
    };
    if wanted.is_empty() {
        return list::objects(args, &report::Available::new(last, &saved.names));
    }
    show(args, &of_blocks(&saved, wanted)?)
}

fn joined(files: &[&String]) -> String {
    files.iter().map(|file| file.as_str()).collect::<Vec<_>>().join(", ")
}

/// The blocks of all files in order of time.
fn open(files: &[&String]) -> Result<Dump> {
    let mut all = Dump::default();
    for file in files {
        let path = Path::new(file);
        let cannot = |error| usage::cannot("open", path, &error);
        if fs::metadata(path).map_err(cannot)?.len() > MOST_BYTES {
            bail!("{file} has more than 2 GiB, and no file of counters is that long");
        }
        let dump = Dump::parse(&fs::read(path).map_err(cannot)?).with_context(|| file.to_string())?;
        if all.names.is_empty() {
            all.names = dump.names;
        }
        all.blocks.extend(dump.blocks);
    }
    let mut machines: Vec<&str> = all.blocks.iter().map(|block| block.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    if let [one, other, ..] = machines.as_slice() {
        bail!(Usage(format!("the files are of different machines, {one} and {other}; open those of one")));
    }
    all.blocks.sort_by_key(|block| block.time_100ns);
    Ok(all)
}

/// The values of each block, rates over the time since the block before.
fn of_blocks(saved: &Dump, wanted: &[CounterPath]) -> Result<report::Counters> {
    let mut moments = Vec::new();
    let mut values = 0;
    let mut found_any = vec![false; wanted.len()];
    for (at, block) in saved.blocks.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| saved.blocks.get(before));
        if before.is_none() && saved.blocks.len() > 1 {
            continue;
        }
        let mut moment = report::Moment {
            unix_ms: block.unix_ms,
            seconds: before.map(|before| seconds(before, block)),
            counters: Vec::new(),
        };
        for (path, found_any) in wanted.iter().zip(&mut found_any) {
            let found = readings(before, block, &saved.names, std::slice::from_ref(path))?;
            *found_any |= !found.is_empty();
            values += found.len();
            if values > MOST_VALUES {
                bail!("more than {MOST_VALUES} values in all samples; choose fewer counters, or fewer files");
            }
            moment.counters.extend(found.into_iter().map(report::Row::from));
        }
        moments.push(moment);
    }
    if let Some((path, _)) = wanted.iter().zip(&found_any).find(|(_, found)| !**found) {
        bail!(Usage(missing(&saved.blocks, &saved.names, path)));
    }
    let source = saved.blocks.last().map(|block| block.machine.clone()).unwrap_or_default();
    Ok(report::Counters { source, moments })
}

pub(super) fn seconds(old: &Block, new: &Block) -> f64 {
    (new.time_100ns.saturating_sub(old.time_100ns)) as f64 / 1e7
}

/// Which part of a path is not there.
pub(super) fn missing(blocks: &[Block], names: &Names, path: &CounterPath) -> String {
    let CounterPath { object, instance, counter } = path;
    let mut objects =
        blocks.iter().flat_map(|block| &block.objects).filter(|o| names.is(o.name, object)).peekable();
    let Some(first) = objects.peek() else {
        return format!("no object {object:?}; leave out the counters to list what is there");
    };
    let has_instances = first.has_instances;
    let is_counter =
        objects.flat_map(|object| &object.counters).any(|c| counter == "*" || names.is(c.name, counter));
    match (instance, has_instances) {
        _ if !is_counter => format!("{object} has no counter {counter:?}; '{object}(*)\\*' shows all"),
        (None, true) => format!("{object} has instances; write '{object}(*)\\{counter}' for all of them"),
        (Some(_), false) => format!("{object} has no instances; write '{object}\\{counter}'"),
        (Some(instance), true) => {
            format!("{object} has no instance {instance:?}; '{object}(*)\\{counter}' shows all")
        }
        (None, false) => format!("no value of '{object}\\{counter}'"),
    }
}
