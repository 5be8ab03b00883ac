use console::measure_text_width;
use proptest::prelude::*;

use super::{Options, write};
use crate::profile::{Arranged, Balance, CallTree, Category, Cut, Metric, Unit};
use crate::report::Plain;

/// A tree of these stacks, written `module!a module!b`, in which a sample stands for so many units of 100 ns.
fn arranged<'s>(stacks: &[(&'s str, i64)], each: i64) -> Arranged<&'s str> {
    let stacks = || stacks.iter().map(|(stack, samples)| (stack.split(' '), *samples));
    let counts = CallTree::new(stacks());
    let values = CallTree::new(stacks().map(|(stack, samples)| (stack, samples * each)));
    Arranged {
        counts,
        values: (&values).into(),
        groups: Vec::new(),
        balance: Balance::default(),
        left_out: Vec::new(),
        ends: Vec::new(),
        cut: Cut::default(),
        gave_up: Vec::new(),
    }
}

const MS: i64 = 10_000;

fn text(arranged: &Arranged<&str>, options: &Options) -> String {
    let mut out = Vec::new();
    write(&mut out, arranged, &Plain, options).unwrap();
    let coloured = String::from_utf8(out).unwrap();
    console::strip_ansi_codes(&coloured).into_owned()
}

#[track_caller]
fn assert_text(stacks: &[(&str, i64)], options: &Options, expected: &str) {
    let is = text(&arranged(stacks, MS), options);
    let expected: Vec<&str> =
        expected.lines().skip(1).map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
    let expected = expected.join("\n");
    assert_eq!(is.trim_end(), expected.trim_end(), "\n{is}");
}

fn narrow(width: usize) -> Options {
    Options { width: Some(width), ..Options::default() }
}

/// Two branches, one of them a chain with a frame that uses time.
const STACKS: [(&str, i64); 4] = [
    ("m!main a!b a!c b!d b!e b!hot c!f c!g c!h c!leaf", 600),
    ("m!main a!b a!c b!d b!e b!hot", 100),
    ("m!main x!y", 295),
    ("m!main z!rare", 5),
];

#[test]
fn chains_fold_between_what_matters() {
    assert_text(
        &STACKS,
        &narrow(80),
        "
        incl %  excl %  incl ms  call tree
         100.0            1,000  m!main
          70.0              700  ├ a!b
                                 │ ⋮ 3 frames: a, b
          70.0    10.0      700  │ ↓ b!hot
                                 │ ⋮ 3 frames: c
          60.0    60.0      600  │ ↓ c!leaf
          29.5    29.5      295  └ x!y

        excl %  excl ms  incl %  hottest functions
          60.0      600    60.0  c!leaf
          29.5      295    29.5  x!y
          10.0      100    70.0  b!hot
           0.5        5          … 1 more function",
    );
}

#[test]
fn all_frames_and_all_numbers() {
    let options = Options { all_frames: true, min_percent: 0.0, ..Options::default() };
    assert_text(
        &STACKS,
        &options,
        "
        incl %  excl %  incl ms  excl ms  incl count  call tree
         100.0            1,000                1,000  m!main
          70.0              700                  700  ├ a!b
          70.0              700                  700  │ ↓ a!c
          70.0              700                  700  │ ↓ b!d
          70.0              700                  700  │ ↓ b!e
          70.0    10.0      700      100         700  │ ↓ b!hot
          60.0              600                  600  │ ↓ c!f
          60.0              600                  600  │ ↓ c!g
          60.0              600                  600  │ ↓ c!h
          60.0    60.0      600      600         600  │ ↓ c!leaf
          29.5    29.5      295      295         295  ├ x!y
           0.5     0.5        5        5           5  └ z!rare

        excl %  excl ms  incl %  incl ms  excl count  hottest functions
          60.0      600    60.0      600         600  c!leaf
          29.5      295    29.5      295         295  x!y
          10.0      100    70.0      700         100  b!hot
           0.5        5                            5  … 1 more function",
    );
}

