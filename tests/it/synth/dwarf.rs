//! Images with DWARF in them, laid out by hand: "PE Format" (learn.microsoft.com) and the DWARF 4 standard, chapter 7.

pub const IMAGE_BASE: u64 = 0x1_8000_0000;
/// RVA of the code.
pub const TEXT: u32 = 0x1000;

const COMPILE_UNIT: u8 = 0x11;
const LEXICAL_BLOCK: u8 = 0x0b;
const INLINED_SUBROUTINE: u8 = 0x1d;
const SUBPROGRAM: u8 = 0x2e;

const NAME: u8 = 0x03;
const STMT_LIST: u8 = 0x10;
const LOW_PC: u8 = 0x11;
const HIGH_PC: u8 = 0x12;
const COMP_DIR: u8 = 0x1b;
const ABSTRACT_ORIGIN: u8 = 0x31;
const RANGES: u8 = 0x55;
const CALL_FILE: u8 = 0x58;
const CALL_LINE: u8 = 0x59;

const ADDR: u8 = 0x01;
const DATA4: u8 = 0x06;
const STRING: u8 = 0x08;
const DATA1: u8 = 0x0b;
const REF4: u8 = 0x13;
const SEC_OFFSET: u8 = 0x17;

/// One unit of DWARF 4, written entry by entry.
pub struct Dwarf {
    info: Vec<u8>,
    ranges: Vec<u8>,
    line: Vec<u8>,
}

impl Dwarf {
    /// A unit whose code is the whole of the image's.
    pub fn new(code_size: u32) -> Dwarf {
        // The length of the unit comes at the end; version 4, abbreviations at 0, addresses of 8 bytes.
        let mut info = vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8];
        info.push(1);
        info.extend(b"/build\0");
        info.extend((IMAGE_BASE + u64::from(TEXT)).to_le_bytes());
        info.extend(code_size.to_le_bytes());
        info.extend(0u32.to_le_bytes());
        Dwarf { info, ranges: Vec::new(), line: Vec::new() }
    }

    /// The place of the next entry, for references to it.
    pub fn here(&self) -> u32 {
        self.info.len() as u32
    }

    /// Opens a function with a range of its own; RVAs.
    pub fn function(mut self, name: &str, start: u32, size: u32) -> Dwarf {
        self.info.push(2);
        self.info.extend(name.as_bytes());
        self.info.push(0);
        self.range(start, size);
        self
    }

    /// A function that is only inlined elsewhere; it has no entries inside.
    pub fn declaration(mut self, name: &str) -> Dwarf {
        self.info.push(3);
        self.info.extend(name.as_bytes());
        self.info.push(0);
        self
    }

    /// Opens a call of `origin` that was inlined, made in a file and line.
    pub fn inlined(mut self, origin: u32, start: u32, size: u32, (file, line): (u8, u8)) -> Dwarf {
        self.info.push(4);
        self.info.extend(origin.to_le_bytes());
        self.range(start, size);
        self.info.extend([file, line]);
        self
    }

    /// The same with a list of ranges, which may be shared.
    pub fn inlined_in_list(mut self, origin: u32, list: u32, (file, line): (u8, u8)) -> Dwarf {
        self.info.push(5);
        self.info.extend(origin.to_le_bytes());
        self.info.extend(list.to_le_bytes());
        self.info.extend([file, line]);
        self
    }

    /// Opens a block, which says nothing but holds entries.
    pub fn block(mut self) -> Dwarf {
        self.info.push(6);
        self
    }

    /// Closes what was opened last.
    pub fn end(mut self) -> Dwarf {
        self.info.push(0);
        self
    }

    /// Adds a list of ranges, start and size; gives its offset.
    pub fn list(&mut self, ranges: impl IntoIterator<Item = (u32, u32)>) -> u32 {
        let offset = self.ranges.len() as u32;
        for (start, size) in ranges {
            // Counted from the unit's own start.
            let start = u64::from(start - TEXT);
            self.ranges.extend(start.to_le_bytes());
            self.ranges.extend((start + u64::from(size)).to_le_bytes());
        }
        self.ranges.extend([0; 16]);
        offset
    }

    /// The unit's line program: files, then (offset from the code's start, file, line) for each row, and the end.
    pub fn lines(mut self, files: &[&str], rows: &[(u32, u8, u8)], end: u32) -> Dwarf {
        // Instructions of one byte; no special opcodes are used: their base is 10, that is, 9 standard ones.
        let mut header = vec![1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.push(0); // no folders
        for file in files {
            header.extend(file.as_bytes());
            header.extend([0, 0, 0, 0]);
        }
        header.push(0);
        // Set the address; then for each row: advance the address, set file, advance the line, append.
        let mut program = vec![0, 9, 2];
        program.extend((IMAGE_BASE + u64::from(TEXT)).to_le_bytes());
        let (mut at, mut line) = (0, 1i64);
        for (offset, file, row) in rows {
            program.push(2);
            leb(&mut program, offset - at);
            program.extend([4, *file, 3]);
            let difference = i64::from(*row) - line;
            assert!((-64..64).contains(&difference), "one byte of signed LEB128");
            program.push(difference as u8 & 0x7f);
            program.push(1);
            (at, line) = (*offset, i64::from(*row));
        }
        program.push(2);
        leb(&mut program, end - at);
        program.extend([0, 1, 1]);
        let len = 2 + 4 + header.len() + program.len();
        self.line.extend((len as u32).to_le_bytes());
        self.line.extend([4, 0]);
        self.line.extend((header.len() as u32).to_le_bytes());
        self.line.extend(header);
        self.line.extend(program);
        self
    }

    fn range(&mut self, start: u32, size: u32) {
        self.info.extend((IMAGE_BASE + u64::from(start)).to_le_bytes());
        self.info.extend(size.to_le_bytes());
    }

    /// An x64 DLL with `code_size` bytes of code and this DWARF. What is still open, the unit too, is closed.
    pub fn image(mut self, code_size: u32, open: usize) -> Vec<u8> {
        self.info.extend(vec![0; open + 1]);
        let len = self.info.len() as u32 - 4;
        self.info[..4].copy_from_slice(&len.to_le_bytes());
        if self.line.is_empty() {
            self = self.lines(&["a.c"], &[], 0);
        }
        let sections: [(&str, u32, Vec<u8>); 5] = [
            (".text", 0x6000_0020, vec![0x90; code_size as usize]),
            (".debug_info", 0x4200_0040, self.info),
            (".debug_abbrev", 0x4200_0040, abbreviations()),
            (".debug_line", 0x4200_0040, self.line),
            (".debug_ranges", 0x4200_0040, self.ranges),
        ];
        image(&sections)
    }
}

