//! Remembers what a server did not have, so that the next run does not ask for it again.
//!
//! One small file for each key, below `.etwprof/failed` in the user's cache: a line for each server with the time of
//! the failure, the time until which it holds (both in seconds since 1970), the server and the cause, between tabs.
//! It only saves time: a file that cannot be read or written costs one more question to the server.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::cache::{Cache, OWN_FOLDER};

/// No such file of ours is longer.
const MAX_FILE: u64 = 64 * 1024;

/// A failure of an earlier run.
pub(super) struct Failure {
    pub(super) at: SystemTime,
    pub(super) cause: String,
}

/// What is remembered of `server` for this file, if it still holds.
pub(super) fn recall(cache: &Cache, name: &str, index: &str, server: &str) -> Option<Failure> {
    let now = seconds(SystemTime::now());
    lines(cache, name, index).into_iter().find_map(|line| {
        let mut fields = line.splitn(4, '\t');
        let at: u64 = fields.next()?.parse().ok()?;
        let until: u64 = fields.next()?.parse().ok()?;
        // A clock that was set back makes the failure one of the future: then ask again.
        let holds = fields.next()? == server && (at..until).contains(&now);
        let cause = fields.next()?;
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at))?;
        holds.then(|| Failure { at, cause: cause.to_owned() })
    })
}

/// Remembers for `hold` that `server` failed.
pub(super) fn remember(cache: &Cache, name: &str, index: &str, server: &str, cause: &str, hold: Duration) {
    let now = seconds(SystemTime::now());
    let cause: String = cause.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect();
    let line = format!("{now}\t{}\t{server}\t{cause}", now.saturating_add(hold.as_secs()));
    replace(cache, name, index, server, Some(line));
}

/// Forgets what was remembered of `server`: it answered.
pub(super) fn forget(cache: &Cache, name: &str, index: &str, server: &str) {
    if place(cache, name, index).exists() {
        replace(cache, name, index, server, None);
    }
}

fn replace(cache: &Cache, name: &str, index: &str, server: &str, line: Option<String>) {
    let others = lines(cache, name, index).into_iter().filter(|l| l.split('\t').nth(2) != Some(server));
    let text: String = others.chain(line).map(|line| line + "\n").collect();
    let place = place(cache, name, index);
    if text.is_empty() {
        let _ = fs::remove_file(place);
        return;
    }
    let _ = cache.begin().and_then(|mut partial| {
        partial.file()?.write_all(text.as_bytes())?;
        partial.commit(&place, &|| false)
    });
}

fn lines(cache: &Cache, name: &str, index: &str) -> Vec<String> {
    let place = place(cache, name, index);
    if !fs::metadata(&place).is_ok_and(|m| m.is_file() && m.len() <= MAX_FILE) {
        return Vec::new();
    }
    fs::read_to_string(place).map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default()
}

fn place(cache: &Cache, name: &str, index: &str) -> PathBuf {
    let mut place = cache.root().join(OWN_FOLDER);
    place.extend(["failed", name, index]);
    place
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
