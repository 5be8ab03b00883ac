//! CPU time over time: the head of a report. It shows how busy each process kept the processors, and when.
//!
//! ```text
//! 6.32 s CPU in 9.98 s, 8 CPUs; 0.6 cores on average, 1.3 in the busiest 0.5 s
//! process              CPU time  0.01 s         9.99 s  98 % within    peak
//! Test.x64.exe (3676)    5.13 s  │     ▁▇████████▃    │  3.04–8.15 s    1.0
//! PerfView.exe (3988)  356.0 ms  │▄▂▂▂▂▁▁▁▄▃▁▁▁▁▁▁▁▁▃█│  0.03–9.98 s    0.1
//! ```
//!
//! A full block is the busiest bin of its own line, and `peak` is how many cores that bin kept busy. A bin is as long as the
//! first line says; the ends of the strip are the first and the last sample of the recording, idle ones too, or the range
//! that was chosen. `98 % within` leaves out the first and the last hundredth of the CPU time.

use std::io::{self, Write};

use console::{measure_text_width, truncate_str};

use crate::profile::{Entry, Load, Timeline};

use super::console::{DIM, HEAD, middle};
use super::label::Labels;
use super::text::{count, duration, one_line};

/// At most this many processes have a line.
const MOST: usize = 8;
/// A process with a smaller share of the CPU time has none, in percent.
const NOTABLE: i64 = 1;
/// Columns of a strip where lines may have any width.
const ANY: usize = 60;
/// Columns of a strip at least, whatever else has no room.
const LEAST: usize = 8;

const GAP: usize = 2;
const CPU: usize = "CPU time".len();
/// Of `12.34–56.78 s`.
const WITHIN: usize = 13;
const PEAK: usize = "peak".len();

/// How many columns a strip has at most in lines of this width: the bins that a [`Timeline`] should have.
pub fn bins(width: Option<usize>) -> usize {
    let rest = Room::of(width).besides_strip();
    width.map_or(ANY, |width| width.saturating_sub(rest).clamp(LEAST, 2 * ANY))
}

/// What a line of a process has room for.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Columns of its name at most.
    name: usize,
    strip: bool,
    within: bool,
    peak: bool,
}

impl Room {
    /// In lines of this width. The name with its id and the CPU time stay longest.
    fn of(width: Option<usize>) -> Room {
        let all = Room { name: 32, strip: true, within: true, peak: true };
        match width {
            Some(100..) | None => all,
            Some(64..100) => Room { name: 20, ..all },
            Some(50..64) => Room { name: 20, within: false, ..all },
            Some(38..50) => Room { name: 14, within: false, peak: false, ..all },
            Some(width @ ..38) => {
                let name = width.saturating_sub(CPU + GAP).max(1);
                Room { name, strip: false, within: false, peak: false }
            }
        }
    }

    /// The columns of all but the strip.
    fn besides_strip(self) -> usize {
        let column = |there, columns| if there { GAP + columns } else { 0 };
        let ends = "││".chars().count();
        self.name
            + GAP
            + CPU
            + column(self.strip, ends)
            + column(self.within, WITHIN)
            + column(self.peak, PEAK)
    }

    /// A line of the columns that there is room for. The name is padded already.
    fn line(self, name: &str, cpu: &str, strip: &str, within: &str, peak: &str) -> String {
        let mut line = format!("{name}  {cpu:>CPU$}");
        if self.strip {
            line += &format!("  {strip}");
        }
        if self.within {
            line += &format!("  {within:<WITHIN$}");
        }
        if self.peak {
            line += &format!("  {peak:>PEAK$}");
        }
        line
    }
}

