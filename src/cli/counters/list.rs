//! Lists of what can be read.

use anyhow::Result;
use etwprof::counters::runtime;
use etwprof::report::counters as report;

use super::live::name;
use crate::cli::{args, output, say};

/// Lists the .NET processes that answer and, on Windows, the objects with performance counters.
pub(super) fn here(args: &args::Counters) -> Result<()> {
    let processes = runtime::listening().into_iter().map(|(pid, _)| (pid, name(pid)));
    let listed = |runtime| move |(pid, process)| report::Listening { pid, process, runtime };
    #[cfg_attr(not(windows), expect(unused_mut))]
    let mut processes: Vec<_> = processes
        .map(|(pid, process)| (pid, process.unwrap_or_default()))
        .map(listed(report::Runtime::Sends))
        .collect();
    #[cfg(windows)]
    processes.extend(super::from_outside::readable().map(listed(report::Runtime::Framework)));
    #[cfg(windows)]
    let available = super::performance::available().map_err(say::warning).ok();
    #[cfg(not(windows))]
    let available: Option<report::Available> = None;
    if processes.is_empty() && available.is_none() && !args.json && !args.csv {
        say::note("no .NET process of this user is running; `etwprof counters FILE` shows saved counters");
        return Ok(());
    }
    output::print(|mut out| {
        if args.json {
            return report::write_listening_json(&mut out, &processes, available.as_ref());
        }
        if args.csv {
            return report::write_listening_csv(&mut out, &processes);
        }
        if !processes.is_empty() {
            report::write_listening(&mut out, &processes, output::terminal_width())?;
        }
        if let Some(available) = &available {
            if !processes.is_empty() {
                writeln!(out)?;
            }
            report::write_available(&mut out, available, output::terminal_width())?;
        }
        Ok(())
    })
}

/// Lists the objects of a block.
pub(super) fn objects(args: &args::Counters, available: &report::Available) -> Result<()> {
    output::print(|mut out| match (args.json, args.csv) {
        (true, _) => report::write_available_json(&mut out, available),
        (_, true) => report::write_available_csv(&mut out, available),
        _ => report::write_available(&mut out, available, output::terminal_width()),
    })
}
