//! Two sides beside each other: PerfView's overweight figures, noise and change, and what a build refuses.

use etwprof::compare::{
    Change, Comparison, Condition, Measure, Name, NameId, Names, Needed, Run, Scale, Side, Step, Together,
    Verdict,
};
use etwprof::profile::{Category, Matcher};
use etwprof::report::diff::Tree;

use crate::support::luck::Luck;

const MS: i64 = 1_000_000;

/// Names a function of module `app`.
fn id(names: &mut Names, function: &str) -> NameId {
    let label = format!("app!{function}");
    let (module, category) = ("app".to_owned(), Category::Native);
    names.number(Name { key: label.clone(), label, module, category })
}

/// A run of stacks, `root/f/g`, with their samples of 1 ms.
fn run(names: &mut Names, stacks: &[(&str, i64)]) -> Run {
    let mut steps: Vec<Step> = Vec::new();
    for (stack, samples) in stacks {
        let mut parent = None;
        for function in stack.split('/') {
            steps.push(Step { parent, name: id(names, function), samples: 0, ns: 0 });
            parent = Some(steps.len() - 1);
        }
        let last = steps.last_mut().unwrap();
        (last.samples, last.ns) = (*samples, samples * MS);
    }
    Run::new(steps, Some(10.0))
}

fn side(names: &mut Names, stacks: &[(&str, i64)]) -> Side {
    Side { runs: vec![run(names, stacks)] }
}

/// Two sides of a root that calls `f` and something else.
fn compared(
    measure: Measure,
    scale: &Scale,
    (all, f): (i64, i64),
    (all_after, f_after): (i64, i64),
) -> Change {
    let mut names = Names::default();
    let before = side(&mut names, &[("root/f", f), ("root/other", all - f)]);
    let after = side(&mut names, &[("root/f", f_after), ("root/other", all_after - f_after)]);
    let wanted = id(&mut names, "f");
    let comparison = Comparison::new(&names, (&before, &after), scale, measure, Some).unwrap();
    assert_eq!((comparison.before, comparison.after), (all, all_after));
    comparison.rows.into_iter().find(|row| row.key == wanted).unwrap()
}

/// The first eight are PerfView's own results; the others follow from its rules by hand: overweight is
/// delta / (base * (all after / all before - 1)), responsibility delta / growth of all, both in percent, and interest
/// counts |overweight| > 110, |responsibility| > 5, > 20, > 100, a share < 0.95, < 0.75.
#[test]
fn overweight_is_that_of_perfview() {
    for ((before, f), (after, f_after), overweight, responsibility, interest) in [
        ((100, 10), (120, 20), Some(500.0), Some(50.0), 5),
        ((100, 50), (120, 60), Some(100.0), Some(50.0), 4),
        ((100, 100), (120, 120), Some(100.0), Some(100.0), 2),
        ((100, 40), (120, 40), Some(0.0), Some(0.0), 2),
        ((1000, 100), (1200, 103), Some(15.0), Some(1.5), 2),
        ((100, 10), (110, 20), Some(1000.0), Some(100.0), 5),
        // One side only: PerfView has no row for them.
        ((100, 0), (110, 10), None, Some(100.0), 0),
        // Nothing grew.
        ((100, 10), (100, 20), None, None, 0),
        // All became less: it took part in that, had nothing to do with it, or grew against it.
        ((100, 30), (80, 10), Some(333.333), Some(100.0), 5),
        ((100, 10), (80, 10), Some(0.0), Some(0.0), 2),
        ((100, 10), (80, 20), Some(-500.0), Some(-50.0), 5),
        ((100, 10), (90, 0), None, Some(100.0), 0),
        ((200, 100), (100, 25), Some(150.0), Some(75.0), 5),
        // Most of all.
        ((100, 90), (200, 180), Some(100.0), Some(90.0), 3),
        ((100, 96), (200, 192), Some(100.0), Some(96.0), 2),
        // At the edges: 20 is not more than 20, and 110 not more than 110.
        ((100, 10), (200, 30), Some(200.0), Some(20.0), 4),
        ((100, 10), (200, 31), Some(210.0), Some(21.0), 5),
        ((100, 10), (200, 21), Some(110.0), Some(11.0), 3),
        // More than all of the growth.
        ((100, 50), (110, 75), Some(500.0), Some(250.0), 6),
        ((100, 50), (110, 50), Some(0.0), Some(0.0), 2),
        ((1000, 100), (1050, 110), Some(200.0), Some(20.0), 4),
        ((100, 1), (101, 1), Some(0.0), Some(0.0), 2),
    ] {
        let row = compared(Measure::Overweight, &Scale::Runs, (before, f), (after, f_after));
        let near = |is: Option<f64>, should: Option<f64>| match (is, should) {
            (Some(is), Some(should)) => (is - should).abs() < 0.001,
            (is, should) => is == should,
        };
        let case = format!("{f} of {before} to {f_after} of {after}: {row:?}");
        assert!(near(row.overweight, overweight), "{case}");
        assert!(near(row.responsibility, responsibility), "{case}");
        assert_eq!(row.interest, interest, "{case}");
    }
}

