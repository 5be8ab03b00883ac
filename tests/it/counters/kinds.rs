//! Every type of counter, with values worked out by hand from the formulas of "Calculating Counter Values".

use etwprof::counters::{Block, CounterPath, Names, NoValue, readings};

use crate::synth::counters::{self as synth, Object, eight, four};

/// Two seconds lie between two blocks. The clocks differ in frequency, so that none can stand for another.
const QPC: (i64, i64) = (1_000, 7_000);
const HZ: i64 = 3_000;
const NS100: (i64, i64) = (500_000_000, 520_000_000);
const OBJECT: (i64, i64) = (40_000, 40_800);
const OBJECT_HZ: i64 = 400;

type Values = (Vec<u8>, Vec<u8>);

/// The value of a counter of this type whose values and base were these.
fn value(kind: u32, was: Option<Values>, is: Values, base: Option<u32>) -> Result<f64, NoValue> {
    let block = |(value, second): Values, newer: bool| {
        let pick = |times: (i64, i64)| if newer { times.1 } else { times.0 };
        let mut counters = vec![(6, kind, value.len() as u32)];
        // What multi-timers divide by stands right behind the value, and belongs to it.
        let is_multi = kind & 0x0200_0000 != 0;
        let mut single = vec![value];
        if is_multi {
            single[0].extend(&second);
        } else if let Some(base) = base {
            counters.push((8, base, second.len() as u32));
            single.push(second);
        }
        let object = Object { name: 2, clock: (pick(OBJECT), OBJECT_HZ), counters, single, instances: None };
        let block = synth::Block {
            qpc: pick(QPC),
            hz: HZ,
            time_100ns: pick(NS100),
            objects: vec![object],
            ..Default::default()
        };
        Block::parse(block.bytes()).unwrap()
    };
    let (was, is) = (was.map(|was| block(was, false)), block(is, true));
    let path: CounterPath = r"2\6".parse().unwrap();
    let found = readings(was.as_ref(), &is, &Names::default(), &[path]).unwrap();
    assert_eq!(found.len(), 1);
    found[0].value
}

fn both(kind: u32, was: Values, is: Values, base: Option<u32>) -> Result<f64, NoValue> {
    value(kind, Some(was), is, base)
}

fn alone(value: Vec<u8>) -> Values {
    (value, Vec::new())
}

#[test]
fn rates_are_per_second_of_the_performance_counter() {
    // 600 in 6,000 ticks of 3,000 Hz, which are two seconds.
    for kind in [0x1041_0400, 0x0041_0400] {
        assert_eq!(both(kind, alone(four(100)), alone(four(700)), None), Ok(300.0), "{kind:x}");
    }
    assert_eq!(both(0x1041_0500, alone(eight(1 << 40)), alone(eight((1 << 40) + 600)), None), Ok(300.0));
    // 4-byte values wrap: from 2^32 - 100 on by 600.
    assert_eq!(both(0x1041_0400, alone(four(u32::MAX - 99)), alone(four(500)), None), Ok(300.0));
}

#[test]
fn raw_values_are_shown_as_they_are() {
    for kind in [0x0001_0000, 0x0000_0000] {
        assert_eq!(value(kind, None, alone(four(4_000_000_000)), None), Ok(4e9), "{kind:x}");
    }
    for kind in [0x0001_0100, 0x0000_0100] {
        assert_eq!(value(kind, None, alone(eight(1 << 50)), None), Ok((1_u64 << 50) as f64), "{kind:x}");
    }
}

#[test]
fn deltas() {
    assert_eq!(both(0x0040_0400, alone(four(5)), alone(four(12)), None), Ok(7.0));
    assert_eq!(both(0x0040_0400, alone(four(u32::MAX)), alone(four(2)), None), Ok(3.0));
    assert_eq!(both(0x0040_0500, alone(eight(5)), alone(eight(12)), None), Ok(7.0));
}

#[test]
fn shares_of_a_base() {
    // 30 of 120.
    assert_eq!(value(0x2002_0400, None, (four(30), four(120)), Some(0x4003_0403)), Ok(25.0));
    assert_eq!(value(0x2002_0500, None, (eight(30), eight(120)), Some(0x4003_0500)), Ok(25.0));
    // 10 hits in 40 requests.
    let hits = both(0x20C2_0400, (four(5), four(10)), (four(15), four(50)), Some(0x4003_0401));
    assert_eq!(hits, Ok(25.0));
    // The base wrapped too: from 2^32 - 10 to 30.
    let wrapped = both(0x20C2_0400, (four(5), four(u32::MAX - 9)), (four(15), four(30)), Some(0x4003_0401));
    assert_eq!(wrapped, Ok(25.0));
}

#[test]
fn timers_take_the_clock_of_their_type() {
    // 1,500 of 6,000 ticks; 5,000,000 of 20,000,000 units of 100 ns; 200 of 800 ticks of the object.
    assert_eq!(both(0x2041_0500, alone(eight(10)), alone(eight(1_510)), None), Ok(25.0));
    assert_eq!(both(0x2141_0500, alone(eight(10)), alone(eight(1_510)), None), Ok(75.0));
    assert_eq!(both(0x2051_0500, alone(eight(10)), alone(eight(5_000_010)), None), Ok(25.0));
    assert_eq!(both(0x2151_0500, alone(eight(10)), alone(eight(5_000_010)), None), Ok(75.0));
    assert_eq!(both(0x2061_0500, alone(eight(10)), alone(eight(210)), None), Ok(25.0));
    // A processor that idled a moment longer than the clock says was not busy, and not less than that.
    assert_eq!(both(0x2151_0500, alone(eight(0)), alone(eight(20_000_400)), None), Ok(0.0));
}

