//! From a trace to names, end to end: real images and their PDBs, through servers and folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::command::{command, output};
use crate::support::data;
use crate::support::native::{Symbols, level};
use crate::support::resolve::{Bench, Module, NAME, PROCESS, Recording, Told, on_server};
use crate::support::store::Server;

/// Image, its PDB, whether LLVM's answers for it lie beside it, and the base.
const IMAGES: [(&str, &str, bool, u64); 9] = [
    ("debugpy/attach_amd64.dll", "debugpy/attach_amd64.pdb", true, 0x7ffa_1000_0000),
    ("debugpy/inject_dll_amd64.exe", "debugpy/inject_dll_amd64.pdb", true, 0x7ff6_2000_0000),
    ("debugpy/attach_x86.dll", "debugpy/attach_x86.pdb", true, 0x1000_0000),
    ("node-pty/conpty_console_list.node", "node-pty/conpty_console_list.pdb", true, 0x7ffa_3000_0000),
    (
        "systeminformer/arm64/systeminformer.sys",
        "systeminformer/arm64/systeminformer.pdb",
        false,
        0xffff_f803_4000_0000,
    ),
    ("syzygy/test_vtables_omap.dll", "syzygy/test_vtables_omap.dll.pdb", false, 0x2000_0000),
    ("dump_syms/basic32-min.dll", "dump_syms/basic32-min.pdb", false, 0x3000_0000),
    ("dump_syms/basic32.dll", "dump_syms/basic32.pd_", false, 0x4000_0000),
    (
        "symbolic/windows/CrashWithException.exe",
        "symbolic/windows/CrashWithException.pdb",
        true,
        0x7ff6_5000_0000,
    ),
];

/// Addresses in an image: those that LLVM was asked for, else some from all over its code.
fn addresses(image: &Path, truth: bool) -> BTreeMap<u32, String> {
    if truth {
        let text = fs::read_to_string(format!("{}.truth.txt", image.display())).unwrap();
        let rva = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        // The outermost function of the chain: `function @ file:line <- function @ file:line`.
        let function = |chain: &str| {
            let outermost = chain.rsplit(" <- ").next().unwrap_or_default();
            outermost.rsplit_once(" @ ").map_or(outermost, |(name, _)| name).to_owned()
        };
        let line = |line: &str| line.split_once('\t').map(|(at, chain)| (rva(at), function(chain)));
        return text.lines().filter_map(line).step_by(3).collect();
    }
    // The code of basic32.dll begins at 0x6be0.
    (0x6be0..0xc000).step_by(0x31).map(|rva| (rva, String::new())).collect()
}

/// One thread for each address, so that the output tells which is which.
struct Everything {
    bench: Bench,
    modules: Vec<(Module, BTreeMap<u32, String>)>,
    server: Server,
}

fn everything() -> Everything {
    let root = data::file("pdb");
    let mut modules = Vec::new();
    let mut files = Vec::new();
    for (image, pdb, truth, base) in IMAGES {
        let real = root.join(image);
        let name = real.file_name().unwrap().to_str().unwrap();
        let module = Module::of(&real, &format!(r"\Device\HarddiskVolume3\app\{name}"), base);
        let path = on_server(&module.pdb_key());
        // A compressed file has a `_` for the last letter of its name.
        let path = if pdb.ends_with('_') { path.strip_suffix('b').unwrap().to_owned() + "_" } else { path };
        files.push((path, fs::read(root.join(pdb)).unwrap()));
        modules.push((module, addresses(&real, truth)));
    }
    let all: Vec<Module> = modules.iter().map(|(module, _)| module.clone()).collect();
    let mut recording = Recording::of(&all, Told::Pdb);
    for (index, (module, addresses)) in modules.iter().enumerate() {
        for rva in addresses.keys() {
            recording = recording.stack(thread(index, *rva), &[module.at(*rva)]);
        }
    }
    Everything { bench: Bench::new(recording), modules, server: Server::with_files(files) }
}

