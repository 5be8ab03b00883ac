//! Names that stay the same from one build to the next.
//!
//! Compilers name what has no name in the source: closures, state machines, local functions. Such a name has its owner's in
//! it, and numbers that count what stands before it in the same file: a line that is added anywhere changes them.

/// Behind each of these stands such a number.
const COUNTED: [&str; 14] = [
    // C#: `<Main>b__3_0`, `<Run>d__5`, `<>c__DisplayClass3_0`, `<>9__3_0`, `<>u__1`, `<>p__0`, `<>o__2`.
    ">b__",
    ">d__",
    ">c__DisplayClass",
    ">9__",
    ">u__",
    ">p__",
    ">o__",
    // Rust: `{closure#0}`, as a PDB has it `closure$0`, `closure_env$0`, `impl$3`.
    "{closure#",
    "closure$",
    "closure_env$",
    "impl$",
    // C++: `<lambda_1>` of MSVC, also with a hash, and `$_0` of Clang.
    "<lambda_",
    "lambda_",
    "$_",
];

/// C# writes `<Main>g__Local|3_0`.
const LOCAL: char = '|';

/// The hash behind a Rust function: `::h0123456789abcdef`.
const HASH: &str = "::h";
const HASH_DIGITS: usize = 16;

/// A name without the numbers that compilers count up.
///
/// ```
/// use etwprof::compare::stable;
///
/// assert_eq!(stable("Orders+<>c__DisplayClass3_0.<Load>b__0"), stable("Orders+<>c__DisplayClass4_1.<Load>b__2"));
/// assert_ne!(stable("Orders.<Load>b__0"), stable("Orders.<Save>b__0"));
/// ```
pub fn stable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if let Some(marker) = COUNTED.iter().find(|marker| rest.starts_with(**marker)) {
            text.push_str(marker);
            rest = counted(rest.get(marker.len()..).unwrap_or_default(), marker.ends_with("lambda_"));
        } else if let Some(hash) = rest.strip_prefix(HASH).and_then(|rest| rest.get(..HASH_DIGITS))
            && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            rest = rest.get(HASH.len() + HASH_DIGITS..).unwrap_or_default();
        } else {
            text.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
            if next == LOCAL {
                rest = counted(rest, false);
            }
        }
    }
    text
}

/// What stands behind a number; with `hash`, one of hexadecimal digits.
fn counted(text: &str, hash: bool) -> &str {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    if hash {
        let hash = text.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        // `lambda_caller` is a name.
        if text.len() - hash.len() >= 2 * HASH_DIGITS {
            return hash;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::stable;

    #[test]
    fn numbers_of_compilers_are_gone() {
        for (name, same) in [
            ("Orders.<Load>d__12.MoveNext()", "Orders.<Load>d__.MoveNext()"),
            ("P+<>c.<Main>b__0_1(int32)", "P+<>c.<Main>b__(int32)"),
            ("P.<Main>g__Local|3_0(int32)", "P.<Main>g__Local|(int32)"),
            ("app::main::{closure#3}", "app::main::{closure#}"),
            ("app::main::closure_env$0", "app::main::closure_env$"),
            ("app::impl$3::next", "app::impl$::next"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("<lambda_0123456789abcdef0123456789abcdef>::operator()", "<lambda_>::operator()"),
            ("run::<lambda_2>", "run::<lambda_>"),
        ] {
            assert_eq!(stable(name), same);
        }
    }

    #[test]
    fn all_else_stays() {
        for name in
            ["md5::h012", "lambda_caller", "a::hash", "x86_64", "Add__5", "é|ü", "operator|", "D3DX9_43", ""]
        {
            assert_eq!(stable(name), name);
        }
    }
}
