//! The runtime's IL-like signatures, taken apart: `instance class System.String  (int32,!0[])`.

use super::types::{MAX_DEPTH, Type};

/// A method's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature<'a> {
    /// Whether the method has type parameters of its own.
    pub(super) generic: bool,
    /// `None` where only the parameters are known, as in the PDB of an NGEN image.
    pub(super) returned: Option<Type<'a>>,
    pub(super) parameters: Vec<Type<'a>>,
}

impl<'a> Signature<'a> {
    /// `None` when the text is not such a signature to its end.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut reader = Reader { text };
        reader.word("instance ");
        let generic = reader.word("generic ");
        while CONVENTIONS.iter().any(|word| reader.word(word)) {}
        let returned = if reader.peek() == Some(b'(') { None } else { Some(reader.read(0)?) };
        reader.text = reader.text.trim_start_matches(' ');
        let parameters = reader.list(b'(', b')', 0)?;
        reader.text.is_empty().then_some(Signature { generic, returned, parameters })
    }

    /// How many of the method's type parameters its signature mentions.
    pub(super) fn method_variables(&self) -> usize {
        let mentioned = self.parameters.iter().chain(&self.returned).map(highest_method_variable).max();
        if self.generic { mentioned.unwrap_or(0) } else { 0 }
    }

    /// The return type where it is a plain word: `void`, `bool`.
    pub(super) fn returns(&self) -> &'a str {
        match self.returned {
            Some(Type::Named { name: "System.Void", .. }) => "void",
            Some(Type::Named { name: "System.Boolean", .. }) => "bool",
            _ => "",
        }
    }
}

/// One more than the highest `!!n` in a type.
fn highest_method_variable(of: &Type<'_>) -> usize {
    match of {
        Type::MethodVariable(at) => at + 1,
        Type::Named { arguments, .. } => arguments.iter().map(highest_method_variable).max().unwrap_or(0),
        Type::Array(inner, _)
        | Type::Pointer(inner)
        | Type::Reference(inner)
        | Type::Modified { inner, .. } => highest_method_variable(inner),
        Type::Function { returned, parameters } => {
            let parameters = parameters.iter().map(highest_method_variable).max().unwrap_or(0);
            parameters.max(highest_method_variable(returned))
        }
        Type::Variable(_) | Type::Text(_) => 0,
    }
}

/// Calling conventions, as words before the return type.
const CONVENTIONS: [&str; 6] = [
    "unmanaged cdecl ",
    "unmanaged stdcall ",
    "unmanaged thiscall ",
    "unmanaged fastcall ",
    "native vararg ",
    "vararg ",
];

/// Words that are types, longer before their own beginnings.
const WORDS: [(&str, &str); 16] = [
    ("unsigned int16", "System.UInt16"),
    ("unsigned int32", "System.UInt32"),
    ("unsigned int64", "System.UInt64"),
    ("unsigned int8", "System.Byte"),
    ("unsigned int", "System.UIntPtr"),
    ("float32", "System.Single"),
    ("float64", "System.Double"),
    ("int16", "System.Int16"),
    ("int32", "System.Int32"),
    ("int64", "System.Int64"),
    ("int8", "System.SByte"),
    ("int", "System.IntPtr"),
    ("void", "System.Void"),
    ("bool", "System.Boolean"),
    ("wchar", "System.Char"),
    ("refany", "System.TypedReference"),
];

