//! Names as people give them: exactly, with wildcards, or by a regular expression.

use std::fmt;
use std::str::FromStr;

use fancy_regex::{Regex, RegexBuilder};

/// Decides whether a name is meant. Letters match in either case.
///
/// - `name` is the whole name.
/// - `na*e?` is the whole name too; `*` stands for any characters, `?` for one.
/// - `/na.e$/` is a regular expression, found anywhere in the name.
///
/// ```
/// use etwprof::profile::Matcher;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let get: Matcher = "get*".parse()?;
/// assert!(get.matches("GetDatePart") && !get.matches("TryGet"));
/// assert!(!get.matches_label("mscorlib!System.Get"));
/// assert!(get.matches_label("app!GetDatePart(int)"));
/// assert!(Matcher::parse("app!GetDatePart")?.matches_label("app!GetDatePart(int)"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Matcher {
    text: String,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// In lower case.
    Whole(String),
    /// In lower case.
    Glob(Vec<char>),
    Regex(Regex),
    /// This label and no other.
    Label(String),
    AnyOf(Vec<Matcher>),
}

/// Why a text matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatcherError {
    /// There is no text.
    #[error("the name is empty")]
    Empty,
    /// A `/` begins a regular expression, and none ends it.
    #[error("the regular expression {0} does not end with /")]
    Unclosed(String),
    /// The regular expression is malformed: its text, and what is wrong with it.
    #[error("the regular expression {0} is malformed: {1}")]
    Malformed(String, String),
}

/// Steps back that one search with a regular expression may take; one that needs more finds nothing.
const MOST_STEPS_BACK: usize = 100_000;

/// What the name of an executable may be given without.
const EXE: &str = ".exe";

impl Matcher {
    /// Reads what somebody typed.
    ///
    /// # Errors
    /// [`MatcherError`] where it is empty or a malformed regular expression.
    pub fn parse(text: &str) -> Result<Matcher, MatcherError> {
        let pattern = match text.strip_prefix('/') {
            _ if text.is_empty() => return Err(MatcherError::Empty),
            Some(rest) => {
                let inner = rest.strip_suffix('/').ok_or_else(|| MatcherError::Unclosed(text.to_owned()))?;
                if inner.is_empty() {
                    return Err(MatcherError::Empty);
                }
                let mut builder = RegexBuilder::new(inner);
                let regex = builder.case_insensitive(true).backtrack_limit(MOST_STEPS_BACK).build();
                let malformed =
                    |error: fancy_regex::Error| MatcherError::Malformed(text.to_owned(), error.to_string());
                Pattern::Regex(regex.map_err(malformed)?)
            }
            None if text.contains(['*', '?']) => Pattern::Glob(text.to_lowercase().chars().collect()),
            None => Pattern::Whole(text.to_lowercase()),
        };
        Ok(Matcher { text: text.to_owned(), pattern })
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The one name that matches; `None` for a pattern.
    pub fn literal(&self) -> Option<&str> {
        matches!(self.pattern, Pattern::Whole(_)).then_some(&self.text)
    }

    /// True for a name that is meant.
    pub fn matches(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Whole(whole) => *whole == name.to_lowercase(),
            Pattern::Glob(glob) => glob_matches(glob, &name.to_lowercase().chars().collect::<Vec<char>>()),
            Pattern::Regex(regex) => regex.is_match(name).unwrap_or(false),
            Pattern::Label(label) => label == name,
            Pattern::AnyOf(any) => any.iter().any(|one| one.matches(name)),
        }
    }

