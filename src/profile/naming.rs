//! From places to frames: each place is named once, and what comes of it is a chain of frames, the functions that were
//! inlined there among them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::event::NO_ID;
use crate::interned::Interned;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::{self, Certainty, Evidence, FunctionName, Names, RawName, Siblings};
use crate::trace::code::{Body, BodyId, BodyKind, Host, MethodName};
use crate::trace::{CodeAddress, InBody, ModuleId, Place, ProcessId, Trace};

use super::category::{Category, ModuleCategories};
use super::frame::{Frame, FrameId, Function, FunctionId, Instruction, Line};
use super::stack::{Located, Site, il_place};
use super::stacks::Stacks;
use super::tier::Tier;
use super::unresolved::Unresolved;

/// Names every site of `located`.
pub(super) fn name(trace: &Trace, located: Located, names: &dyn Names) -> Stacks {
    let mut namer = Namer {
        trace,
        names,
        categories: ModuleCategories::new(trace),
        causes: FxHashMap::default(),
        modules: FxHashMap::default(),
        frames: Interned::default(),
        functions: Functions::default(),
        tokens: FxHashMap::default(),
        bodies: FxHashMap::default(),
        chains: PrefixTree::default(),
        addresses: located.addresses,
    };
    let modules = located.modules();
    let sites = located.sites.into_iter();
    let sites = sites.map(|site| (site, namer.site(site))).collect();
    let siblings = modules.into_iter().flat_map(|module| namer.siblings(module)).collect();
    Stacks {
        sites,
        stacks: located.stacks,
        chains: namer.chains,
        frames: namer.frames.into_things(),
        functions: namer.functions.all.into_things(),
        siblings,
        tops: Vec::new(),
    }
    .measured()
}

struct Namer<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    categories: ModuleCategories,
    /// Why addresses outside all images have no name, by process.
    causes: FxHashMap<ProcessId, Unresolved>,
    /// Names of images.
    modules: FxHashMap<ModuleId, Arc<str>>,
    frames: Interned<Frame>,
    functions: Functions,
    /// By image, what events call the methods that it may have only tokens of.
    tokens: FxHashMap<ModuleId, Tokens<'a>>,
    /// The functions of bodies of code, in the image that they are in.
    bodies: FxHashMap<(BodyId, Option<ModuleId>), FunctionId>,
    chains: PrefixTree<FrameId>,
    /// Frames keep where their code is.
    addresses: bool,
}

impl<'a> Namer<'a> {
    /// The chain of frames of a site, by the innermost; `None` for a remark.
    fn site(&mut self, site: Site) -> Option<NodeId> {
        let place = match site {
            Site::Remark(_) => return None,
            Site::Waker(process) => return Some(self.waker(process)),
            Site::Code(place) => place,
        };
        match place {
            Place::Body(at) => {
                let frame = self.body_frame(at, None)?;
                Some(self.chain(None, frame))
            }
            Place::Image { module, rva, method } => Some(self.image(module, rva, method)),
            Place::Bare { process, address } => {
                let (category, cause) = match self.trace.is_kernel_address(address) {
                    true => (Category::Kernel, Unresolved::OutsideImages),
                    false => (Category::Unresolved, self.cause(process)),
                };
                let frame = Frame { address, unresolved: Some(cause), ..Frame::new(None, None, category) };
                Some(self.chain(None, frame))
            }
        }
    }

    /// The border between a stack and that of whoever made its thread go on.
    fn waker(&mut self, process: Option<ProcessId>) -> NodeId {
        let who = match process.map(|process| self.trace.process(process)) {
            None => "an interrupt",
            Some(process) => {
                let known = process.filter(|process| process.pid != NO_ID);
                known.map_or("an unknown process", |process| process.label())
            }
        };
        let name = FunctionName::Text(Arc::from(format!("[readied by {who}]")));
        let function = self.functions.of(Arc::from(""), name);
        let frame = Frame::new(Some(function), None, Category::Heading);
        self.chain(None, frame)
    }

