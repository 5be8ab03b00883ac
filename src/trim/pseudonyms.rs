//! Words in the place of others: of the same length, and the same word always for the same.

use rustc_hash::FxHashMap;

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Every word is replaced.
    Words,
    /// A path: names of folders are replaced, but not those that every Windows has; the name of a program, a DLL, a driver
    /// or a PDB stays.
    Path,
    /// The same of a module, which may have a name that is no path and stays.
    Module,
}

/// Folders that every Windows with .NET has, and what stands in their paths: they say nothing of who recorded.
const EVERYWHERE: [&str; 50] = [
    "amd64",
    "appdata",
    "arm64",
    "assembly",
    "bin",
    "common",
    "compression",
    "data",
    "debug",
    "desktop",
    "device",
    "documents",
    "dotnet",
    "downloads",
    "driverstore",
    "drivers",
    "exe",
    "filerepository",
    "files",
    "framework",
    "framework64",
    "gac_32",
    "gac_64",
    "gac_msil",
    "globalroot",
    "host",
    "idle",
    "local",
    "memory",
    "microsoft",
    "net",
    "nativeimages",
    "obj",
    "program",
    "registry",
    "release",
    "roaming",
    "sdk",
    "shared",
    "src",
    "system",
    "system32",
    "systemroot",
    "syswow64",
    "temp",
    "users",
    "windows",
    "winsxs",
    "x64",
    "x86",
];

/// Files whose names profiles show and symbols are found by.
const CODE: [&str; 13] =
    ["acm", "ax", "cpl", "dll", "drv", "efi", "exe", "mui", "ocx", "pdb", "scr", "sys", "winmd"];

/// The words that have been replaced.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    /// By the word in lower case.
    words: FxHashMap<Vec<u16>, u64>,
    /// By the parts of SIDs.
    authorities: FxHashMap<u32, u32>,
}

impl Pseudonyms {
    /// Replaces what a text says of who recorded, in its place.
    pub(super) fn replace(&mut self, text: &mut [u16], style: Style) {
        let is_separator = |unit: &u16| *unit == u16::from(b'\\') || *unit == u16::from(b'/');
        let name = text.iter().rposition(is_separator).map_or(0, |at| at + 1);
        let stays = match style {
            Style::Words => false,
            Style::Path => is_code(text.get(name..).unwrap_or_default()),
            Style::Module => name == 0 || is_code(text.get(name..).unwrap_or_default()),
        };
        let end = if stays { name } else { text.len() };
        let mut start = 0;
        while start < end {
            let rest = text.get(start..end).unwrap_or_default();
            let length = rest.iter().take_while(|unit| is_letter(**unit)).count();
            if length == 0 {
                start += 1;
                continue;
            }
            let is_drive = length == 1 && text.get(start + 1) == Some(&u16::from(b':'));
            if !is_drive && let Some(word) = text.get_mut(start..start + length) {
                self.word(word);
            }
            start += length;
        }
    }

    /// Replaces a word, unless it is one that stands everywhere.
    fn word(&mut self, word: &mut [u16]) {
        let lower: Vec<u16> = word.iter().map(|unit| lower(*unit)).collect();
        if is_everywhere(&lower) {
            return;
        }
        let next = self.words.len() as u64;
        let number = *self.words.entry(lower).or_insert(next);
        // The number in digits that make no words, and no numbers of old.
        const DIGITS: &[u8; 20] = b"zbcdfghjkmnpqrstvwxy";
        let mut left = number;
        for unit in word.iter_mut().rev() {
            let digit = usize::try_from(left % DIGITS.len() as u64).unwrap_or(0);
            *unit = DIGITS.get(digit).copied().unwrap_or(b'z').into();
            left /= DIGITS.len() as u64;
        }
    }

    /// Replaces what a SID says of a machine, a domain and a user; SIDs that every Windows has stay.
    pub(super) fn sid(&mut self, sid: &mut [u8]) {
        const HEAD: usize = 8;
        let is_of_windows = sid.get(..HEAD).is_some_and(|head| head.get(7) == Some(&5));
        let (authorities, _) = sid.get_mut(HEAD..).unwrap_or_default().as_chunks_mut::<4>();
        let first = authorities.first().map(|first| u32::from_le_bytes(*first));
        // Local System, Local Service, Network Service; window managers and font drivers; built-in groups.
        if is_of_windows && matches!(first, Some(18 | 19 | 20 | 32 | 90 | 96)) {
            return;
        }
        for authority in authorities.iter_mut().skip(1) {
            let next = 1 + u32::try_from(self.authorities.len()).unwrap_or(u32::MAX - 1);
            let number = *self.authorities.entry(u32::from_le_bytes(*authority)).or_insert(next);
            *authority = number.to_le_bytes();
        }
    }
}

