//! `etwprof info`: what is in a recording.

use anyhow::Result;
use etwprof::report::info::{self, Info};

use super::{args, load, output, symbols};

pub(super) fn run(args: &args::Info, quiet: bool) -> Result<()> {
    let loaded = load::trace(&args.files, quiet)?;
    let flags = args::Symbols::offline(&args.symbols, &args.images);
    let limit = load::limit(&loaded.trace, args.no_limit);
    let named =
        symbols::named(&loaded.trace, &args.files, &load::filter(&args.filter), limit, &flags, quiet)?;
    let info = Info::new(&loaded.recording, &loaded.trace, &named.profile, &named.symbols, &loaded.damage);
    output::write(None, |mut out| {
        if args.json { info::write_json(&mut out, &info) } else { info::write(&mut out, &info) }
    })
}
