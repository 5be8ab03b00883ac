//! Windows paths as text, on every system.

/// The last component of a Windows path.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

/// `\dir\file` of `C:\dir\file` and of `\Device\HarddiskVolume3\dir\file`, in lower case.
pub fn without_volume(path: &str) -> String {
    let path = path.to_ascii_lowercase();
    let rest = match path.strip_prefix(r"\device\") {
        Some(rest) => rest.find('\\').and_then(|at| rest.get(at..)),
        None => path.split_once(':').map(|(_, rest)| rest),
    };
    rest.unwrap_or(&path).to_owned()
}

/// Whether two paths, each with a drive or a volume in front, are of one file.
pub fn same_file(a: &str, b: &str) -> bool {
    file_name(a).eq_ignore_ascii_case(file_name(b)) && without_volume(a) == without_volume(b)
}

/// What [`same_file()`] compares: equal for paths of one file.
pub(crate) type FileKey = (String, String);

/// The key of a path.
pub(crate) fn file_key(path: &str) -> FileKey {
    (file_name(path).to_ascii_lowercase(), without_volume(path))
}

/// The file that a driver was read from, if it is a copy for crash dumps: `dump_stornvme.sys` is stornvme.sys, loaded a
/// second time, and no file has the copy's name.
pub fn dump_original(path: &str) -> Option<String> {
    const PREFIX: &str = "dump_";
    let name = file_name(path);
    let folder = path.strip_suffix(name)?;
    let is_driver = name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("sys"));
    let (prefix, original) = name.split_at_checked(PREFIX.len()).filter(|_| is_driver)?;
    (prefix.eq_ignore_ascii_case(PREFIX) && original.len() > ".sys".len())
        .then(|| format!("{folder}{original}"))
}

#[cfg(test)]
mod tests {
    use super::{dump_original, file_name, same_file, without_volume};

    #[test]
    fn names_end_paths_with_either_slash() {
        assert_eq!(file_name(r"C:\a\b.dll"), "b.dll");
        assert_eq!(file_name("d:/x/y.pdb"), "y.pdb");
        assert_eq!(file_name("z.sys"), "z.sys");
    }

    #[test]
    fn copies_for_crash_dumps_have_the_name_of_their_driver() {
        let original = |path: &str| dump_original(path);
        assert_eq!(original(r"C:\W\drivers\dump_stornvme.sys").unwrap(), r"C:\W\drivers\stornvme.sys");
        assert_eq!(original("DUMP_dumpfve.SYS").unwrap(), "dumpfve.SYS");
        for other in
            ["stornvme.sys", "dump_.sys", "dump_tool.exe", "dump_sys", r"dump_x.sys\a.dll", "dumpé.sys", ""]
        {
            assert_eq!(original(other), None, "{other}");
        }
    }

    #[test]
    fn paths_compare_without_their_volumes() {
        assert_eq!(without_volume(r"C:\A\b.dll"), r"\a\b.dll");
        assert_eq!(without_volume(r"\Device\HarddiskVolume12\A\b.dll"), r"\a\b.dll");
        assert_eq!(without_volume("b.dll"), "b.dll");
        assert!(same_file(r"C:\A\b.dll", r"\Device\HarddiskVolume3\a\B.dll"));
        assert!(!same_file(r"C:\A\b.dll", r"C:\b.dll"));
    }
}
