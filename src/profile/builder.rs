//! From raw stacks to named ones.
//!
//! Samples repeat stacks and stacks repeat addresses, so both are named once and remembered. What is remembered holds
//! for a time only: another file may be mapped at the same address later.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxHashMap, FxHasher};

use crate::event::Ticks;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::managed::source::il_offset;
use crate::symbols::{Function, FunctionName, IlPlace, Names};
use crate::trace::code::{Body, CodeAt};
use crate::trace::{self, Context, Located, Mapping, ProcessId, Trace};

use super::category::{Category, ModuleCategories};
use super::filter::Filter;
use super::frame::{Frame, FrameId, cut};
use super::limit::{self, Budget, Limit, Stack};
use super::managed::{Draft, Method, name_methods};
use super::unresolved::Unresolved;
use super::{Naming, Profile, Sample};

pub(super) fn build(
    trace: &Trace,
    filter: &Filter,
    names: &dyn Names,
    naming: Naming,
    limit: Limit,
) -> Profile {
    let (kept, balance) = filter.apply(trace);
    let mut builder = Builder {
        trace,
        names,
        naming,
        budget: limit.budget(),
        depths: None,
        categories: ModuleCategories::new(trace),
        causes: FxHashMap::default(),
        frames: Vec::new(),
        frame_ids: HashTable::new(),
        stacks: PrefixTree::default(),
        addresses: FxHashMap::default(),
        methods: Vec::new(),
        chains: Vec::new(),
        paths: FxHashMap::default(),
    };
    let samples = kept.into_iter().map(|sample| builder.sample(sample)).collect();
    let Builder { mut frames, stacks, methods, .. } = builder;
    name_methods(&mut frames, methods, trace, naming.parameters);
    Profile { frames, stacks, samples, balance, limit }
}

struct Builder<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    naming: Naming,
    budget: Budget,
    /// How deep the raw stacks are, once that matters.
    depths: Option<Vec<u32>>,
    categories: ModuleCategories,
    /// Why addresses outside all images have no name, by process.
    causes: FxHashMap<ProcessId, Unresolved>,
    frames: Vec<Frame>,
    /// Indices of `frames` by the frame.
    frame_ids: HashTable<u32>,
    /// Frames that get their text at the end.
    methods: Vec<(FrameId, Method)>,
    stacks: PrefixTree<FrameId>,
    addresses: FxHashMap<Site, Remembered<Chain>>,
    /// The frames of addresses, outermost first: slices of this by the ranges in `addresses`.
    chains: Vec<FrameId>,
    paths: FxHashMap<Path, Remembered<Named>>,
}

/// The frames of an address.
#[derive(Clone, Copy)]
struct Chain {
    /// Where they are in `chains`.
    start: u32,
    end: u32,
    /// Outer ones for which there was no room.
    missing: u32,
}

/// The frames of a path.
#[derive(Clone, Copy)]
struct Named {
    node: NodeId,
    /// Frames for which there was no room.
    missing: u32,
}

/// An address as one process sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Site {
    process: ProcessId,
    address: u64,
    is_return: bool,
}

/// A stack as one process sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Path {
    process: ProcessId,
    context: Context,
    kernel: Option<NodeId>,
    user: Option<NodeId>,
    /// The sampled address, of samples without a stack.
    alone: Option<u64>,
}

/// An answer and the time for which it holds.
#[derive(Clone, Copy)]
struct Remembered<T> {
    value: T,
    from: Ticks,
    until: Ticks,
}

impl Remembered<Chain> {
    /// No frames yet, for as long as both answers hold.
    fn new(located: Located, code: CodeAt) -> Self {
        let value = Chain { start: 0, end: 0, missing: 0 };
        let mut remembered = Remembered { value, from: located.from, until: located.until };
        remembered.narrow(code);
        remembered
    }

    fn narrow(&mut self, code: CodeAt) {
        (self.from, self.until) = (self.from.max(code.from), self.until.min(code.until));
    }
}

impl<T> Remembered<T> {
    fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

/// Addresses and their frames that are remembered at once; more are forgotten and named again.
const MOST_REMEMBERED: usize = 1 << 18;

impl<'a> Builder<'a> {
    fn sample(&mut self, sample: &trace::Sample) -> Sample {
        let trace::Sample { time, address, process, tid, thread, processor, weight, context, .. } = *sample;
        let Named { node: stack, missing } = self.stack(sample);
        Sample { time, address, process, tid, thread, processor, weight, context, stack, missing }
    }

    fn stack(&mut self, sample: &trace::Sample) -> Named {
        let alone = (sample.kernel.is_none() && sample.user.is_none()).then_some(sample.address);
        let path = Path {
            process: sample.process,
            context: sample.context,
            kernel: sample.kernel,
            user: sample.user,
            alone,
        };
        if let Some(known) = self.paths.get(&path).filter(|known| known.holds_at(sample.time)) {
            return known.value;
        }
        let remembered = self.name_stack(&path, sample.time);
        self.paths.insert(path, remembered);
        remembered.value
    }

