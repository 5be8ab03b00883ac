//! The symbol store of the machine: a PDB for each native module that the stories name, and the image of the one that
//! was compiled ahead of time, whose own tables name its methods.
//!
//! Modules of Windows and .NET have what Microsoft's server gives: public symbols. The four that were built here have
//! procedures, lines and inlined calls, from `sources.txt`.

use std::collections::BTreeMap;

use super::code::Code;
use super::machine::{self, Machine, Module};
use super::stories::Stories;
use crate::support::image::{Pe, entry_points, instances, metadata, rtr_header, words};
use crate::synth::pdb::{CODE_RVA, Compiland, Function, Inlined, Pdb};

const SOURCES: &str = include_str!("sources.txt");

const PRECOMPILED: &str = "System.Private.CoreLib";

/// How many lines a function has.
const LINES: u32 = 24;

/// The files of the store by their paths in it.
pub(super) fn store(machine: Machine) -> BTreeMap<String, Vec<u8>> {
    let pdbs = pdbs(machine).into_iter().map(|(path, pdb)| (path, pdb.finish()));
    pdbs.chain([precompiled(machine)]).collect()
}

/// What they are made of.
pub(super) fn pdbs(machine: Machine) -> BTreeMap<String, Pdb> {
    let code = Code::new(machine);
    let sources = Sources::new();
    let mut functions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for symbol in Stories::new().functions() {
        let (stem, name) = symbol.split_once('!').expect("a module and a name");
        functions.entry(stem).or_default().push(name);
    }
    let native = functions.into_iter().filter(|(stem, _)| *stem != PRECOMPILED);
    native.map(|(stem, names)| (path(code.module(stem)), pdb(&code, &sources, stem, &names))).collect()
}

