//! The demo in the formats of others: what its sources say is inlined, and what other formats count.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;
use serde_json::Value;

use super::otlp::stack;
use super::pprof::Profile;
use crate::support::command::etwprof;

/// Samples by stack, root first.
type Stacks = BTreeMap<Vec<String>, i64>;

fn demo(format: &str) -> Vec<u8> {
    demo_with(format, &[])
}

fn demo_with(format: &str, args: &[&str]) -> Vec<u8> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join("demo.etl");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result");
    let words = ["-f", format, "--group-by", "none", "-o"].map(OsStr::new);
    let words = [OsStr::new("convert"), demo.as_os_str()].into_iter().chain(words);
    let args = args.iter().map(OsStr::new);
    etwprof(words.chain([file.as_os_str()]).chain(args)).success();
    fs::read(file).unwrap()
}

fn folded() -> Stacks {
    let text = String::from_utf8(demo("folded")).unwrap();
    let stack = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.split(';').map(str::to_owned).collect(), count.parse().unwrap())
    };
    text.lines().map(stack).collect()
}

fn add(all: &mut Stacks, leaf_first: Vec<Vec<&str>>, samples: i64) {
    let mut frames: Vec<String> = leaf_first.concat().into_iter().map(str::to_owned).collect();
    frames.reverse();
    *all.entry(frames).or_default() += samples;
}

/// tests/it/demo/sources.txt has what is inlined in what.
fn check_chains(chains: &BTreeSet<Vec<&str>>) {
    for chain in [
        vec!["indexer!CharClass::of", "indexer!Tokenizer::is_word", "indexer!Tokenizer::next_token"],
        vec!["indexer!fold_case", "indexer!Tokenizer::append", "indexer!Tokenizer::next_token"],
        vec!["indexer!fold_case", "indexer!Glob::match_here"],
        vec!["indexer!utf8::is_continuation", "indexer!utf8::decode"],
    ] {
        assert!(chains.contains(&chain), "{chain:?} in {chains:?}");
    }
    // Nothing is inlined in what calls it.
    assert!(chains.iter().all(|chain| chain.len() == 1 || !chain.contains(&"indexer!Worker::run")));
}

#[test]
fn pprof_has_the_stacks_of_the_demo() {
    let file = demo("pprof");
    let profile = Profile::read(&file);
    let (mut all, mut chains) = (Stacks::new(), BTreeSet::new());
    for sample in &profile.sample {
        let stack = profile.stack(sample);
        chains.extend(stack.iter().cloned());
        // Each sample of the demo stands for 1 ms.
        assert_eq!(sample.value[1], sample.value[0] * 1_000_000);
        add(&mut all, stack, sample.value[0]);
    }
    assert_eq!(all, folded());
    check_chains(&chains);
    // The program of the busiest process.
    assert_eq!(profile.text(profile.mapping[0].filename), r"C:\Services\Orders\orders.exe");
    let id = profile.text(profile.mapping[0].build_id);
    assert!(id.len() >= 33 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let is_word = |line: &super::pprof::Line| {
        let function = profile.function.iter().find(|function| function.id == line.function_id).unwrap();
        profile.text(function.name) == "indexer!Tokenizer::is_word"
            && profile.text(function.filename).ends_with("tokenizer.h")
            && line.line >= 40
    };
    assert!(profile.location.iter().flat_map(|location| &location.line).any(is_word));
    // Where the code of an image lies; what .NET compiled at run time is in none.
    for location in &profile.location {
        let image = profile.mapping.iter().find(|image| image.id == location.mapping_id);
        if let Some(image) = image {
            assert!(0 < location.address && location.address < image.memory_limit, "{location:?}");
        }
    }
}

/// Patterns make one function of its lines: it has none then, rather than any.
#[test]
fn pprof_has_no_lines_of_what_patterns_merge() {
    let profile = Profile::read(&demo_with("pprof", &["--fold-pats", "afd!"]));
    let lines: Vec<_> = profile.location.iter().flat_map(|location| &location.line).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.line == 0));
}

#[test]
fn otlp_has_the_stacks_of_the_demo() {
    let file = demo("otlp");
    let data = ProfilesData::decode(file.as_slice()).unwrap();
    let tables = data.dictionary.unwrap();
    let (mut all, mut chains) = (Stacks::new(), BTreeSet::new());
    for resource in &data.resource_profiles {
        for sample in &resource.scope_profiles[0].profiles[0].samples {
            let stack = stack(&tables, sample);
            chains.extend(stack.iter().cloned());
            add(&mut all, stack, i64::try_from(sample.timestamps_unix_nano.len()).unwrap());
        }
    }
    assert_eq!(all, folded());
    check_chains(&chains);
}

#[test]
fn speedscope_has_the_stacks_of_the_demo() {
    let file = demo("speedscope");
    let file: Value = serde_json::from_slice(&file).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let [together, threads @ ..] = file["profiles"].as_array().unwrap().as_slice() else { panic!() };
    let stacks = |profile: &Value, without: usize| {
        let mut all = Stacks::new();
        let weights = profile["weights"].as_array().unwrap();
        for (stack, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
            let names = stack.as_array().unwrap().iter().map(|frame| &frames[number(frame)]["name"]);
            let names = names.skip(without).map(|name| name.as_str().unwrap().to_owned());
            *all.entry(names.collect()).or_default() += weight.as_i64().unwrap() / 1_000_000;
        }
        all
    };
    // The name of a process stands above the code.
    assert_eq!(stacks(together, 1), folded());
    let mut each = Stacks::new();
    for profile in threads {
        for (stack, samples) in stacks(profile, 0) {
            *each.entry(stack).or_default() += samples;
        }
    }
    assert_eq!(each, folded());
}
