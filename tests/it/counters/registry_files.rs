//! Files of `reg export`, typed by hand.

use etwprof::counters::{RegFileError, Registry};

const PERFLIB: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib";
const SERVICE: &str = r"SYSTEM\CurrentControlSet\Services\Contoso\Performance";

fn utf16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.replace('\n', "\r\n").encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

fn read(file: &[u8]) -> Result<Registry, RegFileError> {
    let mut registry = Registry::default();
    registry.read(file).map(|()| registry)
}

fn version_5(body: &str) -> String {
    format!("Windows Registry Editor Version 5.00\n\n{body}")
}

/// `text` as `hex(2):` and `hex(7):` have it, broken after a few bytes as reg.exe does.
fn hex(text: &str, unit: usize) -> String {
    let bytes = text.encode_utf16().flat_map(|letter| letter.to_le_bytes()[..unit].to_vec());
    let bytes: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
    bytes.chunks(7).map(|line| line.join(",")).collect::<Vec<_>>().join(",\\\n  ")
}

#[test]
fn every_form_of_value_is_read() {
    let body = format!(
        r#"[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Contoso\Performance]
@="default"
; a comment
"Library"=hex(2):{}
"Open"="C:\\Program Files\\a \"b\"]"
"Two lines"="one
two"
"First Counter"=dword:0000238c
"Blob"=hex:01,02,\
  03,ff
"Long"=hex(b):01,00,00,00,00,00,00,80
"Empty"=hex(7):
"Export"=hex(7):{}
"#,
        hex("%ProgramFiles%\\c.dll\0", 2),
        hex("a\0bc\0\0", 2)
    );
    for file in [utf16(&version_5(&body)), version_5(&body).into_bytes()] {
        let registry = read(&file).unwrap();
        let key = registry.key(SERVICE).unwrap();
        assert_eq!(key.parent(), "Contoso");
        assert_eq!(key.text("").as_deref(), Some("default"));
        assert_eq!(key.text("library").as_deref(), Some(r"%ProgramFiles%\c.dll"));
        assert_eq!(key.value("LIBRARY").unwrap().kind, 2);
        assert_eq!(key.text("Open").as_deref(), Some(r#"C:\Program Files\a "b"]"#));
        assert_eq!(key.text("Two lines").unwrap().lines().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(key.number("First Counter"), Some(9100));
        assert_eq!(key.number("Library"), None);
        assert_eq!(key.value("Blob").unwrap().data, [1, 2, 3, 0xff]);
        assert_eq!((key.value("Long").unwrap().kind, key.value("Long").unwrap().data[7]), (11, 0x80));
        assert!(key.value("Empty").unwrap().data.is_empty());
        assert_eq!(key.value("Export").unwrap().data, b"a\0\0\0b\0c\0\0\0\0\0");
        assert_eq!(key.text("Export"), None);
        assert_eq!(registry.services().map(|key| key.parent()).collect::<Vec<_>>(), ["Contoso"]);
    }
}

#[test]
fn the_older_form_has_texts_of_single_bytes() {
    let mut file = b"REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Contoso\\Performance]\r\n".to_vec();
    file.extend(b"\"Open\"=\"\xd6ffnen\"\r\n");
    file.extend(format!("\"Library\"=hex(2):{}\r\n", hex("%x%\\c.dll\0", 1)).bytes());
    file.extend(b"\"Blob\"=hex:41,42\r\n");
    let registry = read(&file).unwrap();
    let key = registry.key(SERVICE).unwrap();
    assert_eq!(key.text("Open").as_deref(), Some("Öffnen"));
    assert_eq!(key.text("Library").as_deref(), Some(r"%x%\c.dll"));
    assert_eq!(key.value("Blob").unwrap().data, b"AB");
}

#[test]
fn later_files_replace_and_delete() {
    let mut registry = read(
        version_5(&format!(
            "[HKEY_LOCAL_MACHINE\\{SERVICE}]\n\"a\"=dword:1\n\"b\"=dword:2\n\n[HKEY_LOCAL_MACHINE\\{PERFLIB}\\009]\n\"Counter\"=hex(7):00,00\n"
        ))
        .as_bytes(),
    )
    .unwrap();
    let later = format!(
        "[hkey_local_machine\\{}]\n\"A\"=dword:3\n\"b\"=-\n\n[-HKEY_LOCAL_MACHINE\\{PERFLIB}]\n\"lost\"=dword:1\n",
        SERVICE.to_uppercase()
    );
    registry.read(version_5(&later).as_bytes()).unwrap();
    let key = registry.key(SERVICE).unwrap();
    assert_eq!((key.number("a"), key.number("b")), (Some(3), None));
    assert!(registry.key(&format!(r"{PERFLIB}\009")).is_none());
}

#[test]
fn only_what_is_about_counters_is_kept() {
    let others = [
        r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Contoso\Parameters",
        r"HKEY_LOCAL_MACHINE\SYSTEM\ControlSet002\Services\Contoso\Performance",
        r"HKEY_CURRENT_USER\SYSTEM\CurrentControlSet\Services\Contoso\Performance",
        r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Contoso\Deeper\Performance",
    ];
    for other in others {
        let registry = read(version_5(&format!("[{other}]\n\"a\"=dword:1\n")).as_bytes()).unwrap();
        assert_eq!(registry.services().count(), 0, "{other}");
        let path = other.split_once('\\').unwrap().1;
        assert!(registry.key(path).is_none(), "{other}");
    }
}

#[test]
fn damage_is_named_by_its_line() {
    for file in ["", "Windows Registry Editor Version 4.00\n", "MZ\u{90}"] {
        assert_eq!(read(file.as_bytes()).unwrap_err(), RegFileError::NotRegistry, "{file:?}");
    }
    // UTF-16 with the other byte order.
    let swapped: Vec<u8> = utf16(&version_5("")).chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
    assert_eq!(read(&swapped).unwrap_err(), RegFileError::NotRegistry);
    let key = format!("[HKEY_LOCAL_MACHINE\\{SERVICE}]\n");
    for (line, what) in [
        ("nonsense", "neither a key nor a value"),
        ("[HKEY_LOCAL_MACHINE\\x", "a key without an end"),
        ("\"a\"", "a value without ="),
        ("\"a\"=dword:", "no number of 32 bits"),
        ("\"a\"=dword:123456789", "no number of 32 bits"),
        ("\"a\"=hex:123", "no byte"),
        ("\"a\"=hex(x):00", "no type of a value"),
        ("\"a\"=hex(ffffffffff):00", "no type of a value"),
        ("\"a\"=qword:1", "no value that is known"),
        ("\"a\"=dword:1 2", "more behind a value"),
        ("\"a\"=\"text", "a text without an end"),
        ("\"a\\\"=dword:1", "a text without an end"),
        ("\"a", "a text without an end"),
    ] {
        // The heading, an empty line, the key.
        let error = read(version_5(&format!("{key}{line}")).as_bytes()).unwrap_err();
        let RegFileError::Line { line: number, what: found } = error else { panic!("{line}") };
        assert_eq!(found, what, "{line}");
        assert!((4..=5).contains(&number), "{line}: {number}");
    }
}

#[test]
fn a_file_that_ends_anywhere_does_no_harm() {
    let body = format!(
        "[HKEY_LOCAL_MACHINE\\{SERVICE}]\n\"Open\"=\"a\\\\b\"\n\"Export\"=hex(7):{}\n\"First Counter\"=dword:00000738\n[-HKEY_LOCAL_MACHINE\\x]\n",
        hex("a\0\0", 2)
    );
    let whole = utf16(&version_5(&body));
    for end in 0..whole.len() {
        let _read_or_not = read(&whole[..end]);
    }
    assert_eq!(read(&whole).unwrap().services().count(), 1);
}

#[test]
fn many_keys_and_deletions_take_little_time() {
    let mut file = version_5("");
    for number in 0..50_000 {
        file += &format!("[HKEY_LOCAL_MACHINE\\{PERFLIB}\\a\\{number}]\n");
    }
    for number in 0..50_000 {
        file += &format!("[-HKEY_LOCAL_MACHINE\\{PERFLIB}\\a\\{number}]\n");
    }
    let start = std::time::Instant::now();
    let registry = read(file.as_bytes()).unwrap();
    assert_eq!(registry.below(&format!(r"{PERFLIB}\a")).count(), 0);
    // Comparing each with each would take minutes.
    assert!(start.elapsed().as_secs() < 10);
}
