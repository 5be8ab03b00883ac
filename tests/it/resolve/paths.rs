//! Symbol paths as people have them in their environment, through the command line.

use std::fs;

use crate::support::command::{Output, output};
use crate::support::data;
use crate::support::resolve::{Bench, Module, Recording, Told, on_server};
use crate::support::store::{Server, files};

const BASE: u64 = 0x7ffa_0000_0000;
/// In std::exception::`scalar deleting destructor' of attach_amd64.dll.
const RVA: u32 = 0x10c3;
const NAMED: &str = "attach_amd64!std::exception::`scalar deleting destructor'";

/// A merged trace with one sample in attach_amd64.dll, and the bytes of its PDB.
fn bench() -> (Bench, Module, Vec<u8>) {
    let real = data::file("pdb/debugpy/attach_amd64.dll");
    let module = Module::of(&real, r"C:\app\attach_amd64.dll", BASE);
    let recording = Recording::of(std::slice::from_ref(&module), Told::Pdb).stack(8, &[module.at(RVA)]);
    (Bench::new(recording), module, fs::read(real.with_extension("pdb")).unwrap())
}

/// The program with these variables.
fn with(bench: &Bench, variables: &[(&str, &str)], verb: &str, args: &[&str]) -> Output {
    let mut command = bench.command(verb, args);
    output(command.envs(variables.iter().copied()))
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn what_a_variable_has_beside_is_skipped_with_one_warning() {
    let (bench, _, pdb) = bench();
    let folder = bench.path("pdbs");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("attach_amd64.pdb"), pdb).unwrap();
    let value =
        format!("{}/none;symsrv*other.dll*x*y;ftp://me:word@h/x;{}", folder.display(), folder.display());
    for variable in ["_NT_SYMBOL_PATH", "_NT_ALT_SYMBOL_PATH"] {
        for (verb, args) in
            [("convert", &["-f", "folded"][..]), ("info", &[]), ("symbols", &[]), ("symbols", &["--fetch"])]
        {
            let said = with(&bench, &[(variable, &value)], verb, args).success();
            let warnings: Vec<_> = said.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
            let expected = [
                format!(
                    "warning: {variable}: skipped `symsrv*other.dll*x*y`: its symbol server library is not symsrv.dll; \
                     write `srv*FOLDER*ADDRESS` if the server can be reached by HTTP"
                ),
                format!(
                    "warning: {variable}: skipped `ftp://h/x`: the address begins with neither https:// nor http://; \
                     write `srv*FOLDER*https://HOST/PATH`"
                ),
            ];
            assert_eq!(warnings, expected, "{verb}");
            let text = said.text();
            assert!(
                text.contains("scalar deleting destructor") || text.contains("resolved"),
                "{verb}: {text}"
            );
            let quiet = with(&bench, &[(variable, &value)], verb, &[args, &["--quiet"]].concat()).success();
            assert!(!quiet.stderr.contains("skipped"), "{}", quiet.stderr);
            let nothing = if args.contains(&"--fetch") { "--quiet" } else { "--no-symbols" };
            let none = with(&bench, &[(variable, &value)], verb, &[args, &[nothing]].concat()).success();
            assert!(!none.stderr.contains("skipped"), "{}", none.stderr);
        }
    }
    // Typed, it is a wrong command line, and no work is done.
    let typed = with(&bench, &[], "convert", &["--symbols", "symsrv*other.dll*x*y", "-o", "out.svg"]);
    assert_eq!(typed.code, 2);
    assert!(
        typed.stderr.contains("--symbols: `symsrv*other.dll*x*y`") && typed.stderr.contains("; write `srv*"),
        "{}",
        typed.stderr
    );
}

/// Names of modules go to servers that the path names, and to no other.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_path_without_a_server_asks_none() {
    let (bench, ..) = bench();
    let cache = bench.path("cache");
    for path in [
        format!("srv*{}*", cache.display()),
        "srv**".to_owned(),
        "cache*".to_owned(),
        // Not understood: whoever set it did not set Microsoft's server.
        "symsrv*other.dll*x".to_owned(),
    ] {
        let said = with(&bench, &[("_NT_SYMBOL_PATH", &path)], "convert", &["-f", "folded"]).success();
        assert!(
            !said.stderr.contains("downloading") && !said.stderr.contains("msdl"),
            "{path}: {}",
            said.stderr
        );
        let listed = with(&bench, &[("_NT_SYMBOL_PATH", &path)], "symbols", &["--places"]).success();
        assert!(!listed.text().contains("http"), "{path}: {}", listed.text());
    }
    // Where none is set, and by its short name, it is Microsoft's.
    for path in ["", "srv*"] {
        let listed = with(&bench, &[("_NT_SYMBOL_PATH", path)], "symbols", &["--places"]).success();
        let asked = "https://msdl.microsoft.com/download/symbols/attach_amd64.pdb/";
        assert!(listed.text().contains(asked) && listed.text().contains("offline"), "{}", listed.text());
    }
}

