//! A method's name as the runtime writes it.

use std::fmt;

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

impl fmt::Display for RawName {
    /// `Type.Method[args](params)`: the signature from its parameters on, without the return type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.type_name.is_empty() {
            write!(f, "{}.", self.type_name)?;
        }
        write!(f, "{}{}{}", self.method, self.type_args, super::names::parameters_of(&self.signature))
    }
}
