//! Shows samples as they come: a table that is renewed in place, CSV, or JSON at the end.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Result, bail};
use etwprof::report::counters as report;

use super::show;
use crate::cli::usage::Usage;
use crate::cli::{args, output};

/// How often a sample can be asked for, and whether the output can be made of so many.
pub(super) fn check(args: &args::Counters) -> Result<()> {
    if args.every < Duration::from_millis(100) {
        bail!(Usage("--every: at least 100ms".to_owned()));
    }
    if args.json && args.count.is_none() {
        bail!(Usage("--json: say how many samples with --count; --csv prints them as they come".to_owned()));
    }
    Ok(())
}

/// Shows the samples that `next` gives, until there is none or there are as many as `--count` says.
pub(super) fn follow(
    args: &args::Counters,
    source: &str,
    next: &mut dyn FnMut() -> Result<Option<report::Moment>>,
) -> Result<()> {
    let most = args.count.map_or(u64::MAX, |count| count.get());
    if args.json {
        let mut moments = Vec::new();
        while (moments.len() as u64) < most
            && let Some(moment) = next()?
        {
            moments.push(moment);
        }
        return show(args, &report::Counters { source: source.to_owned(), moments });
    }
    let mut failed = None;
    let in_place = io::stdout().is_terminal() && !args.csv;
    output::print(|out| {
        let mut lines = None;
        let mut csv = if args.csv { Some(report::CsvLines::begin(io::stdout())?) } else { None };
        for _ in 0..most {
            let moment = match next() {
                Ok(Some(moment)) => moment,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if let Some(csv) = &mut csv {
                csv.write(&moment)?;
                continue;
            }
            let mut text = Vec::new();
            let counters = report::Counters { source: source.to_owned(), moments: vec![moment] };
            report::write(&mut text, &counters, output::terminal_width())?;
            match lines.replace(text.iter().filter(|byte| **byte == b'\n').count()) {
                Some(lines) if in_place => ::console::Term::stdout().clear_last_lines(lines)?,
                Some(_) => writeln!(out)?,
                None => {}
            }
            out.write_all(&text)?;
            out.flush()?;
        }
        Ok(())
    })?;
    failed.map_or(Ok(()), Err)
}
