//! Types: the two spellings of the runtime taken apart, and C#'s spelling put together.

use super::generated::push_owner;
use super::signature::Signature;

/// Types nest a handful of levels; text beyond this is left as it is.
pub(super) const MAX_DEPTH: u32 = 32;

/// A type, borrowed from the text it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type<'a> {
    /// A named type with its type arguments. The name has namespace, `+` nesting, arity and escapes as written.
    Named { name: &'a str, arguments: Vec<Type<'a>> },
    /// `!n`, a type parameter of the declaring type.
    Variable(usize),
    /// `!!n`, a type parameter of the method.
    MethodVariable(usize),
    /// An array of so many dimensions.
    Array(Box<Type<'a>>, usize),
    /// `*`
    Pointer(Box<Type<'a>>),
    /// `&`
    Reference(Box<Type<'a>>),
    /// A custom modifier before a type, and whether it is required.
    Modified { modifier: &'a str, required: bool, inner: Box<Type<'a>> },
    /// A function pointer.
    Function { returned: Box<Type<'a>>, parameters: Vec<Type<'a>> },
    /// Something that stands for itself: `...`, `pMT: 00007FF7D2C0FDC8`.
    Text(&'a str),
}

/// How many type parameters a name declares: the numbers behind its back-ticks, nested types together.
pub(super) fn arity(name: &str) -> usize {
    split_nested(name).iter().map(|segment| split_arity(segment).1).sum()
}

/// A name and the arity behind its back-tick; 0 without one.
pub(super) fn split_arity(name: &str) -> (&str, usize) {
    let split = name.rsplit_once('`').and_then(|(name, count)| Some((name, count.parse().ok()?)));
    // An arity beyond what any compiler makes is part of the name.
    split.filter(|&(_, count)| count <= 64).unwrap_or((name, 0))
}

/// The parts of a name between its unescaped `+` signs.
fn split_nested(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'+' => {
                parts.extend(name.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(name.get(start..));
    parts
}

/// Namespace with its dot, and name; dots in angle brackets belong to the name.
pub(super) fn split_namespace(name: &str) -> (&str, &str) {
    let mut depth = 0usize;
    let mut split = 0;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            // A name may begin with a dot (`.cctor`); two in a row are namespace's end and such a name.
            b'.' if depth == 0 && at + 1 < name.len() && at >= split && at > 0 => split = at + 1,
            _ => {}
        }
    }
    name.split_at_checked(split).unwrap_or(("", name))
}

/// Reads a whole type name of the reflection form that is no array, pointer or reference:
/// `Ns.Outer+Inner[Argument,Argument]`.
pub(super) fn parse_named(text: &str) -> Option<(&str, Vec<Type<'_>>)> {
    match parse_name(text)? {
        Type::Named { name, arguments } => Some((name, arguments)),
        _ => None,
    }
}

/// Reads a whole type name of the reflection form.
fn parse_name(text: &str) -> Option<Type<'_>> {
    let mut reader = NameReader { text, at: 0 };
    let read = reader.read(0)?;
    (reader.at == text.len()).then_some(read)
}

/// Reads a bracketed list of type names: `[System.Int32,System.__Canon]`.
pub(super) fn parse_arguments(text: &str) -> Option<Vec<Type<'_>>> {
    let mut reader = NameReader { text, at: 0 };
    let arguments = reader.arguments(0)?;
    (reader.at == text.len()).then_some(arguments)
}

/// Reads the reflection form.
struct NameReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> NameReader<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn read(&mut self, depth: u32) -> Option<Type<'a>> {
        if depth == MAX_DEPTH {
            return None;
        }
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 1,
                b'[' | b']' | b',' | b'*' | b'&' => break,
                _ => {}
            }
            self.at += 1;
        }
        let name = self.text.get(start..self.at).filter(|name| !name.is_empty())?;
        let generic = self.peek(0) == Some(b'[') && !matches!(self.peek(1), Some(b']' | b',' | b'*') | None);
        let arguments = if generic { self.arguments(depth + 1)? } else { Vec::new() };
        let mut read = Type::Named { name, arguments };
        for _ in 0..MAX_DEPTH {
            match self.peek(0) {
                Some(b'*') => read = Type::Pointer(Box::new(read)),
                Some(b'&') => read = Type::Reference(Box::new(read)),
                Some(b'[') => {
                    let commas =
                        self.text.get(self.at + 1..)?.bytes().take_while(|&byte| byte == b',').count();
                    self.at += 1 + commas;
                    if commas == 0 && self.peek(0) == Some(b'*') {
                        self.at += 1;
                    }
                    if self.peek(0) != Some(b']') {
                        return None;
                    }
                    read = Type::Array(Box::new(read), commas + 1);
                }
                _ => return Some(read),
            }
            self.at += 1;
        }
        None
    }

    fn arguments(&mut self, depth: u32) -> Option<Vec<Type<'a>>> {
        if self.peek(0) != Some(b'[') {
            return None;
        }
        let mut arguments = Vec::new();
        loop {
            self.at += 1;
            arguments.push(self.read(depth)?);
            match self.peek(0)? {
                b',' => {}
                b']' => {
                    self.at += 1;
                    return Some(arguments);
                }
                _ => return None,
            }
        }
    }
}

