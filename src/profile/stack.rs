//! Stacks of places: what the samples of a trace hit, before anything has a name.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::Ticks;
use crate::interned::Interned;
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::symbols::{Hit, IlPlace, Wanted, il_offset};
use crate::trace::code::ManagedModuleId;
use crate::trace::{self, CodeAddress, Context, InBody, ModuleId, Parts, Place, ProcessId, StackId, Trace};

use super::broken::ThreadStarts;
use super::filter::{Balance, Filter};
use super::limit::{Budget, Frames, Limit, SITE};
use super::measure::{self, Dot, Measure, Waker};
use super::metric::Metric;
use super::{Remark, Sample};

/// A site: an index into [`Located::sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// One line of a stack without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// Something to say of the stack below it.
    Remark(Remark),
    /// What is below made the thread go on: a thread of this process, or an interrupt.
    Waker(Option<ProcessId>),
    /// Code.
    Code(Place),
}

/// The kept samples of a trace, with the places of their stacks. What symbols are wanted for follows from it
/// ([`Located::wanted`]); with their names it becomes a [`Profile`](super::Profile).
#[derive(Debug)]
pub struct Located {
    /// What the values of its samples are.
    pub metric: Metric,
    /// Every distinct site.
    pub sites: Vec<Site>,
    /// Every distinct stack, the root first.
    pub stacks: PrefixTree<SiteId>,
    /// The kept samples, in order of time.
    pub samples: Vec<Sample>,
    /// The account of all samples of the trace.
    pub balance: Balance,
    /// How much may be made of the trace.
    pub limit: Limit,
    /// Frames of images keep where their code is, and so are as many as the addresses. False at first.
    pub addresses: bool,
}

impl Located {
    /// Locates the stacks of the CPU samples of `trace` that `filter` keeps, within `limit`.
    pub fn new(trace: &Trace, filter: &Filter, limit: Limit) -> Located {
        Located::of(trace, &Measure::default(), filter, limit)
    }

    /// The same of the samples of a measure. The trace must have kept what it needs ([`Measure::keep`]).
    pub fn of(trace: &Trace, measure: &Measure, filter: &Filter, limit: Limit) -> Located {
        let mut locator = Locator {
            trace,
            starts: ThreadStarts::new(trace),
            budget: limit.budget(),
            depths: None,
            sites: Interned::default(),
            stacks: PrefixTree::default(),
            new_sites: 0,
            addresses: FxHashMap::default(),
            paths: FxHashMap::default(),
            extras: Interned::default(),
            broken: FxHashSet::default(),
        };
        let mut samples = Vec::new();
        let keep = |dot: Dot| samples.push(locator.sample(&dot));
        let mut balance = measure::samples(trace, measure, filter, keep);
        let Locator { sites, stacks, broken, .. } = locator;
        let is_broken = |sample: &&Sample| broken.contains(&sample.stack);
        balance.stacks.broken = samples.iter().filter(is_broken).map(Sample::count).sum();
        let (metric, sites) = (measure.what.metric(), sites.into_things());
        Located { metric, sites, stacks, samples, balance, limit, addresses: false }
    }

    /// The modules that its samples hit.
    pub fn modules(&self) -> BTreeSet<ModuleId> {
        self.sites.iter().filter_map(Site::module).collect()
    }

    /// What symbols are needed for; for the `lines` of .NET methods too, if they are wanted.
    pub fn wanted(&self, trace: &Trace, lines: bool) -> Wanted {
        let mut rvas: FxHashMap<ModuleId, Vec<u64>> = FxHashMap::default();
        let mut places: FxHashMap<ManagedModuleId, Vec<IlPlace>> = FxHashMap::default();
        for site in &self.sites {
            let Site::Code(place) = site else { continue };
            if let Place::Image { module, rva, .. } = place {
                rvas.entry(*module).or_default().push(rva.looked_up());
            }
            let body = if lines { place.body() } else { None };
            if let Some((module, place)) = body.and_then(|body| il_place(trace, body)) {
                places.entry(module).or_default().push(place);
            }
        }
        let mut samples = self.samples_by_module();
        let hits = rvas.into_iter().map(|(module, rvas)| Hit {
            module,
            samples: samples.remove(&module).unwrap_or(0),
            rvas: in_order(rvas),
        });
        Wanted {
            samples: self.balance.kept,
            hits: hits.collect(),
            lines: places.into_iter().map(|(module, places)| (module, in_order(places))).collect(),
        }
    }

