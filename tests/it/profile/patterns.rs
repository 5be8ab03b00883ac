//! PerfView's patterns: worked cases, and what holds of all.

use std::collections::BTreeMap;

use etwprof::profile::patterns::{
    Dropped, Engine, FrameText, List, PatternCause, Preset, Recipe, RecipeText, Shaped, presets,
};
use etwprof::profile::{Arranged, Balance, CallTree, Cut};
use proptest::prelude::*;

/// A frame: how it reads, and which of several that read alike.
type Frame<'t> = (&'t str, u32);

const ROOT: Frame<'_> = ("ROOT", 0);

#[derive(Debug, Default)]
struct Case<'t> {
    title: &'t str,
    recipe: RecipeText,
    percent: f64,
    stacks: Vec<(Vec<Frame<'t>>, i64)>,
    excluded: usize,
    not_included: usize,
    tree: Vec<Shown>,
}

/// A node: its depth, how it reads, inclusive, exclusive, folded.
type Shown = (usize, String, i64, i64, i64);

/// What a recipe makes of stacks.
#[derive(Debug, Default, PartialEq)]
struct Made {
    excluded: usize,
    not_included: usize,
    tree: Vec<Shown>,
}

fn frame(text: &str) -> Frame<'_> {
    match text.rsplit_once('#') {
        Some((text, number)) => (text, number.parse().unwrap()),
        None => (text, 1),
    }
}

fn stack(text: &str) -> (Vec<Frame<'_>>, i64) {
    let (frames, value) = match text.rsplit_once(" x") {
        Some((frames, value)) => (frames, value.parse().unwrap()),
        None => (text, 1),
    };
    (frames.split('/').map(frame).collect(), value)
}

fn node(text: &str) -> Shown {
    let (name, numbers) = text.rsplit_once(" = ").unwrap();
    let (sums, fold) = numbers.split_once(" fold ").unwrap_or((numbers, "0"));
    let (inclusive, exclusive) = sums.split_once(' ').unwrap();
    let indented = name.len() - name.trim_start_matches(' ').len();
    let number = |text: &str| text.parse().unwrap();
    (
        indented / 2,
        name.trim_start_matches(' ').to_owned(),
        number(inclusive),
        number(exclusive),
        number(fold),
    )
}

fn cases() -> Vec<Case<'static>> {
    let blocks = include_str!("patterns.txt").split("\n\n").skip(2);
    blocks
        .map(|block| {
            let mut lines = block.lines();
            let mut case = Case { title: lines.next().unwrap(), ..Case::default() };
            for line in lines {
                let (key, text) = line.split_once(": ").unwrap();
                match key {
                    "group" => case.recipe.group = text.to_owned(),
                    "fold" => case.recipe.fold = text.to_owned(),
                    "inc" => case.recipe.inc = text.to_owned(),
                    "exc" => case.recipe.exc = text.to_owned(),
                    "program" => case.recipe.program = Some(text.to_owned()),
                    "percent" => case.percent = text.parse().unwrap(),
                    "in" => case.stacks.push(stack(text)),
                    "excluded" => case.excluded = text.parse().unwrap(),
                    "not included" => case.not_included = text.parse().unwrap(),
                    "out" => case.tree.push(node(text)),
                    _ => panic!("{line}"),
                }
            }
            case
        })
        .collect()
}

fn arranged<E: Copy + Eq + std::hash::Hash>(stacks: &[(Vec<E>, i64)]) -> Arranged<E> {
    // PerfView orders and shows by the metric alone.
    let counts = CallTree::new(stacks.iter().cloned());
    Arranged {
        values: (&counts).into(),
        counts,
        groups: Vec::new(),
        balance: Balance::default(),
        cut: Cut::default(),
        left_out: Vec::new(),
        ends: Vec::new(),
        gave_up: Vec::new(),
    }
}

/// The path of a node, by how it reads.
fn path<E: Copy + Eq + std::hash::Hash>(
    tree: &CallTree<E>,
    id: etwprof::prefix_tree::NodeId,
    name: impl Fn(E) -> String,
) -> Vec<String> {
    tree.path(id).map(|node| name(node.entry)).collect()
}

