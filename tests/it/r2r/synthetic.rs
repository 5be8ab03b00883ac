//! Forms of ReadyToRun images that no real image at hand has.

use etwprof::symbols::read::dotnet::metadata::Metadata;
use etwprof::symbols::read::dotnet::r2r::{R2rError, R2rImage};
use etwprof::symbols::read::pe::Image;

use crate::support::image::{Pe, core_header, entry_points, instances, metadata, rtr_header, words};

const X64: u16 = 0x8664;
const X86: u16 = 0x014C;
const ARM64: u16 = 0xAA64;
const LINUX: u16 = 0x7B79;

const RUNTIME_FUNCTIONS: u32 = 102;
const METHOD_ENTRY_POINTS: u32 = 103;
const INSTANCE_ENTRY_POINTS: u32 = 109;
const MANIFEST: u32 = 112;
const COMPONENTS: u32 = 115;
const OWNER_COMPOSITE: u32 = 116;
const HOT_COLD_MAP: u32 = 120;

/// An image of one assembly `App` with `Ns.A.M1`, `Ns.A.M2` and `B.N1`, and more sections.
fn app(
    machine: u16,
    version: (u16, u16),
    rows: &[u32],
    entries: &[(u32, u32)],
    more: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    build(Pe::new(machine), version, rows, entries, more)
}

fn build(
    mut pe: Pe,
    version: (u16, u16),
    rows: &[u32],
    entries: &[(u32, u32)],
    more: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    let mut pieces = vec![(RUNTIME_FUNCTIONS, words(rows)), (METHOD_ENTRY_POINTS, entry_points(entries))];
    pieces.extend_from_slice(more);
    let sections: Vec<_> = pieces.iter().map(|(kind, bytes)| (*kind, pe.put(bytes), bytes.len())).collect();
    let native = pe.put(&rtr_header(version, &sections));
    let cor_header = pe.put_cor_header(&app_metadata(), native);
    pe.with_cor_header(cor_header).finish()
}

fn app_metadata() -> Vec<u8> {
    metadata(
        "App",
        &["System.Runtime"],
        &[("", "<Module>", &[]), ("Ns", "A", &["M1", "M2"]), ("", "B", &["N1"])],
    )
}

fn parse(file: &[u8]) -> Result<R2rImage<'_>, R2rError> {
    R2rImage::parse(&Image::parse(file).unwrap())
}

/// What stands at an RVA: name and offset.
fn at(image: &R2rImage<'_>, rva: u32) -> Option<(String, u32)> {
    image.lookup(rva).map(|(method, offset)| (method.name().to_string(), offset))
}

fn found(name: &str, offset: u32) -> Option<(String, u32)> {
    Some((name.to_owned(), offset))
}

#[test]
fn funclets_belong_to_the_method_before_them() {
    let rows = [0x9000, 0x9020, 0, 0x9020, 0x9040, 0, 0x9050, 0x9060, 0];
    let file = app(X64 ^ LINUX, (9, 0), &rows, &[(1, 0), (3, 2)], &[]);
    let image = parse(&file).unwrap();
    assert_eq!(image.assemblies().collect::<Vec<_>>(), ["App"]);
    assert_eq!(at(&image, 0x901F), found("Ns.A.M1()", 0x1F));
    assert_eq!(at(&image, 0x9030), found("Ns.A.M1()", 0x30));
    assert_eq!(at(&image, 0x9050), found("B.N1()", 0));
    assert_eq!(at(&image, 0x9040), None);
    assert_eq!(at(&image, 0x8FFF), None);
    assert_eq!(
        image.methods().map(|method| method.token()).collect::<Vec<_>>(),
        [Some(0x0600_0001), Some(0x0600_0003)]
    );
}

/// Format 8: the cold parts follow all hot code, and their map says whose they are.
#[test]
fn cold_parts_belong_to_their_methods() {
    let rows = [
        [0x9000, 0x9010, 0], // M1
        [0x9010, 0x9018, 0], // its funclet
        [0x9020, 0x9030, 0], // M2, whole
        [0x9030, 0x9040, 0], // N1
        [0xA000, 0xA008, 0], // cold M1
        [0xA008, 0xA010, 0], // cold funclet of M1
        [0xA010, 0xA020, 0], // cold N1
    ];
    let map = words(&[4, 0, 6, 3]);
    let file = app(X64, (8, 0), rows.as_flattened(), &[(1, 0), (2, 2), (3, 3)], &[(HOT_COLD_MAP, map)]);
    let image = parse(&file).unwrap();
    assert_eq!(at(&image, 0x9017), found("Ns.A.M1()", 0x17));
    assert_eq!(at(&image, 0xA000), found("Ns.A.M1()", 0x18));
    assert_eq!(at(&image, 0xA00F), found("Ns.A.M1()", 0x27));
    assert_eq!(at(&image, 0xA010), found("B.N1()", 0x10));
    assert_eq!(at(&image, 0x9020), found("Ns.A.M2()", 0));
    let ranges: Vec<_> = image.methods().flat_map(|method| method.ranges()).collect();
    assert_eq!(ranges, [0x9000..0x9018, 0xA000..0xA010, 0x9020..0x9030, 0x9030..0x9040, 0xA010..0xA020]);
}

