//! Names of native functions on every real PDB: none stays decorated, and a function reads the same by its procedure
//! record, which only a private PDB has, and by its public symbol.
//!
//! The records are found by way of the `pdb2` crate and a full scan; where it has both of a function, ours are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::read::location::Evidence;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Machine;
use etwprof::symbols::read::spelling::demangle;
use etwprof::symbols::short_name;
use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::support::native::{each_symbol, level, pdbs};

/// What a PDB has at an address.
#[derive(Default)]
struct Records {
    procedures: BTreeSet<String>,
    publics: BTreeSet<String>,
}

fn records(path: &Path) -> (Machine, BTreeMap<u32, Records>) {
    let mut pdb = pdb2::PDB::open(std::fs::File::open(path).unwrap()).unwrap();
    let map = pdb.address_map().unwrap();
    let mut records: BTreeMap<u32, Records> = BTreeMap::new();
    let mut add = |symbol: pdb2::SymbolData<'_>| match symbol {
        pdb2::SymbolData::Procedure(found) => {
            if let Some(rva) = found.offset.to_rva(&map) {
                records.entry(rva.0).or_default().procedures.insert(found.name.to_string().into_owned());
            }
        }
        pdb2::SymbolData::Public(found) => {
            if let Some(rva) = found.offset.to_rva(&map) {
                records.entry(rva.0).or_default().publics.insert(found.name.to_string().into_owned());
            }
        }
        _ => {}
    };
    each_symbol(&mut pdb, &mut add);
    let debug = pdb.debug_information().unwrap();
    let machine = match debug.machine_type().unwrap() {
        pdb2::MachineType::X86 => Machine::X86,
        pdb2::MachineType::Arm64 => Machine::Arm64,
        _ => Machine::X64,
    };
    (machine, records)
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_function_reads_the_same_by_its_record_and_by_its_public_symbol() {
    let mut functions = 0;
    let mut differ = Vec::new();
    for path in pdbs() {
        let bytes = Mapped::open(&path).unwrap();
        // `pdb2` gives the places of re-ordered images wrongly (docs/symbols.md).
        if !bytes.starts_with(b"Microsoft C/C++") || path.to_string_lossy().contains("omap") {
            continue;
        }
        let mut symbols = NativeSymbols::open(None, Some(&bytes)).unwrap();
        let (machine, records) = records(&path);
        for (rva, Records { procedures, publics }) in records {
            let Some(found) = symbols.lookup(rva) else { continue };
            if procedures.is_empty() || publics.is_empty() || found.evidence != Evidence::Pdb {
                continue;
            }
            functions += 1;
            let by_public = |name: &String| short_name(&demangle::linker_symbol(name, machine)).into_owned();
            let by_public: BTreeSet<_> = publics.iter().map(by_public).collect();
            let by_record = short_name(&found.function);
            if !by_public.contains(&*by_record) {
                // Of several functions that have the same code, the linker lists other names.
                let class = if procedures.len() > 1 { "folded" } else { "differs" };
                differ.push(format!("{class} {} {rva:#x} {by_record} {publics:?}", path.display()));
            }
        }
    }
    let share = 100.0 * (functions - differ.len()) as f64 / functions as f64;
    println!("{functions} functions with both; {share:.2} % read alike\n{}", differ.join("\n"));
    assert!(share >= 99.0 && functions > 10_000, "{share} % of {functions}\n{}", differ.join("\n"));
}

/// `msvc-demangler` is another reader of Microsoft's names, as far as it goes. It calls the constructors that are templates
/// `ctor`, and such conversions `cast`.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn no_name_stays_decorated() {
    let mut names = BTreeSet::new();
    for path in pdbs() {
        if std::fs::read(&path).unwrap().starts_with(b"Microsoft C/C++") {
            let (_, records) = records(&path);
            names.extend(records.into_values().flat_map(|records| records.publics));
        }
    }
    // Texts, tables of virtual functions and bases, and descriptors of types are no functions.
    names.retain(|name| ["?", "_Z"].iter().any(|start| name.starts_with(start)));
    names.retain(|name| !["??_C@", "??_7", "??_8", "??_R"].iter().any(|start| name.starts_with(start)));
    let (mut read_twice, mut decorated, mut differ) = (0, Vec::new(), Vec::new());
    for name in &names {
        let ours = demangle::linker_symbol(name, Machine::X64);
        if ours.starts_with('?') || ours.contains("@@") || ours.starts_with("_Z") {
            decorated.push(name);
        }
        let theirs = Name::from(name.as_str()).demangle(DemangleOptions::name_only());
        let is_named_otherwise = ["??$?0", "??$?B"].iter().any(|start| name.starts_with(start));
        let Some(theirs) = theirs.filter(|_| name.starts_with('?') && !is_named_otherwise) else { continue };
        read_twice += 1;
        // It has another name for a type, leaves out conventions, and does not shorten the word destructor.
        let theirs = theirs.replace("uint64_t", "unsigned __int64").replace("int64_t", "__int64");
        let ours_levelled =
            ours.replace("__cdecl ", "").replace("__stdcall ", "").replace(" dtor'", " destructor'");
        if level(&theirs) != level(&ours_levelled) {
            differ.push(format!("{name}\n  {ours}\n  {theirs}"));
        }
    }
    println!("{} decorated names, {read_twice} read twice", names.len());
    assert!(names.len() > 3_000 && decorated.is_empty(), "{decorated:?}");
    assert!(read_twice > 2_000 && differ.is_empty(), "{}", differ.join("\n"));
}
