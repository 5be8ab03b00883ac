//! The providers and classic tasks that have a name here, and the names of their events.

use crate::event::{Event, Kind};
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
    /// Hardware and services.
    SYSTEM_CONFIG = 0x01853a65_418f_4f36_aefc_dc0f1d2fd235, "SystemConfig";
    /// Samples, DPCs, interrupts, system calls.
    PERF_INFO = 0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc, "PerfInfo";
    /// The heap.
    HEAP = 0x222962ab_6180_4b88_a825_346b75f2a24a, "Heap";
    /// Object manager.
    OBJECT = 0x89497f50_effe_4440_8cf2_ce6b1cdcaca7, "Object";
    /// Power management.
    POWER = 0xe43445e0_0903_48c3_b878_ff0fccebdd04, "Power";
    /// Image loads.
    IMAGE = 0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518, "Image";
    /// Stacks.
    STACK_WALK = 0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3, "StackWalk";
    /// Local procedure calls.
    ALPC = 0x45d8cccd_539f_4b72_a8b7_5c683142609a, "ALPC";
    /// The kernel's thread pool.
    THREAD_POOL = 0xc861d0e2_a2c1_4d36_9f9c_970bab943a12, "ThreadPool";
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
    /// JavaScript engines.
    JSCRIPT = 0x57277741_3638_4a4b_bdba_0ac6e45da56c, "Microsoft-JScript";
}

/// `Task/Opcode` of an event, in the words of the public reference; `None` where it has none.
pub fn event_name(event: &Event<'_>) -> Option<String> {
    if let Some(name) = event.tracelogging_name() {
        return Some(match event.provider_name().as_deref().or_else(|| provider_name(event.provider)) {
            Some(provider) => format!("{provider}/{name}"),
            None => name,
        });
    }
    known_name(event.provider, event.kind, event.opcode)
}

/// The same of an event that does not carry its name itself.
pub fn known_name(provider: Guid, kind: Kind, opcode: u8) -> Option<String> {
    match kind {
        Kind::Classic => {
            let task = provider_name(provider)?;
            Some(match classic_name(provider, opcode) {
                Some(name) => format!("{task}/{name}"),
                None => format!("{task}/{opcode}"),
            })
        }
        Kind::Manifest(id) => {
            let name = manifest_name(provider, id);
            let provider = provider_name(provider)?;
            Some(match name {
                Some(name) => format!("{provider}/{name}"),
                None => format!("{provider}/{id}"),
            })
        }
        Kind::Message(number) => Some(format!("WPP/{number}")),
        Kind::Unknown(header) => Some(format!("unknown header type 0x{header:02x}")),
    }
}

