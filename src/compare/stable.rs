//! Names that stay the same from one build to the next.
//!
//! Compilers name what has no name in the source: closures, state machines, local functions. Such a name has its owner's in
//! it, and numbers that count what stands before it in the same file: a line that is added anywhere changes them.

/// What stands behind a marker and is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    /// Numbers, and `_` between them: `3_0`.
    Numbers,
    /// As VB has them: `3-0`.
    Dashed,
    /// Digits up to this character; else nothing is cut.
    Before(char),
    /// The hash of a lambda, of hexadecimal digits, up to `>`; or numbers.
    HashBefore,
    /// A hash of 32 hexadecimal digits or more.
    Hash,
}

/// Behind each of these stands such a number. The first one that fits counts.
const COUNTED: [(&str, Counter); 35] = [
    // C#, as Roslyn's `GeneratedNames` has them: `<Main>b__3_0`, `<Run>d__5`, `<>c__DisplayClass3_0`, `<>c__5` of a generic
    // method, `<>9__3_0`, `<>u__1`, `<>p__0`, `<>o__2`, and types without a name.
    (">b__", Counter::Numbers),
    (">d__", Counter::Numbers),
    ("<>c__DisplayClass", Counter::Numbers),
    ("<>c__", Counter::Numbers),
    (">9__", Counter::Numbers),
    (">u__", Counter::Numbers),
    (">p__", Counter::Numbers),
    (">o__", Counter::Numbers),
    ("<>f__AnonymousType", Counter::Numbers),
    ("<>f__AnonymousDelegate", Counter::Numbers),
    // VB, as Roslyn's `GeneratedNameConstants` has them: `_Lambda$__3-0`, `_Closure$__R3-0`, `VB$StateMachine_4_Load`.
    ("_Lambda$__R", Counter::Dashed),
    ("_Lambda$__", Counter::Dashed),
    ("_Closure$__R", Counter::Dashed),
    ("_Closure$__", Counter::Dashed),
    ("VB$StateMachine_", Counter::Numbers),
    ("VB$AnonymousType_", Counter::Numbers),
    ("VB$AnonymousDelegate_", Counter::Numbers),
    // .NET at run time: compiled expressions and regular expressions, numbered as they are made.
    ("dynamicClass.lambda_method", Counter::Numbers),
    ("dynamicClass.Regex", Counter::Before('_')),
    // Rust: `{closure#0}`, `{impl#3}`; as a PDB has it `closure$0`, `closure_env$0`, `impl$3`, and the same of `async` blocks.
    ("{closure#", Counter::Numbers),
    ("{closure_env#", Counter::Numbers),
    ("{impl#", Counter::Numbers),
    ("{async_block#", Counter::Numbers),
    ("{async_fn#", Counter::Numbers),
    ("closure$", Counter::Numbers),
    ("_env$", Counter::Numbers),
    ("impl$", Counter::Numbers),
    ("async_block$", Counter::Numbers),
    ("async_fn$", Counter::Numbers),
    // C++: `<lambda_1>` of MSVC, also with a hash; `$_0` of Clang, `{lambda(int)#1}` of GCC; copies of functions that GCC and
    // LLVM make: `f.constprop.0`, `f.llvm.123`.
    ("<lambda_", Counter::HashBefore),
    ("lambda_", Counter::Hash),
    ("$_", Counter::Numbers),
    (")#", Counter::Before('}')),
    (".constprop.", Counter::Numbers),
    (".llvm.", Counter::Numbers),
];

/// C# writes `<Main>g__Local|3_0`.
const LOCAL: char = '|';

/// F# writes `name@45-1`, by the line, for a closure: a type, or a method.
const CLOSURE: char = '@';

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
        let counted = COUNTED.iter().find(|(marker, _)| rest.starts_with(*marker));
        if let Some((marker, counter)) = counted {
            text.push_str(marker);
            rest = counter.behind(rest.get(marker.len()..).unwrap_or_default());
        } else if let Some(hash) = rest.strip_prefix(HASH).and_then(|rest| rest.get(..HASH_DIGITS))
            && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            rest = rest.get(HASH.len() + HASH_DIGITS..).unwrap_or_default();
        } else {
            text.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
            if next == LOCAL {
                rest = Counter::Numbers.behind(rest);
            } else if next == CLOSURE {
                rest = behind_line(rest);
            }
        }
    }
    text
}

