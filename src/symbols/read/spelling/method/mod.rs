//! What a C# developer would write for a name of the runtime.
//!
//! The runtime names methods as the metadata does, and compilers hide what the developer wrote behind generated types:
//! the body of `async Task Load()` is a method `MoveNext` of a type `Owner+<Load>d__5`. [`readable`] undoes that:
//!
//! | the runtime's | readable |
//! |---|---|
//! | ``System.Collections.Generic.List`1[System.__Canon]`` `Add` | `System.Collections.Generic.List<T>.Add(T)` |
//! | ``System.Collections.Generic.List`1[System.Int32]`` `get_Item` | `System.Collections.Generic.List<int>.Item.get(int)` |
//! | `Shop.Cart+<Load>d__5` `MoveNext` | `Shop.Cart.Load (async)` |
//! | `Shop.Cart+<>c` `<Total>b__3_0` | `Shop.Cart.Total.lambda(Item)` |
//!
//! The choices, and why:
//!
//! - The declaring type keeps its namespace and comes first, also for constructors (`Type.ctor`) and operators, so that
//!   names sort and filter by type. Parameters and type arguments lose theirs.
//! - `System.__Canon`, the code shared by all reference types, reads `T` (`T1`, `T2` by position where a type has
//!   more than one argument): that is the source's own generic code. Other arguments stand as they are. Parameters
//!   of a variable type read `T` and, for a method's own, `U`, also where the argument is known: `Remove(T)` and
//!   `Remove(int)` are two methods of `Bag<int>`.
//! - A name alone does not tell whether its type has overloads of it, or how many lambdas its owner has. So there are
//!   three forms: the bare one ([`Style::BARE`]), the short one with parameters, and the exact one with ordinals and
//!   namespaces (`lambda#3_0`, with the compiler's own numbers). Methods of one image have different exact forms,
//!   unless they differ in nothing but what they return; [`distinct`] takes for each name the first form that no other
//!   method has.

mod generated;
mod member;
mod ngen;
mod raw_name;
mod signature;

mod types;

use std::collections::HashMap;

pub(crate) use ngen::{ngen_definition, ngen_method, ngen_methods_of};
pub use raw_name::RawName;
use signature::Signature;

use types::Render;

/// How much a readable name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether the parameter types stand behind the name; without them overloads read alike.
    pub parameters: bool,
    /// Whether lambdas, local functions and state machines carry the compiler's ordinals, and parameter and argument
    /// types their namespaces.
    pub exact: bool,
}

impl Style {
    /// The name alone.
    pub const BARE: Style = Style { parameters: false, exact: false };
    /// Short types, no ordinals, with parameters.
    pub const SHORT: Style = Style { parameters: true, exact: false };
    /// The form that tells methods apart.
    pub const EXACT: Style = Style { parameters: true, exact: true };
}

/// The name as a C# developer would write it. What does not parse stands as the runtime wrote it.
pub fn readable(name: &RawName, style: Style) -> String {
    let signature = Signature::parse(&name.signature);
    if name.type_name == "dynamicClass" {
        return dynamic(name, signature.as_ref(), style);
    }
    let Some((type_name, arguments)) = types::parse_named(&name.type_name) else {
        return raw(name, style);
    };
    let method_arguments = match name.type_args.as_str() {
        "" => Vec::new(),
        text => match types::parse_arguments(text) {
            Some(arguments) => arguments,
            None => return raw(name, style),
        },
    };
    let arity = types::arity(type_name);
    let method_arity = match (&signature, method_arguments.len()) {
        (Some(signature), 0) => signature.method_variables(),
        (_, count) => count,
    };
    let render = Render { exact: style.exact, arity, method_arity };

    let segments = render.segments(type_name, &arguments);
    let mut out = String::new();
    let owner = generated::push_owner(&segments, &name.method, style.exact, &mut out);
    let member = member::Member { name: &name.method, signature: signature.as_ref(), render: &render };
    let moved = owner.state_machine && name.method == "MoveNext";
    if moved {
        out.push_str(match signature.as_ref().map(Signature::returns) {
            Some("void") => " (async)",
            Some("bool") => " (iterator)",
            _ => " (state machine)",
        });
    } else {
        if owner.state_machine {
            out.push_str(" (state machine)");
        }
        if !out.is_empty() {
            out.push('.');
        }
        generated::push_method(&member, &owner, &segments, &mut out);
    }
    if !method_arguments.is_empty() {
        out.push_str(&render.method_arguments(&method_arguments));
    } else if signature.as_ref().is_some_and(|signature| signature.generic) {
        out.push_str(&render.open_method_arguments());
    }
    push_parameters(name, signature.as_ref(), &render, style, moved, &mut out);
    out
}

impl RawName {
    /// The name as a C# developer would write it; see [`readable`].
    pub fn readable(&self, style: Style) -> String {
        readable(self, style)
    }
}

