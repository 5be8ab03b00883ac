//! What is known to cost more than people expect, as data: by which frames it is seen, from which share on it matters, and
//! what to do about it.
//!
//! A rule is worth less than its false alarms cost. So shares are of CPU time that nothing else explains: what the program's
//! own code does below a frame of a rule, called back by reflection or by a logger, is its own.

use crate::profile::{Category, Unresolved};

use super::signature::Signature::{self, Method, Modules, Native};

/// What a finding is called, and what it asks for.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kind {
    /// The same in all versions, for scripts.
    pub id: &'static str,
    /// What was found, in a sentence without a full stop.
    pub title: &'static str,
    /// What to do.
    pub advice: &'static str,
}

/// A finding that frames show.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// What it is called.
    pub kind: Kind,
    /// The frames that show it.
    pub frames: Frames,
    /// Whose share counts.
    pub of: Whole,
    /// The least share that matters, from 0 to 1.
    pub least: f64,
}

/// Frames, and what is below them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Frames {
    /// Which frames.
    pub what: &'static [Signature],
    /// How far below them what is there counts as theirs.
    pub until: Until,
    /// Frames at which that ends, too: who waits does not work.
    pub ends: &'static [Signature],
    /// Below these frames they mean something else.
    pub but: &'static [Signature],
}

impl Frames {
    const fn of(what: &'static [Signature], until: Until) -> Frames {
        Frames { what, until, ends: &[], but: &[] }
    }

    const fn ending_at(self, ends: &'static [Signature]) -> Frames {
        Frames { ends, ..self }
    }

    const fn not_below(self, but: &'static [Signature]) -> Frames {
        Frames { but, ..self }
    }
}

/// How far below frames what is there counts as theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until .NET code that is not part of .NET itself.
    OwnCode,
    /// Until any .NET code: what the frames themselves cost.
    ManagedCode,
    /// To the end of the stack.
    End,
}

/// What a share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The CPU time of a program.
    Program,
    /// The CPU time of all that was kept.
    Everything,
}

const CLR: &[&str] = &["clr", "coreclr", "mscorwks"];
const KERNEL: &[&str] = &["ntoskrnl", "ntkrnlmp", "ntkrnlpa", "ntkrpamp"];
const NTDLL: &[&str] = &["ntdll"];
const BASE: &[&str] = &["kernelbase", "kernel32"];
const CRT: &[&str] = &["ucrtbase", "ucrtbased", "msvcrt", "vcruntime140", "vcruntime140_1"];

const fn program(kind: Kind, least: f64, frames: Frames) -> Rule {
    Rule { kind, frames, of: Whole::Program, least }
}

const fn everything(kind: Kind, least: f64, frames: Frames) -> Rule {
    Rule { kind, frames, of: Whole::Everything, least }
}

const fn until_own_code(what: &'static [Signature]) -> Frames {
    Frames::of(what, Until::OwnCode)
}

const fn until_managed_code(what: &'static [Signature]) -> Frames {
    Frames::of(what, Until::ManagedCode)
}

const fn to_the_end(what: &'static [Signature]) -> Frames {
    Frames::of(what, Until::End)
}

