//! The symbol path, and the names that may become files.

use std::path::{Path, PathBuf};

use crate::support::store::pdb_key;
use etwprof::guid::Guid;
use etwprof::symbols::find::key::{FileKey, RefusedName};
use etwprof::symbols::find::path::{Depot, Element, MICROSOFT, Reason, SkippedElement, SymbolPath};
use proptest::prelude::*;

fn folder(path: &str) -> Depot {
    Depot::Folder(PathBuf::from(path))
}

fn url(text: &str) -> Depot {
    Depot::Url(text.to_owned())
}

fn parsed(text: &str) -> Vec<Element> {
    SymbolPath::parse(text).unwrap_or_else(|e| panic!("{e}")).elements().to_vec()
}

/// The rows of the table in docs/symbol-paths.md, each from the page of Microsoft's that it names there.
#[test]
fn each_form_of_an_element() {
    let server = |tiers: &[Depot]| vec![Element::Server(tiers.to_vec())];
    let msdl = || url(MICROSOFT);
    let cases = [
        // Symbol path for Windows debuggers: folders, relative ones, shares.
        (r"C:\sym", vec![Element::Folder(r"C:\sym".into())]),
        (r"..\sym", vec![Element::Folder(r"..\sym".into())]),
        (r"\\server\share\sym", vec![Element::Folder(r"\\server\share\sym".into())]),
        ("/home/me/a:b", vec![Element::Folder("/home/me/a:b".into())]),
        // The default symbol store; with the default downstream store written out.
        ("srv*", server(&[msdl()])),
        ("SRV* ", server(&[msdl()])),
        ("symsrv*symsrv.dll*", server(&[msdl()])),
        // A store alone, a store behind a cache.
        (r"srv*\\server\share", server(&[folder(r"\\server\share")])),
        (r"srv*C:\store", server(&[folder(r"C:\store")])),
        ("srv*https://host/sym", server(&[url("https://host/sym")])),
        (r"srv*C:\cache*https://host/sym/", server(&[folder(r"C:\cache"), url("https://host/sym")])),
        // Advanced SymSrv use: the long form, whatever the case and with or without the ending.
        (r"symsrv*symsrv.dll*\\mybuilds\s", server(&[folder(r"\\mybuilds\s")])),
        ("symsrv*SymSrv.dll*/c*https://host", server(&[folder("/c"), url("https://host")])),
        (r"symsrv*C:\dbg\symsrv*/c*https://host", server(&[folder("/c"), url("https://host")])),
        // Cascading stores; an empty part, also the last, is the default downstream store.
        (
            r"SRV*C:\a*\\host\b*http://host:8080/x",
            server(&[folder(r"C:\a"), folder(r"\\host\b"), url("http://host:8080/x")]),
        ),
        ("srv**https://host/sym", server(&[Depot::UserCache, url("https://host/sym")])),
        (
            r"srv**\\interim\s*https://h",
            server(&[Depot::UserCache, folder(r"\\interim\s"), url("https://h")]),
        ),
        (r"srv*C:\a*", server(&[folder(r"C:\a"), Depot::UserCache])),
        ("srv**", server(&[Depot::UserCache])),
        // cache*.
        ("cache*/c", vec![Element::Cache(folder("/c"))]),
        ("cache*/c*", vec![Element::Cache(folder("/c"))]),
        ("Cache*", vec![Element::Cache(Depot::UserCache)]),
        // IDebugEngine3::SetSymbolPath: as Visual Studio writes it.
        (r"C:\cache*https://host/sym", server(&[folder(r"C:\cache"), url("https://host/sym")])),
        (r"\\a\b*\\c\d*https://h", server(&[folder(r"\\a\b"), folder(r"\\c\d"), url("https://h")])),
        ("https://host/sym", server(&[url("https://host/sym")])),
        // Blanks, quotes and slashes around things.
        (r#" "C:\my sym" "#, vec![Element::Folder(r"C:\my sym".into())]),
        (r#""srv*C:\my sym*https://h/""#, server(&[folder(r"C:\my sym"), url("https://h")])),
        (r#"srv * "C:\my sym" * https://h/s// "#, server(&[folder(r"C:\my sym"), url("https://h/s")])),
        ("HTTPS://Host/Sym", server(&[url("https://Host/Sym")])),
        ("srv*/a:1*https://host", server(&[folder("/a:1"), url("https://host")])),
        (r#" ;; "" ;"#, vec![]),
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
        r"cache*C:\c;srv*https://a/x;D:\sym;srv*C:\l*\\u\s"
    );
}

/// Whatever its characters, as far as it is in one element.
#[test]
fn a_login_that_is_not_escaped_is_not_shown() {
    for text in ["srv*https://me:s1/s2@host/x", "https://me:s1*s2@host/x", "https://me:s1@s2/@host/x"] {
        let error = SymbolPath::parse(text).unwrap_err().to_string();
        assert!(!error.contains("s1") && !error.contains("s2") && error.contains("host"), "{error}");
    }
    for text in ["https://host:8080/x", "http://[::1]:8080/x", "http://127.0.0.1"] {
        assert_eq!(SymbolPath::parse(text).unwrap().to_string(), format!("srv*{text}"));
    }
}

/// Only two texts mean Microsoft's server without its address: `srv*`, and no path at all.
#[test]
fn no_other_text_names_microsofts_server() {
    for text in
        ["srv**", "srv*/a*", "srv*/a**", "srv**/a*", "cache*", "cache*;/a", "/a*", "symsrv*symsrv.dll**"]
    {
        let path = SymbolPath::parse(text).unwrap();
        assert_eq!(path.kept_in(Some(Path::new("/user"))), [], "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_named() {
    for (text, reason) in [
        ("symsrv*other.dll*/c*https://host", Reason::Library),
        ("symsrv*symsrv.dll", Reason::NoStore),
        ("server*/c*https://host", Reason::Keyword),
        ("srv*ftp://host/x", Reason::Protocol),
        ("srv*https://", Reason::NoHost),
        ("srv*https:///x", Reason::NoHost),
        ("srv*https://me:word@/x", Reason::NoHost),
        ("srv*https://host/x?sig=1", Reason::Query),
        ("srv*https://me:wo/rd@host/x", Reason::At),
        ("srv*/c*https://me:12/34@host/x", Reason::At),
        ("srv*https://me:wo*rd@host/x", Reason::Malformed),
        ("https://host:port/x", Reason::Malformed),
        ("https://host:99999/x", Reason::Malformed),
        ("https://host/my symbols", Reason::Malformed),
        ("cache*https://host/x", Reason::CacheNotFolder),
        ("cache*/a*/b", Reason::SeveralCaches),
        ("a\0b", Reason::Nul),
    ] {
        let error = SymbolPath::parse(&format!("/good;{text}")).expect_err(text);
        let logins = ["me:word@", "me:wo/rd@", "me:12/34@", "me:wo*rd@"];
        let shown = logins.iter().fold(text.to_owned(), |text, login| text.replace(login, ""));
        assert_eq!((error.element.as_str(), error.reason), (shown.as_str(), reason));
        assert!(error.to_string().contains(&reason.to_string()) && error.to_string().contains(&shown));
        // In a variable it is skipped, and the rest is used.
        let value = format!("/a;{text};/b");
        let (path, skipped) =
            SymbolPath::of_run(&[""; 0], |name| (name == "_NT_SYMBOL_PATH").then(|| value.clone())).unwrap();
        assert_eq!(path.to_string(), "/a;/b");
        assert_eq!(skipped, [SkippedElement { variable: "_NT_SYMBOL_PATH", cause: error }]);
    }
}

#[test]
fn the_login_in_an_address_is_never_shown() {
    let path = SymbolPath::parse("srv*/c*https://me:se%40cret@host:8/x/;http://token@other").unwrap();
    assert_eq!(path.to_string(), "srv*/c*https://host:8/x;srv*http://other");
    let logins: Vec<_> = path.logins().iter().map(|l| (l.server(), l.user(), l.password())).collect();
    assert_eq!(logins, [("https://host:8/x", "me", "se@cret"), ("http://other", "token", "")]);
    let debug = format!("{path:?}");
    assert!(debug.contains("host") && !debug.contains("se@cret") && !debug.contains("token"), "{debug}");
    let error = SymbolPath::parse("srv*/c*https://me:secret@host/x?y").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

#[test]
fn the_path_of_a_run() {
    let of_run = |added: &[&str], alt: Option<&str>, nt: Option<&str>| {
        let variable = |name| match name {
            "_NT_ALT_SYMBOL_PATH" => alt.map(str::to_owned),
            "_NT_SYMBOL_PATH" => nt.map(str::to_owned),
            other => panic!("{other}"),
        };
        SymbolPath::of_run(added, variable).map(|(path, skipped)| (path.to_string(), skipped.len()))
    };
    let is = |path: &str, skipped: usize| Ok((path.to_owned(), skipped));
    let msdl = format!("srv*{MICROSOFT}");
    assert_eq!(of_run(&[], None, None), is(&msdl, 0));
    assert_eq!(of_run(&[], Some(""), Some(" ;\"\"")), is(&msdl, 0));
    assert_eq!(of_run(&["/a", "srv*https://h"], None, None), is(&format!("/a;srv*https://h;{msdl}"), 0));
    assert_eq!(of_run(&["/a"], None, Some("srv*/c*https://h")), is("/a;srv*/c*https://h", 0));
    // "Symbol path for Windows debuggers": _NT_SYMBOL_PATH is appended to _NT_ALT_SYMBOL_PATH.
    assert_eq!(of_run(&["/a"], Some("/alt"), Some("/nt")), is("/a;/alt;/nt", 0));
    assert_eq!(of_run(&[], Some("/alt"), None), is("/alt", 0));
    // Whoever set a path that is not understood did not ask for Microsoft's server.
    assert_eq!(of_run(&["/a"], Some("x*y"), Some("srv*ftp://h")), is("/a", 2));
    // What was typed for this run is another matter.
    assert_eq!(of_run(&["/a", "x*y"], Some("/alt"), None).unwrap_err().element, "x*y");
}

#[test]
fn what_a_server_sends_is_kept_in_the_caches_in_front() {
    let kept = |path: &str| {
        let servers = SymbolPath::parse(path).unwrap().kept_in(Some(Path::new("/user")));
        let each = servers.iter().map(|kept| {
            let folders: Vec<_> = kept.folders.iter().map(|f| f.to_str().unwrap()).collect();
            format!("{}: {}", kept.server, folders.join(" "))
        });
        each.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(kept("srv*https://h"), "https://h: /user");
    assert_eq!(kept("srv**https://h"), "https://h: /user");
    assert_eq!(kept("srv*/a*https://h"), "https://h: /a");
    assert_eq!(kept("srv*/a*/b*https://h;https://i"), "https://h: /a /b; https://i: /user");
    assert_eq!(kept("cache*/c;srv*https://h"), "https://h: /c");
    assert_eq!(kept("cache*/c;srv**https://h;https://h"), "https://h: /c /user");
    assert_eq!(kept("cache*/c;srv*/c*/a*https://h"), "https://h: /c /a");
    assert_eq!(kept("srv*https://h;cache*/c;https://i"), "https://h: /user; https://i: /c");
    assert_eq!(kept("srv*https://h*https://i"), "https://h: /user; https://i: /user");
    // A cache that only Windows can open keeps nothing here.
    if !cfg!(windows) {
        assert_eq!(kept(r"srv*C:\c*https://h"), "https://h: /user");
        assert_eq!(kept(r"cache*C:\c;srv*/a*https://h"), "https://h: /a");
    }
}

const GUID: [u8; 16] =
    [0x84, 0x72, 0xF7, 0x11, 0xDE, 0x4E, 0x67, 0x76, 0xA5, 0x23, 0x4B, 0x0E, 0x7B, 0x07, 0xEE, 0xF1];

#[test]
fn the_store_path_of_a_key() {
    let key = pdb_key(r"D:\build\out\foo.pdb", GUID, 0x1A);
    assert_eq!(
        (key.name().unwrap(), key.index().as_str()),
        ("foo.pdb", "11F772844EDE7667A5234B0E7B07EEF11a")
    );
    assert_eq!(
        FileKey::portable_pdb("/_/obj/App.pdb", Guid::from_bytes(&GUID)).index(),
        "11f772844ede7667a5234b0e7b07eef1FFFFFFFF"
    );
    let image = FileKey::image("ntdll.dll", 0x0ABC_DEF1, 0x1F_0000);
    assert_eq!(image.to_string(), "ntdll.dll 0ABCDEF11f0000");
}

#[test]
fn a_name_from_a_trace_is_never_more_than_a_file_name() {
    let name = |path: &str| pdb_key(path, GUID, 1).name().map(str::to_owned);
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
        if let Ok(name) = pdb_key(&path, GUID, 1).name() {
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
