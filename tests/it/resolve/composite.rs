//! Precompiled code whose IL lies in other files: composite images, and instantiations of other assemblies' types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use etwprof::symbols::read::dotnet::r2r::R2rImage;
use etwprof::symbols::read::pe::Image;

use crate::support::command::{command, output};
use crate::support::composite::{Composite, component};
use crate::support::data;
use crate::support::image::{Assembly, Pe, instances, metadata, rtr_header, words};
use crate::support::resolve::{Bench, Module, NAME, PROCESS, Recording, Told, on_server};
use crate::support::store::Server;
use crate::synth::clr;

const BASE: u64 = 0x7FFD_4000_0000;
const CODE: u64 = 0x7FFD_3000_0000;
const FILE: &str = "framework-r2r.dll";
/// Time stamp, size, checksum.
const IDENTITY: [u32; 3] = [0x6500_0001, 0x2_0000, 0];
const IL_IDENTITY: [u32; 3] = [0x6500_0002, 0x8000, 0];

const MODULE: (&str, &str, &[&str]) = ("", "<Module>", &[]);
const LINQ: Assembly<'static> = Assembly {
    name: "System.Linq",
    version: [9, 0, 0, 0],
    mvid: Some([0x11; 16]),
    references: &[],
    types: &[MODULE, ("System.Linq", "Enumerable", &["Max", "Sum"])],
};
const APP: Assembly<'static> =
    Assembly { name: "App", mvid: Some([0x22; 16]), types: &[MODULE, ("Shop", "Cart", &["Total"])], ..LINQ };
/// Compiled together with the others, and not in the image.
const COLLECTIONS: Assembly<'static> = Assembly {
    name: "System.Collections",
    mvid: Some([0x33; 16]),
    types: &[MODULE, ("System.Collections.Generic", "Map`2", &["Add"])],
    ..LINQ
};

const SUM: u64 = BASE + 0x9005;
const TOTAL: u64 = BASE + 0x9015;
const ADD: u64 = BASE + 0x9025;

/// `Enumerable.Sum` of the first component, `Cart.Total` of the second, `Map<Cart, int>.Add` of neither.
fn composite() -> Vec<u8> {
    // Owner type: an instance of type 2 of module 4, with type 2 of module 3 and int. Then method 1. Module 1 is the
    // manifest itself, 2 the first assembly that it refers to.
    let add: &[u8] = &[0x40, 0x15, 0x3F, 4, 0x12, 2 << 2, 2, 0x3F, 3, 0x12, 2 << 2, 0x08, 1];
    Composite {
        version: (9, 2),
        identity: IDENTITY,
        components: &[(LINQ, &[(2, 0)]), (APP, &[(1, 1)])],
        others: &[COLLECTIONS],
        functions: &[[0x9000, 0x9010, 0], [0x9010, 0x9020, 0], [0x9020, 0x9030, 0]],
        instances: &[(add, 2)],
    }
    .file()
}

/// A module of the trace with this identity.
fn module(file: &str, base: u64, [timestamp, size, checksum]: [u32; 3]) -> Module {
    Module { path: format!(r"C:\app\{file}"), base, size, timestamp, checksum, pdb: None }
}

/// A process with the image, and a sample in each of its methods.
fn recording(more: &[Module]) -> Recording {
    let modules = [&[module(FILE, BASE, IDENTITY)], more].concat();
    let recording = Recording::of(&modules, Told::Load);
    [SUM, TOTAL, ADD].into_iter().fold(recording, |recording, address| recording.stack(8, &[address]))
}

/// The runtime compiles two of the methods again.
fn compiled_again(recording: Recording) -> Recording {
    let map = "System.Collections.Generic.Map`2[Shop.Cart,System.Int32]";
    recording
        .event(clr::Module::load(PROCESS, 0x55, r"C:\app\System.Linq.dll"))
        .event(clr::Module::load(PROCESS, 0x66, r"C:\app\System.Collections.dll"))
        .event(
            clr::Method::load(PROCESS, CODE, 0x10, ["System.Linq.Enumerable", "Sum", "void  ()"])
                .module(0x55)
                .token(0x0600_0002),
        )
        .event(clr::Method::load(PROCESS, CODE + 0x10, 0x10, [map, "Add", "void  ()"]).module(0x66))
        .stack(8, &[CODE + 5])
        .stack(8, &[CODE + 0x15])
}

