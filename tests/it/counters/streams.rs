//! Streams of a .NET runtime: their events, the counters in them, and what hostile ones say.

use etwprof::counters::nettrace::{Nettrace, NettraceError, Value};
use etwprof::counters::runtime::Counted;

use crate::synth::nettrace::{MEAN, SUM, Stream, event, kind, mean, plain_event, sum};

/// All events of a stream: what `of` makes of each.
fn all<T>(
    bytes: &[u8],
    of: impl Fn(&etwprof::counters::nettrace::StreamEvent<'_>) -> T,
) -> Result<Vec<T>, NettraceError> {
    let mut stream = Nettrace::begin(bytes)?;
    let mut found = Vec::new();
    while stream.block(&mut |event| found.push(of(event)))? {}
    Ok(found)
}

fn counted(bytes: &[u8]) -> Vec<(String, String, f64, f64)> {
    let of = |counted: Counted| {
        let Counted { seconds, reading, .. } = counted;
        (reading.counter.to_string(), reading.unit.into_owned(), reading.value.unwrap(), seconds)
    };
    all(bytes, |event| Counted::of(event).map(of)).unwrap().into_iter().flatten().collect()
}

fn kinds() -> [Vec<u8>; 2] {
    [kind(7, "System.Runtime", "EventCounters", MEAN), kind(8, "System.Runtime", "EventCounters", SUM)]
}

fn row(name: &str, unit: &str, value: f64, seconds: f64) -> (String, String, f64, f64) {
    (name.to_owned(), unit.to_owned(), value, seconds)
}

fn stream() -> Stream {
    Stream::begin().kinds(&kinds())
}

#[test]
fn counters_are_means_or_what_was_counted_in_a_second() {
    let heap = event(7, 10, &mean("gc-heap-size", 12.5, 0.5, "MB"));
    let allocated = event(8, 20, &sum("alloc-rate", 3_000.0, 0.5, "B"));
    // The same kind and size as the event before: a header of a byte and a time.
    let same = [&[0, 5], &sum("alloc-rate", 1_000.0, 0.5, "B")[..]].concat();
    let bytes = stream().events("EventBlock", true, &[heap, allocated, same]).end();
    let allocated = |value| row("alloc-rate", "B/s", value, 0.5);
    assert_eq!(
        counted(&bytes),
        [row("gc-heap-size", "MB", 12.5, 0.5), allocated(6_000.0), allocated(2_000.0)]
    );
    // Times are differences, and begin anew in each block.
    let twice = [event(7, 10, &[]), event(7, 20, &[])];
    let bytes = stream().events("EventBlock", true, &twice).events("EventBlock", true, &twice[..1]).end();
    assert_eq!(all(&bytes, |event| event.time).unwrap(), [10, 30, 10]);
}

#[test]
fn headers_that_leave_nothing_out_are_read_too() {
    let events = [
        plain_event(7, 50, &mean("cpu-usage", 3.0, 1.0, "%")),
        plain_event(8, 60, &sum("exception-count", 4.0, 2.0, "")),
    ];
    let bytes = stream().events("EventBlock", false, &events).end();
    assert_eq!(counted(&bytes), [row("cpu-usage", "%", 3.0, 1.0), row("exception-count", "/s", 2.0, 2.0)]);
    assert_eq!(all(&bytes, |event| event.time).unwrap(), [50, 60]);
}

#[test]
fn a_count_over_no_time_is_no_rate() {
    let bytes =
        stream().events("EventBlock", true, &[event(8, 1, &sum("exception-count", 4.0, 0.0, ""))]).end();
    let values = all(&bytes, |event| Counted::of(event).unwrap().reading.value).unwrap();
    assert_eq!(values, [Err(etwprof::counters::NoValue::Time)]);
}

#[test]
fn fields_have_the_types_of_their_description() {
    // The numbers of System.TypeCode, each with bytes and what they are.
    let number = |bytes: &[u8], value| (bytes.to_vec(), Some(Value::Number(value)));
    let fields = [
        (3, number(&[1, 0, 0, 0], 1.0)),
        (5, number(&[0xff], -1.0)),
        (6, number(&[0xff], 255.0)),
        (7, number(&[0xfe, 0xff], -2.0)),
        (8, number(&[0xfe, 0xff], 65_534.0)),
        (9, number(&[0xfd, 0xff, 0xff, 0xff], -3.0)),
        (10, number(&[0xff, 0xff, 0xff, 0xff], 4_294_967_295.0)),
        (11, number(&[0xff; 8], -1.0)),
        (12, number(&[0, 0, 0, 0, 0, 0, 0, 0x80], 9_223_372_036_854_775_808.0)),
        (13, number(&[0, 0, 0x20, 0xc1], -10.0)),
        (14, number(&[0, 0, 0, 0, 0, 0, 0xf8, 0x3f], 1.5)),
        (17, (vec![9; 16], None)),
        (18, (vec![b'a', 0, 0, 0], Some(Value::Text("a".to_owned())))),
    ];
    let names: Vec<String> = fields.iter().map(|(code, _)| format!("field {code}")).collect();
    let described: Vec<_> =
        names.iter().zip(&fields).map(|(name, (code, _))| (name.as_str(), *code)).collect();
    let payload: Vec<u8> = fields.iter().flat_map(|(_, (bytes, _))| bytes.clone()).collect();
    let bytes = Stream::begin()
        .kinds(&[kind(1, "Mine", "Seen", &described)])
        .events("EventBlock", true, &[event(1, 0, &payload), event(1, 0, &payload[..9])])
        .end();
    let of = |event: &etwprof::counters::nettrace::StreamEvent<'_>| {
        let mut values: Vec<_> =
            event.values().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values
    };
    let found = all(&bytes, of).unwrap();
    let mut expected: Vec<_> = names
        .iter()
        .zip(&fields)
        .filter_map(|(name, (_, (_, value)))| Some((name.clone(), value.clone()?)))
        .collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found[0], expected);
    // Cut off inside the fourth whole one.
    assert_eq!(
        found[1].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["field 3", "field 5", "field 6", "field 7"]
    );
}

