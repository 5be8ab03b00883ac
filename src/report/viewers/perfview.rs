//! Stacks for PerfView: XML in a zip archive.
//!
//! Three tables: frames, which are texts; stacks, each a frame on top of another stack; and samples. A node of the call
//! tree is a stack, so that what options fold and group is folded and grouped there too. The facts of the format are those
//! of PerfView's reader, `XmlStackSource`.

use std::fmt;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::profile::patterns::FrameText;
use crate::profile::{Arranged, Detail, End, Entry, Node, Profile, Shape, Tier, Unit};
use crate::report::format::{Content, Format, Needs, Picture, Tops};
use crate::report::{Spelling, verbose};

/// The format.
pub const FORMAT: Format = Format {
    name: "perfview",
    endings: &[".perfView.xml.zip"],
    about: "PerfView stacks",
    viewers: "PerfView",
    content: Content::Binary,
    tops: Tops::Threads,
    needs: Needs { ends: true, ..Needs::NOTHING },
    write,
};

/// The archive has this file alone: PerfView refuses one with more.
const FILE: &str = "etwprof.perfView.xml";

/// Above this many samples and nodes, of up to 100 bytes each, the file may have more than 4 GB.
const MANY: usize = 40_000_000;

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    // A frame has one tier: of the same methods in several, each is a frame, and PerfView shows them as one by their names.
    let with_tiers = Detail { tiers: true, ..picture.shape.detail };
    let has_tiers = picture.profile().stacks.frames().iter().any(|frame| frame.tier.is_some());
    if picture.shape.detail == with_tiers || !has_tiers {
        return write_zip(out, picture, picture.arranged, picture.labels);
    }
    let arranged = (picture.arrange)(&Shape { detail: with_tiers, ..picture.shape.clone() });
    write_zip(out, picture, &arranged, &picture.labels.clone().with_groups(&arranged.groups))
}

fn write_zip(
    out: &mut dyn Write,
    picture: &Picture<'_>,
    arranged: &Arranged,
    labels: &Spelling<'_>,
) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(out);
    let large = arranged.ends.len() + arranged.counts.nodes().count() > MANY;
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(large);
    zip.start_file(FILE, options)?;
    let mut xml = io::BufWriter::new(&mut zip);
    write_xml(&mut xml, picture, arranged, labels)?;
    xml.flush()?;
    drop(xml);
    zip.finish()?;
    Ok(())
}

