//! The formats that a profile can be written in: each is a [`Format`] in a file of its own, and all are in [`ALL`]. Help,
//! the endings of files and the tables of the documentation follow from it.

use std::io::{self, Write};

use crate::analysis::Analysis;
use crate::profile::{Arranged, Entry, Frame, Grouping, Moment, Profile, Shape, Timeline};

use super::spelling::Spelling;
use super::{console, flamegraph, folded, tree_data};
#[cfg(feature = "viewers")]
use super::{page, viewers};

/// Every format, in the order of help and documentation.
pub const ALL: &[&Format] = &[
    &console::FORMAT,
    &flamegraph::FORMAT,
    #[cfg(feature = "flamegraph")]
    &flamegraph::classic::FORMAT,
    #[cfg(feature = "viewers")]
    &page::FORMAT,
    #[cfg(feature = "viewers")]
    &viewers::firefox::FORMAT,
    #[cfg(feature = "viewers")]
    &viewers::speedscope::FORMAT,
    #[cfg(feature = "viewers")]
    &viewers::pprof::FORMAT,
    #[cfg(feature = "viewers")]
    &viewers::perfview::FORMAT,
    #[cfg(feature = "viewers")]
    &viewers::otlp::FORMAT,
    &folded::FORMAT,
    &tree_data::JSON,
    &tree_data::CSV,
];

/// A form in which a profile can be written.
#[derive(Debug)]
pub struct Format {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How its files end, the usual ending first.
    pub endings: &'static [&'static str],
    /// What it is, in a few words.
    pub about: &'static str,
    /// What opens it; empty for what people and scripts read as it is.
    pub viewers: &'static str,
    /// What its bytes are.
    pub content: Content,
    /// What stands above the code.
    pub tops: Tops,
    /// What it needs to know.
    pub needs: Needs,
    /// Writes a picture. The same picture gives the same bytes.
    pub write: fn(&mut dyn Write, &Picture<'_>) -> io::Result<()>,
}

/// What the bytes of a format are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text with ANSI styles, which only a terminal wants.
    Styled,
    /// Text.
    Plain,
    /// No text.
    Binary,
}

/// What stands above the code in the tree of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tops {
    /// What was asked for.
    AsAsked,
    /// Neither processes nor threads: the format has its own place for them.
    Code,
    /// Processes and threads always.
    Threads,
}

impl Tops {
    /// What stands above the code where `asked` was asked for.
    pub fn grouping(self, asked: Grouping) -> Grouping {
        match (self, asked) {
            (Tops::Code, Grouping::Process | Grouping::Thread) => Grouping::None,
            (Tops::Threads, _) => Grouping::Thread,
            (_, asked) => asked,
        }
    }
}

/// What a format needs to know of a profile, beyond the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Where each sample ends in the tree: [`Arranged::ends`].
    pub ends: bool,
    /// That values are CPU time: its readers take them for that.
    pub cpu_time: bool,
    /// The source lines of frames, in nodes of their own: [`Detail::lines`](crate::profile::Detail::lines). The labels
    /// do not show them.
    pub lines: bool,
    /// Which instruction of its image a frame is at, and how well its code was compiled, in nodes of their own:
    /// [`Detail::addresses`](crate::profile::Detail::addresses) and [`Detail::tiers`](crate::profile::Detail::tiers). The
    /// labels show neither.
    pub code: bool,
    /// What threads waited for: context switches are kept ([`Keep`](crate::trace::Keep)).
    pub waits: bool,
}

impl Needs {
    /// The tree alone.
    pub const NOTHING: Needs =
        Needs { ends: false, cpu_time: false, lines: false, code: false, waits: false };
}

/// A profile as it is to be shown.
pub struct Picture<'a> {
    /// The recording, and what was made of it.
    pub analysis: &'a Analysis,
    /// The shape of the tree.
    pub shape: &'a Shape,
    /// The tree.
    pub arranged: &'a Arranged,
    /// How its entries read.
    pub labels: &'a Spelling<'a>,
    /// What was recorded: the name of a file, or of what ran.
    pub title: &'a str,
    /// The range of time that was chosen.
    pub range: (Option<Moment>, Option<Moment>),
    /// What else was chosen, in words; empty for the whole recording.
    pub chosen: &'a str,
    /// How a console shows a tree.
    pub console: console::Options,
    /// Gives the same samples in another shape.
    pub arrange: &'a dyn Fn(&Shape) -> Arranged,
}

impl<'a> Picture<'a> {
    /// The samples.
    pub fn profile(&self) -> &'a Profile {
        &self.analysis.profile
    }

    /// The samples of the tree over time, in so many bins at most.
    pub fn timeline(&self, most_bins: usize) -> Timeline {
        Timeline::new(self.profile(), &self.arranged.left_out, self.range, most_bins)
    }

    /// The frame of an entry that is at one place; `None` where it stands for several, as all do that patterns have
    /// merged by their names.
    pub fn place(&self, entry: Entry) -> Option<&'a Frame> {
        match entry {
            Entry::Frame(frame) if self.shape.patterns.is_none() => self.profile().stacks.frame(frame),
            _ => None,
        }
    }

    /// What was recorded: a process, if there is but one, or the recording.
    pub fn subject(&self, timeline: &Timeline) -> String {
        match timeline.processes.as_slice() {
            [(process, _)] => {
                let process = self.labels.text(Entry::Process(*process));
                // A live recording is named by its process already.
                match self.analysis.recording {
                    Some(_) => format!("{process} in {}", self.title),
                    None => process,
                }
            }
            _ => self.title.to_owned(),
        }
    }
}

impl Format {
    /// The format of this name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        ALL.iter().copied().find(|format| format.name == name)
    }

    /// The format whose ending the name of a file has, whatever the case; of several the longest.
    pub fn by_ending(file: &str) -> Option<&'static Format> {
        let file = file.to_ascii_lowercase();
        let length = |format: &Format| {
            let endings = format.endings.iter().filter(|ending| file.ends_with(&ending.to_ascii_lowercase()));
            endings.map(|ending| ending.len()).max()
        };
        ALL.iter().copied().filter(|format| length(format).is_some()).max_by_key(|format| length(format))
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Format};

    #[test]
    fn the_longest_ending_counts() {
        let name = |file| Format::by_ending(file).map(|format| format.name);
        assert_eq!(name("a.json"), Some("json"));
        assert_eq!(name("a.JSON.gz"), Some("firefox"));
        assert_eq!(name("a.speedscope.json"), Some("speedscope"));
        assert_eq!(name("a.perfView.xml.zip"), Some("perfview"));
        assert_eq!(name("a.flame.svg"), Some("flame"));
        assert_eq!(name("a.doc"), None);
    }

    #[test]
    fn no_two_formats_share_a_name_or_an_ending() {
        let mut all: Vec<&str> = ALL.iter().flat_map(|format| format.endings).copied().collect();
        all.extend(ALL.iter().map(|format| format.name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
