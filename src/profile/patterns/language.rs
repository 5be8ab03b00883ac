//! One item of a list: from PerfView's language to a regular expression.

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::recipe::PatternCause;

/// An item's pattern. It matches anywhere in a name, whatever the case.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// The regular expression's groups in .NET's order: those without a name come first.
    groups: Vec<usize>,
}

/// The match took more steps than are allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct GaveUp;

/// Steps back in one name. Only lookaround and backreferences take any.
const MOST_STEPS: usize = 100_000;

/// What `%` stands for. .NET's `\w` has fewer characters than Unicode's, and none beyond the first 65,536. It has both cases
/// of each, and looking for more would take most of the time.
const WORD: &str = r"(?-i:[.?[\p{L}\p{Mn}\p{Nd}\p{Pc}&&[\x00-\u{FFFF}]]]*)";

impl Pattern {
    /// Reads an item's pattern. After `@` it is a regular expression as it stands.
    pub(super) fn new(item: &str) -> Result<Pattern, PatternCause> {
        let text = match item.strip_prefix('@') {
            Some(raw) => as_it_stands(raw)?.to_owned(),
            None => translated(item)?,
        };
        let regex = RegexBuilder::new(&text).case_insensitive(true).backtrack_limit(MOST_STEPS).build();
        let regex = regex.map_err(|error| PatternCause::Regex(error.to_string()))?;
        if regex.capture_names().flatten().any(|name| name.contains('-')) {
            return Err(PatternCause::Balancing);
        }
        let is_named: Vec<bool> = regex.capture_names().map(|name| name.is_some()).collect();
        let of = |named| (0..).zip(&is_named).filter(move |(_, is)| **is == named).map(|(group, _)| group);
        let groups = of(false).chain(of(true)).collect();
        Ok(Pattern { regex, groups })
    }

    pub(super) fn is_match(&self, name: &str) -> Result<bool, GaveUp> {
        self.regex.is_match(name).map_err(|_| GaveUp)
    }

    /// `template` with what the pattern matched of `name`; `None` without a match.
    pub(super) fn expand(&self, template: &str, name: &str) -> Result<Option<String>, GaveUp> {
        if !template.contains('$') {
            return Ok(self.is_match(name)?.then(|| template.to_owned()));
        }
        let captures = self.regex.captures(name).map_err(|_| GaveUp)?;
        Ok(captures.map(|captures| self.filled(template, &captures)))
    }

    fn filled(&self, template: &str, captures: &Captures<'_, str>) -> String {
        let mut parts = template.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let mut rest = part.chars();
            let group = match rest.next() {
                Some('&') => Some(0),
                Some(digit) => digit.to_digit(10).map(|digit| digit as usize),
                None => None,
            };
            match group {
                Some(group) => {
                    let group = self.groups.get(group).and_then(|group| captures.get(*group));
                    filled.push_str(group.map_or("", |group| group.as_str()));
                    filled.push_str(rest.as_str());
                }
                None => {
                    filled.push('$');
                    filled.push_str(part);
                }
            }
        }
        filled
    }
}

/// PerfView's language as a regular expression. All is literal but `%`, `*`, `^`, `|`, `{` and `}`.
fn translated(item: &str) -> Result<String, PatternCause> {
    let mut regex = String::new();
    let mut open = 0usize;
    for c in item.chars() {
        match c {
            '%' => regex.push_str(WORD),
            '*' => regex.push_str(".*"),
            '^' | '|' => regex.push(c),
            '{' => {
                open += 1;
                regex.push('(');
            }
            '}' => {
                open = open.checked_sub(1).ok_or(PatternCause::Unopened)?;
                regex.push(')');
            }
            c => regex.push_str(&fancy_regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    if open > 0 {
        return Err(PatternCause::Unclosed);
    }
    Ok(regex)
}

/// Rejects what .NET and the engine here would both take, each in its own way: sets within sets.
fn as_it_stands(raw: &str) -> Result<&str, PatternCause> {
    let mut chars = raw.chars().peekable();
    let mut in_set = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' if in_set => return Err(PatternCause::Set("[")),
            '[' => {
                in_set = true;
                chars.next_if_eq(&'^');
                // A set begins with its first character, even if that is the one that ends sets.
                chars.next_if_eq(&']');
            }
            ']' => in_set = false,
            '&' if in_set && chars.next_if_eq(&'&').is_some() => return Err(PatternCause::Set("&&")),
            '-' if in_set && chars.next_if_eq(&'-').is_some() => return Err(PatternCause::Set("--")),
            '~' if in_set && chars.next_if_eq(&'~').is_some() => return Err(PatternCause::Set("~~")),
            _ => {}
        }
    }
    Ok(raw)
}