fn is_letter(unit: u16) -> bool {
    unit >= 0x80 || u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn lower(unit: u16) -> u16 {
    match char::from_u32(unit.into()).map(char::to_lowercase) {
        Some(mut lower) if lower.len() == 1 => {
            lower.next().and_then(|lower| u16::try_from(u32::from(lower)).ok()).unwrap_or(unit)
        }
        _ => unit,
    }
}

fn reads(units: &[u16], text: &str) -> bool {
    units.iter().copied().eq(text.encode_utf16())
}

/// True for a word that says nothing, in lower case: `HarddiskVolume3` is such a one, too.
fn is_everywhere(word: &[u16]) -> bool {
    let is_digit = |unit: &u16| (u16::from(b'0')..=u16::from(b'9')).contains(unit);
    let letters = word.iter().rposition(|unit| !is_digit(unit)).map_or(0, |last| last + 1);
    let (name, number) = word.split_at(letters);
    EVERYWHERE.iter().any(|known| reads(word, known))
        || reads(name, "harddiskvolume") && !number.is_empty()
        || name.is_empty() && number.len() < 3
}

/// True for the name of a file with code, or of its PDB.
fn is_code(name: &[u16]) -> bool {
    let Some(dot) = name.iter().rposition(|unit| *unit == u16::from(b'.')) else { return false };
    let ending: Vec<u16> = name.iter().skip(dot + 1).map(|unit| lower(*unit)).collect();
    CODE.iter().any(|known| reads(&ending, known))
}

#[cfg(test)]
mod tests {
    use super::{Pseudonyms, Style};

    fn replaced(pseudonyms: &mut Pseudonyms, text: &str, style: Style) -> String {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        pseudonyms.replace(&mut units, style);
        String::from_utf16(&units).unwrap()
    }

    #[test]
    fn paths_keep_what_every_windows_has() {
        let mut all = Pseudonyms::default();
        let mut path = |text| replaced(&mut all, text, Style::Path);
        assert_eq!(
            path(r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll"),
            r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll"
        );
        assert_eq!(path(r"C:\Users\Alice\orders\Orders.exe"), r"C:\Users\zzzzz\zzzzzb\Orders.exe");
        assert_eq!(path(r"c:\users\ALICE\notes.docx"), r"c:\users\zzzzz\zzzzc.zzzd");
        assert_eq!(path("Bob"), "zzf");
    }

    #[test]
    fn all_words_of_a_line_are_replaced_and_the_same_by_the_same() {
        let mut all = Pseudonyms::default();
        let mut words = |text| replaced(&mut all, text, Style::Words);
        assert_eq!(
            words(r#""C:\a b\Orders.exe" --user=Alice -n 4711 42"#),
            r#""C:\z b\zzzzzc.exe" --zzzd=zzzzf -g zzzh 42"#
        );
        assert_eq!(words("alice"), "zzzzf");
        assert_eq!(words("Zoë-PC"), "zzj-zk");
    }

    #[test]
    fn modules_without_a_folder_have_names_of_code() {
        let mut all = Pseudonyms::default();
        assert_eq!(replaced(&mut all, "Anonymous Assembly", Style::Module), "Anonymous Assembly");
        assert_eq!(replaced(&mut all, r"D:\build\Orders.dll", Style::Module), r"D:\zzzzz\Orders.dll");
    }

    #[test]
    fn sids_of_users_and_not_of_services() {
        let sid = |authority: u8, parts: &[u32]| {
            let mut bytes = vec![1, parts.len() as u8, 0, 0, 0, 0, 0, authority];
            bytes.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
            bytes
        };
        let mut all = Pseudonyms::default();
        let mut replaced = |mut bytes: Vec<u8>| {
            all.sid(&mut bytes);
            bytes
        };
        assert_eq!(replaced(sid(5, &[18])), sid(5, &[18]));
        assert_eq!(replaced(sid(5, &[32, 544])), sid(5, &[32, 544]));
        assert_eq!(replaced(sid(5, &[21, 77, 88, 99, 1001])), sid(5, &[21, 1, 2, 3, 4]));
        assert_eq!(replaced(sid(5, &[21, 77, 88, 99, 1002])), sid(5, &[21, 1, 2, 3, 5]));
        assert_eq!(replaced(sid(12, &[1, 77])), sid(12, &[1, 1]));
        assert_eq!(replaced(vec![1, 2, 3]), [1, 2, 3]);
    }
}
