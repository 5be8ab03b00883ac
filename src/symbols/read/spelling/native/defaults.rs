//! What the standard libraries fill in, and what they call it.

/// A template without the arguments that it has by default.
pub(super) struct Folded<'a> {
    pub(super) shown: String,
    pub(super) args: Option<&'a [String]>,
}

/// Templates, and the defaults of their last arguments: `$0` is the first argument, `#0` the same and constant.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("alloc::boxed::Box", &["", "alloc::alloc::Global"]),
    ("alloc::rc::Rc", &["", "alloc::alloc::Global"]),
    ("alloc::sync::Arc", &["", "alloc::alloc::Global"]),
    ("alloc::vec::Vec", &["", "alloc::alloc::Global"]),
    ("std::basic_filebuf", STREAM),
    ("std::basic_fstream", STREAM),
    ("std::basic_ifstream", STREAM),
    ("std::basic_ios", STREAM),
    ("std::basic_iostream", STREAM),
    ("std::basic_istream", STREAM),
    ("std::basic_istringstream", STRING),
    ("std::basic_ofstream", STREAM),
    ("std::basic_ostream", STREAM),
    ("std::basic_ostringstream", STRING),
    ("std::basic_regex", &["", "std::regex_traits<$0>"]),
    ("std::basic_streambuf", STREAM),
    ("std::basic_string", STRING),
    ("std::basic_string_view", STREAM),
    ("std::basic_stringbuf", STRING),
    ("std::basic_stringstream", STRING),
    ("std::deque", ALLOCATED),
    ("std::forward_list", ALLOCATED),
    ("std::istreambuf_iterator", STREAM),
    ("std::list", ALLOCATED),
    ("std::map", &["", "", "std::less<$0>", "std::allocator<std::pair<#0, $1>>"]),
    ("std::match_results", &["", "std::allocator<std::sub_match<$0>>"]),
    ("std::money_get", &["", "std::istreambuf_iterator<$0>"]),
    ("std::money_put", &["", "std::ostreambuf_iterator<$0>"]),
    ("std::multimap", &["", "", "std::less<$0>", "std::allocator<std::pair<#0, $1>>"]),
    ("std::multiset", &["", "std::less<$0>", "std::allocator<$0>"]),
    ("std::num_get", &["", "std::istreambuf_iterator<$0>"]),
    ("std::num_put", &["", "std::ostreambuf_iterator<$0>"]),
    ("std::ostreambuf_iterator", STREAM),
    ("std::priority_queue", &["", "std::vector<$0>", "std::less<$0>"]),
    ("std::queue", &["", "std::deque<$0>"]),
    ("std::set", &["", "std::less<$0>", "std::allocator<$0>"]),
    ("std::span", &["", "18446744073709551615"]),
    ("std::stack", &["", "std::deque<$0>"]),
    ("std::time_get", &["", "std::istreambuf_iterator<$0>"]),
    ("std::time_put", &["", "std::ostreambuf_iterator<$0>"]),
    ("std::unique_ptr", &["", "std::default_delete<$0>"]),
    ("std::unordered_map", HASHED_PAIRS),
    ("std::unordered_multimap", HASHED_PAIRS),
    ("std::unordered_multiset", HASHED),
    ("std::unordered_set", HASHED),
    ("std::vector", ALLOCATED),
];

const ALLOCATED: &[&str] = &["", "std::allocator<$0>"];
const STREAM: &[&str] = &["", "std::char_traits<$0>"];
const STRING: &[&str] = &["", "std::char_traits<$0>", "std::allocator<$0>"];
const HASHED: &[&str] = &["", "std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"];
const HASHED_PAIRS: &[&str] =
    &["", "", "std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<#0, $1>>"];

/// Leaves out the arguments of `scope::identifier<args>` that are the defaults, and gives it the name that the
/// library has for the rest: `std::string`.
pub(super) fn fold<'a>(scope: &str, identifier: &str, args: Option<&'a [String]>) -> Folded<'a> {
    let unchanged = Folded { shown: identifier.to_owned(), args };
    let Some(args) = args else { return unchanged };
    let find = |(name, _): &(&str, &[&str])| (*name).cmp(format!("{scope}::{identifier}").as_str());
    let found = if scope.starts_with(['s', 'a']) { DEFAULTS.binary_search_by(find).ok() } else { None };
    let Some((_, defaults)) = found.and_then(|found| DEFAULTS.get(found)) else { return unchanged };
    if args.len() > defaults.len() {
        return unchanged;
    }
    let is_default =
        |(default, arg): (&&str, &String)| !default.is_empty() && expanded(default, args) == *arg;
    let kept = defaults.iter().zip(args).rposition(|pair| !is_default(pair)).map_or(0, |last| last + 1);
    let kept = args.get(..kept).unwrap_or(args);
    match (identifier.strip_prefix("basic_"), kept) {
        (Some(plain), [character]) => match alias(plain, character) {
            Some(shown) => Folded { shown, args: None },
            None => Folded { args: Some(kept), ..unchanged },
        },
        _ => Folded { args: Some(kept), ..unchanged },
    }
}

/// What the library calls `basic_string<wchar_t>`.
fn alias(plain: &str, character: &str) -> Option<String> {
    let prefix = match character {
        "char" => "",
        "wchar_t" => "w",
        "char8_t" => "u8",
        "char16_t" => "u16",
        "char32_t" => "u32",
        _ => return None,
    };
    let has_all = matches!(plain, "string" | "string_view") || matches!(prefix, "" | "w");
    has_all.then(|| format!("{prefix}{plain}"))
}

fn expanded(default: &str, args: &[String]) -> String {
    let mut text = String::new();
    let mut characters = default.chars();
    while let Some(character) = characters.next() {
        if !matches!(character, '$' | '#') {
            text.push(character);
            continue;
        }
        let number = characters.next().and_then(|digit| digit.to_digit(10));
        let arg = number.and_then(|number| args.get(number as usize)).map_or("", String::as_str);
        match character {
            '#' if arg.ends_with('*') => text.extend([arg, " const"]),
            '#' if !arg.starts_with("const ") => text.extend(["const ", arg]),
            _ => text.push_str(arg),
        }
    }
    text
}

/// What Rust's compiler writes as a C++ template because debuggers take it for one.
pub(super) fn rust_type(identifier: &str, args: &[String]) -> Option<String> {
    Some(match (identifier, args) {
        ("ref$", [to]) => format!("&{to}"),
        ("ref_mut$", [to]) => format!("&mut {to}"),
        ("ptr_const$", [to]) => format!("*const {to}"),
        ("ptr_mut$", [to]) => format!("*mut {to}"),
        ("slice2$" | "slice$", [of]) => format!("[{of}]"),
        ("array$", [of, len]) => format!("[{of}; {len}]"),
        ("tuple$", [one]) => format!("({one},)"),
        ("tuple$", all) => format!("({})", all.join(", ")),
        ("dyn$", all) => format!("dyn {}", all.join(" + ")),
        ("enum2$" | "enum$", [of, ..]) => of.clone(),
        ("assoc$", [name, is]) => format!("{name} = {is}"),
        ("str$", []) => "str".to_owned(),
        ("never$", []) => "!".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn templates_are_in_order() {
        assert!(super::DEFAULTS.is_sorted_by_key(|(name, _)| name));
    }
}
