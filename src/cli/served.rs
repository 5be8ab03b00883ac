//! What is different while commands answer an assistant: what they print and say is caught, recordings stay read, and only
//! files in the folders of the server are opened.
//!
//! One thread answers, one question at a time, so all of this belongs to that thread. Elsewhere nothing is caught.

// The initializer is `const`; clippy does not see that on Windows with GNU tools.
#![allow(clippy::missing_const_for_thread_local)]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use etwprof::Analysis;

/// Recordings that stay read: those asked last.
const KEPT: usize = 4;

#[derive(Default)]
struct State {
    folders: Vec<PathBuf>,
    caught: Caught,
    /// The one asked last at the end.
    kept: Vec<(String, Analysis)>,
}

/// What a command printed and said.
#[derive(Debug, Default)]
pub(super) struct Caught {
    /// What would be on stdout, without styles.
    pub(super) printed: Vec<u8>,
    /// The lines on stderr.
    pub(super) said: Vec<String>,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

fn with<T>(ask: impl FnOnce(&mut State) -> T) -> Option<T> {
    STATE.with_borrow_mut(|state| state.as_mut().map(ask))
}

/// From now on this thread answers. `folders` are as the system resolves them.
pub(super) fn begin(folders: Vec<PathBuf>) {
    STATE.set(Some(State { folders, ..State::default() }));
}

/// What was printed and said since the last call.
pub(super) fn caught() -> Caught {
    with(|state| std::mem::take(&mut state.caught)).unwrap_or_default()
}

/// True on the thread that answers.
pub(super) fn is_on() -> bool {
    with(|_| ()).is_some()
}

/// Catches what would be printed.
pub(super) fn print(text: &[u8]) {
    with(|state| state.caught.printed.extend_from_slice(text));
}

/// Catches a line that would be on stderr; false if nobody does.
pub(super) fn say(line: &str) -> bool {
    with(|state| state.caught.said.push(line.to_owned())).is_some()
}

/// Whether a file may be opened: any, but for the server only those in its folders.
pub(super) fn may_open(path: &Path) -> bool {
    let is_inside = |state: &mut State| {
        let resolved = path.canonicalize();
        resolved.is_ok_and(|path| state.folders.iter().any(|folder| path.starts_with(folder)))
    };
    with(is_inside).unwrap_or(true)
}

/// The analysis of `key`, which `read` makes if it is not kept.
pub(super) fn kept(
    key: impl FnOnce() -> String,
    read: impl FnOnce() -> Result<Analysis>,
) -> Result<Analysis> {
    if !is_on() {
        return read();
    }
    let key = key();
    let known = with(|state| {
        let place = state.kept.iter().position(|(known, _)| *known == key)?;
        let known = state.kept.remove(place);
        state.kept.push(known);
        state.kept.last().map(|(_, analysis)| analysis.clone())
    });
    if let Some(known) = known.flatten() {
        return Ok(known);
    }
    let mut analysis = read()?;
    // Windows lets nobody replace a file that is mapped.
    let recording = analysis.recording.take().and_then(Arc::into_inner);
    analysis.recording = recording.map(|recording| Arc::new(recording.closed()));
    with(|state| {
        state.kept.push((key, analysis.clone()));
        let over = state.kept.len().saturating_sub(KEPT);
        state.kept.drain(..over);
    });
    Ok(analysis)
}
