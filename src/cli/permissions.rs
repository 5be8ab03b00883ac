//! `etwprof grant`, `revoke` and `permissions`: profiling without being an administrator.

#[cfg(windows)]
mod cures;
#[cfg(windows)]
mod print;
#[cfg(windows)]
mod run;

#[cfg(windows)]
pub(super) use run::{cause, explained, grant, permissions, revoke};

#[cfg(not(windows))]
mod elsewhere {
    use anyhow::{Result, bail};

    use crate::cli::args;

    const NEEDS_WINDOWS: &str = "needs Windows, where recordings are made; on this system `etwprof convert FILE.etl` \
                                 shows them without special rights";

    pub(in crate::cli) fn grant(_args: &args::Grant) -> Result<()> {
        bail!("`etwprof grant` {NEEDS_WINDOWS}")
    }

    pub(in crate::cli) fn revoke(_args: &args::Revoke) -> Result<()> {
        bail!("`etwprof revoke` {NEEDS_WINDOWS}")
    }

    pub(in crate::cli) fn permissions(_args: &args::Permissions) -> Result<()> {
        bail!("`etwprof permissions` {NEEDS_WINDOWS}")
    }
}
#[cfg(not(windows))]
pub(super) use elsewhere::{grant, permissions, revoke};