/// All of them; at most 64.
pub const RULES: &[Rule] = &[
    program(
        Kind {
            id: "datetime-now",
            title: "DateTime.Now converts the time zone on every call",
            advice: "Use DateTime.UtcNow for points in time and Stopwatch for durations; convert to local time only where \
                     people read it.",
        },
        0.05,
        until_own_code(&[Method("System.DateTime", "get_Now"), Method("System.DateTimeOffset", "get_Now")]),
    ),
    program(
        Kind {
            id: "regex-construction",
            title: "Building regular expressions takes much of the CPU time",
            advice: "Keep each Regex in a static field, or let the compiler generate it ([GeneratedRegex], .NET 7 and \
                     later). The static methods of Regex remember 15 patterns by default (Regex.CacheSize).",
        },
        0.05,
        until_own_code(&[
            Method("System.Text.RegularExpressions.Regex", ".ctor"),
            Method("System.Text.RegularExpressions.RegexParser", "*"),
            Method("System.Text.RegularExpressions.RegexWriter", "*"),
            Method("System.Text.RegularExpressions.RegexCompiler", "*"),
            Method("System.Text.RegularExpressions.RegexLWCGCompiler", "*"),
        ]),
    ),
    program(
        Kind {
            id: "reflection",
            title: "Reflection takes much of the CPU time",
            advice: "Look members up once and keep them; call them by delegates (CreateDelegate), compiled expressions or \
                     source generators.",
        },
        0.05,
        until_managed_code(&[
            Method("System.Activator", "*"),
            Method("System.Attribute", "*"),
            Method("System.Reflection.ConstructorInvoker", "*"),
            Method("System.Reflection.CustomAttribute*", "*"),
            Method("System.Reflection.MemberInfo*", "*"),
            Method("System.Reflection.Method*", "*"),
            Method("System.Reflection.RtFieldInfo", "*"),
            Method("System.Reflection.RuntimeConstructorInfo", "*"),
            Method("System.Reflection.RuntimeEventInfo", "*"),
            Method("System.Reflection.RuntimeFieldInfo", "*"),
            Method("System.Reflection.RuntimeMethodInfo", "*"),
            Method("System.Reflection.RuntimeParameterInfo", "*"),
            Method("System.Reflection.RuntimePropertyInfo", "*"),
            Method("System.RuntimeFieldHandle", "*"),
            Method("System.RuntimeMethodHandle", "*"),
            Method("System.RuntimeType*", "*"),
            Method("System.DefaultBinder*", "*"),
        ])
        // These have findings of their own.
        .not_below(&[
            Method("System.Diagnostics.StackTrace", "*"),
            Method("System.Enum", "*"),
            Method("System.Text.Json.Serialization.Metadata.*", "*"),
            Method("System.ValueType", "*"),
            Method("System.Xml.Serialization.*", "*"),
        ]),
    ),
    program(
        Kind {
            id: "logging",
            title: "Logging takes much of the CPU time",
            advice: "Raise the level, or check it before messages are built (IsEnabled, LoggerMessage); write from another \
                     thread.",
        },
        0.10,
        until_own_code(&[
            Method("Microsoft.Extensions.Logging.*", "*"),
            Method("log4net.*", "*"),
            Method("NLog.*", "*"),
            Method("Serilog.*", "*"),
            Method("System.Diagnostics.Debug", "Write*"),
            Method("System.Diagnostics.Trace", "Write*"),
            Method("System.Diagnostics.TraceSource", "Trace*"),
            Native(BASE, "OutputDebugString*"),
        ]),
    ),
    program(
        Kind {
            id: "console-output",
            title: "Writing to the console takes much of the CPU time",
            advice: "Write less, or through a buffer: Console.Out flushes after every call.",
        },
        0.10,
        until_own_code(&[
            Method("System.Console", "Write*"),
            Method("System.IO.__ConsoleStream", "*"),
            Method("System.IO.ConsoleStream", "*"),
            Method("System.ConsolePal*", "Write*"),
            Native(BASE, "WriteConsole*"),
        ]),
    ),
    program(
        Kind {
            id: "stack-traces",
            title: "Taking stack traces takes much of the CPU time",
            advice: "Take them only where something failed: each looks up the names of all its frames.",
        },
        0.05,
        until_own_code(&[
            Method("System.Diagnostics.StackTrace", "*"),
            Method("System.Diagnostics.StackFrameHelper", "*"),
            Method("System.Environment", "get_StackTrace"),
            Method("System.Environment", "GetStackTrace"),
        ]),
    ),
    program(
        Kind {
            id: "serializer-generation",
            title: "Generating XML serializers takes much of the CPU time",
            advice: "Keep each XmlSerializer. Only the constructors XmlSerializer(Type) and XmlSerializer(Type, String) reuse \
                     what was generated before.",
        },
        0.05,
        until_own_code(&[
            Method("System.Xml.Serialization.TempAssembly", ".ctor"),
            Method("System.Xml.Serialization.TempAssembly", "Generate*"),
            Method("System.Xml.Serialization.XmlReflectionImporter", "*"),
            Method("System.Xml.Serialization.XmlSerializer", "GenerateTempAssembly"),
        ]),
    ),
    program(
        Kind {
            id: "json-metadata",
            title: "System.Text.Json spends its time on type metadata",
            advice: "Keep one JsonSerializerOptions: each new one starts without what the others know of the types.",
        },
        0.05,
        until_own_code(&[
            Method("System.Text.Json.Serialization.Metadata.DefaultJsonTypeInfoResolver", "*"),
            Method("System.Text.Json.Serialization.Metadata.ReflectionEmit*", "*"),
            Method("System.Text.Json.JsonClassInfo", ".ctor"),
        ]),
    ),
    program(
        Kind {
            id: "expression-compilation",
            title: "Compiling LINQ expressions takes much of the CPU time",
            advice: "Keep the delegates that Compile returns.",
        },
        0.05,
        until_own_code(&[
            Method("System.Linq.Expressions.Compiler.LambdaCompiler", "*"),
            Method("System.Linq.Expressions.Expression`1*", "Compile"),
            Method("System.Linq.Expressions.LambdaExpression", "Compile"),
        ]),
    ),
    program(
        Kind {
            id: "culture-comparison",
            title: "Comparing text by the rules of a language takes much of the CPU time",
            advice: "For text that people do not read, compare by StringComparison.Ordinal or OrdinalIgnoreCase.",
        },
        0.05,
        until_own_code(&[
            Method("System.Globalization.CompareInfo", "IcuCompareString"),
            Method("System.Globalization.CompareInfo", "IcuEndsWith"),
            Method("System.Globalization.CompareInfo", "IcuGetHashCodeOfString"),
            Method("System.Globalization.CompareInfo", "IcuGetSortKey"),
            Method("System.Globalization.CompareInfo", "IcuIndexOfCore"),
            Method("System.Globalization.CompareInfo", "IcuStartsWith"),
            Method("System.Globalization.CompareInfo", "InternalCompareString"),
            Method("System.Globalization.CompareInfo", "InternalFindNLSStringEx"),
            Method("System.Globalization.CompareInfo", "NlsCompareString"),
            Method("System.Globalization.CompareInfo", "NlsEndsWith"),
            Method("System.Globalization.CompareInfo", "NlsGetHashCodeOfString"),
            Method("System.Globalization.CompareInfo", "NlsGetSortKey"),
            Method("System.Globalization.CompareInfo", "NlsIndexOfCore"),
            Method("System.Globalization.CompareInfo", "NlsStartsWith"),
            Native(BASE, "CompareStringA"),
            Native(BASE, "CompareStringEx"),
            Native(BASE, "CompareStringW"),
            Native(BASE, "FindNLSString"),
            Native(BASE, "FindNLSStringEx"),
        ]),
    ),
    program(
        Kind {
            id: "struct-equality",
            title: "Structs are compared by the slow methods of System.ValueType",
            advice: "Let them implement IEquatable<T>, and override Equals and GetHashCode.",
        },
        0.05,
        until_own_code(&[Method("System.ValueType", "Equals"), Method("System.ValueType", "GetHashCode")]),
    ),
    program(
        Kind {
            id: "enum-names",
            title: "Names of enum values take much of the CPU time",
            advice: "Keep the names, or choose them by a switch; before .NET Core 2.1, test flags by & instead of HasFlag.",
        },
        0.05,
        until_own_code(&[
            Method("System.Enum", "Format*"),
            Method("System.Enum", "GetCachedValuesAndNames"),
            Method("System.Enum", "GetEnum*"),
            Method("System.Enum", "GetHashEntry"),
            Method("System.Enum", "GetName*"),
            Method("System.Enum", "GetValues*"),
            Method("System.Enum", "HasFlag"),
            Method("System.Enum", "InternalF*"),
            Method("System.Enum", "IsDefined*"),
            Method("System.Enum", "Parse*"),
            Method("System.Enum", "ToString*"),
            Method("System.Enum", "TryParse*"),
        ]),
    ),
    program(
        Kind {
            id: "process-queries",
            title: "Querying processes or performance counters takes much of the CPU time",
            advice: "Each query reads what the system knows of all processes; ask once, and keep the Process.",
        },
        0.05,
        until_own_code(&[
            Method("System.Diagnostics.Process", "Get*"),
            Method("System.Diagnostics.Process", "get_*"),
            Method("System.Diagnostics.NtProcess*", "*"),
            Method("System.Diagnostics.PerformanceCounter*", "*"),
        ]),
    ),
    program(
        Kind {
            id: "thread-pool-spinning",
            title: "Threads of the pool spin for work",
            advice: "Many short bursts of work keep them awake. Batch the work, or set DOTNET_ThreadPool_UnfairSemaphoreSpinLimit=0.",
        },
        0.10,
        until_own_code(&[
            Method("System.Threading.LowLevelLifoSemaphore", "Wait"),
            Native(CLR, "CLRLifoSemaphore::Wait"),
        ])
        .ending_at(&[
            Method("System.Threading.LowLevelLifoSemaphore", "WaitCore"),
            Method("System.Threading.LowLevelLifoSemaphore", "WaitForSignal"),
            Method("System.Threading.LowLevelLifoSemaphore", "WaitNative"),
            Native(CLR, "CLRLifoSemaphore::WaitForSignal"),
            Native(NTDLL, "NtRemoveIoCompletion*"),
            Native(NTDLL, "NtWaitFor*"),
        ]),
    ),
    program(
        Kind {
            id: "lock-spinning",
            title: "Threads spin while they wait",
            advice: "If it is for a lock, hold it for less, or split what it protects; the callers show which one. A loop \
                     with SpinWait or SpinOnce burns the processor until another thread is done.",
        },
        0.05,
        until_own_code(&[
            Method("System.Threading.SpinLock", "*"),
            Method("System.Threading.SpinWait", "*"),
            Method("System.Threading.Lock", "TryEnterSlow*"),
            Native(CLR, "AwareLock::Contention"),
            Native(CLR, "AwareLock::EnterEpilog*"),
            Native(CLR, "AwareLock::SpinWait"),
            Native(CLR, "AwareLock::TryEnterBeforeSpinLoopHelper"),
            Native(CLR, "AwareLock::TryEnterInsideSpinLoopHelper"),
            Native(CLR, "JITutil_MonContention"),
            Native(NTDLL, "RtlpEnterCriticalSectionContended"),
            Native(KERNEL, "ExpWaitForSpinLock*"),
            Native(KERNEL, "KxWaitForLockOwnerShip"),
            Native(KERNEL, "KxWaitForSpinLockAndAcquire"),
        ])
        .ending_at(&[
            Method("System.Threading.Lock", "Wait*"),
            Method("System.Threading.WaitHandle", "*"),
            Native(CLR, "CLREvent*"),
            Native(KERNEL, "KeWaitFor*"),
            Native(NTDLL, "NtWaitFor*"),
            Native(NTDLL, "ZwWaitFor*"),
        ]),
    ),
    program(
        Kind {
            id: "native-heap",
            title: "The native heap takes much of the CPU time",
            advice: "Allocate less often in the callers: reuse buffers, reserve room, use arenas.",
        },
        0.20,
        until_own_code(&[
            Native(NTDLL, "RtlAllocateHeap"),
            Native(NTDLL, "RtlFreeHeap"),
            Native(NTDLL, "RtlReAllocateHeap"),
            Native(NTDLL, "RtlpAllocateHeap*"),
            Native(NTDLL, "RtlpFreeHeap*"),
            Native(CRT, "_free_base"),
            Native(CRT, "_malloc_base"),
            Native(CRT, "_realloc_base"),
            Native(CRT, "free"),
            Native(CRT, "malloc"),
        ]),
    ),
    program(
        Kind {
            id: "page-faults",
            title: "Page faults take much of the CPU time",
            advice: "In the callers listed, memory is taken from the system and given back, or touched for the first time, \
                     or files are mapped or read through the cache. Keep memory, or touch less of it.",
        },
        0.10,
        to_the_end(&[Native(KERNEL, "KiPageFault*"), Native(KERNEL, "MmAccessFault")]),
    ),
    everything(
        Kind {
            id: "memory-zeroing",
            title: "The kernel spends much CPU time on filling pages with zeros",
            advice: "Programs take fresh memory faster than idle time fills pages. Let the programs listed keep what they have.",
        },
        0.05,
        to_the_end(&[
            Native(KERNEL, "KeZeroPages*"),
            Native(KERNEL, "KeZeroSinglePage*"),
            Native(KERNEL, "KiZeroPages*"),
            Native(KERNEL, "MiZeroLargePage*"),
            Native(KERNEL, "MiZeroPage*"),
            Native(KERNEL, "MiZeroPhysicalPage*"),
        ])
        // In idle time it costs nobody anything.
        .not_below(&[Native(KERNEL, "MiZeroPageThread*"), Native(KERNEL, "MmZeroPageThread")]),
    ),
    everything(
        Kind {
            id: "cut-rundown",
            title: "Code of .NET has no names, because the recording lacks its list of methods",
            advice: "Record with the rundown of .NET, let it complete before the recording stops, and keep the program \
                     alive until then.",
        },
        0.05,
        to_the_end(&[Signature::Unresolved(&[
            Unresolved::RuntimeNotAsked,
            Unresolved::NoRundown,
            Unresolved::EndedBeforeRundown,
            Unresolved::RundownCutShort,
            Unresolved::EventsLost,
        ])]),
    ),
];