    fn name_stack(&mut self, path: &Path, time: Ticks) -> Remembered<Named> {
        let trace = self.trace;
        let part = |part: Option<NodeId>| part.into_iter().flat_map(|stack| trace.stacks.path(stack));
        let addresses = part(path.kernel).chain(part(path.user)).chain(path.alone);
        let (mut from, mut until) = (Ticks(i64::MIN), Ticks(i64::MAX));
        let mut stack = Stack::default();
        let mut looked_at = 0;
        let mut callee = None;
        for address in addresses {
            let is_return = callee.is_some_and(|callee| !self.is_trap(address, callee));
            callee = Some(address);
            let site = Site { process: path.process, address, is_return };
            let chain = self.address(site, time);
            (from, until) = (from.max(chain.from), until.min(chain.until));
            let Chain { start, end, missing } = chain.value;
            let frames = self.chains.get(start as usize..end as usize).unwrap_or_default();
            for id in frames.iter().rev() {
                if let Some(frame) = self.frames.get(id.0 as usize) {
                    stack.push(*id, frame, &mut self.budget);
                }
            }
            stack.missing += missing;
            looked_at += 1;
            if stack.missing > 0 {
                stack.missing += self.depth(path).saturating_sub(looked_at);
                break;
            }
        }
        let remark = self.remark(path).map(|remark| self.intern(Frame::heading(remark.into())));
        let cut = (stack.missing > 0).then(|| self.intern(Frame::heading(limit::CUT.into())));
        let heading = self.stacks.extend(None, remark.into_iter().chain(cut));
        let node = stack.extend(&mut self.stacks, heading, &mut self.budget);
        // Every path has an address, and every address a frame.
        let value = Named { node: node.unwrap_or(NodeId(0)), missing: stack.missing };
        Remembered { value, from, until }
    }

    /// The number of addresses of a path.
    fn depth(&mut self, path: &Path) -> u32 {
        let depths = self.depths.get_or_insert_with(|| self.trace.stacks.depths());
        let of = |stack: NodeId| depths.get(stack.0 as usize).copied().unwrap_or(0);
        path.kernel.map_or(0, of) + path.user.map_or(0, of)
    }

    /// True where user code at `address` did not call the kernel's code above it but was interrupted: by a system call,
    /// behind which it goes on, or by a fault, which it will take again. The address is that of an instruction then, and
    /// not the one behind a call.
    fn is_trap(&self, address: u64, callee: u64) -> bool {
        !self.trace.is_kernel_address(address) && self.trace.is_kernel_address(callee)
    }

    /// What has to be said of a stack before its frames.
    fn remark(&self, path: &Path) -> Option<&'static str> {
        match (path.context, path.alone) {
            (Context::Dpc, _) => Some("[DPC]"),
            (Context::Isr, _) => Some("[ISR]"),
            (_, Some(_)) => Some("[no stack]"),
            _ if path.user.is_none() && !self.trace.is_kernel_only(path.process) => {
                Some("[user stack missing]")
            }
            _ => None,
        }
    }

    /// The frames of an address.
    fn address(&mut self, site: Site, time: Ticks) -> Remembered<Chain> {
        let kernel = self.trace.is_kernel_address(site.address);
        // The kernel's half is the same for all processes.
        let site = if kernel { Site { process: ProcessId(0), ..site } } else { site };
        if let Some(known) = self.addresses.get(&site).filter(|known| known.holds_at(time)) {
            return *known;
        }
        // A crafted trace could show one deep stack to a million processes.
        if self.addresses.len().max(self.chains.len() / 4) >= MOST_REMEMBERED {
            self.addresses.clear();
            self.chains.clear();
        }
        let trace = self.trace;
        // A return address is behind its call, which may be the last instruction of its function and its module.
        let looked_up = site.address.saturating_sub(u64::from(site.is_return));
        let located = trace.mappings.at(site.process, looked_up, kernel, time);
        let mapping = located.mapping.and_then(|index| trace.mappings.get(index));
        let code = if kernel { CodeAt::NOTHING } else { trace.code.at(site.process, looked_up, time) };
        let start = self.chains.len() as u32;
        let mut remembered = Remembered::new(located, code);
        match (mapping, code.body.and_then(|body| trace.code.body(body))) {
            (mapping, Some(body)) if mapping.is_none_or(|mapping| mapping.start <= body.from) => {
                let line = self.line_in(body, looked_up);
                self.push(self.naming.body(trace, body, "", line));
            }
            (mapping, _) => {
                let functions = mapping.map(|mapping| self.functions(site, mapping)).unwrap_or_default();
                // What the runtime says of precompiled code: a name where symbols have none, and lines.
                let precompiled = match kernel || !functions.is_empty() && !self.naming.lines {
                    true => CodeAt::NOTHING,
                    false => trace.code.precompiled_at(site.process, looked_up, time),
                };
                remembered.narrow(precompiled);
                // One without a known end does not reach into another image.
                let is_inside = |body: &&Body| {
                    !body.open_ended || mapping.is_some_and(|mapping| mapping.base <= body.start)
                };
                let body = precompiled.body.and_then(|body| trace.code.body(body)).filter(is_inside);
                let line = body.map(|body| self.line_in(body, looked_up)).unwrap_or_default();
                match mapping {
                    Some(mapping) if !functions.is_empty() => {
                        remembered.value.missing = self.name_functions(&functions, mapping, kernel, &line);
                    }
                    _ => self.name_without_symbols(site, mapping, body.map(|body| (body, line)), kernel),
                }
            }
        }
        (remembered.value.start, remembered.value.end) = (start, self.chains.len() as u32);
        self.addresses.insert(site, remembered);
        remembered
    }

