//! The arguments of `grant`, `revoke` and `permissions`.

use clap::Args;

const GRANT_EXAMPLES: &str = "\
Examples:
  etwprof grant CORP\\ann --dry-run    list each right with its reason; change nothing
  etwprof grant CORP\\ann              grant them; ann logs off and on, then profiles
  etwprof grant --me                  grant them to your own account
  etwprof grant Developers            grant them to a group
  etwprof grant S-1-5-21-1-2-3-1001   by SID; `etwprof permissions` prints yours
  etwprof grant CORP\\ann --via-group  through Performance Log Users if possible

Run this once, in an elevated console. docs/permissions.md explains what each
right lets an account see.";

const REVOKE_EXAMPLES: &str = "\
Examples:
  etwprof revoke CORP\\ann        revoke what was granted to ann
  etwprof revoke                 revoke everything that etwprof ever granted on this machine
  etwprof revoke Developers --json";

const PERMISSIONS_EXAMPLES: &str = "\
Examples:
  etwprof permissions            what you have, and what is missing
  etwprof permissions CORP\\ann --json";

#[derive(Debug, Args)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct Grant {
    /// A user or group (DOMAIN\user, user, group), or a SID
    #[arg(required_unless_present = "me", conflicts_with = "me")]
    pub(crate) account: Option<String>,

    /// Grant to the account that runs this command
    #[arg(long)]
    pub(crate) me: bool,

    /// Add the account to the group Performance Log Users, which gives more rights than profiling needs
    #[arg(long)]
    pub(crate) via_group: bool,

    /// Show what would be granted, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = REVOKE_EXAMPLES)]
pub(crate) struct Revoke {
    /// Revoke from this account only [default: all accounts]
    #[arg(conflicts_with = "me")]
    pub(crate) account: Option<String>,

    /// Revoke from the account that runs this command
    #[arg(long)]
    pub(crate) me: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = PERMISSIONS_EXAMPLES)]
pub(crate) struct Permissions {
    /// A user, a group or a SID [default: the account that runs this command]
    pub(crate) account: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
