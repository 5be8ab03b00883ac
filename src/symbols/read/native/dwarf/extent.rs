//! The code that an entry is about: one range, or a list of them elsewhere in the file.

use gimli::AttributeValue;

use super::allowance::Allowance;
use super::reader::{Reader, UnitRef};

/// The attributes of an entry that say where its code is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<gimli::RangeListsOffset>,
}

impl Extent {
    /// Takes an attribute, if it is one of those.
    pub(super) fn take<'a>(&mut self, unit: UnitRef<'_, 'a>, attribute: &gimli::Attribute<Reader<'a>>) {
        let address = || unit.attr_address(attribute.value()).ok().flatten();
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = address(),
            gimli::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                _ => self.high = address(),
            },
            gimli::DW_AT_ranges => self.list = unit.attr_ranges_offset(attribute.value()).ok().flatten(),
            _ => {}
        }
    }

    /// Gives the ranges as RVAs, start and end. Code that the linker left out has addresses below the image's.
    pub(super) fn each(
        &self,
        unit: UnitRef<'_, '_>,
        image_base: u64,
        allowance: &mut Allowance,
        mut found: impl FnMut(u32, u32),
    ) -> Option<()> {
        let mut add = |begin: u64, end: u64, allowance: &mut Allowance| {
            let rva = |address: u64| u32::try_from(address.checked_sub(image_base)?).ok();
            if let (Some(start), Some(end)) = (rva(begin), rva(end))
                && start < end
            {
                allowance.keep(1)?;
                found(start, end);
            }
            Some(())
        };
        if let Some(list) = self.list {
            let mut ranges = unit.ranges(list).ok()?;
            // Step by step, for some of a list's entries only say what the next ones count from.
            while let Ok(Some(entry)) = ranges.next_raw() {
                allowance.read(size_of::<gimli::Range>())?;
                let Ok(range) = ranges.convert_raw(entry) else { break };
                if let Some(range) = range {
                    add(range.begin, range.end, allowance)?;
                }
            }
            return Some(());
        }
        match (self.low, self.high, self.size) {
            (Some(low), Some(high), _) => add(low, high, allowance),
            (Some(low), None, Some(size)) => add(low, low.wrapping_add(size), allowance),
            _ => Some(()),
        }
    }
}
