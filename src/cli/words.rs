//! The library's facts in words: what helps, with the flags of the command that was used.

use etwprof::profile::Matcher;
use etwprof::symbols::find::path::Reason;
use etwprof::symbols::verdict::{Cure, Verdict};

/// The commands that list modules without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Convert,
    /// There is no file that another command could be given.
    Live,
    Symbols,
}

/// What to do about a module without names.
pub(super) fn cure(verdict: &Verdict, command: Command) -> Option<&'static str> {
    Some(match (verdict.cure()?, command) {
        (Cure::AskServers, Command::Convert) => {
            "run without --offline, or `etwprof symbols --fetch` on a machine with a network"
        }
        (Cure::AskServers, Command::Live) => "run without --offline",
        (Cure::AskServers, Command::Symbols) => "download it with --fetch",
        (Cure::Retry, _) => "retry with --retry-failed",
        (Cure::Wait, _) => "try again later, or add another server with --symbols",
        (Cure::MoreTime, _) => "raise --symbol-timeout",
        (Cure::LogIn, _) => {
            "log in to the network with a browser, or give the server's log-in: `https://USER:PASSWORD@...`, a netrc file, or a token with --symbol-header"
        }
        (Cure::LogInToProxy, _) => "put USER:PASSWORD@ before the host in the address of the proxy",
        (Cure::OtherLogIn, _) => {
            "use a server that takes a password or a token (--symbol-header), or fetch the files with symchk and add their folder with --symbols"
        }
        (Cure::ExactBuild, _) => "get the file from this exact build",
        (Cure::FetchAgain, _) => "fetch the file again",
        (Cure::Image, Command::Live) => "add the folder of its image with --images",
        (Cure::Image, _) => {
            "merge the recording where it was made, convert it there, or add the folder of its image with --images"
        }
        (Cure::Il, _) => "add the folder of these assemblies with --images",
        (Cure::LowerShare, _) => "lower --min-module-share",
        // Also whatever is added to the library.
        (_, _) => {
            "add a folder or server that has the PDB with --symbols, or the folder of the image with --images"
        }
    })
}

/// What to write in place of an element of a symbol path that is not understood.
pub(super) fn instead(reason: Reason) -> &'static str {
    match reason {
        Reason::Library => "write `srv*FOLDER*ADDRESS` if the server can be reached by HTTP",
        Reason::Protocol | Reason::NoHost => "write `srv*FOLDER*https://HOST/PATH`",
        Reason::Malformed => "write `srv*FOLDER*https://HOST/PATH`, other characters as %20 and the like",
        Reason::At => "in a login write %2F for `/`, %40 for `@`, %2A for `*` and %3B for `;`; in a path %40",
        Reason::Query => "write the address without them, as the file's name is appended to it",
        Reason::CacheNotFolder | Reason::SeveralCaches => "write `cache*FOLDER;srv*ADDRESS`",
        // Also whatever is added to the library.
        _ => "write a folder, `srv*FOLDER*ADDRESS` or `cache*FOLDER`",
    }
}

/// A flag with each of these names, as it may be typed.
pub(super) fn flags<'m>(
    flag: &str,
    names: impl IntoIterator<Item = &'m Matcher>,
) -> impl Iterator<Item = String> {
    names.into_iter().map(move |name| self::flag(flag, name.text()))
}

/// A flag with its value, in quotes where a shell wants them.
pub(super) fn flag(flag: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.,:/\\!+@%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        format!("{flag} {value}")
    } else {
        format!("{flag} '{value}'")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;
    use etwprof::symbols::find::lookup::{Attempt, Outcome, Place};
    use etwprof::symbols::verdict::Verdict;

    use super::{Command, cure};
    use crate::cli::args::Args;

    /// A verdict for each cure.
    fn verdicts() -> Vec<Verdict> {
        let not_found = |outcome| {
            let place = Place::Name("a.pdb".to_owned());
            Verdict::NotFound { reason: Some(Attempt { place, outcome }) }
        };
        let cause = "not there".to_owned();
        vec![
            not_found(Outcome::Offline),
            not_found(Outcome::Remembered { cause, at: std::time::SystemTime::UNIX_EPOCH }),
            not_found(Outcome::Unreachable("refused".to_owned())),
            not_found(Outcome::TimeUp { after: Duration::from_secs(1) }),
            not_found(Outcome::LogIn { status: 401, schemes: vec!["Basic".to_owned()] }),
            not_found(Outcome::LogIn { status: 407, schemes: vec!["Basic".to_owned()] }),
            not_found(Outcome::LogIn { status: 401, schemes: vec!["Negotiate".to_owned()] }),
            not_found(Outcome::WrongFile { found: "1".to_owned(), wanted: "2".to_owned() }),
            not_found(Outcome::NotThere),
            Verdict::Unreadable { file: "a.pdb".to_owned(), reason: "cut".to_owned() },
            Verdict::NoId { image: None },
            Verdict::NoIl { from: "a.r2r.dll".into(), assemblies: vec!["A".to_owned()], reason: None },
            Verdict::Skipped { percent: 0.1 },
        ]
    }

    #[test]
    fn every_flag_in_a_cure_is_one_of_the_command() {
        let program = Args::command();
        for (command, name) in
            [(Command::Convert, Some("convert")), (Command::Live, None), (Command::Symbols, Some("symbols"))]
        {
            let definition = name.map_or(Some(&program), |name| program.find_subcommand(name)).unwrap();
            let mut texts = Vec::new();
            for verdict in verdicts() {
                let text = cure(&verdict, command).unwrap();
                // What follows the name of another command is that command's.
                let own = text.split('`').step_by(2).collect::<String>();
                for flag in own
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .filter_map(|w| w.strip_prefix("--"))
                {
                    assert!(
                        definition.get_arguments().any(|arg| arg.get_long() == Some(flag)),
                        "{command:?}: {text}"
                    );
                }
                texts.push(text);
            }
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), verdicts().len(), "each has its own: {texts:#?}");
        }
    }

    #[test]
    fn flags_may_be_typed() {
        assert_eq!(super::flag("--name", "orders.exe"), "--name orders.exe");
        assert_eq!(super::flag("--function", "Order*.Save"), "--function 'Order*.Save'");
        assert_eq!(super::flag("--fold-pats", ""), "--fold-pats ''");
    }
}