impl Counter {
    /// What stands behind it in `text`, which begins with it.
    fn behind(self, text: &str) -> &str {
        let without = |is_counted: fn(char) -> bool| text.trim_start_matches(is_counted);
        let numbers = without(|c| c.is_ascii_digit() || c == '_');
        let hash = without(|c| c.is_ascii_hexdigit());
        let digits = without(|c| c.is_ascii_digit());
        match self {
            Counter::Numbers => numbers,
            Counter::Dashed => without(|c| c.is_ascii_digit() || c == '-'),
            Counter::Before(end) => {
                if digits.starts_with(end) {
                    digits
                } else {
                    text
                }
            }
            Counter::HashBefore => {
                if hash.starts_with('>') {
                    hash
                } else {
                    numbers
                }
            }
            // `lambda_caller` is a name.
            Counter::Hash => {
                if text.len() - hash.len() >= 2 * HASH_DIGITS {
                    hash
                } else {
                    text
                }
            }
        }
    }
}

/// What stands behind the line of a closure of F#, and perhaps a number. `_f@8` of C is a name, and nothing follows it.
fn behind_line(text: &str) -> &str {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line = digits(text);
    let behind = text.get(line..).unwrap_or_default();
    let number = behind.strip_prefix('-').map_or(0, digits);
    let end = if number > 0 { line + 1 + number } else { line };
    let rest = text.get(end..).unwrap_or_default();
    if line > 0 && rest.starts_with(['.', '+', '`', '(', '[', '<']) { rest } else { text }
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
            ("run::<lambda_cc9a5ba8>::operator()", "run::<lambda_>::operator()"),
            ("run::lambda_0123456789abcdef0123456789abcdef::operator()", "run::lambda_::operator()"),
            ("main::{lambda(int)#2}::operator()", "main::{lambda(int)#}::operator()"),
            ("<app::{impl#3}>::next", "<app::{impl#}>::next"),
            ("app::run::async_fn_env$0", "app::run::async_fn_env$"),
            ("app::run::async_block$1", "app::run::async_block$"),
            ("copy.constprop.0", "copy.constprop."),
            ("app::step.llvm.1234567890", "app::step.llvm."),
            ("P+<>c__5`1.<Run>b__5_0(int32)", "P+<>c__`1.<Run>b__(int32)"),
            ("<>f__AnonymousType3`2.ToString()", "<>f__AnonymousType`2.ToString()"),
            ("dynamicClass.lambda_method12(Closure)", "dynamicClass.lambda_method(Closure)"),
            ("dynamicClass.Regex7_Scan(class X)", "dynamicClass.Regex_Scan(class X)"),
            ("Program+clo@45-1.Invoke(int32)", "Program+clo@.Invoke(int32)"),
            ("Program.loop@12(int32)", "Program.loop@(int32)"),
            ("P+_Closure$__._Lambda$__3-0(int32)", "P+_Closure$__._Lambda$__(int32)"),
            ("P+_Closure$__12-0._Lambda$__R1(int32)", "P+_Closure$__._Lambda$__R(int32)"),
            ("P+VB$StateMachine_4_Load.MoveNext()", "P+VB$StateMachine_Load.MoveNext()"),
        ] {
            assert_eq!(stable(name), same);
        }
    }

    #[test]
    fn all_else_stays() {
        for name in [
            "md5::h012",
            "lambda_caller",
            "lambda_2",
            "sort_lambda_12",
            "Regex7_Scan",
            "_send@12",
            "a@1",
            "@f@8",
            "f(int)#define",
            "a::hash",
            "x86_64",
            "Add__5",
            "é|ü",
            "operator|",
            "D3DX9_43",
            "",
        ] {
            assert_eq!(stable(name), name);
        }
    }
}