/// One part of a nested type's name, arguments in C#'s spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// With the namespace's dot; only the first segment has one.
    pub(super) namespace: String,
    /// Without arity.
    pub(super) name: String,
    /// `<int, T>`, or empty.
    pub(super) arguments: String,
}

impl Segment {
    /// Name and arguments, after the namespace.
    pub(super) fn push(&self, out: &mut String) {
        for part in [&self.namespace, &self.name, &self.arguments] {
            out.push_str(part);
        }
    }
}

/// Puts types into C#'s spelling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Render {
    /// Keep the namespaces.
    pub(super) exact: bool,
    /// Type parameters of the declaring type, and of the method.
    pub(super) arity: usize,
    pub(super) method_arity: usize,
}

impl Render {
    /// A nested type's parts, with its arguments spread over them as the parts declare them.
    pub(super) fn segments(&self, name: &str, arguments: &[Type<'_>]) -> Vec<Segment> {
        let rendered: Vec<_> = arguments
            .iter()
            .enumerate()
            .map(|(at, argument)| self.argument(argument, at, arguments.len(), 'T'))
            .collect();
        spread(name, &rendered)
    }

    /// A method's own type arguments: `<U, int>`.
    pub(super) fn method_arguments(&self, arguments: &[Type<'_>]) -> String {
        let rendered = arguments
            .iter()
            .enumerate()
            .map(|(at, argument)| self.argument(argument, at, arguments.len(), 'U'))
            .collect::<Vec<_>>();
        format!("<{}>", rendered.join(", "))
    }

    /// A generic method's type parameters where its arguments are not known.
    pub(super) fn open_method_arguments(&self) -> String {
        let variables: Vec<_> =
            (0..self.method_arity).map(|at| variable('U', at, self.method_arity)).collect();
        format!("<{}>", variables.join(", "))
    }

    /// One of `count` type arguments.
    fn argument(&self, argument: &Type<'_>, at: usize, count: usize, letter: char) -> String {
        match argument {
            Type::Named { name: CANON, .. } => variable(letter, at, count),
            _ => self.text(argument),
        }
    }

    pub(super) fn text(&self, of: &Type<'_>) -> String {
        let mut out = String::new();
        self.push(of, &mut out);
        out
    }

    pub(super) fn push(&self, of: &Type<'_>, out: &mut String) {
        match of {
            Type::Named { name: CANON, .. } => out.push('T'),
            Type::Named { name, arguments } => self.push_named(name, arguments, out),
            Type::Variable(at) => out.push_str(&variable('T', *at, self.arity)),
            Type::MethodVariable(at) => out.push_str(&variable('U', *at, self.method_arity)),
            Type::Array(element, rank) => {
                self.push_element(element, out);
                out.push('[');
                (1..*rank).for_each(|_| out.push(','));
                out.push(']');
            }
            Type::Pointer(target) => {
                self.push_element(target, out);
                out.push('*');
            }
            Type::Reference(target) => {
                let (word, target) = match target.as_ref() {
                    Type::Modified { modifier: IN_MODIFIER, required: true, inner } => {
                        ("in ", inner.as_ref())
                    }
                    Type::Modified { modifier: OUT_MODIFIER, required: true, inner } => {
                        ("out ", inner.as_ref())
                    }
                    target => ("ref ", target),
                };
                out.push_str(word);
                self.push(target, out);
            }
            Type::Modified { modifier, required, inner } => {
                if self.exact {
                    out.push_str(if *required { "modreq(" } else { "modopt(" });
                    out.push_str(modifier);
                    out.push_str(") ");
                }
                self.push(inner, out);
            }
            Type::Function { returned, parameters } => {
                out.push_str("delegate*<");
                for parameter in parameters {
                    self.push(parameter, out);
                    out.push_str(", ");
                }
                self.push(returned, out);
                out.push('>');
            }
            Type::Text("...") => out.push_str("__arglist"),
            // The address of a type that exists in one process only tells nothing but two types apart.
            Type::Text(text) => out.push_str(if self.exact { text } else { "?" }),
        }
    }

    /// An array's or pointer's element. A reference inside stays in the runtime's order: C# has no such type.
    fn push_element(&self, element: &Type<'_>, out: &mut String) {
        match element {
            Type::Reference(target) => {
                self.push(target, out);
                out.push('&');
            }
            element => self.push(element, out),
        }
    }

    fn push_named(&self, name: &str, arguments: &[Type<'_>], out: &mut String) {
        if arguments.is_empty()
            && let Some(word) = name.strip_prefix("System.").and_then(keyword)
        {
            out.push_str(word);
            return;
        }
        match (name, arguments) {
            ("System.Nullable`1", [inner]) => {
                self.push(inner, out);
                out.push('?');
                return;
            }
            // From eight elements on the rest nests in the last.
            (name, [_, _, ..]) if arguments.len() < 8 && name.starts_with("System.ValueTuple`") => {
                self.push_list(arguments, ('(', ')'), out);
                return;
            }
            _ => {}
        }
        let rendered: Vec<_> = arguments.iter().map(|argument| self.text(argument)).collect();
        let mut segments = spread(name, &rendered);
        if let (false, Some(first)) = (self.exact, segments.first_mut()) {
            first.namespace.clear();
        }
        // State machines are type arguments of the async builders: they read as the methods they are.
        let mut text = String::new();
        push_owner(&segments, "", self.exact, &mut text);
        out.push_str(&text);
    }

    pub(super) fn push_parameters(&self, signature: &Signature<'_>, out: &mut String) {
        self.push_list(&signature.parameters, ('(', ')'), out);
    }

    fn push_list(&self, types: &[Type<'_>], (open, close): (char, char), out: &mut String) {
        out.push(open);
        for (at, parameter) in types.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            self.push(parameter, out);
        }
        out.push(close);
    }
}

/// What stands for any reference type in shared code.
const CANON: &str = "System.__Canon";

/// The modifiers that C# writes as `in` and `out` (ECMA-335 has neither).
const IN_MODIFIER: &str = "System.Runtime.InteropServices.InAttribute";
const OUT_MODIFIER: &str = "System.Runtime.InteropServices.OutAttribute";

/// `T` where it is the only one, `T1`, `T2` where there are more.
fn variable(letter: char, at: usize, count: usize) -> String {
    if count == 1 && at == 0 { letter.to_string() } else { format!("{letter}{}", at + 1) }
}

/// Spreads arguments over a nested name's parts. A part without an own arity takes none; what the arities do not
/// account for stands at the last part.
fn spread(name: &str, arguments: &[String]) -> Vec<Segment> {
    let parts = split_nested(name);
    let mut left = arguments;
    let last = parts.len().saturating_sub(1);
    let mut segments = Vec::with_capacity(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        let (part, arity) = split_arity(part);
        let (namespace, part) = if at == 0 { split_namespace(part) } else { ("", part) };
        let (own, rest) = left.split_at_checked(arity).unwrap_or((left, &[]));
        let own = if at == last { left } else { own };
        left = rest;
        let arguments = match own {
            // Open: `List<>`, `Dictionary<,>`.
            [] if arity > 0 => format!("<{}>", ",".repeat(arity - 1)),
            [] => String::new(),
            own => format!("<{}>", own.join(", ")),
        };
        // C#'s anonymous types are numbered; the rest of their name is punctuation.
        let part =
            part.strip_prefix("<>f__").filter(|part| part.starts_with("AnonymousType")).unwrap_or(part);
        segments.push(Segment { namespace: unescape(namespace), name: unescape(part), arguments });
    }
    segments
}

/// Takes the backslashes out that the runtime puts before punctuation.
fn unescape(name: &str) -> String {
    let mut escaped = false;
    name.chars()
        .filter(|&character| {
            escaped = character == '\\' && !escaped;
            !escaped
        })
        .collect()
}

/// C#'s keyword for a type of `System`.
fn keyword(name: &str) -> Option<&'static str> {
    Some(match name {
        "Boolean" => "bool",
        "Byte" => "byte",
        "SByte" => "sbyte",
        "Char" => "char",
        "Decimal" => "decimal",
        "Double" => "double",
        "Single" => "float",
        "Int16" => "short",
        "UInt16" => "ushort",
        "Int32" => "int",
        "UInt32" => "uint",
        "Int64" => "long",
        "UInt64" => "ulong",
        "IntPtr" => "nint",
        "UIntPtr" => "nuint",
        "Object" => "object",
        "String" => "string",
        "Void" => "void",
        _ => return None,
    })
}
