//! Any payload as any event: decoded, shown, and put into a trace.
#![no_main]

use std::sync::Arc;

use etwprof::clock::{Clock, ClockKind, Ticks};
use etwprof::event::{Event, Kind, Pointer};
use etwprof::events::{decode, names};
use etwprof::guids::*;
use etwprof::origin::{Machine, Origin};
use etwprof::profile::{Filter, Profile};
use etwprof::report::events::Counter;
use etwprof::symbols::Unnamed;
use etwprof::trace::Builder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|records: Vec<(u8, u16, u8, u8, u8, &[u8])>| {
    let known = [
        PROCESS, THREAD, IMAGE, PERF_INFO, STACK_WALK, IMAGE_ID, SYSTEM_CONFIG, SYS_CONFIG, LOST_EVENT, CLR,
        CLR_RUNDOWN, KERNEL_EVENT_TRACING, EVENT_TRACE, JSCRIPT, ETWPROF,
    ];
    let clock = Clock { kind: ClockKind::Qpc, frequency: 10_000_000, base: Ticks(0), base_utc: 1 << 56, utc_offset: None };
    let pointer = Pointer::Bits64;
    let machine = Machine {
        processors: 1,
        os_build: 26_100,
        os_name: String::new(),
        pointer,
        architecture: None,
        name: String::new(),
    };
    let mut builder = Builder::new(&Origin::new(clock, machine));
    let mut counter = Counter::default();
    let mut time = 0;
    let counter_items = etwprof::events::counter::items();
    for (provider, id, opcode, version, flags, payload) in records {
        time += i64::from(flags >> 4);
        let provider = known[usize::from(provider) % known.len()];
        let event = Event {
            time: Ticks(time),
            provider,
            kind: if flags & 1 == 0 { Kind::Classic } else { Kind::Manifest(id) },
            opcode,
            version,
            pointer: if flags & 2 == 0 { Pointer::Bits64 } else { Pointer::Bits32 },
            processor: 0,
            pid: u32::from(id),
            tid: u32::from(id),
            items: match flags & 4 {
                _ if provider == ETWPROF => &counter_items,
                0 => &[],
                _ => payload,
            },
            payload,
        };
        let _shown = format!("{:?} {:?}", decode(&event), names::event_name(&event));
        builder.event(&event);
        counter.event(&event);
    }
    let trace = Arc::new(builder.finish());
    let profile = Profile::new(&trace, &Filter::default(), &Unnamed);
    assert_eq!(profile.balance.total, trace.sample_count());
    assert_eq!(counter.rows().iter().map(|row| row.count).sum::<u64>(), trace.events);
});
