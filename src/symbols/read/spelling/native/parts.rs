//! The parts of a scoped name: `std::vector<int>::push_back`.

use super::defaults::{self, Folded};
use super::text::Text;

/// What a part of a name comes to.
enum Part {
    /// It stands as it is, with what a constructor behind it is compared with.
    Named(Class, String),
    /// It says nothing: a numbered block, an inline namespace.
    Nothing,
    Lambda,
    /// The piece of a function that handles an exception.
    Handler(&'static str),
}

/// A part that may be a class, with constructors.
#[derive(Clone, Debug, Default)]
struct Class {
    identifier: String,
    /// What the identifier reads: `string` for `basic_string<char>`.
    shown: String,
    args: Option<Vec<String>>,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Function,
    /// Among the arguments of a template.
    Argument,
}

/// Namespaces that nobody writes, because the library put them in for its own versions.
const INLINE: [&str; 8] = ["__1", "__2", "__8", "__cxx11", "__ndk1", "__Cr", "_V2", "__fs"];

/// Characters of the number of a lambda, `_1a2b3c4d`, that are enough.
const LAMBDA_NUMBER: usize = 9;

/// What Rust's compiler writes for parts that have no name.
const UNNAMED_IN_RUST: [&str; 9] = [
    "impl",
    "closure",
    "closure_env",
    "async_fn",
    "async_fn_env",
    "async_block",
    "async_block_env",
    "coroutine",
    "coroutine_env",
];

/// Longer ones before those that they begin with.
const OPERATORS: [&str; 40] = [
    "<=>", "<<=", ">>=", "->*", "\"\"", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "+", "-", "*", "/", "%", "&", "|",
    "^", "~", "!", "=", ",",
];

impl<'n> Text<'n> {
    /// The whole of a function's name.
    pub(super) fn function(mut self) -> Option<String> {
        let mut name = self.name(Place::Function)?;
        // ThinLTO makes a function of a file one of the program.
        if !self.rest.strip_prefix(".llvm.").is_some_and(is_number) {
            if !self.rest.is_empty() && !self.rest.starts_with(['.']) && !self.next_is(" [clone ") {
                return None;
            }
            name.push_str(self.rest);
        }
        Some(name)
    }

    /// A name with its scopes.
    pub(super) fn name(&mut self, place: Place) -> Option<String> {
        let mut name = String::new();
        let mut class = Class::default();
        let mut is_lambda = false;
        loop {
            // The body of a lambda is the lambda.
            let is_body =
                is_lambda && self.rest.starts_with("operator()") && !self.rest.starts_with("operator()<");
            if is_body {
                self.eat("operator()");
            } else {
                let part = self.part(&name, &class, place)?;
                is_lambda = matches!(part, Part::Lambda);
                match part {
                    Part::Nothing => {}
                    Part::Named(next, text) => {
                        push(&mut name, &text);
                        class = next;
                    }
                    Part::Lambda => {
                        // Debug information leaves out whose it is.
                        if place == Place::Argument {
                            name.clear();
                        }
                        push(&mut name, "<lambda>");
                        class = Class::default();
                    }
                    Part::Handler(what) => {
                        name.push_str(what);
                        break;
                    }
                }
            }
            if !self.eat("::") {
                break;
            }
            if place == Place::Argument && self.eat("*") {
                name.push_str("::*");
                break;
            }
        }
        Some(name).filter(|name| !name.is_empty())
    }

    fn part(&mut self, scope: &str, class: &Class, place: Place) -> Option<Part> {
        match self.peek()? {
            '`' => self.quoted(scope, place),
            '<' => self.in_angles(scope, place),
            '{' => self.in_braces(),
            '(' => {
                let text = self.group('(', ')').and_then(|len| self.take(len))?;
                text.starts_with("(anonymous ").then(|| unscoped(text))
            }
            _ if self.is_operator() => self.operator(),
            _ => self.identifier(scope, class, place),
        }
    }

