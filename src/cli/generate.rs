//! `etwprof completions` and `etwprof man`: made from the argument definitions.

use anyhow::{Result, bail};
use clap::CommandFactory;

use super::args::Args;
use super::output;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<()> {
    // Into memory first: it does not forgive a reader that goes away.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "etwprof", &mut script);
    output::write(None, |out| out.write_all(&script))
}

pub(super) fn man(command: Option<&str>) -> Result<()> {
    let mut program = Args::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            let Some(found) = found else { bail!("there is no command `{name}`; `etwprof help` lists them") };
            let title = format!("etwprof-{name}");
            found.display_name(title)
        }
    };
    output::write(None, |mut out| clap_mangen::Man::new(page).render(&mut out))
}
