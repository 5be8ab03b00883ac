//! A progress bar on stderr, for work that takes over a second on a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: std::cell::Cell<bool>,
}

/// Shorter work needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar for `total` bytes.
    pub(super) fn new(what: &'static str, total: u64, quiet: bool) -> Progress {
        let wanted = !quiet && std::io::stderr().is_terminal();
        let bar = if wanted { ProgressBar::new(total) } else { ProgressBar::hidden() };
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Progress { bar, start: Instant::now(), shown: std::cell::Cell::new(!wanted) }
    }

    /// `done` bytes are behind us.
    pub(super) fn at(&self, done: u64) {
        if !self.shown.get() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            self.shown.set(true);
        }
        self.bar.set_position(done);
    }

    /// Clears the bar.
    pub(super) fn done(&self) {
        self.bar.finish_and_clear();
    }
}