#[test]
fn wide_lines_have_bars() {
    // Tenths of all samples: the solid part is exclusive, both together are inclusive.
    assert_text(
        &[("m!main a!b", 62), ("m!main a!c", 30), ("m!main", 8)],
        &narrow(100),
        "
        incl %  excl %  incl ms  excl ms              call tree
         100.0     8.0      100        8  █▒▒▒▒▒▒▒▒▒  m!main
          62.0    62.0       62       62  ██████      ├ a!b
          30.0    30.0       30       30  ███         └ a!c

        excl %  excl ms  incl %  incl ms              hottest functions
          62.0       62    62.0       62  ██████      a!b
          30.0       30    30.0       30  ███         a!c
           8.0        8   100.0      100  █▒▒▒▒▒▒▒▒▒  m!main",
    );
}

#[test]
fn the_heaviest_branch_is_one_column() {
    let stacks = [
        ("m!main a!b a!c b!d b!hot", 460),
        ("m!main a!b a!c b!d b!cold", 40),
        ("m!main a!b a!c b!d b!hot c!warm", 20),
        ("m!main x!y", 300),
        ("m!main z!a", 175),
        ("m!main z!rare", 5),
    ];
    let options = Options { hot: true, hottest: false, ..narrow(80) };
    assert_text(
        &stacks,
        &options,
        "
        incl %  excl %  incl ms  call tree
         100.0            1,000  m!main
          48.0              480  ├ … 3 other callees
          52.0              520  ↓ a!b
          52.0              520  ↓ a!c
          52.0              520  ↓ b!d
          48.0    46.0      480  ↓ b!hot
           2.0     2.0       20  ↓ c!warm",
    );
    // Of several at the top the heaviest.
    assert_text(
        &[("a!x", 3), ("a!y", 1)],
        &options,
        "
        incl %  excl %  incl us  call tree
         100.0            4,000  all
          25.0            1,000  ├ … 1 other node
          75.0    75.0    3,000  ↓ a!x",
    );
}

#[test]
fn a_legend_fits() {
    for width in [40, 60, 80] {
        let is = text(&arranged(&STACKS, MS), &Options { legend: true, ..narrow(width) });
        let (_, legend) = is.split_once("\nlegend\n").unwrap();
        assert!(legend.lines().all(|line| measure_text_width(line) <= width), "{legend}");
        for category in Category::CODE {
            assert!(legend.contains(category.text()), "{category:?}: {legend}");
        }
    }
}

#[test]
fn what_is_hidden_is_counted() {
    let stacks = [("a!r a!s a!t", 96), ("a!r b!u", 1), ("a!r b!v", 1), ("a!r b!w", 2)];
    let options = Options { min_percent: 3.0, ..narrow(50) };
    assert_text(
        &stacks,
        &options,
        "
        incl %  excl %  call tree
         100.0          a!r
          96.0          ├ a!s
          96.0    96.0  │ ↓ a!t
           4.0          └ … 3 more callees below 3 %

        excl %  incl %  hottest functions
          96.0    96.0  a!t
           2.0     2.0  b!w
           1.0     1.0  b!u
           1.0     1.0  b!v",
    );
    let options = Options { max_depth: Some(1), ..narrow(80) };
    assert_text(
        &stacks[..1],
        &options,
        "
        incl %  excl %  incl ms  call tree
         100.0               96  a!r
         100.0               96  … 1 callee, cut by --max-depth

        excl %  excl ms  incl %  hottest functions
         100.0       96   100.0  a!t",
    );
}

