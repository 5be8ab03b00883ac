//! `etwprof findings`: what an expert would notice first.

use anyhow::Result;
use etwprof::findings::Findings;
use etwprof::report::{Spelling, findings};
use etwprof::trace::Keep;

use super::{args, output, samples, strict, symbols};

pub(super) fn run(args: &args::Findings, quiet: bool) -> Result<()> {
    let detail = args.reading.names.options();
    let keep = Keep { switches: true, readied: true, disk: true, ..Keep::default() };
    let measure = args::Measure::default();
    let analysis = samples::open_keeping(keep, &args.files, &args.reading, &measure, detail, quiet)?;
    let spelling = Spelling::new(&analysis.profile, detail);
    let found = Findings::new(&analysis.profile, &analysis.symbols);
    let report = findings::Findings::new(&found, &analysis.profile, &spelling);
    if !quiet {
        symbols::warnings(&analysis);
    }
    let printed = output::print(|mut out| match args.json {
        true => findings::write_json(&mut out, &report),
        false => findings::write(&mut out, &report, output::terminal_width()),
    });
    let names_wanted = !args.reading.symbols.no_symbols;
    strict::checked(args.reading.limits.strict, printed, || strict::reasons(&analysis, names_wanted))
}
