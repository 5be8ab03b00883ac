//! Which rights profiling needs, and why each.

use serde::Serialize;

use crate::guid::Guid;
use crate::guids;

/// Rights of ETW objects, as wmistr.h defines them.
///
/// Which call asks for which is documented in part only. docs/permissions.md has the sources; what is believed without
/// one is listed, to be ticked on a real Windows, in tests/standin/README.md.
pub mod bits {
    /// `WMIGUID_QUERY`: query a session (documentation of EventAccessControl).
    pub const QUERY: u32 = 0x1;
    /// `TRACELOG_CREATE_REALTIME`: start, update or flush a real-time session (the flush is not documented).
    pub const CREATE_REALTIME: u32 = 0x20;
    /// `TRACELOG_GUID_ENABLE`: on a provider, switch it on. On a session, set its kernel flags, its stacks and its
    /// counters; to start, flush and stop it, too (these three are not documented).
    pub const GUID_ENABLE: u32 = 0x80;
    /// `TRACELOG_ACCESS_REALTIME`: consume a session's events while it runs.
    pub const ACCESS_REALTIME: u32 = 0x400;
}

/// What a session of ours needs, from its start to its stop.
const SESSION: u32 = bits::QUERY | bits::CREATE_REALTIME | bits::GUID_ENABLE | bits::ACCESS_REALTIME;

/// The names of rights, as the headers have them, with `|` between.
pub fn names(rights: u32) -> String {
    const NAMES: [(u32, &str); 4] = [
        (bits::QUERY, "WMIGUID_QUERY"),
        (bits::CREATE_REALTIME, "TRACELOG_CREATE_REALTIME"),
        (bits::GUID_ENABLE, "TRACELOG_GUID_ENABLE"),
        (bits::ACCESS_REALTIME, "TRACELOG_ACCESS_REALTIME"),
    ];
    let named = NAMES.iter().filter(|(bit, _)| rights & bit != 0);
    named.map(|(_, name)| *name).collect::<Vec<_>>().join(" | ")
}

/// The privilege to sample, and to set the sampling interval.
pub const PROFILE_PRIVILEGE: &str = "SeSystemProfilePrivilege";

/// What a right is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// CPU samples with their stacks, native code.
    Sampling,
    /// Names of .NET methods.
    DotNet,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 2] = [Feature::Sampling, Feature::DotNet];

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Feature::Sampling => "CPU sampling with stacks",
            Feature::DotNet => "names of .NET methods",
        }
    }
}

/// One thing that can be given to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Right {
    /// Rights to an ETW session or provider.
    Trace {
        /// The GUID under which Windows keeps the rights.
        guid: Guid,
        /// What it is.
        object: &'static str,
        /// The bits, of [`bits`].
        rights: u32,
    },
    /// A privilege.
    Privilege {
        /// Its name.
        name: &'static str,
    },
    /// Membership of `BUILTIN\Performance Log Users`.
    Group,
}

/// One need: a right, what for, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The right.
    pub right: Right,
    /// The feature that does not work without it.
    pub feature: Feature,
    /// Why, in a sentence.
    pub why: &'static str,
}

const KERNEL_SESSION: Need = Need {
    right: Right::Trace { guid: guids::KERNEL_SESSION, object: "etwprof's kernel session", rights: SESSION },
    feature: Feature::Sampling,
    why: "start, set up, query, flush and stop etwprof's own kernel session and read its events; no other session is \
          opened by it",
};
const CLR_SESSION: Need = Need {
    right: Right::Trace { guid: guids::CLR_SESSION, object: "etwprof's CLR session", rights: SESSION },
    feature: Feature::DotNet,
    why: "the same for etwprof's own session of .NET events",
};
const SYSTEM_TRACE: Need = Need {
    right: Right::Trace {
        guid: guids::SYSTEM_TRACE_CONTROL,
        object: "the kernel's events (SystemTraceControl)",
        rights: bits::GUID_ENABLE,
    },
    feature: Feature::Sampling,
    why: "switch kernel events on in a session that the account may start: processes, threads, images, samples and \
          stacks of the whole system",
};
const CLR: Need = Need {
    right: Right::Trace {
        guid: guids::CLR,
        object: "Microsoft-Windows-DotNETRuntime",
        rights: bits::GUID_ENABLE,
    },
    feature: Feature::DotNet,
    why: "have .NET processes report which methods they compile",
};
const CLR_RUNDOWN: Need = Need {
    right: Right::Trace {
        guid: guids::CLR_RUNDOWN,
        object: "Microsoft-Windows-DotNETRuntimeRundown",
        rights: bits::GUID_ENABLE,
    },
    feature: Feature::DotNet,
    why: "have .NET processes report which methods they compiled before",
};
const PRIVILEGE: Need = Need {
    right: Right::Privilege { name: PROFILE_PRIVILEGE },
    feature: Feature::Sampling,
    why: "sample the processors and set the sampling interval (\"Profile system performance\")",
};
const GROUP: Need = Need {
    right: Right::Group,
    feature: Feature::DotNet,
    why: "start, read and stop any ETW session but kernel ones, and switch on any provider that does not say \
          otherwise: more than etwprof needs",
};

/// How rights to sessions are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Each right by itself, and no more.
    #[default]
    Each,
    /// By membership of `BUILTIN\Performance Log Users`, and each by itself that this does not give here.
    Group,
}

impl Method {
    /// What is needed, in the order in which it is given.
    pub fn needs(self) -> &'static [Need] {
        match self {
            Method::Each => &[KERNEL_SESSION, CLR_SESSION, SYSTEM_TRACE, CLR, CLR_RUNDOWN, PRIVILEGE],
            // The group has its rights from Windows' default descriptor. The kernel's events have one of their own, and
            // an administrator may have given any other object one.
            Method::Group => &[GROUP, KERNEL_SESSION, CLR_SESSION, SYSTEM_TRACE, CLR, CLR_RUNDOWN, PRIVILEGE],
        }
    }
}

/// What the right is, in a few words.
impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Right::Trace { guid, object, rights } => write!(f, "{} on {object} {{{guid}}}", names(*rights)),
            Right::Privilege { name } => write!(f, "the privilege {name}"),
            Right::Group => f.write_str("membership of Performance Log Users"),
        }
    }
}
