//! The arguments of `mcp`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Symbols;

const EXAMPLES: &str = "\
Examples:
  etwprof mcp                        serve the recordings in this folder
  etwprof mcp C:\\traces --offline    of another; ask no symbol server

A client starts the program itself. Most take a configuration like this:
  { \"mcpServers\": { \"etwprof\": { \"command\": \"etwprof\", \"args\": [\"mcp\", \"C:\\\\traces\"] } } }

Tools: open, info, findings, gc, jit, top, callers, callees, lines, tree, diff.";

/// Answers for an assistant.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// The folders with recordings; files elsewhere are never opened
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folders: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) symbols: Symbols,
}