    /// The best evidence names it, from symbols or from the runtime's own events; without any it is an address.
    fn image(&mut self, module: ModuleId, rva: CodeAddress, method: Option<InBody>) -> NodeId {
        let functions = self.names.functions(module, rva.looked_up());
        let start = functions.first().and_then(|function| function.start);
        let instruction = self.instruction(rva, start);
        let told = method.filter(|at| {
            let event = self.trace.code.body(at.body).map(|body| evidence_of(self.trace, body));
            let symbols = functions.iter().map(|function| function.evidence).min();
            event.is_some_and(|event| symbols.is_none_or(|symbols| event < symbols))
        });
        if let Some(frame) = told.and_then(|at| self.body_frame(at, Some(module))) {
            return self.chain(None, Frame { instruction, ..frame });
        }
        let mut chain = None;
        for (depth, function) in functions.iter().enumerate() {
            let frame = self.function_frame(function, depth, module, rva, method);
            chain = Some(self.chain(chain, Frame { instruction, ..frame }));
        }
        match chain {
            Some(chain) => chain,
            None => {
                let category = self.categories.of(module);
                let unresolved = Some(Unresolved::NoSymbols);
                let address = rva.address;
                let frame = Frame::new(None, Some(module), category);
                self.chain(None, Frame { address, instruction, unresolved, ..frame })
            }
        }
    }

    fn instruction(&self, rva: CodeAddress, start: Option<u32>) -> Option<Instruction> {
        let rva = u32::try_from(rva.looked_up()).ok().filter(|_| self.addresses)?;
        Some(Instruction { rva, start })
    }

    /// The frame of a function that symbols know.
    fn function_frame(
        &mut self,
        function: &symbols::Function,
        depth: usize,
        module: ModuleId,
        rva: CodeAddress,
        method: Option<InBody>,
    ) -> Frame {
        let symbols::Function { name, evidence, certainty, assembly, file, line, .. } = function;
        let told = match (name, assembly) {
            (FunctionName::Token(token), Some(assembly)) => self.told(module, assembly, *token),
            _ => None,
        };
        let (name, evidence) = match &told {
            Some(name) => (name, &Evidence::CodeEvent),
            None => (name, evidence),
        };
        let category = self.categories.of(module);
        let image = self.module_name(module);
        let (category, in_module, tier) = match name {
            FunctionName::Text(name) | FunctionName::Native(name) => {
                (category.of_function(name), image, None)
            }
            FunctionName::Start(_) => (category, image, None),
            FunctionName::Method(_) | FunctionName::Token(_) => {
                let tier = if *evidence == Evidence::Ngen { Tier::Ngen } else { Tier::ReadyToRun };
                let assembly = assembly.as_deref().or_else(|| self.assembly_of(method?));
                let in_module = assembly.map_or_else(|| in_il(image), |name| cut_module_name(name).into());
                (Category::ManagedPrecompiled, in_module, Some(tier))
            }
        };
        let is_method = tier.is_some();
        let own = file.clone().zip(*line).map(|(file, line)| Line { file, line });
        let line = own.or_else(|| self.il_line(method.filter(|_| is_method)?));
        let starts = matches!(name, FunctionName::Start(_));
        Frame {
            evidence: Some(*evidence),
            certainty: *certainty,
            tier,
            line,
            inlined: u16::try_from(depth).unwrap_or(u16::MAX),
            address: if starts { rva.address } else { 0 },
            unresolved: starts.then_some(Unresolved::NoSymbols),
            ..Frame::new(Some(self.functions.of(in_module, name.clone())), Some(module), category)
        }
    }

    /// The frame of a body of code. `image` is the one that it is in, which names the module where no event does.
    fn body_frame(&mut self, at: InBody, image: Option<ModuleId>) -> Option<Frame> {
        let trace = self.trace;
        let body = trace.code.body(at.body)?;
        let function = match self.bodies.get(&(at.body, image)) {
            Some(known) => *known,
            None => {
                let function = self.function_of(body, image);
                self.bodies.insert((at.body, image), function);
                function
            }
        };
        let ready_to_run = || {
            let module = body.module.and_then(|module| trace.code.module(module));
            module.is_some_and(|module| module.flags.is_ready_to_run())
        };
        let tier = match body.open_ended {
            true => Some(Tier::ReadyToRun),
            false => Tier::of(body.flags, ready_to_run()),
        };
        let is_named_method = is_method(body) && trace.code.name(body).is_some();
        let evidence = evidence_of(trace, body);
        let near = evidence == Evidence::NearestEntryPoint;
        Some(Frame {
            evidence: Some(evidence),
            certainty: if near { Certainty::Nearest } else { Certainty::Exact },
            tier: tier.filter(|_| is_named_method),
            line: self.il_line(at).filter(|_| is_named_method),
            ..Frame::new(Some(function), image, Category::of_body(body))
        })
    }

