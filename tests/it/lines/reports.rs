//! Source lines of .NET methods in `convert --lines`: from an event's map or an image's own tables, by PDBs that lie by
//! themselves or inside an image. The lines are those that `portable.txt` tells of the PDBs.

use std::fs;

use crate::support::data;
use crate::support::resolve::{Bench, Module, PROCESS, Recording, Told};
use crate::synth::{Guid, clr};

const CODE: u64 = 0x7FFD_3000_0000;

/// A method of a module with this PDB, compiled at `CODE`: bytes 0 to 15 prolog, then each IL offset has 16 bytes.
pub(super) fn jitted(guid: [u8; 16], pdb: &str, il: &str, token: u32, il_offsets: &[i32]) -> Recording {
    let module = clr::Module::load(PROCESS, 0x55, il).managed_pdb(Guid(guid), 1, pdb);
    let method = clr::Method::load(PROCESS, CODE, 0x1000, ["N.Type", "Run", "void  ()"])
        .module(0x55)
        .token(token)
        .id(7);
    let offsets = [-2].iter().chain(il_offsets);
    let map: Vec<(i32, u32)> = offsets.copied().zip((0u32..).map(|index| 16 * index)).collect();
    let recording = Recording::of(&[], Told::Load).event(module).event(method);
    recording.event(clr::il_to_native_map(PROCESS, 7, 0, &map))
}

/// The 16 bytes that begin the `#Pdb` stream.
pub(super) fn guid_of(pdb: &[u8]) -> [u8; 16] {
    let name = pdb.windows(8).position(|bytes| bytes == b"#Pdb\0\0\0\0").unwrap();
    let offset = u32::from_le_bytes(pdb[name - 8..name - 4].try_into().unwrap()) as usize;
    pdb[offset..offset + 16].try_into().unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_compiled_method_has_the_lines_of_its_pdb() {
    let file = data::file("dotnet/symstore/dir1/System.Threading.Thread.pdb");
    let guid = guid_of(&fs::read(&file).unwrap());
    let recording = jitted(
        guid,
        r"E:\build\System.Threading.Thread.pdb",
        r"C:\app\System.Threading.Thread.dll",
        0x0600_0006,
        &[0, 2, 16, 19, -1, -3],
    );
    // The leaf is looked up as it is, a return address one byte before.
    let recording = (0..7).fold(recording, |recording, row: u64| recording.stack(8, &[CODE + 16 * row]));
    let bench = Bench::new(recording.stack(8, &[CODE + 0x20, CODE + 0x20]));
    let folder = file.parent().unwrap().to_str().unwrap();
    let run = "System.Threading.Thread!N.Type.Run";
    let expected = [
        format!("{run} (SR.cs:27)"), // prolog
        format!("{run} (SR.cs:27)"),
        format!("{run} (SR.cs:27);{run} (SR.cs:28)"),
        format!("{run} (SR.cs:28)"),
        format!("{run} (SR.cs:29)"),
        format!("{run} (SR.cs:31)"),
        format!("{run} (SR.cs:31)"), // no mapping
        format!("{run} (SR.cs:31)"), // epilog
    ];
    for places in [["--symbols", folder], ["--images", folder]] {
        let mut stacks = bench.stacks(&[&places[..], &["--lines", "--offline"]].concat());
        // Equal stacks are one line with their count.
        stacks.dedup();
        let mut wanted = expected.to_vec();
        wanted.sort();
        wanted.dedup();
        assert_eq!(stacks, wanted);
    }
    let bare = bench.stacks(&["--symbols", folder, "--offline"]);
    assert!(bare.iter().all(|stack| !stack.contains("SR.cs")), "{bare:?}");

    // The PDB of another build of the same name is not taken, and that is said.
    let other = file.parent().unwrap().parent().unwrap().join("dir2");
    let other = other.to_str().unwrap();
    let output = bench.run("convert", &["-f", "folded", "--lines", "--offline", "--symbols", other]);
    assert!(!output.text().contains("SR.cs"), "{}", output.text());
    assert!(output.stderr.contains("no source lines from System.Threading.Thread.pdb"), "{}", output.stderr);
    assert!(output.stderr.contains("wrong file"), "{}", output.stderr);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn the_pdb_may_be_inside_the_image() {
    let name = "pdb/symbolic/windows/Sentry.Samples.Console.Basic-embedded-ppdb.dll";
    let image = data::file(name);
    let guid = {
        let bytes = fs::read(&image).unwrap();
        let at = bytes.windows(4).position(|bytes| bytes == b"RSDS").unwrap();
        bytes[at + 4..at + 20].try_into().unwrap()
    };
    let il = r"C:\app\Sentry.Samples.Console.Basic.dll";
    let bench = Bench::new(jitted(guid, "Basic.pdb", il, 0x0600_0005, &[0]).stack(8, &[CODE + 16]));
    // As it was on the machine: under its own name, somewhere in a copied folder.
    let folder = bench.path("copy/bin");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&image, folder.join("sentry.samples.console.basic.DLL")).unwrap();
    let images = bench.path("copy");
    let stacks = bench.stacks(&["--lines", "--offline", "--images", images.to_str().unwrap()]);
    let expected = "Sentry.Samples.Console.Basic!N.Type.Run (Program.cs:3)";
    assert!(stacks.len() == 1 && stacks[0].starts_with(expected), "{stacks:?}");
}

/// No event tells of these methods: the image's tables have the names and the IL, the PDB beside it the lines.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn precompiled_methods_have_lines_by_the_image_alone() {
    let image = data::file("dotnet/symstore/dir1/System.Threading.Thread.dll");
    let module = Module::of(&image, r"C:\app\System.Threading.Thread.dll", 0x7FFD_5000_0000);
    let recording = Recording::of(std::slice::from_ref(&module), Told::Load);
    let bench = Bench::new(recording.stack(8, &[module.at(0x6978)]).stack(8, &[module.at(0x6a58)]));
    let images = image.parent().unwrap().to_str().unwrap();
    let name = "System.Threading.Thread!System";
    assert_eq!(
        bench.stacks(&["--lines", "--offline", "--images", images]),
        [
            format!("{name}.LocalDataStoreSlot.ctor (LocalDataStoreSlot.cs:13)"),
            format!("{name}.SR.GetResourceString (SR.cs:28)"),
        ]
    );
    let tiers = bench.stacks(&["--tiers", "--parameters", "--offline", "--images", images]);
    let expected = "System.Threading.Thread![R2R]System.SR.GetResourceString(string, string)";
    assert!(tiers.contains(&expected.to_owned()), "{tiers:?}");

    let missing = bench.command("convert", &["--images", "no/such/folder"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("--images: there is no folder no/such/folder"));
}
