//! The values of chosen counters at a moment.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::{Block, CounterPath, Definition, Instance, Names, NoValue, Object, Point, calculate};

/// The object "Process".
const PROCESS: u32 = 230;

/// The counter "ID Process", by which processes are known whatever their names.
const ID_PROCESS: u32 = 784;

/// How many values there are at most in the readings of a moment.
pub const MOST_READINGS: usize = 100_000;

/// The bytes of all names of an object's instances at most: a crafted block repeats the name of a parent.
const MOST_SPELLED: usize = 64 << 20;

/// More counters were asked for than [`MOST_READINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("more than {MOST_READINGS} counters match; choose fewer instances or counters")]
pub struct TooMany;

/// The value of one counter at a moment, from whatever source.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The object, or the provider of an EventCounter. It comes from outside, and may hold anything; so do the others.
    pub object: Arc<str>,
    /// Of which thing. `None` where there is only one.
    pub instance: Option<Arc<str>>,
    /// The counter.
    pub counter: Arc<str>,
    /// What the value is in: `/s`, `%`, `s`, `MB`, or nothing.
    pub unit: Cow<'static, str>,
    /// True for a value that is meant to be read in hexadecimal.
    pub is_hex: bool,
    /// The value, or why there is none.
    pub value: Result<f64, NoValue>,
}

/// The values of the counters that `paths` choose, in the order of the paths, then of the block. `old` is the block before:
/// without it rates have no value.
///
/// # Errors
/// There are more than [`MOST_READINGS`].
pub fn readings(
    old: Option<&Block>,
    new: &Block,
    names: &Names,
    paths: &[CounterPath],
) -> Result<Vec<Reading>, TooMany> {
    let mut found = Vec::new();
    for path in paths {
        let mut before: FxHashMap<u32, usize> = FxHashMap::default();
        for object in &new.objects {
            // Two providers may use one index: the second of them is the second in the old block too.
            let nth = before.entry(object.name).or_default();
            let was = old.map(|old| (old, old.objects.iter().filter(|o| o.name == object.name).nth(*nth)));
            *nth += 1;
            if names.is(object.name, &path.object) {
                of_object(&mut found, (new, object), was, names, path)?;
            }
        }
    }
    Ok(found)
}

type Older<'a> = Option<(&'a Block, Option<&'a Object>)>;

fn of_object(
    found: &mut Vec<Reading>,
    (block, object): (&Block, &Object),
    was: Older<'_>,
    names: &Names,
    path: &CounterPath,
) -> Result<(), TooMany> {
    let name = names.name(object.name);
    let is_wanted = |(_, counter): &(usize, &Definition)| {
        !counter.kind.is_base() && (path.counter == "*" || names.is(counter.name, &path.counter))
    };
    let wanted: Vec<_> = object.counters.iter().enumerate().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let older: FxHashMap<String, &Instance> = match was {
        Some((old, Some(was))) => spelled(old, was)?.into_iter().zip(&was.instances).collect(),
        _ => FxHashMap::default(),
    };
    // Processes of one name are counted anew when one of them ends.
    let by_pid: FxHashMap<(u64, &str), &Instance> = match was {
        Some((old, Some(was))) => {
            let of = |instance| Some(((pid(old, was, instance)?, instance.name.as_str()), instance));
            was.instances.iter().filter_map(of).collect()
        }
        _ => FxHashMap::default(),
    };
    for (spelling, instance) in spelled(block, object)?.into_iter().zip(&object.instances) {
        let shown = object.has_instances.then_some(spelling.as_str());
        if !path.wants(shown) {
            continue;
        }
        let shown: Option<Arc<str>> = shown.map(Into::into);
        let before = match was {
            None => Err(NoValue::One),
            Some((_, None)) => Err(NoValue::New),
            Some((old, Some(was))) => {
                let pid = pid(block, object, instance);
                let same = pid.and_then(|pid| by_pid.get(&(pid, instance.name.as_str())));
                same.or_else(|| older.get(&spelling)).ok_or(NoValue::New).and_then(|before| {
                    let is_same =
                        before.unique_id == instance.unique_id && self::pid(old, was, before) == pid;
                    if is_same { Ok((old, was, *before)) } else { Err(NoValue::Replaced) }
                })
            }
        };
        for (at, counter) in &wanted {
            if found.len() == MOST_READINGS {
                return Err(TooMany);
            }
            let new = point(block, object, instance, *at);
            let value = match before {
                _ if !counter.kind.needs_two() => new.and_then(|new| calculate(counter.kind, None, &new)),
                Err(why) => new.and(Err(why)),
                Ok((old, was, before)) => {
                    // A provider that was updated may have moved its definitions.
                    let at = was.counters.get(*at).filter(|c| c.name == counter.name).map(|_| *at);
                    let at = at.or_else(|| was.counters.iter().position(|c| c.name == counter.name));
                    let old = at.ok_or(NoValue::New).and_then(|at| point(old, was, before, at));
                    new.and_then(|new| calculate(counter.kind, Some(&old?), &new))
                }
            };
            found.push(Reading {
                object: name.clone(),
                instance: shown.clone(),
                counter: names.name(counter.name),
                unit: counter.kind.unit().into(),
                is_hex: counter.kind.is_hex(),
                value,
            });
        }
    }
    Ok(())
}

/// The process that an instance is, where its object says so.
fn pid(block: &Block, object: &Object, instance: &Instance) -> Option<u64> {
    let id = object.counters.iter().find(|counter| counter.name == ID_PROCESS)?;
    block.raw(instance, id)
}

/// The instance of the object "Process" that is this process, as perfmon spells it.
pub fn process_instance(block: &Block, wanted: u32) -> Option<String> {
    let object = block.objects.iter().find(|object| object.name == PROCESS)?;
    let is_it = |instance: &Instance| pid(block, object, instance) == Some(wanted.into());
    let at = object.instances.iter().position(is_it)?;
    spelled(block, object).ok()?.into_iter().nth(at)
}

/// The raw value of the counter number `at` of an object, with its base.
fn point(block: &Block, object: &Object, instance: &Instance, at: usize) -> Result<Point, NoValue> {
    let counter = object.counters.get(at).ok_or(NoValue::Damaged)?;
    let value = block.raw(instance, counter).ok_or(NoValue::Damaged)?;
    let base = object.counters.get(at + 1).filter(|base| counter.kind.has_base() && base.kind.is_base());
    Ok(Point {
        value,
        size: counter.size,
        base: base.and_then(|base| Some((block.raw(instance, base)?, base.size))),
        behind: block.behind(instance, counter),
        clocks: block.clocks(object),
    })
}

/// The instances of an object as perfmon spells them: `parent/name#1`, where the first of a name has no number.
fn spelled(block: &Block, object: &Object) -> Result<Vec<String>, TooMany> {
    let parents: FxHashMap<u32, &Object> = block.objects.iter().rev().map(|o| (o.name, o)).collect();
    let mut before: FxHashMap<String, u32> = FxHashMap::default();
    let mut room = MOST_SPELLED;
    let spell = |instance: &Instance| {
        let parent = instance.parent.and_then(|(index, number)| {
            parents.get(&index).and_then(|parent| parent.instances.get(number as usize))
        });
        let name = match parent {
            Some(parent) => format!("{}/{}", parent.name, instance.name),
            None => instance.name.clone(),
        };
        room = room.checked_sub(name.len()).ok_or(TooMany)?;
        let nth = before.entry(name.to_lowercase()).or_default();
        *nth += 1;
        Ok(if *nth > 1 { format!("{name}#{}", *nth - 1) } else { name })
    };
    object.instances.iter().map(spell).collect()
}