#[test]
fn rows_of_the_overweight_report_are_in_its_order() {
    let mut names = Names::default();
    let before = side(&mut names, &[("root/f", 10), ("root/g", 50), ("root/h", 40)]);
    let after = side(&mut names, &[("root/f", 20), ("root/g", 60), ("root/h", 40)]);
    let rows =
        Comparison::new(&names, (&before, &after), &Scale::Runs, Measure::Overweight, Some).unwrap().rows;
    let order: Vec<&str> = rows.iter().map(|row| names.get(row.key).unwrap().label.as_str()).collect();
    assert_eq!(order, ["app!f", "app!g", "app!root", "app!h"]);
}

#[test]
fn a_side_beside_itself_has_not_changed() {
    let mut names = Names::default();
    let one = side(&mut names, &[("root/f", 1_000), ("root/g/f", 50), ("root", 3)]);
    for measure in [Measure::Exclusive, Measure::Inclusive, Measure::Overweight] {
        for scale in [Scale::Runs, Scale::Samples, Scale::Time, Scale::Function(Matcher::parse("f").unwrap())]
        {
            let same = Comparison::new(&names, (&one, &one), &scale, measure, Some).unwrap();
            assert!(same.rows.iter().all(|row| row.delta == 0.0 && row.delta_ns == 0.0 && !row.significant));
            assert_eq!((same.factor.time, same.rows.len()), (1.0, 3));
        }
    }
}

#[test]
fn what_doubled_is_first_with_its_figures() {
    let mut names = Names::default();
    let before = side(&mut names, &[("root/f", 300), ("root/g", 5_000), ("root/h/f", 200)]);
    let after = side(&mut names, &[("root/f", 600), ("root/g", 5_000), ("root/h/f", 400)]);
    let f = id(&mut names, "f");
    let rows =
        Comparison::new(&names, (&before, &after), &Scale::Runs, Measure::Exclusive, Some).unwrap().rows;
    let [first, rest @ ..] = rows.as_slice() else { panic!("no rows") };
    assert_eq!((first.key, first.before.exclusive, first.after.exclusive), (f, 500, 1_000));
    assert_eq!((first.delta, first.delta_ns, first.significant), (500.0, (500 * MS) as f64, true));
    assert!(first.bounds.low > 0.7 && first.bounds.high < 1.4, "{:?}", first.bounds);
    assert!(rest.iter().all(|row| !row.significant));
    // Who called it has more below it.
    let rows =
        Comparison::new(&names, (&before, &after), &Scale::Runs, Measure::Inclusive, Some).unwrap().rows;
    let grown: Vec<&str> = rows
        .iter()
        .filter(|row| row.significant)
        .map(|row| names.get(row.key).unwrap().label.as_str())
        .collect();
    assert_eq!(grown, ["app!f", "app!root", "app!h"]);
}

