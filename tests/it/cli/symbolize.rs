//! `etwprof symbolize` as a user runs it.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::command::{command, etwprof};
use crate::support::data;
use crate::synth::dwarf::{Dwarf, TEXT};

fn json(args: &[&str]) -> Value {
    serde_json::from_str(etwprof(args).success().text()).unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn json_has_one_entry_for_each_address_in_their_order() {
    let image = data::file("pdb/samply/softokn3.dll");
    let image = image.to_str().unwrap();
    let entries = json(&["symbolize", image, "118bc", "0x1a0a", "fffffff0", "--json"]);
    let function = |index: usize| entries[index]["function"].as_str();
    assert_eq!(entries.as_array().unwrap().len(), 3);
    assert_eq!([function(0), function(1), function(2)], [Some("NSC_Login"), Some("SEED_Encrypt"), None]);
    assert_eq!(entries[0]["rva"], 0x118bc);
    assert_eq!(entries[0]["source"], "pdb");
    assert_eq!(entries[0]["line"], 4313);
    assert!(entries[0]["file"].as_str().unwrap().ends_with("/pkcs11.c"));
    let inlined: Vec<_> =
        entries[0]["inlined"].as_array().unwrap().iter().map(|call| &call["function"]).collect();
    assert_eq!(inlined, ["sftk_SlotFromID", "sftk_SlotFromSessionHandle"]);
    assert_eq!(entries[1]["offset"], 0x5a);
    assert!(entries[2]["source"].is_null() && entries[2]["inlined"].as_array().unwrap().is_empty());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_pdb_alone_names_the_same() {
    let image = data::file("pdb/samply/softokn3.dll");
    let pdb = image.with_extension("pdb");
    let lines = |path: &std::path::Path| {
        let output = etwprof(["symbolize", path.to_str().unwrap(), "118bc", "1a0a"]).success();
        output.text().to_owned()
    };
    assert_eq!(lines(&image), lines(&pdb));
    assert!(lines(&pdb).starts_with("0x118bc\tsftk_SlotFromID ("), "{}", lines(&pdb));
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn a_pdb_of_another_build_is_named_and_not_used() {
    let image = data::file("pdb/samply/softokn3.dll");
    let other = data::file("pdb/samply/WriteArgument.pdb");
    let given = etwprof(["symbolize", image.to_str().unwrap(), "1a0a", "--pdb", other.to_str().unwrap()]);
    assert_ne!(given.code, 0);
    assert!(
        given.stderr.contains("WriteArgument.pdb") && given.stderr.contains("softokn3.pdb"),
        "{}",
        given.stderr
    );

    // Beside the image, under the right name: a warning, and the exports instead.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("softokn3.dll");
    std::fs::copy(&image, &copy).unwrap();
    std::fs::copy(&other, folder.path().join("softokn3.pdb")).unwrap();
    let found = etwprof(["symbolize", copy.to_str().unwrap(), "1a0a", "--json"]).success();
    assert!(found.stderr.contains("softokn3.pdb was not used"), "{}", found.stderr);
    assert_ne!(serde_json::from_str::<Value>(found.text()).unwrap()[0]["source"], "pdb");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn without_a_pdb_exports_are_bounded_by_the_function_table() {
    let image = data::file("pdb/dump_syms/mozwer.dll");
    let image = image.to_str().unwrap();
    let entries = json(&["symbolize", image, "1010", "1093", "1094", "10a0", "1310", "--json"]);
    let names: Vec<_> = entries.as_array().unwrap().iter().map(|entry| entry["function"].as_str()).collect();
    let (callback, signature) =
        ("OutOfProcessExceptionEventCallback", "OutOfProcessExceptionEventSignatureCallback");
    assert_eq!(names, [Some(callback), Some(callback), None, Some(signature), None]);
    assert_eq!(entries[0]["source"], "export");
    assert_eq!(entries[0]["approximate"], false, "the function table has both in one function");
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn addresses_come_from_stdin_and_bad_ones_are_usage_errors() {
    let image = data::file("pdb/samply/softokn3.dll");
    let mut child = command()
        .args(["symbolize", image.to_str().unwrap(), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"118bc\n0x1a0a 1080\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);

    for bad in ["xyz", "+1", "0x", "123456789"] {
        let output = etwprof(["symbolize", image.to_str().unwrap(), bad]);
        assert_ne!(output.code, 0);
        assert!(output.stderr.contains(bad) && output.stderr.contains("hexadecimal"), "{}", output.stderr);
    }
}

/// An image whose only function has this name, as DWARF tells it.
fn image_with(function: &str, file: &str) -> std::path::PathBuf {
    let dwarf = Dwarf::new(0x100).function(function, TEXT, 0x100).end();
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
    std::fs::write(&path, dwarf.lines(&[function], &[(0, 1, 5)], 0x100).image(0x100, 0)).unwrap();
    path
}

#[test]
fn wrong_arguments_exit_with_2() {
    let image = image_with("f", "plain.dll");
    let image = image.to_str().unwrap();
    for (args, said) in [
        (vec!["10g4"], "\"10g4\" is not an address"),
        (vec!["123456789"], "is not an address"),
        (vec!["1004", "--symbols", "srv*C:\\a*ftp://b"], "--symbols: "),
    ] {
        let output = etwprof([&["symbolize", "--offline", image], &args[..]].concat());
        assert_eq!((output.code, output.stdout.len()), (2, 0), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(said), "{}", output.stderr);
    }
}

/// What a file says could otherwise move the cursor of a terminal, and a newline would be a line of its own.
#[test]
fn names_of_files_have_no_control_characters() {
    let image = image_with("a\u{1b}]0;title\u{7}b\nc\u{9b}2Jd", "control.dll");
    let output = etwprof(["symbolize", "--offline", image.to_str().unwrap(), "1004"]).success();
    assert_eq!(output.text(), "0x1004\ta?]0;title?b?c?2Jd+0x4 (/build/a?]0;title?b?c?2Jd:5)\n");
}

#[test]
#[cfg(unix)]
fn stdin_without_addresses_is_an_error_at_once() {
    let image = image_with("f", "zeros.dll");
    let run = |input: &str| {
        let etwprof = command();
        let mut limited = std::process::Command::new("sh");
        let script = format!("ulimit -v 350000; {input} | \"$0\" symbolize --offline \"$1\" -");
        limited.args(["-c", &script]).arg(etwprof.get_program()).arg(&image);
        limited.envs(etwprof.get_envs().filter_map(|(name, value)| Some((name, value?))));
        crate::support::command::output(&mut limited)
    };
    let zeros = run("head -c 1000000000 /dev/zero");
    assert_eq!(zeros.code, 1);
    assert!(zeros.stderr.contains("is not an address") && zeros.stderr.len() < 1000, "{}", zeros.stderr);
    let many = run("yes 1004");
    assert_eq!(many.code, 1);
    assert!(many.stderr.contains("more than 1048576 addresses"), "{}", many.stderr);
    assert_eq!(run("printf '1004 0x1008\\n\\n  100c'").success().text().lines().count(), 3);
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn names_are_short_unless_exact_ones_are_asked_for() {
    let pdb = data::file("pdb/debugpy/attach_x86.pdb");
    let name = |raw: &[&str]| {
        let entries =
            json(&[&["symbolize", pdb.to_str().unwrap(), "37b4", "--offline", "--json"], raw].concat());
        entries[0]["function"].as_str().unwrap().to_owned()
    };
    let short = "std::list<std::pair<const unsigned long, void*>, PrivateHeapAllocator<std::pair<unsigned long, void*>>>";
    assert_eq!(name(&[]), format!("{short}::~list"));
    let exact = "std::list<std::pair<unsigned long const ,void *>,PrivateHeapAllocator<std::pair<unsigned long,void *> > >";
    let class = exact.trim_start_matches("std::");
    assert_eq!(name(&["--raw-names"]), format!("{exact}::~{class}"));
}
