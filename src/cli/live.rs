//! Profiling live.

use anyhow::{Result, bail};

use super::args::Live;

pub(super) fn run(_args: &Live) -> Result<()> {
    if cfg!(windows) {
        bail!(
            "this version does not profile live yet; record with `wpr -start CPU` and `wpr -stop trace.etl`, then run \
             `etwprof convert trace.etl`"
        );
    }
    bail!(
        "live profiling needs Windows; on this system `etwprof convert FILE.etl` shows recordings made there"
    )
}
