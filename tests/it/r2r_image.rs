//! Builds small ReadyToRun images for what no real image at hand has.

/// Where the one section is mapped, and where it begins in the file.
const SECTION_RVA: u32 = 0x1000;
const SECTION_OFFSET: usize = 0x400;

/// A PE32+ file that grows by pieces.
pub struct Pe {
    machine: u16,
    section: Vec<u8>,
    cor_header: Option<u32>,
    exports: Option<u32>,
}

impl Pe {
    pub fn new(machine: u16) -> Self {
        Pe { machine, section: Vec::new(), cor_header: None, exports: None }
    }

    /// Appends a piece and gives its RVA.
    pub fn put(&mut self, bytes: &[u8]) -> u32 {
        self.section.resize(self.section.len().next_multiple_of(4), 0);
        let rva = SECTION_RVA + self.section.len() as u32;
        self.section.extend_from_slice(bytes);
        rva
    }

    /// A COR header with its metadata and managed native header.
    pub fn put_cor_header(&mut self, metadata: &[u8], native: u32) -> u32 {
        let root = self.put(metadata);
        let mut header = vec![0; 72];
        header[0] = 72;
        header[8..12].copy_from_slice(&root.to_le_bytes());
        header[12..16].copy_from_slice(&(metadata.len() as u32).to_le_bytes());
        header[64..68].copy_from_slice(&native.to_le_bytes());
        self.put(&header)
    }

    pub fn with_cor_header(mut self, rva: u32) -> Self {
        self.cor_header = Some(rva);
        self
    }

    /// Exports the header of a composite image by its name.
    pub fn with_rtr_export(mut self, header: u32) -> Self {
        let dll = self.put(b"composite.dll\0");
        let name = self.put(b"RTR_HEADER\0");
        let addresses = self.put(&header.to_le_bytes());
        let names = self.put(&name.to_le_bytes());
        let ordinals = self.put(&0u16.to_le_bytes());
        self.exports = Some(self.put(&words(&[0, 0, 0, dll, 1, 1, 1, addresses, names, ordinals])));
        self
    }

    pub fn finish(self) -> Vec<u8> {
        let mut file = vec![0; SECTION_OFFSET];
        file[..2].copy_from_slice(b"MZ");
        file[0x3C] = 0x40;
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x40, b"PE\0\0");
        put(0x44, &self.machine.to_le_bytes());
        put(0x46, &1u16.to_le_bytes()); // sections
        put(0x54, &240u16.to_le_bytes()); // optional header
        put(0x58, &0x20Bu16.to_le_bytes());
        put(0x58 + 108, &16u32.to_le_bytes()); // data directories
        for (index, rva) in [(0, self.exports), (14, self.cor_header)] {
            if let Some(rva) = rva {
                put(0x58 + 112 + 8 * index, &words(&[rva, 72]));
            }
        }
        let section = 0x58 + 240;
        put(section, b".text\0\0\0");
        let len = self.section.len() as u32;
        put(section + 8, &words(&[len, SECTION_RVA, len, SECTION_OFFSET as u32]));
        file.extend_from_slice(&self.section);
        file
    }
}

/// 32-bit words as bytes.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A core header: flags and sections.
pub fn core_header(sections: &[(u32, u32, usize)]) -> Vec<u8> {
    let mut header = words(&[0, sections.len() as u32]);
    for &(kind, rva, size) in sections {
        header.extend(words(&[kind, rva, size as u32]));
    }
    header
}

/// A full header.
pub fn rtr_header(version: (u16, u16), sections: &[(u32, u32, usize)]) -> Vec<u8> {
    let mut header = b"RTR\0".to_vec();
    header.extend(version.0.to_le_bytes());
    header.extend(version.1.to_le_bytes());
    header.extend(core_header(sections));
    header
}

