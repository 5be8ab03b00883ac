//! `etwprof info`: what is in a recording.

use anyhow::Result;
use etwprof::profile::{Naming, Profile};
use etwprof::report::info::{self, Info};
use etwprof::symbols::Unnamed;

use super::{args, load, output};

pub(super) fn run(args: &args::Info, quiet: bool) -> Result<()> {
    let loaded = load::trace(&args.files, quiet)?;
    let profile = Profile::new(&loaded.trace, &load::filter(&args.filter), &Unnamed, Naming::default());
    let info = Info::new(&loaded.recording, &loaded.trace, &profile, &loaded.damage);
    output::write(None, |mut out| {
        if args.json { info::write_json(&mut out, &info) } else { info::write(&mut out, &info) }
    })
}
