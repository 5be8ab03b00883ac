//! The values of performance counters, and which counters there are.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;

use super::console::DIM;
use super::grid::{Csv, Grid};
use super::spelling::process_text;
use super::text::{count, json, one_line};
use crate::clock::UNIX_EPOCH;
use crate::counters::{Block, CounterPath, Names, NoValue, Reading};
use crate::event::Ticks;
use crate::trace::{CounterTrack, Trace};

/// The readings of a while. Fields are only ever added.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Where the counters are from: a machine, or a process.
    pub source: String,
    /// The moments, in order of time.
    pub moments: Vec<Moment>,
}

/// The readings of a moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Moment {
    /// The moment in ms since 1970, UTC.
    pub unix_ms: Option<i64>,
    /// The time since the sample before, which rates are of, in s.
    pub seconds: Option<f64>,
    /// The values.
    pub counters: Vec<Row>,
}

/// The value of a counter.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The object or provider. It comes from outside, and may hold anything; so do the others.
    #[serde(serialize_with = "text")]
    pub object: Arc<str>,
    /// Of which thing; `null` where there is only one.
    #[serde(serialize_with = "optional")]
    pub instance: Option<Arc<str>>,
    /// The counter.
    #[serde(serialize_with = "text")]
    pub counter: Arc<str>,
    /// What the value is in; empty for a plain number.
    pub unit: String,
    /// The value; `null` where there is none.
    pub value: Option<f64>,
    /// Why there is none.
    pub why: Option<String>,
    #[serde(skip)]
    is_hex: bool,
}

fn text<S: serde::Serializer>(value: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value)
}

fn optional<S: serde::Serializer>(value: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    value.as_deref().serialize(to)
}

impl From<Reading> for Row {
    fn from(reading: Reading) -> Row {
        let value = reading.value.and_then(|v| if v.is_finite() { Ok(v) } else { Err(NoValue::NotANumber) });
        Row {
            object: reading.object,
            instance: reading.instance,
            counter: reading.counter,
            unit: reading.unit.into_owned(),
            value: value.ok(),
            why: value.err().map(|why| why.to_string()),
            is_hex: reading.is_hex,
        }
    }
}

impl Counters {
    /// The counters that were recorded beside samples, those of `wanted`; all if there are none. A counter of a process has
    /// the process as its instance.
    pub fn recorded(trace: &Trace, wanted: &[CounterPath]) -> Counters {
        let is_wanted = |track: &&CounterTrack| {
            let instance = track.instance.as_deref();
            wanted.is_empty() || wanted.iter().any(|path| path.means(&track.object, instance, &track.counter))
        };
        let mut moments: BTreeMap<Ticks, Vec<Row>> = BTreeMap::new();
        for track in trace.counters.iter().filter(is_wanted) {
            let named = Row::recorded(trace, track);
            for (time, value) in &track.values {
                moments.entry(*time).or_default().push(Row { value: Some(*value), ..named.clone() });
            }
        }
        let unix_ms = |time| trace.clock.filetime(time).saturating_sub(UNIX_EPOCH).div_euclid(10_000);
        let moment = |(time, counters)| Moment { unix_ms: Some(unix_ms(time)), seconds: None, counters };
        Counters { source: trace.machine.name.clone(), moments: moments.into_iter().map(moment).collect() }
    }
}

impl Row {
    /// The name of a recorded counter.
    pub fn recorded(trace: &Trace, track: &CounterTrack) -> Row {
        let process = track.process.map(|process| process_text(trace, process));
        Row {
            object: track.object.as_str().into(),
            instance: process.as_deref().or(track.instance.as_deref()).map(Arc::from),
            counter: track.counter.as_str().into(),
            unit: track.unit.clone(),
            value: None,
            why: None,
            is_hex: false,
        }
    }

    /// Its path as perfmon spells it.
    pub fn path(&self) -> String {
        let Row { object, instance, counter, .. } = self;
        match instance {
            Some(instance) => format!(r"{object}({instance})\{counter}"),
            None => format!(r"{object}\{counter}"),
        }
    }

    /// Its value as people read it, with its unit.
    pub fn shown_with_unit(&self) -> String {
        let Row { unit, .. } = self;
        let gap = if unit.is_empty() || unit.starts_with('/') { "" } else { " " };
        format!("{}{gap}{unit}", self.shown())
    }

    fn shown(&self) -> String {
        match self.value {
            Some(value) if self.is_hex => format!("{:#x}", value as u64),
            Some(value) => number(value, &self.unit),
            None => "-".to_owned(),
        }
    }
}

