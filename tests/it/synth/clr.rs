//! Events of the .NET runtime and its rundown. A process writes its own: header ids are real. All widths are
//! fixed, in 32-bit processes too.

use super::{Bytes, Event, Guid, IntoEvent, guid};

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";

const LOADER: u64 = 0x8;
const JIT: u64 = 0x10;
const JIT_AND_NGEN: u64 = 0x30;
const IL_MAP: u64 = 0x20000;

/// How a runtime event and its rundown twin are told: id and opcode.
#[derive(Clone, Copy, Debug)]
struct Identity {
    rundown: bool,
    id: u16,
    opcode: u8,
}

const fn live(id: u16, opcode: u8) -> Identity {
    Identity { rundown: false, id, opcode }
}

const fn rundown(id: u16, opcode: u8) -> Identity {
    Identity { rundown: true, id, opcode }
}

impl Identity {
    fn event(
        self,
        process: u32,
        version: u8,
        task: (u16, u16),
        keyword: u64,
        payload: impl Fn(Bytes) -> Bytes + 'static,
    ) -> Event {
        let (provider, task) = if self.rundown { (RUNDOWN, task.1) } else { (RUNTIME, task.0) };
        Event::manifest(guid(provider), self.id, version, payload)
            .opcode(self.opcode)
            .task(task)
            .keyword(keyword)
            .by(process, process + 4)
    }
}

/// Task numbers, live and rundown.
const METHOD_TASK: (u16, u16) = (9, 1);
const LOADER_TASK: (u16, u16) = (10, 2);
const RUNTIME_TASK: (u16, u16) = (19, 19);
const STACK_TASK: (u16, u16) = (11, 11);

/// A method's code: jitted, in the optimized tier, version 2 unless told otherwise.
#[derive(Clone, Debug)]
pub struct Method {
    identity: Identity,
    verbose: bool,
    version: u8,
    process: u32,
    method: u64,
    module: u64,
    start: u64,
    size: u32,
    token: u32,
    flags: u32,
    name: [String; 3],
    instance: u16,
    rejit: u64,
}

impl Method {
    fn new(identity: Identity, verbose: bool, process: u32, start: u64, size: u32, name: [&str; 3]) -> Self {
        Method {
            identity,
            verbose,
            version: 2,
            process,
            method: start ^ 0x5000_0000_0000, // some handle, another for each start
            module: 0x7ff8_1000_4000,
            start,
            size,
            token: 0x0600_0001,
            flags: 0x8 | 4 << 7, // jitted, tier 1
            name: name.map(str::to_owned),
            instance: 9,
            rejit: 0,
        }
    }

    /// Compiled or prepared: type with its namespace, method, signature.
    pub fn load(process: u32, start: u64, size: u32, name: [&str; 3]) -> Self {
        Self::new(live(143, 37), true, process, start, size, name)
    }

    /// Gone, the tier bits with it.
    pub fn unload(process: u32, start: u64, size: u32, name: [&str; 3]) -> Self {
        Self::new(live(144, 38), true, process, start, size, name).flags(0x8)
    }

    /// There when the rundown began.
    pub fn dc_start(process: u32, start: u64, size: u32, name: [&str; 3]) -> Self {
        Self::new(rundown(143, 39), true, process, start, size, name)
    }

    /// There when the session ended.
    pub fn dc_end(process: u32, start: u64, size: u32, name: [&str; 3]) -> Self {
        Self::new(rundown(144, 40), true, process, start, size, name)
    }

    /// The form without names: MethodLoad, Unload, DCStart, DCEnd.
    pub fn nameless(self) -> Self {
        let id = self.identity.id - 2;
        let opcode = self.identity.opcode - 4;
        Self { verbose: false, identity: Identity { id, opcode, ..self.identity }, ..self }
    }

    pub fn version(self, version: u8) -> Self {
        Self { version, ..self }
    }

    /// The runtime's handle.
    pub fn id(self, method: u64) -> Self {
        Self { method, ..self }
    }

    pub fn module(self, module: u64) -> Self {
        Self { module, ..self }
    }

    pub fn token(self, token: u32) -> Self {
        Self { token, ..self }
    }