/// The name of a classic event's opcode.
pub fn classic_name(task: Guid, opcode: u8) -> Option<&'static str> {
    let rundown = match opcode {
        1 => Some("Start"),
        2 => Some("End"),
        3 => Some("DCStart"),
        4 => Some("DCEnd"),
        _ => None,
    };
    let own = match (task, opcode) {
        (EVENT_TRACE, 0) => "Header",
        (EVENT_TRACE, 5) => "Extension",
        (EVENT_TRACE, 8) => "RundownComplete",
        (EVENT_TRACE, 32) => "EndExtension",
        (EVENT_TRACE, 48) => "RundownBegin",
        (EVENT_TRACE, 49) => "RundownEnd",
        (EVENT_TRACE, 64) => "DbgIdRSDS",
        (EVENT_TRACE, 66) => "BuildInfo",
        (EVENT_TRACE, 67) => "ProviderBinaryPath",
        (EVENT_TRACE, 80) => "PartitionInfo",
        (PROCESS, 11) => "Terminate",
        (PROCESS, 32) => "PerfCtr",
        (PROCESS, 33) => "PerfCtrRundown",
        (PROCESS, 39) => "Defunct",
        (PROCESS | THREAD, 1..=4) => return rundown,
        (THREAD, 36) => "CSwitch",
        (THREAD, 37) => "CompactCSwitch",
        (THREAD, 48) => "SetPriority",
        (THREAD, 49) => "SetBasePriority",
        (THREAD, 50) => "ReadyThread",
        (THREAD, 51) => "SetPagePriority",
        (THREAD, 52) => "SetIoPriority",
        (THREAD, 53) => "ThreadAffinity",
        (THREAD, 57) => "WorkerThread",
        (THREAD, 61) => "ThreadMigration",
        (THREAD, 69) => "SubProcessTagChanged",
        (THREAD, 72) => "SetName",
        (IMAGE, 2) => "Unload",
        (IMAGE, 3) => "DCStart",
        (IMAGE, 4) => "DCEnd",
        (IMAGE, 10) => "Load",
        (IMAGE, 33) => "KernelBase",
        (IMAGE, 34) => "HypercallPage",
        (PERF_INFO, 34) => "Mark",
        (PERF_INFO, 46) => "Sample",
        (PERF_INFO, 47) => "PMCSample",
        (PERF_INFO, 48) => "PMCConfig",
        (PERF_INFO, 50) => "MSI",
        (PERF_INFO, 51) => "SysClEnter",
        (PERF_INFO, 52) => "SysClExit",
        (PERF_INFO, 66) => "ThreadedDPC",
        (PERF_INFO, 67) => "ISR",
        (PERF_INFO, 68) => "DPC",
        (PERF_INFO, 69) => "TimerDPC",
        (PERF_INFO, 71) => "NMISample",
        (PERF_INFO, 72) => "SetInterval",
        (PERF_INFO, 73) => "CollectionStart",
        (PERF_INFO, 74) => "CollectionEnd",
        (STACK_WALK, 32) => "Stack",
        (STACK_WALK, 34) => "KeyCreate",
        (STACK_WALK, 35) => "KeyDelete",
        (STACK_WALK, 36) => "KeyRundown",
        (STACK_WALK, 37) => "StackKeyKernel",
        (STACK_WALK, 38) => "StackKeyUser",
        (IMAGE_ID, 0) => "ImageID",
        (IMAGE_ID, 32) => "None",
        (IMAGE_ID, 36) => "DbgID_RSDS",
        (IMAGE_ID, 37) => "DbgID_ILRSDS",
        (IMAGE_ID, 38) => "DbgPPDB",
        (IMAGE_ID, 40) => "DbgDeterm",
        (IMAGE_ID, 64) => "FileVersion",
        (SYS_CONFIG, 32) => "BuildInfo",
        (SYS_CONFIG, 33) => "SystemPaths",
        (SYS_CONFIG, 34) => "UnknownVolume",
        (SYS_CONFIG, 35) => "VolumeMapping",
        (META_DATA, 32) => "EventInfo",
        (META_DATA, 33) => "EventMapInfo",
        (SYSTEM_CONFIG, 10) => "CPU",
        (SYSTEM_CONFIG, 11) => "PhyDisk",
        (SYSTEM_CONFIG, 12) => "LogDisk",
        (SYSTEM_CONFIG, 13) => "NIC",
        (SYSTEM_CONFIG, 14) => "Video",
        (SYSTEM_CONFIG, 15) => "Services",
        (SYSTEM_CONFIG, 16) => "Power",
        (SYSTEM_CONFIG, 17) => "Network",
        (SYSTEM_CONFIG, 18) => "OpticalDisk",
        (SYSTEM_CONFIG, 21) => "IRQ",
        (SYSTEM_CONFIG, 22) => "PnP",
        (SYSTEM_CONFIG, 23) => "IDEChannel",
        (SYSTEM_CONFIG, 24) => "NumaNode",
        (SYSTEM_CONFIG, 25) => "Platform",
        (SYSTEM_CONFIG, 26) => "ProcessorGroup",
        (SYSTEM_CONFIG, 27) => "ProcessorNumber",
        (SYSTEM_CONFIG, 28) => "DPI",
        (SYSTEM_CONFIG, 29) => "CodeIntegrity",
        (SYSTEM_CONFIG, 30) => "MachineId",
        (LOST_EVENT, 32) => "Event",
        (LOST_EVENT, 33) => "Buffer",
        (LOST_EVENT, 34) => "File",
        (DISK_IO, 10) => "Read",
        (DISK_IO, 11) => "Write",
        (DISK_IO, 12) => "ReadInit",
        (DISK_IO, 13) => "WriteInit",
        (DISK_IO, 14) => "FlushBuffers",
        (DISK_IO, 15) => "FlushInit",
        (PAGE_FAULT, 32) => "HardFault",
        (FILE_IO, 0) => "Name",
        (FILE_IO, 32) => "FileCreate",
        (FILE_IO, 35) => "FileDelete",
        (FILE_IO, 36) => "FileRundown",
        _ => return None,
    };
    Some(own)
}

