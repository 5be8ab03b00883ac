//! Builds composite ReadyToRun images and the files of their components (dotnet/runtime, readytorun-format.md).

use super::image::{Assembly, Pe, core_header, entry_points, instances, words};

const RUNTIME_FUNCTIONS: u32 = 102;
const METHOD_ENTRY_POINTS: u32 = 103;
const INSTANCE_ENTRY_POINTS: u32 = 109;
const MANIFEST_METADATA: u32 = 112;
const COMPONENT_ASSEMBLIES: u32 = 115;
const OWNER_COMPOSITE_EXECUTABLE: u32 = 116;
const MANIFEST_ASSEMBLY_MVIDS: u32 = 118;

/// Flags of a core header.
const COMPOSITE: u32 = 0x02;
const COMPONENT: u32 = 0x20;

const X64: u16 = 0x8664;

/// `RTR`, version, flags, sections.
fn header(version: (u16, u16), flags: u32, sections: &[(u32, u32, usize)]) -> Vec<u8> {
    let mut header = b"RTR\0".to_vec();
    header.extend(version.0.to_le_bytes());
    header.extend(version.1.to_le_bytes());
    header.extend(flags.to_le_bytes());
    header.extend(&core_header(sections)[4..]);
    header
}

/// A composite image without any IL: the code of `components`, each with the rows of its methods and their first runtime
/// functions. The manifest refers to them, and then to `others`.
pub struct Composite<'a> {
    pub version: (u16, u16),
    /// Time stamp, size of the image, checksum.
    pub identity: [u32; 3],
    pub components: &'a [(Assembly<'a>, &'a [(u32, u32)])],
    pub others: &'a [Assembly<'a>],
    /// Begin, end and unwind data of each runtime function.
    pub functions: &'a [[u32; 3]],
    /// Signatures of instantiations, and their first runtime functions.
    pub instances: &'a [(&'a [u8], u32)],
}

impl Composite<'_> {
    pub fn file(&self) -> Vec<u8> {
        let mut pe = Pe::new(X64).with_identity(self.identity);
        let assemblies: Vec<&Assembly<'_>> =
            self.components.iter().map(|(assembly, _)| assembly).chain(self.others).collect();
        let names: Vec<&str> = assemblies.iter().map(|assembly| assembly.name).collect();
        let manifest = Assembly {
            name: "manifest",
            version: assemblies[0].version,
            references: &names,
            types: &[("", "<Module>", &[])],
            mvid: None,
        };
        let mut components = Vec::new();
        for (_, methods) in self.components {
            let table = entry_points(methods);
            let core = core_header(&[(METHOD_ENTRY_POINTS, pe.put(&table), table.len())]);
            // No COR header: the IL lies apart.
            components.extend(words(&[0, 0, pe.put(&core), core.len() as u32]));
        }
        let mut pieces = vec![
            (RUNTIME_FUNCTIONS, words(self.functions.as_flattened())),
            (INSTANCE_ENTRY_POINTS, instances(self.instances)),
            (MANIFEST_METADATA, manifest.metadata()),
            (COMPONENT_ASSEMBLIES, components),
        ];
        // Since format 5.3.
        if self.version >= (5, 3) {
            let mvids = assemblies.iter().flat_map(|assembly| assembly.mvid.unwrap_or_default()).collect();
            pieces.push((MANIFEST_ASSEMBLY_MVIDS, mvids));
        }
        let sections: Vec<_> =
            pieces.iter().map(|(kind, bytes)| (*kind, pe.put(bytes), bytes.len())).collect();
        let header = pe.put(&header(self.version, COMPOSITE, &sections));
        pe.with_rtr_export(header).finish()
    }
}

/// The file of a component: IL alone, and a header that says whose code it is.
pub fn component(assembly: &Assembly<'_>, owner: &str, identity: [u32; 3]) -> Vec<u8> {
    let mut pe = Pe::new(X64).with_identity(identity);
    let owner = [owner.as_bytes(), b"\0"].concat();
    let section = (OWNER_COMPOSITE_EXECUTABLE, pe.put(&owner), owner.len());
    let native = pe.put(&header((9, 2), COMPONENT, &[section]));
    let cor_header = pe.put_cor_header(&assembly.metadata(), native);
    pe.with_cor_header(cor_header).finish()
}
