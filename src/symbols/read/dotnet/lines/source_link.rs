//! SourceLink: from a path on the machine that compiled to an address on the web.
//!
//! A JSON object in the PDB, `{"documents": {"C:\\src\\*": "https://example.com/abc/*"}}`. A path that ends with `*` stands
//! for all paths that begin so, and what the `*` stands for goes into the address, with `/` between folders; a path
//! without is that file. Paths compare without regard to case; of several that fit, the longest wins.
//! (dotnet/designs, accepted/2020/diagnostics/source-link.md.)

use std::collections::BTreeMap;

use percent_encoding::utf8_percent_encode;
use serde::Deserialize;

use crate::symbols::url::UNRESERVED;

#[derive(Deserialize)]
struct Json {
    documents: BTreeMap<String, String>,
}

/// One pair of the object. With a `*`, both are in two parts: the path's is at its end.
struct Rule {
    path: String,
    url: (String, Option<String>),
}

/// The pairs, longest path first.
#[derive(Default)]
pub(super) struct SourceLinks {
    rules: Vec<Rule>,
}

impl SourceLinks {
    /// No links where there is no JSON or where it is damaged; a pair that breaks the rules is left out. Hand-written
    /// files are taken as the compilers' own tools do, with a byte order mark and with a comma behind the last pair.
    pub(super) fn parse(json: Option<&[u8]>) -> Self {
        let json = json.unwrap_or_default();
        let json = without_last_commas(json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json));
        let Ok(Json { documents }) = serde_json::from_slice(&json) else { return SourceLinks::default() };
        let mut rules: Vec<_> =
            documents.into_iter().filter_map(|(path, url)| Rule::new(path, url)).collect();
        // An exact path before the pattern of the same length.
        rules.sort_by_key(|rule| std::cmp::Reverse((rule.path.len(), rule.url.1.is_none())));
        SourceLinks { rules }
    }

    pub(super) fn url(&self, file: &str) -> Option<String> {
        self.rules.iter().find_map(|rule| {
            let rest = strip_prefix_ignoring_case(file, &rule.path)?;
            match &rule.url {
                (url, None) => rest.is_empty().then(|| url.clone()),
                (before, Some(after)) => Some(format!("{before}{}{after}", escaped(rest))),
            }
        })
    }
}

impl Rule {
    fn new(path: String, url: String) -> Option<Self> {
        let Some(prefix) = path.strip_suffix('*') else {
            return (!path.contains('*') && !url.contains('*')).then_some(Rule { path, url: (url, None) });
        };
        let (before, after) = url.split_once('*')?;
        let one_each = !prefix.contains('*') && !after.contains('*');
        one_each.then(|| Rule { path: prefix.to_owned(), url: (before.to_owned(), Some(after.to_owned())) })
    }
}

/// JSON as it should be: no comma in front of a closing bracket.
fn without_last_commas(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json {
        match byte {
            b'}' | b']' if !in_string => {
                let end = out.trim_ascii_end().len();
                if end.checked_sub(1).and_then(|last| out.get(last)) == Some(&b',') {
                    out.truncate(end - 1);
                }
            }
            b'"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && byte == b'\\' && !escaped;
        out.push(byte);
    }
    out
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in prefix.chars() {
        let found = rest.next()?;
        if found != wanted && !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    Some(rest.as_str())
}

/// A relative path as part of an address, so that a folder `C#` does not end the address.
fn escaped(path: &str) -> String {
    let parts = path.split(['/', '\\']).map(|part| utf8_percent_encode(part, UNRESERVED).to_string());
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::SourceLinks;

    #[test]
    fn rules_of_the_specification() {
        let json = br#"{"other": [1], "documents": {
            "C:\\src\\*": "https://example.com/all/*?raw",
            "C:\\src\\Foo\\*": "https://example.com/foo/*",
            "c:\\src\\foo\\one.cs": "https://example.com/one",
            "/home/*": "https://example.com/home/*",
            "bad*path\\*": "https://example.com/*",
            "D:\\*": "https://example.com/none",
            "E:\\*": "https://example.com/*/*",
            "F:\\one.cs": "https://example.com/*"
        }}"#;
        let links = SourceLinks::parse(Some(json));
        for (file, url) in [
            (r"C:\src\a.cs", Some("https://example.com/all/a.cs?raw")),
            (r"c:\SRC\Dir\B c#.cs", Some("https://example.com/all/Dir/B%20c%23.cs?raw")),
            (r"C:\src\foo\x.cs", Some("https://example.com/foo/x.cs")),
            (r"C:\src\FOO\ONE.cs", Some("https://example.com/one")),
            (r"C:\src\foo\one.cs2", Some("https://example.com/foo/one.cs2")),
            ("/home/me/\u{e4}.cs", Some("https://example.com/home/me/%C3%A4.cs")),
            (r"C:\sr", None),
            (r"D:\a.cs", None),
            (r"E:\a.cs", None),
            (r"F:\one.cs", None),
            ("bad*path\\a.cs", None),
            ("", None),
        ] {
            assert_eq!(links.url(file).as_deref(), url, "{file}");
        }
    }

    #[test]
    fn last_commas_are_no_damage() {
        let json = br#"{"documents": {"a,}\\": "b", "c\",}*": "d,]*", } ,
        }"#;
        let links = SourceLinks::parse(Some(json));
        assert_eq!(links.url("a,}\\").as_deref(), Some("b"));
        assert_eq!(links.url("c\",}x").as_deref(), Some("d,]x"));
    }

    #[test]
    fn damaged_json_costs_the_links_only() {
        for json in [&b""[..], b"{", b"[]", b"{\"documents\": 5}", b"\xff\xfe", &[b'['; 100_000]] {
            assert_eq!(SourceLinks::parse(Some(json)).url("a"), None);
        }
        let marked = b"\xEF\xBB\xBF{\"documents\": {\"*\": \"x/*\"}}";
        assert_eq!(SourceLinks::parse(Some(marked)).url("a").as_deref(), Some("x/a"));
        assert_eq!(SourceLinks::parse(None).url("a"), None);
    }
}
