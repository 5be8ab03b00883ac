//! `etwprof completions` and `etwprof man`: made from the argument definitions.

use anyhow::{Result, bail};
use clap::CommandFactory;

use super::args::Args;
use super::output;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<()> {
    output::write(None, |mut out| {
        clap_complete::generate(shell, &mut Args::command(), "etwprof", &mut out);
        Ok(())
    })
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
