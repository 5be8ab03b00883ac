use std::io::Read;

use flate2::read::GzDecoder;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::*;
use crate::analysis::{Analysis, Options};
use crate::prefix_tree::{NodeId, PrefixTree};
use crate::profile::{
    Arranged, Balance, CallTree, Category, Cut, Detail, End, Entry, Group, GroupId, Profile, Row, Sample,
    Shape, Values,
};
use crate::report::named::NamesOf;
use crate::report::{Spelling, console};
use crate::trace::RunnerId;

/// The data of a page, read again by what its documentation says.
struct Page {
    text: String,
    head: Value,
    bytes: Vec<u8>,
    at: usize,
}

impl Page {
    fn of(analysis: &Analysis, arranged: &Arranged, groups: &[Group]) -> Page {
        Page::shaped(analysis, arranged, groups, &Shape::default())
    }

    fn shaped(analysis: &Analysis, arranged: &Arranged, groups: &[Group], shape: &Shape) -> Page {
        let labels = Spelling::new(&analysis.profile, Detail::default()).with_groups(groups);
        let picture = Picture {
            analysis,
            shape,
            arranged,
            labels: &labels,
            title: "a <title>",
            chosen: "",
            range: (None, None),
            console: console::Options::default(),
            arrange: &|shape| analysis.profile.arrange(shape),
        };
        let mut out = Vec::new();
        write(&mut out, &picture).unwrap();
        let text = String::from_utf8(out).unwrap();
        let data = between(&text, "id=\"data\">", "</script>");
        let mut bytes = Vec::new();
        GzDecoder::new(STANDARD.decode(data).unwrap().as_slice()).read_to_end(&mut bytes).unwrap();
        let feed = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let head = serde_json::from_slice(&bytes[..feed]).unwrap();
        Page { text, head, bytes, at: feed + 1 }
    }

    fn number(&self, field: &str) -> usize {
        self.head[field].as_u64().unwrap() as usize
    }

    fn next(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    fn column(&mut self, length: usize) -> Vec<u64> {
        (0..length).map(|_| self.next()).collect()
    }

    fn signed(&mut self, length: usize) -> Vec<i64> {
        let zigzag = |number: u64| (number >> 1) as i64 ^ -((number & 1) as i64);
        self.column(length).into_iter().map(zigzag).collect()
    }

    fn read(mut self) -> Unpacked {
        let (nodes, parts) = (self.number("nodes"), self.number("parts"));
        let (up, name) = (self.column(nodes), self.column(nodes));
        let mut path: Vec<usize> = Vec::new();
        let mut parent = Vec::new();
        for (node, up) in up.into_iter().enumerate() {
            path.truncate(path.len() - up as usize);
            parent.push(path.last().copied());
            path.push(node);
        }
        let (step, above, line) = (self.column(parts), self.column(parts), self.column(parts));
        let part_node: Vec<usize> = step
            .iter()
            .scan(0, |node, step| {
                *node += *step as usize;
                Some(*node)
            })
            .collect();
        let each = self.head["each"].as_i64();
        let mut records = Vec::new();
        for (thread, of) in self.head["threads"].as_array().unwrap().clone().iter().enumerate() {
            let count = of["records"].as_u64().unwrap() as usize;
            let (cell, part, samples) = (self.column(count), self.signed(count), self.column(count));
            let value = match each {
                Some(each) => samples.iter().map(|samples| *samples as i64 * each).collect(),
                None => self.signed(count),
            };
            let (mut at_cell, mut at_part) = (0, 0);
            for i in 0..count {
                (at_cell, at_part) = (at_cell + cell[i], at_part + part[i]);
                let part = at_part as usize;
                records.push(Record {
                    thread,
                    cell: at_cell,
                    part,
                    samples: samples[i] as i64,
                    value: value[i],
                });
            }
        }
        assert_eq!(self.at, self.bytes.len(), "nothing is left");
        let name = name.into_iter().map(|name| name as usize).collect();
        Unpacked { head: self.head, parent, name, part_node, above, line, records }
    }
}

/// A page that was read.
struct Unpacked {
    head: Value,
    parent: Vec<Option<usize>>,
    name: Vec<usize>,
    part_node: Vec<usize>,
    above: Vec<u64>,
    line: Vec<u64>,
    records: Vec<Record>,
}

struct Record {
    thread: usize,
    cell: u64,
    part: usize,
    samples: i64,
    value: i64,
}

impl Unpacked {
    /// Exclusive and inclusive samples and values of each name, by a walk up from every record.
    fn by_name(&self) -> FxHashMap<&str, [i64; 4]> {
        let mut all: FxHashMap<&str, [i64; 4]> = FxHashMap::default();
        let names = &self.head["names"]["text"];
        for record in &self.records {
            let mut node = Some(self.part_node[record.part]);
            let mut seen = Vec::new();
            while let Some(at) = node {
                let row = all.entry(names[self.name[at]].as_str().unwrap()).or_default();
                if seen.is_empty() {
                    row[0] += record.samples;
                    row[2] += record.value;
                }
                if !seen.contains(&self.name[at]) {
                    row[1] += record.samples;
                    row[3] += record.value;
                    seen.push(self.name[at]);
                }
                node = self.parent[at];
            }
        }
        all
    }

