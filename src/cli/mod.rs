//! The command line.
//!
//! stdout is data and stderr is talk. Exit codes: 0 done, 1 the work failed, 2 the command line is wrong, 3 (`diff`)
//! there is too little evidence.

mod args;
mod candidates;
mod choose;
mod convert;
mod counters;
mod diff;
mod disk;
mod events;
mod findings;
mod generate;
mod highest;
mod info;
mod live;
mod load;
#[cfg(feature = "mcp")]
mod mcp;
mod options;
mod output;
mod permissions;
mod progress;
mod recording;
mod runtimes;
mod samples;
mod say;
mod served;
mod shape;
mod source;
mod strict;
mod symbolize;
mod symbols;
mod tables;
mod time;
mod timeline;
mod trim;
mod usage;
mod view;
mod waits;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use etwprof::report::calls::Side;
use etwprof::report::one_line;

use args::{Args, Command};

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    #[cfg(windows)]
    if counters::performance::answered(&line) {
        return ExitCode::SUCCESS;
    }
    let args = match Args::try_parse_from(recording::completed(line)) {
        Ok(args) => args,
        Err(stop) => return help_or_usage(&usage::mended(stop)),
    };
    args.color.apply();
    // Where that cannot be had, a file that shrinks ends the program as it always did.
    let _heard = etwprof::mmap::survive_shrinking();
    let reads_files = matches!(
        args.command,
        Some(
            Command::Convert(_)
                | Command::View(_)
                | Command::Top(_)
                | Command::Callers(_)
                | Command::Callees(_)
                | Command::Lines(_)
                | Command::Threads(_)
                | Command::Waits(_)
                | Command::Timeline(_)
                | Command::Disk(_)
                | Command::Interrupts(_)
                | Command::Diff(_)
                | Command::Findings(_)
                | Command::Gc(_)
                | Command::Jit(_)
                | Command::Info(_)
                | Command::Events(_)
                | Command::Trim(_)
                | Command::Counters(_)
                | Command::Symbols(_)
                | Command::Symbolize(_)
        )
    );
    match dispatch(args) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough: `etwprof convert x.etl | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // The findings say it.
            if error.is::<counters::SomethingIsWrong>() {
                return ExitCode::FAILURE;
            }
            if let Some(strict::Strict(reasons)) = error.downcast_ref() {
                reasons.iter().for_each(|reason| say::error(&one_line(&format!("--strict: {reason}"))));
                return ExitCode::FAILURE;
            }
            if let Some(diff::Refused(reasons)) = error.downcast_ref() {
                reasons.iter().for_each(|reason| say::error(&one_line(reason)));
                return ExitCode::FAILURE;
            }
            if let Some(diff::Undecided(reasons)) = error.downcast_ref() {
                reasons.iter().for_each(|reason| say::error(&one_line(reason)));
                return ExitCode::from(3);
            }
            let text = format!("{error:#}");
            // Errors about rights have several lines; the name of a file must not add any.
            say::error(&if reads_files { one_line(&text) } else { text.as_str().into() });
            if usage::is_wrong_line(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Does what a command line says.
fn dispatch(mut args: Args) -> anyhow::Result<()> {
    let quiet = args.quiet;
    if let Some(command) = &mut args.command {
        highest::find(command, quiet)?;
    }
    match args.command {
        Some(Command::Convert(convert)) => convert::run(&convert, quiet),
        Some(Command::View(view)) => view::run(&view, quiet),
        Some(Command::Top(top)) => tables::top(&top, quiet),
        Some(Command::Callers(callers)) => tables::calls(&callers.calls, Side::Callers, quiet),
        Some(Command::Callees(callees)) => tables::calls(&callees.calls, Side::Callees, quiet),
        Some(Command::Lines(lines)) => tables::lines(&lines, quiet),
        Some(Command::Threads(threads)) => waits::threads(&threads, quiet),
        Some(Command::Waits(worst)) => waits::worst(&worst, quiet),
        Some(Command::Timeline(timeline)) => timeline::run(&timeline, quiet),
        Some(Command::Disk(disk)) => disk::disk(&disk, quiet),
        Some(Command::Interrupts(interrupts)) => disk::interrupts(&interrupts, quiet),
        Some(Command::Diff(diff)) => diff::run(&diff, quiet),
        Some(Command::Findings(findings)) => findings::run(&findings, quiet),
        Some(Command::Gc(gc)) => runtimes::gc(&gc.asked, quiet),
        Some(Command::Jit(jit)) => runtimes::jit(&jit.asked, quiet),
        Some(Command::Info(info)) => info::run(&info, quiet),
        Some(Command::Events(events)) => events::run(&events, quiet),
        Some(Command::Record(live)) => live::record(&live, quiet),
        Some(Command::Trim(trim)) => trim::run(&trim, quiet),
        Some(Command::Counters(counters)) => counters::run(&counters, quiet),
        Some(Command::Symbols(symbols)) => symbols::run(&symbols, quiet),
        Some(Command::Symbolize(symbolize)) => symbolize::run(&symbolize, quiet),
        Some(Command::Grant(grant)) => permissions::grant(&grant),
        Some(Command::Revoke(revoke)) => permissions::revoke(&revoke),
        Some(Command::Permissions(permissions)) => permissions::permissions(&permissions),
        Some(Command::Completions { shell }) => generate::completions(shell),
        Some(Command::Man { command }) => generate::man(command.as_deref()),
        #[cfg(feature = "mcp")]
        Some(Command::Mcp(mcp)) => mcp::run(&mcp),
        Some(Command::Sessions(sessions)) => live::sessions(&sessions),
        None => live::run(&args.live, quiet),
    }
}

/// Prints what clap has to say: the help or the version, which are results, or what is wrong with the command line.
fn help_or_usage(stop: &clap::Error) -> ExitCode {
    let printed = stop.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(error) if !stop.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            say::error(&format!("cannot write: {error}"));
            ExitCode::FAILURE
        }
        _ if stop.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}