#[test]
fn several_roots_stand_below_all_of_them() {
    assert_text(
        &[("a!x", 3), ("a!y", 1)],
        &narrow(70),
        "
        incl %  excl %  incl us  call tree
         100.0            4,000  all
          75.0    75.0    3,000  ├ a!x
          25.0    25.0    1,000  └ a!y

        excl %  excl us  incl %  hottest functions
          75.0    3,000    75.0  a!x
          25.0    1,000    25.0  a!y",
    );
    assert_text(
        &[],
        &narrow(70),
        "
        incl %  excl %  incl us  call tree
           0.0                0  all",
    );
}

#[test]
fn the_hottest_are_merged_over_the_tree() {
    // `hot` is called from two places, and by itself: inclusive counts a sample once.
    let stacks = [("m!a m!hot", 10), ("m!b m!hot m!hot", 20), ("m!b m!hot m!cold", 5)];
    let is = text(&arranged(&stacks, MS), &narrow(80));
    let hottest: Vec<&str> = is.lines().skip_while(|line| !line.contains("hottest")).skip(1).collect();
    assert_eq!(hottest, ["  85.7       30   100.0  m!hot", "  14.3        5    14.3  m!cold"]);
}

#[test]
fn at_most_ten_are_hot_and_five_of_many_that_are_not() {
    let names: Vec<String> = (0..200).map(|number| format!("m!f{number:03}")).collect();
    let hot = |count: usize| {
        let stacks: Vec<(&str, i64)> = names.iter().take(count).map(|name| (name.as_str(), 7)).collect();
        let is = text(&arranged(&stacks, MS), &narrow(80));
        is.lines().skip_while(|line| !line.contains("hottest")).skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let twenty = hot(20);
    assert_eq!(
        (twenty.len(), twenty.last().unwrap().as_str()),
        (11, "  50.0       70          … 10 more functions")
    );
    let many = hot(200);
    assert_eq!(
        (many.len(), many.last().unwrap().as_str()),
        (6, "  97.5    1,365          … 195 more functions")
    );
}

#[test]
fn values_have_one_unit_that_fits() {
    for (each, expected) in [(1, "incl us"), (MS, "incl ms"), (1_000 * MS, "incl s")] {
        let is = text(&arranged(&[("a!b", 100)], each), &narrow(80));
        assert!(is.contains(expected), "{is}");
    }
    let counts =
        Options { metric: Metric { name: "faults", unit: Unit::Count, ..Metric::CPU }, ..narrow(90) };
    let is = text(&arranged(&[("a!b", 100)], 1), &counts);
    assert_eq!(is.lines().next(), Some("incl %  excl %  call tree"));
}

#[test]
fn differences_have_signs() {
    assert_text(
        &[("a!b a!c", -30), ("a!b a!d", 10)],
        &narrow(80),
        "
        incl %  excl %  incl ms  call tree
        -100.0              -20  a!b
        -150.0  -150.0      -30  ├ a!c
          50.0    50.0       10  └ a!d

        excl %  excl ms  incl %  hottest functions
        -150.0      -30  -150.0  a!c
          50.0       10    50.0  a!d",
    );
}

#[test]
fn names_keep_their_methods_however_narrow() {
    let stacks =
        [("mscorlib!System.Threading.Tasks.Task.Execute mscorlib!System.TimeZoneInfo.GetDatePart", 10)];
    for (width, name) in [
        (62, "↓ mscorlib!…TimeZoneInfo.GetDatePart"),
        (80, "↓ mscorlib!System.TimeZoneInfo.GetDatePart"),
        (45, "↓ mscorlib!…GetDatePart"),
    ] {
        let is = text(&arranged(&stacks, MS), &narrow(width));
        assert!(is.lines().any(|line| line.ends_with(name)), "{width}:\n{is}");
    }
}

/// A hundred levels, each with two branches.
#[test]
fn the_deepest_branches_have_names() {
    let names: Vec<String> = (0..100).map(|level| format!("m!level{level}")).collect();
    let stacks: Vec<(String, i64)> = (1..=100).map(|depth| (names[..depth].join(" "), 1)).collect();
    let side: Vec<(String, i64)> =
        (1..100).map(|depth| (format!("{} m!side", names[..depth].join(" ")), 1)).collect();
    let all: Vec<(&str, i64)> =
        stacks.iter().chain(&side).map(|(stack, one)| (stack.as_str(), *one)).collect();
    let arranged = arranged(&all, MS);
    for width in [60, 80, 120, 200] {
        let is = text(&arranged, &Options { min_percent: 0.0, ..narrow(width) });
        for name in &names {
            assert!(is.lines().any(|line| line.ends_with(name.as_str())), "{name} in {width}");
        }
        assert!(is.lines().all(|line| measure_text_width(line) <= width));
    }
}

/// Stacks of frames of few names, so that they have much in common.
fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, i64)>> {
    let frame = prop_oneof![6 => 0..3_usize, 1 => 3..9_usize];
    prop::collection::vec((prop::collection::vec(frame, 1..25), 10..50_i64), 1..12)
}