    /// All flags at once: 1 dynamic, 2 generic, 4 shared, 8 jitted, 0x10 helper, bits 7-9 tier, 28-31 extent.
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// Bits 7-9: 3 quick-jitted, 4 tier 1, 5 OSR, ....
    pub fn tier(self, tier: u32) -> Self {
        let flags = self.flags & !(7 << 7) | tier << 7;
        Self { flags, ..self }
    }

    /// The cold part of the method.
    pub fn cold(self) -> Self {
        Self { flags: self.flags | 1 << 28, ..self }
    }

    /// Which runtime of the process, from version 1 on.
    pub fn instance(self, instance: u16) -> Self {
        Self { instance, ..self }
    }

    /// From version 2 on.
    pub fn rejit(self, rejit: u64) -> Self {
        Self { rejit, ..self }
    }

    fn lay(&self, bytes: Bytes) -> Bytes {
        let mut bytes = bytes.u64(self.method).u64(self.module).u64(self.start).u32(self.size);
        bytes = bytes.u32(self.token).u32(self.flags);
        if self.verbose {
            bytes = self.name.iter().fold(bytes, |bytes, text| bytes.utf16z(text));
        }
        if self.version >= 1 {
            bytes = bytes.u16(self.instance);
        }
        if self.version >= 2 {
            bytes = bytes.u64(self.rejit);
        }
        bytes
    }
}

impl From<Method> for Event {
    fn from(method: Method) -> Event {
        let (identity, process, version) = (method.identity, method.process, method.version);
        identity.event(process, version, METHOD_TASK, JIT_AND_NGEN, move |bytes| method.lay(bytes))
    }
}

/// MethodILToNativeMap: pairs of IL offset and native offset of a method's hot part.
pub fn il_to_native_map(process: u32, method: u64, rejit: u64, map: &[(i32, u32)]) -> Event {
    il_map(live(190, 87), process, method, rejit, map)
}

/// The same in the rundown at the end.
pub fn il_to_native_map_dc_end(process: u32, method: u64, rejit: u64, map: &[(i32, u32)]) -> Event {
    il_map(rundown(150, 42), process, method, rejit, map)
}

fn il_map(identity: Identity, process: u32, method: u64, rejit: u64, map: &[(i32, u32)]) -> Event {
    let map = map.to_vec();
    let payload = move |bytes: Bytes| {
        let count = u16::try_from(map.len()).expect("a short map");
        let bytes = bytes.u64(method).u64(rejit).u8(0).u16(count);
        let bytes = map.iter().fold(bytes, |bytes, &(il, _)| bytes.i32(il));
        map.iter().fold(bytes, |bytes, &(_, native)| bytes.u32(native)).u16(9)
    };
    identity.event(process, 0, METHOD_TASK, IL_MAP, payload).level(5)
}

/// MethodJittingStarted.
pub fn jitting_started(process: u32, method: u64, module: u64, token: u32, name: [&str; 3]) -> Event {
    let name = name.map(str::to_owned);
    let payload = move |bytes: Bytes| {
        let bytes = bytes.u64(method).u64(module).u32(token).u32(0x40);
        name.iter().fold(bytes, |bytes, text| bytes.utf16z(text)).u16(9)
    };
    live(145, 42).event(process, 1, METHOD_TASK, JIT, payload).level(5)
}

/// R2RGetEntryPoint: a precompiled method was called first. Its size is not told.
pub fn r2r_entry_point(process: u32, method: u64, entry: u64, name: [&str; 3]) -> Event {
    let name = name.map(str::to_owned);
    let payload = move |bytes: Bytes| {
        name.iter().fold(bytes.u64(method), |bytes, text| bytes.utf16z(text)).u64(entry).u16(9)
    };
    live(159, 33).event(process, 0, (9, 9), 0x20_0000_0000, payload)
}

/// A module: version 2 unless told otherwise.
#[derive(Clone, Debug)]
pub struct Module {
    identity: Identity,
    version: u8,
    process: u32,
    module: u64,
    assembly: u64,
    flags: u32,
    il_path: String,
    native_path: String,
    managed_pdb: (Guid, u32, String),
    native_pdb: (Guid, u32, String),
}

