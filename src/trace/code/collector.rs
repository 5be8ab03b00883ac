//! Takes the events of runtimes and engines as they come, and makes [`Code`] of them when all are there.
//!
//! Nothing is joined before the end: whose process id it was, the rundown's answers, and the module of a method may
//! all come late.

use rustc_hash::FxHashMap;

use crate::event::{Event, Ticks};
use crate::events::clr::{self, Clr, MethodFlags, ModuleFlags, PdbSignature, Phase};
use crate::events::javascript::{self, JavaScript};
use crate::trace::processes::{ProcessId, Processes};
use crate::trace::texts::{TextId, Texts};

use super::modules::{ModuleRecord, Modules, Pdb};
use super::runtimes::Hosts;
use super::timeline::Timeline;
use super::{Body, BodyKind, Code, Name, PairRange};

/// What one event tells of a body of code.
#[derive(Debug)]
pub(super) struct MethodRecord {
    pub(super) time: Ticks,
    pub(super) phase: Phase,
    pub(super) kind: BodyKind,
    pub(super) method: u64,
    pub(super) module: u64,
    pub(super) start: u64,
    pub(super) size: u64,
    /// The size was not told.
    pub(super) open_ended: bool,
    pub(super) token: u32,
    pub(super) flags: MethodFlags,
    pub(super) rejit: u64,
    pub(super) instance: Option<u16>,
    pub(super) name: Option<Name>,
}

/// What one event tells of a method's IL.
#[derive(Debug)]
pub(super) struct MapRecord {
    pub(super) time: Ticks,
    pub(super) phase: Phase,
    pub(super) method: u64,
    pub(super) pairs: PairRange,
}

/// A record whose order among those of its process matters.
#[derive(Debug)]
enum Record {
    Method(MethodRecord),
    IlMap(MapRecord),
}

impl Record {
    fn time(&self) -> Ticks {
        match self {
            Record::Method(record) => record.time,
            Record::IlMap(record) => record.time,
        }
    }
}

/// Collects events.
#[derive(Debug, Default)]
pub(in crate::trace) struct Collector {
    texts: Texts,
    /// With the process ids of their headers.
    records: Vec<(u32, Record)>,
    modules: Vec<(u32, ModuleRecord)>,
    /// The names of assemblies, for modules that have none.
    assemblies: FxHashMap<(u32, u64), TextId>,
    pairs: Vec<(u32, i32)>,
    hosts: Hosts,
}

impl Collector {
    /// Takes an event of a .NET runtime.
    pub(in crate::trace) fn clr(&mut self, decoded: &Clr<'_>, event: &Event<'_>) {
        let (pid, time) = (event.pid, event.time);
        match decoded {
            Clr::Method(method) => {
                let record = self.method(method, time);
                self.records.push((pid, Record::Method(record)));
            }
            Clr::R2rEntryPoint(method) => {
                let record = self.entry_point(method, time);
                self.records.push((pid, Record::Method(record)));
            }
            Clr::IlMap(map) => {
                let pairs = self.store(map);
                let clr::IlMap { phase, method, .. } = *map;
                self.records.push((pid, Record::IlMap(MapRecord { time, phase, method, pairs })));
            }
            Clr::Module(module) => {
                let record = self.module(module, time);
                self.modules.push((pid, record));
            }
            Clr::DomainModule(module) => {
                let clr::DomainModule { phase, id, assembly, flags, il_path, native_path, instance, .. } =
                    *module;
                let (managed_pdb, native_pdb) = (None, None);
                let module = clr::Module {
                    phase,
                    id,
                    assembly,
                    flags,
                    il_path,
                    native_path,
                    instance,
                    managed_pdb,
                    native_pdb,
                };
                let record = self.module(&module, time);
                self.modules.push((pid, record));
            }
            Clr::Assembly(assembly) => {
                let name = self.texts.intern(assembly.full_name);
                self.assemblies.insert((pid, assembly.id), name);
            }
            Clr::Runtime(runtime) => self.hosts.runtime(pid, time, runtime),
            Clr::RundownBegin { .. } => self.hosts.rundown_begins(pid, time),
            Clr::RundownComplete { .. } => self.hosts.rundown_is_complete(pid, time),
            Clr::JittingStarted(_)
            | Clr::JitMemory(_)
            | Clr::AppDomain(_)
            | Clr::TieredSettings(_)
            | Clr::StackWalk(_)
            | Clr::GcStart(_)
            | Clr::HeapStats(_)
            | Clr::AllocationTick(_)
            | Clr::AllocationSampled(_)
            | Clr::GcEnd(_)
            | Clr::Suspension(_)
            | Clr::SuspensionEnd { .. }
            | Clr::Resumption { .. }
            | Clr::Exception(_)
            | Clr::Contention(_)
            | Clr::ContentionEnd(_)
            | Clr::PoolThreads(_) => {}
        }
    }

    /// Takes an event of a JavaScript engine.
    pub(in crate::trace) fn javascript(&mut self, decoded: &JavaScript<'_>, event: &Event<'_>) {
        let (pid, time) = (event.pid, event.time);
        match decoded {
            JavaScript::Method(method) => {
                let javascript::Method { phase, start, size, id, source, line, name, .. } = *method;
                let text = self.texts.intern(name);
                let record = MethodRecord {
                    time,
                    phase,
                    kind: BodyKind::Script,
                    method: u64::from(id),
                    module: source,
                    start,
                    size,
                    open_ended: false,
                    token: line,
                    flags: MethodFlags::default(),
                    rejit: 0,
                    instance: None,
                    name: Some(Name { method: text, ..Name::default() }),
                };
                self.records.push((pid, Record::Method(record)));
            }
            JavaScript::Source(source) => {
                let record = ModuleRecord {
                    time,
                    phase: source.phase,
                    id: source.id,
                    assembly: 0,
                    instance: None,
                    flags: ModuleFlags::default(),
                    path: self.texts.intern(source.url),
                    native_path: TextId::default(),
                    managed_pdb: None,
                    native_pdb: None,
                };
                self.modules.push((pid, record));
            }
        }
    }

