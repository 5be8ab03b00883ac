//! Profiling live. The work is in the modules below, for Windows; other systems say what they can do. The texts are
//! tested on every system.

#[cfg(windows)]
mod counters;
#[cfg(any(windows, test))]
mod cures;
#[cfg(windows)]
mod diagnose;
#[cfg(windows)]
mod file;
#[cfg(windows)]
mod missing;
#[cfg(windows)]
mod record;
#[cfg(windows)]
mod sessions;
#[cfg(windows)]
mod status;
#[cfg(windows)]
mod stop;
#[cfg(windows)]
mod targets;
#[cfg(any(windows, test))]
mod words;

#[cfg(windows)]
pub(super) use cures::with_cure;
#[cfg(windows)]
pub(super) use record::{record, run};
#[cfg(windows)]
pub(super) use sessions::run as sessions;

#[cfg(not(windows))]
mod elsewhere {
    use anyhow::{Result, bail};

    use crate::cli::args::{Live, Record, Sessions};

    pub(in crate::cli) fn run(_args: &Live, _quiet: bool) -> Result<()> {
        bail!(
            "live profiling needs Windows; on this system `etwprof convert FILE.etl` shows recordings made there"
        )
    }

    pub(in crate::cli) fn record(_args: &Record, _quiet: bool) -> Result<()> {
        bail!(
            "recording needs Windows; on this system `etwprof trim` and `etwprof convert` take recordings made there"
        )
    }

    pub(in crate::cli) fn sessions(_args: &Sessions) -> Result<()> {
        bail!(
            "trace sessions need Windows; on this system `etwprof convert FILE.etl` shows recordings made there"
        )
    }
}
#[cfg(not(windows))]
pub(super) use elsewhere::{record, run, sessions};
