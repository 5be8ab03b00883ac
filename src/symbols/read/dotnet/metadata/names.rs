//! The names of types and methods.

use super::Metadata;
use super::tables::Table;

/// Types nest a few levels deep; a chain longer than this is a loop.
const MAX_NESTING: usize = 64;

/// Compilers stop at 1,023 bytes for a name, namespace included.
const MAX_TYPE_NAME: usize = 8 << 10;

/// The row of a table that a coded index's tag stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeToken {
    Def(u32),
    Ref(u32),
    Spec(u32),
}

impl TypeToken {
    /// From a TypeDefOrRef coded index (II.24.2.6), which is also the form in signatures (II.23.2.8).
    pub(crate) fn from_coded(coded: u32) -> Option<Self> {
        let row = coded >> 2;
        match coded & 3 {
            0 => Some(TypeToken::Def(row)),
            1 => Some(TypeToken::Ref(row)),
            2 => Some(TypeToken::Spec(row)),
            _ => None,
        }
    }

    /// The token in its full form, table in the high byte.
    pub(crate) fn token(self) -> u32 {
        match self {
            TypeToken::Def(row) => 0x0200_0000 | row,
            TypeToken::Ref(row) => 0x0100_0000 | row,
            TypeToken::Spec(row) => 0x1B00_0000 | row,
        }
    }
}

/// What a member reference hangs on (II.22.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberParent {
    Type(TypeToken),
    Module,
    Method(u32),
}

impl<'d> Metadata<'d> {
    /// Appends a type's full name: `Namespace.Outer+Inner`, with the characters that have a meaning in type names
    /// escaped as the runtime does. `None` (and nothing appended) when a row is missing, the nesting is a loop, or the name is absurdly
    /// long.
    pub(crate) fn push_type_name(&self, token: TypeToken, out: &mut String) -> Option<()> {
        let (mut chain, mut len) = (Vec::new(), 0);
        let mut next = Some(token);
        while let Some(token) = next {
            let (namespace, name) = self.type_parts(token)?;
            len += namespace.len() + name.len();
            if chain.len() == MAX_NESTING || len > MAX_TYPE_NAME {
                return None;
            }
            chain.push((namespace, name));
            next = self.enclosing(token);
        }
        let mut separator = "";
        for (namespace, name) in chain.into_iter().rev() {
            out.push_str(separator);
            if !namespace.is_empty() {
                push_escaped(namespace, out);
                out.push('.');
            }
            push_escaped(name, out);
            separator = "+";
        }
        Some(())
    }

    /// Namespace and name of a type, without the types around it.
    pub(crate) fn type_parts(&self, token: TypeToken) -> Option<(&'d str, &'d str)> {
        let (table, row) = match token {
            TypeToken::Def(row) => (Table::TypeDef, row),
            TypeToken::Ref(row) => (Table::TypeRef, row),
            TypeToken::Spec(_) => return None,
        };
        let name = self.string(self.tables.cell(table, row, 1)?)?;
        let namespace = self.string(self.tables.cell(table, row, 2)?)?;
        Some((namespace, name))
    }

    fn enclosing(&self, token: TypeToken) -> Option<TypeToken> {
        match token {
            TypeToken::Def(row) => {
                let nested = self.tables.last_not_above(Table::NestedClass, 0, row)?;
                if self.tables.cell(Table::NestedClass, nested, 0)? != row {
                    return None;
                }
                Some(TypeToken::Def(self.tables.cell(Table::NestedClass, nested, 1)?))
            }
            // A resolution scope with tag 3 is the type reference around this one.
            TypeToken::Ref(row) => {
                let scope = self.tables.cell(Table::TypeRef, row, 0)?;
                (scope & 3 == 3 && scope >> 2 != 0).then_some(TypeToken::Ref(scope >> 2))
            }
            TypeToken::Spec(_) => None,
        }
    }

    /// The type that defines a method: the last one whose method list starts at or before it (II.22.37).
    pub(crate) fn method_owner(&self, method: u32) -> Option<TypeToken> {
        self.tables.last_not_above(Table::TypeDef, 5, method).map(TypeToken::Def)
    }

    /// Name and signature of a method definition.
    pub(crate) fn method_def(&self, row: u32) -> Option<(&'d str, &'d [u8])> {
        let name = self.string(self.tables.cell(Table::MethodDef, row, 3)?)?;
        let signature = self.blob(self.tables.cell(Table::MethodDef, row, 4)?).unwrap_or_default();
        Some((name, signature))
    }

    /// Parent, name and signature of a member reference.
    pub(crate) fn member_ref(&self, row: u32) -> Option<(MemberParent, &'d str, &'d [u8])> {
        let parent = self.tables.cell(Table::MemberRef, row, 0)?;
        let parent = match (parent & 7, parent >> 3) {
            (0, row) => MemberParent::Type(TypeToken::Def(row)),
            (1, row) => MemberParent::Type(TypeToken::Ref(row)),
            (2, _) => MemberParent::Module,
            (3, row) => MemberParent::Method(row),
            (4, row) => MemberParent::Type(TypeToken::Spec(row)),
            _ => return None,
        };
        let name = self.string(self.tables.cell(Table::MemberRef, row, 1)?)?;
        let signature = self.blob(self.tables.cell(Table::MemberRef, row, 2)?).unwrap_or_default();
        Some((parent, name, signature))
    }

    /// The signature of a type specification.
    pub(crate) fn type_spec(&self, row: u32) -> Option<&'d [u8]> {
        self.blob(self.tables.cell(Table::TypeSpec, row, 0)?)
    }
}

/// The runtime puts a backslash before the characters that type names use as punctuation.
fn push_escaped(name: &str, out: &mut String) {
    for character in name.chars() {
        if matches!(character, ',' | '[' | ']' | '&' | '*' | '+' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
}