/// Frames whose CPU time other findings need.
pub(super) const PARTS: [Frames; 4] = [
    until_own_code(&[Signature::Category(Category::JitCompiler)]),
    until_own_code(&[Signature::Category(Category::Gc)]),
    until_own_code(&[
        Method("System.Runtime.EH", "*"),
        Native(CLR, "DispatchManagedException"),
        Native(CLR, "ExceptionTracker::*"),
        Native(CLR, "IL_Rethrow"),
        Native(CLR, "IL_Throw"),
        Native(CLR, "RaiseTheException*"),
        Native(BASE, "RaiseException"),
        Native(NTDLL, "KiUserExceptionDispatch*"),
        Native(NTDLL, "RtlDispatchException"),
        Native(NTDLL, "RtlRaiseException"),
        Native(NTDLL, "RtlUnwindEx"),
        Native(&["vcruntime140", "msvcrt"], "_CxxThrowException"),
    ])
    // A block that catches runs below what raises.
    .ending_at(&[
        Native(CRT, "_CallSettingFrame*"),
        Native(CRT, "CxxCallCatchBlock"),
        Native(CRT, "__CxxCallCatchBlock"),
    ])
    // Text for a debugger is passed on by an exception.
    .not_below(&[Native(BASE, "OutputDebugString*")]),
    to_the_end(&[Modules(ANTIVIRUS_MODULES)]),
];