#[test]
fn scales() {
    let mut names = Names::default();
    let mut before = side(&mut names, &[("root/f", 100), ("root/work", 200)]);
    let after = side(&mut names, &[("root/f", 300), ("root/work", 600)]);
    before.runs[0].seconds = Some(5.0);
    for (scale, factor) in [
        (Scale::Runs, 1.0),
        (Scale::Samples, 3.0),
        (Scale::Time, 2.0),
        (Scale::Function(Matcher::parse("app!work").unwrap()), 3.0),
    ] {
        let is = scale.factor(&names, (&before, &after)).unwrap();
        assert_eq!((is.samples, is.time), (factor, factor), "{scale:?}");
    }
    let missing = Scale::Function(Matcher::parse("nothing").unwrap());
    let error = missing.factor(&names, (&before, &after)).unwrap_err();
    assert_eq!(error.to_string(), "no function matches nothing on both sides");
    before.runs[0].seconds = None;
    assert!(Scale::Time.factor(&names, (&before, &after)).is_err());
    assert!(Scale::Samples.factor(&names, (&before, &Side::default())).is_err());
    let row = compared(Measure::Exclusive, &Scale::Samples, (1_000, 100), (2_000, 200));
    assert_eq!((row.delta, row.significant), (0.0, false));
    // Two runs on one side are as much work as one on the other, twice.
    let twice = Side { runs: vec![after.runs[0].clone(), after.runs[0].clone()] };
    assert_eq!(Scale::Runs.factor(&names, (&after, &twice)).unwrap().time, 2.0);
}

/// Samples that fall on 200 functions as they like, 30,000 of them: two halves of one steady program.
fn halves(luck: &mut Luck, names: &mut Names) -> [Side; 2] {
    let functions: Vec<String> = (0..200).map(|number| format!("root/f{number}")).collect();
    let mut counts = [vec![0_i64; 200], vec![0_i64; 200]];
    for _ in 0..30_000 {
        // The first ones have the most.
        let function = luck.next(200) * luck.next(200) / 200;
        counts[luck.next(2)][function] += 1;
    }
    counts.map(|counts| {
        let stacks: Vec<(&str, i64)> = functions.iter().map(String::as_str).zip(counts).collect();
        side(names, &stacks)
    })
}

#[test]
fn halves_of_a_steady_program_differ_by_noise() {
    let mut luck = Luck(7);
    let mut changed = 0;
    for _ in 0..100 {
        let mut names = Names::default();
        let [one, other] = halves(&mut luck, &mut names);
        let rows =
            Comparison::new(&names, (&one, &other), &Scale::Runs, Measure::Exclusive, Some).unwrap().rows;
        changed += usize::from(rows.iter().any(|row| row.significant));
    }
    // One in a hundred may by chance.
    assert!(changed <= 3, "{changed} of 100 show a change");
}

/// One side was recorded ten times as long as the other.
#[test]
fn recordings_of_different_lengths_differ_by_noise() {
    let mut luck = Luck(11);
    let mut changed = 0;
    for _ in 0..100 {
        let mut names = Names::default();
        let functions: Vec<String> = (0..200).map(|number| format!("root/f{number}")).collect();
        let mut counts = [vec![0_i64; 200], vec![0_i64; 200]];
        for _ in 0..33_000 {
            counts[usize::from(luck.next(11) > 0)][luck.next(200) * luck.next(200) / 200] += 1;
        }
        let [short, long] = counts.map(|counts| {
            let stacks: Vec<(&str, i64)> = functions.iter().map(String::as_str).zip(counts).collect();
            side(&mut names, &stacks)
        });
        for sides in [(&short, &long), (&long, &short)] {
            let rows =
                Comparison::new(&names, sides, &Scale::Samples, Measure::Exclusive, Some).unwrap().rows;
            changed += usize::from(rows.iter().any(|row| row.significant));
        }
    }
    assert!(changed <= 6, "{changed} of 200 show a change");
}

#[test]
fn runs_of_one_side_show_what_is_noise() {
    let mut names = Names::default();
    let mut runs = |counts: &[i64]| Side {
        runs: counts.iter().map(|count| run(&mut names, &[("root/f", *count), ("root", 1_000)])).collect(),
    };
    let (calm, wild) = (runs(&[1_000, 1_010, 990]), runs(&[600, 1_000, 1_400]));
    let (more, as_wild) = (runs(&[1_300, 1_290, 1_310]), runs(&[900, 1_300, 1_700]));
    let f = id(&mut names, "f");
    let changed = |before: &Side, after: &Side| {
        let rows =
            Comparison::new(&names, (before, after), &Scale::Runs, Measure::Exclusive, Some).unwrap().rows;
        rows.into_iter().find(|row| row.key == f).unwrap()
    };
    assert!(changed(&calm, &more).significant);
    let noise = changed(&wild, &as_wild);
    assert!(!noise.significant && noise.dispersion.value > 50.0, "{noise:?}");
    assert!(noise.bounds.low < 0.0 && changed(&calm, &more).bounds.low > 0.1);
}