/// A number with as many decimals as help a reader: `1,234,567`, `12.3`, `0.0012`. A whole number without a unit is a
/// count, and has none.
fn number(value: f64, unit: &str) -> String {
    let (size, sign) = (value.abs(), if value < 0.0 { "-" } else { "" });
    let is_count = unit.is_empty() && size.fract() == 0.0;
    if size >= 1e18 {
        format!("{value:e}")
    } else if is_count || size >= 1e4 {
        format!("{sign}{}", count(size.round() as u64))
    } else if size >= 0.1 || size == 0.0 {
        let tenths = (size * 10.0).round() as u64;
        format!("{sign}{}.{}", count(tenths / 10), tenths % 10)
    } else {
        format!("{value:.4}")
    }
}

/// Writes the values. Of several moments, each counter has its last value, and its mean, least and greatest.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, counters: &Counters, width: Option<usize>) -> io::Result<()> {
    let Some(last) = counters.moments.last() else { return Ok(()) };
    if !counters.source.is_empty() {
        let time = last.unix_ms.map(utc).map(|time| format!(", {time} UTC")).unwrap_or_default();
        let over = last.seconds.map(|seconds| format!(", rates over {seconds:.1} s")).unwrap_or_default();
        writeln!(out, "{DIM}{}{time}{over}{DIM:#}", one_line(&counters.source))?;
    }
    let with_why = |row: &Row| match &row.why {
        Some(why) => format!("{}  [{why}]", row.path()),
        None => row.path(),
    };
    if let [moment] = counters.moments.as_slice() {
        let mut grid = Grid::new(["value", "unit"], "counter").cut_at_the_end();
        for row in &moment.counters {
            grid.row([row.shown(), row.unit.clone()], 0, with_why(row));
        }
        return grid.write(out, width);
    }
    let mut all: Vec<(String, &Row, Vec<f64>)> = Vec::new();
    let mut places = rustc_hash::FxHashMap::default();
    for row in counters.moments.iter().flat_map(|moment| &moment.counters) {
        let path = row.path();
        let place = *places.entry(path.clone()).or_insert_with(|| {
            all.push((path, row, Vec::new()));
            all.len() - 1
        });
        if let Some((_, newest, values)) = all.get_mut(place) {
            *newest = row;
            values.extend(row.value);
        }
    }
    let mut grid = Grid::new(["last", "mean", "min", "max", "unit"], "counter").cut_at_the_end();
    for (_, row, values) in &all {
        let of = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| number(value, &row.unit));
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let (least, most) =
            (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        let shown = [row.shown(), of(mean), of(least), of(most), row.unit.clone()];
        grid.row(shown, 0, with_why(row));
    }
    grid.write(out, width)
}

/// `2026-11-23 09:00:14.250`.
fn utc(unix_ms: i64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(u64::try_from(unix_ms).unwrap_or(0));
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

/// Writes the values as CSV, a line for each counter at each moment.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(out: &mut impl Write, counters: &Counters) -> io::Result<()> {
    let mut csv = csv_head(out)?;
    counters.moments.iter().try_for_each(|moment| csv_rows(&mut csv, moment))?;
    csv.finish()
}

/// Writes the same lines as moments come.
#[derive(Debug)]
pub struct CsvLines<W: Write>(Csv<W>);

impl<W: Write> CsvLines<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(out: W) -> io::Result<Self> {
        csv_head(out).map(CsvLines)
    }

    /// Writes the lines of a moment, so that whoever reads them has them now.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, moment: &Moment) -> io::Result<()> {
        csv_rows(&mut self.0, moment)?;
        self.0.flush()
    }
}

fn csv_head<W: Write>(out: W) -> io::Result<Csv<W>> {
    Csv::new(out, &["utc", "seconds", "object", "instance", "counter", "value", "unit", "why"])
}

fn csv_rows(csv: &mut Csv<impl Write>, moment: &Moment) -> io::Result<()> {
    let time = moment.unix_ms.map(utc);
    moment.counters.iter().try_for_each(|row| {
        csv.row(&(
            &time,
            moment.seconds,
            &*row.object,
            row.instance.as_deref(),
            &*row.counter,
            row.value,
            &row.unit,
            &row.why,
        ))
    })
}

/// Writes the values as JSON.
///
/// # Errors
/// Those of `out`.
pub fn write_json(out: &mut impl Write, counters: &Counters) -> io::Result<()> {
    json(out, counters)
}

/// What can be read from a block.
#[derive(Clone, Debug, Serialize)]
pub struct Available {
    /// The machine.
    pub source: String,
    /// The objects, by name.
    pub objects: Vec<AvailableObject>,
}

/// An object of a block.
#[derive(Clone, Debug, Serialize)]
pub struct AvailableObject {
    /// Its name.
    pub object: String,
    /// The index of its name.
    pub index: u32,
    /// How many instances there are; `null` for an object that has none.
    pub instances: Option<usize>,
    /// The names of its counters.
    pub counters: Vec<String>,
}