#[test]
fn multi_timers_divide_by_the_number_behind_the_value() {
    // 1,500 ticks in two seconds, of 4 things: 100 * (1,500 / 2) / 4.
    assert_eq!(both(0x2241_0500, (eight(0), four(4)), (eight(1_500), four(4)), None), Ok(18_750.0));
    // 100 * (4 - 1,500 / 6,000).
    assert_eq!(both(0x2341_0500, (eight(0), four(4)), (eight(1_500), four(4)), None), Ok(375.0));
    // 100 * (5,000,000 / 20,000,000) / 4.
    assert_eq!(both(0x2251_0500, (eight(0), four(4)), (eight(5_000_000), four(4)), None), Ok(6.25));
    assert_eq!(both(0x2351_0500, (eight(0), four(4)), (eight(5_000_000), four(4)), None), Ok(375.0));
}

#[test]
fn precision_timers_divide_by_their_own_time_stamp_and_are_no_base() {
    for kind in [0x2047_0500, 0x2057_0500, 0x2067_0500] {
        let found = both(kind, (eight(10), eight(1_000)), (eight(60), eight(1_200)), Some(0x4003_0500));
        assert_eq!(found, Ok(25.0), "{kind:x}");
    }
}

#[test]
fn queues_are_averages_over_ticks() {
    assert_eq!(both(0x0045_0400, alone(four(0)), alone(four(9_000)), None), Ok(1.5));
    assert_eq!(both(0x0045_0500, alone(eight(0)), alone(eight(9_000)), None), Ok(1.5));
    assert_eq!(both(0x0055_0500, alone(eight(0)), alone(eight(30_000_000)), None), Ok(1.5));
    assert_eq!(both(0x0065_0500, alone(eight(0)), alone(eight(1_200)), None), Ok(1.5));
}

#[test]
fn averages_are_over_what_the_base_counts() {
    // 1,500 ticks of 3,000 Hz in 5 transfers: 0.1 s each.
    let transfer = both(0x3002_0400, (four(0), four(7)), (four(1_500), four(12)), Some(0x4003_0402));
    assert_eq!(transfer, Ok(0.1));
    let bytes = both(0x4002_0500, (eight(0), four(7)), (eight(20_480), four(12)), Some(0x4003_0402));
    assert_eq!(bytes, Ok(4_096.0));
}

#[test]
fn elapsed_time_counts_from_the_value() {
    // 40,800 - 40,000 ticks of 400 Hz.
    assert_eq!(value(0x3024_0500, None, alone(eight(40_000)), None), Ok(2.0));
    assert_eq!(value(0x3024_0500, None, alone(eight(40_900)), None), Err(NoValue::Time), "in the future");
}

#[test]
fn what_is_not_known_is_no_number() {
    assert_eq!(value(0x1041_0400, None, alone(four(7)), None), Err(NoValue::One));
    // A provider that restarted: 8-byte values do not wrap, and 4-byte values not from the middle.
    let fell = both(0x1041_0500, alone(eight(1_000)), alone(eight(3)), None);
    assert_eq!(fell, Err(NoValue::Restarted));
    assert_eq!(both(0x1041_0400, alone(four(1_000)), alone(four(3)), None), Err(NoValue::Restarted));
    // No operation, so no average.
    let idle = both(0x3002_0400, (four(9), four(7)), (four(9), four(7)), Some(0x4003_0402));
    assert_eq!(idle, Err(NoValue::Nothing));
    assert_eq!(value(0x2002_0400, None, (four(9), four(0)), Some(0x4003_0403)), Err(NoValue::Nothing));
    // No base, or something else behind it.
    assert_eq!(both(0x3002_0400, alone(four(9)), alone(four(9)), None), Err(NoValue::Base));
    let other = both(0x3002_0400, (four(9), four(7)), (four(9), four(8)), Some(0x1041_0400));
    assert_eq!(other, Err(NoValue::Base));
    // Types without a number, and sizes that no value has.
    for kind in [0x0000_0B00, 0x4000_0200, 0x8000_0000, 0x1234_5678] {
        assert_eq!(value(kind, None, alone(four(1)), None), Err(NoValue::Type), "{kind:x}");
    }
    assert_eq!(value(0x0001_0000, None, alone(vec![1, 2]), None), Err(NoValue::Damaged));
}

#[test]
fn time_that_did_not_pass_gives_no_rate() {
    let block = |value| {
        let counters = vec![(6, 0x1041_0400, 4), (8, 0x2051_0500, 8)];
        let object = Object {
            name: 2,
            counters,
            single: vec![four(value), eight(value.into())],
            ..Default::default()
        };
        Block::parse(synth::Block { objects: vec![object], ..Default::default() }.bytes()).unwrap()
    };
    let path: CounterPath = r"2\*".parse().unwrap();
    let found = readings(Some(&block(1)), &block(2), &Names::default(), &[path]).unwrap();
    assert_eq!(found.iter().map(|r| r.value).collect::<Vec<_>>(), [Err(NoValue::Time), Err(NoValue::Time)]);
}