/// What becomes of a condition if `Orders.Load` has so many samples before and after, and all else stays: with a part of the
/// samples, as many times fewer.
fn outcome(text: &str, load: (i64, i64), part: i64) -> (Verdict, f64, Vec<String>, Vec<String>) {
    let mut names = Names::default();
    let mut program = |load: i64| {
        let stacks = [("Main/Submit/Orders.Load", load), ("Main/Orders.Save", 10_000), ("Main", 80_000)];
        side(&mut names, &stacks.map(|(stack, samples)| (stack, samples / part)))
    };
    let (before, after) = (program(load.0), program(load.1));
    let outcome = Condition::parse(text).unwrap().check(&names, (&before, &after), &Scale::Runs).unwrap();
    let labels = |rows: &[Change]| {
        rows.iter().map(|row| names.get(row.key).unwrap().label.clone()).collect::<Vec<_>>()
    };
    (outcome.verdict, outcome.growth, labels(&outcome.functions), labels(&outcome.callers))
}

#[test]
fn a_build_refuses_what_got_slower() {
    let slower = (20_000, 22_000);
    let (verdict, growth, functions, callers) = outcome("Orders.Load: +5%", slower, 1);
    assert_eq!((verdict, growth), (Verdict::Failed, 0.1));
    assert_eq!((functions, callers), (vec!["app!Orders.Load".to_owned()], vec!["app!Submit".to_owned()]));
    for (text, verdict) in [
        ("Orders.Load: +15%", Verdict::Passed),
        ("Orders.*: +5%", Verdict::Failed),
        ("total: +5%", Verdict::Passed),
        ("Orders.Load: +1pp", Verdict::Failed),
        ("Nothing: +5%", Verdict::NotFound),
    ] {
        assert_eq!(outcome(text, slower, 1).0, verdict, "{text}");
    }
    // The same program again; and with a tenth of the samples, which decide nothing, unless it is plain.
    assert_eq!(outcome("Orders.Load: +5%", (20_000, 20_000), 1).0, Verdict::Passed);
    let (verdict, ..) = outcome("Orders.Load: +5%", slower, 10);
    let Verdict::TooLittle(Needed::Samples(needed)) = verdict else { panic!("{verdict:?}") };
    assert!((5_000..6_000).contains(&needed), "{needed}");
    assert_eq!(outcome("Orders.Load: +5%", (20_000, 40_000), 10).0, Verdict::Failed);
}

/// A run of `Orders.Load`, whose runs differ by so many samples, between others.
fn varying(names: &mut Names, loads: &[i64]) -> Side {
    let run = |load: &i64| run(names, &[("Main/Orders.Load", *load), ("Main", 90_000)]);
    Side { runs: loads.iter().map(run).collect() }
}

#[test]
fn a_gate_asks_for_runs_where_samples_do_not_help() {
    let condition = Condition::parse("Orders.Load: +5%").unwrap();
    let verdict = |before: &[i64], after: &[i64]| {
        let mut names = Names::default();
        let (before, after) = (varying(&mut names, before), varying(&mut names, after));
        condition.check(&names, (&before, &after), &Scale::Runs).unwrap().verdict
    };
    assert_eq!(
        verdict(&[18_000, 20_000, 22_000], &[19_000, 21_000, 23_000]),
        Verdict::TooLittle(Needed::Runs)
    );
    // Two runs of each side that agree by chance alone prove less than one with all their samples.
    assert_eq!(verdict(&[10_000, 10_000], &[10_300, 10_300]), Verdict::TooLittle(Needed::Runs));
    assert_eq!(verdict(&[20_000], &[20_100]), Verdict::Passed);
    assert_eq!(verdict(&[20_000; 5], &[20_100; 5]), Verdict::Passed);
    assert_eq!(verdict(&[20_000, 20_100, 19_900], &[24_000, 24_100, 23_900]), Verdict::Failed);
}

