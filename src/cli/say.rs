//! What is said on stderr. Names in it come from files that nobody vouches for, so no text reaches a terminal as it is.

use std::fmt::Display;
use std::io::Write;

use etwprof::report::one_line;

use super::{args, served};

/// A line of the account.
pub(super) fn note(text: impl Display) {
    line(&one_line(&text.to_string()));
}

/// The result is less than it could be.
pub(super) fn warning(text: impl Display) {
    note(format_args!("warning: {text}"));
}

/// What was asked of a live recording cannot be done, and the recording is nowhere else: all of it is shown.
pub(super) fn all_is_shown(error: &anyhow::Error) {
    warning(format_args!("{error:#}; all that was recorded is shown"));
}

/// There is no result. Each line of `text` is one.
pub(super) fn error(text: &str) {
    let lines: Vec<_> = text.lines().map(one_line).collect();
    line(&format!("{}error:{} {}", args::ERROR, args::ERROR.render_reset(), lines.join("\n")));
}

/// Where stderr takes nothing, the result and the exit code are all there is.
fn line(text: &str) {
    if !served::say(text) {
        let _said_or_not = writeln!(anstream::stderr(), "{text}");
    }
}
