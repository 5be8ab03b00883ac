//! The arguments of `findings`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Reading;

const EXAMPLES: &str = "\
Examples:
  etwprof findings trace.etl                what stands out, with evidence and advice
  etwprof findings trace.etl --name orders  in one program
  etwprof findings trace.etl --json | jq '.findings[].id'

The share in front of a finding is of all CPU time, unless its evidence says
otherwise. docs/findings.md lists all findings and when each is reported.";

/// What an expert would notice first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Findings {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: Reading,
}