/// Writes the head. `processors` is how many the machine has, 0 if that is not known.
pub fn write(
    out: &mut impl Write,
    timeline: &Timeline,
    processors: u32,
    labels: &impl Labels<Entry>,
    width: Option<usize>,
) -> io::Result<()> {
    let mut line = |text: &str| match width {
        Some(width) => writeln!(out, "{}", truncate_str(text.trim_end(), width, "…")),
        None => writeln!(out, "{}", text.trim_end()),
    };
    let all = &timeline.all;
    for part in wrapped(&summary(timeline, processors), width) {
        line(&format!("{HEAD}{part}{HEAD:#}"))?;
    }
    let shown =
        timeline.processes.iter().take(MOST).filter(|(_, load)| load.total > all.total / 100 * NOTABLE);
    let shown = shown.count().max(1).min(timeline.processes.len());
    let (shown, rest) = timeline.processes.split_at_checked(shown).unwrap_or_default();
    let mut rows: Vec<(String, Load)> = Vec::new();
    if timeline.processes.len() > 1 {
        rows.push((labels.all().to_owned(), all.clone()));
    }
    for (process, load) in shown {
        rows.push((one_line(&labels.label(Entry::Process(*process)).text).into_owned(), load.clone()));
    }
    if !rest.is_empty() {
        let mut sum = Load::default();
        for (_, load) in rest {
            sum += load;
        }
        rows.push((format!("… {} more", count(rest.len() as u64)), sum));
    }
    let room = Room::of(width);
    let names: Vec<String> = rows.iter().map(|(name, _)| middle(name, room.name)).collect();
    let widest =
        names.iter().map(|name| measure_text_width(name)).chain(["process".len()]).max().unwrap_or(0);
    let heads =
        room.line(&format!("{:widest$}", "process"), "CPU time", &axis(timeline), "98 % within", "peak");
    line(&format!("{HEAD}{heads}{HEAD:#}"))?;
    for (name, (_, load)) in names.iter().zip(&rows) {
        let pad = widest - measure_text_width(name);
        let (cpu, strip) = (duration(load.total as f64 / 1e7), strip(load));
        let within = load.most.map_or(String::new(), |(from, to)| {
            format!("{}–{} s", seconds(from, timeline.length), seconds(to, timeline.length))
        });
        line(&room.line(
            &format!("{name}{:pad$}", ""),
            &cpu,
            &format!("{DIM}│{DIM:#}{strip}{DIM}│{DIM:#}"),
            &within,
            &cores(timeline.peak(load)),
        ))?;
    }
    Ok(())
}

/// `6.32 s CPU in 9.98 s, 8 CPUs; 0.6 cores on average, 1.3 in the busiest 0.5 s`.
fn summary(timeline: &Timeline, processors: u32) -> String {
    let all = &timeline.all;
    let span = duration(timeline.length as f64 / 1e7);
    let mut text = format!("{} CPU in {span}", duration(all.total as f64 / 1e7));
    text += &match processors {
        0 => String::new(),
        1 => ", 1 CPU".to_owned(),
        _ => format!(", {processors} CPUs"),
    };
    let (average, peak) = (cores(timeline.average(all)), cores(timeline.peak(all)));
    text + &format!("; {average} cores on average, {peak} in the busiest {}", round_time(timeline.bin))
}

