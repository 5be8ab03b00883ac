//! The map of docs/architecture.md and the code say the same.
//!
//! A room is a module at the top of the library: a file or a folder in `src`. An arrow goes from a room to each room that
//! its code names. Comments, texts and what is compiled for tests only draw none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A row of the map: the rooms in it, and the rooms that they use.
struct Row {
    rooms: Vec<String>,
    uses: BTreeSet<String>,
    /// It also uses whatever it likes of the ground: all rows above the first that does.
    ground: bool,
}

/// The names in backticks.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn map() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let table = text.lines().skip_while(|line| !line.starts_with("| module |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let uses = names(cells[2]).into_iter().collect();
        Row { rooms: names(cells[1]), uses, ground: cells[2].contains("the ground") }
    };
    rows.map(row).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file, with its path below `src`.
fn files() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(root().join("src")).unwrap().to_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// The room of a file, by its path below `src`.
fn room(path: &Path) -> String {
    Path::new(path.components().next().unwrap().as_os_str())
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// A file as the compiler reads it: code without comments, where each text is a pair of quotes; and the texts.
#[derive(Default)]
struct Source {
    code: String,
    texts: Vec<String>,
}

impl Source {
    fn read(text: &str) -> Source {
        let mut source = Source::default();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let is_word = source.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if rest.starts_with("//") {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            } else if rest.starts_with("/*") {
                rest = &rest[rest.find("*/").map_or(rest.len(), |end| end + 2)..];
            } else if let Some(hashes) = raw(rest).filter(|_| !is_word) {
                let start = rest.find('"').unwrap() + 1;
                let end = format!("\"{}", "#".repeat(hashes));
                let length = rest[start..].find(&end).unwrap_or(rest.len() - start);
                source.text(&rest[start..start + length]);
                rest = &rest[(start + length + end.len()).min(rest.len())..];
            } else if next == '"' {
                let end = closing(&rest[1..]);
                source.text(&rest[1..1 + end]);
                rest = &rest[(end + 2).min(rest.len())..];
            } else if let Some(length) = character(rest) {
                source.code.push_str("' '");
                rest = &rest[length..];
            } else {
                source.code.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        source
    }

    fn text(&mut self, text: &str) {
        self.code.push_str("\"\"");
        self.texts.push(text.to_owned());
    }
}

/// The number of hashes of a raw string that begins here.
fn raw(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Where a string ends whose text begins here.
fn closing(text: &str) -> usize {
    let mut escaped = false;
    text.bytes()
        .position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })
        .unwrap_or(text.len())
}

/// The length of a character literal that begins here; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let after = text.strip_prefix('\'')?;
    let length = match after.strip_prefix('\\') {
        Some(escape) => 2 + escape.char_indices().nth(1)?.0 - 1 + escape[1..].find('\'')? + 1,
        None => after.chars().next()?.len_utf8(),
    };
    after.get(length..)?.starts_with('\'').then_some(length + 2)
}

/// Without what is compiled for tests only.
fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = text;
    // Texts may hold braces, so those are counted in the code alone, line by line.
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        rest = &rest[at + MARK.len()..];
        let mut depth = 0_i32;
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            length += line.len();
            let code = Source::read(line).code;
            depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
            if depth <= 0 && code.trim_end().ends_with(['}', ';']) {
                break;
            }
        }
        rest = &rest[length..];
    }
    out + rest
}

/// Files that only tests see: those that a module names behind `#[cfg(test)]`, and siblings that hold big tests.
fn is_test(path: &Path, files: &[(PathBuf, String)]) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let folder = path.parent().unwrap();
    let declares = |text: &str| text.contains(&format!("#[cfg(test)]\nmod {name};"));
    name.ends_with("_tests")
        || files.iter().any(|(other, text)| {
            (other.parent() == Some(folder) || other.with_extension("") == folder) && declares(text)
        })
}

/// The library's files, as far as the program is made of them.
fn library() -> Vec<(PathBuf, Source)> {
    let files = files();
    let is_program = |path: &Path| path == Path::new("main.rs") || path.starts_with("cli");
    let kept = files.iter().filter(|(path, _)| !is_program(path) && !is_test(path, &files));
    kept.map(|(path, text)| (path.clone(), Source::read(&without_tests(text)))).collect()
}