    /// What is meant by a name that is to be found among these labels: one that is exactly what was typed, else all that
    /// match; where none does, those that match behind a type or a namespace: `push_back` means `app!Vector::push_back`.
    pub fn among<'l>(&self, labels: impl Iterator<Item = &'l str> + Clone) -> Matcher {
        let mut exact = labels.clone();
        let means = |pattern| Matcher { text: self.text.clone(), pattern };
        if exact.any(|label| label == self.text) {
            return means(Pattern::Label(self.text.clone()));
        }
        let is_regex = matches!(self.pattern, Pattern::Regex(_));
        let mut labels = labels;
        if is_regex || labels.any(|label| self.matches_label(label)) {
            return self.clone();
        }
        let behind = ["*.", "*::"]
            .into_iter()
            .filter_map(|before| Matcher::parse(&format!("{before}{}", self.text)).ok());
        means(Pattern::AnyOf(behind.collect()))
    }

    /// True for an executable that is meant: both may be written with `.exe` or without.
    pub fn matches_executable(&self, name: &str) -> bool {
        let bare = without_ending(name, EXE);
        self.matches(name)
            || self.matches(bare)
            || matches!(&self.pattern, Pattern::Whole(whole) if without_ending(whole, EXE) == bare.to_lowercase())
    }

    /// True for an image that is meant: by its path, its file name, or its file name without the ending.
    pub fn matches_image(&self, path: &str) -> bool {
        let file = crate::winpath::file_name(path);
        let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
        self.matches(path) || self.matches(file) || self.matches(name)
    }

    /// True for the label of a frame that is meant. A name matches the whole label, `module!function`, or the function
    /// alone, with its parameters or without; what marks the function (`~`, a tier, `(shared)`, a line) may be left out.
    /// A regular expression is searched in the whole label.
    pub fn matches_label(&self, label: &str) -> bool {
        if self.matches(label) {
            return true;
        }
        match &self.pattern {
            Pattern::Regex(_) | Pattern::Label(_) => return false,
            Pattern::AnyOf(any) => return any.iter().any(|one| one.matches_label(label)),
            Pattern::Whole(_) | Pattern::Glob(_) => {}
        }
        let (module, function) = match label.split_once('!') {
            Some((module, function)) => (Some(module), function),
            None => (None, label),
        };
        let name = without_marks(function);
        [function, name, without_parameters(name)].into_iter().any(|name| {
            self.matches(name) || module.is_some_and(|module| self.matches(&format!("{module}!{name}")))
        })
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        self.text == other.text
    }
}

impl Eq for Matcher {}

impl FromStr for Matcher {
    type Err = MatcherError;

    fn from_str(text: &str) -> Result<Matcher, MatcherError> {
        Matcher::parse(text)
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `*` stands for any characters, `?` for one. Goes back to the last `*` only: an earlier one need not take more.
fn glob_matches(glob: &[char], name: &[char]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Behind the last `*`, and where what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while let Some(char) = name.get(place) {
        match glob.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, place));
            }
            Some(wanted) if *wanted == '?' || wanted == char => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((behind, end)) = star else { return false };
                star = Some((behind, end + 1));
                (at, place) = (behind, end + 1);
            }
        }
    }
    glob.iter().skip(at).all(|char| *char == '*')
}

/// Without an ASCII ending, in any case.
fn without_ending<'n>(name: &'n str, ending: &str) -> &'n str {
    let split = name.len().checked_sub(ending.len()).and_then(|at| name.split_at_checked(at));
    split.filter(|(_, tail)| tail.eq_ignore_ascii_case(ending)).map_or(name, |(bare, _)| bare)
}

/// The function of `~[Tier1]function (shared) (file.cs:12)`.
fn without_marks(mut function: &str) -> &str {
    function = function.strip_prefix('~').unwrap_or(function);
    if let Some((_, name)) = function.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && !name.is_empty()
    {
        function = name;
    }
    if let Some((name, line)) = function.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("))
        && let Some((_, number)) = line.rsplit_once(':')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        function = name;
    }
    function.strip_suffix(" (shared)").unwrap_or(function)
}