impl Available {
    /// The objects of a block.
    pub fn new(block: &Block, names: &Names) -> Available {
        let object = |object: &crate::counters::Object| AvailableObject {
            object: names.name(object.name).to_string(),
            index: object.name,
            instances: object.has_instances.then_some(object.instances.len()),
            counters: object
                .counters
                .iter()
                .filter(|counter| !counter.kind.is_base())
                .map(|counter| names.name(counter.name).to_string())
                .collect(),
        };
        let mut objects: Vec<_> = block.objects.iter().map(object).collect();
        objects.sort_by(|a, b| a.object.cmp(&b.object));
        Available { source: block.machine.clone(), objects }
    }
}

/// Writes what can be read, with the first counters of each object.
///
/// # Errors
/// Those of `out`.
pub fn write_available(out: &mut impl Write, available: &Available, width: Option<usize>) -> io::Result<()> {
    writeln!(out, "{DIM}{}{DIM:#}", one_line(&available.source))?;
    let mut grid = Grid::new(["instances", "counters"], "object: its counters").cut_at_the_end();
    for object in &available.objects {
        let instances = object.instances.map_or_else(|| "-".to_owned(), |n| count(n as u64));
        let text = format!("{}: {}", object.object, object.counters.join(", "));
        grid.row([instances, count(object.counters.len() as u64)], 0, text);
    }
    grid.write(out, width)
}

/// Writes what can be read as CSV, a line for each counter.
///
/// # Errors
/// Those of `out`.
pub fn write_available_csv(out: &mut impl Write, available: &Available) -> io::Result<()> {
    let mut csv = Csv::new(out, &["object", "index", "instances", "counter"])?;
    for object in &available.objects {
        for counter in &object.counters {
            csv.row(&(&object.object, object.index, object.instances, counter))?;
        }
    }
    csv.finish()
}

/// Writes what can be read as JSON.
///
/// # Errors
/// Those of `out`.
pub fn write_available_json(out: &mut impl Write, available: &Available) -> io::Result<()> {
    json(out, available)
}

/// A .NET process whose counters can be read.
#[derive(Clone, Debug, Serialize)]
pub struct Listening {
    /// Its id.
    pub pid: u32,
    /// What it is called. It comes from outside, and may hold anything.
    pub process: String,
    /// What it runs on.
    pub runtime: Runtime,
}

/// How the counters of a .NET process are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Runtime {
    /// It sends them: .NET Core 3.0 or later, .NET 5 and later.
    #[serde(rename = ".NET")]
    Sends,
    /// It shares them with the system.
    #[serde(rename = ".NET Framework")]
    Framework,
}

impl Runtime {
    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Runtime::Sends => ".NET",
            Runtime::Framework => ".NET Framework",
        }
    }
}

/// Writes the processes whose counters can be read.
///
/// # Errors
/// Those of `out`.
pub fn write_listening(
    out: &mut impl Write,
    processes: &[Listening],
    width: Option<usize>,
) -> io::Result<()> {
    let mut grid = Grid::new(["pid", "runtime"], "process").cut_at_the_end();
    for Listening { pid, process, runtime } in processes {
        grid.row([pid.to_string(), runtime.name().to_owned()], 0, one_line(process));
    }
    grid.write(out, width)
}

/// Writes them as CSV.
///
/// # Errors
/// Those of `out`.
pub fn write_listening_csv(out: &mut impl Write, processes: &[Listening]) -> io::Result<()> {
    let mut csv = Csv::new(out, &["pid", "process", "runtime"])?;
    processes.iter().try_for_each(|one| csv.row(&(one.pid, &one.process, one.runtime.name())))?;
    csv.finish()
}

/// Writes them as JSON: `processes[]` with `pid`, `process` and `runtime`; and the objects of a machine, where there are some.
///
/// # Errors
/// Those of `out`.
pub fn write_listening_json(
    out: &mut impl Write,
    processes: &[Listening],
    available: Option<&Available>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct All<'a> {
        processes: &'a [Listening],
        #[serde(flatten)]
        available: Option<&'a Available>,
    }
    json(out, &All { processes, available })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_the_decimals_that_help() {
        let shown = |value, unit| number(value, unit);
        assert_eq!(shown(8_589_934_592.0, ""), "8,589,934,592");
        assert_eq!(shown(4714.5, ""), "4,714.5");
        // A rate is no count, even where it is whole.
        assert_eq!([shown(55.0, "%"), shown(29.999_999, "%"), shown(0.0, "%")], ["55.0", "30.0", "0.0"]);
        assert_eq!(
            [shown(0.001, "s"), shown(-2.25, "/s"), shown(12_345.6, "/s")],
            ["0.0010", "-2.3", "12,346"]
        );
        assert_eq!(shown(2e20, ""), "2e20");
    }
}