/// Every function differs from run to run by a share of its own, around 3 %, and by chance.
fn runs_of_a_program(luck: &mut Luck, names: &mut Names, runs: usize, slower: f64) -> Side {
    let mut one = |luck: &mut Luck| {
        let stacks: Vec<(String, i64)> = (0..200_usize)
            .map(|function| {
                let mean = if function == 50 { slower } else { 1.0 } * 40_000.0 / (20 + function) as f64;
                let share = 0.01 * (1 + function % 6) as f64;
                // About normal: the sum of twelve.
                let normal =
                    |luck: &mut Luck| (0..12).map(|_| luck.next(10_000) as f64 / 1e4).sum::<f64>() - 6.0;
                let mean = mean * (1.0 + share * normal(luck));
                (format!("root/f{function}"), (mean + mean.sqrt() * normal(luck)).round() as i64)
            })
            .collect();
        let stacks: Vec<(&str, i64)> =
            stacks.iter().map(|(stack, samples)| (stack.as_str(), *samples)).collect();
        run(names, &stacks)
    };
    Side { runs: (0..runs).map(|_| one(luck)).collect() }
}

/// With few runs of each side, rows show a change only if there is one, and then they do.
#[test]
fn few_runs_of_a_program_differ_by_noise() {
    let mut luck = Luck(13);
    for runs in [2, 3, 5] {
        let (mut changed, mut seen) = (0, 0);
        for _ in 0..30 {
            let mut names = Names::default();
            let before = runs_of_a_program(&mut luck, &mut names, runs, 1.0);
            let after = runs_of_a_program(&mut luck, &mut names, runs, 1.6);
            let slower = id(&mut names, "f50");
            let rows = Comparison::new(&names, (&before, &after), &Scale::Runs, Measure::Exclusive, Some)
                .unwrap()
                .rows;
            seen += usize::from(rows.iter().any(|row| row.significant && row.key == slower));
            changed += usize::from(rows.iter().any(|row| row.significant && row.key != slower));
        }
        assert!(changed <= 2 && seen >= 25, "{runs} runs: {changed} false, {seen} of 30 seen");
    }
}

#[test]
fn what_sets_the_scale_is_noise_too() {
    let mut names = Names::default();
    let before = side(&mut names, &[("root/unit", 20), ("root/f", 10_000)]);
    let after = side(&mut names, &[("root/unit", 16), ("root/f", 10_000)]);
    let f = id(&mut names, "f");
    let row = |scale: &Scale| {
        let rows = Comparison::new(&names, (&before, &after), scale, Measure::Exclusive, Some).unwrap().rows;
        rows.into_iter().find(|row| row.key == f).unwrap()
    };
    let by_unit = Scale::Function(Matcher::parse("unit").unwrap());
    let change = row(&by_unit);
    assert!((change.delta - 2_000.0).abs() < 1e-6 && !change.significant, "{change:?}");
    assert!(change.bounds.low < -0.4 && change.bounds.high > 1.5, "{change:?}");
    let condition = Condition::parse("f: +5%").unwrap();
    let verdict = condition.check(&names, (&before, &after), &by_unit).unwrap().verdict;
    assert_eq!(verdict, Verdict::TooLittle(Needed::Scale));
}

/// One side has four times as many samples, each of a quarter of the time.
#[test]
fn samples_count_by_their_interval() {
    let mut names = Names::default();
    let coarse = side(&mut names, &[("root/f", 1_000), ("root/g", 500)]);
    let fine = |names: &mut Names, f: i64| {
        let (root, f_id, g_id) = (id(names, "root"), id(names, "f"), id(names, "g"));
        let step = |parent, name, samples: i64| Step { parent, name, samples, ns: samples * MS / 4 };
        let steps = [step(None, root, 0), step(Some(0), f_id, f), step(Some(0), g_id, 2_000)];
        Side { runs: vec![Run::new(steps, Some(10.0))] }
    };
    let same = fine(&mut names, 4_000);
    let unit = Scale::Function(Matcher::parse("g").unwrap());
    for scale in [Scale::Runs, Scale::Time, Scale::Samples, unit] {
        for (before, after, samples) in [(&coarse, &same, 4.0), (&same, &coarse, 0.25)] {
            let same = Comparison::new(&names, (before, after), &scale, Measure::Exclusive, Some).unwrap();
            assert_eq!((same.factor.samples, same.factor.time), (samples, 1.0), "{scale:?}");
            assert!(same.rows.iter().all(|row| row.delta == 0.0 && row.delta_ns == 0.0 && !row.significant));
        }
    }
    let more = fine(&mut names, 8_000);
    let rows =
        Comparison::new(&names, (&coarse, &more), &Scale::Runs, Measure::Exclusive, Some).unwrap().rows;
    assert!(rows[0].significant && rows[0].delta_ns == (1_000 * MS) as f64, "{:?}", rows[0]);
    let condition = Condition::parse("total: +10%").unwrap();
    assert_eq!(condition.check(&names, (&coarse, &same), &Scale::Runs).unwrap().verdict, Verdict::Passed);
}