/// The parts of a line in lines of this width: it ends behind a `;`, or a `,` where that is too long.
fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    let fits = |text: &str| width.is_none_or(|width| measure_text_width(text.trim_end()) <= width);
    if fits(text) {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for sentence in text.split_inclusive("; ") {
        let parts = if fits(sentence) { vec![sentence] } else { sentence.split_inclusive(", ").collect() };
        for (place, part) in parts.into_iter().enumerate() {
            match lines.last_mut() {
                Some(line) if place > 0 && fits(&format!("{line}{part}")) => line.push_str(part),
                _ => lines.push(part.to_owned()),
            }
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A number of cores: `0.04`, `0.5`, `12.3`.
fn cores(cores: f64) -> String {
    if cores > 0.0 && cores < 0.1 { format!("{cores:.2}") } else { format!("{cores:.1}") }
}

/// The ends of the strip.
fn axis(timeline: &Timeline) -> String {
    let width = timeline.all.bins.len() + 2;
    let end = timeline.start.saturating_add(timeline.length);
    let start = format!("{} s", seconds(timeline.start, timeline.length));
    let end = format!("{} s", seconds(end, timeline.length));
    let free = width.saturating_sub(start.len());
    format!("{start}{end:>free$}")
}

/// A moment in seconds, as exactly as a range of this length asks for.
fn seconds(moment: i64, length: i64) -> String {
    let seconds = moment as f64 / 1e7;
    match length {
        _ if moment == 0 => "0".to_owned(),
        ..10_000_000 => format!("{seconds:.3}"),
        10_000_000..1_000_000_000 => format!("{seconds:.2}"),
        1_000_000_000..10_000_000_000 => format!("{seconds:.1}"),
        _ => format!("{seconds:.0}"),
    }
}

/// A round time with its unit: `0.5 s`, `12 ms`.
fn round_time(time: i64) -> String {
    match time {
        1_000_000.. => format!("{} s", time as f64 / 1e7),
        1_000..1_000_000 => format!("{} ms", time as f64 / 1e4),
        _ => format!("{} us", time as f64 / 10.0),
    }
}

/// A block for each bin, as high as its share of the highest; nothing where there is nothing.
fn strip(load: &Load) -> String {
    blocks(&load.bins, load.bins.iter().copied().max().unwrap_or(0))
}

/// A character for each value: nothing to a full block, which is `full`.
pub(super) fn blocks(values: &[i64], full: i64) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = i128::from(full.max(1));
    let block = |bin: &i64| {
        if *bin <= 0 {
            return ' ';
        }
        let eighths = (i128::from(*bin) * 8 + highest / 2) / highest;
        let eighths = usize::try_from(eighths).unwrap_or(0).clamp(1, BLOCKS.len());
        BLOCKS.get(eighths - 1).copied().unwrap_or(' ')
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::{bins, cores, round_time, seconds, strip, write};
    use crate::profile::{Category, Entry, Load, Timeline};
    use crate::report::{Label, Labels};
    use crate::trace::ProcessId;

    struct Names;

    impl Labels<Entry> for Names {
        fn label(&self, entry: Entry) -> Label<'_> {
            let Entry::Process(ProcessId(id)) = entry else { panic!("{entry:?}") };
            let text = match id {
                7 => "a-process-with-a-long-name.exe (4711)".to_owned(),
                _ => format!("p{id}.exe ({id})"),
            };
            Label { text: text.into(), category: Category::Heading, inlined: false }
        }

        fn all(&self) -> &'static str {
            "all processes"
        }
    }

    const SECOND: i64 = 10_000_000;

    /// Busy bins of half a second, by how many tenths of a core.
    fn load(tenths: &[i64]) -> Load {
        let bins: Vec<i64> = tenths.iter().map(|tenths| tenths * SECOND / 20).collect();
        Load { samples: 1, total: bins.iter().sum(), bins, most: Some((SECOND, 3 * SECOND)) }
    }

    fn text(processes: &[(u32, &[i64])], width: Option<usize>) -> String {
        let processes: Vec<(ProcessId, Load)> =
            processes.iter().map(|(id, tenths)| (ProcessId(*id), load(tenths))).collect();
        let mut all = Load::default();
        for (_, load) in &processes {
            all += load;
        }
        let timeline = Timeline { start: 0, length: 4 * SECOND, bin: SECOND / 2, all, processes };
        let mut out = Vec::new();
        write(&mut out, &timeline, 8, &Names, width).unwrap();
        console::strip_ansi_codes(&String::from_utf8(out).unwrap()).into_owned()
    }

    #[test]
    fn one_process_has_one_line() {
        let is = text(&[(3, &[0, 1, 5, 10, 10, 10, 0, 0])], Some(80));
        let expected = "\
1.80 s CPU in 4.00 s, 8 CPUs; 0.5 cores on average, 1.0 in the busiest 0.5 s
process     CPU time  0 s 4.00 s  98 % within    peak
p3.exe (3)    1.80 s  │ ▁▄███  │  1.00–3.00 s     1.0
";
        assert_eq!(is, expected, "\n{is}");
    }

    #[test]
    fn small_ones_share_a_line_with_what_they_sum_up_to() {
        let small = [1, 0, 0, 0, 0, 0, 0, 0];
        let is = text(&[(7, &[20; 8]), (1, &small), (2, &small), (3, &small)], Some(100));
        let expected = "\
8.15 s CPU in 4.00 s, 8 CPUs; 2.0 cores on average, 2.3 in the busiest 0.5 s
process                           CPU time  0 s 4.00 s  98 % within    peak
all processes                       8.15 s  │█▇▇▇▇▇▇▇│  1.00–3.00 s    2.3
a-process-with…ong-name.exe (4711)  8.00 s  │████████│  1.00–3.00 s    2.0
… 3 more                          150.0 ms  │█       │  1.00–3.00 s    0.3
";
        let lines = |text: &str| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let (is_lines, expected) = (lines(&is), lines(expected));
        assert_eq!(is_lines[..3], expected[..3], "\n{is}");
        assert_eq!(is_lines[4], expected[4], "\n{is}");
        assert!(is_lines[3].contains("a-process") && is_lines[3].contains("(4711)"), "\n{is}");
    }

    #[test]
    fn narrow_lines_keep_the_process_and_its_time() {
        let is = text(&[(7, &[20; 8]), (3, &[10; 8])], Some(40));
        let expected = "\
12.00 s CPU in 4.00 s, 8 CPUs;
3.0 cores on average,
3.0 in the busiest 0.5 s
process         CPU time  0 s 4.00 s
all processes    12.00 s  │████████│
a-proc… (4711)    8.00 s  │████████│
p3.exe (3)        4.00 s  │████████│
";
        assert_eq!(is, expected, "\n{is}");
        let is = text(&[(3, &[10; 8])], Some(24));
        assert!(is.ends_with("process     CPU time\np3.exe (3)    4.00 s\n"), "\n{is}");
    }

    #[test]
    fn lines_keep_to_their_width() {
        for width in [10, 40, 60, 80, 120, 200] {
            let tenths: Vec<i64> = (0..bins(Some(width)) as i64).collect();
            let is = text(&[(7, &tenths), (1, &tenths)], Some(width));
            assert!(is.lines().all(|line| measure_text_width(line) <= width), "{width}\n{is}");
            if width >= 40 {
                assert!(!is.contains("…\n"), "nothing is cut: {width}\n{is}");
            }
        }
    }

    #[test]
    fn blocks_are_shares_of_the_highest() {
        // Eighths of 16, rounded; the least that there is has a block.
        let bins = [0, 1, 2, 3, 8, 9, 15, 16];
        assert_eq!(strip(&Load { bins: bins.to_vec(), ..Load::default() }), " ▁▁▂▄▅██");
        assert_eq!(strip(&Load { bins: vec![1, i64::MAX], ..Load::default() }), "▁█");
        assert_eq!(strip(&Load { bins: vec![0, -5], ..Load::default() }), "  ");
    }

    #[test]
    fn numbers_are_as_exact_as_they_can_be_read() {
        assert_eq!([0.0, 0.04, 0.26, 12.34].map(cores), ["0.0", "0.04", "0.3", "12.3"]);
        assert_eq!(
            [5_000_000, 500_000, 12_000_000, 2_000].map(round_time),
            ["0.5 s", "50 ms", "1.2 s", "0.2 ms"]
        );
        assert_eq!(seconds(5 * SECOND / 4, SECOND / 2), "1.250");
        assert_eq!(seconds(5 * SECOND / 4, 10 * SECOND), "1.25");
        assert_eq!(seconds(7 * SECOND / 4, 999 * SECOND), "1.8");
        assert_eq!(seconds(7 * SECOND / 4, 1000 * SECOND), "2");
        assert_eq!(seconds(0, SECOND), "0");
    }
}
