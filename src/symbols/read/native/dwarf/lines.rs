//! Line programs: the bytecode that says which code came from which line.

use super::allowance::Allowance;
use super::reader::{Reader, Unit, UnitRef};
use crate::symbols::read::limits::MAX_TEXT;

/// The rows of one line program.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Sorted by start within a sequence.
    rows: Vec<Row>,
    /// Sorted by start.
    sequences: Vec<Sequence>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    start: u32,
    /// Number in the program's table of files.
    file: u32,
    /// 0 for none.
    line: u32,
}

/// Rows that follow each other without a gap.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: u32,
    end: u32,
    first_row: u32,
    row_count: u32,
}

impl Lines {
    /// Runs the program of a unit; `None` if it has none.
    pub(super) fn read(unit: &Unit<'_>, image_base: u64, allowance: &mut Allowance) -> Option<Self> {
        let program = unit.line_program.clone()?;
        allowance.read(program.header().raw_program_buf().len())?;
        let mut lines = Lines::default();
        let mut first = 0;
        let mut steps = program.rows();
        while let Ok(Some((_, row))) = steps.next_row() {
            let rva = row.address().checked_sub(image_base).and_then(|rva| u32::try_from(rva).ok());
            if row.end_sequence() {
                lines.end_sequence(first, rva, allowance)?;
                first = lines.rows.len();
                continue;
            }
            // Code that the linker left out: its sequence begins below the image.
            let Some(start) = rva else { continue };
            let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let line = row.line().map_or(0, |line| narrow(line.get()));
            let row = Row { start, file: narrow(row.file_index()), line };
            let before = lines.rows.get_mut(first..).and_then(<[Row]>::last_mut);
            match before.filter(|before| before.start == start) {
                Some(before) => *before = row,
                None => {
                    allowance.keep(1)?;
                    lines.rows.push(row);
                }
            }
        }
        lines.rows.truncate(first);
        lines.rows.shrink_to_fit();
        lines.sequences.sort_by_key(|sequence| sequence.start);
        Some(lines)
    }

    fn end_sequence(&mut self, first: usize, end: Option<u32>, allowance: &mut Allowance) -> Option<()> {
        let start = self.rows.get(first).map(|row| row.start);
        match (start, end) {
            (Some(start), Some(end)) if start < end => {
                allowance.keep(1)?;
                let first_row = u32::try_from(first).ok()?;
                let row_count = u32::try_from(self.rows.len() - first).ok()?;
                self.sequences.push(Sequence { start, end, first_row, row_count });
            }
            _ => self.rows.truncate(first),
        }
        Some(())
    }

    /// File number and line of the code at `rva`; either may be missing.
    pub(super) fn at(&self, rva: u32) -> Option<(u32, Option<u32>)> {
        let next = self.sequences.partition_point(|sequence| sequence.start <= rva);
        let sequence = self.sequences.get(next.checked_sub(1)?).filter(|sequence| rva < sequence.end)?;
        let first = sequence.first_row as usize;
        let rows = self.rows.get(first..first + sequence.row_count as usize)?;
        let row = rows.get(rows.partition_point(|row| row.start <= rva).checked_sub(1)?)?;
        Some((row.file, Some(row.line).filter(|line| *line != 0)))
    }
}

/// The path of a file in the table of a unit's line program, joined from folder of the unit, folder and name.
pub(super) fn file_path(unit: UnitRef<'_, '_>, file: u32, allowance: &mut Allowance) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(file.into())?;
    let mut path = String::new();
    let mut push = |part: Reader<'_>| {
        allowance.read(part.len())?;
        let part = part.to_string_lossy();
        (part.len() <= MAX_TEXT).then(|| push_path(&mut path, &part))
    };
    if let Some(folder) = unit.comp_dir {
        push(folder)?;
    }
    // Folder 0 is the unit's own.
    if file.directory_index() != 0
        && let Some(folder) = file.directory(header)
    {
        push(unit.attr_string(folder).ok()?)?;
    }
    push(unit.attr_string(file.path_name()).ok()?)?;
    Some(path)
}

/// Puts a part behind a path, or in its place if it begins at a root.
fn push_path(path: &mut String, part: &str) {
    let at_root = |path: &str, slash: char| {
        path.starts_with(slash)
            || path.get(1..3).is_some_and(|drive| drive.starts_with(':') && drive.ends_with(slash))
    };
    if at_root(part, '/') || at_root(part, '\\') {
        path.clear();
    } else if !path.is_empty() {
        let slash = if at_root(path, '\\') { '\\' } else { '/' };
        if !path.ends_with(slash) {
            path.push(slash);
        }
    }
    path.push_str(part);
}

#[cfg(test)]
mod tests {
    use super::push_path;

    #[test]
    fn parts_of_paths_are_joined_as_on_the_system_that_compiled() {
        for (parts, joined) in [
            (&["/build", "src", "a.c"][..], "/build/src/a.c"),
            (&["C:\\build\\", "src", "a.c"], "C:\\build\\src\\a.c"),
            (&["C:/build", "../a.c"], "C:/build/../a.c"),
            (&["/build", "/usr/include", "a.h"], "/usr/include/a.h"),
            (&["/build", "D:\\x\\a.c"], "D:\\x\\a.c"),
            (&["a.c"], "a.c"),
        ] {
            let mut path = String::new();
            parts.iter().for_each(|part| push_path(&mut path, part));
            assert_eq!(path, joined);
        }
    }
}