    /// What events call a method of which the image has the token only: it was compiled again.
    fn told(&mut self, image: ModuleId, assembly: &str, token: u32) -> Option<FunctionName> {
        let tokens = self.tokens.entry(image).or_insert_with(|| tokens_of(self.trace, image));
        let name = (*tokens.get(&(assembly, token))?)?;
        Some(FunctionName::Method(Arc::new(raw_name(name))))
    }

    /// The assembly that a runtime says the method of a body is of.
    fn assembly_of(&self, at: InBody) -> Option<&str> {
        let body = self.trace.code.body(at.body).filter(|body| is_method(body))?;
        Some(self.trace.code.module(body.module?)?.name())
    }

    fn function_of(&mut self, body: &Body, image: Option<ModuleId>) -> FunctionId {
        let module = body.module.and_then(|module| self.trace.code.module(module));
        let in_module = match (module, image) {
            (Some(module), _) => cut_module_name(module.name()).into(),
            (None, Some(image)) => self.module_name(image),
            (None, None) => "".into(),
        };
        let name = match self.trace.code.name(body) {
            // The token finds it in the module's metadata.
            None => FunctionName::Token(body.token),
            Some(name) if !is_method(body) => FunctionName::Text(name.method.into()),
            Some(name) => FunctionName::Method(Arc::new(raw_name(name))),
        };
        self.functions.of(in_module, name)
    }

    /// The source line of an address in a body, if it was looked up.
    fn il_line(&self, at: InBody) -> Option<Line> {
        let (module, place) = il_place(self.trace, at)?;
        let line = self.names.source(module, place)?;
        Some(Line { file: line.file.as_str().into(), line: line.line })
    }

    /// Why addresses of a process outside all images have no name.
    fn cause(&mut self, process: ProcessId) -> Unresolved {
        let (trace, categories) = (self.trace, &self.categories);
        *self.causes.entry(process).or_insert_with(|| Unresolved::outside_images(trace, process, categories))
    }

    /// Methods that are in an image with named ones, by the module that they are shown in.
    fn siblings(&mut self, module: ModuleId) -> Vec<(Arc<str>, Vec<RawName>)> {
        let all = self.names.siblings(module).iter();
        let of_assembly = |siblings: &Siblings| {
            let in_module = match &siblings.assembly {
                Some(assembly) => cut_module_name(assembly).into(),
                None => in_il(self.module_name(module)),
            };
            (in_module, siblings.methods.clone())
        };
        all.map(of_assembly).collect()
    }

    fn module_name(&mut self, module: ModuleId) -> Arc<str> {
        let name = || cut_module_name(self.trace.module(module).map_or("", |module| module.name())).into();
        Arc::clone(self.modules.entry(module).or_insert_with(name))
    }

    fn chain(&mut self, above: Option<NodeId>, frame: Frame) -> NodeId {
        let frame = FrameId(self.frames.number(frame));
        self.chains.child(above, frame)
    }
}

impl Frame {
    fn new(function: Option<FunctionId>, module: Option<ModuleId>, category: Category) -> Frame {
        Frame {
            function,
            evidence: None,
            certainty: Certainty::Exact,
            tier: None,
            module,
            address: 0,
            instruction: None,
            line: None,
            inlined: 0,
            category,
            unresolved: None,
        }
    }
}

/// Names by assembly and token; `None` where two events differ.
type Tokens<'a> = FxHashMap<(&'a str, u32), Option<MethodName<'a>>>;

