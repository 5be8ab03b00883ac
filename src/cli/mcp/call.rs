//! A call of a tool: from its arguments to the command's result.

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
        if tool.name == "open" && arguments.get("files").is_none_or(|files| *files == json!([])) {
            return Ok(self.recordings());
        }
        let line = self.command_line(tool, arguments)?;
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
        let mut line: Vec<OsString> = vec!["etwprof".into(), tool.command.into()];
        line.extend(tool.always.iter().map(OsString::from));
        line.extend(self.options.iter().cloned());
        let mut positionals = Vec::new();
        for argument in &known {
            let name = tools::name(argument);
            let Some(value) = arguments.get(&name).filter(|value| !value.is_null()) else { continue };
            if argument.get_action().takes_values() {
                for value in texts(&name, value)? {
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

/// Cuts the longest lists of a result until it is small enough, and says so in `cut`.
fn bounded(mut value: Value) -> Value {
    let mut cut = Map::new();
    while value.to_string().len() > LARGEST {
        let Value::Object(fields) = &mut value else { break };
        let size = |value: &Value| match value {
            Value::Array(rows) if rows.len() > 1 => value.to_string().len(),
            Value::String(text) => text.len(),
            _ => 0,
        };
        let Some((name, longest)) = fields.iter_mut().max_by_key(|(_, value)| size(value)) else { break };
        match longest {
            Value::Array(rows) if rows.len() > 1 => {
                let keep = rows.len() / 2;
                let before = cut.get(name).and_then(Value::as_u64).unwrap_or(0);
                cut.insert(name.clone(), json!(before + (rows.len() - keep) as u64));
                rows.truncate(keep);
            }
            Value::String(text) => {
                let keep = (0..=LARGEST / 2).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                let lines = text.get(keep..).unwrap_or_default().lines().count();
                cut.insert(name.clone(), json!(lines));
                text.truncate(keep);
            }
            _ => break,
        }
    }
    if let (Value::Object(fields), false) = (&mut value, cut.is_empty()) {
        fields.insert("cut".to_owned(), Value::Object(cut));
    }
    value
}
