//! Where functions begin and end, by what an image itself shows.
//!
//! The exception table has every function of x64 and ARM64 that touches the stack (`table`). For the others, and on
//! x86, there are the starts that the image lists (`listed`), and what their code reaches (`followed`).

mod code;
mod followed;
mod listed;
mod starts;
mod table;

use std::cell::OnceCell;

use code::Code;
use followed::Followed;
pub use table::Extent;
use table::FunctionTable;

use crate::symbols::read::pe::Image;

/// What an image says of a symbol and an address behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Both are in one function.
    Inside,
    /// The symbol's code ends before the address.
    Outside,
    /// Nothing shows where the function of the address begins.
    Unknown,
}

/// The functions of an image.
#[derive(Debug)]
pub struct Functions<'a> {
    image: Image<'a>,
    table: Option<FunctionTable<'a>>,
    followed: OnceCell<Option<Followed<'a>>>,
}

impl<'a> Functions<'a> {
    /// The functions of `image`. Its code is read when the first address needs that.
    pub fn new(image: &Image<'a>) -> Self {
        Functions { image: image.clone(), table: FunctionTable::new(image), followed: OnceCell::new() }
    }

    fn followed(&self) -> Option<&Followed<'a>> {
        let follow = || {
            if listed::is_hybrid(&self.image) {
                return None;
            }
            let mut certain = listed::starts(&self.image);
            let (sure, seeds) = self
                .table
                .iter()
                .flat_map(|table| table.starts().into_iter().map(|start| (start, table.earliest(start))))
                .partition::<Vec<_>, _>(|(start, earliest)| start == earliest);
            certain.extend(sure.into_iter().map(|(start, _)| start));
            let seeds = seeds.into_iter().map(|(start, _)| start).collect();
            Some(Followed::new(Code::new(&self.image), certain, seeds))
        };
        self.followed.get_or_init(follow).as_ref()
    }

    /// The function, or the part of one, that holds `rva`.
    pub fn at(&self, rva: u32) -> Option<Extent> {
        if let Some((table, extent)) = self.table.as_ref().and_then(|table| Some((table, table.at(rva)?))) {
            let earliest = table.earliest(extent.function);
            if earliest == extent.function {
                return Some(extent);
            }
            let known = self.followed().and_then(|followed| followed.last_start(earliest..=extent.function));
            let is_data = extent.function - earliest == table::DATA;
            let start = known.or_else(|| is_data.then_some(extent.function))?;
            return Some(Extent { start: start.min(extent.start), function: start, ..extent });
        }
        let found = self.followed()?.at(rva)?;
        if self.table.as_ref().is_some_and(|table| table.at(found.start).is_some()) {
            return None;
        }
        Some(Extent { start: found.start, end: found.end, function: found.start })
    }

    /// Whether a symbol at `start` without a size may name `rva`, which is at or behind it.
    pub fn reach(&self, start: u32, rva: u32) -> Reach {
        if let Some(extent) = self.at(rva) {
            let is_inside = (extent.start..=rva).contains(&start) || start == extent.function;
            return if is_inside { Reach::Inside } else { Reach::Outside };
        }
        let Some(table) = &self.table else { return Reach::Unknown };
        let earliest = match table.at(rva) {
            // An entry is of one function, even where nothing shows how far in front of it that begins.
            Some(entry) if (entry.start..=rva).contains(&start) => return Reach::Inside,
            Some(entry) => Some(table.earliest(entry.function)),
            None => table.end_before(rva),
        };
        match earliest {
            Some(earliest) if start < earliest => Reach::Outside,
            _ => Reach::Unknown,
        }
    }
}
