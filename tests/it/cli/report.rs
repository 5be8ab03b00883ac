//! The default report: what `convert` prints without an output file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use etwprof::profile::{Detail, Filter, Grouping, Profile, Shape, Timeline};
use etwprof::report::{Spelling, console, strip};
use etwprof::symbols::Unnamed;

use crate::support::command::{Output, etwprof};
use crate::support::reading;

/// `etwprof convert examples/demo.etl ARGS...`
fn convert(args: &[&str]) -> Output {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl");
    etwprof([OsStr::new("convert"), demo.as_os_str()].into_iter().chain(args.iter().map(OsStr::new)))
        .success()
}

/// However narrow the terminal is, and however deep the tree.
#[test]
fn no_line_of_the_report_is_wider_than_the_terminal() {
    let trace = reading::file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl"));
    let profile = Profile::new(&trace, &Filter::default(), &Unnamed);
    let arranged = profile.arrange(&Shape { grouping: Grouping::Thread, ..Shape::default() });
    let labels = Spelling::new(&profile, Detail::default());
    for width in [1, 20, 40, 80, 200] {
        let mut out = Vec::new();
        let timeline = Timeline::new(&profile, &[], (None, None), strip::bins(Some(width)));
        strip::write(&mut out, &timeline, 4, &labels, Some(width)).unwrap();
        let options = console::Options { min_percent: 0.5, width: Some(width), ..Default::default() };
        console::write(&mut out, &arranged, &labels, &options).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{width}: {text}");
    }
}

/// The numbers of the report are those of `info` and of the folded stacks.
#[test]
fn the_report_agrees_with_the_other_formats() {
    let tree = convert(&["--name", "indexer"]);
    let folded = convert(&["--name", "indexer", "-f", "folded"]);
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for line in folded.text().lines() {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        *own.entry(stack.rsplit(';').next().unwrap()).or_default() += samples.parse::<u64>().unwrap();
    }
    let total: u64 = own.values().sum();
    assert_eq!(total, 2019);
    // Each sample of the demo stands for 1 ms.
    let first = tree.text().lines().next().unwrap();
    assert!(first.starts_with("2.02 s CPU in ") && first.contains(", 4 CPUs; "), "{first}");
    let hottest: Vec<&str> =
        tree.text().lines().skip_while(|line| !line.ends_with("hottest functions")).collect();
    let [_, rows @ .., more] = hottest.as_slice() else { panic!("{hottest:?}") };
    assert_eq!(rows.len(), 10);
    let mut expected: Vec<u64> = own.values().copied().collect();
    expected.sort_unstable_by_key(|samples| std::cmp::Reverse(*samples));
    let mut rest = total;
    for (row, expected) in rows.iter().zip(expected) {
        // excl %, excl ms, incl %, incl ms, samples, function.
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[4].parse(), Ok(expected), "{row}");
        assert_eq!(own.get(words[5]).copied(), Some(expected), "{row}");
        assert_eq!(words[0], format!("{:.1}", 100.0 * expected as f64 / total as f64), "{row}");
        rest -= expected;
    }
    let words: Vec<&str> = more.split_whitespace().collect();
    assert_eq!(
        (words[2].replace(',', "").parse(), words[4].parse()),
        (Ok(rest), Ok(own.len() - 10)),
        "{more}"
    );
}

#[test]
fn long_chains_fold_unless_asked_for() {
    let lines = |args: &[&str]| convert(args).text().lines().map(str::to_owned).collect::<Vec<_>>();
    let (some, all) = (lines(&[]), lines(&["--all-frames"]));
    let folded = |lines: &[String]| -> usize {
        let count = |line: &String| line.split_once("⋮ ")?.1.split(' ').next()?.parse::<usize>().ok();
        lines.iter().filter_map(count).sum()
    };
    let folds = some.iter().filter(|line| line.contains('⋮')).count();
    assert_eq!(folded(&all), 0);
    assert_eq!(some.len() - folds + folded(&some), all.len());
}

/// A shape that leaves out samples leaves them out over time too.
#[test]
fn the_head_shows_what_the_tree_shows() {
    let all = convert(&[]);
    let some = convert(&["--from-function", "Tokenizer::next_token"]);
    let time = |output: &Output| output.text().split(" CPU in ").next().unwrap().to_owned();
    // 626 samples of 1 ms.
    assert_eq!((time(&all), time(&some)), ("8.26 s".to_owned(), "626.0 ms".to_owned()));
    assert!(some.text().contains("indexer.exe (9544)") && !some.text().contains("orders.exe"));
    // The other way round, the hottest functions are the tree.
    let inverted = convert(&["--invert"]);
    assert!(all.text().contains("hottest functions") && !inverted.text().contains("hottest functions"));
}

/// One process is in the title, by its name and id.
#[test]
fn a_flame_graph_says_what_it_shows() {
    let svg = |args: &[&str]| convert(&[&["-f", "svg"], args].concat()).text().to_owned();
    let one = svg(&["--name", "orders", "--from", "1s", "--to", "2s"]);
    assert!(one.contains(">CPU time: orders.exe (7312) in demo.etl<"), "{one:.3000}");
    assert!(one.contains(" of CPU in 1.00 s (1.00–2.00 s)<"), "{one:.3000}");
    assert!(one.contains(">--name orders<"), "{one:.3000}");
    let function = svg(&["--function", "Order*", "--no-kernel", "--cpu", "0-2"]);
    assert!(function.contains(">--cpu 0-2 --function 'Order*' --no-kernel<"), "{function:.3000}");
    assert!(svg(&[]).contains(">CPU time: demo.etl<"));
}
