//! Names in narrow columns: what is at their end says most.

use std::borrow::Cow;

use console::{measure_text_width, truncate_str};

use super::text::one_line;

/// `name` on one line in at most so many columns.
///
/// A method stays with its type as long as possible. First the namespaces in front of them go, the outermost first; then
/// the module keeps only its last part, arguments become `…`, the type goes, and the module. At last the begin of the
/// method is cut, and never its end. `…` stands for what is missing:
///
/// ```
/// use etwprof::report::narrow;
///
/// let name = "System.Private.CoreLib!System.IO.FileStream.Write(byte[], int)";
/// assert_eq!(narrow(name, 62), name);
/// assert_eq!(narrow(name, 60), "System.Private.CoreLib!…IO.FileStream.Write(byte[], int)");
/// assert_eq!(narrow(name, 45), "…CoreLib!…IO.FileStream.Write(byte[], int)");
/// assert_eq!(narrow(name, 40), "…CoreLib!…FileStream.Write(byte[], int)");
/// assert_eq!(narrow(name, 30), "…CoreLib!…FileStream.Write(…)");
/// assert_eq!(narrow(name, 20), "…CoreLib!…Write(…)");
/// assert_eq!(narrow(name, 10), "…Write(…)");
/// assert_eq!(narrow(name, 5), "…e(…)");
/// ```
pub fn narrow(name: &str, columns: usize) -> Cow<'_, str> {
    let name = one_line(name);
    if fits(&name, columns) {
        return name;
    }
    let (module, function) = match name.split_once('!') {
        Some((module, function)) => (format!("{module}!"), function),
        None => (String::new(), &*name),
    };
    let last_part = match module.trim_end_matches('!').rsplit_once('.') {
        Some((_, part)) if !part.is_empty() => Some(format!("…{part}!")),
        _ => None,
    };
    let forms = [Function::new(function.to_owned()), Function::new(without_arguments(function))];
    let modules = || [Some(&module), last_part.as_ref()].into_iter().flatten();
    let with_type =
        || forms.iter().find_map(|form| modules().find_map(|module| form.tail(module, 2, columns)));
    let method = || forms.iter().find_map(|form| modules().find_map(|module| form.tail(module, 1, columns)));
    let alone = || forms.iter().find_map(|form| form.tail("…", 1, columns));
    let [_, shortest] = &forms;
    with_type().or_else(method).or_else(alone).unwrap_or_else(|| end(&shortest.text, columns)).into()
}

/// What stands behind the module.
struct Function {
    text: String,
    /// Where its parts begin, the first one too.
    parts: Vec<usize>,
}

impl Function {
    fn new(text: String) -> Function {
        let parts = parts(&text);
        Function { text, parts }
    }

    /// As many of the last parts as fit behind `in_front`, but at least so many of those that there are.
    fn tail(&self, in_front: &str, least: usize, columns: usize) -> Option<String> {
        let free = columns.checked_sub(measure_text_width(in_front))?;
        let tail = |start: &usize| {
            let gap = if *start > 0 && !in_front.ends_with('…') { "…" } else { "" };
            Some(format!("{gap}{}", self.text.get(*start..)?))
        };
        let tails = self.parts.iter().rev().filter_map(tail).take_while(|tail| fits(tail, free));
        let (count, longest) = tails.enumerate().last()?;
        (count + 1 >= least.min(self.parts.len())).then(|| format!("{in_front}{longest}"))
    }
}

fn fits(text: &str, columns: usize) -> bool {
    measure_text_width(text) <= columns
}

/// The end of `text`.
fn end(text: &str, columns: usize) -> String {
    let mut end = String::new();
    let mut free = columns.saturating_sub(1);
    for c in text.chars().rev() {
        let width = measure_text_width(c.encode_utf8(&mut [0; 4]));
        let Some(rest) = free.checked_sub(width) else { break };
        free = rest;
        end.push(c);
    }
    let end: String = end.chars().rev().collect();
    truncate_str(&format!("…{end}"), columns, "").into_owned()
}

