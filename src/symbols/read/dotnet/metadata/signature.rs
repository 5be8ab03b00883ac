//! Signatures (ECMA-335 II.23.2) as text, in the two spellings of the runtime.
//!
//! A signature is a prefix code of element types and tokens. The runtime spells it in two ways, and both are needed
//! to give names equal to those in its events:
//!
//! - [`Spelling::Name`]: as in type names, `System.Int32`, `Outer+Inner[System.__Canon]`, `System.Byte[,]`;
//! - [`Spelling::Il`]: as in MethodSignature, `int32`, ``class Inner`1<!0>``, `unsigned int8[,]`. Nested types stand
//!   without the types around them there.
//!
//! ReadyToRun images write signatures of their own with three more element types: the shared reference type
//! `__Canon`, a type in another module, and a native value type (dotnet/runtime, readytorun-format.md).

use super::super::cursor::Cursor;
use super::Metadata;
use super::names::TypeToken;

/// How deep a type may nest, and how many types one signature may hold: real ones have a few dozen.
const MAX_DEPTH: u32 = 32;
const MAX_TYPES: u32 = 512;

/// How long the text of a name may grow, bytes.
const MAX_TEXT: usize = 16 << 10;

/// How types are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    Name,
    Il,
}

/// The other modules that an image's signatures may name by index.
pub(crate) trait Modules<'d> {
    /// The metadata of a module, when it is at hand.
    fn metadata(&self, index: u32) -> Option<&Metadata<'d>>;
    /// The simple name of a module's assembly.
    fn name(&self, index: u32) -> Option<&'d str>;
}

/// The name of an assembly that the image does not name.
pub(crate) const UNKNOWN: &str = "?";

/// No other modules: the signatures of plain metadata never name one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoModules;

impl<'d> Modules<'d> for NoModules {
    fn metadata(&self, _: u32) -> Option<&Metadata<'d>> {
        None
    }

    fn name(&self, _: u32) -> Option<&'d str> {
        None
    }
}

/// The module that a token of a signature belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a, 'd> {
    Here(&'a Metadata<'d>),
    /// A module whose metadata is not at hand, by its assembly's name.
    Elsewhere(&'d str),
}

impl<'a, 'd> Scope<'a, 'd> {
    pub(crate) fn of(modules: &'a dyn Modules<'d>, index: u32) -> Self {
        Scope::named(modules.metadata(index), modules.name(index).unwrap_or(UNKNOWN))
    }

    /// The assembly of this name, by its metadata where that is at hand.
    pub(crate) fn named(metadata: Option<&'a Metadata<'d>>, assembly: &'d str) -> Self {
        metadata.map_or(Scope::Elsewhere(assembly), Scope::Here)
    }

    /// A type's full name; where the metadata is not at hand, `Assembly!0x02000123`.
    pub(crate) fn push_type(self, token: TypeToken, out: &mut String) -> Option<()> {
        match self {
            Scope::Here(metadata) => metadata.push_type_name(token, out),
            Scope::Elsewhere(assembly) => {
                push_number(out, format_args!("{assembly}!0x{:08X}", token.token()));
                Some(())
            }
        }
    }
}

/// Writes the types of one signature.
pub(crate) struct TypeWriter<'a, 'd> {
    modules: &'a dyn Modules<'d>,
    /// What type arguments fall back to after a type of another module.
    outer: Scope<'a, 'd>,
    spelling: Spelling,
    depth: u32,
    types: u32,
}

impl<'a, 'd> TypeWriter<'a, 'd> {
    pub(crate) fn new(modules: &'a dyn Modules<'d>, outer: Scope<'a, 'd>, spelling: Spelling) -> Self {
        TypeWriter { modules, outer, spelling, depth: 0, types: 0 }
    }

    /// Appends the type at `cursor`. `None`: the signature is cut, malformed, too deep or too long; what was read up
    /// to there is appended.
    pub(crate) fn push_type(&mut self, cursor: &mut Cursor<'d>, out: &mut String) -> Option<()> {
        self.push_in(self.outer, cursor, out)
    }

    fn push_in(&mut self, scope: Scope<'a, 'd>, cursor: &mut Cursor<'d>, out: &mut String) -> Option<()> {
        self.types += 1;
        if self.depth == MAX_DEPTH || self.types > MAX_TYPES || out.len() > MAX_TEXT {
            return None;
        }
        self.depth += 1;
        let done = self.push_element(scope, cursor, out);
        self.depth -= 1;
        done
    }