    fn total(&self) -> (i64, i64) {
        self.records
            .iter()
            .fold((0, 0), |(samples, value), record| (samples + record.samples, value + record.value))
    }
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    text.split_once(begin).unwrap().1.split_once(end).unwrap().0
}

fn demo() -> Analysis {
    Analysis::open(&["examples/demo.etl"], &Options::default(), &()).unwrap()
}

fn arranged(profile: &Profile) -> Arranged {
    let detail = Detail { lines: true, ..Detail::default() };
    profile.arrange(&Shape { detail, keep_ends: true, ..Shape::default() })
}

/// Where each name is seen by the tables of the library, which know nothing of pages.
fn expected(analysis: &Analysis, arranged: &Arranged) -> FxHashMap<String, [i64; 4]> {
    let labels = Spelling::new(&analysis.profile, Detail::default());
    let names = NamesOf::new(arranged, &labels);
    let row = |row: Row<String>| {
        (row.key, [row.exclusive, row.inclusive, row.exclusive_value, row.inclusive_value])
    };
    arranged.table(|entry| Some(names.get(names.of(entry)?)?.text.clone())).into_iter().map(row).collect()
}

#[test]
fn every_name_has_the_numbers_of_the_tables() {
    let analysis = demo();
    let arranged = arranged(&analysis.profile);
    let page = Page::of(&analysis, &arranged, &[]).read();
    assert_eq!(page.total(), (arranged.counts.total(), arranged.values.total()));
    let names: FxHashMap<String, [i64; 4]> =
        page.by_name().into_iter().map(|(name, row)| (name.to_owned(), row)).collect();
    assert_eq!(names, expected(&analysis, &arranged));
}

#[test]
fn every_thread_has_its_samples_at_their_times() {
    let analysis = demo();
    let profile = &analysis.profile;
    let arranged = arranged(profile);
    let page = Page::of(&analysis, &arranged, &[]).read();
    let labels = Spelling::new(profile, Detail::default());
    let clock = profile.trace.clock;
    let (start, cell) =
        (page.head["clock"]["start"].as_i64().unwrap(), page.head["clock"]["cell"].as_i64().unwrap());
    let mut expected: FxHashMap<(String, String, u64), i64> = FxHashMap::default();
    for sample in &profile.samples {
        let runner = profile.runner(sample);
        let process = labels.text(Entry::Process(runner.process));
        let thread = labels.text(Entry::Thread(runner.process, runner.tid));
        let at = (clock.filetime(sample.time) - clock.base_utc - start) / cell;
        *expected.entry((process, thread, at as u64)).or_default() += sample.value;
    }
    let mut seen: FxHashMap<(String, String, u64), i64> = FxHashMap::default();
    for record in &page.records {
        let thread = &page.head["threads"][record.thread];
        let process = &page.head["processes"][thread["process"].as_u64().unwrap() as usize];
        let text = |text: &Value| text.as_str().unwrap().to_owned();
        *seen.entry((text(process), text(&thread["name"]), record.cell)).or_default() += record.value;
    }
    assert_eq!(seen, expected);
}

#[test]
fn parts_are_the_lines_of_their_nodes() {
    let analysis = demo();
    let arranged = arranged(&analysis.profile);
    let page = Page::of(&analysis, &arranged, &[]).read();
    let mut first = vec![usize::MAX; page.parent.len()];
    for (part, node) in page.part_node.iter().enumerate().rev() {
        first[*node] = part;
    }
    let lines = &page.head["lines"];
    // Function, line, and the function and line above: as the page has them, and as the tree has them.
    let text = |part: usize| {
        let name = page.head["names"]["text"][page.name[page.part_node[part]]].as_str().unwrap();
        let line = page.line[part].checked_sub(1).map(|line| {
            let file = &lines["files"][lines["file"][line as usize].as_u64().unwrap() as usize];
            (file.as_str().unwrap().to_owned(), lines["line"][line as usize].as_u64().unwrap() as u32)
        });
        (name.to_owned(), line)
    };
    let mut seen = Vec::new();
    for (part, node) in page.part_node.iter().enumerate() {
        let above = page.parent[*node].map(|parent| first[parent] + page.above[part] as usize);
        seen.push((text(part), above.map(text)));
    }
    let labels = Spelling::new(&analysis.profile, Detail::default());
    let text = |entry: Entry| {
        let frame = entry.frame().and_then(|frame| analysis.profile.stacks.frame(frame));
        let line = frame.and_then(|frame| frame.line.as_ref()).map(|line| (line.file.to_string(), line.line));
        (labels.text(entry), line)
    };
    let mut expected: Vec<_> = arranged
        .counts
        .nodes()
        .map(|(_, node)| {
            let above = node.parent.and_then(|parent| arranged.counts.node(parent));
            (text(node.entry), above.map(|above| text(above.entry)))
        })
        .collect();
    assert!(expected.iter().any(|((_, line), _)| line.is_some()));
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn samples_that_stand_for_different_times_keep_them() {
    let mut analysis = demo();
    for (place, sample) in (0..).zip(&mut analysis.profile.samples) {
        sample.value = 1 + place % 7;
    }
    let arranged = arranged(&analysis.profile);
    let page = Page::of(&analysis, &arranged, &[]).read();
    assert!(page.head["each"].is_null());
    assert_eq!(page.total(), (arranged.counts.total(), arranged.values.total()));
}

#[test]
fn a_tree_with_callees_first_is_turned_over_by_the_page() {
    let analysis = demo();
    let shape = Shape { keep_ends: true, ..Shape::default() };
    let inverted = Shape { inverted: true, ..shape.clone() };
    let page = |shape: &Shape| Page::shaped(&analysis, &analysis.profile.arrange(shape), &[], shape);
    let (mut callees, callers) = (page(&inverted), page(&shape));
    assert_eq!(callees.head["inverted"], true);
    callees.head["inverted"] = false.into();
    assert_eq!(callees.head, callers.head);
    assert_eq!(callees.bytes[callees.at..], callers.bytes[callers.at..]);
}

#[test]
fn the_same_picture_gives_the_same_bytes() {
    let analysis = demo();
    let arranged = arranged(&analysis.profile);
    let page = || Page::of(&analysis, &arranged, &[]).text;
    assert_eq!(page(), page());
}

/// The policy names what the browser sees as the script and the style: what stands between the tags, byte for byte.
#[test]
fn the_policy_allows_this_script_and_this_style_only() {
    let analysis = demo();
    let page = Page::of(&analysis, &arranged(&analysis.profile), &[]).text;
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let (script, style) = (between(&page, "<script>", "</script>"), between(&page, "<style>", "</style>"));
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{}'", hash(script))), "{policy}");
    assert!(policy.contains(&format!("style-src 'sha256-{}'", hash(style))), "{policy}");
    // Nothing in them ends them early, or is seen as a comment of the page.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains('\r') && !script.contains("<!--"));
}

/// Names are inside the packed data; what is outside is the same for all recordings.
#[test]
fn no_name_is_markup() {
    let analysis = demo();
    let text = "a!</script><img src=x onerror=alert(1)>\u{202e}\n";
    let groups = [Group { name: text.into(), entry: None, category: Category::Native }];
    let mut tree = PrefixTree::default();
    let node = tree.child(None, Entry::Group(GroupId(0)));
    let arranged = synthetic(&tree, &[End { sample: 0, node }], &analysis.profile);
    let page = Page::of(&analysis, &arranged, &groups);
    assert!(!page.text.contains("onerror") && !page.text.contains("a <title>"));
    assert_eq!(page.head["names"]["text"][0], "a!</script><img src=x onerror=alert(1)>??");
    let plain = Page::of(&analysis, &self::arranged(&analysis.profile), &[]).text;
    let outside = |page: &str| page.replace(between(page, "id=\"data\">", "</script>"), "");
    assert_eq!(outside(&page.text), outside(&plain));
}

/// A tree in which samples of a profile end as they are said to.
fn synthetic(tree: &PrefixTree<Entry>, ends: &[End], profile: &Profile) -> Arranged {
    let value = |end: &End| profile.samples.get(end.sample as usize).map_or(0, |sample| sample.value);
    Arranged {
        counts: CallTree::count(tree, ends.iter().map(|end| (end.node, 1))),
        values: Values::count(tree, ends.iter().map(|end| (end.node, value(end)))),
        groups: Vec::new(),
        balance: Balance { total: ends.len() as u64, kept: ends.len() as u64, ..Balance::default() },
        left_out: Vec::new(),
        ends: ends.to_vec(),
        cut: Cut::default(),
        gave_up: Vec::new(),
    }
}

/// A page of many samples in many nodes, whose size is in docs/performance.md. With a path in `ETWPROF_LARGE_PAGE` it is
/// written there, and `scripts/check-page` measures it.
fn large(samples: u32, nodes: usize) -> (Analysis, Arranged, Vec<Group>) {
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let mut analysis = demo();
    let kinds = Category::CODE;
    let group = |i: usize| Group {
        name: format!("module{}!Company.Product{}.Type{}.Method{i}", i % 150, i % 40, i % 3000).into(),
        entry: None,
        category: kinds[i % 150 % kinds.len()],
    };
    let groups: Vec<Group> = (0..20_000).map(group).collect();
    // Stacks leave others at any depth and go on for a while, to a depth of 120.
    let mut tree: PrefixTree<Entry> = PrefixTree::default();
    let mut depths: Vec<u32> = Vec::new();
    while tree.len() < nodes {
        let mut node = (!depths.is_empty()).then(|| NodeId(random(depths.len()) as u32));
        for _ in 0..1 + random(30) {
            let depth = node.map_or(0, |node| depths[node.0 as usize] + 1);
            if depth >= 120 {
                break;
            }
            let next = tree.child(node, Entry::Group(GroupId(random(groups.len()) as u32)));
            if next.0 as usize == depths.len() {
                depths.push(depth);
            }
            node = Some(next);
        }
    }
    let first: Sample = analysis.profile.samples[0];
    let last: Sample = *analysis.profile.samples.last().unwrap();
    let length = last.time.0 - first.time.0;
    let runners = analysis.profile.trace.runners.len();
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    // Eight threads at a time, each of which stays where it is for a few samples.
    let mut at = [NodeId(0); 8];
    let mut thread = [0u32; 8];
    for sample in 0..samples {
        let lane = sample as usize % 8;
        if random(3) == 0 {
            at[lane] = NodeId(random(tree.len()) as u32);
        }
        if random(200) == 0 {
            thread[lane] = random(runners) as u32;
        }
        let time = crate::event::Ticks(first.time.0 + length * i64::from(sample) / i64::from(samples));
        all.push(Sample { time, runner: RunnerId(thread[lane]), ..first });
        ends.push(End { sample, node: at[lane] });
    }
    analysis.profile.samples = all;
    let arranged = synthetic(&tree, &ends, &analysis.profile);
    (analysis, arranged, groups)
}

#[test]
fn many_samples_are_packed() {
    let (analysis, arranged, groups) = large(50_000, 20_000);
    let page = Page::of(&analysis, &arranged, &groups);
    let size = page.text.len();
    assert!(size < 1_000_000, "{size} bytes");
    assert_eq!(page.read().total(), (arranged.counts.total(), arranged.values.total()));
}

#[test]
fn of_millions_of_samples_time_is_in_wider_cells() {
    let (analysis, arranged, groups) = large(2_000_001, 1000);
    let page = Page::of(&analysis, &arranged, &groups).read();
    let cells = page.head["clock"]["cells"].as_u64().unwrap();
    assert!((1000..=4096).contains(&cells), "{cells}");
    assert!(page.records.len() < 1_500_000, "{} records", page.records.len());
    assert_eq!(page.total(), (2_000_001, arranged.values.total()));
}

#[test]
#[ignore = "writes a page of a million samples to ETWPROF_LARGE_PAGE for scripts/check-page"]
fn a_million_samples_in_half_a_million_nodes() {
    let path = std::env::var_os("ETWPROF_LARGE_PAGE").unwrap();
    let (analysis, arranged, groups) = large(1_000_000, 500_000);
    let page = Page::of(&analysis, &arranged, &groups);
    assert!(page.text.len() < 15_000_000, "{} bytes", page.text.len());
    std::fs::write(path, &page.text).unwrap();
    assert_eq!(page.read().total(), (1_000_000, arranged.values.total()));
}
