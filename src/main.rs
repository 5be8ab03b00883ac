//! The `etwprof` program.

mod cli;

use clap::Parser;

/// Where did the CPU time go?
#[derive(Debug, clap::Parser)]
#[command(version)]
enum Command {
    Symbolize(cli::symbolize::Symbolize),
}

fn main() -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match Command::parse() {
        Command::Symbolize(args) => cli::symbolize::run(&args, &mut out),
    }
}