/// The numbers of these, behind those of the rules.
pub(super) const JIT: usize = RULES.len();
pub(super) const GC: usize = JIT + 1;
pub(super) const EXCEPTIONS: usize = JIT + 2;
pub(super) const ANTIVIRUS: usize = JIT + 3;

/// The frames of all, by their numbers.
pub(super) fn frames() -> impl Iterator<Item = &'static Frames> + Clone {
    RULES.iter().map(|rule| &rule.frames).chain(&PARTS)
}

/// Filters of files by scanners of malware, by Microsoft's list of allocated altitudes (320000 to 329998, and those of
/// CrowdStrike, SentinelOne, Carbon Black and Cylance), and the engine of Microsoft's own.
const ANTIVIRUS_MODULES: &[&str] = &[
    "aswmonflt",
    "aswsp",
    "avc3",
    "avckf",
    "avgmfx64",
    "avgntflt",
    "bdfsfltr",
    "carbonblackk",
    "cbk7",
    "csagent",
    "cyprotectdrv64",
    "cyvrfsfd",
    "eamonm",
    "eectrl64",
    "fortishield",
    "fsgk",
    "gzflt",
    "hookcentre",
    "klam",
    "klif",
    "mbam",
    "mfehidk",
    "mfencoas",
    "mpengine",
    "mpfilter",
    "savonaccess",
    "sentinelmonitor",
    "sophosed",
    "srtsp64",
    "sysdiag",
    "tmevtmgr",
    "tmpreflt",
    "trufos",
    "vsepflt",
    "wdfilter",
    "wrkrn",
];