fn make(recipe: &RecipeText, percent: f64, stacks: &[(Vec<Frame<'_>>, i64)]) -> Made {
    let recipe = Recipe::parse(recipe).unwrap();
    let mut engine = Engine::new(&recipe, |(text, _): Frame<'_>| FrameText::of(text));
    let mut made = Made::default();
    let mut kept = Vec::new();
    let mut by_pattern: Vec<(Vec<Shaped<Frame<'_>>>, i64)> = Vec::new();
    for (stack, value) in stacks {
        match engine.apply(stack.iter().copied()) {
            Ok(shaped) => {
                if shaped.folded > 0 {
                    by_pattern.push((shaped.stack.clone(), *value));
                }
                kept.push((shaped.stack, *value));
            }
            Err(Dropped::Excluded) => made.excluded += 1,
            Err(Dropped::NotIncluded) => made.not_included += 1,
        }
    }
    let name = |shaped| match shaped {
        Shaped::Frame(ROOT) => "ROOT".to_owned(),
        shaped => engine.name(shaped).to_owned(),
    };
    let before = arranged(&kept);
    let after = before.without_small(percent, name, |shaped| name(shaped) == "BROKEN", Shaped::Frame(ROOT));
    assert_eq!(after.values.total(), before.values.total());
    assert_eq!(after.counts.total(), before.counts.total());

    let mut folded: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for (stack, value) in &by_pattern {
        *folded.entry(stack.iter().rev().map(|shaped| name(*shaped)).collect()).or_default() += value;
    }
    let own: BTreeMap<Vec<String>, i64> =
        before.counts.nodes().map(|(id, node)| (path(&before.counts, id, name), node.exclusive())).collect();
    let mut steps: Vec<_> = after.counts.roots().iter().rev().map(|id| (*id, 0)).collect();
    while let Some((id, depth)) = steps.pop() {
        let node = after.counts.node(id).unwrap();
        let path = path(&after.counts, id, name);
        let small = node.exclusive() - own.get(&path).unwrap_or(&0);
        let fold = folded.get(&path).unwrap_or(&0) + small;
        made.tree.push((depth, name(node.entry), node.inclusive(), node.exclusive(), fold));
        steps.extend(after.counts.children(node).iter().rev().map(|id| (*id, depth + 1)));
    }
    made
}

#[test]
fn worked_cases() {
    let cases = cases();
    let numbers: Vec<u32> =
        cases.iter().map(|case| case.title.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (1..=66).chain(70..=120).collect::<Vec<_>>());
    for case in cases {
        let made = make(&case.recipe, case.percent, &case.stacks);
        let Case { excluded, not_included, tree, .. } = case;
        assert_eq!(made, Made { excluded, not_included, tree }, "case {}", case.title);
    }
}

fn group(text: &str) -> RecipeText {
    RecipeText { group: text.into(), ..RecipeText::default() }
}

#[test]
fn what_cannot_be_read_is_named() {
    let error = |text: &RecipeText| Recipe::parse(text).unwrap_err();
    let fold = |text: &str| RecipeText { fold: text.into(), ..RecipeText::default() };
    let inc = RecipeText { inc: "a; {b".into(), ..RecipeText::default() };
    let exc = RecipeText { exc: "@(a".into(), ..RecipeText::default() };
    assert_eq!(error(&group("a->b; c}->d ")).cause, PatternCause::Unopened);
    assert_eq!(error(&group("a->b; c}->d ")).item, "c}->d");
    assert_eq!(error(&group("[my modules]")).cause, PatternCause::NoPreset);
    assert_eq!(
        (error(&inc).list, error(&inc).item.as_str(), error(&inc).cause),
        (List::Inc, "{b", PatternCause::Unclosed)
    );
    assert!(matches!(error(&exc).cause, PatternCause::Regex(_)));
    assert!(error(&exc).to_string().starts_with("`@(a` in ExcPats: "));
    assert_eq!(error(&fold("@(?<open-close>a)")).cause, PatternCause::Balancing);
    assert_eq!(error(&fold("@(?<-open>a)")).cause, PatternCause::Balancing);
    let deep = format!("{}{}", "{".repeat(100_000), "}".repeat(100_000));
    assert!(matches!(error(&fold(&deep)).cause, PatternCause::Regex(_)));
    assert!(matches!(error(&fold(&format!("@{}", "(".repeat(100_000)))).cause, PatternCause::Regex(_)));
    // What .NET has and the engine does not, and what both have and read otherwise.
    for raw in ["@(?<open-close>a)", "@[a-z-[aeiou]]", "@[[:alpha:]]", "@[a&&b]", "@[^]--b]", "@[a~~b]"] {
        assert_eq!(error(&fold(raw)).list, List::Fold, "{raw}");
    }
    for raw in [r"@[\[a]", r"@\[[a]]", "@[]a]", "@[^]a]", "@a&&b--c~~d", r"@[\]]\p{L}(?<=a)(?:b)\1?(c)"] {
        assert!(Recipe::parse(&fold(raw)).is_ok(), "{raw}");
    }
}

#[test]
fn presets_are_found_by_their_names_alone() {
    for preset in presets() {
        let alone = Recipe::parse(&group(&preset.name.to_uppercase())).unwrap();
        let mut engine = Engine::new(&alone, FrameText::of);
        let spelled = format!("{} {}", preset.name, preset.text);
        let spelled = Recipe::parse(&group(if preset.text.is_empty() { "" } else { &spelled })).unwrap();
        let mut peer = Engine::new(&spelled, FrameText::of);
        let stack =
            ["Process64 app (1)", "Thread (2)", r"C:\Windows\System32\ntdll!F", "m!N.T.M(int)", "m!A::b"];
        let (own, other) = (engine.apply(stack).unwrap().stack, peer.apply(stack).unwrap().stack);
        let own: Vec<&str> = own.into_iter().map(|shaped| engine.name(shaped)).collect();
        let other: Vec<&str> = other.into_iter().map(|shaped| peer.name(shaped)).collect();
        assert_eq!(own, other, "{}", preset.name);
    }
}

/// The longest is described by what it is made of.
#[test]
fn the_presets_are_in_the_reference() {
    let reference = include_str!("../../../docs/patterns.md");
    for Preset { name, text } in presets() {
        let row = match *text {
            "" => format!("| `{name}` | empty |"),
            text => format!("| `{name}` | `{text}` |"),
        };
        assert!(reference.contains(&row) || *name == "[group CLR/OS ignore paths]", "{row}");
    }
}

#[test]
fn a_stack_without_frames_is_in_nothing() {
    let (all, some) = (Recipe::default(), RecipeText { inc: "a".into(), ..RecipeText::default() });
    let some = Recipe::parse(&some).unwrap();
    assert!(Engine::new(&all, FrameText::of).apply([]).unwrap().stack.is_empty());
    assert_eq!(Engine::new(&some, FrameText::of).apply([]), Err(Dropped::NotIncluded));
}

#[test]
fn each_frame_is_read_once() {
    let recipe = Recipe::parse(&group("[group module entries]")).unwrap();
    let mut read = Vec::new();
    let mut engine = Engine::new(&recipe, |frame: &'static str| {
        read.push(frame);
        FrameText::of(frame)
    });
    for _ in 0..3 {
        engine.apply(["a!A", "b!B", "a!C", "b!B", "a!A"]).unwrap();
    }
    let Shaped::Group(a) = engine.apply(["a!C"]).unwrap().stack[0] else { panic!() };
    assert_eq!(engine.members(a), ["a!A", "a!C"]);
    let shown: Vec<_> = engine.groups().iter().map(|group| (&*group.name, group.entry)).collect();
    assert_eq!(shown[2..], [("module a", Some("a!C"))]);
    drop(engine);
    assert_eq!(read, ["a!A", "b!B", "a!C"]);
}

#[test]
fn long_and_hostile_names_stay_in_bounds() {
    let long = format!("{}!{}", "a!".repeat(16 << 10), "<b>\u{202E}\0".repeat(4 << 10));
    let doubling = ";*->$&$&".repeat(40);
    for text in [&doubling, "{*}!{*}!{*}->$3", "{%!*}.%(=>class $1", "{%}!=>module $1", r"system32\*!=>OS"] {
        let recipe = Recipe::parse(&group(text)).unwrap();
        let mut engine = Engine::new(&recipe, FrameText::of);
        let kept = engine.apply([long.as_str()]).unwrap();
        assert!(engine.name(kept.stack[0]).len() <= (64 << 10) + 64, "{text}");
        assert_eq!(engine.gave_up().count(), 0, "{text}");
    }
}

#[test]
fn an_item_that_takes_too_long_is_no_match_and_is_reported() {
    let text = RecipeText { exc: r"@^(a|b|ab)*\1\1c$;z!".into(), ..RecipeText::default() };
    let recipe = Recipe::parse(&text).unwrap();
    let mut engine = Engine::new(&recipe, FrameText::of);
    let long = "ab".repeat(40);
    assert!(engine.apply([long.as_str(), "a!A", long.as_str()]).is_ok());
    assert_eq!(engine.gave_up().collect::<Vec<_>>(), [(List::Exc, r"@^(a|b|ab)*\1\1c$", 1)]);
}

/// Pieces that are likely to match, and those that are not.
fn items(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(of), 0..4).prop_map(|items| items.join(";"))
}

fn recipes() -> impl Strategy<Value = RecipeText> {
    let groups = items(&[
        "{%}!->module $1",
        "{%}!=>module $1",
        "a!->",
        "b!=>LIB",
        "LIB->SYS",
        "!A->A",
        "[c]",
        "",
        "->",
        "$&",
    ]);
    let pats = || items(&["a!", "b!B", "<<", "LIB", "module", "^Process", "@C$", "", "%*", "{a|b}!A"]);
    (groups, pats(), pats(), pats()).prop_map(|(group, fold, inc, exc)| RecipeText {
        // An item in brackets at the start is the name of a preset.
        group: group.trim_start_matches("[c]").to_owned(),
        fold,
        inc,
        exc: exc.replace("%*", ""),
        program: None,
    })
}

fn stacks() -> impl Strategy<Value = Vec<(Vec<Frame<'static>>, i64)>> {
    let names =
        ["a!A", "a!B", r"C:\x\b!B", "b!B", "b!C", "c!?", "Process64 a (1)", "a!X.MoveNext()", "BROKEN"];
    let frame = (prop::sample::select(names.to_vec()), 1..3u32);
    let stack = (prop::collection::vec(frame, 1..8), -20..100i64);
    prop::collection::vec(stack, 0..12)
}

proptest! {
    #[test]
    fn any_text_is_a_recipe_or_an_error(
        group in r"[ab!%*^|{}$;@()\[\]<>=.?+\\-]{0,24}",
        fold in r"[ab!%*^|{}$;@()\[\]<>=.?+\\-]{0,24}",
        stack in prop::collection::vec("[ab!.$]{0,6}", 0..6),
    ) {
        let text = RecipeText { group, fold: fold.clone(), ..RecipeText::default() };
        match Recipe::parse(&text) {
            Ok(recipe) => {
                let mut engine = Engine::new(&recipe, |frame: usize| FrameText::of(&stack[frame]));
                let kept = engine.apply(0..stack.len()).unwrap();
                prop_assert!(kept.stack.len() <= stack.len());
                prop_assert_eq!(kept.stack.is_empty(), stack.is_empty());
            }
            Err(error) => {
                let list = if error.list == List::Group { &text.group } else { &fold };
                prop_assert!(list.contains(&error.item));
            }
        }
    }

    #[test]
    fn nothing_gets_lost(recipe in recipes(), percent in 0.0..30.0, stacks in stacks()) {
        let read = Recipe::parse(&recipe).unwrap();
        let mut engine = Engine::new(&read, |(text, _): Frame<'_>| FrameText::of(text));
        let kept: Vec<_> = stacks.iter().filter(|(stack, _)| engine.apply(stack.iter().copied()).is_ok()).collect();
        let sum: i64 = kept.iter().map(|(_, value)| value).sum();
        let made = make(&recipe, percent, &stacks);
        prop_assert_eq!(kept.len() + made.excluded + made.not_included, stacks.len());
        let roots = made.tree.iter().filter(|(depth, ..)| *depth == 0);
        prop_assert_eq!(roots.map(|(_, _, inclusive, ..)| inclusive).sum::<i64>(), sum);
        prop_assert_eq!(made.tree.iter().map(|(_, _, _, exclusive, _)| exclusive).sum::<i64>(), sum);
    }

    #[test]
    fn what_is_kept_does_not_depend_on_other_stacks(recipe in recipes(), stacks in stacks()) {
        let read = Recipe::parse(&recipe).unwrap();
        let text = |(text, _): Frame<'static>| FrameText::of(text);
        let mut all = Engine::new(&read, text);
        for (stack, _) in &stacks {
            let mut alone = Engine::new(&read, text);
            let (one, other) = (all.apply(stack.iter().copied()), alone.apply(stack.iter().copied()));
            let one = one.map(|kept| kept.stack.iter().map(|shaped| all.name(*shaped).to_owned()).collect::<Vec<_>>());
            let other = other.map(|kept| kept.stack.iter().map(|shaped| alone.name(*shaped).to_owned()).collect());
            prop_assert_eq!(one, other);
        }
    }
}
