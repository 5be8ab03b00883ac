//! Where the program is that a command line names, when the standard library does not find it.
//!
//! `Command` looks for a name without a folder beside etwprof itself, in the system's folders and along PATH, and adds
//! no ending but `.exe` (documentation of `std::process::Command::new`). A console looks into the current folder first
//! and knows the endings of PATHEXT. What follows comes after the standard library's own search, so it only ever finds
//! more.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What `Command` can start: programs, and scripts by way of cmd.exe, with their arguments escaped or refused.
/// Whatever else PATHEXT may list needs a program of its own.
const STARTABLE: [&str; 4] = [".exe", ".com", ".bat", ".cmd"];

/// Folders and endings to try, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    folders: Vec<PathBuf>,
    endings: Vec<String>,
    /// The current folder is the first of `folders`.
    current: bool,
}

impl Search {
    /// The search for a name without a folder: `current` if it may be looked into, then PATH, with the endings of
    /// PATHEXT, `.exe` first.
    pub fn new(current: Option<PathBuf>, path: &OsStr, endings: &str) -> Search {
        let is_startable = |ending: &String| STARTABLE.contains(&ending.as_str());
        let listed = endings.split(';').map(|ending| ending.trim().to_ascii_lowercase()).filter(is_startable);
        let mut all = vec![".exe".to_owned()];
        for ending in listed {
            if !all.contains(&ending) {
                all.push(ending);
            }
        }
        let of_path = std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty());
        Search {
            current: current.is_some(),
            folders: current.into_iter().chain(of_path).collect(),
            endings: all,
        }
    }

    /// The search in this process's environment.
    pub fn of_environment() -> Search {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        // The variable by which cmd.exe is kept from looking there.
        let may_look_here = std::env::var_os("NoDefaultCurrentDirectoryInExePath").is_none();
        let current = may_look_here.then(std::env::current_dir).and_then(Result::ok);
        let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
        Search::new(current, &variable("PATH"), &endings)
    }

    /// The first file that is there.
    pub fn find(&self, program: &OsStr) -> Option<PathBuf> {
        self.candidates(program).into_iter().find(|path| path.is_file())
    }

    /// What is tried for `program`, in this order. Of a name with a folder only the ending is open.
    fn candidates(&self, program: &OsStr) -> Vec<PathBuf> {
        let names = self.names(program);
        if has_folder(program) {
            return names.into_iter().map(PathBuf::from).collect();
        }
        self.folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
    }

    fn names(&self, program: &OsStr) -> Vec<OsString> {
        let ending =
            Path::new(program).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let with = |ending: &String| [program, OsStr::new(ending)].into_iter().collect::<OsString>();
        match ending {
            Some(ending) if STARTABLE.iter().any(|known| known.get(1..) == Some(&*ending)) => {
                vec![program.to_owned()]
            }
            // A name may have dots in it: `app.v2` may be `app.v2.exe`.
            Some(_) => std::iter::once(program.to_owned()).chain(self.endings.iter().map(with)).collect(),
            None => self.endings.iter().map(with).collect(),
        }
    }

    /// What was looked for and where, for whoever finds nothing.
    pub fn explain(&self, program: &OsStr) -> String {
        let names: Vec<String> =
            self.names(program).iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let names = names.join(", ");
        match self.folders.first().filter(|_| self.current) {
            _ if has_folder(program) => format!("there is no file {names}"),
            Some(current) => {
                format!("there is no {names} in the current folder ({}) or on PATH", current.display())
            }
            None => format!("there is no {names} on PATH"),
        }
    }
}

fn has_folder(program: &OsStr) -> bool {
    Path::new(program).parent().is_none_or(|parent| !parent.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(current: Option<&str>, path: &[&str], endings: &str) -> Search {
        let path = std::env::join_paths(path).unwrap();
        Search::new(current.map(PathBuf::from), &path, endings)
    }

    fn tried(search: &Search, program: &str) -> Vec<String> {
        let candidates = search.candidates(OsStr::new(program));
        candidates.iter().map(|path| path.to_string_lossy().replace('\\', "/")).collect()
    }

    #[test]
    fn the_current_folder_comes_before_path_and_exe_before_other_endings() {
        let search = search(Some("here"), &["bin", "", "tools"], ".COM;.EXE;.VBS;.CMD;.cmd");
        assert_eq!(
            tried(&search, "app"),
            [
                "here/app.exe",
                "here/app.com",
                "here/app.cmd",
                "bin/app.exe",
                "bin/app.com",
                "bin/app.cmd",
                "tools/app.exe",
                "tools/app.com",
                "tools/app.cmd"
            ]
        );
        assert_eq!(tried(&search, "App.EXE"), ["here/App.EXE", "bin/App.EXE", "tools/App.EXE"]);
    }

    #[test]
    fn dots_in_a_name_are_no_ending() {
        let search = search(Some("here"), &[], ".EXE");
        assert_eq!(tried(&search, "app.v2"), ["here/app.v2", "here/app.v2.exe"]);
    }

    #[test]
    fn a_folder_in_the_name_is_the_only_one() {
        let search = search(Some("here"), &["bin"], ".EXE;.BAT");
        assert_eq!(tried(&search, "sub/app"), ["sub/app.exe", "sub/app.bat"]);
        assert_eq!(search.explain(OsStr::new("sub/app")), "there is no file sub/app.exe, sub/app.bat");
    }

    #[test]
    fn the_first_file_is_taken_and_a_miss_says_where_it_looked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("app.exe")).unwrap();
        std::fs::write(folder.path().join("app.cmd"), "").unwrap();
        let here = folder.path().to_str().unwrap();
        let search = search(Some(here), &[], ".EXE;.CMD");
        assert_eq!(
            search.find(OsStr::new("app")),
            Some(folder.path().join("app.cmd")),
            "a folder is no program"
        );
        assert_eq!(search.find(OsStr::new("other")), None);
        let text = search.explain(OsStr::new("other"));
        assert_eq!(
            text,
            format!("there is no other.exe, other.cmd in the current folder ({here}) or on PATH")
        );
    }
}
