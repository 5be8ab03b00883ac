//! The GUIDs of providers, classic tasks and sessions, each in one place.

use crate::guid::Guid;

macro_rules! providers {
    ($($(#[$doc:meta])* $constant:ident = $guid:literal, $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: Guid = Guid::from_u128($guid);)*

        /// The name of a provider or classic task, where it is known.
        pub fn provider_name(provider: Guid) -> Option<&'static str> {
            match provider {
                $($constant => Some($name),)*
                _ => None,
            }
        }
    };
}

providers! {
    /// The trace itself: header, rundown marks.
    EVENT_TRACE = 0x68fdd900_4a3e_11d1_84f4_0000f80464e3, "EventTrace";
    /// Disk I/O.
    DISK_IO = 0x3d6fa8d4_fe05_11d0_9dda_00c04fd7ba7c, "DiskIo";
    /// Page faults and virtual memory.
    PAGE_FAULT = 0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c, "PageFault";
    /// Processes.
    PROCESS = 0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c, "Process";
    /// File operations.
    FILE_IO = 0x90cbdc39_4a3e_11d1_84f4_0000f80464e3, "FileIo";
    /// Threads, context switches.
    THREAD = 0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c, "Thread";
    /// TCP.
    TCP_IP = 0x9a280ac0_c8e0_11d1_84e2_00c04fb998a2, "TcpIp";
    /// Job objects.
    JOB = 0x3282fc76_feed_498e_8aa7_e70f459d430e, "Job";
    /// UDP.
    UDP_IP = 0xbf3a50c5_a9c9_4988_a005_2df0b7c80f80, "UdpIp";
    /// The registry.
    REGISTRY = 0xae53722e_c863_11d2_8659_00c04fa321a1, "Registry";
    /// Debug output of the kernel.
    DBG_PRINT = 0x13976d09_a327_438c_950b_7f03192815c7, "DbgPrint";
    /// Hardware and services.
    SYSTEM_CONFIG = 0x01853a65_418f_4f36_aefc_dc0f1d2fd235, "SystemConfig";
    /// Records of last branches.
    LAST_BRANCH = 0x99134383_5248_43fc_834b_529454e75df3, "LastBranch";
    /// The Windows notification facility.
    WNF = 0x42695762_ea50_497a_9068_5cbbb35e0b95, "WNF";
    /// The kernel's pool.
    POOL = 0x0268a8b6_74fd_4302_9dd0_6e8f1795c0cf, "Pool";
    /// Samples, DPCs, interrupts, system calls.
    PERF_INFO = 0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc, "PerfInfo";
    /// The heap.
    HEAP = 0x222962ab_6180_4b88_a825_346b75f2a24a, "Heap";
    /// Object manager.
    OBJECT = 0x89497f50_effe_4440_8cf2_ce6b1cdcaca7, "Object";
    /// Power management.
    POWER = 0xe43445e0_0903_48c3_b878_ff0fccebdd04, "Power";
    /// Bound modules.
    MOD_BOUND = 0xa9152f00_3f58_4bee_92a1_70c7d079d5dd, "ModBound";
    /// Image loads.
    IMAGE = 0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518, "Image";
    /// Deferred procedure calls.
    DPC = 0xb2d14872_7c5b_463d_8419_ee9bf7d23e04, "DPC";
    /// The cache manager.
    CACHE_MANAGER = 0x7687a439_f752_45b8_b741_321aec0f8df9, "CacheManager";
    /// Critical sections.
    CRITICAL_SECTION = 0x3ac66736_cc59_4cff_8115_8df50e39816b, "CritSec";
    /// Stacks.
    STACK_WALK = 0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3, "StackWalk";
    /// User-mode scheduling.
    UMS = 0x9aec974b_5b8e_4118_9b92_3186d8002ce5, "UMS";
    /// Local procedure calls.
    ALPC = 0x45d8cccd_539f_4b72_a8b7_5c683142609a, "ALPC";
    /// Split I/O.
    SPLIT_IO = 0xd837ca92_12b9_44a5_ad6a_3a65b3578aa8, "SplitIo";
    /// The kernel's thread pool.
    THREAD_POOL = 0xc861d0e2_a2c1_4d36_9f9c_970bab943a12, "ThreadPool";
    /// The hypervisor.
    HYPERVISOR = 0x7f2a405c_69b5_4bf9_a1f5_30e8f1afab5e, "Hypervisor";
    /// The hypervisor, extended.
    HYPERVISOR_X = 0x2ce9a149_effe_42f0_a635_a1d39e26c8f2, "HypervisorX";
    /// Identity of images, written when a trace is merged.
    IMAGE_ID = 0xb3e675d7_2554_4f18_830b_2762732560de, "ImageID";
    /// Volumes and paths, written when a trace is merged.
    SYS_CONFIG = 0x9b79ee91_b5fd_41c0_a243_4248e266e9d0, "SysConfig";
    /// Event manifests, written when a trace is merged.
    META_DATA = 0xbbccf6c1_6cd1_48c4_80ff_839482e37671, "MetaData";
    /// The machine's WinSAT figures, written when a trace is merged.
    WIN_SAT = 0xed54dff8_c409_4cf6_bf83_05e1e61a09c4, "WinSat";
    /// Losses in a real-time session.
    LOST_EVENT = 0x6a399ae0_4bc6_4de9_870b_3657f8947e7e, "LostEvent";
    /// ETW itself.
    KERNEL_EVENT_TRACING = 0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2, "Microsoft-Windows-Kernel-EventTracing";
    /// Processes, as a manifest provider.
    KERNEL_PROCESS = 0x22fb2cd6_0e7b_422b_a0c7_2fad1fd0e716, "Microsoft-Windows-Kernel-Process";
    /// Files, as a manifest provider.
    KERNEL_FILE = 0xedd08927_9cc4_4e65_b970_c2560fb5c289, "Microsoft-Windows-Kernel-File";
    /// Memory, as a manifest provider.
    KERNEL_MEMORY = 0xd1d93ef7_e1f2_4f45_9943_03d245fe6c00, "Microsoft-Windows-Kernel-Memory";
    /// The .NET runtime, live.
    CLR = 0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4, "Microsoft-Windows-DotNETRuntime";
    /// The .NET runtime, what it had loaded already.
    CLR_RUNDOWN = 0xa669021c_c450_4609_a035_5af59af4df18, "Microsoft-Windows-DotNETRuntimeRundown";
    /// The .NET runtime, internals.
    CLR_PRIVATE = 0x763fd754_7086_4dfe_95eb_c01a46faf4ca, "Microsoft-Windows-DotNETRuntimePrivate";
    /// The .NET runtime, stress log.
    CLR_STRESS = 0xcc2bcbba_16b6_4cf3_8990_d74c2e8af500, "Microsoft-Windows-DotNETRuntimeStress";
    /// System.Threading.Tasks.
    TPL = 0x2e5dba47_a3d2_4d16_8ee0_6671ffdcd7b5, "System.Threading.Tasks.TplEventSource";
    /// The framework's event source.
    FRAMEWORK = 0x8e9f5090_2d75_4d03_8a81_e5afbf85daf1, "System.Diagnostics.Eventing.FrameworkEventSource";
    /// etwprof itself: counters beside samples. The GUID is that of the name, as EventSources have it.
    ETWPROF = 0xdeb49ce9_f9ba_505d_8029_5461bd3c09a5, "etwprof";
    /// JavaScript engines.
    JSCRIPT = 0x57277741_3638_4a4b_bdba_0ac6e45da56c, "Microsoft-JScript";
}

/// The task that a kernel event group stands for; [`Guid::ZERO`] with the group as its last byte for a group that nobody
/// has documented.
pub fn group_task(group: u8) -> Guid {
    GROUP_TASKS.get(usize::from(group)).copied().unwrap_or(Guid::from_u128(group as u128))
}

/// The task of a kernel hook. Image load is hook 0x030A, type 10 of the *process* group, and belongs to the image
/// task all the same (verified on net.4.5.2.x64.etl).
#[inline]
pub fn hook_task(group: u8, opcode: u8) -> Guid {
    if group == PROCESS_GROUP && opcode == IMAGE_LOAD { IMAGE } else { group_task(group) }
}

/// The group of a kernel task's events with this opcode; `None` for a task that is not the kernel's.
pub fn hook_group(task: Guid, opcode: u8) -> Option<u8> {
    if task == IMAGE && opcode == IMAGE_LOAD {
        return Some(PROCESS_GROUP);
    }
    GROUP_TASKS.iter().position(|known| *known == task).and_then(|group| u8::try_from(group).ok())
}

const PROCESS_GROUP: u8 = 0x03;
const IMAGE_LOAD: u8 = 10;

/// By group, from 0x00 to 0x1E.
const GROUP_TASKS: [Guid; 31] = [
    EVENT_TRACE,
    DISK_IO,
    PAGE_FAULT,
    PROCESS,
    FILE_IO,
    THREAD,
    TCP_IP,
    JOB,
    UDP_IP,
    REGISTRY,
    DBG_PRINT,
    SYSTEM_CONFIG,
    LAST_BRANCH,
    WNF,
    POOL,
    PERF_INFO,
    HEAP,
    OBJECT,
    POWER,
    MOD_BOUND,
    IMAGE,
    DPC,
    CACHE_MANAGER,
    CRITICAL_SECTION,
    STACK_WALK,
    UMS,
    ALPC,
    SPLIT_IO,
    THREAD_POOL,
    HYPERVISOR,
    HYPERVISOR_X,
];

/// Our kernel session's.
///
/// Windows keeps the rights to a session under the GUID that the session is started with. A session with a random GUID
/// falls under the rights for all sessions, so ours have fixed ones.
pub const KERNEL_SESSION: Guid = Guid::from_u128(0xb3b8c5f6_61e0_4d0f_9c9e_2a4a7c1d5e10);

/// Our CLR session's.
pub const CLR_SESSION: Guid = Guid::from_u128(0xb3b8c5f6_61e0_4d0f_9c9e_2a4a7c1d5e11);

/// The kernel's own provider, under whose rights every kernel session's flags fall (`SystemTraceControlGuid` in
/// evntrace.h).
pub const SYSTEM_TRACE_CONTROL: Guid = Guid::from_u128(0x9e814aad_3204_11d2_9a82_006008a86939);