/// docs/symbol-paths.md, "A machine without a network".
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_cache_that_is_taken_along() {
    let (bench, module, pdb) = bench();
    let server = Server::with_files([(on_server(&module.pdb_key()), pdb)]);
    let stick = bench.path("stick");
    let path = format!("srv*{}*{}", stick.display(), server.url());
    let fetched = bench.run("symbols", &["--fetch", "--symbols", &path]);
    let told = format!("downloading symbols from {} to {} (--offline", server.url(), stick.display());
    assert!(fetched.stderr.contains(&told), "{}", fetched.stderr);
    let kept = [on_server(&module.pdb_key()).trim_start_matches('/').to_owned()];
    assert_eq!(files(&stick), kept);
    assert_eq!(files(&bench.path("home")), Vec::<String>::new(), "each file once");
    assert_eq!(bench.stacks(&["--symbols", stick.to_str().unwrap(), "--offline"]), [NAMED]);

    // With another build in it, it simply has not the file.
    let (_, guid, age) = module.pdb.clone().unwrap();
    let other = Module { pdb: Some(("attach_amd64.pdb".to_owned(), guid, age + 1)), ..module };
    Recording::of(std::slice::from_ref(&other), Told::Pdb).stack(8, &[other.at(RVA)]).write(&bench.trace);
    let stick = stick.to_str().unwrap();
    let said = bench.run("convert", &["--symbols", stick, "--offline", "-f", "folded"]);
    assert!(said.stderr.contains("attach_amd64.dll (100.0% of samples): not found"), "{}", said.stderr);
    assert!(!said.stderr.contains("fetch the file again"), "{}", said.stderr);
    // A server's answer says more.
    let path = format!("{stick};{}", server.url());
    let symbols = bench.symbols(&["--symbols", &path, "--fetch"]);
    assert_eq!(symbols[0]["verdict"], "not_found");
    let host = server.url().replace("http://", "");
    assert_eq!(symbols[0]["detail"], format!("not found: {host}: not there"));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_file_kept_elsewhere_than_announced_is_noted() {
    let (bench, module, pdb) = bench();
    let server = Server::with_files([(on_server(&module.pdb_key()), pdb)]);
    let no_folder = bench.path("file");
    fs::write(&no_folder, "a file, where a folder should be").unwrap();
    let path = format!("srv*{}*{}", no_folder.display(), server.url());
    let said = bench.run("symbols", &["--fetch", "--symbols", &path]);
    let noted = said.stderr.lines().filter(|line| line.starts_with("warning: symbols are kept in ")).count();
    assert_eq!(noted, 1, "{}", said.stderr);
    assert!(said.stderr.contains(bench.path("home").to_str().unwrap()), "{}", said.stderr);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_login_is_shown_nowhere() {
    let (bench, ..) = bench();
    let server = Server::with_files([]);
    let path = format!("srv*{}*{}", bench.path("c").display(), server.url().replace("//", "//me:secret@"));
    for (verb, args) in
        [("symbols", &["--fetch", "--places"][..]), ("symbols", &["--json"]), ("convert", &[])]
    {
        let said = with(&bench, &[("_NT_SYMBOL_PATH", &path)], verb, args).success();
        assert!(!said.stderr.contains("secret") && !said.text().contains("secret"), "{verb}");
    }
    assert!(server.asked().iter().any(|asked| asked.contains("attach_amd64.pdb")));
}

/// `dump_stornvme.sys` is stornvme.sys, loaded once more; no file has its name, and merged traces know no PDB of it.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_driver_for_crash_dumps_is_named_as_its_original() {
    const KERNEL: u64 = 0xffff_f800_1000_0000;
    let real = data::file("pdb/debugpy/attach_amd64.dll");
    let driver = |name: &str, base: u64| Module::of(&real, &format!(r"C:\Windows\drivers\{name}"), base);
    let original = driver("attach_amd64.sys", KERNEL);
    assert_ne!(original.checksum, 0, "a driver has a checksum");
    let copy = Module { pdb: None, timestamp: 0, ..driver("dump_attach_amd64.sys", KERNEL + 0x100_0000) };
    let pdbs = real.parent().unwrap().to_str().unwrap();
    let named = "[user stack missing];dump_attach_amd64!std::exception::`scalar deleting destructor'";
    // By the original in the same trace.
    let recording = Recording::of(&[original.clone(), copy.clone()], Told::Pdb).stack(8, &[copy.at(RVA)]);
    let bench = Bench::new(recording);
    assert_eq!(bench.stacks(&["--symbols", pdbs, "--offline"]), [named]);
    // Another build of that name is not the original.
    let other = Module { checksum: original.checksum ^ 1, ..original };
    Recording::of(&[other, copy.clone()], Told::Pdb).stack(8, &[copy.at(RVA)]).write(&bench.trace);
    assert_eq!(bench.symbols(&["--symbols", pdbs])[0]["verdict"], "no_id");
    // By its image.
    let images = bench.path("images");
    fs::create_dir(&images).unwrap();
    fs::copy(&real, images.join("Attach_AMD64.sys")).unwrap();
    let images = images.to_str().unwrap();
    Recording::of(std::slice::from_ref(&copy), Told::Rundown).stack(8, &[copy.at(RVA)]).write(&bench.trace);
    assert_eq!(bench.stacks(&["--images", images, "--symbols", pdbs, "--offline"]), [named]);
}
