//! Source files: where the symbols say that they were compiled, or in a folder that the user names.
//!
//! The paths come from symbol files that anyone may have made, and what they name is printed. So they open source files
//! on this machine and nothing else: no device, no share (Windows would log in there), no file of another kind.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use etwprof::report::lines::Source;
use etwprof::symbols::IlPdbReport;
use etwprof::winpath::file_name;

use super::served;
use super::usage::Usage;

/// The endings of source files that a path in symbols may have.
const ENDINGS: [&str; 28] = [
    "asm", "c", "cc", "cpp", "cs", "cshtml", "cxx", "d", "fs", "go", "h", "hh", "hpp", "hxx", "il", "inc",
    "inl", "ipp", "ixx", "js", "m", "mm", "nim", "razor", "rs", "swift", "vb", "zig",
];

/// Larger files are no source, bytes.
const LARGEST: u64 = 32 << 20;

/// So many folders of a path are looked for, from its end.
const DEEPEST: usize = 64;

/// Where source files are looked for.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    folders: &'a [PathBuf],
}

/// The same for some functions, whose PDBs may say where the source lies on the web.
#[derive(Debug)]
pub(super) struct SourcesOf<'a> {
    folders: &'a [PathBuf],
    pdbs: Vec<&'a IlPdbReport>,
}

impl<'a> Sources<'a> {
    /// The folders of `--source`, which must exist.
    pub(super) fn new(folders: &'a [PathBuf]) -> Result<Sources<'a>> {
        match folders.iter().find(|folder| !folder.is_dir()) {
            Some(missing) => bail!(Usage(format!("--source: there is no folder {}", missing.display()))),
            None => Ok(Sources { folders }),
        }
    }

    /// Takes the PDBs of the modules that `functions` (`module!function`) are of.
    pub(super) fn of(&self, functions: &[String], pdbs: &'a [IlPdbReport]) -> SourcesOf<'a> {
        let is_theirs = |pdb: &&IlPdbReport| {
            let name = file_name(&pdb.pdb);
            let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            let modules = functions.iter().filter_map(|function| function.split_once('!'));
            modules.into_iter().any(|(module, _)| module.eq_ignore_ascii_case(name))
        };
        SourcesOf { folders: self.folders, pdbs: pdbs.iter().filter(is_theirs).collect() }
    }
}

impl SourcesOf<'_> {
    /// What is known of a source file.
    pub(super) fn find(&self, path: &str) -> Source {
        let given = self.folders.iter().find_map(|folder| below(folder, path));
        let text =
            given.or_else(|| local(path).filter(|path| served::may_open(path)).and_then(|path| read(&path)));
        Source { text, url: self.pdbs.iter().find_map(|pdb| pdb.source_link(path)) }
    }
}

/// The text of the file in `folder` whose path ends as `path` does, as far as possible.
fn below(folder: &Path, path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split(['\\', '/']).collect();
    // Nothing may lead out of the folder: drives, streams, parents.
    let is_plain = |part: &&&str| !matches!(**part, "" | "." | "..") && !part.contains(':');
    let plain = parts.iter().rev().take_while(is_plain).take(DEEPEST).count();
    let tails = (parts.len() - plain..parts.len()).filter_map(|start| parts.get(start..));
    tails.map(|tail| folder.join(tail.iter().collect::<PathBuf>())).find_map(|path| read(&path))
}

/// A path in symbols that may be opened.
fn local(path: &str) -> Option<PathBuf> {
    let (_, ending) = file_name(path).rsplit_once('.')?;
    let is_source = ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    let is_local = match cfg!(windows) {
        true => matches!(path.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic()),
        false => path.starts_with('/'),
    };
    (is_source && is_local).then(|| PathBuf::from(path))
}

fn read(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    if metadata.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{below, local};

    #[test]
    fn a_file_is_found_by_the_end_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/host")).unwrap();
        fs::write(folder.path().join("src/host/main.cpp"), "\u{feff}deep").unwrap();
        fs::write(folder.path().join("main.cpp"), "flat").unwrap();
        for (path, text) in [
            (r"D:\build\orders\src\host\main.cpp", Some("deep")),
            ("/_/src/host/main.cpp", Some("deep")),
            (r"D:\build\other\main.cpp", Some("flat")),
            (r"C:main.cpp", None),
            (r"D:\build\..\main.cpp", Some("flat")),
            (r"..\..", None),
            (r"D:\build\none.cpp", None),
            ("", None),
        ] {
            assert_eq!(below(folder.path(), path).as_deref(), text, "{path}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret.cs"), "secret").unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        for path in [r"..\secret.cs", "../secret.cs", "a/../../secret.cs", "/../secret.cs"] {
            assert_eq!(below(&inner, path), None, "{path}");
        }
    }

    #[test]
    fn symbols_open_source_files_of_this_machine_only() {
        let own = if cfg!(windows) { r"C:\src\a.cs" } else { "/src/a.cs" };
        assert!(local(own).is_some());
        for path in
            [r"\\server\share\a.cs", r"\\?\C:\a.cs", "a.cs", r"..\a.cs", "", "/etc/passwd", "/src/id_rsa"]
        {
            assert_eq!(local(path), None, "{path}");
        }
    }
}
