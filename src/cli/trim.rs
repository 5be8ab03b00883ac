//! `etwprof trim`: a recording made smaller, or its parts made one.

use std::cell::RefCell;

use anyhow::{Result, bail};
use etwprof::analysis;
use etwprof::etl::{Reading, Recording, writer};
use etwprof::profile::Filter;
use etwprof::report::trim::{self as report, Trimmed};
use etwprof::trace::{ProcessId, Runner, Trace};
use etwprof::trim::{Choice, Trim};

use super::usage::Usage;
use super::{args, candidates, load, output};

pub(super) fn run(args: &args::Trim, quiet: bool) -> Result<()> {
    let to = args::Output { path: Some(args.output.clone()), format: None };
    if to.file().is_none() || args.output.exists() && !args.output.is_file() && !args.output.is_dir() {
        bail!(Usage("-o: a recording is written to a file; name one".to_owned()));
    }
    to.check(&args.files)?;
    let filter = args.filter()?;
    let recording = Recording::open(&args.files)?;
    let jobs = analysis::processors();
    // Who was there and when is read first. Samples are of no use for that.
    let Reading { value: trace, .. } = load::watched(&recording, quiet, |progress| match args.is_all() {
        true => Reading { value: None, damage: Vec::new() },
        false => {
            let prepare = |builder: &mut etwprof::trace::Builder| {
                builder.keep_only([]);
                builder.hold(0);
            };
            let Reading { value, damage } = analysis::trace_with(&recording, None, progress, prepare);
            Reading { value: Some(value), damage }
        }
    })?;
    let choice = match &trace {
        None => None,
        Some(trace) => Some((trace, choice(args, &filter, trace, quiet)?)),
    };
    let trim = match choice {
        None => None,
        Some((trace, choice)) => {
            let survey = |progress: &mut dyn FnMut(u64)| {
                let value = Trim::new(&recording, trace, choice, jobs, progress);
                Reading { value, damage: Vec::new() }
            };
            Some(load::watched(&recording, quiet, survey)?.value)
        }
    };
    drop(trace);
    let compress = match (args.compress, args.no_compress) {
        (true, _) => true,
        (_, true) => false,
        _ => recording.files().iter().any(|file| file.header().is_compressed()),
    };
    let copied = RefCell::new(None);
    let mut shrunk = None;
    output::write_recording(&args.output, |out| {
        let reading = load::watched(&recording, quiet, |progress| {
            let copy = match &trim {
                Some(trim) => writer::copy(&recording, trim, compress, jobs, progress, out),
                None => writer::copy(&recording, &writer::KeepAll, compress, jobs, progress, out),
            };
            match copy {
                Ok(Reading { value, damage }) => Reading { value: Ok(value), damage },
                Err(error) => Reading { value: Err(error), damage: Vec::new() },
            }
        });
        match reading {
            Ok(Reading { value, damage }) => {
                copied.replace(Some((value?, damage)));
                Ok(())
            }
            Err(error) => {
                shrunk = Some(error);
                Err(std::io::Error::other("a part of the recording is gone"))
            }
        }
    })
    .map_err(|error| shrunk.unwrap_or(error))?;
    let Some((copied, damage)) = copied.into_inner() else { bail!("nothing was written") };
    load::warn_damaged(&damage);
    let trimmed = Trimmed::new(recording.size(), &copied, damage.len());
    output::print(|mut out| match args.json {
        true => report::write_json(&mut out, &trimmed),
        false => report::write(&mut out, &trimmed),
    })
}

impl args::Trim {
    fn is_all(&self) -> bool {
        let args::Trim { processes, from, to, provider, .. } = self;
        let any = processes.pid.is_empty() && processes.name.is_empty();
        any && from.is_none() && to.is_none() && provider.is_empty()
    }

    fn filter(&self) -> Result<Filter> {
        let processes = &self.processes;
        if processes.children && processes.pid.is_empty() && processes.name.is_empty() {
            bail!(Usage("--children: name a process too, with --pid or --name".to_owned()));
        }
        Ok(Filter {
            pids: processes.pid.clone(),
            names: processes.name.clone(),
            children: processes.children,
            from: self.from,
            to: self.to,
            ..Filter::default()
        })
    }
}

/// What the options choose of the recording.
fn choice(args: &args::Trim, filter: &Filter, trace: &Trace, quiet: bool) -> Result<Choice> {
    candidates::check_processes(filter, trace, quiet)?;
    candidates::check_times(filter, trace, quiet)?;
    let processes = (!filter.pids.is_empty() || !filter.names.is_empty()).then(|| {
        let ids = (0..).map(ProcessId).take(trace.processes.len());
        let runners: Vec<Runner> =
            ids.map(|process| Runner { process, tid: etwprof::event::NO_ID, thread: None }).collect();
        let kept = filter.runners(trace, &runners).into_iter().zip(&runners);
        kept.filter(|(is_kept, _)| *is_kept).map(|(_, runner)| runner.process).collect()
    });
    Ok(Choice {
        processes,
        from: args.from.map(|from| from.at(trace)),
        to: args.to.map(|to| to.at(trace)),
        providers: args.provider.clone(),
    })
}