/// Metadata of an assembly whose methods are all `static void M()`.
pub fn metadata(assembly: &str, references: &[&str], types: &[(&str, &str, &[&str])]) -> Vec<u8> {
    let mut strings = vec![0u8];
    let mut string = |text: &str| {
        let at = strings.len() as u16;
        strings.extend(text.bytes().chain([0]));
        at
    };
    let mut rows: Vec<u8> = Vec::new();
    let half =
        |rows: &mut Vec<u8>, values: &[u16]| rows.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    half(&mut rows, &[0, string(assembly), 0, 0, 0]);
    let mut first = 1;
    for (namespace, name, methods) in types {
        half(&mut rows, &[0, 0, string(name), string(namespace), 0, 1, first]);
        first += methods.len() as u16;
    }
    for method in types.iter().flat_map(|(_, _, methods)| *methods) {
        half(&mut rows, &[0, 0, 0, 0, string(method), 1, 1]);
    }
    half(&mut rows, &[0, 0, 0, 0, 0, 0, 0, 0, 0, string(assembly), 0]);
    for reference in references {
        half(&mut rows, &[0, 0, 0, 0, 0, 0, 0, string(reference), 0, 0]);
    }
    // Module, TypeDef, MethodDef, Assembly, AssemblyRef.
    let present = 1u64 | 1 << 2 | 1 << 6 | 1 << 0x20 | 1 << 0x23;
    let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
    tables.extend(present.to_le_bytes());
    tables.extend(0u64.to_le_bytes());
    tables.extend(words(&[1, types.len() as u32, u32::from(first) - 1, 1, references.len() as u32]));
    tables.extend(rows);
    let blobs = [0, 3, 0x00, 0x00, 0x01];

    let mut root = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4.0\0\0\x03\0".to_vec();
    let mut start = root.len() + 12 + 20 + 16;
    let mut directory = Vec::new();
    let streams: [(&[u8], &[u8]); 3] =
        [(b"#~\0\0", &tables), (b"#Strings\0\0\0\0", &strings), (b"#Blob\0\0\0", &blobs)];
    for (name, bytes) in streams {
        directory.extend(words(&[start as u32, bytes.len() as u32]));
        directory.extend(name);
        start += bytes.len();
    }
    root.extend(directory);
    streams.iter().for_each(|(_, bytes)| root.extend(*bytes));
    root
}

/// An integer of the native format, in two bytes.
fn native(value: u32) -> [u8; 2] {
    assert!(value < 1 << 14);
    ((value << 2 | 1) as u16).to_le_bytes()
}

/// Method entry points: from the row of a method (from 1) to its first runtime function.
pub fn entry_points(functions: &[(u32, u32)]) -> Vec<u8> {
    let elements: Vec<_> =
        functions.iter().map(|&(row, function)| (row - 1, native(function << 1).to_vec())).collect();
    assert!(elements.iter().all(|(index, _)| *index < 16));
    let mut section = native(16 << 2).to_vec();
    section.push(1); // the one block begins behind this offset
    section.extend(branch(&elements, 8));
    section
}

fn branch(elements: &[(u32, Vec<u8>)], bit: u32) -> Vec<u8> {
    if bit == 0 {
        return elements[0].1.clone();
    }
    let part = |set: bool| {
        elements.iter().filter(|(index, _)| (index & bit != 0) == set).cloned().collect::<Vec<_>>()
    };
    let (left, right) = (part(false), part(true));
    let left_bytes = if left.is_empty() { Vec::new() } else { branch(&left, bit / 2) };
    let mut node = u32::from(!left.is_empty());
    if !right.is_empty() {
        node |= 2 | (2 + left_bytes.len() as u32) << 2;
    }
    let mut bytes = native(node).to_vec();
    bytes.extend(left_bytes);
    if !right.is_empty() {
        bytes.extend(branch(&right, bit / 2));
    }
    bytes
}

/// Instance entry points in one bucket: from a signature to its first runtime function.
pub fn instances(functions: &[(&[u8], u32)]) -> Vec<u8> {
    // Two-byte offsets; an entry is a hash byte and a five-byte distance.
    let entries_end = 4 + 6 * functions.len();
    let mut section = vec![1];
    section.extend(4u16.to_le_bytes());
    section.extend((entries_end as u16).to_le_bytes());
    let mut blobs = Vec::new();
    for (at, (signature, function)) in functions.iter().enumerate() {
        let from = 1 + 4 + 6 * at + 1;
        let to = 1 + entries_end + blobs.len();
        section.extend([0xAA, 0x0F]);
        section.extend(((to - from) as i32).to_le_bytes());
        blobs.extend_from_slice(signature);
        blobs.extend(native(function << 1));
    }
    section.extend(blobs);
    section
}