impl Module {
    fn new(identity: Identity, process: u32, module: u64, il_path: &str) -> Self {
        let none = (Guid([0; 16]), 0, String::new());
        Module {
            identity,
            version: 2,
            process,
            module,
            assembly: module ^ 0x1_0000,
            flags: 0x8, // manifest
            il_path: il_path.into(),
            native_path: String::new(),
            managed_pdb: none.clone(),
            native_pdb: none,
        }
    }

    pub fn load(process: u32, module: u64, il_path: &str) -> Self {
        Self::new(live(152, 33), process, module, il_path)
    }

    pub fn unload(process: u32, module: u64, il_path: &str) -> Self {
        Self::new(live(153, 34), process, module, il_path)
    }

    pub fn dc_start(process: u32, module: u64, il_path: &str) -> Self {
        Self::new(rundown(153, 35), process, module, il_path)
    }

    pub fn dc_end(process: u32, module: u64, il_path: &str) -> Self {
        Self::new(rundown(154, 36), process, module, il_path)
    }

    pub fn version(self, version: u8) -> Self {
        Self { version, ..self }
    }

    pub fn assembly(self, assembly: u64) -> Self {
        Self { assembly, ..self }
    }

    /// 1 domain neutral, 2 native, 4 dynamic, 8 manifest, 0x20 ReadyToRun.
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    pub fn native_path(self, path: &str) -> Self {
        Self { native_path: path.into(), ..self }
    }

    /// Version 2.
    pub fn managed_pdb(self, id: Guid, age: u32, path: &str) -> Self {
        Self { managed_pdb: (id, age, path.into()), ..self }
    }

    /// Version 2.
    pub fn native_pdb(self, id: Guid, age: u32, path: &str) -> Self {
        Self { native_pdb: (id, age, path.into()), ..self }
    }

    fn lay(&self, bytes: Bytes) -> Bytes {
        let bytes = bytes.u64(self.module).u64(self.assembly).u32(self.flags).u32(0);
        let mut bytes = bytes.utf16z(&self.il_path).utf16z(&self.native_path);
        if self.version >= 1 {
            bytes = bytes.u16(9);
        }
        if self.version >= 2 {
            for (id, age, path) in [&self.managed_pdb, &self.native_pdb] {
                bytes = bytes.guid(*id).u32(*age).utf16z(path);
            }
        }
        bytes
    }
}

impl From<Module> for Event {
    fn from(module: Module) -> Event {
        let (identity, process, version) = (module.identity, module.process, module.version);
        identity.event(process, version, LOADER_TASK, LOADER, move |bytes| module.lay(bytes))
    }
}

/// DomainModuleLoad, version 1.
pub fn domain_module_load(process: u32, module: u64, domain: u64, il_path: &str) -> Event {
    let path = il_path.to_owned();
    live(151, 45).event(process, 1, LOADER_TASK, LOADER, move |bytes| {
        let bytes = bytes.u64(module).u64(module ^ 0x1_0000).u64(domain).u32(0x8).u32(0);
        bytes.utf16z(&path).utf16z("").u16(9)
    })
}

/// AssemblyLoad, version 1.
pub fn assembly_load(process: u32, assembly: u64, domain: u64, full_name: &str) -> Event {
    let name = full_name.to_owned();
    live(154, 37).event(process, 1, LOADER_TASK, LOADER, move |bytes| {
        bytes.u64(assembly).u64(domain).u64(0).u32(0).utf16z(&name).u16(9)
    })
}

/// AppDomainLoad, version 1.
pub fn app_domain_load(process: u32, domain: u64, name: &str, index: u32) -> Event {
    let name = name.to_owned();
    live(156, 41).event(process, 1, LOADER_TASK, LOADER, move |bytes| {
        bytes.u64(domain).u32(0x4).utf16z(&name).u32(index).u16(9)
    })
}

/// RuntimeStart of a .NET 8 process.
pub fn runtime_start(process: u32, command_line: &str, runtime_dll: &str) -> Event {
    runtime(live(187, 1), process, 9, command_line, runtime_dll)
}

