//! `etwprof mcp`: answers an assistant over stdin and stdout, by the Model Context Protocol.
//!
//! A tool is a command of this program: its arguments are the command's options, its result the command's JSON. What an
//! assistant may not choose (where symbols come from, what is written, how much memory) is no argument of a tool.

mod call;
mod server;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command as Definition, CommandFactory};

use super::args::{self, Args};
use super::usage::Usage;

pub(super) fn run(args: &args::Mcp) -> Result<()> {
    let folders = args.folders.iter().map(|folder| {
        let resolved =
            folder.canonicalize().with_context(|| format!("cannot open the folder {}", folder.display()))?;
        match resolved.is_dir() {
            true => Ok(resolved),
            false => {
                bail!(Usage(format!("{}: give the folder that the recordings are in", folder.display())))
            }
        }
    });
    let folders: Vec<PathBuf> = folders.collect::<Result<_>>()?;
    let options = shared_options(&Args::command(), &Args::command().get_matches());
    server::run(folders, options)
}

/// The options of this command line that every tool takes: where symbols come from.
fn shared_options(definition: &Definition, matches: &ArgMatches) -> Vec<OsString> {
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = definition.find_subcommand(name) else { return Vec::new() };
    let mut options = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = given.value_source(id) == Some(ValueSource::CommandLine);
        let Some(long) = argument.get_long().filter(|_| is_given && tools::is_of_symbols(argument)) else {
            continue;
        };
        match argument.get_action() {
            ArgAction::SetTrue => options.push(format!("--{long}").into()),
            _ => {
                for value in given.get_raw(id).into_iter().flatten() {
                    let mut option = OsString::from(format!("--{long}="));
                    option.push(value);
                    options.push(option);
                }
            }
        }
    }
    options
}
