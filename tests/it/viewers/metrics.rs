//! Waits in files for viewers: their values are called what they are, and are those of the call tree.

use std::path::Path;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;
use serde_json::Value;

use super::pprof::Profile;
use crate::cli::waits;
use crate::support::viewed::converted;

/// Thread 41 was blocked for 30 ms, with this stack, the leaf first.
const STACK: [&str; 3] = ["0xffff800000000030", "0x1000", "0x2000"];
const NS: i64 = 30_000_000;
const BLOCKED: [&str; 5] = ["--metric", "blocked", "--name", "a.exe", "--raw-names"];

#[test]
fn pprof() {
    let (_folder, recording) = waits::recording();
    let profile = Profile::read(&converted(&recording, "pprof", &BLOCKED));
    let types = profile.sample_type.iter().map(|kind| (profile.text(kind.r#type), profile.text(kind.unit)));
    assert_eq!(types.collect::<Vec<_>>(), [("samples", "count"), ("blocked", "nanoseconds")]);
    assert_eq!(profile.text(profile.default_sample_type), "blocked");
    assert_eq!((profile.period, profile.period_type.is_none()), (0, true), "nothing was sampled");
    let [sample] = profile.sample.as_slice() else { panic!("{}", profile.sample.len()) };
    assert_eq!(sample.value, [1, NS]);
    // From the sample at 5 ms to the end of the wait at 41.
    assert_eq!(profile.duration_nanos, 36_000_000);
    assert_eq!(profile.stack(sample).concat(), STACK);
    let comments: Vec<&str> = profile.comment.iter().map(|comment| profile.text(*comment)).collect();
    assert!(comments.iter().any(|comment| comment.starts_with("waits: 1 of ")), "{comments:?}");
}

#[test]
fn speedscope() {
    let (_folder, recording) = waits::recording();
    let file = converted(&recording, "speedscope", &BLOCKED);
    let file: Value = serde_json::from_slice(&file).unwrap();
    let first = &file["profiles"][0];
    assert_eq!((&first["unit"], &first["endValue"]), (&"nanoseconds".into(), &NS.into()));
    assert_eq!(first["weights"], serde_json::json!([NS]));
    let frames = first["samples"][0].as_array().unwrap().iter();
    let name = |frame: &Value| file["shared"]["frames"][frame.as_u64().unwrap() as usize]["name"].clone();
    assert_eq!(frames.rev().map(name).collect::<Vec<_>>(), STACK);
    // Things without a unit.
    let events = ["--event", "Thread/CSwitch", "--name", "a.exe"];
    let file: Value = serde_json::from_slice(&converted(&recording, "speedscope", &events)).unwrap();
    let first = &file["profiles"][0];
    assert_eq!((&first["unit"], &first["endValue"]), (&"none".into(), &3.into()), "{file}");
}

#[test]
fn opentelemetry() {
    let (_folder, recording) = waits::recording();
    let data = ProfilesData::decode(converted(&recording, "otlp", &BLOCKED).as_slice()).unwrap();
    let tables = data.dictionary.unwrap();
    let profile = &data.resource_profiles[0].scope_profiles[0].profiles[0];
    let kind = profile.sample_type.as_ref().unwrap();
    let text = |index: i32| tables.string_table[index as usize].as_str();
    assert_eq!((text(kind.type_strindex), text(kind.unit_strindex)), ("blocked", "nanoseconds"));
    assert_eq!((profile.period, profile.period_type.is_none()), (0, true));
    let [sample] = profile.samples.as_slice() else { panic!("{}", profile.samples.len()) };
    assert_eq!(sample.values, [NS]);
    assert_eq!(super::otlp::stack(&tables, sample).concat(), STACK);
    let end = profile.time_unix_nano + profile.duration_nano;
    assert!((profile.time_unix_nano..end).contains(&sample.timestamps_unix_nano[0]));
}

fn xml_of(recording: &Path, args: &[&str]) -> String {
    let file = converted(recording, "perfview", args);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(file)).unwrap();
    std::io::read_to_string(zip.by_index(0).unwrap()).unwrap()
}

#[test]
fn perfview() {
    let (_folder, recording) = waits::recording();
    let xml = xml_of(&recording, &BLOCKED);
    let samples: Vec<&str> = xml.lines().filter(|line| line.starts_with("<Sample ")).collect();
    assert_eq!(samples.len(), 1, "{samples:?}");
    assert!(samples[0].ends_with(" Metric=\"30.0000\"/>"), "{samples:?}");
    assert!(xml.contains("<ScalingPolicy>TimeMetric<"), "{xml}");
    let xml = xml_of(&recording, &["--event", "Thread/CSwitch", "--name", "a.exe"]);
    let samples: Vec<&str> = xml.lines().filter(|line| line.starts_with("<Sample ")).collect();
    assert_eq!(samples.len(), 3, "{xml}");
    assert!(samples.iter().all(|sample| sample.ends_with(" Metric=\"1\"/>")), "{xml}");
    assert!(xml.contains("<ScalingPolicy>ScaleToData<"), "{xml}");
}