/// The name of a manifest event that this program knows.
fn manifest_name(provider: Guid, id: u16) -> Option<&'static str> {
    let name = match (provider, id) {
        (CLR, 1) => "GC/Start",
        (CLR, 2) => "GC/Stop",
        (CLR, 3) => "GC/RestartEEStop",
        (CLR, 4) => "GC/HeapStats",
        (CLR, 5) => "GC/CreateSegment",
        (CLR, 7) => "GC/RestartEEStart",
        (CLR, 8) => "GC/SuspendEEStop",
        (CLR, 9) => "GC/SuspendEEStart",
        (CLR, 10) => "GC/AllocationTick",
        (CLR, 13) => "GC/FinalizersStop",
        (CLR, 14) => "GC/FinalizersStart",
        (CLR, 82) => "ClrStack/Walk",
        (CLR, 85) => "AppDomainResourceManagement/ThreadCreated",
        (CLR, 141) => "Method/Load",
        (CLR, 142) => "Method/Unload",
        (CLR, 143) => "Method/LoadVerbose",
        (CLR, 144) => "Method/UnloadVerbose",
        (CLR, 145) => "Method/JittingStarted",
        (CLR, 146) => "Method/MemoryAllocatedForJitCode",
        (CLR | CLR_RUNDOWN, 187) => "Runtime/Start",
        (CLR, 190) => "Method/ILToNativeMap",
        (CLR, 151) => "Loader/DomainModuleLoad",
        (CLR, 152) => "Loader/ModuleLoad",
        (CLR, 153) => "Loader/ModuleUnload",
        (CLR, 154) => "Loader/AssemblyLoad",
        (CLR, 155) => "Loader/AssemblyUnload",
        (CLR, 156) => "Loader/AppDomainLoad",
        (CLR, 157) => "Loader/AppDomainUnload",
        (CLR, 159) => "Method/R2RGetEntryPoint",
        (CLR_RUNDOWN, 141) => "Method/DCStart",
        (CLR_RUNDOWN, 142) => "Method/DCStop",
        (CLR_RUNDOWN, 143) => "Method/DCStartVerbose",
        (CLR_RUNDOWN, 144) => "Method/DCStopVerbose",
        (CLR_RUNDOWN, 145) => "Method/DCStartComplete",
        (CLR_RUNDOWN, 146) => "Method/DCStopComplete",
        (CLR_RUNDOWN, 147) => "Method/DCStartInit",
        (CLR_RUNDOWN, 148) => "Method/DCStopInit",
        (CLR_RUNDOWN, 149) => "Method/ILToNativeMapDCStart",
        (CLR_RUNDOWN, 150) => "Method/ILToNativeMapDCStop",
        (CLR_RUNDOWN, 151) => "Loader/DomainModuleDCStart",
        (CLR_RUNDOWN, 152) => "Loader/DomainModuleDCStop",
        (CLR_RUNDOWN, 153) => "Loader/ModuleDCStart",
        (CLR_RUNDOWN, 154) => "Loader/ModuleDCStop",
        (CLR_RUNDOWN, 155) => "Loader/AssemblyDCStart",
        (CLR_RUNDOWN, 156) => "Loader/AssemblyDCStop",
        (CLR_RUNDOWN, 157) => "Loader/AppDomainDCStart",
        (CLR_RUNDOWN, 158) => "Loader/AppDomainDCStop",
        (KERNEL_PROCESS, 1) => "ProcessStart/Start",
        (KERNEL_PROCESS, 2) => "ProcessStop/Stop",
        (KERNEL_FILE, 12) => "Create",
        _ => return None,
    };
    Some(name)
}