/// The rundown lists `Enumerable.Sum`.
fn listed(recording: Recording) -> Recording {
    let sum = ["System.Linq.Enumerable", "Sum", "void  ()"];
    recording
        .event(clr::Module::dc_end(PROCESS, 0x55, r"C:\app\System.Linq.dll"))
        .event(clr::Method::dc_end(PROCESS, BASE + 0x9000, 0x10, sum).module(0x55).flags(0))
}

/// A folder of these files in the bench's.
fn folder(bench: &Bench, name: &str, files: &[(&str, &[u8])]) -> String {
    let folder = bench.path(name);
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

/// The leaves with their samples.
#[track_caller]
fn leaves(bench: &Bench, args: &[&str]) -> BTreeMap<String, u64> {
    let output = bench.run("convert", &[&["-f", "folded"], args].concat());
    let heading = format!("{NAME} ({PROCESS});");
    let leaf = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.strip_prefix(&heading).unwrap().to_owned(), count.parse().unwrap())
    };
    output.text().lines().map(leaf).collect()
}

fn expected(leaves: &[(&str, u64)]) -> BTreeMap<String, u64> {
    leaves.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
}

/// The three files of IL.
fn il() -> [(&'static str, Vec<u8>); 3] {
    let file = |assembly| component(&assembly, FILE, IL_IDENTITY);
    [("System.Linq.dll", file(LINQ)), ("App.dll", file(APP)), ("System.Collections.dll", file(COLLECTIONS))]
}

#[test]
fn a_method_is_one_function_however_it_was_compiled() {
    let bench = Bench::new(compiled_again(recording(&[])));
    let il = il();
    let il: Vec<(&str, &[u8])> = il.iter().map(|(name, bytes)| (*name, &**bytes)).collect();
    let composite = composite();
    let image: (&str, &[u8]) = (FILE, &composite);
    // Beside the image, and elsewhere among the images.
    let beside = folder(&bench, "beside", &[&[image], &*il].concat());
    folder(&bench, "apart/il", &il);
    folder(&bench, "apart/code", &[image]);
    let apart = bench.path("apart").to_str().unwrap().to_owned();
    for images in [beside, apart] {
        let args = ["--offline", "--images", &images];
        let all = [
            ("App!Shop.Cart.Total", 1),
            ("System.Collections!System.Collections.Generic.Map<Cart, int>.Add", 2),
            ("System.Linq!System.Linq.Enumerable.Sum", 2),
        ];
        assert_eq!(leaves(&bench, &args), expected(&all));
        let tiers = leaves(&bench, &[&args[..], &["--tiers"]].concat());
        let all = [
            ("App![R2R]Shop.Cart.Total", 1),
            ("System.Collections![R2R]System.Collections.Generic.Map<Cart, int>.Add", 1),
            ("System.Collections![Tier1]System.Collections.Generic.Map<Cart, int>.Add", 1),
            ("System.Linq![R2R]System.Linq.Enumerable.Sum", 1),
            ("System.Linq![Tier1]System.Linq.Enumerable.Sum", 1),
        ];
        assert_eq!(tiers, expected(&all));
        let symbols = bench.symbols(&["--images", &images]);
        assert_eq!((&symbols[0]["verdict"], &symbols[0]["named"]), (&"resolved".into(), &3.into()));
    }
}

#[test]
fn without_the_il_the_rundown_names_and_the_rest_are_tokens() {
    let il = il();
    for (listed_too, sum) in
        [(false, "System.Linq!method 0x06000002"), (true, "System.Linq!System.Linq.Enumerable.Sum")]
    {
        let recording = recording(&[]);
        let bench = Bench::new(if listed_too { listed(recording) } else { recording });
        let images = folder(&bench, "images", &[(FILE, &composite())]);
        let all = [(sum, 1), ("App!method 0x06000001", 1), ("System.Collections!method 0x06000001", 1)];
        let args = ["--offline", "--images", &images];
        assert_eq!(leaves(&bench, &args), expected(&all));

        let symbols = bench.symbols(&["--images", &images]);
        assert_eq!((&symbols[0]["verdict"], &symbols[0]["named"]), (&"no_il".into(), &0.into()));
        let detail = symbols[0]["detail"].as_str().unwrap();
        assert!(detail.contains("the IL of App, System.Collections, System.Linq was not found"), "{detail}");
        assert_eq!(symbols[0]["cure"], "add the folder of these assemblies with --images");

        // With the IL of one, its names come back and the others stay as they were.
        fs::write(Path::new(&images).join("App.dll"), &il[1].1).unwrap();
        let all = [(sum, 1), ("App!Shop.Cart.Total", 1), ("System.Collections!method 0x06000001", 1)];
        assert_eq!(leaves(&bench, &args), expected(&all));
    }
}

/// A method that was compiled again has the name that the runtime reported then. A generic one has many.
#[test]
fn without_the_il_a_token_may_have_a_name_in_another_event() {
    let bench = Bench::new(compiled_again(recording(&[])));
    let images = folder(&bench, "images", &[(FILE, &composite())]);
    let all = [
        ("App!method 0x06000001", 1),
        ("System.Collections!System.Collections.Generic.Map<Cart, int>.Add", 1),
        ("System.Collections!method 0x06000001", 1),
        ("System.Linq!System.Linq.Enumerable.Sum", 2),
    ];
    assert_eq!(leaves(&bench, &["--offline", "--images", &images]), expected(&all));
}

/// The IL of another build would give other names.
#[test]
fn the_il_of_another_build_is_not_used() {
    let other = Assembly {
        mvid: Some([0xEE; 16]),
        types: &[MODULE, ("System.Linq", "Enumerable", &["Sum", "Max"])],
        ..LINQ
    };
    let bench = Bench::new(recording(&[]));
    let il = component(&other, FILE, IL_IDENTITY);
    let images = folder(&bench, "images", &[(FILE, &composite()), ("System.Linq.dll", &il)]);
    let stacks = bench.stacks(&["--offline", "--images", &images]);
    assert!(stacks.contains(&"System.Linq!method 0x06000002".to_owned()), "{stacks:?}");
    let symbols = bench.symbols(&["--images", &images]);
    let attempts = symbols[0]["attempts"].to_string();
    assert!(attempts.contains("another build: its MVID is eeeeeeee-"), "{attempts}");
}

/// A server is asked under the time stamp and size that the trace tells, and where it tells none, not at all.
#[test]
fn the_il_comes_from_a_server_by_the_key_in_the_trace() {
    let linq = module("System.Linq.dll", 0x7FFD_5000_0000, IL_IDENTITY);
    let [(_, bytes), ..] = il();
    let server = Server::with_files([(on_server(&linq.image_key()), bytes)]);
    let bench = Bench::new(recording(std::slice::from_ref(&linq)));
    let images = folder(&bench, "images", &[(FILE, &composite())]);
    let path = format!("srv*{}", server.url());
    let stacks = bench.stacks(&["--images", &images, "--symbols", &path]);
    let named = "System.Linq!System.Linq.Enumerable.Sum".to_owned();
    assert!(stacks.contains(&named), "{stacks:?}");
    let asked = server.asked();
    assert!(!asked.is_empty() && asked.iter().all(|path| path.contains("System.Linq.dll")), "{asked:?}");
}

/// Formats before 5.3 have no MVIDs: the file must name the image, or be the one whose time stamp the trace tells.
#[test]
fn without_mvids_the_file_is_known_by_other_marks() {
    let image = Composite {
        version: (5, 2),
        identity: IDENTITY,
        components: &[(LINQ, &[(2, 0)])],
        others: &[],
        functions: &[[0x9000, 0x9010, 0]],
        instances: &[],
    };
    let older = Assembly { version: [8, 0, 0, 0], ..LINQ };
    let named = "System.Linq!System.Linq.Enumerable.Sum";
    let nameless = "System.Linq!method 0x06000002";
    let mapped = [module("System.Linq.dll", 0x7FFD_5000_0000, IL_IDENTITY)];
    let other_build = [0x6500_0003, IL_IDENTITY[1], 0];
    for (il, at, told, sum) in [
        (component(&LINQ, FILE, IL_IDENTITY), "images/il", &[][..], named),
        (component(&LINQ, "other.r2r.dll", IL_IDENTITY), "images/il", &[], nameless),
        (component(&LINQ, "other.r2r.dll", IL_IDENTITY), "images/il", &mapped, named),
        (component(&LINQ, FILE, other_build), "images", &mapped, nameless),
        (component(&older, FILE, IL_IDENTITY), "images", &[], nameless),
    ] {
        let bench = Bench::new(recording(told));
        let images = folder(&bench, "images", &[(FILE, &image.file())]);
        folder(&bench, at, &[("System.Linq.dll", &il)]);
        let stacks = bench.stacks(&["--offline", "--images", &images]);
        assert!(stacks.contains(&sum.to_owned()), "{stacks:?}");
    }
}

#[test]
fn symbolize_takes_the_il_beside_the_image() {
    let bench = Bench::new(recording(&[]));
    let [(name, linq), ..] = il();
    let images = folder(&bench, "images", &[(FILE, &composite()), (name, &linq)]);
    let image = Path::new(&images).join(FILE);
    let symbolized =
        output(command().arg("symbolize").arg(image).args(["9005", "9015", "--offline"])).success();
    let expected = "0x9005\tSystem.Linq.Enumerable.Sum()+0x5\n0x9015\tApp!method 0x06000001+0x5\n";
    assert_eq!(symbolized.text(), expected);
    assert!(symbolized.stderr.contains("the IL of App was not found"), "{}", symbolized.stderr);
}

/// An image of one assembly that has an instantiation of another one's type.
#[test]
fn an_instantiation_is_in_the_module_of_its_type() {
    const RUNTIME_FUNCTIONS: u32 = 102;
    const INSTANCE_ENTRY_POINTS: u32 = 109;
    const MANIFEST: u32 = 112;
    let mut pe = Pe::new(0x8664).with_identity(IDENTITY);
    // Module 1 is the manifest itself, 2 its first reference: the assembly refers to none. The argument is `Shop.Cart`.
    let add: &[u8] = &[0x40, 0x15, 0x3F, 2, 0x12, 2 << 2, 2, 0x12, 2 << 2, 0x08, 1];
    let sections = [
        (RUNTIME_FUNCTIONS, words(&[0x9020, 0x9030, 0])),
        (INSTANCE_ENTRY_POINTS, instances(&[(add, 0)])),
        (MANIFEST, metadata("manifest", &["System.Collections"], &[MODULE])),
    ];
    let sections: Vec<_> = sections.iter().map(|(kind, bytes)| (*kind, pe.put(bytes), bytes.len())).collect();
    let native = pe.put(&rtr_header((5, 4), &sections));
    let cor_header = pe.put_cor_header(&APP.metadata(), native);
    let image = pe.with_cor_header(cor_header).finish();

    let recording = Recording::of(&[module("App.dll", BASE, IDENTITY)], Told::Load).stack(8, &[ADD]);
    let bench = Bench::new(compiled_again(recording));
    let mut il = Pe::new(0x8664);
    let cor_header = il.put_cor_header(&Assembly { version: [0; 4], ..COLLECTIONS }.metadata(), 0);
    let collections = il.with_cor_header(cor_header).finish();
    let images = folder(&bench, "images", &[("App.dll", &image), ("System.Collections.dll", &collections)]);
    let all = [
        ("System.Collections!System.Collections.Generic.Map<Cart, int>.Add", 2),
        ("System.Linq!System.Linq.Enumerable.Sum", 1),
    ];
    assert_eq!(leaves(&bench, &["--offline", "--images", &images]), expected(&all));
}

/// A real image and its method compiled again: one function. The image names itself, so no server is asked for the PDB
/// of its code.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_real_image_on_this_machine_needs_no_pdb() {
    let file = data::file("dotnet/dotnetcore2/3.1.23-x64/System.Linq.dll");
    let bytes = fs::read(&file).unwrap();
    let image = R2rImage::parse(&Image::parse(&bytes).unwrap()).unwrap();
    let signature = "int32  (class System.Collections.Generic.IEnumerable`1<int32>)";
    let is_sum = |name: &str, found: &str| name == "Sum" && found == signature;
    let sum = image.methods().find(|method| is_sum(&method.name().method, &method.name().signature)).unwrap();
    let rva = sum.ranges().next().unwrap().start;

    let path = r"C:\dotnet\System.Linq.dll";
    let mut module = Module::of(&file, path, BASE);
    module.pdb = Some(("System.Linq.ni.pdb".to_owned(), [0x77; 16], 1));
    let again = clr::Method::load(PROCESS, CODE, 0x100, ["System.Linq.Enumerable", "Sum", signature]);
    let recording = Recording::of(std::slice::from_ref(&module), Told::Pdb)
        .event(clr::Module::load(PROCESS, 0x55, path))
        .event(again.module(0x55))
        .stack(8, &[module.at(rva)])
        .stack(8, &[CODE + 5]);
    let bench = Bench::new(recording);
    let server = Server::with_files([]);
    let symbols = format!("srv*{}", server.url());
    let args = ["--images", file.parent().unwrap().to_str().unwrap(), "--symbols", &symbols];
    let all = [("System.Linq!System.Linq.Enumerable.Sum(IEnumerable<int>)", 2)];
    assert_eq!(leaves(&bench, &args), expected(&all));
    assert_eq!(server.asked(), Vec::<String>::new());
}