fn thread(module: usize, rva: u32) -> u32 {
    ((module as u32 + 1) << 24) + 4 * rva
}

/// By thread, what `convert --threads` shows: the frames, outermost first.
fn by_thread(bench: &Bench, args: &[&str]) -> BTreeMap<u32, Vec<String>> {
    let stacks = bench.stacks(&[&["--threads", "--addresses"], args].concat());
    let parse = |stack: &String| {
        let (thread, frames) = stack.split_once(';').unwrap();
        let frames = frames.split(';').filter(|frame| !frame.starts_with('['));
        let thread = thread.strip_prefix("thread ").unwrap().parse().unwrap();
        (thread, frames.map(str::to_owned).collect())
    };
    stacks.iter().map(parse).collect()
}

/// What `etwprof symbolize` says of the addresses, as frames of the module.
fn frames_of(entry: &Value, module: &str, rva: u32, inlined: bool) -> Vec<String> {
    let Some(function) = entry["function"].as_str() else { return vec![format!("{module}!0x{rva:x}")] };
    let near = if entry["approximate"] == true { "~" } else { "" };
    let mut frames = vec![format!("{module}!{near}{function}")];
    let calls = entry["inlined"].as_array().unwrap().iter().rev().filter(|_| inlined);
    frames.extend(calls.map(|call| format!("{module}!{}", call["function"].as_str().unwrap())));
    frames.iter().map(|frame| frame.replace(';', ":")).collect()
}

fn symbolized(image: &Path, pdb: &Path, rvas: impl Iterator<Item = u32>, more: &[&str]) -> Vec<Value> {
    let rvas: Vec<String> = rvas.map(|rva| format!("{rva:x}")).collect();
    let mut command = command();
    command.arg("symbolize").arg(image).args(&rvas).args(["--json", "--offline"]).args(more);
    // A stripped image does not name the PDB that its server has.
    command.arg("--pdb").arg(pdb);
    serde_json::from_str(output(&mut command).success().text()).unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn true_names_through_a_symbol_server() {
    let Everything { bench, modules, server } = everything();
    let path = format!("srv*{}*{}", bench.path("cache").display(), server.url());
    let shown = by_thread(&bench, &["--symbols", &path]);
    let folded = by_thread(&bench, &["--symbols", &path, "--offline", "--no-inline"]);
    let root = data::file("pdb");
    for (index, ((module, addresses), (image, ..))) in modules.iter().zip(IMAGES).enumerate() {
        // The file that the server sent, from the cache.
        let key = module.pdb_key();
        let pdb = bench.path("cache").join(on_server(&key).trim_start_matches('/'));
        let entries = |more| symbolized(&root.join(image), &pdb, addresses.keys().copied(), more);
        let (entries, exact) = (entries(&[]), entries(&["--raw-names"]));
        let name = image.rsplit('/').next().unwrap().rsplit_once('.').unwrap().0;
        let (mut true_names, mut told, mut inlined) = (0, 0, 0);
        for (((rva, truth), entry), exact) in addresses.iter().zip(&entries).zip(&exact) {
            let thread = thread(index, *rva);
            // With the image, public symbols are sure where the trace alone cannot be.
            let sure =
                |frames: &[String]| -> Vec<String> { frames.iter().map(|f| f.replace("!~", "!")).collect() };
            let (with, without) = (frames_of(entry, name, *rva, true), frames_of(entry, name, *rva, false));
            assert_eq!(sure(&shown[&thread]), sure(&with), "{image} {rva:#x}");
            assert_eq!(sure(&folded[&thread]), sure(&without), "{image} {rva:#x}");
            inlined += usize::from(with != without);
            if let (Some(function), false) = (exact["function"].as_str(), truth.is_empty()) {
                told += 1;
                true_names += usize::from(level(function) == level(truth));
            }
        }
        let named = entries.iter().filter(|entry| !entry["function"].is_null()).count();
        assert!(named * 3 > addresses.len(), "{image}: {named} of {}", addresses.len());
        // The rest are aliases and unnamed code, which the tests of naming itself tell apart.
        assert!(true_names * 100 >= told * 92, "{image}: {true_names} of {told} as LLVM names them");
        assert!(inlined > 0 || told == 0, "{image}: no inlined call");
    }
    // One request for each PDB, but the compressed one is asked for twice; the second run asked for nothing.
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|path| path.contains(".pd")).count(), IMAGES.len() + 1, "{asked:?}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_same_names_from_plain_folders() {
    let Everything { bench, modules: _, server } = everything();
    let path = format!("srv*{}*{}", bench.path("cache").display(), server.url());
    let from_server = by_thread(&bench, &["--symbols", &path]);
    let root = data::file("pdb");
    let folder = bench.path("folder");
    fs::create_dir(&folder).unwrap();
    for (_, pdb, ..) in IMAGES.iter().filter(|(_, pdb, ..)| !pdb.ends_with('_')) {
        fs::copy(root.join(pdb), folder.join(Path::new(pdb).file_name().unwrap())).unwrap();
    }
    // The compressed one in the layout of a store.
    let store = bench.path("store/basic32.pdb");
    fs::create_dir_all(&store).unwrap();
    let packed = root.join("dump_syms/basic32.pd_");
    let module = Module::of(&root.join("dump_syms/basic32.dll"), "x", 0);
    fs::create_dir(store.join(module.pdb_key().index())).unwrap();
    fs::copy(packed, store.join(module.pdb_key().index()).join("basic32.pd_")).unwrap();
    let both = format!("{};{}", folder.display(), bench.path("store").display());
    assert_eq!(by_thread(&bench, &["--symbols", &both, "--offline"]), from_server);
    let verdicts = bench.symbols(&["--symbols", &both]);
    assert_eq!(verdicts.len(), IMAGES.len());
    for verdict in &verdicts {
        let stripped = verdict["path"].as_str().unwrap().ends_with("basic32-min.dll");
        assert_eq!(verdict["verdict"], if stripped { "public" } else { "resolved" }, "{verdict}");
    }
}