#[test]
fn other_streams_are_refused_by_name() {
    let error = |bytes: &[u8]| Nettrace::begin(bytes).map(|_| ()).unwrap_err().to_string();
    assert!(error(b"NetTrace\x14\0\0\0!FastSerialization.1").contains("no stream of events"));
    assert!(error(b"Nettrace\0\0\0\0\x06\0\0\0").contains("nettrace version 6"));
    assert!(error(&Stream::of_version(3).end()).contains("nettrace version 3"));
    assert!(error(b"Nettrace\x14").contains("broke off"));
}

#[test]
fn a_stream_that_is_cut_off_or_damaged_is_an_error_and_no_more() {
    let events = [
        event(7, 10, &mean("gc-heap-size", 12.5, 0.5, "MB")),
        event(8, 20, &sum("alloc-rate", 3.0, 0.5, "B")),
    ];
    let bytes = stream().block("StackBlock", &[0; 12]).events("EventBlock", true, &events).end();
    assert_eq!(all(&bytes, |_| ()).unwrap().len(), 2);
    for end in 0..bytes.len() {
        let error = all(&bytes[..end], |_| ()).unwrap_err();
        assert!(matches!(error, NettraceError::Io(_)), "{end}: {error}");
    }
    // Each byte changed in three ways: an answer, and never a panic.
    for place in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= change;
            let _any = all(&damaged, |event| (event.values().len(), Counted::of(event)));
        }
    }
    // A block that says to be larger than any is.
    let huge = [Stream::begin().block("EventBlock", &[]).bytes(), Vec::new()].concat();
    let place = huge.len() - 1 - 4 - (4 - (huge.len() - 1) % 4) % 4;
    let mut huge = huge;
    let at = (0..=place).rev().find(|at| huge[*at..].starts_with(&[0; 4])).unwrap();
    huge[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(all(&huge, |_| ()), Err(NettraceError::Structure { structure: "block", .. })));
    // Objects inside of objects without end.
    let deep =
        [&7_u32.to_le_bytes()[..], &[0, 0], &[5, 0, 0, 0, 0, 0], &[0; 16], &[1, 0, 0, 0].repeat(4_000)]
            .concat();
    let bytes = Stream::begin().kinds(&[deep]).events("EventBlock", true, &[event(7, 0, &[1, 2, 3])]).end();
    assert_eq!(all(&bytes, |event| event.values().len()).unwrap(), [0]);
}
