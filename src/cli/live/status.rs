//! The line that tells how a recording goes, on a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use etwprof::report::count;
use etwprof::session::{Recorder, Status};
use etwprof::trace::Builder;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) struct StatusLine {
    bar: Option<ProgressBar>,
    shown: Instant,
    samples: u64,
}

/// Asking the session costs system calls.
const EVERY: Duration = Duration::from_millis(500);

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
        StatusLine { bar, shown: Instant::now(), samples: 0 }
    }

    pub(super) fn show(&mut self, recorder: &Recorder<Builder>, start: Instant) {
        let Some(bar) = &self.bar else { return };
        let passed = self.shown.elapsed();
        if passed < EVERY {
            return;
        }
        let status = recorder.status();
        let rate = (status.samples - self.samples.min(status.samples)) as f64 / passed.as_secs_f64();
        (self.shown, self.samples) = (Instant::now(), status.samples);
        bar.set_message(text(&status, start.elapsed(), rate));
        bar.tick();
    }

    /// .NET programs may take seconds to list their code: whoever asked to stop should not ask again.
    pub(super) fn stopping(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message("stopping: .NET programs list their code  Ctrl-C gives up, with no result");
            bar.tick();
        }
    }

    pub(super) fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// At most 80 columns, but for enormous figures.
fn text(status: &Status, elapsed: Duration, rate: f64) -> String {
    let losses = &status.losses;
    let lost = match (losses.events + losses.dropped, losses.buffers) {
        (0, 0) => "lost 0  Ctrl-C stops".to_owned(),
        (events, buffers) => format!("lost {} events, {} buffers", count(events), count(buffers)),
    };
    format!(
        "{} s  {} samples  {}/s  buffers {} of {}  {lost}",
        elapsed.as_secs(),
        count(status.samples),
        count(rate as u64),
        status.buffers_used,
        status.buffers
    )
}
