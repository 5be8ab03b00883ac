//! Profiles for the Firefox Profiler: its processed profile format, version 65.
//!
//! Versions and fields are those of `docs-developer/CHANGELOG-formats.md` and `src/types/profile.ts` in
//! firefox-devtools/profiler. The viewer upgrades older versions. In this one `shared` tables come with a `prefix` for each stack
//! and a `time` for each sample, which is what Perfetto's reader of the same files knows.

mod counters;
mod json;
mod markers;
mod quality;
mod tables;
mod threads;

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::clock::{ClockKind, UNIX_EPOCH};
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::report::viewers::remarks::interval;
use json::{Json, Milliseconds};
use tables::Tables;
use threads::Group;

/// The format.
pub const FORMAT: Format = Format {
    name: "firefox",
    endings: &[".json.gz"],
    about: "Firefox Profiler profile",
    viewers: "profiler.firefox.com, Perfetto",
    content: Content::Binary,
    tops: Tops::Code,
    needs: Needs { ends: true, cpu_time: true, lines: true, code: true, ..Needs::NOTHING },
    write,
};

/// The version that is written.
const VERSION: u32 = 65;

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    // Its head has neither a name nor a time, so that equal profiles are equal bytes.
    let packed = GzEncoder::new(out, Compression::default());
    let mut json = Json::new(BufWriter::with_capacity(1 << 16, packed));
    write_json(picture, &mut json)?;
    let packed = json.into_inner().into_inner().map_err(io::IntoInnerError::into_error)?;
    packed.finish()?.flush()
}

fn write_json<W: Write>(picture: &Picture<'_>, json: &mut Json<W>) -> io::Result<()> {
    let mut tables = Tables::new(picture);
    let groups = threads::groups(picture);
    let mut markers = markers::markers(picture, &groups);
    json.object(|json| {
        json.key("meta")?.object(|json| write_meta(picture, &tables, &groups, json))?;
        json.key("libs")?;
        tables.write_libs(json)?;
        json.key("counters")?;
        counters::write_counters(&picture.profile().trace, &groups, markers::range(picture), json)?;
        json.key("threads")?;
        threads::write_threads(picture, &groups, &mut markers, &mut tables, json)?;
        json.key("shared")?;
        tables.write_shared(picture, json)
    })
}

fn write_meta<W: Write>(
    picture: &Picture<'_>,
    tables: &Tables<'_>,
    groups: &[Group<'_>],
    json: &mut Json<W>,
) -> io::Result<()> {
    let profile = picture.profile();
    let (clock, machine) = (&profile.trace.clock, &profile.trace.machine);
    json.key("interval")?.plain(Milliseconds(interval(picture)))?;
    json.key("startTime")?.plain(Milliseconds(clock.base_utc.saturating_sub(UNIX_EPOCH)))?;
    if clock.kind == ClockKind::Qpc {
        json.key("startTimeAsQueryPerformanceCounterValue")?.plain(clock.base.0)?;
    }
    json.key("processType")?.plain(0)?;
    json.key("product")?.text(picture.title)?;
    json.key("importedFrom")?.text(concat!("etwprof ", env!("CARGO_PKG_VERSION")))?;
    json.key("stackwalk")?.plain(1)?;
    json.key("debug")?.plain(false)?;
    // Of Gecko's own format; nobody reads it.
    json.key("version")?.plain(31)?;
    json.key("preprocessedProfileVersion")?.plain(VERSION)?;
    json.key("symbolicated")?.plain(true)?;
    json.key("platform")?.text("Windows")?;
    let build = || format!("Windows build {}", machine.os_build);
    json.key("oscpu")?.text(&if machine.os_name.is_empty() { build() } else { machine.os_name.clone() })?;
    json.key("abi")?.text(tables::architecture(machine))?;
    json.key("device")?.text(&machine.name)?;
    json.key("logicalCPUs")?.plain(machine.processors)?;
    json.key("usesOnlyOneStackType")?.plain(!tables.has_scripts())?;
    json.key("sourceCodeIsNotOnSearchfox")?.plain(true)?;
    json.key("keepProfileThreadOrder")?.plain(true)?;
    json.column("initialSelectedThreads", threads::busiest(groups))?;
    json.key("sampleUnits")?.object(|json| {
        json.key("time")?.text("ms")?;
        json.key("eventDelay")?.text("ms")?;
        json.key("threadCPUDelta")?.text("ns")
    })?;
    json.key("categories")?;
    tables.write_categories(json)?;
    json.key("markerSchema")?;
    markers::write_schemas(json)?;
    json.key("extra")?;
    quality::write_quality(picture, json)
}