/// What events call the methods of the processes that map an image. A generic method has one token and several names, so
/// it is left out.
fn tokens_of(trace: &Trace, image: ModuleId) -> Tokens<'_> {
    let processes = trace.mappings.processes_of(image);
    let mut tokens = Tokens::default();
    for body in trace.code.bodies().iter().filter(|body| is_method(body) && processes.contains(&body.process))
    {
        let module = body.module.and_then(|module| trace.code.module(module));
        let (Some(module), Some(name)) = (module, trace.code.name(body)) else { continue };
        if body.flags.is_generic() || name.type_name.contains('[') || body.token == 0 {
            continue;
        }
        let known = tokens.entry((module.name(), body.token)).or_insert(Some(name));
        if *known != Some(name) {
            *known = None;
        }
    }
    tokens
}

fn raw_name(name: MethodName<'_>) -> RawName {
    RawName {
        type_name: name.type_name.to_owned(),
        method: name.method.to_owned(),
        type_args: String::new(),
        signature: name.signature.to_owned(),
    }
}

/// What an event shows of a body of code.
fn evidence_of(trace: &Trace, body: &Body) -> Evidence {
    match (body.open_ended, trace.code.name(body)) {
        (_, None) => Evidence::Token,
        (false, Some(_)) => Evidence::CodeEvent,
        (true, Some(_)) if is_method(body) && !all_entry_points_are_known(trace, body) => {
            Evidence::NearestEntryPoint
        }
        (true, Some(_)) => Evidence::EntryPoint,
    }
}

/// True for .NET code; false for what a script engine or the runtime made without a method.
fn is_method(body: &Body) -> bool {
    !matches!(body.kind, BodyKind::Script | BodyKind::Helper)
}

/// A runtime names the module of a method by the assembly that defines it, wherever its code is. For most code in a
/// precompiled image that is the image's own.
fn in_il(image: Arc<str>) -> Arc<str> {
    image.strip_suffix(".ni").map(Arc::from).unwrap_or(image)
}

/// A precompiled method's entry point is recorded when it is first called. Where none was missed, the nearest one before
/// code that runs is that of its method.
fn all_entry_points_are_known(trace: &Trace, body: &Body) -> bool {
    let from_the_start = trace.code.host(body.process).is_some_and(Host::was_seen_from_its_start);
    from_the_start && trace.lost.events + trace.lost.buffers == 0
}

/// Characters of a module's name in a frame: a file's name has no more.
const LONGEST_NAME: usize = 255;

/// The first 255 characters of a module's name.
pub fn cut_module_name(name: &str) -> &str {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}

/// Functions, each once. A .NET method has one number, whichever evidence named it and however much of its name that
/// evidence has ([`RawName::is_same_method`]).
#[derive(Debug, Default)]
struct Functions {
    all: Interned<Function>,
    /// Methods that may be the same, by module, type and name.
    methods: FxHashMap<(Arc<str>, String, String), Vec<FunctionId>>,
    /// Methods whose names have been seen before.
    known: FxHashMap<(Arc<str>, Arc<RawName>), FunctionId>,
}

impl Functions {
    fn of(&mut self, module: Arc<str>, name: FunctionName) -> FunctionId {
        let FunctionName::Method(method) = name else {
            return FunctionId(self.all.number(Function { module, name }));
        };
        if let Some(known) = self.known.get(&(Arc::clone(&module), Arc::clone(&method))) {
            return *known;
        }
        let key = (Arc::clone(&module), method.type_name.clone(), method.method.clone());
        let alike = self.methods.entry(key).or_default();
        let all = &self.all;
        let is_same = |id: &FunctionId| match all.get(id.0).map(|known| &known.name) {
            Some(FunctionName::Method(known)) => known.is_same_method(&method),
            _ => false,
        };
        let mut same = alike.iter().copied().take(MOST_ALIKE).filter(is_same);
        // A name that does not say what is returned may be either of two.
        let same = same.next().filter(|_| same.next().is_none());
        let id = same.unwrap_or_else(|| {
            let name = FunctionName::Method(Arc::clone(&method));
            let id = FunctionId(self.all.number(Function { module: Arc::clone(&module), name }));
            alike.push(id);
            id
        });
        self.known.insert((module, method), id);
        id
    }
}

/// Overloads that are compared with a name; a crafted trace can have any number.
const MOST_ALIKE: usize = 64;