    /// `` `anonymous namespace' ``, `` `f'::`2' ``, `` `vftable' ``.
    fn quoted(&mut self, scope: &str, place: Place) -> Option<Part> {
        if self.eat("`anonymous namespace'") || self.eat("`anonymous-namespace'") {
            return Some(unscoped("(anonymous namespace)"));
        }
        if self.eat("`lambda at ") {
            let source = self.take_to("'")?;
            let is_known_by_it = scope.is_empty() && place == Place::Function;
            return Some(if is_known_by_it {
                unscoped(&format!("`lambda at {source}'"))
            } else {
                Part::Lambda
            });
        }
        for what in ["dynamic initializer", "dynamic atexit destructor"] {
            if self.eat(&format!("`{what} for ")) {
                let inner = self.take_to("''")?.get(1..)?;
                let inner =
                    self.within(inner, |inner| inner.name(Place::Function)).unwrap_or(inner.to_owned());
                return Some(unscoped(&format!("`{what} for '{inner}''")));
            }
        }
        // The number of a block in it.
        if let Some(number) = self.rest.strip_prefix('`').and_then(|rest| rest.split_once('\''))
            && is_number(number.0)
            && !scope.is_empty()
        {
            self.rest = number.1;
            return Some(Part::Nothing);
        }
        let quoted = self.group('`', '\'').and_then(|len| self.take(len))?;
        let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
        if self.next_is("::`") {
            let function = self.within(inner, |inner| inner.name(Place::Function))?;
            return Some(unscoped(&function));
        }
        let words = inner.split(' ').map(|word| match word {
            "ctor" => "constructor",
            "dtor" => "destructor",
            word => word,
        });
        let mut text = format!("`{}'", words.collect::<Vec<_>>().join(" "));
        // `{for `A'}`, `{2}`, `vtordisp{-4, 0}'.
        while let Some(more) = match self.peek() {
            Some('{') => self.group('{', '}'),
            Some('`') => self.group('`', '\''),
            _ => None,
        } {
            text.push_str(self.take(more)?);
        }
        Some(unscoped(&text))
    }

    /// `<lambda_1>`, and Rust's `<T as Trait>`.
    fn in_angles(&mut self, scope: &str, place: Place) -> Option<Part> {
        if self.next_is("<lambda_invoker_") || self.next_is("<unnamed-") {
            let inner = self.take_to(">")?;
            return Some(unscoped(&format!("{inner}>")));
        }
        if self.eat("<lambda") {
            let number = self.take_to(">")?;
            if scope.is_empty() && place == Place::Function && number.starts_with('_') {
                // Nothing else says which it is.
                self.eat("::operator()");
                let number = number.get(..LAMBDA_NUMBER).unwrap_or(number);
                return Some(unscoped(&format!("<lambda{number}>")));
            }
            return Some(Part::Lambda);
        }
        let args = self.args()?;
        match args.as_slice() {
            [one] => Some(unscoped(&format!("<{one}>"))),
            _ => None,
        }
    }

    /// `{lambda(int)#1}`, `{closure#0}`, `{{closure}}`, `{impl#3}`.
    fn in_braces(&mut self) -> Option<Part> {
        let text = self.group('{', '}').and_then(|len| self.take(len))?;
        let inner = text.trim_matches(['{', '}']);
        Some(match inner.split(['(', '#']).next() {
            Some("lambda") => Part::Lambda,
            Some(unnamed @ ("closure" | "{closure")) => {
                unscoped(&format!("{{{}}}", unnamed.trim_matches('{')))
            }
            _ => unscoped(text),
        })
    }

    fn is_operator(&self) -> bool {
        self.rest.strip_prefix("operator").is_some_and(|rest| !rest.starts_with(is_of_identifier))
    }

    fn operator(&mut self) -> Option<Part> {
        self.eat("operator");
        // A template of conversions: `operator<A> A*`, in debug information `operator A *`.
        // Nothing is read twice: each level of a nested name would double the work.
        let args = self.group('<', '>').and_then(|len| self.rest.get(len..));
        if let Some(conversion) = args.filter(|rest| self.next_is("<") && rest.starts_with(' ')) {
            self.rest = conversion;
        }
        let text = match self.eat(" ") {
            // A conversion, `new`, `delete`, `co_await`.
            true if !self.next_is("\"\"") => {
                return Some(unscoped(&format!("operator {}", self.nested(Text::ty)?)));
            }
            _ => self.operator_symbol()?,
        };
        let mut text = format!("operator{text}");
        self.drop_blank_before_args();
        if let Some(args) = self.optional_args()? {
            text.push_str(&in_angles(&args));
        }
        Some(unscoped(&text))
    }

    fn operator_symbol(&mut self) -> Option<String> {
        // `operator<<int>` is `operator<` with an argument.
        let is_less = self.rest.strip_prefix("<<").is_some_and(|rest| rest.starts_with(is_of_identifier));
        if is_less {
            return self.take(1).map(str::to_owned);
        }
        let symbol = OPERATORS.iter().find(|symbol| self.next_is(symbol))?;
        self.eat(symbol);
        if *symbol == "\"\"" {
            self.blanks();
            return Some(format!("{symbol}{}", self.take_while(is_of_identifier)));
        }
        Some((*symbol).to_owned())
    }

