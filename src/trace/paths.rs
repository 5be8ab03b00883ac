//! Kernel paths turned into the paths that people know.
//!
//! | form | where it is seen | becomes |
//! |---|---|---|
//! | `\Device\HarddiskVolume2\dir\x.dll` | rundown, most loads | drive letter, by the trace's volume mapping |
//! | `\Windows\System32\x.dll` | loads on Windows 8 | system drive |
//! | `\SystemRoot\System32\drivers\x.sys` | kernel modules | Windows directory |
//! | `\??\C:\dir\x.sys` | some drivers | without the prefix |
//! | `\Device\Mup\server\share\x.dll` | network | `\\server\share\x.dll` |
//! | `\Device\Mup\;LanmanRedirector\;Z:00012345\server\share\x.dll` | network, by a mapped drive | the same |
//! | `\Device\vmsmb\...\Windows\x.dll` | containers (not verified) | system drive, from `\Windows` on |
//!
//! The mapping is part of a merged trace; without it paths stay as they are.

use rustc_hash::FxHashMap;

/// The volumes and directories of the machine that recorded.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Drives by lower-case device prefix, both ending in a backslash.
    volumes: FxHashMap<String, String>,
    windows: String,
}

/// MAX_PATH: characters of a drive or directory. A crafted trace could put a longer one before every path.
const LONGEST: usize = 260;

/// Backslashes in a device prefix: `\Device\HarddiskVolume2\` has three.
const DEEPEST: usize = 8;

