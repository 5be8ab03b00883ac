//! The symbol path, and the names that may become files.

use std::path::PathBuf;

use etwprof::symbols::key::{FileKey, RefusedName};
use etwprof::symbols::path::{Element, MICROSOFT, SymbolPath, Tier};
use proptest::prelude::*;

fn folder(path: &str) -> Tier {
    Tier::Folder(PathBuf::from(path))
}

fn url(text: &str) -> Tier {
    Tier::Url(text.to_owned())
}

fn parsed(text: &str) -> Vec<Element> {
    SymbolPath::parse(text).unwrap_or_else(|e| panic!("{e}")).elements().to_vec()
}

#[test]
fn each_form_of_an_element() {
    let server = |tiers: &[Tier]| vec![Element::Server(tiers.to_vec())];
    let cases = [
        (r"C:\sym", vec![Element::Folder(r"C:\sym".into())]),
        (r"\\server\share\sym", vec![Element::Folder(r"\\server\share\sym".into())]),
        ("/home/me/a:b", vec![Element::Folder("/home/me/a:b".into())]),
        (r"srv*C:\cache*https://host/sym/", server(&[folder(r"C:\cache"), url("https://host/sym")])),
        (
            r"SRV*C:\a*\\host\b*http://host:8080/x",
            server(&[folder(r"C:\a"), folder(r"\\host\b"), url("http://host:8080/x")]),
        ),
        ("srv*/a:1*https://host", server(&[folder("/a:1"), url("https://host")])),
        ("srv*https://host/sym", server(&[Tier::UserCache, url("https://host/sym")])),
        ("srv**https://host/sym", server(&[Tier::UserCache, url("https://host/sym")])),
        ("srv*", server(&[Tier::UserCache, url(MICROSOFT)])),
        ("https://host/sym", server(&[Tier::UserCache, url("https://host/sym")])),
        (r"srv*C:\store", server(&[folder(r"C:\store")])),
        ("symsrv*SymSrv.dll*/c*https://host", server(&[folder("/c"), url("https://host")])),
        ("cache*/c", vec![Element::Cache(folder("/c"))]),
        ("cache*", vec![Element::Cache(Tier::UserCache)]),
        (r#" "C:\my sym" "#, vec![Element::Folder(r"C:\my sym".into())]),
        (" ;; ", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(parsed(text), expected, "{text}");
        let again = SymbolPath::parse(text).unwrap().to_string();
        assert_eq!(parsed(&again), expected, "{text} printed as {again}");
    }
    let all = r"cache*C:\c;srv*https://a/x;D:\sym ; srv*C:\l*\\u\s";
    assert_eq!(parsed(all).len(), 4);
    assert_eq!(
        SymbolPath::parse(all).unwrap().to_string(),
        r"cache*C:\c;srv**https://a/x;D:\sym;srv*C:\l*\\u\s"
    );
}

#[test]
fn what_cannot_be_understood_is_named() {
    for text in [
        "symsrv*other.dll*/c*https://host",
        "symsrv*symsrv.dll",
        "server*/c*https://host",
        "srv*ftp://host/x",
        "srv*https://",
        "srv*https:///x",
        "srv*https://host/x?sig=1",
        "srv*https://me:secret@host/x",
        "cache*https://host/x",
        "cache*/a*/b",
        "a\0b",
    ] {
        let error = SymbolPath::parse(&format!("/good;{text}")).expect_err(text);
        assert_eq!(error.element, text);
        assert!(error.to_string().contains(error.reason));
    }
}

#[test]
fn the_path_of_a_run() {
    let of_run = |added: &[&str], env| SymbolPath::of_run(added, env).unwrap().to_string();
    assert_eq!(of_run(&[], None), format!("srv**{MICROSOFT}"));
    assert_eq!(of_run(&[], Some(" ")), format!("srv**{MICROSOFT}"));
    assert_eq!(of_run(&["/a", "srv*https://h"], None), format!("/a;srv**https://h;srv**{MICROSOFT}"));
    assert_eq!(of_run(&["/a"], Some("srv*/c*https://h")), "/a;srv*/c*https://h");
}

const GUID: [u8; 16] =
    [0x84, 0x72, 0xF7, 0x11, 0xDE, 0x4E, 0x67, 0x76, 0xA5, 0x23, 0x4B, 0x0E, 0x7B, 0x07, 0xEE, 0xF1];

#[test]
fn the_store_path_of_a_key() {
    let key = FileKey::pdb(r"D:\build\out\foo.pdb", GUID, 0x1A);
    assert_eq!(
        (key.name().unwrap(), key.index().as_str()),
        ("foo.pdb", "11F772844EDE7667A5234B0E7B07EEF11a")
    );
    assert_eq!(
        FileKey::portable_pdb("/_/obj/App.pdb", GUID).index(),
        "11F772844EDE7667A5234B0E7B07EEF1ffffffff"
    );
    let image = FileKey::image("ntdll.dll", 0x0ABC_DEF1, 0x1F_0000);
    assert_eq!(image.to_string(), "ntdll.dll 0ABCDEF11f0000");
}

#[test]
fn a_name_from_a_trace_is_never_more_than_a_file_name() {
    let name = |path: &str| FileKey::pdb(path, GUID, 1).name().map(str::to_owned);
    // Only the last component counts.
    for path in
        [r"..\..\x.pdb", "../../x.pdb", r"C:\a/b\x.pdb", r"\\host\share\x.pdb", r"\??\C:\x.pdb", "/x.pdb"]
    {
        assert_eq!(name(path), Ok("x.pdb".to_owned()), "{path}");
    }
    for good in ["a b.pdb", "käse.pdb", ".NETFramework.pdb", "console.pdb", "com10.pdb", "x.nul", "комп.pdb"]
    {
        assert_eq!(name(good), Ok(good.to_owned()));
    }
    use RefusedName::*;
    let long = "x".repeat(201);
    for (bad, why) in [
        ("", Empty),
        (r"C:\dir\", Empty),
        ("..", Folder),
        (r"a\..", Folder),
        (".", Folder),
        (long.as_str(), TooLong),
        ("C:x.pdb", Character(':')),
        ("x.pdb:stream", Character(':')),
        ("a\0.pdb", Character('\0')),
        ("a\n.pdb", Character('\n')),
        ("a*.pdb", Character('*')),
        ("a?.pdb", Character('?')),
        ("<a>.pdb", Character('<')),
        ("x.pdb.", Ending),
        ("x.pdb ", Ending),
        ("...", Ending),
        ("CON", Device),
        ("nul.txt", Device),
        ("Aux.pdb", Device),
        ("com1", Device),
        ("LPT9.pdb.dll", Device),
        ("com¹.pdb", Device),
        ("con .pdb", Device),
        ("conin$", Device),
        (".etwprof", Reserved),
        (".ETWProf", Reserved),
    ] {
        assert_eq!(name(bad), Err(why), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn no_text_becomes_more_than_one_component(path in any::<String>()) {
        if let Ok(name) = FileKey::pdb(&path, GUID, 1).name() {
            let joined = PathBuf::from("root").join(name);
            prop_assert_eq!(joined.components().count(), 2);
            prop_assert!(path.ends_with(name));
        }
    }

    #[test]
    fn what_is_parsed_prints_and_parses_the_same(text in "[a-z:/\\\\.;* ]{0,40}|(srv|cache)\\*[a-z/:*;]{0,30}") {
        if let Ok(path) = SymbolPath::parse(&text) {
            let again = SymbolPath::parse(&path.to_string());
            prop_assert_eq!(again, Ok(path));
        }
    }
}