    /// ` (file:line)` of an address in a body, if wanted and known.
    fn line_in(&self, body: &Body, address: u64) -> String {
        let naming = self.naming;
        let line = || {
            let native = u32::try_from(address.checked_sub(body.start)?).ok()?;
            let offset = il_offset(self.trace.code.il_map(body), native)?;
            self.names.source(body.module?, IlPlace { token: body.token, offset })
        };
        let line = if naming.lines { line() } else { None };
        line.map(|line| naming.line(Some(&line.file), Some(line.line))).unwrap_or_default()
    }

    /// The functions that symbols have for an address of an image.
    fn functions(&self, site: Site, mapping: &Mapping) -> Vec<&'a Function> {
        let rva = site.address - mapping.base;
        self.names.functions(mapping.module, if site.is_return { rva.saturating_sub(1) } else { rva })
    }

    /// The frames of functions in an image, the innermost of them as far as there is room; gives how many are left
    /// out. `line` is that of a .NET method for which symbols have no line.
    fn name_functions(
        &mut self,
        functions: &[&Function],
        mapping: &Mapping,
        kernel: bool,
        line: &str,
    ) -> u32 {
        let category = if kernel { Category::Kernel } else { self.categories.of(mapping.module) };
        let module_name = module_name(self.trace, mapping);
        let module = Some(mapping.module);
        let naming = self.naming;
        let wanted = functions.iter().filter(|function| !function.inlined || naming.inlined);
        let all = wanted.clone().count();
        let missing = all - self.budget.room(all).min(all);
        for function in wanted.skip(missing) {
            let mut draft = match &function.name {
                FunctionName::Text(name) => {
                    let text = naming.text(module_name, name, function);
                    Frame::code(text, category.of_function(name)).into()
                }
                FunctionName::Method(method) => {
                    let own = naming.line(function.file.as_deref(), function.line);
                    naming.precompiled(module_name, method, if own.is_empty() { line } else { &own })
                }
            };
            draft.frame.module = module;
            draft.frame.inlined = function.inlined;
            self.push(draft);
        }
        missing as u32
    }

    /// What the runtime says of its precompiled code and helpers; else the address.
    fn name_without_symbols(
        &mut self,
        site: Site,
        mapping: Option<&Mapping>,
        body: Option<(&Body, String)>,
        kernel: bool,
    ) {
        let module = mapping.map(|mapping| mapping.module);
        if let Some((body, line)) = body {
            let image = mapping.map_or("", |mapping| module_name(self.trace, mapping));
            let mut draft = self.naming.body(self.trace, body, image, line);
            draft.frame.module = module;
            return self.push(draft);
        }
        let frame = match mapping {
            Some(mapping) => {
                let text =
                    format!("{}!0x{:x}", module_name(self.trace, mapping), site.address - mapping.base);
                let category = if kernel { Category::Kernel } else { self.categories.of(mapping.module) };
                Frame { text, category, module, inlined: false, unresolved: Some(Unresolved::NoSymbols) }
            }
            None => {
                let text = format!("0x{:x}", site.address);
                let (category, cause) = match kernel {
                    true => (Category::Kernel, Unresolved::OutsideImages),
                    false => (Category::Unresolved, self.cause(site.process)),
                };
                Frame { text, category, module, inlined: false, unresolved: Some(cause) }
            }
        };
        self.push(frame.into());
    }

    /// Why addresses of a process outside all images have no name.
    fn cause(&mut self, process: ProcessId) -> Unresolved {
        let (trace, categories) = (self.trace, &self.categories);
        *self.causes.entry(process).or_insert_with(|| Unresolved::outside_images(trace, process, categories))
    }

    fn push(&mut self, draft: Draft) {
        let known = self.frames.len();
        let frame = self.intern(draft.frame);
        if let Some(method) = draft.method.filter(|_| self.frames.len() > known) {
            self.methods.push((frame, method));
        }
        self.chains.push(frame);
    }

    fn intern(&mut self, frame: Frame) -> FrameId {
        let hash = |frame: &Frame| BuildHasherDefault::<FxHasher>::default().hash_one(frame);
        let frames = &mut self.frames;
        let entry = self.frame_ids.entry(
            hash(&frame),
            |index| frames.get(*index as usize) == Some(&frame),
            |index| frames.get(*index as usize).map_or(0, hash),
        );
        let index = match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let index = frames.len() as u32;
                place.insert(index);
                frames.push(frame);
                index
            }
        };
        FrameId(index)
    }
}

fn module_name<'t>(trace: &'t Trace, mapping: &Mapping) -> &'t str {
    cut(trace.module(mapping.module).map_or("", |module| module.name()))
}