/// A method with the RVA and size of its code.
type Placed = (&'static str, (u32, u32));

/// The image of the precompiled module, with its methods and the RVAs of their code but no code.
fn precompiled(machine: Machine) -> (String, Vec<u8>) {
    const X64: u16 = 0x8664;
    const RUNTIME_FUNCTIONS: u32 = 102;
    const METHOD_ENTRY_POINTS: u32 = 103;
    const INSTANCE_ENTRY_POINTS: u32 = 109;

    let code = Code::new(machine);
    let mut classes: BTreeMap<(&str, &str), Vec<Placed>> = BTreeMap::new();
    for symbol in Stories::new().functions() {
        let Some(name) = symbol.strip_prefix("System.Private.CoreLib!") else { continue };
        let (class, method) = name.rsplit_once('.').expect("a class and a method");
        let (namespace, class) = class.rsplit_once('.').expect("a namespace and a class");
        classes.entry((namespace, class)).or_default().push((method, code.function(symbol)));
    }
    // The rows of methods follow those of their classes; runtime functions are in order of their code.
    let mut functions: Vec<(u32, u32)> = classes.values().flatten().map(|(_, place)| *place).collect();
    functions.sort_unstable();
    let number = |place: &(u32, u32)| functions.binary_search(place).expect("it is there") as u32;
    // Methods of generic classes are compiled for type arguments, and have a signature that names them.
    let (mut entries, mut instances_of) = (Vec::new(), Vec::new());
    let mut method = 0;
    for (class, ((_, name), methods)) in (2..).zip(&classes) {
        for (_, place) in methods {
            method += 1;
            match name.split_once('`') {
                None => entries.push((method, number(place))),
                Some((_, count)) => {
                    instances_of.push((instance(class, count.parse().unwrap(), method), number(place)))
                }
            }
        }
    }
    let instances_of: Vec<(&[u8], u32)> =
        instances_of.iter().map(|(sig, place)| (sig.as_slice(), *place)).collect();
    let names = |methods: &[Placed]| methods.iter().map(|(name, _)| *name).collect();
    let methods: Vec<Vec<&str>> = classes.values().map(|methods| names(methods)).collect();
    let types: Vec<(&str, &str, &[&str])> = std::iter::once(("", "<Module>", &[] as &[&str]))
        .chain(
            classes.keys().zip(&methods).map(|(&(space, name), methods)| (space, name, methods.as_slice())),
        )
        .collect();

    let module = code.module(PRECOMPILED);
    let (stamp, size) = (module.time_date_stamp(), module.size);
    let mut image = Pe::new(X64).with_identity([stamp, size, module.checksum()]);
    let rows: Vec<u32> = functions.iter().flat_map(|(rva, size)| [*rva, rva + size, 0]).collect();
    let tables = [
        (RUNTIME_FUNCTIONS, words(&rows)),
        (METHOD_ENTRY_POINTS, entry_points(&entries)),
        (INSTANCE_ENTRY_POINTS, instances(&instances_of)),
    ];
    let sections: Vec<_> =
        tables.iter().map(|(kind, bytes)| (*kind, image.put(bytes), bytes.len())).collect();
    let native = image.put(&rtr_header((9, 2), &sections));
    let header = image.put_cor_header(&metadata(PRECOMPILED, &[], &types), native);
    let name = module.file();
    (format!("{name}/{stamp:08X}{size:x}/{name}"), image.with_cor_header(header).finish())
}

/// The signature of a method of a class that is generic over `count` types, each any class: it has an owner, an
/// instance of the class in this row, with as many `System.__Canon`; then the method's row.
fn instance(class: u8, count: u8, method: u32) -> Vec<u8> {
    const HAS_OWNER: u8 = 0x40;
    const INSTANCE: u8 = 0x15;
    const CLASS: u8 = 0x12;
    const CANON: u8 = 0x3E;
    let owner = vec![HAS_OWNER, INSTANCE, CLASS, class << 2, count];
    let arguments = vec![CANON; count.into()];
    [owner, arguments, vec![u8::try_from(method).expect("few methods")]].concat()
}

/// `NAME/KEY/NAME`.
fn path(module: &Module) -> String {
    let (guid, age, name) = module.pdb();
    let name = name.rsplit('\\').next().unwrap_or(&name);
    // The first three numbers of a GUID are little-endian.
    let digits: String = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
        .map(|at| format!("{:02X}", guid.0[at]))
        .concat();
    format!("{name}/{digits}{age:X}/{name}")
}

fn pdb(code: &Code, sources: &Sources, stem: &str, names: &[&str]) -> Pdb {
    let module = code.module(stem);
    let (guid, age, _) = module.pdb();
    let mut pdb = Pdb::new(guid, age, machine::code_size(module) - CODE_RVA, module.size);
    let own = sources.of(stem);
    let mut compilands: BTreeMap<String, Vec<Function>> = BTreeMap::new();
    for name in names {
        let (rva, size) = code.function(&format!("{stem}!{name}"));
        pdb = pdb.public(rva, size, &decorated(name));
        if let Some(own) = own {
            let source = own.iter().find(|source| source.name == *name);
            let source = source.unwrap_or_else(|| panic!("sources.txt has no {stem}!{name}"));
            let object = source.file.rsplit('\\').next().unwrap_or_default();
            let object = object.split('.').next().unwrap_or_default();
            compilands.entry(format!("{object}.obj")).or_default().push(source.function(rva, size));
        }
    }
    for (object, functions) in compilands {
        pdb = pdb.compiland(Compiland { object, functions });
    }
    pdb
}

/// The linker's name of a function with a scope: a static member, `void ()`.
fn decorated(name: &str) -> String {
    let mut parts: Vec<&str> = name.split("::").collect();
    if parts.len() == 1 {
        return name.to_owned();
    }
    parts.reverse();
    format!("?{}@@SAXXZ", parts.join("@"))
}

/// A function or an inlined call in `sources.txt`.
struct Source {
    name: &'static str,
    file: String,
    line: u32,
    /// Sixteenths of the outermost function; all for itself.
    part: (u32, u32),
    inlined: Vec<Source>,
}

/// The functions of each module.
struct Sources(BTreeMap<&'static str, Vec<Source>>);

impl Sources {
    fn new() -> Sources {
        let mut modules: BTreeMap<&str, Vec<Source>> = BTreeMap::new();
        let mut module = ("", "");
        for text in SOURCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let depth = (text.len() - text.trim_start().len()) / 4;
            let words: Vec<&str> = text.split_whitespace().collect();
            if let ["module", name, folder] = words[..] {
                module = (name, folder);
                continue;
            }
            let [name, file, line, ref part @ ..] = words[..] else { panic!("no function: {text}") };
            let whole = part.first().map_or("0..16", |part| *part);
            let (start, end) = whole.split_once("..").expect("a range");
            let folder = if file.contains(':') { "" } else { module.1 };
            let source = Source {
                name,
                file: format!("{folder}{file}"),
                line: line.parse().expect("a line"),
                part: (start.parse().expect("a number"), end.parse().expect("a number")),
                inlined: Vec::new(),
            };
            let mut list = modules.entry(module.0).or_default();
            for _ in 0..depth {
                list = &mut list.last_mut().expect("deeper than a function").inlined;
            }
            list.push(source);
        }
        Sources(modules)
    }

    fn of(&self, stem: &str) -> Option<&[Source]> {
        self.0.get(stem).map(Vec::as_slice)
    }
}

impl Source {
    fn function(&self, rva: u32, size: u32) -> Function {
        Function {
            rva,
            size,
            name: self.name.to_owned(),
            file: self.file.clone(),
            lines: self.lines(size),
            inlined: self.inlined.iter().map(|call| call.call(size)).collect(),
        }
    }

    fn call(&self, size: u32) -> Inlined {
        let (start, end) = self.bytes(size);
        Inlined {
            function: self.name.to_owned(),
            file: self.file.clone(),
            line: self.line,
            start,
            end,
            lines: self.lines(size),
            inlined: self.inlined.iter().map(|call| call.call(size)).collect(),
        }
    }

    /// The bytes of the outermost function, which has `size`.
    fn bytes(&self, size: u32) -> (u32, u32) {
        (size * self.part.0 / 16, size * self.part.1 / 16)
    }

    /// Its lines take bytes evenly; what is inlined there has one line, that of the call.
    fn lines(&self, size: u32) -> Vec<(u32, u32)> {
        let ((start, end), mut rows) = (self.bytes(size), Vec::new());
        let lines = (LINES * (end - start)).div_ceil(size);
        let mut offsets: Vec<u32> = (0..lines).map(|line| start + (end - start) * line / lines).collect();
        for call in &self.inlined {
            let (from, to) = call.bytes(size);
            offsets.retain(|offset| !(from..to).contains(offset));
            offsets.extend([from, to]);
        }
        offsets.sort_unstable();
        offsets.dedup();
        for offset in offsets.into_iter().filter(|offset| (start..end).contains(offset)) {
            rows.push((offset, self.line + 1 + (offset - start) * LINES / size));
        }
        if let Some(first) = rows.first_mut() {
            first.1 = self.line;
        }
        rows
    }
}
