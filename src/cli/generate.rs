//! `etwprof completions` and `etwprof man`: made from the argument definitions.

use anyhow::Result;
use clap::CommandFactory;

use super::args::Args;
use super::output;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<()> {
    output::write(None, |mut out| {
        clap_complete::generate(shell, &mut Args::command(), "etwprof", &mut out);
        Ok(())
    })
}

pub(super) fn man() -> Result<()> {
    output::write(None, |mut out| clap_mangen::Man::new(Args::command()).render(&mut out))
}
