//! The arguments of `view`.

use std::path::PathBuf;

use clap::Args;

use super::shaping::Shaping;
use super::shared::Reading;

const EXAMPLES: &str = "\
Examples:
  etwprof view trace.etl                       the report page
  etwprof view trace.etl --name orders         of one program
  etwprof view trace.etl --firefox             the Firefox Profiler
  etwprof view trace.etl --no-open --port 8080  print the address only

The profile stays on this machine: only its own browsers can reach it, by an
address that cannot be guessed. Ctrl-C ends the command.";

/// A profile in the browser.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct View {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Open the profile in the Firefox Profiler (profiler.firefox.com)
    ///
    /// Your browser loads the profile from this machine; it is not uploaded. Browsers ask first whether the site may
    /// reach your local network.
    #[arg(long, help_heading = "View")]
    pub(crate) firefox: bool,

    /// Print the address and open no browser
    #[arg(long, help_heading = "View")]
    pub(crate) no_open: bool,

    /// Listen on this port [default: any free one]
    #[arg(long, value_name = "N", help_heading = "View", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Look for source files in this folder and below, by the end of their paths (repeatable)
    #[arg(long, value_name = "DIR", requires = "firefox", help_heading = "View")]
    pub(crate) source: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) shaping: Shaping,

    #[command(flatten)]
    pub(crate) reading: Reading,
}