/// The programs of the same.
pub(super) const ANTIVIRUS_PROGRAMS: &[&str] = &[
    "avastsvc.exe",
    "avgsvc.exe",
    "avp.exe",
    "bdservicehost.exe",
    "ccsvchst.exe",
    "csfalconservice.exe",
    "cylancesvc.exe",
    "cyserver.exe",
    "ekrn.exe",
    "fshoster64.exe",
    "mbamservice.exe",
    "mcshield.exe",
    "mpdefendercoreservice.exe",
    "msmpeng.exe",
    "mssense.exe",
    "nissrv.exe",
    "ntrtscan.exe",
    "repmgr.exe",
    "savservice.exe",
    "sensendr.exe",
    "sentinelagent.exe",
    "sophosfilescanner.exe",
    "wrsa.exe",
];

/// The file systems of Windows and its redirectors, and the kernel: what the filter manager calls and is no filter.
pub(super) const FILE_SYSTEMS: &[&str] = &[
    "btrfs",
    "cdfs",
    "cimfs",
    "csvfs",
    "dokan1",
    "dokan2",
    "exfat",
    "fastfat",
    "hal",
    "msfs",
    "mrxdav",
    "mrxsmb",
    "mrxsmb10",
    "mrxsmb20",
    "mup",
    "npfs",
    "ntfs",
    "ntkrnlmp",
    "ntkrnlpa",
    "ntkrpamp",
    "ntoskrnl",
    "rdbss",
    "rdpdr",
    "refs",
    "refsv1",
    "udfs",
    "winfsp-x64",
    "winfsp-x86",
];

/// Of these, those that filters call too.
pub(super) const NEUTRAL: &[&str] = &["hal", "ntkrnlmp", "ntkrnlpa", "ntkrpamp", "ntoskrnl"];

const _: () = assert!(RULES.len() + PARTS.len() <= 64);