/// `function` of `function(int, T<(a, b)>)`; the same where nothing looks like parameters: `f (catch)`, `operator()`.
fn without_parameters(function: &str) -> &str {
    let mut open = 0_usize;
    let begin = function.ends_with(')').then(|| {
        function.bytes().rposition(|byte| {
            match byte {
                b')' => open += 1,
                b'(' => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0
        })
    });
    let name = begin.flatten().and_then(|begin| function.get(..begin)).unwrap_or(function);
    let is_none = name.is_empty() || name.ends_with(' ') || name.ends_with("operator");
    if is_none { function } else { name }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Matcher, MatcherError};

    fn matcher(text: &str) -> Matcher {
        Matcher::parse(text).unwrap()
    }

    #[test]
    fn names_globs_and_regular_expressions() {
        for (pattern, name, expected) in [
            ("Main", "main", true),
            ("Main", "Main2", false),
            ("ÄB", "äb", true),
            ("m*n", "main", true),
            ("m*n", "mains", false),
            ("*ai*", "main", true),
            ("m??n", "MAIN", true),
            ("m?n", "main", false),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*ab", "aab", true),
            ("f<int*>", "f<int*>", true),
            ("a.c", "abc", false),
            ("/a.c/", "xABCx", true),
            ("/^b/", "abc", false),
            ("/a(?!b)/", "ab", false),
            ("/a(?!b)/", "ac", true),
            ("/a\\/b/", "a/b", true),
        ] {
            assert_eq!(matcher(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_matches_nothing_is_an_error() {
        assert_eq!(Matcher::parse(""), Err(MatcherError::Empty));
        assert_eq!(Matcher::parse("//"), Err(MatcherError::Empty));
        assert_eq!(Matcher::parse("/a"), Err(MatcherError::Unclosed("/a".to_owned())));
        let error = Matcher::parse("/a(/").unwrap_err();
        assert!(matches!(&error, MatcherError::Malformed(text, _) if text == "/a(/"), "{error}");
    }

    #[test]
    fn executables_with_and_without_exe() {
        for (pattern, name, expected) in [
            ("ORDERS", "orders.exe", true),
            ("orders.exe", "Orders.EXE", true),
            ("orders.exe", "orders", true),
            ("System", "System", true),
            ("order", "orders.exe", false),
            ("order*", "orders.exe", true),
            ("*s", "orders.exe", true),
            ("orders.*", "orders.exe", true),
            ("/s$/", "orders.exe", true),
            ("/order/", "orders.exe", true),
            ("é.exe", "É", true),
            ("exe", "a.exe", false),
        ] {
            assert_eq!(matcher(pattern).matches_executable(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn images_by_path_file_or_name() {
        let path = r"C:\Windows\System32\ntdll.dll";
        for (pattern, expected) in [
            ("NTDLL", true),
            ("ntdll.dll", true),
            (r"c:\windows\system32\ntdll.dll", true),
            (r"c:\windows\*", true),
            ("nt*", true),
            ("system32", false),
            ("/system32/", true),
            ("dll", false),
        ] {
            assert_eq!(matcher(pattern).matches_image(path), expected, "{pattern}");
        }
    }

    #[test]
    fn labels_by_function_with_or_without_module_parameters_and_marks() {
        for (pattern, label, expected) in [
            ("Get", "app!Get", true),
            ("app!get", "app!Get", true),
            ("other!Get", "app!Get", false),
            ("app", "app!Get", false),
            ("app!*", "app!Get", true),
            ("app*", "app!Get", true),
            ("Get", "app!Get(int, string)", true),
            ("Get(int, string)", "app!Get(int, string)", true),
            ("Get(int)", "app!Get(int, string)", false),
            ("app!Get", "app!Get(int, string)", true),
            ("Get", "app!Get(Func<(int, T)>)", true),
            ("Get", "app!~Get", true),
            ("app!Get", "app!~[Tier1]Get(int) (shared) (a.cs:12)", true),
            ("~Get", "app!~Get", true),
            ("f", "app!f (catch)", false),
            ("f (catch)", "app!f (catch)", true),
            ("operator", "app!operator()", false),
            ("operator()", "app!operator()", true),
            ("operator()", "app!operator()(int)", true),
            ("ntdll!?", "ntdll!?", true),
            ("0x7ff0", "0x7ff0", true),
            ("[DPC]", "[DPC]", true),
            ("/^app!g/", "app!Get(int)", true),
            ("/^g/", "app!Get(int)", false),
            ("a!b", "m!a!b", true),
            ("(anonymous)", "app!(anonymous)", true),
        ] {
            assert_eq!(matcher(pattern).matches_label(label), expected, "{pattern} {label}");
        }
    }

    #[test]
    fn a_search_that_would_never_end_finds_nothing() {
        let endless = matcher(r"/^(a|a|aa)+$(?<=b)\1/");
        assert!(!endless.matches(&"a".repeat(1 << 16)));
    }

    /// The definition: slow, and obvious.
    fn by_definition(glob: &[char], name: &[char]) -> bool {
        match (glob, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=name.len()).any(|taken| by_definition(rest, &name[taken..])),
            (['?', rest @ ..], [_, name @ ..]) => by_definition(rest, name),
            ([a, rest @ ..], [b, name @ ..]) => a == b && by_definition(rest, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_are_what_they_mean(glob in "[ab*?]{1,8}", name in "[ab]{0,10}") {
            prop_assume!(glob.contains(['*', '?']));
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            prop_assert_eq!(matcher(&glob).matches(&name), by_definition(&chars(&glob), &chars(&name)));
        }

        #[test]
        fn any_text_is_a_matcher_or_an_error(text in "\\PC{0,20}", label in "\\PC{0,40}") {
            if let Ok(matcher) = Matcher::parse(&text) {
                matcher.matches_label(&label);
                matcher.matches_executable(&label);
            }
            if !text.is_empty() && !text.starts_with('/') {
                prop_assert!(matcher(&text).matches_label(&text));
            }
        }
    }
}
