//! The names of events, in the words of the public reference.

use crate::event::{Event, Kind};
use crate::guid::Guid;
use crate::guids::*;

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
        (PAGE_FAULT, 10) => "TransitionFault",
        (PAGE_FAULT, 11) => "DemandZeroFault",
        (PAGE_FAULT, 12) => "CopyOnWrite",
        (PAGE_FAULT, 13) => "GuardPageFault",
        (PAGE_FAULT, 14) => "HardPageFault",
        (PAGE_FAULT, 15) => "AccessViolation",
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
        (CLR, 50) => "ThreadPoolWorkerThread/Start",
        (CLR, 51) => "ThreadPoolWorkerThread/Stop",
        (CLR, 54) => "ThreadPoolWorkerThreadAdjustment/Sample",
        (CLR, 55) => "ThreadPoolWorkerThreadAdjustment/Adjustment",
        (CLR, 56) => "ThreadPoolWorkerThreadAdjustment/Stats",
        (CLR, 57) => "ThreadPoolWorkerThread/Wait",
        (CLR, 80) => "Exception/Start",
        (CLR, 81) => "Contention/Start",
        (CLR, 91) => "Contention/Stop",
        (CLR, 82) => "ClrStack/Walk",
        (CLR, 85) => "AppDomainResourceManagement/ThreadCreated",
        (CLR, 141) => "Method/Load",
        (CLR, 142) => "Method/Unload",
        (CLR, 143) => "Method/LoadVerbose",
        (CLR, 144) => "Method/UnloadVerbose",
        (CLR, 145) => "Method/JittingStarted",
        (CLR, 146) => "Method/MemoryAllocatedForJitCode",
        (CLR, 303) => "GC/AllocationSampled",
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
