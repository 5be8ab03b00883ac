//! Where functions and methods lie, and which of their addresses a stack shows.
//!
//! A function is told by `module!name` and lies at an RVA that follows from that text (and from what lies there already); a method by `@key`. A call
//! site follows from caller and callee, so that the same call has the same return address in all stacks.

use std::collections::HashMap;

use super::machine::{self, Machine, Module};
use super::managed::{self, Body};
use super::random::{Random, hash};
use super::stories::Stories;

/// Places in a function where the sampler finds it.
const HOT_PLACES: u64 = 5;

/// All code of the machine.
pub(super) struct Code {
    pub machine: Machine,
    modules: HashMap<&'static str, &'static Module>,
    functions: HashMap<&'static str, (u32, u32)>,
    pub bodies: Vec<Body>,
}

/// An address range with a name.
struct Range {
    start: u64,
    size: u64,
}

impl Code {
    pub(super) fn new(machine: Machine) -> Self {
        let modules: HashMap<_, _> = machine.modules().map(|module| (module.stem(), module)).collect();
        let mut functions: HashMap<&str, (u32, u32)> = HashMap::new();
        for symbol in Stories::new().functions() {
            let stem = stem(symbol);
            let module = modules.get(stem).unwrap_or_else(|| panic!("no module {stem}"));
            let (mut rva, size) = place(symbol, module);
            // Behind those that have the place already.
            let taken = |rva: u32| {
                let others = functions.iter().filter(|(other, _)| self::stem(other) == stem);
                others
                    .map(|(_, &(start, size))| (start, start + size))
                    .find(|&(start, end)| rva < end && start < rva + size)
            };
            while let Some((_, end)) = taken(rva) {
                rva = end.next_multiple_of(16);
            }
            functions.insert(symbol, (rva, size));
        }
        Code { machine, modules, functions, bodies: managed::bodies(machine.slide) }
    }

    pub(super) fn is_kernel(&self, symbol: &str) -> bool {
        symbol.split_once('!').is_some_and(|(stem, _)| self.module(stem).is_kernel())
    }

    pub(super) fn module(&self, stem: &str) -> &'static Module {
        self.modules.get(stem).unwrap_or_else(|| panic!("no module {stem}"))
    }

    /// The range of a symbol at a millisecond: a method may have moved. `None` where it has no body yet.
    fn range(&self, symbol: &str, ms: i64) -> Option<Range> {
        if let Some(key) = symbol.strip_prefix('@') {
            let mut bodies = self.bodies.iter().filter(|body| body.method.key == key).peekable();
            assert!(bodies.peek().is_some(), "no method {key}");
            let body = bodies.rfind(|body| body.from.is_none_or(|from| from <= ms))?;
            return Some(Range { start: body.start, size: body.size.into() });
        }
        let (rva, size) = self.function(symbol);
        Some(Range { start: self.module(stem(symbol)).base + u64::from(rva), size: size.into() })
    }

    /// RVA and size of a function.
    pub(super) fn function(&self, symbol: &str) -> (u32, u32) {
        *self.functions.get(symbol).unwrap_or_else(|| panic!("no function {symbol}"))
    }

    /// The addresses of a call path, which is root first: the leaf first, in kernel part and user part.
    /// `None` if one of its methods has no body yet.
    pub(super) fn stack(&self, path: &[&str], ms: i64, random: &mut Random) -> Option<Stack> {
        let mut stack = Stack { kernel: Vec::new(), user: Vec::new() };
        let mut callee: Option<&str> = None;
        for &symbol in path.iter().rev() {
            let range = self.range(symbol, ms)?;
            let offset = match callee {
                None => hash(&format!("{symbol} {}", random.below(HOT_PLACES))) % range.size,
                // A system call's stub: behind its `syscall` instruction.
                Some(callee) if self.is_kernel(callee) && !self.is_kernel(symbol) => 0x14,
                Some(callee) => 5 + hash(&format!("{symbol} calls {callee}")) % (range.size - 5),
            };
            let part = if self.is_kernel(symbol) { &mut stack.kernel } else { &mut stack.user };
            part.push(range.start + offset);
            callee = Some(symbol);
        }
        Some(stack)
    }
}

fn stem(symbol: &str) -> &str {
    symbol.split_once('!').unwrap_or_else(|| panic!("no module in {symbol}")).0
}

/// Where a function would lie if it were alone in its module, and its size.
fn place(symbol: &str, module: &Module) -> (u32, u32) {
    let code = u64::from(machine::code_size(module));
    // Of every build the same, so that a sample is at the same byte of it, in the same inlined function.
    let size = 0x60 + (hash(symbol) >> 32) % 0x7A0;
    let rva = 0x1000 + module.number(symbol) % (code - 0x1800) / 16 * 16;
    (rva as u32, size as u32)
}

/// The frames of a sample, leaf first.
pub(super) struct Stack {
    pub kernel: Vec<u64>,
    pub user: Vec<u64>,
}

impl Stack {
    pub(super) fn leaf(&self) -> u64 {
        *self.kernel.first().or(self.user.first()).expect("a path has frames")
    }
}
