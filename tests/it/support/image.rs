//! Builds small images, ReadyToRun ones and native ones: for forms that no real image at hand has, and for the demo.

/// Where the one section is mapped if nothing else is said, and where it begins in the file.
const SECTION_RVA: u32 = 0x1000;
const SECTION_OFFSET: usize = 0x400;

/// A PE32+ file that grows by pieces.
pub struct Pe {
    machine: u16,
    section: Vec<u8>,
    section_rva: u32,
    /// The section's flags.
    characteristics: u32,
    entry_point: u32,
    /// Number, RVA and size.
    directories: Vec<(usize, u32, u32)>,
    /// Time stamp, size of the image, checksum.
    identity: [u32; 3],
}

impl Pe {
    pub fn new(machine: u16) -> Self {
        Pe {
            machine,
            section: Vec::new(),
            section_rva: SECTION_RVA,
            characteristics: 0,
            entry_point: 0,
            directories: Vec::new(),
            identity: [0; 3],
        }
    }

    /// With its section there, which is code.
    pub fn with_code_at(mut self, rva: u32) -> Self {
        // Code, to run and to read.
        (self.section_rva, self.characteristics) = (rva, 0x6000_0020);
        self
    }

    pub fn with_entry_point(mut self, rva: u32) -> Self {
        self.entry_point = rva;
        self
    }

    pub fn with_directory(mut self, number: usize, rva: u32, size: u32) -> Self {
        self.directories.push((number, rva, size));
        self
    }

    /// Appends a piece and gives its RVA.
    pub fn put(&mut self, bytes: &[u8]) -> u32 {
        self.section.resize(self.section.len().next_multiple_of(4), 0);
        let rva = self.section_rva + self.section.len() as u32;
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

    pub fn with_cor_header(self, rva: u32) -> Self {
        self.with_directory(14, rva, 72)
    }

    /// Exports the header of a composite image by its name.
    pub fn with_rtr_export(mut self, header: u32) -> Self {
        let dll = self.put(b"composite.dll\0");
        let name = self.put(b"RTR_HEADER\0");
        let addresses = self.put(&header.to_le_bytes());
        let names = self.put(&name.to_le_bytes());
        let ordinals = self.put(&0u16.to_le_bytes());
        let exports = self.put(&words(&[0, 0, 0, dll, 1, 1, 1, addresses, names, ordinals]));
        self.with_directory(0, exports, 72)
    }

    /// Time stamp, size of the image, checksum.
    pub fn with_identity(mut self, identity: [u32; 3]) -> Self {
        self.identity = identity;
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
        put(0x48, &self.identity[0].to_le_bytes());
        put(0x54, &240u16.to_le_bytes()); // optional header
        put(0x58, &0x20Bu16.to_le_bytes());
        put(0x58 + 16, &self.entry_point.to_le_bytes());
        put(0x58 + 56, &self.identity[1].to_le_bytes());
        put(0x58 + 64, &self.identity[2].to_le_bytes());
        put(0x58 + 108, &16u32.to_le_bytes()); // data directories
        for (number, rva, size) in self.directories {
            put(0x58 + 112 + 8 * number, &words(&[rva, size]));
        }
        let section = 0x58 + 240;
        put(section, b".text\0\0\0");
        let len = self.section.len() as u32;
        put(section + 8, &words(&[len, self.section_rva, len, SECTION_OFFSET as u32]));
        put(section + 36, &self.characteristics.to_le_bytes());
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

/// Types with their methods: namespace, name, methods.
pub type Types<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// Metadata of an assembly whose methods are all `static void M()`.
pub fn metadata(assembly: &str, references: &[&str], types: Types<'_>) -> Vec<u8> {
    Assembly { name: assembly, references, types, ..Assembly::default() }.metadata()
}

/// The same, as one build of several.
#[derive(Clone, Copy, Default)]
pub struct Assembly<'a> {
    pub name: &'a str,
    /// Of the assembly, and of all that it refers to.
    pub version: [u16; 4],
    pub mvid: Option<[u8; 16]>,
    pub references: &'a [&'a str],
    pub types: Types<'a>,
}

impl Assembly<'_> {
    pub fn metadata(&self) -> Vec<u8> {
        let mut strings = vec![0u8];
        let mut string = |text: &str| {
            let at = strings.len() as u16;
            strings.extend(text.bytes().chain([0]));
            at
        };
        let mut rows: Vec<u8> = Vec::new();
        let half = |rows: &mut Vec<u8>, values: &[u16]| {
            rows.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        // Generation, name, MVID, two more GUIDs.
        half(&mut rows, &[0, string(self.name), self.mvid.is_some().into(), 0, 0]);
        let mut first = 1;
        for (namespace, name, methods) in self.types {
            half(&mut rows, &[0, 0, string(name), string(namespace), 0, 1, first]);
            first += methods.len() as u16;
        }
        for method in self.types.iter().flat_map(|(_, _, methods)| *methods) {
            half(&mut rows, &[0, 0, 0, 0, string(method), 1, 1]);
        }
        let [major, minor, build, revision] = self.version;
        // Hash algorithm, version, flags, public key, name, culture.
        half(&mut rows, &[0, 0, major, minor, build, revision, 0, 0, 0, string(self.name), 0]);
        for reference in self.references {
            // Version, flags, public key, name, culture, hash.
            half(&mut rows, &[major, minor, build, revision, 0, 0, 0, string(reference), 0, 0]);
        }
        // Module, TypeDef, MethodDef, Assembly, AssemblyRef.
        let present = 1u64 | 1 << 2 | 1 << 6 | 1 << 0x20 | 1 << 0x23;
        let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
        tables.extend(present.to_le_bytes());
        tables.extend(0u64.to_le_bytes());
        let references = self.references.len() as u32;
        tables.extend(words(&[1, self.types.len() as u32, u32::from(first) - 1, 1, references]));
        tables.extend(rows);
        let blobs = [0, 3, 0x00, 0x00, 0x01];
        let mut streams: Vec<(&[u8], &[u8])> =
            vec![(b"#~\0\0", &tables), (b"#Strings\0\0\0\0", &strings), (b"#Blob\0\0\0", &blobs)];
        streams.extend(self.mvid.as_ref().map(|mvid| (&b"#GUID\0\0\0"[..], &mvid[..])));

        let mut root = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4.0\0\0".to_vec();
        root.extend((streams.len() as u16).to_le_bytes());
        let mut start = root.len() + streams.iter().map(|(name, _)| 8 + name.len()).sum::<usize>();
        let mut directory = Vec::new();
        for (name, bytes) in &streams {
            directory.extend(words(&[start as u32, bytes.len() as u32]));
            directory.extend(*name);
            start += bytes.len();
        }
        root.extend(directory);
        streams.iter().for_each(|(_, bytes)| root.extend(*bytes));
        root
    }
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
    // Sixteen methods make a block; a table of one byte each says where it begins, from the table's start.
    let last = elements.iter().map(|(index, _)| index / 16).max().unwrap_or(0);
    let (mut starts, mut blocks) = (Vec::new(), Vec::new());
    for block in 0..=last {
        let of_block = elements.iter().filter(|(index, _)| index / 16 == block);
        let of_block: Vec<_> = of_block.map(|(index, value)| (index % 16, value.clone())).collect();
        starts.push(u8::try_from(last as usize + 1 + blocks.len()).expect("a near block"));
        blocks.extend(branch(&of_block, 8));
    }
    [native((16 * (last + 1)) << 2).to_vec(), starts, blocks].concat()
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
