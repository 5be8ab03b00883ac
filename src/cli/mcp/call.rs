//! A call of a tool: from its arguments to the command's result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Arg, ArgAction, CommandFactory, Parser};
use serde_json::{Map, Value, json};

use crate::cli::args::Args;
use crate::cli::served::{self, Caught};
use crate::cli::{diff, dispatch, strict};

use super::tools::{self, Tool};

/// A result is at most about so many bytes of JSON.
const LARGEST: usize = 60_000;

/// Programs and modules that `open` lists, at most.
const PROGRAMS: usize = 15;

/// Recordings that are listed, and folders that are looked into for them, at most.
const RECORDINGS: usize = 200;
const DEEPEST: usize = 4;

/// What a recording's name ends in.
const ENDINGS: [&str; 3] = [".etl", ".etl.zip", ".diagsession"];

/// Answers calls of tools.
pub(super) struct Answers {
    folders: Vec<PathBuf>,
    /// Options of every command.
    options: Vec<OsString>,
}

impl Answers {
    /// For this thread. `folders` are as the system resolves them.
    pub(super) fn new(folders: Vec<PathBuf>, options: Vec<OsString>) -> Answers {
        served::begin(folders.clone());
        Answers { folders, options }
    }

    /// The result of a call, or why there is none.
    pub(super) fn answer(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value> {
        // Of a call that a fault ended.
        drop(served::caught());
        let tool = Tool::of(name).ok_or_else(|| anyhow!("there is no tool {name}"))?;
        let line = self.command_line(tool, arguments)?;
        let names_files = |files: &Value| !files.is_null() && *files != json!([]);
        if tool.name == "open" && !arguments.get("files").is_some_and(names_files) {
            return Ok(self.recordings());
        }
        let args = Args::try_parse_from(line).map_err(|wrong| anyhow!("{}", one_line_of(&wrong)))?;
        let result = dispatch(args);
        let Caught { printed, said } = served::caught();
        let mut warnings: Vec<String> =
            said.iter().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned).collect();
        if let Err(error) = result {
            // The table is there all the same.
            match reasons(&error).filter(|_| !printed.is_empty()) {
                Some(reasons) => warnings.extend(reasons.iter().cloned()),
                None => return Err(error),
            }
        }
        let mut value = match tool.text {
            Some(field) => json!({ field: String::from_utf8_lossy(&printed) }),
            None => serde_json::from_slice(&printed)?,
        };
        if tool.name == "open" {
            value = summary(&value);
        }
        if let Value::Object(fields) = &mut value {
            fields.insert("warnings".to_owned(), json!(warnings));
        }
        Ok(bounded(value))
    }

    /// What somebody would type.
    fn command_line(&self, tool: &Tool, arguments: &Map<String, Value>) -> Result<Vec<OsString>> {
        let definition = Args::command();
        let known = tool.arguments(&definition);
        if let Some(unknown) =
            arguments.keys().find(|name| !known.iter().any(|known| tools::name(known) == **name))
        {
            let names: Vec<String> = known.iter().map(tools::name).collect();
            bail!("{} takes no argument {unknown}; it takes {}", tool.name, names.join(", "));
        }
        let is_missing = |argument: &&Arg| {
            let value = arguments.get(&tools::name(argument));
            tool.needs(argument) && value.is_none_or(|value| value.is_null() || *value == json!([]))
        };
        if let Some(missing) = known.iter().find(is_missing) {
            bail!("{} needs the argument {}", tool.name, tools::name(missing));
        }
        let mut line: Vec<OsString> = vec!["etwprof".into(), tool.command.into()];
        line.extend(tool.always.iter().map(OsString::from));
        line.extend(self.options.iter().cloned());
        let mut positionals = Vec::new();
        for argument in &known {
            let name = tools::name(argument);
            let Some(value) = arguments.get(&name).filter(|value| !value.is_null()) else { continue };
            if argument.get_action().takes_values() {
                let values = texts(&name, value)?;
                // Of an argument that stands in a place, a second value would be that of the next one.
                if !tools::is_list(argument) && values.len() != 1 {
                    bail!("{name}: one text is expected");
                }
                for value in values {
                    let value = if is_of_files(argument) {
                        self.resolved(&value)?.into()
                    } else {
                        OsString::from(value)
                    };
                    match argument.get_long() {
                        Some(long) => {
                            let mut option = OsString::from(format!("--{long}="));
                            option.push(value);
                            line.push(option);
                        }
                        None => positionals.push(value),
                    }
                }
            } else if let (ArgAction::SetTrue, Some(long)) = (argument.get_action(), argument.get_long()) {
                match value {
                    Value::Bool(true) => line.push(format!("--{long}").into()),
                    Value::Bool(false) => {}
                    _ => bail!("{name}: true or false is expected"),
                }
            }
        }
        // What stands behind is no option, whatever it begins with.
        line.push("--".into());
        line.extend(positionals);
        Ok(line)
    }

    /// A file below one of the folders.
    fn resolved(&self, path: &str) -> Result<PathBuf> {
        if is_elsewhere(path) {
            bail!(
                "{path}: only files below the folders of the server may be opened; name one by its path from there"
            );
        }
        let candidates = self.folders.iter().map(|folder| folder.join(path));
        let found = candidates.filter(|path| path.exists()).find(|path| served::may_open(path));
        found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
            let folders: Vec<String> =
                self.folders.iter().map(|folder| folder.display().to_string()).collect();
            anyhow!("{path}: there is no such file below {}, and no other may be opened", folders.join(", "))
        })
    }

    /// The recordings below the folders.
    fn recordings(&self) -> Value {
        let mut found = Vec::new();
        for folder in &self.folders {
            collect(folder, folder, DEEPEST, &mut found);
        }
        found.sort();
        let left_out = found.len().saturating_sub(RECORDINGS);
        found.truncate(RECORDINGS);
        let rows: Vec<Value> =
            found.into_iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })).collect();
        json!({ "recordings": rows, "left_out": left_out })
    }
}

