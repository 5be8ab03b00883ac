//! The processes of a recording, their threads, and the stacks in which they are found.

use std::collections::HashSet;

use super::Options;
use super::random::Random;
use super::space::{Image, LIBRARIES, Space};
use super::stacks::{Growing, Node, Parts};

/// Where a sample finds a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) kernel: Option<Node>,
    pub(super) user: Option<Node>,
}

/// A process, or one after the other of the same program.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) images: Vec<Image>,
    /// Its threads are those from here on.
    pub(super) first_thread: usize,
    pub(super) threads: usize,
    /// The number of its compiled methods; 0 without .NET.
    pub(super) methods: u32,
    pub(super) is_short_lived: bool,
    pub(super) stacks: Vec<Found>,
    pub(super) first_stack: usize,
    pub(super) user: Parts,
    share: f64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Population {
    pub(super) processes: Vec<Process>,
    pub(super) drivers: Vec<Image>,
    pub(super) kernel: Parts,
    /// The part of an idle processor's stack.
    pub(super) idle: Node,
    /// Kernel parts that all programs share.
    shared_parts: Vec<Node>,
    pub(super) stacks: usize,
    pub(super) threads: usize,
    next_id: u32,
}

/// Of the addresses of a process with .NET.
const IN_METHODS: f64 = 0.4;
/// Distinct kernel parts, for each distinct stack that has one.
const KERNEL_PARTS: usize = 2;

/// The process that has no user mode.
pub(super) const SYSTEM: usize = 0;

/// Kernel parts in a row that are known already before one is made anew.
const ENOUGH: usize = 100;

impl Population {
    pub(super) fn new(options: &Options, space: &Space, random: &mut Random) -> Self {
        let shape = &options.shape;
        let shares = shares(options);
        let threads = thread_counts(options, random);
        let mut kernel = Growing::default();
        let idle = kernel.add(1.0, 1.0, random, |_| space.idle());
        let mut new_kernel_part = |is_all_new: bool, random: &mut Random| {
            let depth = random.by_deciles(&shape.kernel_depth) * options.depth;
            let fresh = random.by_deciles(&shape.kernel_fresh) * options.fresh;
            let fresh = if is_all_new { 1.0 } else { fresh };
            kernel.add(depth, fresh, random, |random| space.kernel_address(random))
        };
        let with_kernel = f64::from(options.stacks) * shape.both;
        let shared_parts: Vec<Node> =
            (0..1 + with_kernel as usize / KERNEL_PARTS).map(|_| new_kernel_part(false, random)).collect();
        let mut population = Population {
            processes: Vec::new(),
            drivers: space.drivers(),
            kernel: Parts::default(),
            idle,
            shared_parts,
            stacks: 0,
            threads: 0,
            next_id: 4,
        };
        let ordinary = options.processes as usize;
        for (number, (&share, &threads)) in shares.iter().zip(&threads).enumerate() {
            let is_system = number == SYSTEM;
            let methods = if (1..=options.managed as usize).contains(&number) { options.methods } else { 0 };
            let images = 1 + (random.by_deciles(&shape.images) as usize).min(LIBRARIES);
            let name = if is_system { "System".to_owned() } else { format!("program{number:04}.exe") };
            let libraries = images - 1;
            let mut process = Process {
                pid: population.id(),
                images: match is_system {
                    true => Vec::new(),
                    false => std::iter::once(space.program(&name))
                        .chain((0..libraries).map(|number| space.library(number)))
                        .collect(),
                },
                name,
                first_thread: population.threads,
                threads,
                methods,
                is_short_lived: methods == 0 && number > ordinary / 2,
                stacks: Vec::new(),
                first_stack: population.stacks,
                user: Parts::default(),
                share,
            };
            let count = ((f64::from(options.stacks) * share) as usize).max(1);
            let mut user = Growing::default();
            let (mut known, mut repeated) = (HashSet::new(), 0);
            while process.stacks.len() < count {
                let user_address = |random: &mut Random| match methods > 0 && random.chance(IN_METHODS) {
                    true => space.method_address(methods, random),
                    false => space.user_address(libraries, random),
                };
                let found = match is_system {
                    true => Found { kernel: Some(new_kernel_part(false, random)), user: None },
                    false => {
                        let has_kernel = random.chance(shape.both / (1.0 - shape.kernel_only));
                        let depth = random.by_deciles(&shape.user_depth) * options.depth;
                        let fresh = random.by_deciles(&shape.user_fresh) * options.fresh;
                        Found {
                            kernel: has_kernel.then(|| population.kernel_part(random)),
                            user: Some(user.add(depth, fresh, random, user_address)),
                        }
                    }
                };
                // One that is there is left out, and one of which all is new follows.
                let found = match (known.contains(&found), found.user) {
                    (false, _) => found,
                    (true, Some(_)) => {
                        let depth = random.by_deciles(&shape.user_depth) * options.depth;
                        Found { user: Some(user.add(depth, 1.0, random, user_address)), ..found }
                    }
                    (true, None) if repeated < ENOUGH => {
                        repeated += 1;
                        continue;
                    }
                    (true, None) => Found { kernel: Some(new_kernel_part(true, random)), ..found },
                };
                repeated = 0;
                known.insert(found);
                process.stacks.push(found);
            }
            process.user = user.finish();
            population.next_id += 4 * u32::try_from(threads).expect("few threads");
            population.threads += threads;
            population.stacks += process.stacks.len();
            population.processes.push(process);
        }
        population.kernel = kernel.finish();
        population
    }

