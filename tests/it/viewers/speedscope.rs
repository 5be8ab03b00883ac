//! speedscope files, read by a reader of JSON.

use serde_json::{Value, json};

use crate::support::viewed::{SHOWN, converted, ten_samples};

/// The profiles of a file: name, stacks by the names of their frames, weights.
fn profiles(file: &Value) -> Vec<(String, Vec<Vec<String>>, Vec<i64>)> {
    let frames = file["shared"]["frames"].as_array().unwrap();
    let name = |frame: &Value| {
        let index = usize::try_from(frame.as_u64().unwrap()).unwrap();
        frames[index]["name"].as_str().unwrap().to_owned()
    };
    let stack = |stack: &Value| stack.as_array().unwrap().iter().map(name).collect();
    let profile = |profile: &Value| {
        let weights: Vec<i64> =
            profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_i64().unwrap()).collect();
        assert_eq!(profile["type"], "sampled");
        assert_eq!(profile["unit"], "nanoseconds");
        assert_eq!(profile["startValue"], 0);
        assert_eq!(profile["endValue"], weights.iter().sum::<i64>());
        let samples: Vec<Vec<String>> = profile["samples"].as_array().unwrap().iter().map(stack).collect();
        assert_eq!(samples.len(), weights.len());
        (profile["name"].as_str().unwrap().to_owned(), samples, weights)
    };
    file["profiles"].as_array().unwrap().iter().map(profile).collect()
}

#[test]
fn all_threads_come_first_and_then_each() {
    ten_samples(10_000, |recording| {
        let file = converted(recording, "speedscope", &[]);
        assert_eq!(file, converted(recording, "speedscope", &[]));
        let file: Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        assert_eq!(file["name"], "ten.etl");
        let (a, b) = ("a.exe (40)".to_owned(), "b.exe (50)".to_owned());
        let (ten, twenty) = (format!("{SHOWN}!0x10"), format!("{SHOWN}!0x20"));
        let seven = "0x7000".to_owned();
        const MS: i64 = 1_000_000;
        assert_eq!(
            profiles(&file),
            [
                (
                    "All threads".to_owned(),
                    vec![
                        vec![b, seven.clone()],
                        vec![a.clone(), twenty.clone()],
                        vec![a, twenty.clone(), ten.clone()]
                    ],
                    vec![6 * MS, 2 * MS, 2 * MS]
                ),
                ("b.exe (50) / thread 51".to_owned(), vec![vec![seven]], vec![6 * MS]),
                (
                    "a.exe (40) / thread 41".to_owned(),
                    vec![vec![twenty.clone(), ten], vec![twenty.clone()]],
                    vec![2 * MS, MS]
                ),
                ("a.exe (40) / thread 42 wörker\"".to_owned(), vec![vec![twenty]], vec![MS]),
            ]
        );
    });
}

#[test]
fn a_single_process_is_no_frame() {
    ten_samples(10_000, |recording| {
        let file = converted(recording, "speedscope", &["--pid", "50"]);
        let file: Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(file["shared"]["frames"], json!([{"name": "0x7000"}]));
    });
}

/// The longest interval that a recording can name.
#[test]
fn long_intervals_add_up() {
    ten_samples(u32::MAX, |recording| {
        let file: Value = serde_json::from_slice(&converted(recording, "speedscope", &[])).unwrap();
        assert_eq!(file["profiles"][0]["endValue"], 10 * 100 * i64::from(u32::MAX));
    });
}
