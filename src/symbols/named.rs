//! The functions at the addresses of one module.
//!
//! Addresses of one function have the same functions around them, and the addresses that samples hit are many. So
//! texts, functions and chains of functions are each stored once: memory grows with the symbols and with the
//! addresses, and not with one times the other.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Certainty, Function, FunctionName, Siblings};
use super::read::location::{Evidence, Location};
use super::read::spelling::method::RawName;
use crate::interned::Interned;
use crate::prefix_tree::{NodeId, PrefixTree};

/// Functions by RVA.
#[derive(Debug, Default)]
pub(super) struct Named {
    by_rva: FxHashMap<u64, NodeId>,
    /// Of addresses without a name: where their function begins, or its token.
    nameless: FxHashMap<u64, NodeId>,
    /// Chains of numbers of functions, outermost first.
    chains: PrefixTree<u32>,
    functions: Interned<Function>,
    texts: FxHashSet<Arc<str>>,
    methods: FxHashSet<Arc<RawName>>,
    /// Methods of the same types, whether an address is named by them or not.
    pub(super) siblings: Vec<Siblings>,
}

impl Named {
    /// Names an address.
    pub(super) fn insert(&mut self, rva: u64, location: Location) {
        let Location {
            function, method, definition, offset, file, line, inlined, approximate, evidence, ..
        } = location;
        let name = match (method, &definition) {
            (Some(name), _) => FunctionName::Method(self.method(name)),
            (None, Some(definition)) => FunctionName::Token(definition.token),
            (None, None) => FunctionName::Native(self.text(function)),
        };
        let certainty = match (approximate, evidence) {
            (false, _) => Certainty::Exact,
            (true, Evidence::R2r | Evidence::Token) => Certainty::Shared,
            (true, _) => Certainty::Nearest,
        };
        let assembly = definition.map(|definition| self.shared(definition.assembly));
        let file = file.map(|file| self.text(file));
        let start = rva.checked_sub(u64::from(offset)).and_then(|start| u32::try_from(start).ok());
        let outermost = Function { name, evidence, certainty, assembly, file, line, start, inlined: false };
        let mut node = self.child(None, outermost);
        for call in inlined.into_iter().rev() {
            let function = Function {
                name: FunctionName::Native(self.text(call.function)),
                evidence,
                certainty: Certainty::Exact,
                assembly: None,
                file: call.file.map(|file| self.text(file)),
                line: call.line,
                start: None,
                inlined: true,
            };
            node = self.child(Some(node), function);
        }
        match evidence.is_name() {
            true => self.by_rva.insert(rva, node),
            false => self.nameless.insert(rva, node),
        };
    }

    /// Notes where the function of an address begins that has no name.
    pub(super) fn insert_start(&mut self, rva: u64, start: u32) {
        let name = FunctionName::Start(start);
        let (evidence, certainty) = (Evidence::FunctionTable, Certainty::Exact);
        let (assembly, file, line, start) = (None, None, None, Some(start));
        let function = Function { name, evidence, certainty, assembly, file, line, start, inlined: false };
        let node = self.child(None, function);
        self.nameless.insert(rva, node);
    }

    /// The outermost types of its methods.
    pub(super) fn types(&self) -> FxHashSet<String> {
        self.methods.iter().map(|method| method.outer_type().to_owned()).collect()
    }

    /// The functions at an address, outermost first.
    pub(super) fn get(&self, rva: u64) -> Vec<&Function> {
        let Some(node) = self.by_rva.get(&rva).or_else(|| self.nameless.get(&rva)) else { return Vec::new() };
        let functions = self.chains.path(*node).filter_map(|number| self.functions.get(number));
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
        let number = self.functions.number(function);
        self.chains.child(parent, number)
    }

    fn text(&mut self, text: String) -> Arc<str> {
        match self.texts.get(text.as_str()) {
            Some(known) => Arc::clone(known),
            None => self.shared(text.into()),
        }
    }

    fn shared(&mut self, text: Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(&text) {
            return Arc::clone(known);
        }
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn method(&mut self, method: Arc<RawName>) -> Arc<RawName> {
        if let Some(known) = self.methods.get(&method) {
            return Arc::clone(known);
        }
        self.methods.insert(Arc::clone(&method));
        method
    }
}

#[cfg(test)]
mod tests {
    use super::Named;
    use crate::symbols::read::location::{Definition, Evidence, InlinedFunction, Location};

    /// In a function that begins at 0x100.
    fn location(rva: u64, inlined: &[&str], line: u32) -> Location {
        let call = |name: &&str| InlinedFunction { function: (*name).to_owned(), file: None, line: Some(1) };
        Location {
            function: "outer".to_owned(),
            method: None,
            definition: None,
            offset: rva as u32 - 0x100,
            file: Some("outer.c".to_owned()),
            line: Some(line),
            inlined: inlined.iter().map(call).collect(),
            left_out: 0,
            evidence: Evidence::Dwarf,
            approximate: false,
        }
    }

    #[test]
    fn what_addresses_share_is_stored_once() {
        let mut named = Named::default();
        for rva in 0x100..1000 {
            // Innermost first.
            named.insert(rva, location(rva, &["c", "b", "a"], 7));
        }
        named.insert(1000, location(1000, &["d", "b", "a"], 7));
        named.insert(1001, location(1001, &[], 8));
        let text = |named: &Named, rva| {
            let functions = named.get(rva);
            functions
                .iter()
                .map(|f| format!("{:?} {:?} {:?} {}", f.name, f.start, f.line, f.inlined))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            text(&named, 999),
            [
                r#"Native("outer") Some(256) Some(7) false"#,
                r#"Native("a") None Some(1) true"#,
                r#"Native("b") None Some(1) true"#,
                r#"Native("c") None Some(1) true"#,
            ]
        );
        assert_eq!(text(&named, 1000)[3], r#"Native("d") None Some(1) true"#);
        assert_eq!(text(&named, 1001), [r#"Native("outer") Some(256) Some(8) false"#]);
        assert!(text(&named, 1002).is_empty());
        assert_eq!((named.len(), named.functions.len(), named.chains.len()), (746, 6, 6));
        named.insert_start(1002, 0x1f0);
        assert_eq!(text(&named, 1002), ["Start(496) Some(496) None false"]);
        assert_eq!((named.len(), named.contains(1002)), (746, false), "a start is no name");
        let assembly = "System.Linq".into();
        let definition = Some(Definition { assembly, token: 0x0600_00DC });
        named.insert(1003, Location { definition, evidence: Evidence::Token, ..location(1003, &[], 9) });
        assert_eq!(text(&named, 1003), ["Token(100663516) Some(256) Some(9) false"]);
        assert_eq!((named.len(), named.contains(1003)), (746, false), "nor is a token");
        // outer, outer.c, a, b, c, d, System.Linq.
        assert_eq!(named.texts.len(), 7);
    }
}