/// Lists the recordings in a folder by their paths from `top`; links are not followed.
fn collect(top: &Path, folder: &Path, depth: usize, found: &mut Vec<(String, u64)>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if kind.is_dir() && depth > 0 {
            collect(top, &path, depth - 1, found);
        } else if kind.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let relative = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            found.push((relative, entry.metadata().map_or(0, |file| file.len())));
        }
    }
}

/// True for a path to another machine or to a device. To look whether such a file exists is to ask that machine, which gets
/// to know who asks.
fn is_elsewhere(path: &str) -> bool {
    let is_separator = |c: char| matches!(c, '/' | '\\');
    let mut start = path.chars();
    let two = (start.next().is_some_and(is_separator), start.next().is_some_and(is_separator));
    // Of a drive only its own folder and those below; `C:x` is somewhere else.
    let drive = path.get(1..2) == Some(":") && !path.get(2..3).is_some_and(|c| c.starts_with(is_separator));
    two == (true, true) || cfg!(windows) && drive
}

fn is_of_files(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "files" | "before" | "after")
}

/// The values of an argument as they would be typed.
fn texts(name: &str, value: &Value) -> Result<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(anyhow!("{name}: a text is expected, or a list of texts")),
    };
    match value {
        Value::Array(all) => all.iter().map(one).collect(),
        value => one(value).map(|text| vec![text]),
    }
}

/// What makes a command fail that has its result all the same.
fn reasons(error: &anyhow::Error) -> Option<&Vec<String>> {
    let strict = error.downcast_ref().map(|strict::Strict(reasons)| reasons);
    let refused = || error.downcast_ref().map(|diff::Refused(reasons)| reasons);
    let undecided = || error.downcast_ref().map(|diff::Undecided(reasons)| reasons);
    strict.or_else(refused).or_else(undecided)
}

/// What clap says of a wrong command line, without how to use it.
fn one_line_of(wrong: &clap::Error) -> String {
    let text = wrong.to_string();
    let is_about_it = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let lines: Vec<&str> =
        text.lines().take_while(is_about_it).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// What matters first of `info --json`.
fn summary(info: &Value) -> Value {
    let programs = info["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let used = programs.iter().filter(|process| process["samples"].as_u64().unwrap_or(0) > 0);
    let programs: Vec<Value> = used
        .take(PROGRAMS)
        .map(|process| {
            json!({
                "name": process["name"], "pid": process["pid"], "samples": process["samples"],
                "command_line": process["command_line"],
            })
        })
        .collect();
    let findings = info["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let findings: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "id": finding["id"], "title": finding["title"], "program": finding["program"], "share": finding["share"],
            })
        })
        .collect();
    json!({
        "machine": info["machine"], "start_utc": info["start_utc"], "duration_seconds": info["duration_seconds"],
        "sampling_intervals": info["sampling_intervals"], "samples": info["samples"], "lost": info["lost"],
        "quality": info["quality"], "reasons": info["reasons"], "findings": findings, "processes": programs,
    })
}

/// Cuts the longest lists and texts of a result until it is small enough, wherever they are in it, and says so in `cut`.
fn bounded(mut value: Value) -> Value {
    let mut cut: BTreeMap<String, u64> = BTreeMap::new();
    while value.to_string().len() > LARGEST {
        let mut longest = None;
        find_longest(&value, String::new(), &mut longest);
        let Some((_, path)) = longest else { break };
        let Some(part) = value.pointer_mut(&path) else { break };
        let less = match part {
            Value::Array(rows) => {
                let keep = rows.len() / 2;
                let less = rows.len() - keep;
                rows.truncate(keep);
                less
            }
            Value::String(text) => {
                let keep = (0..=text.len() / 2).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                let less = text.get(keep..).unwrap_or_default().lines().count();
                text.truncate(keep);
                less
            }
            _ => break,
        };
        *cut.entry(path.trim_start_matches('/').replace('/', ".")).or_default() += less as u64;
    }
    if let (Value::Object(fields), false) = (&mut value, cut.is_empty()) {
        fields.insert("cut".to_owned(), json!(cut));
    }
    value
}

/// What of a result may be cut: lists of several, and long texts. Finds that with the most JSON, and the innermost of those
/// that hold each other.
fn find_longest(value: &Value, path: String, longest: &mut Option<(usize, String)>) {
    const LONG_TEXT: usize = 2_000;
    let size = match value {
        Value::Array(rows) if rows.len() > 1 => value.to_string().len(),
        Value::String(text) if text.len() > LONG_TEXT => text.len(),
        _ => 0,
    };
    if size > longest.as_ref().map_or(0, |(most, _)| *most) {
        *longest = Some((size, path.clone()));
    }
    // Rows are alike: what is in them goes with them, unless there is but one.
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                find_longest(value, format!("{path}/{name}"), longest);
            }
        }
        Value::Array(rows) if rows.len() == 1 => {
            rows.iter().for_each(|row| find_longest(row, format!("{path}/0"), longest));
        }
        _ => {}
    }
}
