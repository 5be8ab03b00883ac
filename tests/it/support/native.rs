//! Names of native code as independent readers give them: levelled, and all that a PDB has, by way of `pdb2`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use pdb2::FallibleIterator;
use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::support::data;

/// A name without what the two sides spell differently.
pub fn level(name: &str) -> String {
    let mut name = name.to_owned();
    for (from, to) in [
        ("`scalar deleting dtor'", "scalar_deleting_destructor"),
        ("`scalar deleting destructor'", "scalar_deleting_destructor"),
        ("`vector deleting dtor'", "vector_deleting_destructor"),
        ("`vector deleting destructor'", "vector_deleting_destructor"),
        ("(anonymous namespace)", "anonymous_namespace"),
        ("`anonymous namespace'", "anonymous_namespace"),
        ("`anonymous-namespace'", "anonymous_namespace"),
        ("operator()", "operator call"),
        ("operator<<", "operator shl"),
        ("operator<=>", "operator spaceship"),
        ("operator<=", "operator le"),
        ("operator<", "operator lt"),
        ("operator>>", "operator shr"),
        ("operator->", "operator arrow"),
        ("operator>=", "operator ge"),
        ("operator>", "operator gt"),
        ("operator ", "operator_"),
        ("_operator_", "_operator "),
        (" const::'lambda", "::'lambda"),
    ] {
        name = name.replace(from, to);
    }
    name = level_lambdas(&level_local_scopes(&name));
    let parameters = outside_brackets(&name, |c| c == '(').find(|at| *at > 0);
    if let Some(end) = parameters {
        name.truncate(end);
        // With parameters comes the return type.
        let return_type = outside_brackets(&name, |c| c == ' ').last();
        if let Some(start) = return_type {
            name.drain(..=start);
        }
    }
    let kept = |word: &&str| !["class ", "struct ", "enum ", "union "].contains(word);
    let words: Vec<_> =
        name.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').filter(kept).collect();
    let mut name: String = words.concat().chars().filter(|c| !c.is_whitespace()).collect();
    for (from, to) in [
        ("__int64", "longlong"),
        ("const", ""),
        ("__ptr64", ""),
        ("'", ""),
        ("`", ""),
        ("false", "0"),
        ("true", "1"),
    ] {
        name = name.replace(from, to);
    }
    if let Some(class) = name.strip_suffix("::{ctor}") {
        name = format!("{class}::{}", last_part(class));
    } else if let Some(class) = name.strip_suffix("::{dtor}") {
        name = format!("{class}::~{}", last_part(class));
    }
    // LLVM takes one underscore from names on x86, whether they are decorated or not.
    name.trim_start_matches('_').replace("::~__", "::~").replace("::~_", "::~")
}

/// The places of a character outside of template arguments.
fn outside_brackets(name: &str, wanted: impl Fn(char) -> bool) -> impl Iterator<Item = usize> {
    let mut depth = 0;
    name.char_indices().filter_map(move |(at, character)| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0 && wanted(character)).then_some(at)
    })
}

/// The Itanium ABI names a lambda by its scope and number, CodeView by its place in the source.
fn level_lambdas(name: &str) -> String {
    let mut name = name.to_owned();
    while let Some(at) = name.find("`lambda at ") {
        let end = at + name[at..].find('\'').unwrap();
        name.replace_range(at..=end, "lambda");
    }
    while let Some(at) = name.find("'lambda'(") {
        let end = at + name[at..].find(')').unwrap();
        // As a template argument it has its scope in front of it.
        let mut depth = 0;
        let start = name[..at].char_indices().rev().find(|(_, c)| {
            match c {
                '>' | ')' => depth += 1,
                '<' | '(' => depth -= 1,
                _ => {}
            }
            depth < 0 || (depth == 0 && *c == ',')
        });
        name.replace_range(start.map_or(at, |(start, _)| start + 1)..=end, "lambda");
    }
    name
}

/// `` `public: int A::f(char)'::`2'::<lambda_1> `` is a lambda in `A::f`.
fn level_local_scopes(name: &str) -> String {
    let mut name = name.to_owned();
    let mut from = 0;
    while let Some(at) = name[from..].find('`').map(|at| at + from) {
        let mut depth = 0;
        let end = name[at..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '`') - i32::from(*c == '\'');
            depth == 0
        });
        let Some(end) = end.map(|(end, _)| end + at) else { break };
        let scope = &name[at + 1..end];
        from = at + 1;
        if scope.contains('(') {
            let scope = level(scope.split_once(": ").map_or(scope, |(_, scope)| scope));
            from = at + scope.len();
            name.replace_range(at..=end, &scope);
        }
    }
    name
}

fn last_part(class: &str) -> &str {
    let start = outside_brackets(class, |c| c == ':').last().map_or(0, |at| at + 1);
    class[start..].split('<').next().unwrap()
}

/// Gives each symbol of a PDB that the `pdb2` crate can read: the linker's, then those of all object files.
pub fn each_symbol(pdb: &mut pdb2::PDB<'_, File>, mut give: impl FnMut(pdb2::SymbolData<'_>)) {
    let globals = pdb.global_symbols().unwrap();
    let mut symbols = globals.iter();
    while let Some(symbol) = symbols.next().unwrap() {
        symbol.parse().map(&mut give).unwrap_or_default();
    }
    let debug = pdb.debug_information().unwrap();
    let mut modules = debug.modules().unwrap();
    while let Some(module) = modules.next().unwrap() {
        let Some(info) = pdb.module_info(&module).unwrap() else { continue };
        let mut symbols = info.symbols().unwrap();
        while let Some(symbol) = symbols.next().unwrap() {
            symbol.parse().map(&mut give).unwrap_or_default();
        }
    }
}

/// All procedures and public symbols of a PDB, by way of the `pdb2` crate and a full scan.
pub struct Symbols {
    /// Start, length.
    pub procedures: Vec<(u32, u32)>,
    names: HashMap<u32, HashSet<String>>,
}

impl Symbols {
    pub fn read(pdb: &Path) -> Self {
        let mut pdb = pdb2::PDB::open(std::fs::File::open(pdb).unwrap()).unwrap();
        let map = pdb.address_map().unwrap();
        let mut symbols = Symbols { procedures: Vec::new(), names: HashMap::new() };
        let mut add = |symbol: pdb2::SymbolData<'_>| {
            let (offset, len, name) = match symbol {
                pdb2::SymbolData::Procedure(procedure) => (procedure.offset, procedure.len, procedure.name),
                pdb2::SymbolData::Thunk(thunk) => (thunk.offset, thunk.len.into(), thunk.name),
                pdb2::SymbolData::Public(public) => (public.offset, 0, public.name),
                _ => return,
            };
            let Some(start) = offset.to_rva(&map) else { return };
            let name = Name::from(name.to_string())
                .demangle(DemangleOptions::name_only())
                .unwrap_or(name.to_string().into());
            symbols.procedures.extend((len != 0).then_some((start.0, len)));
            symbols.names.entry(start.0).or_default().insert(level(&name));
        };
        each_symbol(&mut pdb, &mut add);
        symbols
    }

    pub fn is_alias(&self, start: u32, name: &str) -> bool {
        self.names.get(&start).is_some_and(|names| names.contains(name))
    }

    pub fn is_in_a_procedure(&self, rva: u32) -> bool {
        self.procedures.iter().any(|(start, len)| rva >= *start && rva - start < *len)
    }
}

/// All PDBs of native code in the real data, and those of .NET beside them.
pub fn pdbs() -> Vec<PathBuf> {
    let mut folders = vec![data::file("pdb")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".pdb") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
