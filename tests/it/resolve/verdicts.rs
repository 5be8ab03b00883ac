//! What is said of a module whose functions cannot be named, and why: by `convert`, `symbols` and `info` alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::data;
use crate::support::resolve::{Bench, Module, Recording, Told, on_server};
use crate::support::store::{Answer, Server};

const BASE: u64 = 0x7ffa_0000_0000;
/// std::exception::`scalar deleting destructor' of attach_amd64.dll, before its inlined call.
const RVA: u32 = 0x10c3;

struct Case {
    bench: Bench,
    module: Module,
    real: PathBuf,
}

/// A trace with one sample in `image`, which `change` may tell otherwise.
fn case(image: &str, told: Told, change: impl FnOnce(&mut Module)) -> Case {
    let real = data::file(&format!("pdb/{image}"));
    let name = real.file_name().unwrap().to_str().unwrap().to_owned();
    let mut module = Module::of(&real, &format!(r"C:\app\{name}"), BASE);
    change(&mut module);
    let recording = Recording::of(std::slice::from_ref(&module), told);
    let bench = Bench::new(recording.stack(8, &[BASE + u64::from(RVA)]));
    Case { bench, module, real }
}

fn merged() -> Case {
    case("debugpy/attach_amd64.dll", Told::Pdb, |_| ())
}

impl Case {
    fn pdb(&self) -> PathBuf {
        self.real.with_extension("pdb")
    }

    /// Everything that tells the verdict says this word and this cause; `named` says whether the address has a name.
    #[track_caller]
    fn verdict(&self, args: &[&str], word: &str, cause: &str, named: bool) {
        let symbols = self.bench.symbols(args);
        let [module] = symbols.as_slice() else { panic!("{symbols:?}") };
        assert_eq!(module["verdict"], word, "{module}");
        assert!(module["detail"].as_str().unwrap().contains(cause), "{module}");
        assert_eq!(module["named"], i32::from(named), "{module}");

        let table = self.bench.run("symbols", args);
        assert!(table.text().contains(cause), "{}", table.text());

        let info = self.bench.run("info", &[args, &["--json"]].concat());
        let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
        let symbols = &info["modules"][0]["symbols"];
        assert_eq!(symbols["verdict"], word, "{symbols}");
        assert!(symbols["detail"].as_str().unwrap().contains(cause), "{symbols}");

        let offline = [args, &["--offline", "-f", "folded"]].concat();
        let convert = self.bench.run("convert", &offline);
        // An image that is at hand says at least where the function begins.
        let unnamed = ["!? 1", "!sub_"];
        let is_unnamed = unnamed.iter().any(|text| convert.text().contains(text));
        assert_eq!(is_unnamed, !named, "{}", convert.text());
        let sure = matches!(word, "resolved" | "public");
        assert_eq!(convert.stderr.contains(cause), !sure, "{}", convert.stderr);
        let share = if named { "named: 100.0% of samples" } else { "named: 0.0% of samples" };
        assert!(convert.stderr.contains(share), "{}", convert.stderr);
    }