fn leb(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn abbreviations() -> Vec<u8> {
    let mut out = Vec::new();
    let mut add = |code: u8, tag: u8, children: u8, attributes: &[(u8, u8)]| {
        out.extend([code, tag, children]);
        attributes.iter().for_each(|(name, form)| out.extend([*name, *form]));
        out.extend([0, 0]);
    };
    let unit = [(COMP_DIR, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA4), (STMT_LIST, SEC_OFFSET)];
    add(1, COMPILE_UNIT, 1, &unit);
    add(2, SUBPROGRAM, 1, &[(NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA4)]);
    add(3, SUBPROGRAM, 0, &[(NAME, STRING)]);
    let call = [(CALL_FILE, DATA1), (CALL_LINE, DATA1)];
    let in_range = [(ABSTRACT_ORIGIN, REF4), (LOW_PC, ADDR), (HIGH_PC, DATA4)];
    add(4, INLINED_SUBROUTINE, 1, &[&in_range[..], &call].concat());
    add(5, INLINED_SUBROUTINE, 1, &[&[(ABSTRACT_ORIGIN, REF4), (RANGES, SEC_OFFSET)][..], &call].concat());
    add(6, LEXICAL_BLOCK, 1, &[]);
    out.push(0);
    out
}

/// A PE32+ DLL of these sections: name, characteristics, bytes. Names of more than 8 bytes go to the string table.
fn image(sections: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    const ALIGNMENT: usize = 0x200;
    let headers = (0x40 + 4 + 20 + 240 + 40 * sections.len()).next_multiple_of(ALIGNMENT);
    let mut strings = vec![0; 4];
    let mut table = Vec::new();
    let (mut rva, mut offset) = (TEXT, headers);
    for (name, characteristics, bytes) in sections {
        let mut field = [0; 8];
        let short = match name.len() {
            ..=8 => (*name).to_owned(),
            _ => format!("/{}", strings.len()),
        };
        if name.len() > 8 {
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        field[..short.len()].copy_from_slice(short.as_bytes());
        table.extend(field);
        let len = bytes.len();
        for value in [len as u32, rva, len.next_multiple_of(ALIGNMENT) as u32, offset as u32, 0, 0, 0] {
            table.extend(value.to_le_bytes());
        }
        table.extend(characteristics.to_le_bytes());
        rva += (len as u32).next_multiple_of(0x1000);
        offset += len.next_multiple_of(ALIGNMENT);
    }
    let strings_len = strings.len() as u32;
    strings[..4].copy_from_slice(&strings_len.to_le_bytes());

    let mut out = vec![0; 0x40];
    out[..2].copy_from_slice(b"MZ");
    out[0x3c] = 0x40;
    out.extend(b"PE\0\0");
    // Machine, sections, time, symbol table (empty, then the strings), no symbols, optional header, DLL.
    out.extend(0x8664u16.to_le_bytes());
    out.extend((sections.len() as u16).to_le_bytes());
    out.extend([0; 4]);
    out.extend((offset as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend(240u16.to_le_bytes());
    out.extend(0x2022u16.to_le_bytes());
    let mut optional = vec![0; 240];
    optional[..2].copy_from_slice(&0x20bu16.to_le_bytes());
    optional[24..32].copy_from_slice(&IMAGE_BASE.to_le_bytes());
    for (at, value) in [(32, 0x1000), (36, ALIGNMENT as u32), (56, rva), (60, headers as u32), (108, 16u32)] {
        optional[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    out.extend(optional);
    out.extend(table);
    for (_, _, bytes) in sections {
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        out.extend(bytes);
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out.extend(strings);
    out
}