/// One module with its PDB in a folder of its own.
fn one(image: &str, base: u64, told: impl FnOnce(Recording, &Module) -> Recording) -> Bench {
    let real = data::file(&format!("pdb/{image}"));
    let name = real.file_name().unwrap().to_str().unwrap();
    let module = Module::of(&real, &format!(r"C:\app\{name}"), base);
    Bench::new(told(Recording::of(std::slice::from_ref(&module), Told::Pdb), &module))
}

fn in_data(folder: &str) -> String {
    data::file(folder).to_str().unwrap().to_owned()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_return_address_belongs_to_the_call_before_it() {
    // In pre_c_initialization, the call at 0x122f is the last instruction that was inlined from set_app_type; the
    // next instruction, 0x1234, is of set_fmode. main is at 0x1000.
    let bench = one("symbolic/windows/CrashWithException.exe", 0x7ff6_0000_0000, |recording, module| {
        let kernel = 0xffff_f800_1234_5678;
        recording
            .stack(8, &[module.at(0x1234)])
            .stack(12, &[module.at(0x105d), module.at(0x1234)])
            .stack(16, &[kernel, module.at(0x1234)])
            .stack(20, &[kernel, module.at(0x105d), module.at(0x1234)])
    });
    let folder = in_data("pdb/symbolic/windows");
    let stacks = by_thread(&bench, &["--symbols", &folder, "--offline"]);
    let named = |names: &[&str]| -> Vec<String> {
        let module = |name: &&str| {
            if name.starts_with("0x") { (*name).to_owned() } else { format!("CrashWithException!{name}") }
        };
        names.iter().map(module).collect()
    };
    let (outer, before, after) =
        ("pre_c_initialization", "__scrt_main_policy::set_app_type", "__scrt_file_policy::set_fmode");
    assert_eq!(stacks[&8], named(&[outer, after]), "a leaf is exact");
    assert_eq!(
        stacks[&12],
        named(&[outer, before, "printf"]),
        "a caller is where its call is; the leaf is exact"
    );
    // A system call or a fault: the address is that of the instruction to go on with.
    assert_eq!(
        stacks[&16],
        named(&[outer, after, "0xfffff80012345678"]),
        "what the kernel interrupted is exact"
    );
    assert_eq!(stacks[&20], named(&[outer, before, "printf", "0xfffff80012345678"]), "and its caller is not");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn functions_without_padding_between_them() {
    // KphpCaptureStackBackTrace of the ARM64 driver ends where KphCaptureStackBackTrace begins, at 0x16a8.
    let bench = one("systeminformer/arm64/systeminformer.sys", 0xffff_f800_1000_0000, |recording, module| {
        recording.stack(8, &[module.at(0x16a8)]).stack(12, &[module.at(0x10f0), module.at(0x16a8)])
    });
    let folder = in_data("pdb/systeminformer/arm64");
    let stacks = by_thread(&bench, &["--symbols", &folder, "--offline"]);
    assert_eq!(stacks[&8], ["systeminformer!KphCaptureStackBackTrace"]);
    let callers = ["systeminformer!KphpCaptureStackBackTrace", "systeminformer!KphDeleteNPagedLookaside"];
    assert_eq!(stacks[&12], callers);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn inlined_frames_are_marked_and_lines_are_shown() {
    let bench = one("debugpy/attach_amd64.dll", 0x7ffa_0000_0000, |recording, module| {
        recording.stack(8, &[module.at(0x10d2)])
    });
    let folder = in_data("pdb/debugpy");
    let args = ["--symbols", &folder, "--offline"];
    let tree = bench.run("convert", &args);
    let line = |text: &str, name: &str| text.lines().find(|line| line.contains(name)).map(str::to_owned);
    let inlined = line(tree.text(), "attach_amd64!std::exception::~exception").expect("the inlined call");
    assert!(inlined.ends_with(" (inlined)"), "{inlined}");
    let outer = line(tree.text(), "scalar deleting destructor").expect("the function");
    assert!(!outer.contains("inlined"), "{outer}");

    let folded = bench.run("convert", &[&args[..], &["--no-inline"]].concat());
    assert_eq!(line(folded.text(), "~exception"), None);
    assert!(line(folded.text(), "scalar deleting destructor").is_some());

    let lines = bench.run("convert", &[&args[..], &["--lines"]].concat());
    let inlined = line(lines.text(), "~exception").expect("the inlined call");
    assert!(inlined.ends_with("~exception (vcruntime_exception.h:91) (inlined)"), "{inlined}");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn dwarf_and_exports_in_images() {
    let root = data::file("pdb");
    let dwarf =
        Module::of(&root.join("dump_syms/basic64-dwarf.dll"), r"C:\app\basic64-dwarf.dll", 0x6_0000_0000);
    let exports = Module::of(&root.join("dump_syms/mozwer.dll"), r"C:\app\mozwer.dll", 0x7_0000_0000);
    let (inside, outside) = (exports.at(0x1010), exports.at(0x1094));
    let code = sym_function(&root.join("dump_syms/basic64-dwarf.sym"));
    let recording = Recording::of(&[dwarf.clone(), exports], Told::Pdb);
    let recording = recording.stack(8, &[dwarf.at(code.0)]).stack(12, &[inside]).stack(16, &[outside]);
    let bench = Bench::new(recording);
    let folder = root.join("dump_syms").to_str().unwrap().to_owned();
    let stacks = by_thread(&bench, &["--symbols", &folder, "--offline"]);
    let outermost = stacks[&8][0].strip_prefix("basic64-dwarf!").unwrap();
    assert_eq!(level(outermost), level(&code.1));
    assert_eq!(stacks[&12], ["mozwer!OutOfProcessExceptionEventCallback"]);
    // The exception table says that another function begins there.
    assert_eq!(stacks[&16], ["mozwer!0x1094"]);
    let verdicts = bench.symbols(&["--symbols", &folder]);
    let of = |name: &str| verdicts.iter().find(|v| v["path"].as_str().unwrap().ends_with(name)).unwrap();
    assert_eq!(of("basic64-dwarf.dll")["verdict"], "resolved");
    assert_eq!(of("mozwer.dll")["verdict"], "exports");
    assert_eq!((&of("mozwer.dll")["addresses"], &of("mozwer.dll")["named"]), (&2.into(), &1.into()));
}

/// The first function of a Breakpad file: an address in it, and its name.
fn sym_function(sym: &Path) -> (u32, String) {
    let text = fs::read_to_string(sym).unwrap();
    let line = text.lines().find(|line| line.starts_with("FUNC ")).unwrap();
    let line = line.trim_start_matches("FUNC ").trim_start_matches("m ");
    let (rva, rest) = line.split_once(' ').unwrap();
    let name = rest.splitn(3, ' ').nth(2).unwrap();
    (u32::from_str_radix(rva, 16).unwrap(), name.to_owned())
}

/// The trace was recorded in 2016 on .NET Framework 4.6; the PDBs of its three NGEN images were made there.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn methods_of_ngen_images() {
    let trace = data::file("etl/perfview/PerfViewData.etl");
    let bench = Bench::new(Recording::of(&[], Told::Pdb).stack(8, &[1]));
    let bench = Bench { trace, ..bench };
    let folder = in_data("pdb/perfview/ngen");
    let stacks = bench.stacks(&["--symbols", &folder, "--offline"]);
    // Read off the source of .NET Framework: each of these calls the next.
    for chain in [
        "mscorlib!System.IO.File.InternalExistsHelper;mscorlib!System.IO.File.InternalExists;\
         mscorlib!System.IO.File.FillAttributeInfo;\
         mscorlib!P/Invoke stub (string, int, ref WIN32_FILE_ATTRIBUTE_DATA);",
        "mscorlib!System.Globalization.CultureInfo.GetFormat;\
         mscorlib!System.Globalization.CultureInfo.DateTimeFormat.get;\
         mscorlib!System.Globalization.DateTimeFormatInfo.Calendar.set;\
         mscorlib!System.Globalization.DateTimeFormatInfo.InitializeOverridableProperties;\
         mscorlib!System.Globalization.CultureData.GetCalendar;",
        "mscorlib!System.IO.TextWriter.Dispose();mscorlib!System.IO.StreamWriter.Dispose;\
         mscorlib!System.IO.Stream.Close;mscorlib!System.IO.FileStream.Dispose;\
         mscorlib!System.Runtime.InteropServices.SafeHandle.Dispose(bool);",
        "System.Xml!System.Xml.XmlReader.Create(string, XmlReaderSettings, XmlParserContext);\
         System.Xml!System.Xml.XmlReaderSettings.CreateReader(string, XmlParserContext);",
    ] {
        assert!(stacks.iter().any(|stack| stack.contains(chain)), "{chain}");
    }
    assert!(stacks.iter().any(|stack| stack.contains(";System!System.")));
    let unnamed = |stack: &&String| {
        ["mscorlib.ni!?", "System.ni!?", "System.Xml.ni!?"].iter().any(|frame| stack.contains(frame))
    };
    assert_eq!(stacks.iter().find(unnamed), None);

    let verdicts = bench.symbols(&["--symbols", &folder]);
    // Most samples first.
    let counts: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict["named"] != 0)
        .map(|v| (v["pdb_name"].as_str().unwrap(), v["addresses"].as_u64(), v["named"].as_u64()))
        .collect();
    let all = |name, count| (name, Some(count), Some(count));
    assert_eq!(counts, [all("mscorlib.ni.pdb", 124), all("System.Xml.ni.pdb", 8), all("System.ni.pdb", 3)]);
}

/// PerfView packed the PDBs of those images into the archive: no flag is needed, and nothing is left behind.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn symbols_in_the_archive_of_the_recording_are_used() {
    let archive = data::packed("etl/perfview/net.4.5.x86-2016.etl.zip");
    let bench = Bench::new(Recording::of(&[], Told::Pdb).stack(8, &[1]));
    let bench = Bench { trace: archive, ..bench };
    let temporary = bench.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let run = |verb, args: &[&str]| {
        let mut command = bench.command(verb, args);
        output(command.env("TMPDIR", &temporary).env("TMP", &temporary).env("TEMP", &temporary)).success()
    };
    let folded = run("convert", &["-f", "folded", "--offline"]);
    assert!(
        folded.text().contains("mscorlib!System.Globalization.CultureInfo.GetFormat;"),
        "{}",
        folded.stderr
    );
    assert!(!folded.text().contains("mscorlib.ni!?"));
    let verdicts: Vec<serde_json::Value> = serde_json::from_str(run("symbols", &["--json"]).text()).unwrap();
    let of_mscorlib = verdicts.iter().find(|verdict| verdict["pdb_name"] == "mscorlib.ni.pdb").unwrap();
    assert_eq!(of_mscorlib["verdict"], "resolved");
    let detail = of_mscorlib["detail"].as_str().unwrap();
    assert!(detail.contains("2016.etl.zip") && detail.contains("symbols/mscorlib.ni.pdb/"), "{detail}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn the_heading_is_the_process() {
    let bench = Bench::new(Recording::of(&[], Told::Pdb).stack(8, &[0x1234]));
    let folded = bench.run("convert", &["-f", "folded", "--offline"]);
    assert_eq!(folded.text(), format!("{NAME} ({PROCESS});0x1234 1\n"));
}

/// No PDB, and the image is here: its addresses have no names, but those of one function are one frame.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn addresses_of_one_nameless_function_are_one_frame() {
    let root = data::file("pdb/node-pty");
    let image = root.join("conpty_console_list.node");
    let module = Module::of(&image, r"C:\app\conpty_console_list.node", 0x7ffa_3000_0000);
    let mut long = Symbols::read(&data::file("pdb/node-pty/conpty_console_list.pdb")).procedures;
    long.retain(|(_, len)| *len > 0x400);
    long.sort_unstable();
    long.dedup();
    let [(one, len), (other, _), ..] = long[..] else { panic!("{long:x?}") };
    let recording = Recording::of(std::slice::from_ref(&module), Told::Pdb)
        .stack(1, &[module.at(one)])
        .stack(2, &[module.at(one + len / 2)])
        .stack(3, &[module.at(one + len - 1)])
        .stack(4, &[module.at(other + 7)]);
    let bench = Bench::new(recording);
    let sub = |start: u32| format!("conpty_console_list!sub_{start:x}");
    let folder = bench.path("images");
    fs::create_dir(&folder).unwrap();
    fs::copy(&image, folder.join("conpty_console_list.node")).unwrap();
    let here = ["--offline", "--images", folder.to_str().unwrap()];
    let mut expected = [sub(one), sub(other)];
    expected.sort();
    assert_eq!(bench.stacks(&here), expected);
    let symbols = bench.symbols(&here[1..]);
    assert_eq!((&symbols[0]["named"], &symbols[0]["addresses"]), (&0.into(), &4.into()), "it is no name");
    // Without the image nothing is known of functions.
    assert_eq!(bench.stacks(&here[..1]), ["conpty_console_list!?"]);
    let addresses = bench.stacks(&["--offline", "--addresses"]);
    assert!(addresses.len() == 4 && addresses.iter().all(|stack| stack.contains("!0x")), "{addresses:?}");
}