    /// One of the parts that all programs share.
    pub(super) fn kernel_part(&self, random: &mut Random) -> Node {
        self.shared_parts[random.index(self.shared_parts.len())]
    }

    fn id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 4;
        id
    }

    /// A process of the same program follows: new ids, all else the same.
    pub(super) fn follow(&mut self, process: usize) {
        let pid = self.id();
        let process = &mut self.processes[process];
        process.pid = pid;
        self.next_id += 4 * u32::try_from(process.threads).expect("few threads");
    }

    /// The process that runs next: `unit` is from 0 to below 1.
    pub(super) fn by_share(&self, mut unit: f64) -> usize {
        let reached = self.processes.iter().position(|process| {
            unit -= process.share;
            unit < 0.0
        });
        reached.unwrap_or(SYSTEM)
    }

    pub(super) fn part(&self, process: usize, is_kernel: bool) -> &Parts {
        if is_kernel { &self.kernel } else { &self.processes[process].user }
    }
}

impl Process {
    /// The id of a thread, by its place among all threads. The first one's follows the process's.
    pub(super) fn tid(&self, thread: usize) -> u32 {
        self.pid + 4 + 4 * u32::try_from(thread - self.first_thread).expect("few threads")
    }

    pub(super) fn thread_ids(&self) -> impl Iterator<Item = u32> + use<> {
        let pid = self.pid;
        (1..=u32::try_from(self.threads).expect("few threads")).map(move |number| pid + 4 * number)
    }
}

/// System's share, and those of the programs.
fn shares(options: &Options) -> Vec<f64> {
    let shape = &options.shape;
    let programs = options.processes as usize;
    let measured: Vec<f64> = shape.processes.iter().copied().take(programs).collect();
    let rest = (1.0 - measured.iter().sum::<f64>()).max(0.0);
    let others = (programs - measured.len()) as f64;
    let mut shares = measured;
    if others > 0.0 {
        shares.resize(programs, rest / others);
    }
    let sum: f64 = shares.iter().sum();
    let programs = shares.iter().map(|share| share / sum * (1.0 - shape.kernel_only));
    std::iter::once(shape.kernel_only).chain(programs).collect()
}

/// Threads of System and of each program: the busiest program can run on every processor.
fn thread_counts(options: &Options, random: &mut Random) -> Vec<usize> {
    let draw = |_| (random.by_deciles(&options.shape.threads) as usize).max(1);
    let mut counts: Vec<usize> = (0..=options.processes).map(draw).collect();
    if let Some(wanted) = options.threads {
        let sum: usize = counts.iter().sum();
        for count in &mut counts {
            *count = (*count * wanted as usize / sum).max(1);
        }
    }
    let enough = usize::from(options.processors) * 2;
    for busiest in counts.iter_mut().take(2) {
        *busiest = (*busiest).max(enough);
    }
    counts
}