/// The same in the rundown.
pub fn runtime_dc(process: u32, command_line: &str, runtime_dll: &str) -> Event {
    runtime(rundown(187, 1), process, 9, command_line, runtime_dll)
}

/// The same of a runtime of the process's choice.
pub fn runtime_dc_of(process: u32, instance: u16, runtime_dll: &str) -> Event {
    runtime(rundown(187, 1), process, instance, "a.exe", runtime_dll)
}

fn runtime(identity: Identity, process: u32, instance: u16, command_line: &str, runtime_dll: &str) -> Event {
    let [command_line, runtime_dll] = [command_line, runtime_dll].map(str::to_owned);
    identity.event(process, 0, RUNTIME_TASK, 0, move |bytes| {
        let bytes = bytes.u16(instance).u16(2); // CoreCLR
        let versions = [8, 0, 0, 0, 8, 0, 1024, 46610]; // base class library and runtime
        let bytes = versions.into_iter().fold(bytes, Bytes::u16);
        bytes.u32(0).u8(0x10).utf16z(&command_line).guid(Guid([0; 16])).utf16z(&runtime_dll)
    })
}

/// The end rundown of a process begins.
pub fn dc_end_init(process: u32) -> Event {
    rundown(148, 17).event(process, 1, METHOD_TASK, 0x2_0038, |bytes| bytes.u16(9))
}

/// The end rundown of a process is complete.
pub fn dc_end_complete(process: u32) -> Event {
    rundown(146, 15).event(process, 1, METHOD_TASK, 0x2_0038, |bytes| bytes.u16(9))
}

/// ClrStackWalk: the stack of the thread's CLR event before it, leaf first.
pub fn stack_walk(process: u32, frames: &[u64]) -> Event {
    let frames = frames.to_vec();
    let payload = move |bytes: Bytes| {
        let count = u32::try_from(frames.len()).expect("a short stack");
        bytes.u16(9).u8(0).u8(0).u32(count).ptrs(&frames)
    };
    live(82, 82).event(process, 0, STACK_TASK, 0x4000_0000, payload).level(0)
}

const GC: u64 = 0x1;
const GC_TASK: (u16, u16) = (1, 1);
const EXCEPTION_TASK: (u16, u16) = (7, 7);
const CONTENTION_TASK: (u16, u16) = (8, 8);
const POOL_TASK: (u16, u16) = (18, 18);

/// GCStart, version 2, of runtime 9: `reason` and `kind` are the runtime's numbers.
pub fn gc_start(process: u32, number: u32, generation: u32, reason: u32, kind: u32) -> Event {
    live(1, 1).event(process, 2, GC_TASK, GC, move |bytes| {
        bytes.u32(number).u32(generation).u32(reason).u32(kind).u16(9).u64(0)
    })
}

/// GCEnd, version 1.
pub fn gc_end(process: u32, number: u32, generation: u32) -> Event {
    live(2, 2).event(process, 1, GC_TASK, GC, move |bytes| bytes.u32(number).u32(generation).u16(9))
}

/// GCSuspendEEBegin, version 1: `reason` is 1 for a collection, 6 to prepare one.
pub fn suspend(process: u32, reason: u32) -> Event {
    live(9, 10).event(process, 1, GC_TASK, GC, move |bytes| bytes.u32(reason).u32(0).u16(9))
}

/// GCSuspendEEEnd, version 1.
pub fn suspended(process: u32) -> Event {
    live(8, 8).event(process, 1, GC_TASK, GC, |bytes| bytes.u16(9))
}

/// GCRestartEEEnd, version 1.
pub fn resume(process: u32) -> Event {
    live(3, 3).event(process, 1, GC_TASK, GC, |bytes| bytes.u16(9))
}

/// ExceptionThrown, version 1, of a 64-bit process.
pub fn exception(process: u32, type_name: &str, message: &str) -> Event {
    let (type_name, message) = (type_name.to_owned(), message.to_owned());
    live(80, 1).event(process, 1, EXCEPTION_TASK, 0x8000, move |bytes| {
        bytes.utf16z(&type_name).utf16z(&message).u64(0x7ffa_0000).u32(0x8013_1500).u16(0x10).u16(9)
    })
}

