//! Sides that are call trees which `convert -f json` saved, and sides with nothing in them.

use super::{Files, demo, diff, json, tree};
use crate::support::command::etwprof;

fn saved(files: &Files, name: &str, flags: &[&str]) -> String {
    let path = files.put(name, "");
    etwprof(["convert", &demo(), "--no-symbols", "-o", &path].iter().chain(flags)).success();
    path
}

#[test]
fn trees_that_were_made_differently_are_refused_or_reported() {
    let files = Files::new();
    let whole = saved(&files, "whole.json", &[]);
    let inverted = saved(&files, "inverted.json", &["--invert", "--group-by", "none"]);
    let orders = saved(&files, "orders.json", &["--name", "orders.exe"]);
    let refused = diff(&[&whole, &inverted]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("whole.json has all samples, grouped by process, but ")
            && refused.stderr.contains("inverted.json has --invert, grouped by none"),
        "{}",
        refused.stderr
    );
    diff(&[&inverted, &demo(), "--invert", "--group-by", "none"]).success();
    let other = diff(&[&whole, &orders]).success();
    assert!(other.stderr.contains("orders.json has --name orders.exe"), "{}", other.stderr);
    let same = diff(&[&orders, &demo(), "--name", "orders.exe"]).success();
    assert!(!same.stderr.contains("warning: "), "{}", same.stderr);
    assert!(same.text().contains("total:  +0.0%\n"), "{}", same.text());
    let idle = diff(&[&whole, &orders, "--name", "orders.exe", "--from", "1s"]);
    assert_eq!(idle.code, 2, "{}", idle.stderr);
    assert!(idle.stderr.contains("--name orders.exe --from: saved call trees are compared as they were"));
}

#[test]
fn trees_of_older_versions_are_compared_by_names() {
    let files = Files::new();
    let old = tree(1_000, 1).replace(r#""key":"app!Orders.Load","#, "");
    let (old, new) = (files.put("old.json", old), files.put("new.json", tree(1_000, 1)));
    let output = diff(&[&old, &new]).success();
    assert!(output.stderr.contains("old.json: an older version saved it, without keys"), "{}", output.stderr);
    assert!(output.text().contains("no function changed\n"), "{}", output.text());
}

#[test]
fn a_side_may_be_empty() {
    let files = Files::new();
    let (some, none) = (files.put("some.json", tree(900, 1)), files.put("none.json", r#"{"nodes":[]}"#));
    let svg = files.0.path().join("x.svg");
    for (before, after, total) in [
        (&some, &none, "total:  no samples after\n"),
        (&none, &some, "total:  no samples before\n"),
        (&none, &none, "total:  no samples\n"),
    ] {
        let sides = [before.as_str(), after.as_str(), "--tree", "--noise"];
        for form in ["text", "markdown", "json"] {
            let output = diff(&[&sides[..], &["-f", form]].concat()).success();
            let text = output.text().to_lowercase();
            assert!(!text.contains("nan") && !text.contains("inf"), "{form}: {text}");
        }
        assert!(diff(&sides).success().text().contains(total));
    }
    let drawn = diff(&[&some, &none, "-o", &svg.display().to_string()]).success();
    assert!(drawn.stderr.contains("nothing to draw") && !svg.exists(), "{}", drawn.stderr);
    assert_eq!(diff(&[&some, &none, "--scale", "samples"]).code, 3);
    let missing =
        diff(&[&some, &files.put("other.json", tree(900, 1).replace("Save", "S")), "--scale", "Save"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(missing.stderr.contains("no function matches Save on both sides"), "{}", missing.stderr);
}

/// Rows that chance explains are marked, and those for programs are all there.
#[test]
fn noise_is_marked() {
    let files = Files::new();
    let (before, after) = (files.put("a.json", tree(900, 1)), files.put("b.json", tree(910, 1)));
    let text = diff(&[&before, &after, "--noise"]).success();
    assert!(text.text().contains("+10.0  ~+1.1%"), "{}", text.text());
    assert!(text.text().ends_with("~ within noise\n"), "{}", text.text());
    let markdown = diff(&[&before, &after, "--noise", "-f", "markdown"]).success();
    assert!(markdown.text().contains("| +10.0 | \\~+1.1% | 900.0 | 910.0 | `app!Orders.Load` |"));
    let csv = diff(&[&before, &after, "-f", "csv", "-n", "0"]).success();
    let rows = json(&[&before, &after])["rows"].as_array().unwrap().len();
    assert_eq!((csv.text().lines().count(), rows), (rows + 1, 3));
    let overweight = diff(&[&before, &after, "--sort", "overweight", "-f", "markdown"]).success();
    assert!(
        overweight
            .text()
            .contains("| interest | overweight | resp % | change ms | before ms | after ms | function |"),
        "{}",
        overweight.text()
    );
}

/// Which calls lead to what changed: in text, in Markdown, in JSON.
#[test]
fn a_tree_of_changes() {
    let files = Files::new();
    let (before, after) = (files.put("a.json", tree(9_000, 1)), files.put("b.json", tree(18_000, 1)));
    let lines = [
        "change ms   change  before ms   after ms  call tree",
        " +9,000.0    +9.1%   99,000.0  108,000.0  app!Main",
        " +9,000.0  +100.0%    9,000.0   18,000.0  ↓ app!Submit",
        " +9,000.0  +100.0%    9,000.0   18,000.0  ↓ app!Orders.Load",
    ];
    let text = diff(&[&before, &after, "--tree"]).success();
    assert!(text.text().ends_with(&format!("\n\n{}\n", lines.join("\n"))), "{}", text.text());
    let markdown = diff(&[&before, &after, "--tree", "-f", "markdown"]).success();
    assert!(
        markdown.text().ends_with(&format!("\n```text\n{}\n```\n", lines.join("\n"))),
        "{}",
        markdown.text()
    );
    let tree = &json(&[&before, &after, "--tree"])["tree"];
    let nodes = tree["nodes"].as_array().unwrap();
    let parents: Vec<Option<u64>> = nodes.iter().map(|node| node["parent"].as_u64()).collect();
    assert_eq!(parents, [None, Some(0), Some(1)]);
    assert_eq!(
        (nodes[2]["name"].as_str(), nodes[2]["own_ns"].as_f64()),
        (Some("app!Orders.Load"), Some(9e9))
    );
    assert!(json(&[&before, &after]).get("tree").is_none());
    let same = diff(&[&before, &before, "--tree"]).success();
    assert!(same.text().ends_with("no branch of the call tree changed by more than chance explains\n"));
    assert_eq!(diff(&[&before, &after, "--tree", "-f", "csv"]).code, 2);
}
