//! Managed code in what the program prints, on the demo trace, whose every method we know.

use std::path::Path;

use crate::support::command::{Output, etwprof};

fn demo(args: &[&str]) -> Output {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.etl");
    let path = path.to_str().unwrap();
    let (command, flags) = args.split_first().unwrap();
    etwprof([&[*command, path], flags].concat()).success()
}

/// Samples of the lines of a folded file that hold `text`, by their last number.
fn samples(folded: &str, text: &str) -> u64 {
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    folded.lines().filter(|line| line.contains(text)).map(count).sum()
}

#[test]
fn managed_kernel_and_native_frames_stand_in_one_order() {
    let output = demo(&["convert", "-f", "folded", "--name", "orders", "--no-symbols"]);
    let folded = output.text();
    for method in [
        "Orders.Core!Orders.Program.Main",
        "Orders.Core!Orders.Intake.FixParser.TryParse",
        "Orders.Core!Orders.Matching.OrderBook.Match",
        "Orders.Core!Orders.Matching.PriceLevel.CompareTo",
        "Orders.Core!Orders.Journal.TradeCodec.Encode",
    ] {
        assert!(samples(folded, method) > 0, "{method} is in no stack");
    }
    let line = folded.lines().find(|line| line.contains("Orders.Matching.OrderBook.Match;")).unwrap();
    let place = |text: &str| line.find(text).unwrap_or_else(|| panic!("no {text} in {line}"));
    assert!(place("ntdll!") < place("coreclr!"));
    assert!(place("coreclr!") < place("Orders.Matching.Matcher.Run"));
    assert!(place("Orders.Matching.Matcher.Run") < place("Orders.Matching.OrderBook.Match"));
    let unknown = folded.lines().filter(|line| line.contains(";0x")).count();
    assert_eq!(unknown, 0, "all code of the demo is in an image or told by its runtime");
    assert!(output.stderr.contains("% .NET methods"), "{}", output.stderr);
}

#[test]
fn tiers_and_raw_names_are_shown_on_request() {
    let output = demo(&["convert", "-f", "folded", "--name", "orders", "--no-symbols", "--tiers"]);
    let folded = output.text();
    for tier in ["[Tier0]Orders.", "[Tier1]Orders."] {
        assert!(samples(folded, tier) > 0, "{tier} is in no stack");
    }
    // Compiled quickly at first and again at 620 ms.
    let early = demo(&["convert", "-f", "folded", "--no-symbols", "--tiers", "--to", "500ms"]);
    assert_eq!(samples(early.text(), "[Tier1]Orders.Matching.OrderBook.Match"), 0);
    assert!(samples(early.text(), "[Tier0]Orders.Matching.OrderBook.Match") > 0);
    let late = demo(&["convert", "-f", "folded", "--no-symbols", "--tiers", "--from", "1s"]);
    assert!(samples(late.text(), "[Tier1]Orders.Matching.OrderBook.Match") > 0);

    let raw = demo(&["convert", "-f", "folded", "--no-symbols", "--raw-names"]);
    let name = "Orders.Matching.PriceLadder`1[System.__Canon].BestLevel(value class Orders.Model.Side)";
    assert!(samples(raw.text(), name) > 0);
}

#[test]
fn info_tells_what_is_known_of_each_runtime() {
    let output = demo(&["info", "--json"]);
    let info: serde_json::Value = serde_json::from_str(output.text()).unwrap();
    let samples = &info["samples"];
    let categories = samples["categories"].as_object().unwrap();
    let sum: u64 = categories.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(Some(sum), samples["kept"].as_u64(), "every kept sample has one leaf");
    for category in ["kernel", "native", "managed_jit", "runtime", "jit_compiler"] {
        assert!(categories[category].as_u64().unwrap() > 0, "{category}");
    }
    assert_eq!(categories["unresolved"], 0);

    let processes = info["processes"].as_array().unwrap();
    let process = |name: &str| processes.iter().find(|process| process["name"] == name).unwrap();
    let orders = process("orders.exe");
    assert_eq!(orders["clr"][0]["sku"], "coreclr");
    assert_eq!(orders["clr"][0]["version"], "8.0.1024.46610");
    assert_eq!(orders["rundown"], serde_json::json!({ "begun": true, "completed": true }));
    // Compiled bodies, and methods of the framework.
    assert_eq!(orders["methods"], 27 + 28);
    assert!(orders["frames"]["resolved"].as_u64().unwrap() > 10_000);
    assert!(orders["frames"]["unresolved"]["unknown_code"].is_null());
    let indexer = process("indexer.exe");
    assert_eq!(indexer["clr"], serde_json::json!([]));
    assert!(indexer["rundown"].is_null());

    let text = demo(&["info"]);
    assert!(text.text().contains("orders.exe: .NET 8.0.1024.46610"), "{}", text.text());
}
