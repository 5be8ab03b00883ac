//! Performance data blocks, typed by hand from `winperf.h`, `Counter 009`, and counters beside the samples of a recording.

use super::{Bytes, Event, IntoEvent, Item, guid};

/// A block that is being built.
pub struct Block {
    pub qpc: i64,
    pub hz: i64,
    pub time_100ns: i64,
    pub machine: &'static str,
    pub objects: Vec<Object>,
}

impl Default for Block {
    fn default() -> Block {
        Block { qpc: 0, hz: 10_000_000, time_100ns: 0, machine: "HOST", objects: Vec::new() }
    }
}

#[derive(Clone, Default)]
pub struct Object {
    pub name: u32,
    /// The object's own clock and its frequency.
    pub clock: (i64, i64),
    /// Name, type, size.
    pub counters: Vec<(u32, u32, u32)>,
    /// `None`: an object that never has instances; then `single` has its values.
    pub instances: Option<Vec<Instance>>,
    pub single: Vec<Vec<u8>>,
}

#[derive(Clone)]
pub struct Instance {
    pub name: String,
    pub parent: (u32, u32),
    pub id: i32,
    pub values: Vec<Vec<u8>>,
}

pub fn instance(name: &str, values: Vec<Vec<u8>>) -> Instance {
    Instance { name: name.to_owned(), parent: (0, 0), id: -1, values }
}

pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// The `REG_MULTI_SZ` of indices and names.
pub fn names(names: &[(u32, &str)]) -> Vec<u8> {
    let pairs = names.iter().flat_map(|(index, name)| [utf16(&index.to_string()), utf16(name)].concat());
    pairs.chain([0, 0]).collect()
}

fn put(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}

/// The values of an instance behind their length, each at a multiple of 8, and the offset of each.
fn values(values: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![0; 8];
    for value in values {
        block.extend(value);
        pad(&mut block);
    }
    let length = block.len() as u32;
    block[..4].copy_from_slice(&length.to_le_bytes());
    block
}

impl Object {
    fn bytes(&self) -> Vec<u8> {
        let definitions = 64 + 40 * self.counters.len() as u32;
        let mut out = Vec::new();
        // TotalByteLength comes last.
        put(&mut out, &[0, definitions, 64, self.name, 0, self.name + 1, 0, 100]);
        let number = self.instances.as_ref().map_or(-1, |instances| instances.len() as i32);
        put(&mut out, &[self.counters.len() as u32, 0, number as u32, 0]);
        out.extend(self.clock.0.to_le_bytes());
        out.extend(self.clock.1.to_le_bytes());
        let example = match &self.instances {
            Some(instances) => instances.first().map(|i| i.values.clone()).unwrap_or_default(),
            None => self.single.clone(),
        };
        let mut offset = 8;
        for (at, (name, kind, size)) in self.counters.iter().enumerate() {
            put(&mut out, &[40, *name, 0, name + 1, 0, 0, 100, *kind, *size, offset]);
            offset += example.get(at).map_or(8, |value| value.len().next_multiple_of(8)) as u32;
        }
        for instance in self.instances.iter().flatten() {
            let name = utf16(&instance.name);
            let length = (24 + name.len()).next_multiple_of(8);
            let mut head = Vec::new();
            put(&mut head, &[length as u32, instance.parent.0, instance.parent.1, instance.id as u32]);
            put(&mut head, &[24, name.len() as u32]);
            head.extend(name);
            head.resize(length, 0);
            out.extend(head);
            out.extend(values(&instance.values));
        }
        if self.instances.is_none() {
            out.extend(values(&self.single));
        }
        let total = out.len() as u32;
        out[..4].copy_from_slice(&total.to_le_bytes());
        out
    }
}

impl Block {
    pub fn bytes(&self) -> Vec<u8> {
        let machine = utf16(self.machine);
        let header = (88 + machine.len()).next_multiple_of(8);
        let mut out: Vec<u8> = "PERF".encode_utf16().flat_map(u16::to_le_bytes).collect();
        put(&mut out, &[1, 1, 1, 0, header as u32, self.objects.len() as u32, 238]);
        // Monday, 23 November 2026, 09:00:14.250.
        for part in [2026_u16, 11, 1, 23, 9, 0, 14, 250] {
            out.extend(part.to_le_bytes());
        }
        put(&mut out, &[0]);
        for time in [self.qpc, self.hz, self.time_100ns] {
            out.extend(time.to_le_bytes());
        }
        put(&mut out, &[machine.len() as u32, 88]);
        out.extend(machine);
        out.resize(header, 0);
        self.objects.iter().for_each(|object| out.extend(object.bytes()));
        let total = out.len() as u32;
        out[20..24].copy_from_slice(&total.to_le_bytes());
        out
    }
}

pub fn four(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

pub fn eight(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

/// The value of a counter as etwprof records it: a self-describing event of its own provider.
pub fn recorded(pid: u32, [object, instance, counter, unit]: [&str; 4], value: f64) -> Event {
    let [object, instance, counter, unit] = [object, instance, counter, unit].map(str::to_owned);
    let payload = move |bytes: Bytes| {
        let texts = bytes.u32(pid).utf16z(&object).utf16z(&instance).utf16z(&counter).utf16z(&unit);
        texts.u64(value.to_bits())
    };
    // Types: 8 is UINT32, with 0x80 a second byte follows, 5 for a process id; 1 is UNICODESTRING, 12 is DOUBLE.
    let fields = b"ProcessId\0\x88\x05Object\0\x01Instance\0\x01Counter\0\x01Unit\0\x01Value\0\x0c";
    Event::manifest(guid("deb49ce9-f9ba-505d-8029-5461bd3c09a5"), 0, 0, payload)
        .channel(11)
        .by(if pid == 0 { 999 } else { pid }, 0)
        .item(Item::schema("Counter", fields))
        .item(Item::provider_traits("etwprof"))
}