    fn method(&mut self, method: &clr::Method<'_>, time: Ticks) -> MethodRecord {
        let name = method.name.map(|name| self.name(&name, method.flags));
        let is_stub = method.name.is_some_and(|name| is_il_stub(&name));
        MethodRecord {
            time,
            phase: method.phase,
            kind: kind(method.flags, is_stub),
            method: method.id,
            module: method.module,
            start: method.start,
            size: u64::from(method.size),
            open_ended: false,
            token: method.token,
            flags: method.flags,
            rejit: method.rejit,
            instance: method.instance,
            name,
        }
    }

    fn module(&mut self, module: &clr::Module<'_>, time: Ticks) -> ModuleRecord {
        let mut pdb = |pdb: Option<PdbSignature<'_>>| {
            pdb.map(|pdb| Pdb { name: self.texts.intern(pdb.path), id: pdb.id })
        };
        let (managed_pdb, native_pdb) = (pdb(module.managed_pdb), pdb(module.native_pdb));
        ModuleRecord {
            time,
            phase: module.phase,
            id: module.id,
            assembly: module.assembly,
            instance: module.instance,
            flags: module.flags,
            path: self.texts.intern(module.il_path),
            native_path: self.texts.intern(module.native_path),
            managed_pdb,
            native_pdb,
        }
    }

    fn entry_point(&mut self, method: &clr::R2rEntryPoint<'_>, time: Ticks) -> MethodRecord {
        let flags = MethodFlags::default();
        MethodRecord {
            time,
            phase: Phase::Load,
            kind: BodyKind::Precompiled,
            method: method.method,
            module: 0,
            start: method.entry,
            size: 0,
            open_ended: true,
            token: 0,
            flags,
            rejit: 0,
            instance: method.instance,
            name: Some(self.name(&method.name, flags)),
        }
    }

    fn name(&mut self, name: &clr::MethodName<'_>, flags: MethodFlags) -> Name {
        let method = self.texts.intern(name.method);
        if flags.is_helper() {
            // Its type and signature say `NULL`.
            return Name { method, ..Name::default() };
        }
        let type_name = self.texts.intern(name.type_name);
        Name { type_name, method, signature: self.texts.intern(name.signature) }
    }

    /// Keeps a map, by native offset.
    fn store(&mut self, map: &clr::IlMap<'_>) -> PairRange {
        let from = self.pairs.len();
        self.pairs.extend(map.pairs());
        if let Some(new) = self.pairs.get_mut(from..) {
            // Stable: of pairs at one native offset the last has the code.
            new.sort_by_key(|(native, _)| *native);
        }
        PairRange { from: from as u32, len: (self.pairs.len() - from) as u32 }
    }

    /// Joins everything. `early` is how long before its load event a method may run.
    pub(in crate::trace) fn finish(self, processes: &mut Processes, early: i64) -> Code {
        let Collector { texts, records, modules: module_records, assemblies, pairs, hosts } = self;
        let mut modules = Modules::default();
        for (pid, record) in &module_records {
            let process = processes.at(*pid, record.time);
            let path = match assemblies.get(&(*pid, record.assembly)) {
                Some(name) if record.path.is_empty() => {
                    let name = texts.get(*name);
                    name.split_once(',').map_or(name, |(name, _)| name)
                }
                _ => texts.get(record.path),
            };
            modules.record(process, record, path, &texts);
        }
        // By process. Stable: the order of events stays.
        let process =
            |(index, (pid, record)): (u32, &(u32, Record))| (processes.at(*pid, record.time()), index);
        let mut by_process: Vec<(ProcessId, u32)> = (0..).zip(&records).map(process).collect();
        by_process.sort_by_key(|(process, _)| *process);
        let mut bodies: Vec<Body> = Vec::new();
        let mut ranges = Vec::new();
        for of_process in by_process.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((process, _)) = of_process.first() else { continue };
            let from = bodies.len();
            let mut timeline = Timeline::new(*process, &mut bodies, early);
            for (_, index) in of_process {
                match records.get(*index as usize) {
                    Some((_, Record::Method(method))) => {
                        timeline.method(method, &|method| modules.at(*process, method.module, method.time));
                    }
                    Some((_, Record::IlMap(map))) => timeline.il_map(map),
                    None => {}
                }
            }
            timeline.finish();
            ranges.push((*process, from..bodies.len()));
        }
        Code::new(texts, bodies, ranges, modules.all, pairs, hosts.finish(processes))
    }
}

fn kind(flags: MethodFlags, is_stub: bool) -> BodyKind {
    match flags {
        _ if is_stub => BodyKind::IlStub,
        _ if flags.is_dynamic() => BodyKind::Dynamic,
        _ if flags.is_jitted() => BodyKind::Jitted,
        _ if flags.is_helper() => BodyKind::Helper,
        _ => BodyKind::Precompiled,
    }
}

/// The marshalling code that the runtime makes for P/Invoke, COM and delegates.
fn is_il_stub(name: &clr::MethodName<'_>) -> bool {
    name.type_name.starts_with("dynamicClass") && name.method.starts_with("IL_STUB")
}
