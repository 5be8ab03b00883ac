//! What independent readers say about PDBs of IL: `lines/portable.txt` and `lines/windows.txt`.

use std::iter::Peekable;
use std::str::Lines;

use etwprof::symbols::read::dotnet::lines::{ManagedPdb, SourceLine};

/// A file of facts, read along with the PDBs. A PDB's path, then for each method (and each file in it) a line with the
/// token, the sequence points as IL offset and line, and the source file.
pub struct Facts<'a> {
    lines: Peekable<Lines<'a>>,
    /// Sequence points checked, visible and hidden.
    checked: (u32, u32),
}

impl<'a> Facts<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut lines = text.lines().peekable();
        while lines.next_if(|line| line.starts_with('#')).is_some() {}
        Facts { lines, checked: (0, 0) }
    }

    /// Asks for the line at every sequence point of the next PDB. A hidden one has the line of the one before it, or
    /// none where it begins the method.
    pub fn check(&mut self, path: &str, file: &[u8]) {
        assert_eq!(self.lines.next(), Some(path));
        let pdb = ManagedPdb::open(file).unwrap();
        let mut before: (u32, Option<SourceLine>) = (0, None);
        while let Some(fact) = self.lines.next_if(|line| line.starts_with(' ')) {
            let (points, document) = fact.split_once(" | ").unwrap();
            let mut points = points.split_whitespace();
            let token = u32::from_str_radix(points.next().unwrap(), 16).unwrap();
            if before.0 != token {
                before = (token, None);
            }
            for point in points {
                let (il_offset, line) = point.split_once(':').unwrap();
                if line == "-" {
                    self.checked.1 += 1;
                } else {
                    before.1 = Some(SourceLine { file: document.to_owned(), line: line.parse().unwrap() });
                    self.checked.0 += 1;
                }
                let ours = pdb.line(token, il_offset.parse().unwrap());
                assert_eq!(ours, before.1, "{path}, {token:08x} at {point}");
            }
        }
    }

    /// How many points were checked, visible and hidden; all facts must have been used.
    pub fn end(mut self) -> (u32, u32) {
        assert_eq!(self.lines.next(), None);
        self.checked
    }
}
