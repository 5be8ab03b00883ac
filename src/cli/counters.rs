//! `etwprof counters`: performance counters of this machine, saved ones, those beside the samples of a recording, and those
//! of running .NET programs.

mod diagnose;
mod follow;
#[cfg(windows)]
mod from_outside;
mod list;
mod live;
#[cfg(windows)]
pub(super) mod performance;
mod recorded;
mod saved;

use std::path::Path;

use anyhow::{Result, bail};
use etwprof::counters::CounterPath;
use etwprof::report::counters as report;

pub(super) use diagnose::SomethingIsWrong;

use super::usage::Usage;
use super::{args, output};

pub(super) fn run(args: &args::Counters, quiet: bool) -> Result<()> {
    if let Some(asked) = &args.diagnose {
        return diagnose::run(args, asked.as_deref());
    }
    // A path of perfmon is hardly ever the name of a file.
    let (files, paths): (Vec<_>, Vec<_>) = args.what.iter().partition(|what| Path::new(what).exists());
    let mut wanted = Vec::new();
    for text in paths {
        // `C:\day.counters` would read as an object and a counter.
        let has_drive = text.as_bytes().get(1) == Some(&b':');
        match text.parse::<CounterPath>() {
            Ok(path) if !has_drive => wanted.push(path),
            Err(error) if text.contains('\\') && !text.contains('/') => bail!(Usage(error.to_string())),
            _ => bail!(Usage(format!("{text}: there is no such file"))),
        }
    }
    let of_process = args.pid.is_some() || args.name.is_some();
    match files.first() {
        Some(file) if of_process => {
            bail!(Usage(format!("{file}: --pid and --name read a process, not a file; name one of them")))
        }
        Some(file) if args.dump.is_some() => {
            bail!(Usage(format!("{file}: --dump saves the counters of this machine, not of a file")))
        }
        Some(_) if files.iter().any(|file| recorded::is_recording(file)) => {
            return recorded::run(args, &files, &wanted, quiet);
        }
        Some(_) => return saved::run(args, &files, &wanted),
        None => {}
    }
    let is_list = !of_process && wanted.is_empty() && args.dump.is_none();
    if !is_list {
        follow::check(args)?;
    }
    match &args.dump {
        Some(_) if of_process => {
            bail!(Usage("--dump: saves the counters of this machine; leave out --pid and --name".to_owned()))
        }
        Some(to) => dump(args, to, &wanted),
        None if of_process => live::run(args, &wanted, quiet),
        None if is_list => list::here(args),
        None => of_machine(args, &wanted),
    }
}

#[cfg(windows)]
use performance::{dump, run as of_machine};

#[cfg(not(windows))]
fn of_machine(_: &args::Counters, _: &[CounterPath]) -> Result<()> {
    bail!(Usage(
        "name a file of saved counters in front of the counters to show, or a .NET process with --pid or --name"
            .to_owned()
    ))
}

#[cfg(not(windows))]
fn dump(_: &args::Counters, _: &Path, _: &[CounterPath]) -> Result<()> {
    bail!(Usage(
        "--dump: only Windows has performance counters to save; run it there, and open the file here"
            .to_owned()
    ))
}

fn show(args: &args::Counters, counters: &report::Counters) -> Result<()> {
    output::print(|mut out| match (args.json, args.csv) {
        (true, _) => report::write_json(&mut out, counters),
        (_, true) => report::write_csv(&mut out, counters),
        _ => report::write(&mut out, counters, output::terminal_width()),
    })
}