/// The label of an overload that went does not hide the ones that stayed.
#[test]
fn an_exact_name_counts_if_both_sides_have_it() {
    let mut names = Names::default();
    let mut overload = |key: &str, label: &str| {
        let (module, category) = ("app".to_owned(), Category::Native);
        names.number(Name { key: key.to_owned(), label: label.to_owned(), module, category })
    };
    let gone = overload("app!Load()", "app!Load");
    let stays = overload("app!Load(int)", "app!X.Load");
    let side_of = |of: &[(NameId, i64)]| {
        let step = |(name, samples): &(NameId, i64)| Step {
            parent: None,
            name: *name,
            samples: *samples,
            ns: *samples * MS,
        };
        Side { runs: vec![Run::new(of.iter().map(step), None)] }
    };
    let both = side_of(&[(gone, 10), (stays, 100)]);
    let one = side_of(&[(stays, 100)]);
    let wanted = Matcher::parse("app!Load").unwrap();
    assert_eq!(names.matching(&wanted, (&both, &both)).into_iter().collect::<Vec<_>>(), [gone]);
    let wanted = Matcher::parse("*Load").unwrap();
    assert_eq!(names.matching(&wanted, (&both, &one)).len(), 2);
}

/// The tree of changes adds up, in nodes and in lines.
#[test]
fn the_tree_of_changes_leads_to_what_changed() {
    let mut names = Names::default();
    let before = side(&mut names, &[("a/b/f", 1_000), ("a/b/g", 500), ("a/c", 300), ("d", 2_000)]);
    let after = side(&mut names, &[("a/b/f", 2_000), ("a/b/g", 505), ("a/c", 100), ("d", 2_010), ("e", 3)]);
    let together = Together::new(&names, &before, &after);
    let nodes = Comparison::of_nodes(&names, (&before, &after), &Scale::Runs, &together).unwrap();
    let tree = Tree::new(&names, &together, &nodes, false, usize::MAX);
    let shown: Vec<(&str, Option<usize>, f64)> =
        tree.nodes.iter().map(|node| (node.row.name.as_str(), node.parent, node.row.delta)).collect();
    assert_eq!(
        shown,
        [
            ("app!a", None, 805.0),
            ("app!b", Some(0), 1_005.0),
            ("app!f", Some(1), 1_000.0),
            ("app!c", Some(0), -200.0)
        ]
    );
    assert_eq!((tree.left_out, tree.noise, tree.nodes[1].left_out), (0, 3, 1));
    let first = Tree::new(&names, &together, &nodes, false, 1);
    assert_eq!((first.nodes.len(), first.left_out, first.nodes[0].left_out), (3, 1, 1));
    let all = Tree::new(&names, &together, &nodes, true, usize::MAX);
    assert_eq!((all.nodes.len(), all.noise), (7, 0));
    for (place, node) in all.nodes.iter().enumerate() {
        let below = all.nodes.iter().filter(|child| child.parent == Some(place));
        let below: f64 = below.map(|child| child.row.delta_ns).sum();
        assert_eq!(node.row.delta_ns, node.own_ns + node.left_out_ns + below, "{node:?}");
    }
    let mut text = Vec::new();
    tree.write(&mut text, None).unwrap();
    let text = console::strip_ansi_codes(std::str::from_utf8(&text).unwrap()).into_owned();
    assert_eq!(
        text.lines().map(str::trim_end).collect::<Vec<_>>(),
        [
            "change ms   change  before ms  after ms  call tree",
            "   +805.0   +44.7%    1,800.0   2,605.0  app!a",
            " +1,005.0   +67.0%    1,500.0   2,505.0  ├ app!b",
            " +1,000.0  +100.0%    1,000.0   2,000.0  │ ↓ app!f",
            "   -200.0   -66.7%      300.0     100.0  └ app!c",
            "… 3 more nodes changed within noise",
        ]
    );
}
