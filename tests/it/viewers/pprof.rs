//! pprof files, read by a second definition of their messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use prost::Message;

use crate::support::shown::Shown;
use crate::support::viewed::{SHOWN, converted, ten_samples};

/// Of google/pprof's proto/profile.proto what is read here.
#[derive(Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

#[derive(Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
    #[prost(int64, tag = "3")]
    pub num: i64,
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

#[derive(Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
}

#[derive(Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}

impl Profile {
    pub fn read(file: &[u8]) -> Profile {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        let profile = Profile::decode(bytes.as_slice()).unwrap();
        assert_eq!(profile.string_table[0], "");
        for ids in [
            profile.location.iter().map(|location| location.id).collect::<Vec<u64>>(),
            profile.mapping.iter().map(|mapping| mapping.id).collect(),
            profile.function.iter().map(|function| function.id).collect(),
        ] {
            let different: BTreeSet<u64> = ids.iter().copied().collect();
            assert!(different.len() == ids.len() && !different.contains(&0));
        }
        profile
    }

    pub fn text(&self, index: i64) -> &str {
        &self.string_table[usize::try_from(index).unwrap()]
    }

    /// The functions of a stack, the leaf first; what is inlined together in brackets.
    pub fn stack(&self, sample: &Sample) -> Vec<Vec<&str>> {
        let location = |id: &u64| self.location.iter().find(|location| location.id == *id).unwrap();
        let function = |line: &Line| {
            let function = self.function.iter().find(|function| function.id == line.function_id).unwrap();
            self.text(function.name)
        };
        let lines = |id| location(id).line.iter().map(function).collect();
        sample.location_id.iter().map(lines).collect()
    }

    /// Texts and numbers with units.
    pub fn labels(&self, sample: &Sample) -> BTreeMap<&str, String> {
        let label = |label: &Label| match label.str {
            0 => format!("{} {}", label.num, self.text(label.num_unit)),
            text => self.text(text).to_owned(),
        };
        sample.label.iter().map(|each| (self.text(each.key), label(each))).collect()
    }
}

#[test]
fn samples_with_one_stack_and_thread_are_one() {
    ten_samples(10_000, |recording| {
        let file = converted(recording, "pprof", &[]);
        assert_eq!(file, converted(recording, "pprof", &[]));
        let profile = Profile::read(&file);
        let types =
            profile.sample_type.iter().map(|kind| (profile.text(kind.r#type), profile.text(kind.unit)));
        assert_eq!(types.collect::<Vec<_>>(), [("samples", "count"), ("cpu", "nanoseconds")]);
        assert_eq!(profile.text(profile.default_sample_type), "cpu");
        assert_eq!(profile.period, 1_000_000);
        assert_eq!(profile.duration_nanos, 9_000_000);
        let comments: Vec<&str> = profile.comment.iter().map(|comment| profile.text(*comment)).collect();
        assert_eq!(comments[1..], ["recording: ten.etl", "samples: 10 of 10 kept", "lost: nothing"]);

        let (ten, twenty) = (format!("{SHOWN}!0x10"), format!("{SHOWN}!0x20"));
        let a = |thread: &str, tid: &str| {
            [
                ("category", "native"),
                ("pid", "40 id"),
                ("process", "a.exe (40)"),
                ("thread", thread),
                ("tid", tid),
            ]
            .map(|(key, value)| (key, value.to_owned()))
            .into()
        };
        let b = [("pid", "50 id"), ("process", "b.exe (50)"), ("thread", "thread 51"), ("tid", "51 id")];
        let b = b.into_iter().chain([("category", "unresolved")]);
        let b: BTreeMap<&str, String> = b.map(|(key, value)| (key, value.to_owned())).collect();
        let mut samples: Vec<_> = profile
            .sample
            .iter()
            .map(|sample| (sample.value.clone(), profile.stack(sample), profile.labels(sample)))
            .collect();
        samples.sort();
        let mut expected = vec![
            (vec![6, 6_000_000], vec![vec!["0x7000"]], b),
            (vec![2, 2_000_000], vec![vec![ten.as_str()], vec![&twenty]], a("thread 41", "41 id")),
            (vec![1, 1_000_000], vec![vec![&twenty]], a("thread 41", "41 id")),
            (vec![1, 1_000_000], vec![vec![&twenty]], a("thread 42 wörker\"", "42 id")),
        ];
        expected.sort();
        assert_eq!(samples, expected);

        let [image] = profile.mapping.as_slice() else { panic!("{:?}", profile.mapping) };
        assert_eq!((image.memory_start, image.memory_limit, image.has_functions), (0, 0x1000, true));
        assert!(profile.text(image.filename).ends_with(&format!("{SHOWN}.dll")));
        let mut addresses: Vec<(u64, bool)> = profile
            .location
            .iter()
            .map(|location| (location.address, location.mapping_id == image.id))
            .collect();
        addresses.sort_unstable();
        assert_eq!(addresses, [(0x10, true), (0x20, true), (0x7000, false)]);
    });
}

/// A stack that a recording tells once and shows in every thread is written again for each of them, which few bytes could
/// ask for without an end. No sample is lost by it.
#[test]
fn what_is_written_stays_in_proportion_to_the_recording() {
    let shown = Shown { processes: 1, threads: 3_000, depth: 4_000, leaves: 0, tops: 0, samples: 3_000 };
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("shown.etl");
    std::fs::write(&recording, shown.file().finish()).unwrap();
    let frames = |args: &[&str]| {
        let profile = Profile::read(&converted(&recording, "pprof", args));
        assert_eq!(profile.sample.iter().map(|sample| sample.value[0]).sum::<i64>(), 3_000);
        let comment = profile.text(*profile.comment.last().unwrap()).to_owned();
        let frames: Vec<usize> = profile.sample.iter().map(|sample| sample.location_id.len()).collect();
        (comment, frames)
    };
    let (comment, cut) = frames(&[]);
    assert!(comment.contains("stacks are cut"), "{comment}");
    assert_eq!((cut[0], cut[2_999]), (4_000, 1));
    let (comment, whole) = frames(&["--no-limit"]);
    assert_eq!(comment, "lost: nothing");
    assert_eq!(whole, [4_000; 3_000]);
}
