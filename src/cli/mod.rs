//! The command line.
//!
//! stdout is data and stderr is talk. Exit codes: 0 done, 1 the work failed, 2 the command line is wrong.

mod args;
mod convert;
mod events;
mod generate;
mod info;
mod live;
mod load;
mod output;
mod permissions;
mod progress;
mod symbolize;
mod symbols;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    args.color.apply();
    let result = match args.command {
        Some(Command::Convert(convert)) => convert::run(&convert, args.quiet),
        Some(Command::Info(info)) => info::run(&info, args.quiet),
        Some(Command::Events(events)) => events::run(&events, args.quiet),
        Some(Command::Symbols(symbols)) => symbols::run(&symbols, args.quiet),
        Some(Command::Symbolize(symbolize)) => symbolize::run(&symbolize, args.quiet),
        Some(Command::Grant(grant)) => permissions::grant(&grant),
        Some(Command::Revoke(revoke)) => permissions::revoke(&revoke),
        Some(Command::Permissions(permissions)) => permissions::permissions(&permissions),
        Some(Command::Completions { shell }) => generate::completions(shell),
        Some(Command::Man { command }) => generate::man(command.as_deref()),
        Some(Command::Sessions(sessions)) => live::sessions(&sessions),
        None => live::run(&args.live, args.quiet),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough: `etwprof convert x.etl | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{}error:{} {error:#}", args::ERROR, args::ERROR.render_reset());
            if error.is::<output::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}