/// ContentionStart of runtime 9: versions 0 (empty), 1, and 2 of a 64-bit process with the thread that holds the lock.
pub fn contention(process: u32, version: u8, native: bool, owner: u64) -> Event {
    live(81, 1).event(process, version, CONTENTION_TASK, 0x4000, move |bytes| match version {
        0 => bytes,
        1 => bytes.u8(native.into()).u16(9),
        _ => bytes.u8(native.into()).u16(9).u64(0x1f_0010).u64(0x1f_0020).u64(owner),
    })
}

/// ContentionStop, version 1.
pub fn contention_end(process: u32, nanoseconds: f64) -> Event {
    live(91, 2).event(process, 1, CONTENTION_TASK, 0x4000, move |bytes| {
        bytes.u8(0).u16(9).u64(nanoseconds.to_bits())
    })
}

/// ThreadPoolWorkerThreadStart of runtime 9: a thread came, and now so many work.
pub fn pool_thread(process: u32, active: u32) -> Event {
    live(50, 1).event(process, 0, POOL_TASK, 0x1_0000, move |bytes| bytes.u32(active).u32(3).u16(9))
}

/// ThreadPoolWorkerThreadAdjustmentAdjustment: the pool wants so many threads, for a reason by the runtime's number.
pub fn pool_adjustment(process: u32, threads: u32, reason: u32) -> Event {
    live(55, 101).event(process, 0, POOL_TASK, 0x1_0000, move |bytes| {
        bytes.u64(1.5_f64.to_bits()).u32(threads).u32(reason).u16(9)
    })
}

/// HeapStats of runtime 9: the sizes of generations 0 to 2 and of the heap of large objects; half of each survived. The
/// heap of pinned objects has 5,000 bytes, in version 2.
pub fn heap_stats(process: u32, version: u8, sizes: [u64; 4]) -> Event {
    live(4, 133).event(process, version, GC_TASK, GC, move |bytes| {
        let bytes = sizes.into_iter().fold(bytes, |bytes, size| bytes.u64(size).u64(size / 2));
        let mut bytes = bytes.u64(11).u64(12).u32(13).u32(14).u32(15);
        if version >= 1 {
            bytes = bytes.u16(9);
        }
        if version >= 2 {
            bytes = bytes.u64(5_000).u64(2_500);
        }
        bytes
    })
}

/// AllocationTick of runtime 9, in a 64-bit process.
pub fn allocation_tick(process: u32, version: u8, amount: u64, type_name: &str) -> Event {
    let type_name = type_name.to_owned();
    live(10, 11).event(process, version, GC_TASK, GC, move |bytes| {
        let mut bytes = bytes.u32(amount as u32).u32(1);
        if version >= 1 {
            bytes = bytes.u16(9);
        }
        if version >= 2 {
            bytes = bytes.u64(amount).u64(0x7ffa_0000_1000).utf16z(&type_name).u32(3);
        }
        if version >= 3 {
            bytes = bytes.u64(0x1_0000_2000);
        }
        if version >= 4 {
            bytes = bytes.u64(48);
        }
        bytes
    })
}

/// AllocationSampled of runtime 9, of a 64-bit process.
pub fn allocation_sampled(process: u32, size: u64, type_name: &str) -> Event {
    let type_name = type_name.to_owned();
    live(303, 0).event(process, 0, GC_TASK, 0x800_0000_0000, move |bytes| {
        bytes.u32(0).u16(9).u64(0x7ffa_0000_1000).utf16z(&type_name).u64(0x1_0000_2000).u64(size).u64(7)
    })
}

/// An event of runtime events by another of the process's threads.
pub fn by_thread(event: impl Into<Event>, process: u32, thread: u32) -> Event {
    event.into().by(process, thread)
}

/// GCStart, version 2, of a runtime of the process's choice.
pub fn gc_start_of(process: u32, instance: u16, number: u32) -> Event {
    live(1, 1).event(process, 2, GC_TASK, GC, move |bytes| {
        bytes.u32(number).u32(0).u32(0).u32(0).u16(instance).u64(0)
    })
}
