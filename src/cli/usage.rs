//! A wrong command line, whoever finds out: clap, or a command before or while it works.

use std::io;
use std::path::Path;

use anyhow::anyhow;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use etwprof::etl::EtlError;

use super::args::Args;

/// What was typed is wrong in a way that clap does not see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// True if the cause is what was typed, and not the work: a name for which there is no file counts as typed wrong.
pub(super) fn is_wrong_line(error: &anyhow::Error) -> bool {
    error.is::<Usage>()
        || match error.downcast_ref() {
            Some(EtlError::Open { cause, .. }) => is_wrong_name(cause),
            Some(EtlError::Twice { .. } | EtlError::Nothing) => true,
            _ => false,
        }
}

fn is_wrong_name(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}

/// Why something cannot be done with a file or program that was named.
pub(super) fn cannot(act: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    let reason = match error.kind() {
        // With more to say than the system's code has words for.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some() => error.to_string(),
        io::ErrorKind::NotFound if act == "open" => "there is no such file".to_owned(),
        io::ErrorKind::NotFound if act.starts_with("write") => "there is no such folder".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    };
    let text = format!("cannot {act} {}: {reason}", path.display());
    if is_wrong_name(error) { Usage(text).into() } else { anyhow!(text) }
}

/// clap's complaint, with tips that help.
pub(super) fn mended(mut error: clap::Error) -> clap::Error {
    // "To pass '--x' as a value, use '-- --x'": what is meant is an option that does not exist.
    error.remove(ContextKind::Suggested);
    // A short name resembles too much: `--to` is no help to whoever looks for `--top`. A name of another length is
    // another name: `--no-fold` is none to whoever typed `--no-such-flag`.
    const SHORT: usize = "--tid".len();
    const TYPOS: usize = 3;
    let typed = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.len(),
        _ => 0,
    };
    let is_another = |name: &String| name.len() <= SHORT || name.len().abs_diff(typed) > TYPOS;
    let is_no_help = |value: &ContextValue| match value {
        ContextValue::String(name) => is_another(name),
        ContextValue::Strings(names) => names.iter().all(is_another),
        _ => false,
    };
    if error.get(ContextKind::SuggestedArg).is_some_and(is_no_help) {
        error.remove(ContextKind::SuggestedArg);
        // It is made of the suggestion.
        error.remove(ContextKind::Usage);
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip(word)
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// What was probably meant by a word that is no command.
fn tip(word: &str) -> Option<String> {
    if word.starts_with('-') {
        None
    } else if word.to_ascii_lowercase().ends_with(".exe") {
        Some(format!("to run a program and profile it, use 'etwprof -- {word}'"))
    } else {
        let program = Args::command();
        let names = program.get_subcommands().map(clap::Command::get_name).chain(["help"]);
        let alike = names.map(|name| (differences(word, name), name)).min();
        let (_, name) = alike.filter(|(differences, name)| differences * 3 <= name.len())?;
        Some(format!("a similar command exists: '{name}'"))
    }
}

/// How many letters of one word must be added, dropped or replaced to get the other.
pub(super) fn differences(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    // By how much of `other` is compared.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut left = place + 1;
        let mut above_left = std::mem::replace(&mut row, vec![left]).into_iter();
        let mut diagonal = above_left.next().unwrap_or_default();
        for (above, expected) in above_left.zip(&other) {
            left = (diagonal + usize::from(letter != *expected)).min(above + 1).min(left + 1);
            diagonal = above;
            row.push(left);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn differences_are_counted_by_letters() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "info", 4),
            ("info", "info", 0),
            ("inf", "info", 1),
            ("infos", "info", 1),
            ("imfo", "info", 1),
            ("covnert", "convert", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(differences(one, other), expected, "{one} {other}");
            assert_eq!(differences(other, one), expected, "{other} {one}");
        }
    }
}
