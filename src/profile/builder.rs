//! From raw stacks to named ones.
//!
//! Samples repeat stacks and stacks repeat addresses, so both are named once and remembered. What is remembered holds
//! for a time only: another file may be mapped at the same address later.

use rustc_hash::FxHashMap;

use crate::event::Ticks;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::Names;
use crate::trace::{self, Context, Mapping, ProcessId, Trace};

use super::filter::Filter;
use super::frame::{Category, Frame, FrameId};
use super::{Naming, Profile, Sample};

pub(super) fn build(trace: &Trace, filter: &Filter, names: &dyn Names, naming: Naming) -> Profile {
    let (kept, balance) = filter.apply(trace);
    let mut builder = Builder {
        trace,
        names,
        naming,
        frames: Vec::new(),
        frame_ids: FxHashMap::default(),
        stacks: PrefixTree::default(),
        addresses: FxHashMap::default(),
        chains: Vec::new(),
        paths: FxHashMap::default(),
    };
    let samples = kept.into_iter().map(|sample| builder.sample(sample)).collect();
    Profile { frames: builder.frames, stacks: builder.stacks, samples, balance }
}

struct Builder<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    naming: Naming,
    frames: Vec<Frame>,
    frame_ids: FxHashMap<Frame, FrameId>,
    stacks: PrefixTree<FrameId>,
    addresses: FxHashMap<Site, Remembered<(u32, u32)>>,
    /// The frames of addresses, outermost first: slices of this by the ranges in `addresses`.
    chains: Vec<FrameId>,
    paths: FxHashMap<Path, Remembered<NodeId>>,
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

impl<T> Remembered<T> {
    fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

/// The System process; its threads have no user mode.
const SYSTEM_PID: u32 = 4;

impl Builder<'_> {
    fn sample(&mut self, sample: &trace::Sample) -> Sample {
        let trace::Sample { time, address, process, tid, thread, processor, weight, context, .. } = *sample;
        Sample { time, address, process, tid, thread, processor, weight, context, stack: self.stack(sample) }
    }

    fn stack(&mut self, sample: &trace::Sample) -> NodeId {
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

    fn name_stack(&mut self, path: &Path, time: Ticks) -> Remembered<NodeId> {
        let trace = self.trace;
        let mut addresses: Vec<u64> = Vec::with_capacity(64);
        addresses.extend(path.kernel.into_iter().flat_map(|stack| trace.stacks.path(stack)));
        addresses.extend(path.user.into_iter().flat_map(|stack| trace.stacks.path(stack)));
        addresses.extend(path.alone);
        let (mut from, mut until) = (Ticks(i64::MIN), Ticks(i64::MAX));
        let heading = self.remark(path).map(|remark| {
            let frame =
                Frame { text: remark.into(), category: Category::Heading, module: None, inlined: false };
            self.intern(frame)
        });
        let mut node = self.stacks.extend(None, heading.into_iter());
        let leaf = 0;
        for (depth, address) in addresses.into_iter().enumerate().rev() {
            let site = Site { process: path.process, address, is_return: depth != leaf };
            let chain = self.address(site, time);
            (from, until) = (from.max(chain.from), until.min(chain.until));
            let (start, end) = chain.value;
            let frames = self.chains.get(start as usize..end as usize).unwrap_or_default();
            node = self.stacks.extend(node, frames.iter().copied());
        }
        // Every path has an address, and every address a frame.
        Remembered { value: node.unwrap_or(NodeId(0)), from, until }
    }

    /// What has to be said of a stack before its frames.
    fn remark(&self, path: &Path) -> Option<&'static str> {
        let pid = self.trace.process(path.process).map_or(0, |process| process.pid);
        match (path.context, path.alone) {
            (Context::Dpc, _) => Some("[DPC]"),
            (Context::Isr, _) => Some("[ISR]"),
            (_, Some(_)) => Some("[no stack]"),
            _ if path.user.is_none() && pid != SYSTEM_PID && pid != 0 => Some("[user stack missing]"),
            _ => None,
        }
    }

    /// The frames of an address.
    fn address(&mut self, site: Site, time: Ticks) -> Remembered<(u32, u32)> {
        if let Some(known) = self.addresses.get(&site).filter(|known| known.holds_at(time)) {
            return *known;
        }
        let kernel = self.trace.is_kernel_address(site.address);
        let located = self.trace.mappings.at(site.process, site.address, kernel, time);
        let mapping = located.mapping.and_then(|index| self.trace.mappings.get(index));
        let start = self.chains.len() as u32;
        match mapping {
            Some(mapping) => self.name_address(site, mapping, kernel),
            None => {
                let text = format!("0x{:x}", site.address);
                let category = if kernel { Category::Kernel } else { Category::Unresolved };
                self.push(Frame { text, category, module: None, inlined: false });
            }
        }
        let value = (start, self.chains.len() as u32);
        let remembered = Remembered { value, from: located.from, until: located.until };
        self.addresses.insert(site, remembered);
        remembered
    }

    fn name_address(&mut self, site: Site, mapping: &Mapping, kernel: bool) {
        let rva = site.address - mapping.base;
        let category = if kernel { Category::Kernel } else { Category::Native };
        let module_name = self.trace.module(mapping.module).map_or("", |module| module.name());
        let module = Some(mapping.module);
        // A return address is behind its call, which may be the last instruction of its function.
        let names = self.names;
        let functions =
            names.functions(mapping.module, if site.is_return { rva.saturating_sub(1) } else { rva });
        if functions.is_empty() {
            let text = format!("{module_name}!0x{rva:x}");
            self.push(Frame { text, category, module, inlined: false });
        }
        let naming = self.naming;
        for function in functions.iter().filter(|function| !function.inlined || naming.inlined) {
            let text = naming.text(module_name, function);
            self.push(Frame { text, category, module, inlined: function.inlined });
        }
    }

    fn push(&mut self, frame: Frame) {
        let frame = self.intern(frame);
        self.chains.push(frame);
    }

    fn intern(&mut self, frame: Frame) -> FrameId {
        let frames = &mut self.frames;
        *self.frame_ids.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            FrameId((frames.len() - 1) as u32)
        })
    }
}