    /// How many samples have a frame in each module.
    fn samples_by_module(&self) -> FxHashMap<ModuleId, u64> {
        let sites = |stack| self.stacks.path(stack).filter_map(|site| self.sites.get(site.0 as usize));
        samples_by_module(&self.samples, sites)
    }
}

/// How many of the samples with these stacks have one of its `sites` in each module.
pub(super) fn samples_by_module<'s, S: Iterator<Item = &'s Site>>(
    samples: &[Sample],
    sites: impl Fn(NodeId) -> S,
) -> FxHashMap<ModuleId, u64> {
    let mut of_stack: FxHashMap<NodeId, u64> = FxHashMap::default();
    for sample in samples {
        *of_stack.entry(sample.stack).or_default() += sample.count();
    }
    let mut by_module = FxHashMap::default();
    let mut modules: Vec<ModuleId> = Vec::new();
    for (stack, samples) in of_stack {
        modules.clear();
        modules.extend(sites(stack).filter_map(Site::module));
        modules.sort_unstable();
        modules.dedup();
        for module in &modules {
            *by_module.entry(*module).or_default() += samples;
        }
    }
    by_module
}

impl Site {
    fn module(&self) -> Option<ModuleId> {
        match self {
            Site::Code(Place::Image { module, .. }) => Some(*module),
            _ => None,
        }
    }
}

/// Where an address of a body is in the IL of its method; `None` where the trace does not say.
pub(super) fn il_place(trace: &Trace, at: InBody) -> Option<(ManagedModuleId, IlPlace)> {
    let body = trace.code.body(at.body)?;
    let offset = il_offset(trace.code.il_map(body), at.offset)?;
    Some((body.module?, IlPlace { token: body.token, offset }))
}

fn in_order<T: Ord>(mut things: Vec<T>) -> Vec<T> {
    things.sort_unstable();
    things.dedup();
    things
}

/// Samples repeat stacks and stacks repeat addresses, so both are located once and remembered. What is remembered
/// holds for a time only: another file may be mapped at the same address later.
struct Locator<'a> {
    trace: &'a Trace,
    starts: ThreadStarts,
    budget: Budget,
    /// How deep the raw stacks are, once that matters.
    depths: Option<Vec<u32>>,
    sites: Interned<Site>,
    stacks: PrefixTree<SiteId>,
    /// Sites that nobody has paid for yet.
    new_sites: u64,
    addresses: FxHashMap<(ProcessId, CodeAddress), Remembered<SiteId>>,
    paths: FxHashMap<Path, Remembered<NodeId>>,
    /// What samples have beside their stacks.
    extras: Interned<Extra>,
    /// Stacks that are broken.
    broken: FxHashSet<NodeId>,
}

/// A stack as one process sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Path {
    process: ProcessId,
    context: Context,
    stack: StackId,
    /// The sampled address, of samples without a stack.
    alone: Option<u64>,
    /// What it has beside its stack: an index into the extras, from 1 on; 0 for nothing.
    extra: u32,
}

impl Hash for Path {
    /// In three steps: it is asked for every sample.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Path { process, context, stack, alone, extra } = *self;
        state.write_u64(u64::from(process.0) << 32 | u64::from(stack.0));
        state.write_u64(u64::from(extra) << 8 | context as u64);
        state.write_u64(alone.unwrap_or(0));
    }
}