fn write_xml(
    xml: &mut impl Write,
    picture: &Picture<'_>,
    arranged: &Arranged,
    labels: &Spelling<'_>,
) -> io::Result<()> {
    let profile = picture.profile();
    let frames = Frames::new(profile, arranged, labels);
    writeln!(xml, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<StackWindow>\n<StackSource>")?;
    writeln!(xml, "<Frames Count=\"{}\">", frames.frames.len())?;
    for (id, Frame { text, tier }) in frames.frames.iter().enumerate() {
        write!(xml, "<Frame ID=\"{id}\"")?;
        if let Some(tier) = tier {
            write!(xml, " OptimizationTier=\"{}\"", tier_name(*tier))?;
        }
        writeln!(xml, ">{text}</Frame>")?;
    }
    writeln!(xml, "</Frames>\n<Stacks Count=\"{}\">", arranged.counts.nodes().count())?;
    for (id, node) in arranged.counts.nodes() {
        let (id, frame) = (id.0, frames.of(node.entry));
        match node.parent {
            Some(caller) => write!(xml, "<Stack ID=\"{id}\" CallerID=\"{}\"", caller.0)?,
            None => write!(xml, "<Stack ID=\"{id}\" CallerID=\"-1\"")?,
        }
        writeln!(xml, " FrameID=\"{frame}\"/>")?;
    }
    writeln!(xml, "</Stacks>\n<Samples Count=\"{}\">", arranged.ends.len())?;
    let clock = profile.trace.clock;
    for End { sample, node } in &arranged.ends {
        let Some(sample) = profile.samples.get(*sample as usize) else { continue };
        let time = Milliseconds(clock.filetime(sample.time).saturating_sub(clock.base_utc));
        write!(xml, "<Sample Time=\"{time}\" StackID=\"{}\" Metric=\"", node.0)?;
        match profile.metric.unit {
            Unit::Time => write!(xml, "{}", Milliseconds(sample.value))?,
            Unit::Bytes | Unit::Count => write!(xml, "{}", sample.value)?,
        }
        writeln!(xml, "\"/>")?;
    }
    writeln!(xml, "</Samples>\n</StackSource>")?;
    write_view(xml, picture.shape, profile.metric.unit)?;
    writeln!(xml, "</StackWindow>")
}

/// What PerfView's window shows at first: its own defaults for CPU stacks, and nothing more where patterns of ours have
/// done their work. A metric of time lasts from the sample's time on; one of anything else is at that moment.
fn write_view(xml: &mut impl Write, shape: &Shape, unit: Unit) -> io::Result<()> {
    let (group, fold) = match &shape.patterns {
        Some(_) => ("", ""),
        None => ("[group module entries]  {%}!=&gt;module $1", "ntoskrnl!%ServiceCopyEnd"),
    };
    writeln!(xml, "<StackWindowGuiState>\n<FilterGuiState>")?;
    let values = [
        ("GroupRegEx", group),
        ("FoldPercent", ""),
        ("FoldRegEx", fold),
        ("IncludeRegEx", ""),
        ("ExcludeRegEx", ""),
    ];
    for (name, value) in values {
        writeln!(xml, "<{name}><Value>{value}</Value></{name}>")?;
    }
    let scaling = if unit == Unit::Time { "TimeMetric" } else { "ScaleToData" };
    writeln!(xml, "</FilterGuiState>\n<ScalingPolicy>{scaling}</ScalingPolicy>\n</StackWindowGuiState>")
}

/// The first frames, whose numbers mean something to PerfView: a stack without its outer part has `BROKEN` above it, and
/// a real frame with one of the numbers would vanish.
const RESERVED: [&str; 4] = ["ROOT", "BROKEN", "?!?", "OVERHEAD"];

/// The table of frames: entries that read alike are one.
struct Frames {
    frames: Vec<Frame>,
    by_entry: FxHashMap<Entry, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Frame {
    /// As XML; never empty, which the reader does not take.
    text: String,
    tier: Option<Tier>,
}

impl Frames {
    fn new(profile: &Profile, arranged: &Arranged, labels: &Spelling<'_>) -> Frames {
        let texts: FxHashMap<Entry, FrameText<'_>> = verbose(profile);
        let mut frames: Vec<Frame> =
            RESERVED.iter().map(|text| Frame { text: (*text).to_owned(), tier: None }).collect();
        let mut by_frame: FxHashMap<Frame, usize> = frames.iter().cloned().zip(0..).collect();
        let mut by_entry = FxHashMap::default();
        let add = |node: &Node<Entry>| {
            by_entry.entry(node.entry).or_insert_with(|| {
                let text = match texts.get(&node.entry) {
                    Some(text) => escaped(&text.verbose),
                    None => escaped(&labels.text(node.entry)),
                };
                let frame = match node.entry {
                    Entry::Frame(frame) => profile.stacks.frame(frame),
                    _ => None,
                };
                let frame = Frame { text, tier: frame.and_then(|frame| frame.tier) };
                *by_frame.entry(frame).or_insert_with_key(|frame| {
                    frames.push(frame.clone());
                    frames.len() - 1
                })
            });
        };
        arranged.counts.nodes().map(|(_, node)| node).for_each(add);
        Frames { frames, by_entry }
    }

    fn of(&self, entry: Entry) -> usize {
        // `?!?`; but every entry of the tree has a number.
        self.by_entry.get(&entry).copied().unwrap_or(2)
    }
}

/// Text between tags. XML has no control characters, not even escaped ones.
fn escaped(text: &str) -> String {
    if text.trim().is_empty() {
        return "?".to_owned();
    }
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '&' => xml.push_str("&amp;"),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            c if c.is_control() => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    xml
}

/// TraceEvent's name of a tier; PerfView ignores others.
fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Ngen => "PreJIT",
        Tier::ReadyToRun => "ReadyToRun",
        Tier::MinOptimized => "MinOptJitted",
        Tier::Optimized => "Optimized",
        Tier::Tier0 => "QuickJitted",
        Tier::Tier1 => "OptimizedTier1",
        Tier::Osr => "OptimizedTier1OSR",
        Tier::Tier0Instrumented => "QuickJittedInstrumented",
        Tier::Tier1Instrumented => "OptimizedTier1Instrumented",
    }
}

/// A time in 100 ns, shown in milliseconds without rounding.
struct Milliseconds(i64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let time = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:04}", time / 10_000, time % 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::{Milliseconds, escaped};

    #[test]
    fn times_keep_every_digit() {
        let times = [0, 1, 1_221, 10_000, -5, i64::MAX];
        let texts = ["0.0000", "0.0001", "0.1221", "1.0000", "-0.0005", "922337203685477.5807"];
        assert_eq!(times.map(|time| Milliseconds(time).to_string()), texts);
    }

    #[test]
    fn names_are_text_of_xml() {
        for (name, xml) in [
            ("a!f<b> & c", "a!f&lt;b&gt; &amp; c"),
            ("a\u{1}\n\u{85}\u{ffff}b", "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}b"),
            ("", "?"),
            (" \t", "?"),
            ("]]>", "]]&gt;"),
        ] {
            assert_eq!(escaped(name), xml);
        }
    }
}
