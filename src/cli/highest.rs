//! `--highest`: the time in which a recorded counter was highest.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use etwprof::Options;
use etwprof::counters::CounterPath;
use etwprof::event::Ticks;
use etwprof::profile::Moment;
use etwprof::report::counters::Row;
use etwprof::trace::{CounterTrack, Trace};

use super::args::{Command, Samples};
use super::usage::Usage;
use super::{load, say, time};

/// A counter, and how long a time is looked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Highest {
    path: CounterPath,
    time: Duration,
}

/// Long enough for some hundred samples of a program that is not busy.
const TIME: Duration = Duration::from_secs(10);

impl FromStr for Highest {
    type Err = String;

    fn from_str(text: &str) -> Result<Highest, String> {
        let timed = text.rsplit_once('=').and_then(|(path, length)| Some((path, time::parse(length).ok()?)));
        let (path, time) = timed.unwrap_or((text, TIME));
        if time.is_zero() {
            return Err("expected a time longer than 0".to_owned());
        }
        Ok(Highest { path: path.trim().parse().map_err(|error| format!("{error}"))?, time })
    }
}

/// Finds it where a command asks for it, and chooses the samples of that time.
pub(super) fn find(command: &mut Command, quiet: bool) -> Result<()> {
    let (samples, files) = match command {
        Command::Convert(args) => (&mut args.reading.filter.samples, &args.files),
        Command::View(args) => (&mut args.reading.filter.samples, &args.files),
        Command::Top(args) => (&mut args.reading.filter.samples, &args.files),
        Command::Callers(args) => (&mut args.calls.reading.filter.samples, &args.calls.asked.files),
        Command::Callees(args) => (&mut args.calls.reading.filter.samples, &args.calls.asked.files),
        Command::Lines(args) => (&mut args.reading.filter.samples, &args.asked.files),
        Command::Findings(args) => (&mut args.reading.filter.samples, &args.files),
        Command::Info(args) => (&mut args.filter.samples, &args.files),
        Command::Diff(args) if args.reading.filter.samples.highest.is_some() => {
            bail!(Usage(
                "--highest: the sides of a diff differ; choose the time with --from and --to".to_owned()
            ))
        }
        _ => return Ok(()),
    };
    choose(samples, files, quiet)
}

fn choose(samples: &mut Samples, files: &[PathBuf], quiet: bool) -> Result<()> {
    let Some(Highest { path, time }) = &samples.highest else { return Ok(()) };
    let analysis = load::analysis(files, &Options { symbols: None, ..Options::default() }, quiet)?;
    let trace = &analysis.profile.trace;
    let tracks = trace.counters.iter();
    let meant = tracks.filter(|track| path.means(&track.object, track.instance.as_deref(), &track.counter));
    let length = trace.clock.ticks(time.as_secs_f64());
    let highest = meant.filter_map(|track| Some((track, track.highest(length)?)));
    let Some((track, ((from, to), mean))) = highest.max_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)) else {
        bail!(Usage(missing(trace, path)))
    };
    let seconds = |time: Ticks| trace.clock.seconds(time).max(0.0);
    if !quiet {
        let what = Row::recorded(trace, track).path();
        let unit = if track.unit.is_empty() { String::new() } else { format!(" {}", track.unit) };
        say::note(format_args!(
            "{what} was highest from {:.3} s to {:.3} s: {mean:.1}{unit} on average",
            seconds(from),
            seconds(to)
        ));
    }
    (samples.from, samples.to) = (Some(Moment::Seconds(seconds(from))), Some(Moment::Seconds(seconds(to))));
    Ok(())
}

/// Why there is no such counter.
fn missing(trace: &Trace, path: &CounterPath) -> String {
    match trace.counters.as_slice() {
        [] => {
            format!("--highest {path}: no counters were recorded; `etwprof record --counters` records them")
        }
        _ => format!("--highest {path}: no such counter was recorded; {}", known(trace)),
    }
}

/// `there are Memory\Available MBytes, ...`.
pub(super) fn known(trace: &Trace) -> String {
    const SHOWN: usize = 10;
    let mut known: Vec<String> = trace.counters.iter().map(CounterTrack::path).collect();
    known.sort();
    known.dedup();
    let more = if known.len() > SHOWN { ", ..." } else { "" };
    known.truncate(SHOWN);
    format!("there are {}{more}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::Highest;

    #[test]
    fn a_counter_may_have_a_time() {
        let all =
            |text: &str| text.parse().map(|Highest { path, time }| (path.to_string(), time.as_secs_f64()));
        assert_eq!(
            all(r"System.Runtime\gc-heap-size"),
            Ok((r"System.Runtime\gc-heap-size".to_owned(), 10.0))
        );
        assert_eq!(all(r"LogicalDisk(C:)\% Idle=500ms"), Ok((r"LogicalDisk(C:)\% Idle".to_owned(), 0.5)));
        assert_eq!(all(r"A\b=c"), Ok((r"A\b=c".to_owned(), 10.0)));
        for text in ["", "heap", r"A\b=0s"] {
            assert!(text.parse::<Highest>().is_err(), "{text}");
        }
    }
}
