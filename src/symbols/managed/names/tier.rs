//! How code was compiled, from the flags of method and module events.

/// Module flag: the image is ReadyToRun (ModuleLoad, ModuleFlags).
pub const MODULE_READY_TO_RUN: u32 = 0x20;

/// How a method's code was made, as a prefix of its name: `[Tier1]`; `None` where the runtime does not say.
///
/// `method_flags` are those of a MethodLoad event: bit 0 dynamic, bit 3 JIT-compiled, bits 7 to 9 the JIT's tier
/// (dotnet/runtime, eventtrace.h, MethodFlags). Code that the JIT did not make comes from the module's image:
/// ReadyToRun code by `module_flags`, else NGEN code.
pub fn tier(method_flags: u32, module_flags: u32) -> Option<&'static str> {
    const DYNAMIC: u32 = 0x1;
    const JITTED: u32 = 0x8;
    if method_flags & (JITTED | DYNAMIC) == 0 {
        let ready_to_run = module_flags & MODULE_READY_TO_RUN != 0;
        return Some(if ready_to_run { "[R2R]" } else { "[PreJIT]" });
    }
    match method_flags >> 7 & 7 {
        1 => Some("[MinOpt]"),
        2 => Some("[Optimized]"),
        3 => Some("[Tier0]"),
        4 => Some("[Tier1]"),
        5 => Some("[OSR]"),
        6 => Some("[Tier0 instrumented]"),
        7 => Some("[Tier1 instrumented]"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MODULE_READY_TO_RUN, tier};

    #[test]
    fn flags_of_real_events() {
        // Flags as they stand in the events of TraceLoggingTester.etl and diaghub.user_paged.1.etl.
        assert_eq!(tier(0x188, 0x8), Some("[Tier0]"));
        assert_eq!(tier(0x18A, MODULE_READY_TO_RUN), Some("[Tier0]"));
        assert_eq!(tier(0x208, 0x8), Some("[Tier1]"));
        assert_eq!(tier(0x308, 0x8), Some("[Tier0 instrumented]"));
        assert_eq!(tier(0x388, 0x8), Some("[Tier1 instrumented]"));
        assert_eq!(tier(0x109, 0x8), Some("[Optimized]"));
        // .NET Framework 4.5 has no tiers.
        assert_eq!(tier(0x8, 0x8), None);
        assert_eq!(tier(0x0, 0x2), Some("[PreJIT]"));
        assert_eq!(tier(0x100, 0x28), Some("[R2R]"));
        assert_eq!(tier(0x288, 0x28), Some("[OSR]"));
    }
}
