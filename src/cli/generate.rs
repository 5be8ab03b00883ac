//! `etwprof completions` and `etwprof man`: made from the argument definitions.

use anyhow::{Result, bail};
use clap::CommandFactory;

use super::args::Args;
use super::output;
use super::usage::Usage;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<()> {
    // Into memory first: it does not forgive a reader that goes away.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "etwprof", &mut script);
    output::print(|out| out.write_all(&script))
}

pub(super) fn man(command: Option<&str>) -> Result<()> {
    let mut program = Args::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            let Some(found) = found else {
                bail!(Usage(format!("there is no command `{name}`; `etwprof help` lists them")))
            };
            let title = format!("etwprof-{name}");
            found.display_name(title)
        }
    };
    output::print(|mut out| clap_mangen::Man::new(page).render(&mut out))
}