const NETWORK: [&str; 2] = [r"\Device\Mup\", r"\Device\LanmanRedirector\"];

impl Paths {
    /// Both may end in a backslash, as merged traces have them, or without, as the system names devices and drives.
    pub(super) fn add_volume(&mut self, mut nt: String, mut dos: String) {
        if nt.is_empty() || dos.len() > LONGEST {
            return;
        }
        for end in [&mut nt, &mut dos] {
            if !end.is_empty() && !end.ends_with('\\') {
                end.push('\\');
            }
        }
        self.volumes.insert(nt.to_ascii_lowercase(), dos);
    }

    pub(super) fn set_windows(&mut self, directory: String) {
        if directory.is_empty() || directory.len() > LONGEST {
            return;
        }
        self.windows = directory;
        if !self.windows.ends_with('\\') {
            self.windows.push('\\');
        }
    }

    /// The path as a user would type it, or as it is where nothing is known.
    pub fn to_dos(&self, path: &str) -> String {
        if let Some(rest) = NETWORK.iter().find_map(|prefix| strip_prefix(path, prefix)) {
            return format!(r"\\{}", share(rest));
        }
        if let Some(rest) = strip_prefix(path, r"\??\") {
            return rest.to_owned();
        }
        if let Some((dos, rest)) = self.volume(path) {
            return format!("{dos}{rest}");
        }
        if self.windows.is_empty() {
            return path.to_owned();
        }
        if let Some(rest) = strip_prefix(path, r"\SystemRoot\") {
            return format!("{}{rest}", self.windows);
        }
        // The directory's own name, with the backslashes around it, stands after the drive.
        let (drive, directory) = self.windows.split_at_checked(2).unwrap_or((&self.windows, ""));
        if strip_prefix(path, directory).is_some() {
            return format!("{drive}{path}");
        }
        if let Some(rest) = strip_prefix(path, r"\Device\vmsmb\")
            && let Some(at) = find(rest, directory)
        {
            return format!("{drive}{}", rest.get(at..).unwrap_or_default());
        }
        path.to_owned()
    }

    /// The drive of the longest device prefix of `path`, and what follows the prefix.
    fn volume<'a>(&self, path: &'a str) -> Option<(&str, &'a str)> {
        let behind = |(at, _): (usize, &str)| at + 1;
        let deepest = path.match_indices('\\').take(DEEPEST).last().map(behind)?;
        let folded = path.get(..deepest)?.to_ascii_lowercase();
        let mut ends = folded.rmatch_indices('\\').map(behind);
        ends.find_map(|end| Some((self.volumes.get(folded.get(..end)?)?.as_str(), path.get(end..)?)))
    }
}

/// `server\share\...` from what follows a redirector, without the redirector's client (`;LanmanRedirector\`, or
/// `DfsClient\` without the mark) and the mapped drive with its session (`;Z:0000000000020d40\`).
fn share(rest: &str) -> &str {
    let mut rest = strip_prefix(rest, r"DfsClient\").unwrap_or(rest);
    while let Some((_, behind)) = rest.strip_prefix(';').and_then(|marked| marked.split_once('\\')) {
        rest = behind;
    }
    rest
}

/// `path` behind `prefix`, whatever the case.
fn strip_prefix<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = path.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn find(text: &str, part: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&part.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::Paths;

    fn paths() -> Paths {
        let mut paths = Paths::default();
        for (nt, dos) in [
            (r"\??\", ""),
            (r"\SystemRoot\", r"C:\Windows\"),
            (r"\Device\HarddiskVolume1\", r"D:\"),
            (r"\Device\HarddiskVolume11\", r"E:\"),
            (r"\Device\Mup\", r"\\"),
        ] {
            paths.add_volume(nt.into(), dos.into());
        }
        paths.set_windows(r"C:\Windows".into());
        paths
    }

    #[test]
    fn every_form_becomes_a_path_to_type() {
        for (nt, dos) in [
            (r"\Device\HarddiskVolume11\a\b.dll", r"E:\a\b.dll"),
            (r"\device\harddiskvolume1\b.dll", r"D:\b.dll"),
            (r"\Windows\System32\ntdll.dll", r"C:\Windows\System32\ntdll.dll"),
            (r"\SystemRoot\System32\drivers\x.sys", r"C:\Windows\System32\drivers\x.sys"),
            (r"\??\C:\x\MpKslDrv.sys", r"C:\x\MpKslDrv.sys"),
            (r"\Device\Mup\server\share\x.dll", r"\\server\share\x.dll"),
            (r"\Device\Mup\DfsClient\;Z:0000000000020d40\server\share\x.dll", r"\\server\share\x.dll"),
            (
                r"\Device\Mup\;LanmanRedirector\;Z:0000000000020d40\server\share\x.dll",
                r"\\server\share\x.dll",
            ),
            (r"\Device\Mup\;LanmanRedirector\server\share\x.dll", r"\\server\share\x.dll"),
            (r"\Device\Mup\;RdpDr\;Z:1\tsclient\C\x.dll", r"\\tsclient\C\x.dll"),
            (r"\Device\Mup\;WebDavRedirector\;W:0000000000020d40\h@SSL\d\x.dll", r"\\h@SSL\d\x.dll"),
            (r"\device\mup\;lanmanredirector\;z:0\server\share\x.dll", r"\\server\share\x.dll"),
            (r"\Device\Mup\;LanmanRedirector", r"\\;LanmanRedirector"),
            (r"\Device\LanmanRedirector\server\share\x.dll", r"\\server\share\x.dll"),
            (r"\Device\LanmanRedirector\;Z:0000000000020d40\server\share\x.dll", r"\\server\share\x.dll"),
            (r"\Device\vmsmb\VSMB-{1}\os\Windows\System32\x.dll", r"C:\Windows\System32\x.dll"),
            (r"\Device\HarddiskVolume7\x.dll", r"\Device\HarddiskVolume7\x.dll"),
            ("x.sys", "x.sys"),
            ("", ""),
        ] {
            assert_eq!(paths().to_dos(nt), dos);
        }
    }

    #[test]
    fn devices_and_drives_need_no_backslash_at_their_end() {
        let mut paths = Paths::default();
        paths.add_volume(r"\Device\HarddiskVolume3".into(), "C:".into());
        paths.add_volume(r"\Device\HarddiskVolume30".into(), "F:".into());
        for (nt, dos) in [
            (r"\Device\HarddiskVolume3\a\b.dll", r"C:\a\b.dll"),
            (r"\Device\HarddiskVolume30\a\b.dll", r"F:\a\b.dll"),
            (r"\Device\HarddiskVolume31\a\b.dll", r"\Device\HarddiskVolume31\a\b.dll"),
        ] {
            assert_eq!(paths.to_dos(nt), dos);
        }
    }

    #[test]
    fn without_a_mapping_paths_stay() {
        let paths = Paths::default();
        for path in [r"\SystemRoot\x.sys", r"\Device\HarddiskVolume1\x.dll", r"\Windows\x.dll"] {
            assert_eq!(paths.to_dos(path), path);
        }
    }
}