const FRAMES: [&str; 9] = ["a!a", "a!b", "b!c", "b!d", "c!e", "c!f", "d!g", "d!h", "e!i"];

/// The number in a column of a line.
fn number(line: &str, from: usize, to: usize) -> Option<i64> {
    let cell: String = line.chars().skip(from).take(to - from).collect();
    cell.trim().replace(',', "").parse().ok()
}

proptest! {
    /// Every number comes from the tree: inclusive samples of each line equal those of a path that the lines show, and all
    /// exclusive ones, with those of folded frames, add up to all. Folded and shown frames together are the paths.
    #[test]
    fn folding_loses_nothing(stacks in stacks()) {
        let texts: Vec<(String, i64)> = stacks
            .iter()
            .map(|(stack, samples)| {
                let names: Vec<&str> = stack.iter().map(|frame| FRAMES[*frame]).collect();
                (names.join(" "), *samples)
            })
            .collect();
        let texts: Vec<(&str, i64)> = texts.iter().map(|(stack, samples)| (stack.as_str(), *samples)).collect();
        let arranged = arranged(&texts, MS);
        let total: i64 = texts.iter().map(|(_, samples)| samples).sum();
        let all = text(&arranged, &Options { min_percent: 0.0, all_frames: true, ..Options::default() });
        let some = text(&arranged, &Options { min_percent: 0.0, ..Options::default() });
        let tree = |text: &str| -> Vec<String> {
            text.lines().skip(1).take_while(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        let (all, some) = (tree(&all), tree(&some));
        // incl %, excl %, incl ms, excl ms, incl count: of 6, 6, 7, 7 and 10 columns.
        let own = |lines: &[String]| lines.iter().filter_map(|line| number(line, 25, 32)).sum::<i64>();
        prop_assert_eq!(own(&all), total);
        prop_assert_eq!(own(&some), total);
        // What is folded stands in the other text in its place, and the rest is the same.
        let mut unfolded = all.iter();
        for line in &some {
            let drawn: String = line.chars().skip(46).collect();
            match drawn.split_once("⋮ ") {
                None => prop_assert_eq!(Some(line), unfolded.next()),
                Some((bars, rest)) => {
                    let count: usize = rest.split(' ').next().unwrap().parse().unwrap();
                    let folded: Vec<&String> = unfolded.by_ref().take(count).collect();
                    prop_assert_eq!(folded.len(), count);
                    let next = format!("{bars}↓ ");
                    prop_assert!(folded.iter().all(|line| line.chars().skip(46).collect::<String>().starts_with(&next)));
                    let hidden: i64 = folded.iter().filter_map(|line| number(line, 25, 32)).sum();
                    prop_assert_eq!(number(line, 25, 32).unwrap_or(0), hidden);
                    for line in &folded {
                        // No frame with a share of its own is among them.
                        prop_assert_eq!(number(line, 25, 32), None);
                    }
                }
            }
        }
        prop_assert_eq!(unfolded.next(), None);
    }
}
