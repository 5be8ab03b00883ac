use super::{Options, write};
use crate::profile::{Arranged, Balance, CallTree, Category, Cut};
use crate::report::{Label, Labels, Plain};

const MS: i64 = 10_000;

/// The graph of these stacks, written `module!a module!b`, in which a sample stands for 1 ms.
fn svg(stacks: &[(&str, i64)], options: &Options) -> String {
    labelled(stacks, &Plain, options)
}

fn labelled<'s>(stacks: &[(&'s str, i64)], labels: &impl Labels<&'s str>, options: &Options) -> String {
    let stacks = || stacks.iter().map(|(stack, samples)| (stack.split(' '), *samples));
    let counts = CallTree::new(stacks());
    let values = CallTree::new(stacks().map(|(stack, samples)| (stack, samples * MS)));
    let arranged = Arranged {
        counts,
        values: (&values).into(),
        groups: Vec::new(),
        balance: Balance::default(),
        left_out: Vec::new(),
        ends: Vec::new(),
        cut: Cut::default(),
        gave_up: Vec::new(),
    };
    let mut out = Vec::new();
    write(&mut out, &arranged, labels, options).unwrap();
    String::from_utf8(out).unwrap()
}

/// Tooltip, x, y and width of each box.
fn boxes(svg: &str) -> Vec<(String, f64, f64, f64)> {
    let boxes = svg.split("<g id=\"boxes\">").nth(1).unwrap().split("</g>\n</g>").next().unwrap();
    let number = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let of = |text: &str| {
        let (title, rest) = text.split_once("<title>").unwrap().1.split_once("</title>").unwrap();
        (title.to_owned(), number(rest, "x"), number(rest, "y"), number(rest, "width"))
    };
    boxes.split("<g class=").skip(1).map(of).collect()
}

#[test]
fn boxes_are_as_wide_as_their_share() {
    let stacks = [("m!main a!b", 600), ("m!main a!c", 300), ("m!main", 100)];
    let is = boxes(&svg(&stacks, &Options::default()));
    // 1180 pixels for all.
    let expected = [
        ("all\n100.00 %, 1,000 samples, 1.00 s", 10.0, 0.0, 1180.0),
        ("m!main\n100.00 %, 1,000 samples, 1.00 s; 10.00 % in itself", 10.0, 17.0, 1180.0),
        ("a!b\n60.00 %, 600 samples, 600.0 ms", 10.0, 34.0, 708.0),
        ("a!c\n30.00 %, 300 samples, 300.0 ms", 718.0, 34.0, 354.0),
    ];
    let top = is[0].2;
    let is: Vec<(&str, f64, f64, f64)> =
        is.iter().map(|(title, x, y, width)| (title.as_str(), *x, y - top, *width)).collect();
    assert_eq!(is, expected);
}

/// Entries that differ in their digits read alike.
struct WithoutDigits;

impl Labels<&str> for WithoutDigits {
    fn label(&self, entry: &str) -> Label<'_> {
        let text = entry.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        Label { text: text.into(), category: Category::Native, inlined: false }
    }
}

/// Wide or narrow, they are drawn and counted as if they had been one from the start.
#[test]
fn callees_that_read_alike_are_one_box() {
    let stacks = [
        ("m!a1 m!b1 m!c1", 50_000),
        ("m!a2 m!b2 m!c1", 30_000),
        ("m!a2 m!b3", 20_000),
        ("m!a1 m!d1 m!e1", 1),
        ("m!a2 m!d2 m!e2", 2),
        ("m!a1 m!f1 m!g1", 1),
        ("m!a1 m!f1 m!g2", 1),
        ("m!a1 m!f1 m!g2 m!h1 m!i1", 1),
        ("m!a1 m!f1 m!g1 m!h2 m!i1", 1),
        ("m!a3 m!k1", 1),
        ("m!l1 m!k1", 1),
        ("m!l2", 1),
    ];
    let without: Vec<(String, i64)> = stacks
        .iter()
        .map(|(stack, samples)| (stack.replace(|c: char| c.is_ascii_digit(), ""), *samples))
        .collect();
    let without: Vec<(&str, i64)> = without.iter().map(|(stack, samples)| (&**stack, *samples)).collect();
    let options = Options::default();
    let is = labelled(&stacks, &WithoutDigits, &options);
    // d e, f g h i, k, and l with its k.
    assert!(is.contains(">9 boxes are too narrow to be drawn<"), "{is:.3000}");
    assert_eq!(is, svg(&without, &options));
}

#[test]
fn what_is_too_narrow_is_counted() {
    let stacks = [("m!main", 99_999), ("m!main a!rare", 1)];
    let is = svg(&stacks, &Options { subtitle: "s".into(), ..Options::default() });
    assert!(!is.contains("rare") && is.contains(">s; 1 box is too narrow to be drawn<"), "{is:.3000}");
}

#[test]
fn names_are_text_and_nothing_else() {
    let options = Options {
        title: "<script>alert(1)</script>".into(),
        chosen: "--name 'a&b\u{1}'".into(),
        ..Options::default()
    };
    let is = svg(&[("<img!]]>onerror=\"x\" &amp;", 1)], &options);
    assert_eq!(is.matches("<script").count(), 1, "ours");
    assert!(is.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>"));
    assert!(is.contains(">--name 'a&amp;b?'<"));
    assert!(is.contains("<title>&lt;img!]]&gt;onerror=\"x\"\n"), "{is:.3000}");
    assert!(is.contains("<title>&amp;amp;\n"));
    assert_eq!(is.matches("]]>").count(), 1, "the end of the script");
}

#[test]
fn nothing_is_a_picture_too() {
    let is = svg(&[], &Options::default());
    assert!(is.contains(">no samples<") && is.ends_with("</svg>\n"));
    // Differences may be negative, which has no width.
    let is = boxes(&svg(&[("a!b", -5), ("a!c", 5)], &Options::default()));
    let widths: Vec<f64> = is.iter().map(|(.., width)| *width).collect();
    assert_eq!(widths, [1180.0, 1180.0], "all of what is there, and a!c");
}