#[test]
fn arm64_lengths_are_in_the_unwind_data() {
    let mut pe = Pe::new(ARM64);
    // A record of 6 instructions; a packed word of 3; a record that is not there.
    let record = pe.put(&words(&[6 | 1 << 27]));
    let rows = [0x9000, record, 0x9020, 3 << 2 | 1, 0x9040, 0x00F0_0000, 0x9048, 2 << 2 | 1];
    let file = build(pe, (9, 0), &rows, &[(1, 0), (2, 1), (3, 2)], &[]);
    let image = parse(&file).unwrap();
    assert_eq!(image.function_range(0), Some(0x9000..0x9018));
    assert_eq!(image.function_range(1), Some(0x9020..0x902C));
    assert_eq!(image.function_range(2), Some(0x9040..0x9048), "up to the next function");
    assert_eq!(at(&image, 0x902B), found("Ns.A.M2()", 0xB));
    assert_eq!(at(&image, 0x902C), None);
}

#[test]
fn x86_lengths_are_in_front_of_the_gc_data() {
    let mut pe = Pe::new(X86);
    // Base 128, high digits first.
    let (short, long) = (pe.put(&[0x21]), pe.put(&[0x81, 0x02]));
    let file = build(pe, (3, 1), &[0x9000, short, 0x9030, long, u32::MAX, 0], &[(1, 0), (3, 1)], &[]);
    let image = parse(&file).unwrap();
    assert_eq!(image.function_count(), 2, "the end mark is no function");
    assert_eq!(image.function_range(0), Some(0x9000..0x9021));
    assert_eq!(image.function_range(1), Some(0x9030..0x9030 + 130));
}

/// `List<Item>.Add`: owner type flag, an instance of a type in another module with an argument of this one.
const OTHER_MODULE: &[u8] = &[0x40, 0x15, 0x3F, 3, 0x12, 2 << 2, 2, 0x12, 2 << 2, 0x3E, 1];

#[test]
fn types_of_other_modules_read_as_tokens_until_their_metadata_is_there() {
    // Module 1 is the image's own reference, System.Runtime; 2 the manifest itself; 3 its first reference.
    let manifest = metadata("manifest", &["Lib"], &[("", "<Module>", &[])]);
    let rows = [0x9000, 0x9010, 0];
    let table = instances(&[(OTHER_MODULE, 0)]);
    let more = [(MANIFEST, manifest), (INSTANCE_ENTRY_POINTS, table)];
    let file = app(X64, (5, 4), &rows, &[], &more);
    let mut image = parse(&file).unwrap();
    let (method, _) = image.lookup(0x9000).unwrap();
    assert_eq!(method.token(), None);
    assert_eq!(method.name().type_name, "Lib!0x02000002[Ns.A,System.__Canon]");
    assert_eq!(method.name().method, "Lib!0x06000001");

    let lib = metadata("Lib", &[], &[("", "<Module>", &[]), ("Coll", "Map`2", &["Add"])]);
    image.add_reference(Metadata::parse(&lib).unwrap());
    assert_eq!(at(&image, 0x9000), found("Coll.Map`2[Ns.A,System.__Canon].Add()", 0));
}

#[test]
fn a_signature_may_name_its_module_up_front() {
    let manifest = metadata("manifest", &["Other", "Lib"], &[("", "<Module>", &[])]);
    // A definition, and a member reference.
    for (flags, expected) in [(0x84, "Lib!0x06000001"), (0x94, "Lib!0x0A000001")] {
        // Flags (two bytes as 0x80 0x84), module 4, row 1, two arguments: int, a type of the first reference.
        let generic: &[u8] = &[0x80, flags, 4, 1, 2, 0x08, 0x3F, 1, 0x11, 5 << 2];
        let more = [(MANIFEST, manifest.clone()), (INSTANCE_ENTRY_POINTS, instances(&[(generic, 1)]))];
        let file = app(X64, (6, 2), &[0x9000, 0x9010, 0, 0x9010, 0x9020, 0], &[(3, 0)], &more);
        let image = parse(&file).unwrap();
        let method = image.lookup(0x9010).unwrap().0.name();
        assert_eq!(method.type_args, "[System.Int32,System.Runtime!0x02000005]");
        assert_eq!(method.method, expected);
    }
}

