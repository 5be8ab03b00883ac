//! Code that no image holds: JIT-compiled methods, stubs and scripts as intervals in time; and the names that runtimes
//! give to their precompiled code.
//!
//! A runtime compiles a method when it is first called, again when it is hot, and frees code that nobody can call any
//! more; other code takes its place. So an address means something only together with a process and a time. Each
//! compilation is a [`Body`], with a hot and perhaps a cold part, and several bodies of one method are live at once.
//!
//! What is known comes from four kinds of events: loads and unloads while the session ran, and the rundowns at its
//! start and end, which list what is there. A process that ended before the rundown, or one that was never asked, has
//! only its live events: [`Code::host`] tells.
//!
//! Precompiled code (NGEN, ReadyToRun) lies in an image that is mapped, and its names can come from there. The
//! runtimes' events for it are kept apart ([`Code::precompiled_at`]), for when the image says nothing.

mod collector;
mod modules;
mod runtimes;
mod timeline;

use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::events::clr::MethodFlags;

use super::processes::ProcessId;
use super::space::{Extent, MappingAt, Space};
use super::texts::{TextId, Texts};
pub(super) use collector::Collector;
pub use modules::{ManagedModule, ManagedModuleId};
pub use runtimes::{Host, Rundown, Runtime};

/// A body of code: an index into [`Code::bodies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub u32);

/// What kind of code a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BodyKind {
    /// A method, compiled at run time.
    Jitted,
    /// A method made at run time, without metadata.
    Dynamic,
    /// Marshalling code for P/Invoke, COM and delegates.
    IlStub,
    /// A helper routine that the runtime wrote itself.
    Helper,
    /// A method in an image, compiled before.
    Precompiled,
    /// A function of a script.
    Script,
}

impl BodyKind {
    /// True for code outside images: where it is, no image can be. What else a runtime tells of code may lie in an
    /// image, and must not hide it.
    pub(self) fn hides_images(self) -> bool {
        match self {
            BodyKind::Jitted | BodyKind::Dynamic | BodyKind::IlStub | BodyKind::Script => true,
            BodyKind::Helper | BodyKind::Precompiled => false,
        }
    }
}

/// One compilation of a method, or the cold part of one.
#[derive(Clone, Debug)]
pub struct Body {
    /// The process.
    pub process: ProcessId,
    /// What kind of code it is.
    pub kind: BodyKind,
    /// Where it begins.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Only its start was told (R2RGetEntryPoint); it is taken to reach to the next known method.
    pub open_ended: bool,
    /// When it came; `None` if before anything is known of its bytes.
    pub from: Option<Ticks>,
    /// When it went; `None` if it did not.
    pub until: Option<Ticks>,
    /// When its runtime reported it as new; `None` for one that was only listed.
    pub loaded: Option<Ticks>,
    /// Its tier, and whether it is the cold part of a method.
    pub flags: MethodFlags,
    /// The runtime's handle of the method.
    pub method: u64,
    /// The metadata token of the method; of a script's function the line.
    pub token: u32,
    /// Which re-JIT made it; 0 for none.
    pub rejit: u64,
    /// Which runtime of the process.
    pub instance: Option<u16>,
    /// The module of the method, where the trace tells it.
    pub module: Option<ManagedModuleId>,
    name: Option<Name>,
    il_map: PairRange,
}

impl Body {
    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }

    fn extent(&self) -> Extent {
        Extent { start: self.start, size: self.size, from: self.from, until: self.until }
    }
}

/// A method's name in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Name {
    type_name: TextId,
    method: TextId,
    signature: TextId,
}

/// A part of [`Code::pairs`].
#[derive(Clone, Copy, Debug, Default)]
struct PairRange {
    from: u32,
    len: u32,
}

impl PairRange {
    fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// Gives the module of a method.
type ModuleIdOf<'a> = &'a dyn Fn(&collector::MethodRecord) -> Option<ManagedModuleId>;

/// A method's name as its runtime writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodName<'a> {
    /// The type's full name, ``System.Collections.Generic.List`1[System.__Canon]``; empty for scripts and helpers.
    pub type_name: &'a str,
    /// The method's name.
    pub method: &'a str,
    /// Its signature: `instance void  (int32,class System.String)`.
    pub signature: &'a str,
}

/// The outermost of a full type name, without its arity.
pub(crate) fn outer_type(type_name: &str) -> &str {
    // By bytes: every method of a trace and of an image comes by here.
    let end = type_name.bytes().position(|byte| matches!(byte, b'`' | b'+' | b'[' | b'<'));
    end.and_then(|end| type_name.get(..end)).unwrap_or(type_name)
}

/// What code is at an address, and for how long that answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAt {
    /// The body; `None` where no known code is.
    pub body: Option<BodyId>,
    /// The answer is the same from here,
    pub from: Ticks,
    /// until just before here.
    pub until: Ticks,
}

impl CodeAt {
    /// No code is there, at no time.
    pub const NOTHING: CodeAt = CodeAt { body: None, from: Ticks(i64::MIN), until: Ticks(i64::MAX) };
}

impl From<MappingAt> for CodeAt {
    fn from(MappingAt { mapping, from, until }: MappingAt) -> Self {
        CodeAt { body: mapping.map(|index| BodyId(index as u32)), from, until }
    }
}

