//! Source lines of precompiled methods: the IL-to-native maps in real ReadyToRun images.

use std::fmt::Write;

use etwprof::symbols::read::dotnet::lines::{EPILOG, ManagedPdb, NO_MAPPING, PROLOG, il_offset};
use etwprof::symbols::read::dotnet::r2r::{Method, R2rImage};
use etwprof::symbols::read::pe::Image;

use crate::support::precompiled::{IMAGES, real};

/// Bytes of code, without the cold part.
fn length(method: &Method<'_, '_>) -> u32 {
    method.ranges().next().map_or(0, |range| range.end - range.start)
}

/// Methods without a map are code that has no IL: what the compiler made to call native functions.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_method_has_a_map_from_its_prolog_to_its_end() {
    let mut maps = Vec::new();
    for (path, ..) in IMAGES {
        let file = real(path);
        let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
        let (mut methods, mut pairs) = (0, 0);
        for method in image.methods() {
            if let (Some(token), definition) = (method.token(), method.definition().unwrap()) {
                assert_eq!(definition, (image.assemblies().next().unwrap(), token));
            }
            let map = method.il_map();
            let Some(&(last, _)) = map.last() else { continue };
            assert_eq!(map[0], (0, PROLOG), "{}", method.name());
            assert!(map.is_sorted_by_key(|&(native, _)| native), "{}", method.name());
            assert!(last <= length(&method), "{}: {last:#x}", method.name());
            methods += 1;
            pairs += map.len();
        }
        maps.push((methods, pairs));
    }
    let expected =
        [(71, 350), (30_080, 222_864), (985, 9_339), (813, 6_834), (973, 9_179), (27, 198), (125, 502)];
    assert_eq!(maps, expected);
}

/// From machine code to lines with nothing but the image and its PDB.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn lines_of_precompiled_code() {
    let paths = [
        "dotnet/symstore/dir1/System.Threading.Thread.dll",
        "dotnet/symstore/dir1/System.Threading.Thread.pdb",
    ];
    let [image, pdb] = paths.map(real);
    let image = R2rImage::parse(&Image::parse(&image).unwrap()).unwrap();
    let pdb = ManagedPdb::open(&pdb).unwrap();
    let (mut methods, mut lines) = (0, String::new());
    for method in image.methods() {
        let (map, token) = (method.il_map(), method.token().unwrap());
        let line = |native| pdb.line(token, il_offset(&map, native).unwrap()).unwrap();
        let first = line(0);
        // The constructor of LocalDataStoreSlot, and SR.GetResourceString with its try and catch.
        if [0x0600_0001, 0x0600_0006].contains(&token) {
            let file = first.file.rsplit('\\').next().unwrap();
            write!(lines, "{}.{} {file}", method.name().type_name, method.name().method).unwrap();
            let mut before = 0;
            for native in 0..length(&method) {
                let line = line(native).line;
                if line != before {
                    write!(lines, " {native}:{line}").unwrap();
                }
                before = line;
            }
            lines.push('\n');
        }
        methods += 1;
    }
    assert_eq!(methods, 125);
    // Between 104 and 120 is the second return; behind it the handler, which is empty and has no IL.
    let expected = "System.LocalDataStoreSlot..ctor LocalDataStoreSlot.cs 0:11 8:13 18:14 27:15\n\
                    System.SR.GetResourceString SR.cs 0:27 28:28 60:31 100:33 110:36\n";
    assert_eq!(lines, expected);
}

/// Against `scripts/il-map-facts`. A debugger's answers differ from ours where there is no IL: it shows IL 0 for code
/// without a mapping and in the prologs of exception handlers, and the method's last instruction in every epilog.
#[test]
#[ignore = "needs the output of scripts/il-map-facts in ETWPROF_IL_MAP_FACTS"]
fn the_runtime_finds_the_same_il_offsets() {
    let facts = std::env::var("ETWPROF_IL_MAP_FACTS").expect("the path of the facts");
    let facts = std::fs::read_to_string(facts).unwrap();
    let (mut methods, mut bytes) = (0, 0);
    let mut facts = facts.lines().peekable();
    while let Some(path) = facts.next() {
        let file = std::fs::read(path).unwrap();
        let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
        while let Some(fact) = facts.next_if(|fact| fact.starts_with(' ')) {
            let mut fields = fact.split_whitespace();
            let mut hexadecimal = || u32::from_str_radix(fields.next().unwrap(), 16).unwrap();
            let (token, rva) = (hexadecimal(), hexadecimal());
            let changes: Vec<(u32, i32)> = fields
                .map(|change| change.split_once(':').unwrap())
                .map(|(native, il)| (native.parse().unwrap(), il.parse().unwrap()))
                .collect();
            let (method, 0) = image.lookup(rva).unwrap() else { panic!("{path}: no method at {rva:#x}") };
            let is_it = |method: Method<'_, '_>| method.definition().is_some_and(|(_, found)| found == token);
            assert!(method.same_code().any(is_it), "{path}: {token:08x}");
            let map = method.il_map();
            let last = map.iter().map(|&(_, il)| il).max().unwrap_or(0);
            for native in 0..length(&method).min(4000) {
                let theirs = changes[changes.partition_point(|&(start, _)| start <= native) - 1].1;
                let ours = map[..map.partition_point(|&(start, _)| start <= native)].last();
                let is_same = match ours.map_or(NO_MAPPING, |&(_, il)| il) {
                    NO_MAPPING | PROLOG => theirs == 0,
                    EPILOG => theirs >= last,
                    il => theirs == il && il_offset(&map, native) == Some(il as u32),
                };
                assert!(is_same, "{path}: {token:08x} + {native:#x}: {theirs}, {map:?}");
                bytes += 1;
            }
            methods += 1;
        }
    }
    println!("{methods} methods, {bytes} bytes of code");
    assert!(methods > 0);
}
