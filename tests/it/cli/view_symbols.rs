//! The symbol server of `etwprof view --firefox`, asked as the Firefox Profiler asks.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::command::{command, etwprof, started};
use crate::support::viewer::Viewer;

/// A PDB of the demo by its name, with the id that the symbol store has in the place of Breakpad's.
fn pdb(name: &str) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("symbols").join(name);
    let id = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    (folder.join(&id).join(name), id)
}

/// What `etwprof symbolize` says of addresses all over a module.
fn symbolized(pdb: &Path) -> Vec<Value> {
    const SIZE: u32 = 3 << 20;
    let mut command = command();
    command.arg("symbolize").arg(pdb).args(["-", "--json"]);
    let mut child = started(|| command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn());
    let rvas: String = (0x1000..SIZE).step_by(0x4C).map(|rva| format!("{rva:x}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(rvas.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    all.into_iter().filter(|entry| entry["function"].is_string()).collect()
}

#[test]
fn names_are_those_of_symbolize() {
    let viewer = Viewer::start(&["--firefox"]);
    let mut inlined = 0;
    for name in ["indexer.pdb", "orders.pdb", "ntkrnlmp.pdb"] {
        let (file, id) = pdb(name);
        let expected = symbolized(&file);
        assert!(expected.len() >= 3, "{name}: {}", expected.len());
        let stack: Vec<Value> = expected.iter().map(|entry| json!([0, entry["rva"]])).collect();
        let job = json!({"memoryMap": [[name, id]], "stacks": [stack]});
        let answer = viewer.question("/symbolicate/v5", &json!({"jobs": [job]}));
        let result = &answer["results"][0];
        assert_eq!(result["found_modules"], json!({format!("{name}/{id}"): true}));
        let frames = result["stacks"][0].as_array().unwrap();
        assert_eq!(frames.len(), expected.len());
        for (index, (frame, entry)) in frames.iter().zip(&expected).enumerate() {
            let hex = |number: &Value| json!(format!("{:#x}", number.as_u64().unwrap()));
            assert_eq!((&frame["frame"], &frame["module"]), (&json!(index), &json!(name)));
            assert_eq!(frame["module_offset"], hex(&entry["rva"]));
            let about = if entry["approximate"] == true { "~" } else { "" };
            assert_eq!(frame["function"], format!("{about}{}", entry["function"].as_str().unwrap()));
            assert_eq!(frame["function_offset"], hex(&entry["offset"]));
            for part in ["file", "line"] {
                assert_eq!(frame.get(part).unwrap_or(&Value::Null), &entry[part], "{frame}");
            }
            let calls = frame["inlines"].as_array().cloned().unwrap_or_default();
            assert_eq!(calls.len(), entry["inlined"].as_array().unwrap().len(), "{frame}");
            inlined += calls.len();
            for (call, known) in calls.iter().zip(entry["inlined"].as_array().unwrap()) {
                for part in ["function", "file", "line"] {
                    assert_eq!(call.get(part).unwrap_or(&Value::Null), &known[part], "{call}");
                }
            }
        }
        // Without `jobs`, as older clients ask.
        assert_eq!(viewer.question("/symbolicate/v5", &job), answer);
        let folded = etwprof(["convert", "examples/demo.etl", "-f", "folded", "--offline"]).success();
        let module = name.trim_end_matches(".pdb").replace("ntkrnlmp", "ntoskrnl");
        let shown: BTreeSet<&str> = folded.text().split([';', '\n']).collect();
        let is_shown = |frame: &&Value| {
            shown.contains(format!("{module}!{}", frame["function"].as_str().unwrap()).as_str())
        };
        assert!(frames.iter().any(|frame| is_shown(&frame)), "{name}: convert shows none of them");
    }
    assert!(inlined > 0);
}

#[test]
fn what_is_not_known_is_said() {
    let viewer = Viewer::start(&["--firefox"]);
    let (_, id) = pdb("indexer.pdb");
    let nobody = "0".repeat(32) + "1";
    let answer = viewer.question(
        "/symbolicate/v5",
        &json!({
            "memoryMap": [["nobody.pdb", nobody], ["indexer.pdb", id.to_lowercase()], ["kernel32.pdb", "x"]],
            "stacks": [[[0, 4096], [1, 0], [1, 0xFFFF_FFFF_u32], [1, u64::MAX], [7, 1], [-1, 1]], []],
        }),
    );
    let result = &answer["results"][0];
    assert_eq!(
        result["found_modules"],
        json!({format!("nobody.pdb/{nobody}"): false, format!("indexer.pdb/{}", id.to_lowercase()): false, "kernel32.pdb/x": null})
    );
    let frames = result["stacks"][0].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame.get("function").is_none()), "{frames:?}");
    let modules: Vec<_> = frames.iter().map(|frame| &frame["module"]).collect();
    assert_eq!(modules, ["nobody.pdb", "indexer.pdb", "indexer.pdb", "indexer.pdb", "", ""]);
    assert_eq!(result["stacks"][1], json!([]));
    for wrong in
        [json!({}), json!([]), json!({"jobs": [{}]}), json!({"memoryMap": [], "stacks": [[[0, -1]]]})]
    {
        assert!(viewer.question("/symbolicate/v5", &wrong)["error"].is_string(), "{wrong}");
    }
    let other = viewer.ask("POST", &format!("{}/symbolicate/v6", viewer.token), &[], b"{}");
    assert_eq!(other.status, 404);
    assert_eq!(viewer.get(&format!("{}/symbolicate/v5", viewer.token)).status, 404);
}

