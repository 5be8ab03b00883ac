//! OpenTelemetry profiles.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::profiles::v1development::{ProfilesData, ProfilesDictionary};
use prost::Message;

use crate::support::viewed::{SHOWN, converted, ten_samples};

fn at<T>(table: &[T], index: i32) -> &T {
    &table[usize::try_from(index).unwrap()]
}

fn shown(value: &Option<AnyValue>) -> String {
    match value.as_ref().and_then(|value| value.value.clone()) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::ArrayValue(all)) => {
            all.values.into_iter().map(|value| shown(&Some(value)) + ";").collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The functions of a stack, the leaf first; what is inlined together in brackets.
pub fn stack<'t>(tables: &'t ProfilesDictionary, sample: &otlp::Sample) -> Vec<Vec<&'t str>> {
    let name = |line: &otlp::Line| {
        let function = at(&tables.function_table, line.function_index);
        at(&tables.string_table, function.name_strindex).as_str()
    };
    let stack = at(&tables.stack_table, sample.stack_index);
    let lines = |index: &i32| at(&tables.location_table, *index).lines.iter().map(name).collect();
    stack.location_indices.iter().map(lines).collect()
}

fn attributes<'t>(tables: &'t ProfilesDictionary, indices: &[i32]) -> BTreeMap<&'t str, String> {
    let attribute = |index: &i32| {
        let attribute = at(&tables.attribute_table, *index);
        (at(&tables.string_table, attribute.key_strindex).as_str(), shown(&attribute.value))
    };
    indices.iter().map(attribute).collect()
}

#[test]
fn samples_have_their_times_and_are_under_their_process() {
    ten_samples(10_000, |recording| {
        let file = converted(recording, "otlp", &[]);
        assert_eq!(file, converted(recording, "otlp", &[]));
        let data = ProfilesData::decode(file.as_slice()).unwrap();
        let tables = data.dictionary.unwrap();
        assert_eq!(tables.string_table[0], "");
        assert_eq!(tables.mapping_table[0], otlp::Mapping::default());
        assert_eq!(tables.location_table[0], otlp::Location::default());
        assert_eq!(tables.function_table[0], otlp::Function::default());
        assert_eq!(tables.link_table, [otlp::Link::default()]);
        assert_eq!(tables.attribute_table[0], otlp::KeyValueAndUnit::default());
        assert_eq!(tables.stack_table[0], otlp::Stack::default());
        let image = at(&tables.string_table, tables.mapping_table[1].filename_strindex);
        assert!(image.ends_with(&format!("{SHOWN}.dll")), "{image}");

        let mut start = None;
        let mut found = Vec::new();
        for resource in &data.resource_profiles {
            let [scope] = resource.scope_profiles.as_slice() else { panic!("{resource:?}") };
            assert_eq!(scope.scope.as_ref().unwrap().name, "etwprof");
            let [profile] = scope.profiles.as_slice() else { panic!("{scope:?}") };
            let kind = profile.sample_type.unwrap();
            assert_eq!(at(&tables.string_table, kind.type_strindex), "cpu");
            assert_eq!(at(&tables.string_table, kind.unit_strindex), "nanoseconds");
            assert_eq!(profile.period, 1_000_000);
            let remarks = &attributes(&tables, &profile.attribute_indices)["pprof.profile.comment"];
            assert!(remarks.contains("samples: 10 of 10 kept;"), "{remarks}");
            let first = *start.get_or_insert(profile.time_unix_nano);
            assert_eq!(first, profile.time_unix_nano);
            let process: BTreeMap<&str, String> = resource
                .resource
                .as_ref()
                .unwrap()
                .attributes
                .iter()
                .map(|attribute| (attribute.key.as_str(), shown(&attribute.value)))
                .collect();
            assert_eq!(process["service.name"], process["process.executable.name"]);
            for sample in &profile.samples {
                assert_eq!(sample.values, vec![1_000_000; sample.timestamps_unix_nano.len()]);
                let of_thread = attributes(&tables, &sample.attribute_indices);
                let since = |time: &u64| {
                    assert!(*time < profile.time_unix_nano + profile.duration_nano);
                    (time - first) / 1_000_000
                };
                found.push((
                    process["process.pid"].clone(),
                    of_thread["thread.id"].clone(),
                    stack(&tables, sample).concat().join(" "),
                    sample.timestamps_unix_nano.iter().map(since).collect::<Vec<u64>>(),
                ));
            }
        }
        found.sort();
        let (ten, twenty) = (format!("{SHOWN}!0x10"), format!("{SHOWN}!0x20"));
        let expected = [
            ("40", "41", format!("{ten} {twenty}"), vec![0, 2]),
            ("40", "41", twenty.clone(), vec![4]),
            ("40", "42", twenty, vec![6]),
            ("50", "51", "0x7000".to_owned(), vec![1, 3, 5, 7, 8, 9]),
        ];
        let mut expected = expected.map(|(pid, tid, stack, times)| (pid.into(), tid.into(), stack, times));
        expected.sort();
        assert_eq!(found, expected);
    });
}