/// Reads what is left of the text.
struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.bytes().next()
    }

    fn skip(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.text.split_at_checked(len)?;
        self.text = rest;
        Some(taken)
    }

    fn word(&mut self, word: &str) -> bool {
        let rest = self.text.strip_prefix(word);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn read(&mut self, depth: u32) -> Option<Type<'a>> {
        if depth == MAX_DEPTH {
            return None;
        }
        let mut read = self.stem(depth)?;
        for _ in 0..MAX_DEPTH {
            read = match self.peek() {
                Some(b'*') => Type::Pointer(Box::new(read)),
                Some(b'&') => Type::Reference(Box::new(read)),
                Some(b'[') => {
                    let end = self.text.find(']')?;
                    let shape = self.skip(end)?;
                    Type::Array(Box::new(read), shape.matches(',').count() + 1)
                }
                _ if self.word(" pinned") => continue,
                _ => return Some(read),
            };
            self.skip(1)?;
        }
        None
    }

    fn stem(&mut self, depth: u32) -> Option<Type<'a>> {
        for required in [true, false] {
            if self.word(if required { "required_modifier " } else { "optional_modifier " }) {
                let modifier = self.name()?;
                // A modifier may be a generic type.
                if self.peek() == Some(b'<') {
                    self.list(b'<', b'>', depth + 1)?;
                }
                if !self.word(" ") {
                    return None;
                }
                // Only the type itself is modified: array, pointer and reference signs stand outside.
                let inner = Box::new(self.stem(depth + 1)?);
                return Some(Type::Modified { modifier, required, inner });
            }
        }
        if self.word("value class ") || self.word("class ") || self.word("native value class ") {
            let name = self.name()?;
            let arguments =
                if self.peek() == Some(b'<') { self.list(b'<', b'>', depth + 1)? } else { Vec::new() };
            return Some(Type::Named { name, arguments });
        }
        if self.word("fnptr ") {
            while CONVENTIONS.iter().any(|word| self.word(word)) || self.word("instance ") {}
            let returned = Box::new(self.read(depth + 1)?);
            self.text = self.text.trim_start_matches(' ');
            return Some(Type::Function { returned, parameters: self.list(b'(', b')', depth + 1)? });
        }
        if self.word("!!") {
            return Some(Type::MethodVariable(self.number()?));
        }
        if self.word("!") {
            return Some(Type::Variable(self.number()?));
        }
        // The runtime's pointer to a type without a token.
        if self.text.starts_with("pMT: ") {
            let text = self.text;
            let digits = self.text.get(5..)?.bytes().take_while(u8::is_ascii_hexdigit).count();
            self.skip(5 + digits)?;
            if self.peek() == Some(b'<') {
                self.list(b'<', b'>', depth + 1)?;
            }
            return Some(Type::Text(text.get(..text.len() - self.text.len())?));
        }
        if self.word("...") {
            return Some(Type::Text("..."));
        }
        for (word, name) in WORDS {
            if self.word(word) {
                return Some(Type::Named { name, arguments: Vec::new() });
            }
        }
        None
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.text.bytes().take_while(u8::is_ascii_digit).count();
        self.skip(digits)?.parse().ok().filter(|&number: &usize| number < 1024)
    }

    /// A type's name. A generated one may begin with `<` and hold anything up to its `>`; later a `<` begins the
    /// type arguments.
    fn name(&mut self) -> Option<&'a str> {
        let (mut end, mut depth) = (0, 0usize);
        for (at, byte) in self.text.bytes().enumerate() {
            end = at;
            match byte {
                b'<' if at == 0 || depth > 0 => depth += 1,
                b'>' if depth > 0 => depth -= 1,
                _ if depth > 0 => {}
                b'<' | b'>' | b',' | b'(' | b')' | b'[' | b'*' | b'&' | b' ' => break,
                _ => {}
            }
            end = at + 1;
        }
        self.skip(end).filter(|name| !name.is_empty())
    }

    fn list(&mut self, open: u8, close: u8, depth: u32) -> Option<Vec<Type<'a>>> {
        if self.peek()? != open {
            return None;
        }
        self.skip(1)?;
        let mut types = Vec::new();
        if self.peek()? == close {
            self.skip(1)?;
            return Some(types);
        }
        loop {
            types.push(self.read(depth)?);
            let next = self.peek()?;
            self.skip(1)?;
            if next == close {
                return Some(types);
            }
            if next != b',' {
                return None;
            }
        }
    }
}