    /// A folder with these files: name and contents.
    fn folder(&self, files: &[(&str, &[u8])]) -> String {
        let folder = self.bench.path("folder");
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes).unwrap();
        }
        folder.to_str().unwrap().to_owned()
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn resolved() {
    let case = merged();
    let folder = case.folder(&[("attach_amd64.pdb", &fs::read(case.pdb()).unwrap())]);
    case.verdict(&["--symbols", &folder], "resolved", "attach_amd64.pdb", true);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn public_symbols_only() {
    let real = data::file("pdb/dump_syms/basic32-min.dll");
    let module = Module::of(&real, r"C:\app\basic32-min.dll", BASE);
    let recording = Recording::of(std::slice::from_ref(&module), Told::Pdb);
    let bench = Bench::new(recording.stack(8, &[module.at(0x6be3)]));
    let folder = real.parent().unwrap().to_str().unwrap();
    let symbols = bench.symbols(&["--symbols", folder]);
    assert_eq!(symbols[0]["verdict"], "public");
    assert!(symbols[0]["detail"].as_str().unwrap().starts_with("public symbols only, from "));
    assert_eq!(bench.stacks(&["--symbols", folder, "--offline"]), ["basic32-min!test1"]);
    let info = bench.run("info", &["--json", "--symbols", folder]);
    assert!(info.text().contains("\"verdict\": \"public\""));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn exports_only_with_the_cause_of_the_missing_pdb() {
    let case = case("debugpy/attach_amd64.dll", Told::Pdb, |_| ());
    let image = fs::read(&case.real).unwrap();
    // AttachAndRunPythonCode is exported; the sample is in another function, which no export names.
    let folder = case.folder(&[("attach_amd64.dll", &image)]);
    case.verdict(&["--symbols", &folder], "not_found", "not found: ", false);

    let mozwer = data::file("pdb/dump_syms/mozwer.dll");
    let module = Module::of(&mozwer, r"C:\app\mozwer.dll", BASE);
    let recording = Recording::of(std::slice::from_ref(&module), Told::Pdb);
    let bench = Bench::new(recording.stack(8, &[module.at(0x1010)]));
    let case = Case { bench, module, real: mozwer };
    let folder = case.folder(&[("mozwer.dll", &fs::read(&case.real).unwrap())]);
    let symbols = case.bench.symbols(&["--symbols", &folder]);
    assert_eq!(symbols[0]["verdict"], "exports");
    let detail = symbols[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("nearest exports of") && detail.contains("no PDB: ") && detail.ends_with("not there"),
        "{detail}"
    );
    let convert = case.bench.run("convert", &["--symbols", &folder, "--offline"]);
    assert!(convert.stderr.contains("nearest exports of"), "{}", convert.stderr);
    assert!(convert.stderr.contains("with --symbols"), "the cure: {}", convert.stderr);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn symbols_that_name_nothing_there() {
    let real = data::file("pdb/debugpy/attach_amd64.dll");
    let module = Module::of(&real, r"C:\app\attach_amd64.dll", BASE);
    // In the headers, before the first section.
    let recording =
        Recording::of(std::slice::from_ref(&module), Told::Pdb).stack(8, &[module.at(RVA - 0x1000)]);
    let case = Case { bench: Bench::new(recording), module, real };
    let folder = case.real.parent().unwrap().to_str().unwrap();
    let symbols = case.bench.symbols(&["--symbols", folder]);
    assert_eq!(symbols[0]["verdict"], "no_names");
    assert!(symbols[0]["detail"].as_str().unwrap().ends_with("attach_amd64.pdb names none of its addresses"));
    let convert = case.bench.run("convert", &["--symbols", folder, "--offline"]);
    assert!(convert.stderr.contains("names none of its addresses"), "{}", convert.stderr);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn not_found_names_each_place_and_its_answer() {
    let case = merged();
    let folder = case.folder(&[]);
    case.verdict(&["--symbols", &folder], "not_found", "not found: ", false);
    let server = Server::start(|_, _| Answer::Status(404, Vec::new()));
    let path = format!("{folder};srv*{}", server.url());
    let offline = case.bench.run("convert", &["--symbols", &path, "--offline"]);
    assert!(offline.stderr.contains("not asked: offline; run without --offline"), "{}", offline.stderr);

    let listed = case.bench.run("symbols", &["--symbols", &path, "--fetch", "--places"]);
    let [in_folder, on_server] = [
        format!("{folder}/attach_amd64.pdb: not there"),
        format!("{}{}: not there", server.url(), on_server(&case.module.pdb_key())),
    ];
    let text = listed.text().replace('\\', "/");
    assert!(text.contains(&in_folder.replace('\\', "/")) && text.contains(&on_server), "{text}");
    assert!(text.contains("cure: "), "{text}");
    // The image was asked for too, as there is no PDB.
    assert!(text.contains(&on_server_of_image(&case.module)), "{text}");
}

fn on_server_of_image(module: &Module) -> String {
    on_server(&module.image_key())
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn another_build_is_named_and_never_used() {
    for wrong in ["age", "guid"] {
        let change = |module: &mut Module| match (&mut module.pdb, wrong) {
            (Some((_, _, age)), "age") => *age += 1,
            (Some((_, guid, _)), _) => guid[3] ^= 1,
            (None, _) => unreachable!(),
        };
        let case = case("debugpy/attach_amd64.dll", Told::Pdb, change);
        let right = fs::read(case.pdb()).unwrap();
        let folder = case.folder(&[("attach_amd64.pdb", &right)]);
        case.verdict(&["--symbols", &folder], "mismatch", "attach_amd64.pdb: wrong file: found ", false);

        // On a server, it never gets into the cache.
        let files = [(on_server(&case.module.pdb_key()), right)];
        let server = Server::with_files(files);
        let cache = case.bench.path("cache");
        let path = format!("srv*{}*{}", cache.display(), server.url());
        let convert = case.bench.run("convert", &["--symbols", &path, "-f", "folded"]);
        assert!(convert.text().contains("!?"), "{}", convert.text());
        assert!(convert.stderr.contains("wrong file: found "), "{}", convert.stderr);
        assert_eq!(crate::support::store::files(&cache), Vec::<String>::new());
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_wrong_file_is_named_even_when_the_right_one_is_found_elsewhere() {
    let case = merged();
    let wrong = data::file("pdb/samply/WriteArgument.pdb");
    let folder = case.folder(&[("attach_amd64.pdb", &fs::read(wrong).unwrap())]);
    let path = format!("{folder};{}", case.pdb().parent().unwrap().display());
    let convert = case.bench.run("convert", &["--symbols", &path, "--offline"]);
    assert!(
        convert.stderr.contains("attach_amd64.pdb was not used: wrong file: found "),
        "{}",
        convert.stderr
    );
    assert!(convert.text().contains("scalar deleting destructor"));
    let table = case.bench.run("symbols", &["--symbols", &path]);
    assert!(
        table.text().contains("resolved from") && table.text().contains("wrong file"),
        "{}",
        table.text()
    );
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_damaged_file_is_unreadable() {
    let case = merged();
    let mut bytes = fs::read(case.pdb()).unwrap();
    bytes.truncate(bytes.len() / 2);
    let folder = case.folder(&[("attach_amd64.pdb", &bytes)]);
    case.verdict(&["--symbols", &folder], "unreadable", "attach_amd64.pdb cannot be read: ", false);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_small_share_is_skipped() {
    let real = data::file("pdb/debugpy/attach_amd64.dll");
    let module = Module::of(&real, r"C:\app\attach_amd64.dll", BASE);
    let mut recording = Recording::of(std::slice::from_ref(&module), Told::Pdb).stack(8, &[module.at(RVA)]);
    for _ in 0..9 {
        recording = recording.stack(8, &[0x1234]);
    }
    let bench = Bench::new(recording);
    let args = ["--symbols", real.parent().unwrap().to_str().unwrap(), "--offline", "--min-module-share"];
    let skipped = bench.run("convert", &[&args[..], &["10.5"]].concat());
    assert!(
        skipped.stderr.contains("skipped: 10.00% of the samples; lower --min-module-share"),
        "{}",
        skipped.stderr
    );
    let kept = bench.run("convert", &[&args[..], &["10"]].concat());
    assert!(kept.text().contains("scalar deleting destructor"), "{}", kept.text());
}

/// An unmerged trace tells no PDB; an image that lies where the trace says tells it.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_local_image_tells_the_pdb() {
    for told in [Told::Load, Told::Rundown] {
        let real = data::file("pdb/debugpy/attach_amd64.dll");
        let bench = Bench::new(Recording::of(&[], told).stack(8, &[1]));
        let image = bench.path("attach_amd64.dll");
        let module = Module::of(&real, image.to_str().unwrap(), BASE);
        assert_ne!(module.checksum, 0, "a signed image has a checksum");
        Recording::of(std::slice::from_ref(&module), told).stack(8, &[module.at(RVA)]).write(&bench.trace);

        let missing = bench.symbols(&[]);
        assert_eq!(missing[0]["verdict"], "no_id", "{missing:?}");
        let convert = bench.run("convert", &["--offline"]);
        assert!(
            convert.stderr.contains("the trace does not identify its PDB, and its image was not found"),
            "{}",
            convert.stderr
        );
        assert!(convert.stderr.contains("merge the recording"), "{}", convert.stderr);
        let info = bench.run("info", &["--json"]);
        assert!(info.text().contains("\"verdict\": \"no_id\""));

        fs::copy(&real, &image).unwrap();
        fs::copy(real.with_extension("pdb"), bench.path("attach_amd64.pdb")).unwrap();
        let stacks = bench.stacks(&["--offline"]);
        assert_eq!(stacks, ["attach_amd64!std::exception::`scalar deleting destructor'"], "{told:?}");
        assert_eq!(bench.symbols(&[])[0]["verdict"], "resolved");

        // Another build at the same path.
        let mut other = fs::read(&image).unwrap();
        let pe = u32::from_le_bytes(other[0x3C..0x40].try_into().unwrap()) as usize;
        (other[pe + 8], other[pe + 88]) = (!other[pe + 8], !other[pe + 88]);
        fs::write(&image, other).unwrap();
        let mismatch = bench.symbols(&[]);
        assert_eq!(mismatch[0]["verdict"], "mismatch", "{mismatch:?}");
    }
}

/// With neither time stamp nor checksum, the file must be older than the recording.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn an_image_without_evidence_must_not_be_written_since() {
    let real = data::file("pdb/node-pty/conpty_console_list.node");
    let bench = Bench::new(Recording::of(&[], Told::Rundown).stack(8, &[1]));
    let image = bench.path("conpty_console_list.node");
    let module = Module { checksum: 0, ..Module::of(&real, image.to_str().unwrap(), BASE) };
    // Written now: a copy would keep its time on Windows.
    fs::write(&image, fs::read(&real).unwrap()).unwrap();
    fs::copy(real.with_extension("pdb"), bench.path("conpty_console_list.pdb")).unwrap();
    let now = SystemTime::now();
    let filetime = |time: SystemTime| {
        116_444_736_000_000_000
            + (time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() / 100) as i64
    };
    let verdict = |recorded: SystemTime| {
        let recording =
            Recording::of(std::slice::from_ref(&module), Told::Rundown).recorded(filetime(recorded));
        recording.stack(8, &[module.at(0x10d2)]).write(&bench.trace);
        bench.symbols(&[])[0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(now + Duration::from_secs(60)), "resolved");
    assert_eq!(verdict(now - Duration::from_secs(60)), "mismatch");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn hostile_names_find_nothing_and_write_nothing() {
    let real = data::file("pdb/debugpy/attach_amd64.dll");
    let long = format!("{}.pdb", "x".repeat(1_000));
    let names = [
        r"..\..\..\x.pdb",
        "../../x.pdb",
        "..",
        "CON",
        "NUL.pdb",
        "a:b.pdb",
        "x.pdb\u{1}",
        "COM1",
        ".etwprof",
        long.as_str(),
        r"\\server\share\x.pdb",
        "/dev/zero",
        "x ",
    ];
    let server = Server::start(|_, _| Answer::File(b"what it asked for".to_vec()));
    let modules: Vec<Module> = (1..)
        .zip(names)
        .map(|(number, name)| {
            let mut module = Module::of(&real, &format!(r"\\server\share\..\..\{name}.dll"), number << 32);
            module.pdb.as_mut().unwrap().0 = name.to_owned();
            module
        })
        .collect();
    let mut recording = Recording::of(&modules, Told::Pdb);
    for module in &modules {
        recording = recording.stack(8, &[module.at(RVA)]);
    }
    let bench = Bench::new(recording);
    let deep = bench.path("a/b/c/cache");
    let path = format!("srv*{}*{}", deep.display(), server.url());
    let symbols = bench.symbols(&["--symbols", &path, "--fetch"]);
    assert_eq!(symbols.len(), names.len());
    assert!(symbols.iter().all(|module| module["named"] == 0), "{symbols:?}");
    let outside: Vec<String> = crate::support::store::files(bench.folder.path())
        .into_iter()
        .filter(|file| file != "trace.etl" && !file.contains("/.etwprof/failed/"))
        .collect();
    assert_eq!(outside, Vec::<String>::new());
    for asked in server.asked() {
        assert!(!asked.split('/').any(|part| part == "..") && asked.len() < 400, "{asked}");
    }
    let refused =
        symbols.iter().filter(|module| module["detail"].as_str().unwrap().contains("file name")).count();
    assert!(refused >= 6, "{symbols:?}");
}

/// `etwprof symbolize` looks in the same places.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn symbolize_looks_along_the_path() {
    let case = merged();
    let image = case.bench.path("attach_amd64.dll");
    fs::copy(&case.real, &image).unwrap();
    let symbolize = |args: &[&str]| {
        let mut command = crate::support::command::command();
        for name in ["HOME", "LOCALAPPDATA", "XDG_CACHE_HOME"] {
            command.env(name, case.bench.path("home"));
        }
        command.arg("symbolize").arg(&image).args(["10c3", "--json"]).args(args);
        crate::support::command::output(&mut command).success()
    };
    let function = |text: &str| {
        let entries: serde_json::Value = serde_json::from_str(text).unwrap();
        entries[0]["function"].as_str().map(str::to_owned)
    };
    let name = Some("std::exception::`scalar deleting destructor'".to_owned());

    let nothing = symbolize(&["--offline"]);
    assert_eq!(function(nothing.text()), None);
    assert!(
        nothing.stderr.contains("attach_amd64.pdb") && nothing.stderr.contains("cannot find"),
        "{}",
        nothing.stderr
    );
    assert!(nothing.stderr.contains("attach_amd64.pdb: not there"), "{}", nothing.stderr);

    let server = Server::with_files([(on_server(&case.module.pdb_key()), fs::read(case.pdb()).unwrap())]);
    let path = format!("srv*{}*{}", case.bench.path("cache").display(), server.url());
    let offline = symbolize(&["--symbols", &path, "--offline"]);
    assert!(offline.stderr.contains("not asked: offline"), "{}", offline.stderr);
    assert!(server.asked().is_empty());
    assert_eq!(function(symbolize(&["--symbols", &path]).text()), name);
    assert_eq!(function(symbolize(&["--symbols", &path, "--offline"]).text()), name);
    assert_eq!(server.asked().len(), 1);

    let folder = case.pdb().parent().unwrap().to_str().unwrap().to_owned();
    assert_eq!(function(symbolize(&["--symbols", &folder, "--offline"]).text()), name);
    // Beside the image, of another build.
    fs::copy(data::file("pdb/samply/WriteArgument.pdb"), case.bench.path("attach_amd64.pdb")).unwrap();
    let both = symbolize(&["--symbols", &folder, "--offline"]);
    assert_eq!(function(both.text()), name);
    assert!(both.stderr.contains("attach_amd64.pdb was not used: wrong file"), "{}", both.stderr);
    let quiet = symbolize(&["--symbols", &folder, "--offline", "--quiet"]);
    assert_eq!(quiet.stderr, "");
    assert!(Path::new(&folder).exists());
}
