//! `etwprof completions` and `etwprof man`: made from the argument definitions.

use anyhow::Result;
use clap::CommandFactory;

use super::args::Args;
use super::output;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<()> {
    // Into memory first: it does not forgive a reader that goes away.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "etwprof", &mut script);
    output::write(None, |out| out.write_all(&script))
}

pub(super) fn man() -> Result<()> {
    output::write(None, |mut out| clap_mangen::Man::new(Args::command()).render(&mut out))
}
