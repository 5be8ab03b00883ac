//! Methods: code that comes and goes, and its map back to IL.

use crate::bytes::{Reader, Utf16};

use super::Phase;

/// A method's code came, went, or is there.
///
/// One method may have several bodies at once: a hot and a cold part, one for each tier, one for each re-JIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle of the method; used again after an unload.
    pub id: u64,
    /// The runtime's handle of its module.
    pub module: u64,
    /// Where its code begins.
    pub start: u64,
    /// The size of its code in bytes.
    pub size: u32,
    /// Its metadata token, `0x06xxxxxx`; `0x06000000` for those without metadata.
    pub token: u32,
    /// What kind of code it is.
    pub flags: MethodFlags,
    /// Its name; `None` in the events without names.
    pub name: Option<MethodName<'a>>,
    /// Which runtime of the process; `None` in version 0, and where a long record was cut.
    pub instance: Option<u16>,
    /// Which re-JIT it comes from; 0 for the first compilation.
    pub rejit: u64,
}

/// A method's name in the runtime's own form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodName<'a> {
    /// The type's full name, ``System.Collections.Generic.List`1[System.__Canon]``; `dynamicClass` for dynamic methods.
    pub type_name: Utf16<'a>,
    /// The method's name in the metadata.
    pub method: Utf16<'a>,
    /// Its signature: `instance void  (int32,class System.String)`.
    pub signature: Utf16<'a>,
}

impl<'a> MethodName<'a> {
    fn read(r: &mut Reader<'a>) -> Self {
        MethodName { type_name: r.utf16(), method: r.utf16(), signature: r.utf16() }
    }
}

/// The flags of a method event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodFlags(pub u32);

impl MethodFlags {
    /// It has no metadata: an IL stub, or made by `System.Reflection.Emit.DynamicMethod`.
    pub fn is_dynamic(self) -> bool {
        self.0 & 0x1 != 0
    }

    /// It is generic.
    pub fn is_generic(self) -> bool {
        self.0 & 0x2 != 0
    }

    /// Compiled at run time; else it lies precompiled in an image.
    pub fn is_jitted(self) -> bool {
        self.0 & 0x8 != 0
    }

    /// A helper routine that the runtime generated.
    pub fn is_helper(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Compiled at run time, because the runtime turned down the precompiled code that its image has for it.
    pub fn is_rejected(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// Its tier. Unload events do not carry it (verified on diaghub.user_paged.1.etl).
    pub fn tier(self) -> Tier {
        match self.0 >> 7 & 0x7 {
            1 => Tier::MinOptimized,
            2 => Tier::Optimized,
            3 => Tier::Tier0,
            4 => Tier::Tier1,
            5 => Tier::Osr,
            6 => Tier::Tier0Instrumented,
            7 => Tier::Tier1Instrumented,
            _ => Tier::Unknown,
        }
    }

    /// The cold part of a method whose hot part lies elsewhere.
    pub fn is_cold(self) -> bool {
        self.0 >> 28 != 0
    }
}

/// How well the JIT compiler did its work, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// Not told: precompiled code, and runtimes without tiers.
    #[default]
    Unknown,
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

/// Method id u64, module id u64, start u64, size u32, token u32, flags u32; three texts in the verbose events; from
/// version 1 on the runtime instance u16, from version 2 on the re-JIT id u64. Verified on net.4.5.2.x64.etl, the
/// diaghub session and TraceLoggingTester.etl (versions 1 and 2).
///
/// A record has at most 65,535 bytes: long texts are cut, and what would follow is missing.
pub(super) fn decode<'a>(r: &mut Reader<'a>, version: u8, phase: Phase, verbose: bool) -> Option<Method<'a>> {
    Some(Method {
        phase,
        id: r.u64()?,
        module: r.u64()?,
        start: r.u64()?,
        size: r.u32()?,
        token: r.u32()?,
        flags: MethodFlags(r.u32()?),
        name: verbose.then(|| MethodName::read(r)),
        instance: if version >= 1 { r.u16() } else { None },
        rejit: if version >= 2 { r.u64().unwrap_or(0) } else { 0 },
    })
}

