//! What compilers generate for lambdas, local functions, async methods and iterators.
//!
//! Roslyn's forms (dotnet/roslyn, GeneratedNames), M the number of the owner in its type, N the number of the lambda in
//! its owner, K that of a scope:
//!
//! | form | what it is |
//! |---|---|
//! | `<Owner>b__M_N` | a lambda; in a type `<>c`, or in the owner's when it uses `this` only |
//! | `<>c__DisplayClassM_K` | the variables that lambdas share; a lambda there is `<Owner>b__N` |
//! | `<Owner>g__Name\|M_N` | a local function (`\|N` in a display class) |
//! | `<Owner>d__M` | the state machine of an async method or iterator; `<...>d` of a lambda or local function |
//!
//! Visual Basic writes `_Closure$__M-K` and `_Lambda$__M-N`.

use super::member::{Member, push_name};
use super::types::Segment;

/// What the type around a method turned out to be.
#[derive(Debug, Default)]
pub(super) struct Owner {
    /// The method is a part of a state machine, whose name is written already.
    pub(super) state_machine: bool,
    /// The number in the closure's type that was left out.
    scope: Option<String>,
    /// The type arguments of that closure.
    closure_arguments: String,
}

/// A generated method, taken apart.
struct Generated<'a> {
    owner: &'a str,
    /// The local function's name; `None` for a lambda.
    local: Option<&'a str>,
    ordinal: &'a str,
}

impl<'a> Generated<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        if let Some(ordinal) = name.strip_prefix("_Lambda$__") {
            return Some(Generated { owner: "", local: None, ordinal });
        }
        let (owner, rest) = bracketed(name)?;
        if let Some(ordinal) = rest.strip_prefix("b__") {
            return Some(Generated { owner, local: None, ordinal });
        }
        let (local, ordinal) = rest.strip_prefix("g__")?.rsplit_once('|')?;
        Some(Generated { owner, local: Some(local), ordinal })
    }
}

/// The text in the angle brackets that `name` begins with, which may nest, and the rest.
fn bracketed(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            // Also where `name` begins with something else.
            return Some((name.get(1..at)?, name.get(at + 1..)?)).filter(|(owner, _)| !owner.is_empty());
        }
    }
    None
}

/// A state machine's owner and its ordinal.
fn state_machine(name: &str) -> Option<(&str, &str)> {
    let (owner, rest) = bracketed(name)?;
    let ordinal = rest.strip_prefix('d')?;
    let ordinal = if ordinal.is_empty() { "" } else { ordinal.strip_prefix("__")? };
    Some((owner, ordinal))
}

/// The scope number of a closure type: empty for one without.
fn closure(name: &str) -> Option<&str> {
    if name == "<>c" {
        return Some("");
    }
    if let Some(scope) = name.strip_prefix("<>c__DisplayClass") {
        return Some(scope);
    }
    if let Some(scope) = name.strip_prefix("_Closure$__") {
        return Some(scope);
    }
    // `<>c__M` with an arity: lambdas of a generic method, numbered themselves.
    name.strip_prefix("<>c__").filter(|scope| scope.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Appends the type around a method. A closure's type is left out when what is in it names its owner; a state machine's
/// becomes its owner's name.
pub(super) fn push_owner(segments: &[Segment], method: &str, exact: bool, out: &mut String) -> Owner {
    let mut owner = Owner::default();
    for (at, segment) in segments.iter().enumerate() {
        let next = segments.get(at + 1);
        let names_owner = match next {
            Some(next) => {
                state_machine(&next.name).is_some_and(|(inner, _)| Generated::parse(inner).is_some())
            }
            None => Generated::parse(method).is_some(),
        };
        if at > 0
            && names_owner
            && let Some(scope) = closure(&segment.name)
        {
            // The first number is the owner's; the scope's own adds nothing, as lambdas are counted by owner.
            owner.scope = scope.split_once(['_', '-']).map(|(owner, _)| owner.to_owned());
            owner.closure_arguments = segment.arguments.clone();
            continue;
        }
        if at > 0 {
            out.push('.');
        }
        match state_machine(&segment.name).filter(|_| at > 0) {
            Some((inner, ordinal)) => {
                push_method_path(inner, &owner, exact, MAX_NESTING, out);
                push_ordinal(ordinal, exact, out);
                out.push_str(&segment.arguments);
                owner = Owner { state_machine: next.is_none(), ..Owner::default() };
            }
            None => segment.push(out),
        }
    }
    owner
}

/// Appends the method's name after its type.
pub(super) fn push_method(member: &Member<'_>, owner: &Owner, segments: &[Segment], out: &mut String) {
    if Generated::parse(member.name).is_some() {
        push_method_path(member.name, owner, member.render.exact, MAX_NESTING, out);
    } else {
        member.push(segments.last().map_or("", |segment| &segment.name), out);
    }
}

/// Lambdas in lambdas in local functions: a few levels. Text that goes on is left as it is.
const MAX_NESTING: u32 = 16;

/// Appends a method that may be a lambda or a local function of another: `Owner.lambda`, `Owner.Local`.
fn push_method_path(name: &str, owner: &Owner, exact: bool, levels: u32, out: &mut String) {
    let Some(generated) = Generated::parse(name).filter(|_| levels > 0) else {
        // Dots become dashes in the names of types.
        return match name.contains('-') {
            true => push_name(&name.replace('-', "."), exact, out),
            false => push_name(name, exact, out),
        };
    };
    let none = Owner::default();
    if !generated.owner.is_empty() {
        push_method_path(generated.owner, &none, exact, levels - 1, out);
        out.push_str(&owner.closure_arguments);
        out.push('.');
    }
    out.push_str(generated.local.unwrap_or("lambda"));
    let numbered = generated.ordinal.contains(['_', '-']);
    match &owner.scope {
        Some(scope) if !numbered => push_ordinal(&format!("{scope}_{}", generated.ordinal), exact, out),
        _ => push_ordinal(generated.ordinal, exact, out),
    }
}

fn push_ordinal(ordinal: &str, exact: bool, out: &mut String) {
    if exact && !ordinal.is_empty() {
        out.push('#');
        out.push_str(ordinal);
    }
}