    fn identifier(&mut self, scope: &str, class: &Class, place: Place) -> Option<Part> {
        let tilde = if self.eat("~") { "~" } else { "" };
        let identifier = self.take_while(is_of_identifier);
        if identifier.is_empty() {
            return None;
        }
        while self.eat("[abi:") {
            self.take_to("]")?;
        }
        let has_more = self.next_is("::");
        let in_std = scope == "std" || scope.starts_with("std::");
        let is_block = identifier.strip_prefix("__l").is_some_and(is_number);
        if has_more && (in_std && INLINE.contains(&identifier) || !scope.is_empty() && is_block) {
            return Some(Part::Nothing);
        }
        if has_more && identifier.trim_start_matches('?').strip_prefix("A0x").is_some_and(is_hash) {
            return Some(unscoped("(anonymous namespace)"));
        }
        if self.next_is("::operator()") && identifier.strip_prefix("lambda_").is_some_and(is_hash) {
            return Some(Part::Lambda);
        }
        if !has_more && place == Place::Function {
            match handler(identifier) {
                Some(("", what)) if !scope.is_empty() => return Some(Part::Handler(what)),
                Some((function, what)) if !function.is_empty() => {
                    return Some(unscoped(&format!("{function}{what}")));
                }
                _ => {}
            }
        }
        if let Some(unnamed) = unnamed_in_rust(identifier) {
            let args = self.optional_args()?;
            return Some(unscoped(&format!(
                "{unnamed}{}",
                args.map(|args| in_angles(&args)).unwrap_or_default()
            )));
        }
        let mut args = self.optional_args()?;
        if identifier.ends_with('$')
            && let Some(text) = defaults::rust_type(identifier, args.as_deref().unwrap_or_default())
        {
            return Some(unscoped(&text));
        }
        let is_structor = identifier == class.identifier;
        if is_structor && args.is_some() && args == class.args {
            args = None;
        }
        let of_constructor = if args.is_none() || is_structor { self.optional_args()? } else { None };
        self.skip_parameters();
        if is_structor {
            let mut text = format!("{tilde}{}", class.shown);
            for args in [args, of_constructor].into_iter().flatten() {
                text.push_str(&in_angles(&args));
            }
            return Some(unscoped(&text));
        }
        let Folded { shown, args: kept } = defaults::fold(scope, identifier, args.as_deref());
        let text = match kept {
            Some(kept) => format!("{tilde}{shown}{}", in_angles(kept)),
            None => format!("{tilde}{shown}"),
        };
        Some(Part::Named(Class { identifier: identifier.to_owned(), shown, args }, text))
    }

    /// Parameters show in the scope of a lambda: `f(int) const::{lambda()#1}`.
    fn skip_parameters(&mut self) {
        if !self.next_is("(") {
            return;
        }
        let Some(len) = self.group('(', ')') else { return };
        let mut behind = self.clone();
        behind.take(len);
        while behind.eat(" const") || behind.eat(" volatile") || behind.eat(" &") || behind.eat("&") {}
        if behind.next_is("::") {
            *self = behind;
        }
    }

    fn drop_blank_before_args(&mut self) {
        if self.next_is(" <") {
            self.eat(" ");
        }
    }

    fn optional_args(&mut self) -> Option<Option<Vec<String>>> {
        if self.next_is("<") { self.args().map(Some) } else { Some(None) }
    }

    /// `<int, char>`.
    pub(super) fn args(&mut self) -> Option<Vec<String>> {
        self.eat("<");
        let mut args = Vec::new();
        loop {
            self.blanks();
            if self.eat(">") {
                return Some(args);
            }
            args.push(self.nested(Text::ty)?);
            self.blanks();
            if !self.eat(",") && !self.next_is(">") {
                return None;
            }
        }
    }
}

/// A part without constructors.
fn unscoped(text: &str) -> Part {
    Part::Named(Class::default(), text.to_owned())
}

fn push(name: &mut String, part: &str) {
    if !name.is_empty() {
        name.push_str("::");
    }
    name.push_str(part);
}

fn in_angles(args: &[String]) -> String {
    format!("<{}>", args.join(", "))
}

/// `f$catch$0` is a piece of `f`; in the scope of `f` it is `catch$0`.
fn handler(identifier: &str) -> Option<(&str, &'static str)> {
    let (start, number) = identifier.rsplit_once('$')?;
    let (function, kind) = start.rsplit_once('$').unwrap_or(("", start));
    let what = match kind {
        "catch" => " (catch)",
        "fin" => " (finally)",
        "filt" => " (filter)",
        "dtor" => " (dtor)",
        _ => return None,
    };
    is_number(number).then_some((function, what))
}

/// `impl$0` is `{impl#0}`; which closure it is, nobody knows by its number.
fn unnamed_in_rust(identifier: &str) -> Option<String> {
    let (what, number) = identifier.split_once('$')?;
    if !is_number(number) || !UNNAMED_IN_RUST.contains(&what) {
        return None;
    }
    Some(if what == "impl" { format!("{{impl#{number}}}") } else { format!("{{{what}}}") })
}

pub(super) fn is_of_identifier(character: char) -> bool {
    character.is_alphanumeric() || "_$@?#".contains(character)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hash(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