/// All code that runtimes and engines told of.
#[derive(Debug, Default)]
pub struct Code {
    texts: Texts,
    bodies: Vec<Body>,
    modules: Vec<ManagedModule>,
    /// Native offsets with their IL offsets.
    pairs: Vec<(u32, i32)>,
    hosts: FxHashMap<ProcessId, Host>,
    places: FxHashMap<ProcessId, Places>,
}

/// Where the bodies of one process are.
#[derive(Debug)]
struct Places {
    bodies: Range<usize>,
    /// Code outside images, and precompiled code inside them. Each is made when it is first asked for: most processes of a
    /// rundown have no sample.
    compiled: OnceLock<Space>,
    precompiled: OnceLock<Space>,
}

impl Code {
    /// `ranges` are the bodies of each process.
    fn new(
        texts: Texts,
        mut bodies: Vec<Body>,
        ranges: Vec<(ProcessId, Range<usize>)>,
        modules: Vec<ManagedModule>,
        pairs: Vec<(u32, i32)>,
        mut hosts: FxHashMap<ProcessId, Host>,
    ) -> Code {
        let mut places = FxHashMap::default();
        for (process, range) in ranges {
            let of_process = bodies.get_mut(range.clone()).unwrap_or_default();
            close_open_ends(of_process);
            let host = hosts.entry(process).or_default();
            host.functions = of_process.iter().filter(|body| body.kind == BodyKind::Script).count();
            let without_code = of_process.iter().filter(|body| body.open_ended && body.size == 0).count();
            host.methods = of_process.len() - host.functions - without_code;
            let (compiled, precompiled) = (OnceLock::new(), OnceLock::new());
            places.insert(process, Places { bodies: range, compiled, precompiled });
        }
        Code { texts, bodies, modules, pairs, hosts, places }
    }

    /// What compiled code was at `address` of `process` at `time`.
    pub fn at(&self, process: ProcessId, address: u64, time: Ticks) -> CodeAt {
        let Some(places) = self.places.get(&process) else { return CodeAt::NOTHING };
        places.compiled.get_or_init(|| self.layer(places, true)).at(address, time).into()
    }

    /// The same for precompiled code and helper routines: for an address that neither [`Code::at`] nor the symbols of
    /// an image name.
    pub fn precompiled_at(&self, process: ProcessId, address: u64, time: Ticks) -> CodeAt {
        let Some(places) = self.places.get(&process) else { return CodeAt::NOTHING };
        places.precompiled.get_or_init(|| self.layer(places, false)).at(address, time).into()
    }

    /// Of the other layer only the places are there, so that indices stay.
    fn layer(&self, Places { bodies: range, .. }: &Places, hides_images: bool) -> Space {
        let bodies = self.bodies.get(range.clone()).unwrap_or_default();
        let extents = bodies.iter().map(|body| match body.kind.hides_images() == hides_images {
            true => body.extent(),
            false => Extent { size: 0, ..body.extent() },
        });
        Space::new(&extents.collect::<Vec<_>>(), range.start as u32)
    }

    /// Every body, by process and in the order in which they were told.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// A body by its id.
    pub fn body(&self, id: BodyId) -> Option<&Body> {
        self.bodies.get(id.0 as usize)
    }

    /// The name of a body's method; `None` where only events without names told of it.
    pub fn name(&self, body: &Body) -> Option<MethodName<'_>> {
        let Name { type_name, method, signature } = body.name?;
        let text = |id| self.texts.get(id);
        Some(MethodName { type_name: text(type_name), method: text(method), signature: text(signature) })
    }

    /// Which IL a body's code comes from: native offsets in order, each with its IL offset (-1 none, -2 prolog, -3
    /// epilog). Empty where the trace does not tell.
    pub fn il_map(&self, body: &Body) -> &[(u32, i32)] {
        let PairRange { from, len } = body.il_map;
        let from = from as usize;
        self.pairs.get(from..from + len as usize).unwrap_or_default()
    }

    /// Every module of a runtime and every script.
    pub fn modules(&self) -> &[ManagedModule] {
        &self.modules
    }

    /// A module by its id.
    pub fn module(&self, id: ManagedModuleId) -> Option<&ManagedModule> {
        self.modules.get(id.0 as usize)
    }

    /// What runtimes and engines say of a process; `None` where none said anything.
    pub fn host(&self, process: ProcessId) -> Option<&Host> {
        self.hosts.get(&process)
    }
}

/// Code beyond this is not taken for a method's of which only the start is known.
const LONGEST_METHOD: u64 = 1 << 20;

/// Lets the bodies of a process of which only the start was told end where the next begins. One that is also told with
/// its size stays without.
fn close_open_ends(bodies: &mut [Body]) {
    if !bodies.iter().any(|body| body.open_ended) {
        return;
    }
    let precompiled = bodies.iter().filter(|body| !body.kind.hides_images());
    let mut starts: Vec<(u64, bool)> = precompiled.map(|body| (body.start, body.open_ended)).collect();
    // Of one start, that with a size comes first.
    starts.sort_unstable();
    starts.dedup_by_key(|(start, _)| *start);
    for body in bodies.iter_mut().filter(|body| body.open_ended) {
        let Ok(index) = starts.binary_search_by_key(&body.start, |(start, _)| *start) else { continue };
        if starts.get(index).is_some_and(|(_, open_ended)| *open_ended) {
            let next = starts.get(index + 1).map_or(u64::MAX, |(start, _)| *start);
            body.size = (next - body.start).min(LONGEST_METHOD);
        }
    }
}
