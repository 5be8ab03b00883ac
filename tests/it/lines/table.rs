//! `etwprof lines`: the samples of a function by source line, with the source from a folder and its address on the web.

use std::fs;

use serde_json::{Value, json};

use super::reports::{guid_of, jitted};
use crate::support::command;
use crate::support::data;
use crate::support::resolve::Bench;

const CODE: u64 = 0x7FFD_3000_0000;
const FILE: &str = r"E:\A\_work\108\s\corefx\src\Common\src\System\SR.cs";

/// A method with lines 27, 28, 29 and 31; samples end on 27 twice, on 31 below 28 and on 29.
fn bench() -> (Bench, String) {
    let pdb = data::file("dotnet/symstore/dir1/System.Threading.Thread.pdb");
    let recording = jitted(
        guid_of(&fs::read(&pdb).unwrap()),
        r"E:\build\System.Threading.Thread.pdb",
        r"C:\app\System.Threading.Thread.dll",
        0x0600_0006,
        &[0, 2, 16, 19],
    );
    // 16 bytes of prolog, then 16 each of line 27, 28, 29 and 31; a return address is looked up one byte before.
    let recording = recording.stack(8, &[CODE + 0x10]).stack(8, &[CODE + 0x11]);
    let recording = recording.stack(8, &[CODE + 0x40, CODE + 0x21]).stack(8, &[CODE + 0x30]);
    (Bench::new(recording), pdb.parent().unwrap().to_str().unwrap().to_owned())
}

fn of(bench: &Bench, symbols: &str, args: &[&str]) -> Value {
    let args = [&["Run", "--symbols", symbols, "--offline", "-q", "--json"], args].concat();
    serde_json::from_str(bench.run("lines", &args).text()).unwrap()
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn samples_by_line_with_the_source_from_a_folder() {
    let (bench, symbols) = bench();
    let json = of(&bench, &symbols, &[]);
    let row = |row: &Value| [&row["line"], &row["exclusive"], &row["inclusive"]].map(|n| n.as_i64().unwrap());
    let rows: Vec<_> = json["rows"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows, [[27, 2, 2], [29, 1, 1], [31, 1, 1], [28, 0, 1]]);
    assert_eq!((&json["inclusive"], &json["exclusive"]), (&json!(4), &json!(4)));
    assert_eq!(json["functions"], json!(["System.Threading.Thread!N.Type.Run"]));
    assert!(json["rows"].as_array().unwrap().iter().all(|row| row["file"] == FILE && row["text"].is_null()));

    let folder = bench.path("sources");
    fs::create_dir_all(folder.join("src/System")).unwrap();
    let text: String = (1..=40).map(|line| format!("\tline {line};\u{1b}[31m\n")).collect();
    fs::write(folder.join("src/System/SR.cs"), text).unwrap();
    let source = ["--source", folder.to_str().unwrap()];
    let json = of(&bench, &symbols, &source);
    assert_eq!(json["rows"][0]["text"], "\tline 27;\u{1b}[31m");

    let args = [&["Run", "--symbols", &symbols, "--offline", "-q"], &source[..]].concat();
    let output = bench.run("lines", &args);
    let table: Vec<&str> = output.text().lines().skip(1).collect();
    assert_eq!(
        table,
        [
            "",
            FILE,
            "excl %  excl ms  incl %  incl ms  line  source",
            " 50.0%      2.0   50.0%      2.0    27      line 27;?[31m",
            "  0.0%      0.0   25.0%      1.0    28      line 28;?[31m",
            " 25.0%      1.0   25.0%      1.0    29      line 29;?[31m",
            "                                    30      line 30;?[31m",
            " 25.0%      1.0   25.0%      1.0    31      line 31;?[31m",
        ]
    );
    let output = bench.run("lines", &["Run", "--symbols", &symbols, "--offline"]);
    assert!(output.stderr.contains(&format!("the source {FILE} is not here; --source")), "{}", output.stderr);
}

#[test]
fn a_folder_of_sources_that_is_not_there_is_a_wrong_line() {
    let output = command::etwprof(["lines", "x.etl", "f", "--source", "no/such/folder"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("--source: there is no folder no/such/folder"), "{}", output.stderr);
}

/// The symbol file says where its source lies; nothing is fetched from there.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn source_link_gives_the_address_of_the_file() {
    let pdb = data::file("pdb/perfview/symbol-reader/CsPortableEscapeSourceLink.pdb");
    let name = "CsPortableEscapeSourceLink";
    let main = jitted(
        guid_of(&fs::read(&pdb).unwrap()),
        &format!(r"C:\build\{name}.pdb"),
        &format!(r"C:\app\{name}.dll"),
        0x0600_0001,
        &[0],
    );
    let bench = Bench::new(main.stack(8, &[CODE + 0x11]));
    let json = of(&bench, pdb.parent().unwrap().to_str().unwrap(), &[]);
    assert_eq!(
        json["rows"][0]["url"],
        format!("https://contoso.com/fake-source-link-url/{name}/%23Directory/Program.cs"),
        "{json}"
    );
}
