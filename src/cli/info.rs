//! `etwprof info`: what is in a recording.

use anyhow::Result;
use etwprof::Options;
use etwprof::profile::Detail;
use etwprof::report::info::{self, Info};
use etwprof::trace::Keep;

use super::{args, choose, load, output, strict};

pub(super) fn run(args: &args::Info, quiet: bool) -> Result<()> {
    let filter = args.filter.options()?;
    let options = args.limits.options(filter, args.symbols.local(quiet)?, Detail::default());
    let keep = Keep { switches: true, readied: true, disk: true, interrupts: true, ..Keep::default() };
    let options = Options { keep, ..options };
    let mut analysis = load::analysis(&args.files, &options, quiet)?;
    choose::narrow(&mut analysis, &options.filter, &args.filter.samples, Detail::default(), quiet)?;
    let info = Info::new(&analysis);
    let printed = output::print(|mut out| {
        if args.json { info::write_json(&mut out, &info) } else { info::write(&mut out, &info) }
    });
    let names_wanted = options.symbols.is_some();
    strict::checked(args.limits.strict, printed, || strict::reasons(&analysis, names_wanted))
}