    fn push_element(
        &mut self,
        scope: Scope<'a, 'd>,
        cursor: &mut Cursor<'d>,
        out: &mut String,
    ) -> Option<()> {
        let il = self.spelling == Spelling::Il;
        let element = cursor.u8()?;
        if let Some((name, word)) = primitive(element) {
            if il {
                out.push_str(word);
            } else {
                out.push_str("System.");
                out.push_str(name);
            }
            return Some(());
        }
        match element {
            // PTR, BYREF
            0x0F | 0x10 => {
                self.push_in(scope, cursor, out)?;
                out.push(if element == 0x0F { '*' } else { '&' });
            }
            // VALUETYPE, CLASS
            0x11 | 0x12 => {
                if il {
                    out.push_str(if element == 0x11 { "value class " } else { "class " });
                }
                let token = TypeToken::from_coded(cursor.compressed()?)?;
                self.push_token(scope, token, out)?;
            }
            // VAR, MVAR
            0x13 | 0x1E => {
                let mark = if element == 0x13 { "!" } else { "!!" };
                push_number(out, format_args!("{mark}{}", cursor.compressed()?));
            }
            // ARRAY
            0x14 => {
                self.push_in(scope, cursor, out)?;
                self.push_array_shape(cursor, out)?;
            }
            // GENERICINST: the type arguments belong to the outer module again.
            0x15 => {
                self.push_in(scope, cursor, out)?;
                let count = cursor.compressed()?;
                self.push_arguments(count, cursor, out)?;
            }
            // FNPTR
            0x1B => self.push_function_pointer(cursor, out)?,
            // SZARRAY
            0x1D => {
                self.push_in(scope, cursor, out)?;
                out.push_str("[]");
            }
            // CMOD_REQD, CMOD_OPT: the runtime's type names leave modifiers out, its signatures keep them.
            0x1F | 0x20 => {
                let token = TypeToken::from_coded(cursor.compressed()?)?;
                if il {
                    out.push_str(if element == 0x1F { "required_modifier " } else { "optional_modifier " });
                    self.push_token(scope, token, out)?;
                    out.push(' ');
                }
                self.push_in(scope, cursor, out)?;
            }
            // PINNED
            0x45 => {
                self.push_in(scope, cursor, out)?;
                if il {
                    out.push_str(" pinned");
                }
            }
            // NATIVE_VALUETYPE_ZAPSIG
            0x3D => {
                out.push_str(if il { "native " } else { "" });
                self.push_in(scope, cursor, out)?;
            }
            // CANON_ZAPSIG
            0x3E => out.push_str(if il { "class System.__Canon" } else { "System.__Canon" }),
            // MODULE_ZAPSIG
            0x3F => {
                let scope = Scope::of(self.modules, cursor.compressed()?);
                self.push_in(scope, cursor, out)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn push_token(&mut self, scope: Scope<'a, 'd>, token: TypeToken, out: &mut String) -> Option<()> {
        match (scope, token, self.spelling) {
            (Scope::Here(metadata), TypeToken::Spec(row), _) => {
                let mut spec = Cursor::new(metadata.type_spec(row)?, 0);
                self.push_in(scope, &mut spec, out)
            }
            (Scope::Here(metadata), _, Spelling::Il) => {
                let (namespace, name) = metadata.type_parts(token)?;
                if !namespace.is_empty() {
                    out.push_str(namespace);
                    out.push('.');
                }
                out.push_str(name);
                Some(())
            }
            _ => scope.push_type(token, out),
        }
    }

    /// `count` types in the brackets of the spelling.
    pub(crate) fn push_arguments(
        &mut self,
        count: u32,
        cursor: &mut Cursor<'d>,
        out: &mut String,
    ) -> Option<()> {
        let (open, close) = if self.spelling == Spelling::Il { ('<', '>') } else { ('[', ']') };
        out.push(open);
        self.push_list(count, cursor, out)?;
        out.push(close);
        Some(())
    }

    fn push_list(&mut self, count: u32, cursor: &mut Cursor<'d>, out: &mut String) -> Option<()> {
        for index in 0..count {
            if index > 0 {
                out.push(',');
            }
            if cursor.peek() == Some(SENTINEL) {
                cursor.u8();
                out.push_str("...,");
            }
            self.push_type(cursor, out)?;
        }
        Some(())
    }

    fn push_array_shape(&mut self, cursor: &mut Cursor<'d>, out: &mut String) -> Option<()> {
        let rank = array_rank(cursor)?;
        out.push('[');
        if rank == 1 && self.spelling == Spelling::Name {
            out.push('*');
        }
        (1..rank).for_each(|_| out.push(','));
        out.push(']');
        Some(())
    }

    fn push_function_pointer(&mut self, cursor: &mut Cursor<'d>, out: &mut String) -> Option<()> {
        let il = self.spelling == Spelling::Il;
        out.push_str(if il { "fnptr " } else { "" });
        self.push_method(cursor, "", out)
    }

    /// A method's signature (II.23.2.1), with `name` between return type and parameters.
    pub(crate) fn push_method(
        &mut self,
        cursor: &mut Cursor<'d>,
        name: &str,
        out: &mut String,
    ) -> Option<()> {
        const HAS_THIS: u32 = 0x20;
        const GENERIC: u32 = 0x10;
        let convention = cursor.compressed()?;
        let il = self.spelling == Spelling::Il;
        if il && convention & HAS_THIS != 0 {
            out.push_str("instance ");
        }
        if convention & GENERIC != 0 {
            cursor.compressed()?;
            out.push_str(if il { "generic " } else { "" });
        }
        if il {
            out.push_str(match convention & 0xF {
                1 => "unmanaged cdecl ",
                2 => "unmanaged stdcall ",
                3 => "unmanaged thiscall ",
                4 => "unmanaged fastcall ",
                5 => "vararg ",
                0xB => "native vararg ",
                _ => "",
            });
        }
        let count = cursor.compressed()?;
        self.push_type(cursor, out)?;
        out.push_str(name);
        out.push('(');
        self.push_list(count, cursor, out)?;
        out.push(')');
        Some(())
    }
}

/// Reads past one type of an image's own signature, without its names.
pub(crate) fn skip_type(cursor: &mut Cursor<'_>) -> Option<()> {
    skip(cursor, 0, &mut 0)
}

fn skip(cursor: &mut Cursor<'_>, depth: u32, types: &mut u32) -> Option<()> {
    *types += 1;
    if depth == MAX_DEPTH || *types > MAX_TYPES {
        return None;
    }
    let element = cursor.u8()?;
    match element {
        // A token, or a variable's number.
        0x11 | 0x12 | 0x13 | 0x1E => {
            cursor.compressed()?;
        }
        // One type inside.
        0x0F | 0x10 | 0x1D | 0x3D | 0x45 | SENTINEL => skip(cursor, depth + 1, types)?,
        // A number, then one type.
        0x1F | 0x20 | 0x3F => {
            cursor.compressed()?;
            skip(cursor, depth + 1, types)?;
        }
        0x14 => {
            skip(cursor, depth + 1, types)?;
            array_rank(cursor)?;
        }
        // The generic type, then its arguments.
        0x15 => {
            skip(cursor, depth + 1, types)?;
            for _ in 0..cursor.compressed()? {
                skip(cursor, depth + 1, types)?;
            }
        }
        // Return type and parameters.
        0x1B => {
            if cursor.u8()? & 0x10 != 0 {
                cursor.compressed()?;
            }
            for _ in 0..=cursor.compressed()? {
                skip(cursor, depth + 1, types)?;
            }
        }
        0x3E => {}
        _ => {
            primitive(element)?;
        }
    }
    Some(())
}

/// Reads an array's shape (II.23.2.13); sizes and bounds are passed over, no language has them.
fn array_rank(cursor: &mut Cursor<'_>) -> Option<u32> {
    let rank = cursor.compressed()?;
    for _list in ["sizes", "lower bounds"] {
        for _ in 0..cursor.compressed()? {
            cursor.compressed()?;
        }
    }
    (1..=32).contains(&rank).then_some(rank)
}

/// Stands before the first of the extra arguments of a vararg call.
const SENTINEL: u8 = 0x41;

/// The types that one byte means: the name in `System`, and the IL-like word.
fn primitive(element: u8) -> Option<(&'static str, &'static str)> {
    Some(match element {
        0x01 => ("Void", "void"),
        0x02 => ("Boolean", "bool"),
        0x03 => ("Char", "wchar"),
        0x04 => ("SByte", "int8"),
        0x05 => ("Byte", "unsigned int8"),
        0x06 => ("Int16", "int16"),
        0x07 => ("UInt16", "unsigned int16"),
        0x08 => ("Int32", "int32"),
        0x09 => ("UInt32", "unsigned int32"),
        0x0A => ("Int64", "int64"),
        0x0B => ("UInt64", "unsigned int64"),
        0x0C => ("Single", "float32"),
        0x0D => ("Double", "float64"),
        0x0E => ("String", "class System.String"),
        0x16 => ("TypedReference", "refany"),
        0x18 => ("IntPtr", "int"),
        0x19 => ("UIntPtr", "unsigned int"),
        0x1C => ("Object", "class System.Object"),
        _ => return None,
    })
}

fn push_number(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = std::fmt::Write::write_fmt(out, text);
}
