//! The line that shows how a recording goes, on a terminal; elsewhere one line at the start and one at the end.

use std::io::IsTerminal;
use std::time::Duration;

use etwprof::session::Status;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::words::{self, Share};
use crate::cli::say;

pub(super) struct StatusLine {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl StatusLine {
    pub(super) fn new(quiet: bool) -> StatusLine {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        StatusLine { bar, quiet }
    }

    /// The recording has begun.
    pub(super) fn begin(&self, target: &str, frequency: u32, duration: Option<Duration>) {
        let text = words::recording(target, frequency, duration);
        match &self.bar {
            Some(_) => self.set(text),
            None => self.say(&text),
        }
    }

    pub(super) fn show(&self, status: &Status, share: &Share, target: &str, elapsed: Duration) {
        if self.bar.is_some() {
            self.set(words::status_line(status, share, target, elapsed));
        }
    }

    /// .NET programs list their code: whoever asked to stop should not ask again.
    pub(super) fn listing(&self, names: impl FnOnce() -> Vec<String>, events: u64) {
        if self.bar.is_some() {
            self.set(words::listing(&names(), events));
        }
    }

    pub(super) fn stopping(&self) {
        if self.bar.is_some() {
            self.set("stopping; press Ctrl-C again to abort without a result".to_owned());
        }
    }

    /// A line of its own, above.
    pub(super) fn say(&self, text: &str) {
        let say = || say::note(text);
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// The recording has ended.
    pub(super) fn done(&self, target: &str, elapsed: Duration, share: &Share) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => self.say(&words::recorded(target, elapsed, share)),
        }
    }

    fn set(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            bar.tick();
        }
    }
}
