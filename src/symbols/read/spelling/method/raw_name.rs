//! A method's name as the runtime writes it.

use std::fmt;

use super::Style;
use crate::trace::code::outer_type;

/// A method's name in the runtime's own form: the strings of a MethodLoadVerbose event.
///
/// The runtime leaves the type arguments of a generic *method* out of its events; an image has them, and they stand
/// here in a field of their own, so that the other three are equal to the event's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawName {
    /// The full type name: ``System.Collections.Generic.List`1+Enumerator[System.__Canon]``; empty for a method of
    /// the module itself. The event's MethodNamespace.
    pub type_name: String,
    /// The method's name in the metadata: `MoveNext`, `.ctor`. The event's MethodName.
    pub method: String,
    /// The method's own type arguments, `[System.Int32,System.__Canon]`, or empty.
    pub type_args: String,
    /// The signature in the runtime's IL-like spelling: `instance void  (int32,class System.String)`. The event's
    /// MethodSignature.
    pub signature: String,
}

impl RawName {
    /// Whether both are names of one method: an event leaves the method's own type arguments out, the PDB of an NGEN
    /// image what it returns, and the image's own tables neither.
    pub fn is_same_method(&self, other: &RawName) -> bool {
        let returns = |name: &RawName| !name.signature.starts_with('(');
        self.type_name == other.type_name
            && self.method == other.method
            && self.shared_type_args() == other.shared_type_args()
            && match returns(self) == returns(other) {
                true => self.signature == other.signature,
                false => self.readable(Style::EXACT) == other.readable(Style::EXACT),
            }
    }

    /// The name of the outermost type, with which every readable form begins, without its arity.
    pub(crate) fn outer_type(&self) -> &str {
        outer_type(&self.type_name)
    }

    /// Bytes of text.
    pub(crate) fn len(&self) -> usize {
        self.type_name.len() + self.method.len() + self.type_args.len() + self.signature.len()
    }

    /// The method's own type arguments, unless they say only that all reference types share the code.
    fn shared_type_args(&self) -> &str {
        if is_shared(&self.type_args) { "" } else { &self.type_args }
    }
}

/// `[System.__Canon,System.__Canon]`: the arguments of code that all reference types share.
fn is_shared(type_args: &str) -> bool {
    let inside = type_args.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    inside.is_some_and(|text| text.split(',').all(|argument| argument == "System.__Canon"))
}

impl fmt::Display for RawName {
    /// `Type.Method[args](params)`: the signature from its parameters on, without the return type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.type_name.is_empty() {
            write!(f, "{}.", self.type_name)?;
        }
        write!(f, "{}{}{}", self.method, self.type_args, super::parameters_of(&self.signature))
    }
}