/// Two components, one with its metadata in the image, one without.
pub fn composite() -> Vec<u8> {
    // Lib is module 3: App is 2, the manifest itself 1.
    composite_of((9, 2), 3)
}

fn composite_of(version: (u16, u16), lib: u8) -> Vec<u8> {
    let mut pe = Pe::new(X64);
    let manifest = metadata("composite", &["App", "Lib"], &[("", "<Module>", &[])]);
    let manifest_rva = pe.put(&manifest);
    let rows = words(&[0x9000, 0x9010, 0, 0x9010, 0x9020, 0, 0x9020, 0x9030, 0]);
    let rows_rva = pe.put(&rows);
    let cor_header = pe.put_cor_header(&app_metadata(), 0);
    let mut components = Vec::new();
    for (cor_header, entries) in [(cor_header, entry_points(&[(2, 0)])), (0, entry_points(&[(1, 1)]))] {
        let table = pe.put(&entries);
        let core = core_header(&[(METHOD_ENTRY_POINTS, table, entries.len())]);
        let core_rva = pe.put(&core);
        components.extend(words(&[cor_header, 72, core_rva, core.len() as u32]));
    }
    let components_rva = pe.put(&components);
    let table =
        instances(&[(&[0x40, 0x15, 0x3F, lib, 0x12, 2 << 2, 2, 0x3F, lib - 1, 0x12, 2 << 2, 0x08, 1], 2)]);
    let table_rva = pe.put(&table);
    let header = pe.put(&rtr_header(
        version,
        &[
            (RUNTIME_FUNCTIONS, rows_rva, rows.len()),
            (INSTANCE_ENTRY_POINTS, table_rva, table.len()),
            (MANIFEST, manifest_rva, manifest.len()),
            (COMPONENTS, components_rva, components.len()),
        ],
    ));
    pe.with_rtr_export(header).finish()
}

#[test]
fn composite_images_hold_the_code_of_several_assemblies() {
    // Before format 6.3 the manifest has no index.
    let old = composite_of((4, 1), 2);
    assert_eq!(
        at(&parse(&old).unwrap(), 0x9020),
        found("Lib!0x02000002[Ns.A,System.Int32].Lib!0x06000001", 0)
    );
    let file = composite();
    let mut image = parse(&file).unwrap();
    assert!(image.is_composite());
    assert_eq!(image.assemblies().collect::<Vec<_>>(), ["App", "Lib"]);
    assert_eq!(at(&image, 0x9000), found("Ns.A.M2()", 0));
    assert_eq!(at(&image, 0x9011), found("Lib!0x06000001", 1));
    assert_eq!(at(&image, 0x9020), found("Lib!0x02000002[Ns.A,System.Int32].Lib!0x06000001", 0));

    let lib = metadata("Lib", &[], &[("", "<Module>", &[]), ("Coll", "Map`2", &["Add"])]);
    image.add_reference(Metadata::parse(&lib).unwrap());
    assert_eq!(at(&image, 0x9011), found("Coll.Map`2.Add()", 1));
    assert_eq!(at(&image, 0x9020), found("Coll.Map`2[Ns.A,System.Int32].Add()", 0));
}

#[test]
fn a_component_names_its_composite_image() {
    let more = [(OWNER_COMPOSITE, b"framework-r2r.dll\0".to_vec())];
    let file = app(X64, (9, 2), &[], &[(1, 0)], &more);
    match parse(&file) {
        Err(R2rError::InComposite { file }) => assert_eq!(file, "framework-r2r.dll"),
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn unknown_machines_and_signatures_are_named() {
    let file = app(0x5064, (9, 2), &[], &[(1, 0)], &[]);
    assert!(matches!(parse(&file), Err(R2rError::Machine(_))));
    let mut file = app(X64, (9, 2), &[], &[(1, 0)], &[]);
    let at = file.windows(4).position(|bytes| bytes == b"RTR\0").unwrap();
    file[at] = b'X';
    assert!(matches!(parse(&file), Err(R2rError::Signature { .. })));
}
