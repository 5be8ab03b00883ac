//! How TraceEvent's names stand for identities in a file.
//!
//! Typed from the public references (the MOF classes of the NT kernel logger, ClrEtwAll.man of the .NET runtime,
//! the manifests in the traces themselves), not from the library: a wrong number there cannot hide behind itself.

/// What tells events of one provider apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The opcode of a classic event.
    Opcode(u8),
    /// The id of a manifest event.
    Id(u16),
}

/// A provider: TraceEvent's name, GUID, and its events by opcode or id. An empty name is the provider's own.
type Provider<K> = (&'static str, &'static str, &'static [(&'static str, K)]);

/// The name that TraceEvent prints for an event; `None` where it has none.
pub fn name_of(provider: &str, key: Key) -> Option<String> {
    let (prefix, name) = match key {
        Key::Opcode(opcode) => find(CLASSIC, provider, opcode)?,
        Key::Id(id) => find(MANIFEST, provider, id)?,
    };
    Some(if name.is_empty() { prefix.to_owned() } else { format!("{prefix}/{name}") })
}

fn find<K: PartialEq + Copy>(
    providers: &[Provider<K>],
    provider: &str,
    key: K,
) -> Option<(&'static str, &'static str)> {
    let of_provider = providers.iter().filter(|(_, guid, _)| *guid == provider);
    let mut found = of_provider.flat_map(|(prefix, _, names)| names.iter().map(move |name| (*prefix, *name)));
    found.find(|(_, (_, of))| *of == key).map(|(prefix, (name, _))| (prefix, name))
}

const IMAGE: &str = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518";
const SYSTEM_CONFIG: &str = "01853a65-418f-4f36-aefc-dc0f1d2fd235";

const CLASSIC: &[Provider<u8>] = &[
    (
        "Windows Kernel/EventTrace",
        "68fdd900-4a3e-11d1-84f4-0000f80464e3",
        &[("", 0), ("Extension", 5), ("RundownComplete", 8), ("EndExtension", 32)],
    ),
    (
        "Windows Kernel/Process",
        "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
        &[
            ("Start", 1),
            ("Stop", 2),
            ("DCStart", 3),
            ("DCStop", 4),
            ("Terminate", 11),
            ("PerfCtr", 32),
            ("PerfCtrRundown", 33),
            ("Defunct", 39),
        ],
    ),
    ("Windows Kernel/Thread", "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", &[("Start", 1), ("Stop", 2)]),
    ("Windows Kernel/Image", IMAGE, &[("Unload", 2), ("DCStart", 3), ("DCStop", 4), ("Load", 10)]),
    ("MSNT_SystemTrace/Image", IMAGE, &[("KernelBase", 33), ("HypercallPage", 34)]),
    (
        "Windows Kernel/DiskIO",
        "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c",
        &[
            ("Read", 10),
            ("Write", 11),
            ("ReadInit", 12),
            ("WriteInit", 13),
            ("FlushBuffers", 14),
            ("FlushInit", 15),
        ],
    ),
    ("Windows Kernel/Memory", "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c", &[("HardFault", 32)]),
    (
        "Windows Kernel/PerfInfo",
        "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc",
        &[("Sample", 46), ("CollectionStart", 73), ("CollectionEnd", 74)],
    ),
    (
        "Windows Kernel/TcpIp",
        "9a280ac0-c8e0-11d1-84e2-00c04fb998a2",
        &[
            ("SendIPV6", 26),
            ("RecvIPV6", 27),
            ("DisconnectIPV6", 29),
            ("AcceptIPV6", 31),
            ("TCPCopyIPV6", 34),
        ],
    ),
    (
        "Windows Kernel/UdpIp",
        "bf3a50c5-a9c9-4988-a005-2df0b7c80f80",
        &[("Send", 10), ("Recv", 11), ("SendIPV6", 26), ("RecvIPV6", 27)],
    ),
    (
        "Windows Kernel/SystemConfig",
        SYSTEM_CONFIG,
        &[
            ("CPU", 10),
            ("PhyDisk", 11),
            ("LogDisk", 12),
            ("NIC", 13),
            ("Video", 14),
            ("Services", 15),
            ("Power", 16),
            ("Network", 17),
            ("IRQ", 21),
            ("PnP", 22),
            ("IDEChannel", 23),
        ],
    ),
    (
        "MSNT_SystemTrace/SystemConfig",
        SYSTEM_CONFIG,
        &[
            ("Platform", 25),
            ("DPI", 28),
            ("CodeIntegrity", 29),
            ("TelemetryConfiguration", 30),
            ("DeviceFamily", 33),
            ("FlightIds", 34),
            ("Processors", 35),
            ("VirtualizationConfigInfo", 36),
            ("BootConfigInfo", 37),
        ],
    ),
    (
        "Windows Kernel/SysConfig",
        "9b79ee91-b5fd-41c0-a243-4248e266e9d0",
        &[
            ("BuildInfo", 32),
            ("SystemPaths", 33),
            ("UnknownVolume", 34),
            ("VolumeMapping", 35),
            ("Opcode(37)", 37),
        ],
    ),
    (
        "KernelTraceControl/ImageID",
        "b3e675d7-2554-4f18-830b-2762732560de",
        &[
            ("", 0),
            ("None", 32),
            ("DbgID_RSDS", 36),
            ("DbgID_ILRSDS", 37),
            ("DbgPPDB", 38),
            ("DbgDeterm", 40),
            ("FileVersion", 64),
        ],
    ),
    (
        "KernelTraceControl/MetaData",
        "bbccf6c1-6cd1-48c4-80ff-839482e37671",
        &[("EventInfo", 32), ("EventMapInfo", 33)],
    ),
];