/// The rooms that code names, by `crate::` or by as many `super::` as lead out of its own.
fn named(path: &Path, code: &str) -> BTreeSet<String> {
    let modules = path.components().count() - usize::from(path.ends_with("mod.rs"));
    let words: String =
        code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ::", "::").replace(":: ", "::");
    let mut found = BTreeSet::new();
    for start in ["crate::".to_owned(), "super::".repeat(modules)] {
        for (at, _) in words.match_indices(&start) {
            let before = &words[..at];
            if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            found.extend(heads(&words[at + start.len()..]));
        }
    }
    found
}

/// The first names of a path or of a list of paths: `a` of `a::b`, `a` and `c` of `{a::b, c}`.
fn heads(text: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(list) = text.strip_prefix('{') else { return vec![name(text)] };
    let mut depth = 0;
    let mut heads = vec![name(list.trim_start())];
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(name(list[at + 1..].trim_start())),
            _ => {}
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

#[test]
fn rooms_use_what_the_map_says_and_nothing_else() {
    let map = map();
    let all: Vec<&String> = map.iter().flat_map(|row| &row.rooms).collect();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, source) in library() {
        let of = arrows.entry(room(&path)).or_default();
        of.extend(
            named(&path, &source.code).into_iter().filter(|to| all.contains(&to) && *to != room(&path)),
        );
    }
    let is_room = |name: &&String| !matches!(name.as_str(), "lib");
    let there: BTreeSet<&String> = arrows.keys().filter(is_room).collect();
    let told: BTreeSet<&String> = all.iter().copied().filter(|name| *name != "cli").collect();
    assert_eq!(there, told, "the rooms of src, and those of the map");

    let ground: BTreeSet<String> =
        map.iter().take_while(|row| !row.ground).flat_map(|row| row.rooms.iter().cloned()).collect();
    let mut above = BTreeSet::new();
    for row in &map {
        for name in row.rooms.iter().filter(|name| *name != "cli") {
            let used = &arrows[name];
            let may = |to: &&String| row.uses.contains(*to) || row.ground && ground.contains(*to);
            let more: Vec<_> = used.iter().filter(|to| !may(to)).collect();
            assert!(more.is_empty(), "{name} uses {more:?}, and docs/architecture.md does not say so");
            let below: Vec<_> = row.uses.difference(&above).collect();
            assert!(below.is_empty(), "{name} may use {below:?}, which does not stand above it");
        }
        let used: BTreeSet<&String> =
            row.rooms.iter().filter_map(|name| arrows.get(name)).flatten().collect();
        let idle: Vec<_> = row.uses.iter().filter(|to| !used.contains(to)).collect();
        assert!(idle.is_empty() || row.rooms == ["cli"], "{:?} may use {idle:?}, and does not", row.rooms);
        above.extend(row.rooms.iter().cloned());
    }
}

#[test]
fn the_library_neither_prints_nor_exits() {
    for (path, source) in library() {
        for word in ["println!", "print!", "eprintln!", "eprint!", "dbg!", "process::exit", "anstream::"] {
            assert!(!source.code.contains(word), "{} has {word}", path.display());
        }
    }
}

/// Rooms that make the texts of the program may name its flags.
#[test]
fn the_library_knows_no_flag() {
    for (path, source) in library().into_iter().filter(|(path, _)| room(path) != "report") {
        for text in source.texts {
            let is_flag = |(at, _): (usize, &str)| {
                text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()) && !text[..at].ends_with('-')
            };
            assert!(!text.match_indices("--").any(is_flag), "{} has {text:?}", path.display());
        }
    }
}

#[test]
fn sources_are_read_as_a_compiler_does() {
    let text = r##"
        //! use crate::nowhere;
        use crate::{etl::Recording, trace::{self, code}, event}; /* crate::hidden */
        let a = "crate::text \" more"; let b = r#"raw "crate::" text"#; let c = '"'; let d = '\''; let e: &'static str;
        #[cfg(test)]
        mod tests { use crate::session; const BRACE: &str = "}"; }
        fn last() -> crate :: guid::Guid { super::sink::run() }
    "##;
    let source = Source::read(&without_tests(text));
    let rooms = |path| named(Path::new(path), &source.code).into_iter().collect::<Vec<_>>();
    assert_eq!(rooms("a.rs"), ["etl", "event", "guid", "sink", "trace"]);
    assert_eq!(rooms("a/b.rs"), ["etl", "event", "guid", "trace"]);
    assert_eq!(source.texts, ["crate::text \\\" more", "raw \"crate::\" text"]);
}
