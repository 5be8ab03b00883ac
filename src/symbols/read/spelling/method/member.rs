//! Method names: constructors, operators, accessors, explicit implementations.

use super::signature::Signature;
use super::types::{Render, split_namespace};

/// A method's name with what its spelling depends on.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) signature: Option<&'a Signature<'a>>,
    pub(super) render: &'a Render,
}

impl Member<'_> {
    /// Appends the method's own name; `type_name` is the declaring type's, without arguments.
    pub(super) fn push(&self, type_name: &str, out: &mut String) {
        let takes_nothing = self.signature.is_none_or(|signature| signature.parameters.is_empty());
        if self.name == "Finalize" && takes_nothing && !type_name.is_empty() {
            out.push('~');
            out.push_str(type_name);
            return;
        }
        if let Some(word) = conversion(self.name)
            && let Some(returned) = self.signature.and_then(|signature| signature.returned.as_ref())
        {
            // Conversions overload by what they return.
            out.push_str(word);
            out.push(' ');
            self.render.push(returned, out);
            return;
        }
        push_name(self.name, self.render.exact, out);
    }
}

/// Appends a method's name where nothing else is known about it.
pub(super) fn push_name(name: &str, exact: bool, out: &mut String) {
    match name {
        ".ctor" => return out.push_str("ctor"),
        ".cctor" => return out.push_str("cctor"),
        // A method that really has such a name gets C#'s mark for names that are keywords.
        "ctor" | "cctor" => {
            out.push('@');
            return out.push_str(name);
        }
        _ => {}
    }
    if let Some(operator) = operator(name) {
        out.push_str("operator ");
        return out.push_str(operator);
    }
    // An explicit implementation carries its interface's full name: `System.IDisposable.Dispose`.
    let (interface, method) = split_namespace(name);
    if !interface.is_empty() && !method.is_empty() {
        if exact {
            out.push_str(interface);
        } else {
            push_short(interface, out);
        }
        return push_name(method, exact, out);
    }
    for (prefix, accessor) in [("get_", ".get"), ("set_", ".set"), ("add_", ".add"), ("remove_", ".remove")] {
        if let Some(property) = name.strip_prefix(prefix).filter(|property| !property.is_empty()) {
            out.push_str(property);
            return out.push_str(accessor);
        }
    }
    out.push_str(name);
}

/// Appends an interface's name and dot without namespaces, also in its type arguments: each run of dotted names keeps
/// its last.
fn push_short(interface: &str, out: &mut String) {
    let interface = interface.strip_suffix('.').unwrap_or(interface);
    let part_of_name =
        |character: char| !matches!(character, '<' | '>' | ',' | '(' | ')' | '[' | ']' | ' ' | '&' | '*');
    let mut rest = interface;
    while !rest.is_empty() {
        let len = rest.find(|character| !part_of_name(character)).unwrap_or(rest.len());
        let (run, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        out.push_str(run.rsplit(['.', ':']).next().unwrap_or(run));
        let mut characters = after.chars();
        match characters.next() {
            Some(',') => out.push_str(", "),
            Some(other) => out.push(other),
            None => {}
        }
        rest = characters.as_str();
    }
    out.push('.');
}

fn conversion(name: &str) -> Option<&'static str> {
    match name {
        "op_Implicit" => Some("implicit operator"),
        "op_Explicit" => Some("explicit operator"),
        "op_CheckedExplicit" => Some("explicit operator checked"),
        _ => None,
    }
}

/// The operators by their metadata names (ECMA-335 I.10.3).
fn operator(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("op_")? {
        // Conversions whose target is not known.
        "Implicit" => "implicit",
        "Explicit" => "explicit",
        "CheckedExplicit" => "checked explicit",
        "Addition" => "+",
        "Subtraction" => "-",
        "Multiply" => "*",
        "Division" => "/",
        "Modulus" => "%",
        "BitwiseAnd" => "&",
        "BitwiseOr" => "|",
        "ExclusiveOr" => "^",
        "LeftShift" => "<<",
        "RightShift" => ">>",
        "UnsignedRightShift" => ">>>",
        "Equality" => "==",
        "Inequality" => "!=",
        "LessThan" => "<",
        "GreaterThan" => ">",
        "LessThanOrEqual" => "<=",
        "GreaterThanOrEqual" => ">=",
        "UnaryPlus" => "unary +",
        "UnaryNegation" => "unary -",
        "LogicalNot" => "!",
        "OnesComplement" => "~",
        "Increment" => "++",
        "Decrement" => "--",
        "True" => "true",
        "False" => "false",
        "CheckedAddition" => "checked +",
        "CheckedSubtraction" => "checked -",
        "CheckedMultiply" => "checked *",
        "CheckedDivision" => "checked /",
        "CheckedUnaryNegation" => "checked unary -",
        "CheckedIncrement" => "checked ++",
        "CheckedDecrement" => "checked --",
        _ => return None,
    })
}
