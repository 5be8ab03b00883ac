//! `etwprof trace.etl`: a recording in the place of a command is to be converted.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::args::Args;

/// The line as it is meant: with `convert`, if its first word is no command and a recording. Options may stand before the
/// word, and what follows `--` is another program's.
pub(super) fn completed(mut line: Vec<OsString>) -> Vec<OsString> {
    let mut program = Args::command();
    program.build();
    if let Some(word) = first_word(&program, &line)
        && program.find_subcommand(word).is_none()
        && is_recording(Path::new(word))
    {
        line.insert(1, CONVERT.into());
    }
    line
}

const CONVERT: &str = "convert";

/// The first argument that is neither an option nor the value of one.
fn first_word<'l>(program: &Command, line: &'l [OsString]) -> Option<&'l OsStr> {
    let mut arguments = line.iter().skip(1);
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--" {
            return None;
        }
        match text.strip_prefix('-') {
            Some(flag) if !flag.is_empty() => {
                if takes_next(program, flag) {
                    arguments.next();
                }
            }
            _ => return Some(argument),
        }
    }
    None
}

/// True for an option, without its first dash, whose value is the next argument.
fn takes_next(program: &Command, flag: &str) -> bool {
    let takes_value = |is: &dyn Fn(&Arg) -> bool| {
        let commands = [Some(program), program.find_subcommand(CONVERT)];
        let mut options = commands.into_iter().flatten().flat_map(Command::get_arguments);
        options.any(|option| is(option) && option.get_action().takes_values())
    };
    match flag.strip_prefix('-') {
        Some(long) => takes_value(&|option| option.get_long() == Some(long)),
        // In `-qo FILE` the last one takes the next argument, `-oFILE` has its value.
        None => {
            let mut letters = flag.chars();
            let taker = letters.find(|letter| takes_value(&|option| option.get_short() == Some(*letter)));
            taker.is_some() && letters.as_str().is_empty()
        }
    }
}

/// True for what is named like a recording, and for any file that is there and no program.
fn is_recording(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    [".etl", ".zip", ".diagsession"].iter().any(|ending| name.ends_with(ending))
        || !name.ends_with(".exe") && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::completed;

    fn completed_line(line: &str) -> String {
        let words = line.split(' ').map(Into::into).collect();
        let words = completed(words).into_iter().map(|word| word.into_string().unwrap());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_recording_in_the_place_of_a_command_is_converted() {
        for (line, options) in [
            ("etwprof a.etl", "a.etl"),
            ("etwprof A.ETL.ZIP -o a.svg", "A.ETL.ZIP -o a.svg"),
            ("etwprof a.diagsession x.etl", "a.diagsession x.etl"),
            ("etwprof -q a.etl", "-q a.etl"),
            ("etwprof --name x a.etl", "--name x a.etl"),
            ("etwprof --name=x a.etl", "--name=x a.etl"),
            ("etwprof --from 2s --threads a.etl", "--from 2s --threads a.etl"),
            ("etwprof -qo out a.etl", "-qo out a.etl"),
            ("etwprof -oof a.etl", "-oof a.etl"),
            ("etwprof Cargo.toml", "Cargo.toml"),
        ] {
            assert_eq!(completed_line(line), format!("etwprof convert {options}"));
        }
    }

    #[test]
    fn every_other_line_stays_as_it_is() {
        for line in [
            "etwprof",
            "etwprof convert a.etl",
            "etwprof -q info a.etl",
            "etwprof help a.etl",
            "etwprof nonsense a.etl",
            "etwprof --pid 42",
            "etwprof --name a.etl",
            "etwprof -o a.etl --all",
            "etwprof -- a.etl",
            "etwprof --duration 2s -- app.exe a.etl",
            "etwprof app.exe",
            "etwprof -",
        ] {
            assert_eq!(completed_line(line), line);
        }
    }
}
