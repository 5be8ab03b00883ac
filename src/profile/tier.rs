//! How a .NET method's code was compiled.

use serde::Serialize;

use crate::events::clr::{self, MethodFlags};

/// How a .NET method's code was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tier {
    /// Before the program ran, by NGEN.
    Ngen,
    /// Before the program ran, by ReadyToRun.
    ReadyToRun,
    /// Without optimization on request: `NoOptimization`, or a debugger.
    MinOptimized,
    /// Optimized at once, tiers being off for it.
    Optimized,
    /// Compiled quickly, to be compiled again if it is hot.
    Tier0,
    /// Optimized because it was hot.
    Tier1,
    /// Optimized while a loop of it ran, and entered in the middle: on-stack replacement.
    Osr,
    /// Tier 0 with counters in it.
    Tier0Instrumented,
    /// Tier 1 with counters in it.
    Tier1Instrumented,
}

impl Tier {
    /// By the flags of a method's event; `None` where the runtime does not say. Code that the JIT did not make comes
    /// from the module's image.
    pub fn of(method: MethodFlags, ready_to_run: bool) -> Option<Tier> {
        if !method.is_jitted() && !method.is_dynamic() {
            return Some(if ready_to_run { Tier::ReadyToRun } else { Tier::Ngen });
        }
        Some(match method.tier() {
            clr::Tier::Unknown => return None,
            clr::Tier::MinOptimized => Tier::MinOptimized,
            clr::Tier::Optimized => Tier::Optimized,
            clr::Tier::Tier0 => Tier::Tier0,
            clr::Tier::Tier1 => Tier::Tier1,
            clr::Tier::Osr => Tier::Osr,
            clr::Tier::Tier0Instrumented => Tier::Tier0Instrumented,
            clr::Tier::Tier1Instrumented => Tier::Tier1Instrumented,
        })
    }

    /// As PerfView writes it.
    pub fn text(self) -> &'static str {
        match self {
            Tier::Ngen => "PreJIT",
            Tier::ReadyToRun => "R2R",
            Tier::MinOptimized => "MinOpt",
            Tier::Optimized => "Optimized",
            Tier::Tier0 => "Tier0",
            Tier::Tier1 => "Tier1",
            Tier::Osr => "OSR",
            Tier::Tier0Instrumented => "Tier0 instrumented",
            Tier::Tier1Instrumented => "Tier1 instrumented",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tier;
    use crate::events::clr::MethodFlags;

    #[test]
    fn flags_of_real_events() {
        // Flags as they stand in the events of TraceLoggingTester.etl and diaghub.user_paged.1.etl.
        for (flags, ready_to_run, tier) in [
            (0x188, false, Some(Tier::Tier0)),
            (0x18A, true, Some(Tier::Tier0)),
            (0x208, false, Some(Tier::Tier1)),
            (0x308, false, Some(Tier::Tier0Instrumented)),
            (0x388, false, Some(Tier::Tier1Instrumented)),
            (0x109, false, Some(Tier::Optimized)),
            // .NET Framework 4.5 has no tiers.
            (0x8, false, None),
            (0x0, false, Some(Tier::Ngen)),
            (0x100, true, Some(Tier::ReadyToRun)),
            (0x288, true, Some(Tier::Osr)),
        ] {
            assert_eq!(Tier::of(MethodFlags(flags), ready_to_run), tier, "{flags:#x}");
        }
    }
}
