//! What was mapped at an address of a process at a moment.
//!
//! Mappings of one process may overlap: bases are used again over time, and unloads get lost. [`Space`] finds the right
//! one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::event::Ticks;

use super::images::ModuleId;
use super::processes::ProcessId;
use super::space::{Extent, MappingAt, Space};

/// A module mapped in a process for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The process; the System process for kernel modules, which serve all.
    pub process: ProcessId,
    /// The file.
    pub module: ModuleId,
    /// Where it starts.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was mapped; `None` if before the recording.
    pub start: Option<Ticks>,
    /// When it was unmapped; `None` if not within the recording.
    pub end: Option<Ticks>,
}

impl Mapping {
    fn extent(&self) -> Extent {
        Extent { start: self.base, size: self.size, from: self.start, until: self.end }
    }

    /// True if it was there at `time`.
    pub fn covers(&self, time: Ticks) -> bool {
        self.start.is_none_or(|start| start <= time) && self.end.is_none_or(|end| time < end)
    }
}

/// All mappings, by process, address and time.
#[derive(Debug, Default)]
pub struct Mappings {
    /// By process, base and start.
    all: Vec<Mapping>,
    /// Of each process, which of all are its; and where they are, once somebody has asked.
    spaces: FxHashMap<ProcessId, (Range<usize>, OnceLock<Space>)>,
    system: ProcessId,
}

impl Default for ProcessId {
    /// The first process.
    fn default() -> Self {
        ProcessId(0)
    }
}

impl Mappings {
    pub(super) fn new(mut all: Vec<Mapping>, system: ProcessId) -> Self {
        all.sort_by_key(|mapping| (mapping.process, mapping.base, mapping.start));
        let mut spaces = FxHashMap::default();
        let mut first = 0;
        for of_process in all.chunk_by(|a, b| a.process == b.process) {
            let range = first..first + of_process.len();
            first = range.end;
            if let Some(mapping) = of_process.first() {
                spaces.insert(mapping.process, (range, OnceLock::new()));
            }
        }
        Mappings { all, spaces, system }
    }

    /// The processes that map a module at any time.
    pub fn processes_of(&self, module: ModuleId) -> BTreeSet<ProcessId> {
        self.all.iter().filter(|mapping| mapping.module == module).map(|mapping| mapping.process).collect()
    }

    /// Every mapping.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.all.iter()
    }

    /// The mappings of a process, by base and start.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = &Mapping> {
        let from = self.all.partition_point(|mapping| mapping.process < process);
        self.all.iter().skip(from).take_while(move |mapping| mapping.process == process)
    }

    /// The mapping at `index`.
    pub fn get(&self, index: usize) -> Option<&Mapping> {
        self.all.get(index)
    }

    /// What was mapped at `address` of `process` at `time`. Of several, the latest.
    ///
    /// `kernel` says that the address is in the kernel's half, whose modules all processes share.
    pub fn at(&self, process: ProcessId, address: u64, kernel: bool, time: Ticks) -> MappingAt {
        let process = if kernel { self.system } else { process };
        let Some((range, space)) = self.spaces.get(&process) else { return MappingAt::NOTHING };
        let space = space.get_or_init(|| {
            let mappings = self.all.get(range.clone()).unwrap_or_default();
            let extents: Vec<Extent> = mappings.iter().map(Mapping::extent).collect();
            Space::new(&extents, range.start as u32)
        });
        space.at(address, time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{Mapping, Mappings};
    use crate::event::Ticks;
    use crate::trace::{ModuleId, ProcessId};

    fn mapping() -> impl Strategy<Value = Mapping> {
        let time = || prop_oneof![Just(None), (0..8i64).prop_map(|time| Some(Ticks(time)))];
        (0..2u32, 0..12u64, 0..6u64, time(), time()).prop_map(|(process, base, size, start, end)| Mapping {
            process: ProcessId(process),
            module: ModuleId(0),
            base,
            size,
            start,
            end,
        })
    }

    /// What the words say: of those that cover address and time, the one that started last.
    fn plain(all: &Mappings, process: ProcessId, address: u64, time: Ticks) -> Option<usize> {
        let covers = |mapping: &Mapping| {
            let address = address.checked_sub(mapping.base).is_some_and(|offset| offset < mapping.size);
            mapping.process == process && address && mapping.covers(time)
        };
        let found = all.iter().enumerate().filter(|(_, mapping)| covers(mapping));
        found.max_by_key(|(index, mapping)| (mapping.start, *index)).map(|(index, _)| index)
    }

    proptest! {
        #[test]
        fn the_latest_mapping_at_address_and_time(
            all in proptest::collection::vec(mapping(), 0..12),
            process in 0..2u32,
            address in 0..20u64,
            time in -1..9i64,
            later in any::<u8>(),
        ) {
            let mappings = Mappings::new(all, ProcessId(0));
            let process = ProcessId(process);
            let located = mappings.at(process, address, false, Ticks(time));
            proptest::prop_assert_eq!(located.mapping, plain(&mappings, process, address, Ticks(time)));
            proptest::prop_assert!(located.holds_at(Ticks(time)));
            let later = Ticks(time + i64::from(later % 8));
            if located.holds_at(later) {
                proptest::prop_assert_eq!(plain(&mappings, process, address, later), located.mapping);
            }
        }
    }
}
