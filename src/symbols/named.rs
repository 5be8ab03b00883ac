//! The functions at the addresses of one module.
//!
//! Addresses of one function have the same functions around them, and the addresses that samples hit are many. So
//! texts, functions and chains of functions are each stored once: memory grows with the symbols and with the
//! addresses, and not with one times the other.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::names::{Function, FunctionName, Precompiled};
use super::native::{Location, Source};
use crate::prefix_tree::{NodeId, PrefixTree};

/// Functions by RVA.
#[derive(Debug, Default)]
pub(super) struct Named {
    by_rva: FxHashMap<u64, NodeId>,
    /// Chains of numbers of functions, outermost first.
    chains: PrefixTree<u32>,
    functions: Vec<Function>,
    numbers: HashTable<u32>,
    texts: FxHashSet<Arc<str>>,
    methods: FxHashSet<Arc<Precompiled>>,
}

impl Named {
    /// Names an address.
    pub(super) fn insert(&mut self, rva: u64, location: Location) {
        let Location { function, method, file, line, inlined, approximate, source, .. } = location;
        let ready_to_run = source == Source::R2r;
        let name = match method {
            Some(name) => FunctionName::Method(self.method(Precompiled {
                name: Arc::unwrap_or_clone(name),
                ready_to_run,
                shared: ready_to_run && approximate,
            })),
            None => FunctionName::Text(self.text(function)),
        };
        let approximate = approximate && !ready_to_run;
        let file = file.map(|file| self.text(file));
        let mut node = self.child(None, Function { name, file, line, inlined: false, approximate });
        for call in inlined.into_iter().rev() {
            let function = Function {
                name: FunctionName::Text(self.text(call.function)),
                file: call.file.map(|file| self.text(file)),
                line: call.line,
                inlined: true,
                approximate: false,
            };
            node = self.child(Some(node), function);
        }
        self.by_rva.insert(rva, node);
    }

    /// The functions at an address, outermost first.
    pub(super) fn get(&self, rva: u64) -> Vec<&Function> {
        let Some(node) = self.by_rva.get(&rva) else { return Vec::new() };
        let functions = self.chains.path(*node).filter_map(|number| self.functions.get(number as usize));
        let mut functions: Vec<_> = functions.collect();
        functions.reverse();
        functions
    }

    /// Whether an address has a name.
    pub(super) fn contains(&self, rva: u64) -> bool {
        self.by_rva.contains_key(&rva)
    }

    /// How many addresses have a name.
    pub(super) fn len(&self) -> usize {
        self.by_rva.len()
    }

    fn child(&mut self, parent: Option<NodeId>, function: Function) -> NodeId {
        let functions = &mut self.functions;
        let hash = FxBuildHasher.hash_one(&function);
        let known = self.numbers.entry(
            hash,
            |number| functions.get(*number as usize) == Some(&function),
            |number| functions.get(*number as usize).map_or(0, |function| FxBuildHasher.hash_one(function)),
        );
        let number = *known
            .or_insert_with(|| {
                functions.push(function);
                (functions.len() - 1) as u32
            })
            .get();
        self.chains.child(parent, number)
    }

    fn text(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.get(text.as_str()) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn method(&mut self, method: Precompiled) -> Arc<Precompiled> {
        if let Some(known) = self.methods.get(&method) {
            return Arc::clone(known);
        }
        let method = Arc::new(method);
        self.methods.insert(Arc::clone(&method));
        method
    }
}

#[cfg(test)]
mod tests {
    use super::Named;
    use crate::symbols::native::{InlinedFunction, Location, Source};

    fn location(inlined: &[&str], line: u32) -> Location {
        let call = |name: &&str| InlinedFunction { function: (*name).to_owned(), file: None, line: Some(1) };
        Location {
            function: "outer".to_owned(),
            method: None,
            offset: 0,
            file: Some("outer.c".to_owned()),
            line: Some(line),
            inlined: inlined.iter().map(call).collect(),
            left_out: 0,
            source: Source::Dwarf,
            approximate: false,
        }
    }

    #[test]
    fn what_addresses_share_is_stored_once() {
        let mut named = Named::default();
        for rva in 0..1000 {
            // Innermost first.
            named.insert(rva, location(&["c", "b", "a"], 7));
        }
        named.insert(1000, location(&["d", "b", "a"], 7));
        named.insert(1001, location(&[], 8));
        let text = |rva| {
            let functions = named.get(rva);
            functions.iter().map(|f| format!("{:?} {:?} {}", f.name, f.line, f.inlined)).collect::<Vec<_>>()
        };
        assert_eq!(
            text(999),
            [
                r#"Text("outer") Some(7) false"#,
                r#"Text("a") Some(1) true"#,
                r#"Text("b") Some(1) true"#,
                r#"Text("c") Some(1) true"#,
            ]
        );
        assert_eq!(text(1000)[3], r#"Text("d") Some(1) true"#);
        assert_eq!(text(1001), [r#"Text("outer") Some(8) false"#]);
        assert!(text(1002).is_empty());
        assert_eq!((named.len(), named.functions.len(), named.chains.len()), (1002, 6, 6));
        // outer, outer.c, a, b, c, d.
        assert_eq!(named.texts.len(), 6);
    }
}