/// Which native code belongs to which IL of a method: live that of the body told last for its id, in a rundown that of
/// the body told next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IlMap<'a> {
    /// Why it is told.
    pub phase: Phase,
    /// The runtime's handle of the method.
    pub method: u64,
    /// Which re-JIT; .NET Core 3.1 writes 0 here for all.
    pub rejit: u64,
    /// Which runtime of the process.
    pub instance: Option<u16>,
    il: &'a [[u8; 4]],
    native: &'a [[u8; 4]],
}

impl IlMap<'_> {
    /// Pairs of native offset and IL offset, not always in order. The IL offset is -1 where there is none, -2 for the
    /// prolog and -3 for the epilog.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (u32, i32)> + '_ {
        let pairs = self.native.iter().zip(self.il);
        pairs.map(|(native, il)| (u32::from_le_bytes(*native), i32::from_le_bytes(*il)))
    }
}

/// Method id u64, re-JIT id u64, extent u8, count u16, IL offsets i32, native offsets u32, runtime instance u16.
/// Verified on net.4.5.2.x64.etl (273 live, 16,221 in the rundown).
pub(super) fn decode_il_map<'a>(r: &mut Reader<'a>, phase: Phase) -> Option<IlMap<'a>> {
    let (method, rejit) = (r.u64()?, r.u64()?);
    r.skip(1)?;
    let bytes = usize::from(r.u16()?) * 4;
    let (il, native) = (r.take(bytes)?.as_chunks().0, r.take(bytes)?.as_chunks().0);
    Some(IlMap { phase, method, rejit, instance: r.u16(), il, native })
}

/// A method is about to be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JittingStarted<'a> {
    /// The runtime's handle of the method.
    pub method: u64,
    /// The runtime's handle of its module.
    pub module: u64,
    /// Its metadata token.
    pub token: u32,
    /// The size of its IL in bytes.
    pub il_size: u32,
    /// Its name.
    pub name: MethodName<'a>,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Method id u64, module id u64, token u32, IL size u32, three texts, runtime instance u16 (version 1). Verified on
/// net.4.5.2.x64.etl.
pub(super) fn decode_jitting_started<'a>(r: &mut Reader<'a>, version: u8) -> Option<JittingStarted<'a>> {
    Some(JittingStarted {
        method: r.u64()?,
        module: r.u64()?,
        token: r.u32()?,
        il_size: r.u32()?,
        name: MethodName::read(r),
        instance: if version >= 1 { r.u16() } else { None },
    })
}

/// Memory for a method's code was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitMemory {
    /// The runtime's handle of the method.
    pub method: u64,
    /// The runtime's handle of its module.
    pub module: u64,
    /// Bytes for its hot code.
    pub hot: u64,
    /// Bytes for its read-only data.
    pub read_only: u64,
    /// Bytes that were taken in all.
    pub allocated: u64,
    /// What the JIT compiler asked for.
    pub flags: u32,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Method id, module id, hot size, read-only size, allocated size, all u64; flags u32; runtime instance u16
/// (manifest; not verified).
pub(super) fn decode_jit_memory(r: &mut Reader<'_>) -> Option<JitMemory> {
    Some(JitMemory {
        method: r.u64()?,
        module: r.u64()?,
        hot: r.u64()?,
        read_only: r.u64()?,
        allocated: r.u64()?,
        flags: r.u32()?,
        instance: r.u16(),
    })
}

/// A precompiled method was called for the first time. Its size is not told: the image's table of functions has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rEntryPoint<'a> {
    /// The runtime's handle of the method.
    pub method: u64,
    /// Its name.
    pub name: MethodName<'a>,
    /// Where its code begins.
    pub entry: u64,
    /// Which runtime of the process.
    pub instance: Option<u16>,
}

/// Method id u64, three texts, entry u64, runtime instance u16 (manifest; not verified).
pub(super) fn decode_r2r_entry_point<'a>(r: &mut Reader<'a>) -> Option<R2rEntryPoint<'a>> {
    Some(R2rEntryPoint { method: r.u64()?, name: MethodName::read(r), entry: r.u64()?, instance: r.u16() })
}