const MANIFEST: &[Provider<u16>] = &[
    (
        "Microsoft-Windows-DotNETRuntime",
        "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
        &[
            ("GC/Start", 1),
            ("GC/Stop", 2),
            ("GC/RestartEEStop", 3),
            ("GC/HeapStats", 4),
            ("GC/CreateSegment", 5),
            ("GC/RestartEEStart", 7),
            ("GC/SuspendEEStop", 8),
            ("GC/SuspendEEStart", 9),
            ("GC/AllocationTick", 10),
            ("GC/TerminateConcurrentThread", 12),
            ("GC/FinalizersStop", 13),
            ("GC/FinalizersStart", 14),
            ("Type/BulkType", 15),
            ("GC/BulkSurvivingObjectRanges", 21),
            ("GC/BulkMovedObjectRanges", 22),
            ("GC/GenerationRange", 23),
            ("GC/MarkStackRoots", 25),
            ("GC/MarkFinalizeQueueRoots", 26),
            ("GC/MarkHandles", 27),
            ("GC/MarkCards", 28),
            ("GC/FinalizeObject", 29),
            ("GC/PinObjectAtGCTime", 33),
            ("GC/Triggered", 35),
            ("ThreadPoolWorkerThread/Start", 50),
            ("Exception/Start", 80),
            ("AppDomainResourceManagement/ThreadCreated", 85),
            ("Method/LoadVerbose", 143),
            ("Method/UnloadVerbose", 144),
            ("Method/JittingStarted", 145),
            ("Loader/DomainModuleLoad", 151),
            ("Loader/ModuleLoad", 152),
            ("Loader/ModuleUnload", 153),
            ("Loader/AssemblyLoad", 154),
            ("Loader/AssemblyUnload", 155),
            ("Loader/AppDomainLoad", 156),
            ("Loader/AppDomainUnload", 157),
            ("Runtime/Start", 187),
            ("GarbageCollection/IncreaseMemoryPressure", 200),
            ("GC/MarkWithType", 202),
            ("GC/PerHeapHistory", 204),
            ("GC/GlobalHeapHistory", 205),
            ("GC/LOHCompact", 208),
            ("GC/FitBucketInfo", 209),
        ],
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown",
        "a669021c-c450-4609-a035-5af59af4df18",
        &[
            ("GC/SettingsRundown", 10),
            ("Method/DCStopComplete", 146),
            ("Method/DCStopInit", 148),
            ("Loader/DomainModuleDCStop", 152),
            ("Loader/ModuleDCStop", 154),
            ("Loader/AssemblyDCStop", 156),
            ("Loader/AppDomainDCStop", 158),
            ("Runtime/Start", 187),
            ("TieredCompilationRundown/SettingsDCStart", 280),
        ],
    ),
    (
        "Microsoft-Windows-DotNETRuntimePrivate",
        "763fd754-7086-4dfe-95eb-c01a46faf4ca",
        &[
            ("GC/Settings", 2),
            ("GC/PerHeapHistory", 4),
            ("GC/GlobalHeapHistory", 5),
            ("GC/MarkStackRoots", 7),
            ("GC/MarkFinalizeQueueRoots", 8),
            ("GC/MarkHandles", 9),
            ("GC/MarkCards", 10),
            ("Binding/PolicyPhaseStart", 159),
            ("Binding/PolicyPhaseStop", 160),
            ("Binding/NgenPhaseStart", 161),
            ("Binding/NgenPhaseStop", 162),
            ("Binding/LoopupAndProbingPhaseStart", 163), // sic
            ("Binding/LookupAndProbingPhaseStop", 164),
            ("Binding/LoaderPhaseStart", 165),
            ("Binding/LoaderPhaseStop", 166),
            ("Binding/PhaseStart", 167),
            ("Binding/PhaseStop", 168),
            ("Binding/DownloadPhaseStart", 169),
            ("Binding/DownloadPhaseStop", 170),
            ("Binding/LoaderAssemblyInitPhaseStart", 171),
            ("Binding/LoaderAssemblyInitPhaseStop", 172),
            ("Binding/LoaderMappingPhaseStart", 173),
            ("Binding/LoaderMappingPhaseStop", 174),
            ("Binding/LoaderDeliverEventPhaseStart", 175),
            ("Binding/LoaderDeliverEventsPhaseStop", 176),
            ("NgenBinder/NgenBind", 188),
            ("Binding/FusionMessage", 196),
        ],
    ),
    (
        "Microsoft-Windows-Kernel-EventTracing",
        "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2",
        &[
            ("ETW_TASK_PROVIDER/ETW_OPCODE_REGISTER", 8),
            ("ETW_TASK_PROVIDER/ETW_OPCODE_UNREGISTER", 9),
            ("ETW_TASK_SESSION/ETW_OPCODE_STOP", 11),
            ("ETW_TASK_PROVIDER/ETW_OPCODE_ENABLE", 14),
        ],
    ),
    (
        "Microsoft-Windows-Kernel-Process",
        "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
        &[("ProcessStart/Start", 1), ("ProcessStop/Stop", 2)],
    ),
    ("Microsoft-Windows-Kernel-File", "edd08927-9cc4-4e65-b970-c2560fb5c289", &[("Create", 12)]),
    (
        "Microsoft-Windows-DNS-Client",
        "1c95126e-7eea-49a9-a3fe-a378b03ddb4d",
        // The name comes from the schema that the x64 trace carries; the 2016 trace has none.
        &[("DnsServerForInterface", 1001), ("EventID(1019)", 1019)],
    ),
    (
        "Microsoft-Windows-Immersive-Shell",
        "315a8872-923e-4ea2-9889-33cd4754bf64",
        &[
            ("ImmersiveShellAppManagerSetActiveProcess/Start", 147),
            ("ImmersiveShellAppManagerSetActiveProcess/Stop", 148),
            ("ImmersiveShellAppManagerOnShellHookMessage/Start", 191),
            ("ImmersiveShellAppManagerOnShellHookMessage/Stop", 192),
        ],
    ),
    (
        "System.Threading.Tasks.TplEventSource",
        "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5",
        &[
            ("TaskScheduled/Send", 7),
            ("TaskExecute/Start", 8),
            ("TaskExecute/Stop", 9),
            ("ManifestData", 65534),
        ],
    ),
    (
        "System.Diagnostics.Eventing.FrameworkEventSource",
        "8e9f5090-2d75-4d03-8a81-e5afbf85daf1",
        &[("ThreadPoolEnqueueWork", 30), ("ThreadPoolDequeueWork", 31), ("ManifestData", 65534)],
    ),
    (
        "PerfView",
        "a8a71ac1-040f-54a2-07ca-00a89b5ab761",
        &[
            ("Tracing/Start", 2),
            ("Tracing/Stop", 3),
            ("Rundown/Start", 4),
            ("Rundown/Stop", 5),
            ("WaitForIdle", 6),
            ("CommandLineParameters", 10),
            ("SessionParameters", 11),
            ("KernelEnableParameters", 12),
            ("ClrEnableParameters", 13),
            ("ProviderEnableParameters", 14),
            ("StartAndStopTimes", 15),
            ("StopReason", 19),
            ("PerfViewLog", 22),
            ("ManifestData", 65534),
        ],
    ),
];