/// What a sample may have beside its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Extra {
    mark: Option<Remark>,
    waker: Option<Waker>,
}

/// An answer and the time for which it holds.
#[derive(Clone, Copy)]
struct Remembered<T> {
    value: T,
    from: Ticks,
    until: Ticks,
}

impl Remembered<()> {
    const ALWAYS: Remembered<()> = Remembered { value: (), from: Ticks(i64::MIN), until: Ticks(i64::MAX) };
}

impl<T> Remembered<T> {
    fn holds_at(&self, time: Ticks) -> bool {
        self.from <= time && time < self.until
    }
}

/// Addresses that are remembered at once; more are forgotten and located again. A crafted trace could show one deep
/// stack to a million processes.
const MOST_REMEMBERED: usize = 1 << 18;

/// Few stacks are deeper.
const USUAL_DEPTH: usize = 64;

impl Locator<'_> {
    #[inline(always)]
    fn sample(&mut self, dot: &Dot) -> Sample {
        let Dot { time, value, address, runner, stack, processor, context, count, mark, waker } = *dot;
        let process = self.trace.runner(runner).process;
        let parts = self.trace.stack(stack).parts();
        let alone = address.filter(|_| parts == Parts::None);
        let is_plain = mark.is_none() && waker.is_none();
        let extra = if is_plain { 0 } else { self.extras.number(Extra { mark, waker }) + 1 };
        let path = Path { process, context, stack, alone, extra };
        let known = self.paths.get(&path).filter(|known| known.holds_at(time)).copied();
        let located = known.unwrap_or_else(|| {
            let located = self.stack(&path, time);
            self.paths.insert(path, located);
            located
        });
        Sample { time, value, runner, stack: located.value, processor, context, parts, count }
    }

    fn stack(&mut self, path: &Path, time: Ticks) -> Remembered<NodeId> {
        let trace = self.trace;
        let stack = trace.stack(path.stack);
        let part = |part: Option<NodeId>| part.into_iter().flat_map(|part| trace.addresses.path(part));
        let addresses = part(stack.kernel).chain(part(stack.user)).chain(path.alone);
        let (mut from, mut until) = (Ticks(i64::MIN), Ticks(i64::MAX));
        let mut frames = Frames::with_room(USUAL_DEPTH);
        let extra = path.extra.checked_sub(1).and_then(|extra| self.extras.get(extra)).copied();
        let waker = extra.and_then(|extra| extra.waker);
        let woken = waker.map_or(Remembered::ALWAYS, |waker| self.waker(waker, time, &mut frames));
        (from, until) = (from.max(woken.from), until.min(woken.until));
        let mut looked_at = 0;
        let mut callee = None;
        for address in addresses {
            let is_return = callee.is_some_and(|callee| !self.is_trap(address, callee));
            callee = Some(address);
            let site = self.address(path.process, CodeAddress { address, is_return }, time);
            (from, until) = (from.max(site.from), until.min(site.until));
            frames.push(site.value, std::mem::take(&mut self.new_sites) * SITE, &mut self.budget);
            looked_at += 1;
            if frames.missing > 0 {
                frames.missing += self.depth(stack).saturating_sub(looked_at);
                break;
            }
        }
        let cut = (frames.missing > 0).then_some(Remark::Cut(frames.missing));
        // What is cut here may have been whole.
        let remark = self.remark(path, stack).or_else(|| {
            let sites = frames.iter().filter_map(|site| self.sites.get(site.0));
            let is_broken = cut.is_none() && self.starts.are_missed(trace, path.process, sites);
            is_broken.then_some(Remark::Broken)
        });
        let mark = extra.and_then(|extra| extra.mark);
        // The last one stands above the others.
        let remarks = remark.into_iter().chain(mark).chain(cut);
        let remarks: Vec<SiteId> = remarks.map(|remark| self.number(Site::Remark(remark))).collect();
        let above = self.stacks.extend(None, remarks.into_iter());
        // Every path has an address, and every address a site.
        let node = frames.extend(&mut self.stacks, above, &mut self.budget).unwrap_or(NodeId(0));
        if remark == Some(Remark::Broken) {
            self.broken.insert(node);
        }
        Remembered { value: node, from, until }
    }

    /// What made a thread go on stands below all that it had done. Returns the time for which the frames hold.
    fn waker(&mut self, waker: Waker, time: Ticks, frames: &mut Frames<SiteId>) -> Remembered<()> {
        let mut held = Remembered::ALWAYS;
        let process = waker.runner.map(|runner| self.trace.runner(runner).process);
        let trace = self.trace;
        let stack = trace.stack(waker.stack);
        let part = |part: Option<NodeId>| part.into_iter().flat_map(|part| trace.addresses.path(part));
        // A stack that an interrupt interrupts is somebody else's.
        let user = stack.user.filter(|_| process.is_some());
        let mut callee = None;
        for address in part(stack.kernel).chain(part(user)) {
            let is_return = callee.is_some_and(|callee| !self.is_trap(address, callee));
            callee = Some(address);
            let of = process.unwrap_or(ProcessId(0));
            let site = self.address(of, CodeAddress { address, is_return }, time);
            (held.from, held.until) = (held.from.max(site.from), held.until.min(site.until));
            frames.push(site.value, std::mem::take(&mut self.new_sites) * SITE, &mut self.budget);
        }
        let border = self.number(Site::Waker(process));
        frames.push(border, std::mem::take(&mut self.new_sites) * SITE, &mut self.budget);
        held
    }

    /// The number of addresses of a stack.
    fn depth(&mut self, stack: trace::Stack) -> u32 {
        let depths = self.depths.get_or_insert_with(|| self.trace.addresses.depths());
        let of = |part: NodeId| depths.get(part.0 as usize).copied().unwrap_or(0);
        stack.kernel.map_or(0, of) + stack.user.map_or(0, of)
    }

    /// True where user code at `address` did not call the kernel's code above it but was interrupted: by a system call,
    /// behind which it goes on, or by a fault, which it will take again. The address is that of an instruction then, and
    /// not the one behind a call.
    fn is_trap(&self, address: u64, callee: u64) -> bool {
        !self.trace.is_kernel_address(address) && self.trace.is_kernel_address(callee)
    }

    /// What has to be said of a stack before its frames.
    fn remark(&self, path: &Path, stack: trace::Stack) -> Option<Remark> {
        match path.context {
            Context::Dpc => Some(Remark::Dpc),
            Context::Isr => Some(Remark::Isr),
            _ if stack.parts() == Parts::None => Some(Remark::NoStack),
            _ if stack.user.is_none() && !self.trace.is_kernel_only(path.process) => {
                Some(Remark::UserStackMissing)
            }
            _ => None,
        }
    }

    fn address(&mut self, process: ProcessId, code: CodeAddress, time: Ticks) -> Remembered<SiteId> {
        // The kernel's half is the same for all processes.
        let kernel = self.trace.is_kernel_address(code.address);
        let key = (if kernel { ProcessId(0) } else { process }, code);
        if let Some(known) = self.addresses.get(&key).filter(|known| known.holds_at(time)) {
            return *known;
        }
        if self.addresses.len() >= MOST_REMEMBERED {
            self.addresses.clear();
        }
        let trace::PlaceAt { place, from, until } = self.trace.locate(process, code, time);
        let remembered = Remembered { value: self.number(Site::Code(place)), from, until };
        self.addresses.insert(key, remembered);
        remembered
    }

    fn number(&mut self, site: Site) -> SiteId {
        let before = self.sites.len();
        let number = self.sites.number(site);
        self.new_sites += (self.sites.len() - before) as u64;
        SiteId(number)
    }
}
