//! How far the work is, on stderr: a bar for what takes over a second on a terminal, lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use etwprof::analysis;
use etwprof::report::{bytes, count, one_line};
use etwprof::symbols;
use etwprof::{Options, SymbolOptions};
use indicatif::{ProgressBar, ProgressStyle};

use super::symbols::Talk;

struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

/// Shorter work needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar for `total` bytes.
    fn new(what: &'static str, total: u64, quiet: bool) -> Progress {
        let wanted = !quiet && std::io::stderr().is_terminal();
        let bar = if wanted { ProgressBar::new(total) } else { ProgressBar::hidden() };
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Progress { bar, start: Instant::now(), shown: AtomicBool::new(!wanted) }
    }

    /// `done` bytes are behind us.
    fn at(&self, done: u64) {
        if !self.shown.load(Ordering::Relaxed) && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            self.shown.store(true, Ordering::Relaxed);
        }
        self.bar.set_position(done);
    }

    /// Clears the bar.
    fn done(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far an analysis is.
pub(super) struct Watch {
    quiet: bool,
    reading: OnceLock<Progress>,
    talk: Talk,
}

impl Watch {
    pub(super) fn new(options: &Options, quiet: bool) -> Watch {
        let talk = match &options.symbols {
            Some(SymbolOptions { path, store, .. }) => Talk::new(path, store.offline, quiet),
            None => Talk::silent(),
        };
        Watch { quiet, reading: OnceLock::new(), talk }
    }

    /// For when a recording is read and nothing is looked for.
    pub(super) fn reading(quiet: bool) -> Watch {
        Watch { quiet, reading: OnceLock::new(), talk: Talk::silent() }
    }
}

impl analysis::Progress for Watch {
    fn read(&self, bytes: u64, of: u64) {
        self.reading.get_or_init(|| Progress::new("reading", of, self.quiet)).at(bytes);
    }

    fn read_all(&self) {
        if let Some(bar) = self.reading.get() {
            bar.done();
        }
    }

    fn symbols(&self, file: &str, state: symbols::Progress<'_>) {
        self.talk.on(file, state);
    }

    fn symbols_done(&self) {
        self.talk.done();
    }
}

/// Where there is no bar, a line says now and then how far the downloads are: after five seconds, and each time that they
/// took twice as long.
pub(super) struct Lines {
    begun: Option<Instant>,
    next: Duration,
    looked_for: u64,
    /// Bytes of each file that is on its way, and of those that came.
    coming: BTreeMap<String, u64>,
    came: u64,
}

impl Lines {
    pub(super) fn new() -> Lines {
        let next = Duration::from_secs(5);
        Lines { begun: None, next, looked_for: 0, coming: BTreeMap::new(), came: 0 }
    }

    /// The line for which it is time. Something happens all the time: bytes come, or the wait for them is reported.
    pub(super) fn line(&mut self, name: &str, state: &symbols::Progress<'_>, now: Instant) -> Option<String> {
        match state {
            symbols::Progress::Receiving { bytes, .. } => {
                self.begun.get_or_insert(now);
                self.coming.insert(name.to_owned(), *bytes);
            }
            symbols::Progress::Finished(lookup) => {
                let size = self.coming.remove(name).unwrap_or_default();
                self.looked_for += 1;
                self.came += if lookup.found.is_some() { size } else { 0 };
            }
            _ => {}
        }
        let passed = now.saturating_duration_since(self.begun?);
        if passed < self.next {
            return None;
        }
        self.next = passed * 2;
        let came = self.came + self.coming.values().sum::<u64>();
        let (seconds, files, size) = (passed.as_secs(), count(self.looked_for), bytes(came));
        let waiting = match state {
            symbols::Progress::Waiting { server, seconds } => {
                format!("; waiting for {}: no answer for {seconds} s", one_line(server))
            }
            _ => String::new(),
        };
        Some(format!("looking for symbols for {seconds} s: {files} done, {size} downloaded{waiting}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use etwprof::symbols::{Lookup, Progress};

    use super::Lines;

    #[test]
    fn a_line_after_five_seconds_and_then_more_and_more_rarely() {
        let (begun, mut lines) = (Instant::now(), Lines::new());
        let lookup = Lookup::default();
        let coming = |bytes| Progress::Receiving { bytes, total: None };
        let waiting = Progress::Waiting { server: "http://a", seconds: 7 };
        let mut line = |second: u64, file: &str, state: Progress<'_>| {
            lines.line(file, &state, begun + Duration::from_secs(second))
        };
        assert_eq!(line(0, "a.pdb", Progress::Finished(&lookup)), None, "on this machine");
        assert_eq!(line(100, "b.pdb", coming(0)), None, "the first download begins");
        assert_eq!(line(104, "b.pdb", coming(2048)), None);
        let text = "looking for symbols for 6 s: 1 done, 2.0 KiB downloaded";
        assert_eq!(line(106, "c.pdb", coming(0)).as_deref(), Some(text));
        assert_eq!(line(111, "b.pdb", coming(4096)), None);
        let text = "looking for symbols for 12 s: 1 done, 4.0 KiB downloaded; waiting for http://a: no answer for 7 s";
        assert_eq!(line(112, "b.pdb", waiting).as_deref(), Some(text));
        assert_eq!(line(123, "b.pdb", Progress::Finished(&lookup)), None);
    }
}