/// Where the parts of a qualified name begin, at its start and behind `.` and `::` outside all brackets.
fn parts(function: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut starts = vec![0];
    let mut before = ' ';
    for (at, c) in function.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of `operator->` opens nothing.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // `..ctor` is a constructor, and `...` no name.
            '.' if depth == 0 && before != '.' => starts.push(at + 1),
            ':' if depth == 0 && before == ':' => starts.push(at + 1),
            _ => {}
        }
        before = c;
    }
    starts.retain(|start| *start < function.len());
    starts
}

/// `…` for what stands in `<…>` and `(…)`. A source line at the end stays, and so does all where brackets do not match:
/// `operator <`.
fn without_arguments(function: &str) -> String {
    let is_line = |at: &usize| function.get(*at..).is_some_and(|end| end.matches(')').count() == 1);
    let line = function.rfind(" (").filter(|at| function.ends_with(')') && is_line(at));
    let (named, line) = function.split_at(line.unwrap_or(function.len()));
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in named.chars() {
        // The arrow of `operator->` closes nothing.
        if depth > 0 && (c == ')' || c == '>' && before != '-') {
            depth -= 1;
        }
        match depth {
            0 => text.push(c),
            1 if text.ends_with(before) => text.push('…'),
            _ => {}
        }
        if matches!(c, '<' | '(') {
            depth += 1;
        }
        before = c;
    }
    if depth == 0 { text + line } else { function.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::narrow;
    use console::measure_text_width;

    #[test]
    fn the_method_stays() {
        for (name, columns, narrowed) in [
            ("mscorlib!System.TimeZoneInfo.GetDatePart", 36, "mscorlib!…TimeZoneInfo.GetDatePart"),
            ("mscorlib!System.TimeZoneInfo.GetDatePart", 30, "mscorlib!…GetDatePart"),
            ("mscorlib!System.TimeZoneInfo.GetDatePart", 20, "…GetDatePart"),
            ("mscorlib!System.TimeZoneInfo.GetDatePart", 10, "…tDatePart"),
            ("orders!std::vector<a::b>::push_back(int)", 35, "orders!std::vector<…>::push_back(…)"),
            ("orders!std::vector<a::b>::push_back(int)", 34, "orders!…vector<…>::push_back(…)"),
            ("orders!std::vector<a::b>::push_back(int)", 30, "orders!…push_back(int)"),
            ("coreclr!CallDescrWorkerInternal", 28, "…CallDescrWorkerInternal"),
            ("coreclr!CallDescrWorkerInternal", 20, "…DescrWorkerInternal"),
            ("a!f(unsigned int) (main.cpp:42)", 25, "a!f(…) (main.cpp:42)"),
            ("0x7ff612345678", 8, "…2345678"),
            ("a.b.c.method", 9, "…c.method"),
            ("a.b.c.method", 5, "…thod"),
            ("m!T..ctor(int)", 13, "m!T..ctor(…)"),
            ("m!N.T.operator <(T, T)", 21, "m!…T.operator <(T, T)"),
            ("m!F::operator()(int, int)", 22, "m!F::operator()(…)"),
            ("x", 0, ""),
        ] {
            let is = narrow(name, columns);
            assert!(measure_text_width(&is) <= columns, "{name} in {columns}: {is}");
            assert_eq!(is, narrowed, "{name} in {columns}");
        }
    }

    #[test]
    fn names_of_any_kind_fit() {
        let long = "a.".repeat(1 << 15);
        let open = "<".repeat(1 << 15);
        for name in ["", "!", "m!", "m!.", "::", "日本.語語語語", "a\u{1b}[31m.b", &long, &open] {
            for columns in 0..20 {
                let is = narrow(name, columns);
                assert!(measure_text_width(&is) <= columns, "{name:.20} in {columns}: {is}");
            }
        }
    }
}