/// Readable names for many methods at once, in their order: of the forms bare (left out where `parameters` are wanted
/// always), short, exact and raw the first that tells the method from all others. Names of one method
/// ([`RawName::is_same_method`]) get equal results, those of different ones different results.
pub fn distinct<'n>(names: impl IntoIterator<Item = &'n RawName>, parameters: bool) -> Vec<String> {
    let names: Vec<_> = names.into_iter().collect();
    let mut forms = Forms { texts: vec![String::new(); names.len()], names };
    if !parameters {
        forms.lengthen(|name| readable(name, Style::BARE));
    }
    forms.lengthen(|name| readable(name, Style::SHORT));
    forms.lengthen(|name| readable(name, Style::EXACT));
    // Methods that differ in nothing but what they return; the runtime's own signature tells them apart.
    forms.lengthen(|name| format!("{}.{}{} {}", name.type_name, name.method, name.type_args, name.signature));
    forms.texts
}

/// Names on their way to forms that differ.
struct Forms<'n> {
    names: Vec<&'n RawName>,
    texts: Vec<String>,
}

impl Forms<'_> {
    /// Gives a longer form to those that read like another method.
    fn lengthen(&mut self, longer: impl Fn(&RawName) -> String) {
        // By text its method, `None` where several have it.
        let mut owners: HashMap<&str, Option<&RawName>> = HashMap::with_capacity(self.texts.len());
        for (text, name) in self.texts.iter().zip(&self.names) {
            let owner = owners.entry(text).or_insert(Some(name));
            if owner.is_some_and(|owner| !owner.is_same_method(name)) {
                *owner = None;
            }
        }
        let alike = |text: &String| text.is_empty() || owners.get(text.as_str()).is_none_or(Option::is_none);
        let alike: Vec<bool> = self.texts.iter().map(alike).collect();
        for ((text, name), alike) in self.texts.iter_mut().zip(&self.names).zip(alike) {
            if alike {
                *text = longer(name);
            }
        }
    }
}

/// The parameter list of a runtime signature, from its bracket on; empty when there is none.
pub(crate) fn parameters_of(signature: &str) -> &str {
    // Two spaces stand between return type and parameters; a function pointer as return type has brackets too.
    let at = signature.find("  (").map(|at| at + 2).or_else(|| signature.find('('));
    at.and_then(|at| signature.get(at..)).unwrap_or_default()
}

/// The runtime's own form, as far as the style asks for it.
fn raw(name: &RawName, style: Style) -> String {
    let text = name.to_string();
    if style.parameters {
        return text;
    }
    text.strip_suffix(parameters_of(&name.signature)).unwrap_or(&text).to_owned()
}

fn push_parameters(
    name: &RawName,
    signature: Option<&Signature<'_>>,
    render: &Render,
    style: Style,
    moved: bool,
    out: &mut String,
) {
    if !style.parameters {
        return;
    }
    match signature {
        // `MoveNext` has none of its own; its owner's are not known.
        Some(signature) if moved && signature.parameters.is_empty() => {}
        Some(signature) => render.push_parameters(signature, out),
        None => out.push_str(parameters_of(&name.signature)),
    }
}

/// Methods without metadata: the runtime's marshalling stubs, and code made by System.Reflection.Emit and expression
/// trees. Of a stub's target the runtime tells the signature only.
fn dynamic(name: &RawName, signature: Option<&Signature<'_>>, style: Style) -> String {
    let render = Render { exact: style.exact, arity: 0, method_arity: 0 };
    let mut out = String::new();
    if let Some(kind) = name.method.strip_prefix("IL_STUB_") {
        out.push_str(match kind {
            "PInvoke" => "P/Invoke",
            "ReversePInvoke" => "reverse P/Invoke",
            "CLRtoCOM" => "COM call",
            "COMtoCLR" => "COM callback",
            "CLRtoWinRT" => "WinRT call",
            "WinRTtoCLR" => "WinRT callback",
            "StructMarshal" => "struct marshalling",
            "InstantiatingStub" => "instantiating",
            "UnboxingStub" => "unboxing",
            "MulticastDelegate_Invoke" => "multicast delegate",
            kind => kind,
        });
        out.push_str(" stub ");
    } else if let Some((owner, method)) =
        name.method.strip_prefix("InvokeStub_").and_then(|target| target.split_once('.'))
    {
        // Reflection's own thunks name what they call.
        out.push_str("reflection stub ");
        out.push_str(types::split_arity(owner).0);
        out.push('.');
        member::push_name(method, style.exact, &mut out);
        if !style.exact {
            // Its parameters are the thunk's, not the method's.
            return out;
        }
    } else {
        out.push_str("dynamic ");
        out.push_str(&name.method);
    }
    let before = out.len();
    push_parameters(name, signature, &render, style, false, &mut out);
    if out.len() == before {
        out.truncate(out.trim_end().len());
    }
    // All that is known of a stub's target is its signature, so here what it returns tells too.
    let returned = signature.and_then(|signature| signature.returned.as_ref());
    if let (true, true, Some(returned)) = (style.exact, style.parameters, returned) {
        out.push_str(": ");
        render.push(returned, &mut out);
    }
    out
}