/// A file is read only if the profile or the symbols name it; the names of others lead nowhere.
#[test]
fn sources_are_given_out_by_the_names_that_symbols_have() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("indexer").join("src")).unwrap();
    fs::write(folder.path().join("indexer").join("src").join("char_class.h"), "// ours\n").unwrap();
    fs::write(folder.path().join("secret.cpp"), "secret").unwrap();
    let viewer = Viewer::start(&["--firefox", "--source", folder.path().to_str().unwrap()]);
    let (file, id) = pdb("indexer.pdb");
    let ask = |path: &str, offset: &str| {
        let question =
            json!({"debugName": "indexer.pdb", "debugId": id, "moduleOffset": offset, "file": path});
        viewer.question("/source/v1", &question)
    };
    let header = r"C:\src\indexer\src\char_class.h";
    let answer = ask(header, "0x1000");
    assert_eq!((&answer["file"], &answer["source"]), (&json!(header), &json!("// ours\n")));

    let symbolized = symbolized(&file);
    let known: BTreeSet<&str> = symbolized.iter().filter_map(|entry| entry["file"].as_str()).collect();
    let elsewhere = known.iter().find(|file| !file.ends_with("char_class.h")).unwrap();
    let answer = ask(elsewhere, "0x1000");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("is not here") || error.contains("name the file"), "{error}");

    let secret = folder.path().join("secret.cpp");
    for path in [
        "/etc/passwd",
        "../../../../../../etc/passwd",
        r"C:\Windows\win.ini",
        secret.to_str().unwrap(),
        "secret.cpp",
        r"C:\src\indexer\src\..\..\..\secret.cpp",
        r"C:\src\indexer\src\char_class.h\..\secret.cpp",
        r"c:\src\indexer\src\char_class.h",
        "char_class.h",
        "file:///etc/passwd",
        "\0",
        "",
    ] {
        let answer = ask(path, "0x1000");
        assert!(answer.get("source").is_none(), "{path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains("name the file"), "{path}: {answer}");
    }
    for offset in ["", "1000", "0x", "0x+1", "0x100000000", "0xg"] {
        assert!(ask(header, offset)["error"].is_string(), "{offset}");
    }
}

#[test]
fn code_is_read_from_the_image_if_it_is_here() {
    let viewer = Viewer::start(&["--firefox"]);
    let ask = |name: &str, debug_id: &str, code_id: Value, start: &str| {
        let question = json!({
            "name": name, "debugId": debug_id, "codeId": code_id, "startAddress": start, "size": "0x10",
        });
        viewer.question("/asm/v1", &question)
    };
    let (_, id) = pdb("indexer.pdb");
    let missing = ask("indexer.exe", &id, Value::Null, "0x1000");
    assert!(missing["error"].as_str().unwrap().contains("the image of indexer.exe is not here; --images"));
    let unknown = ask("x.dll", "x", Value::Null, "0x1000");
    assert!(unknown["error"].as_str().unwrap().contains("no module x.dll"), "{unknown}");
    // The recording knows no PDB of it. Its id in the store is the code id; where its section is, is no code.
    let image = "System.Private.CoreLib.dll";
    let data = ask(image, &"0".repeat(33), json!(pdb(image).1), "0x1000");
    assert!(data["error"].as_str().unwrap().contains("no code at this address"), "{data}");
}
