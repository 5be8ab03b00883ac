//! The tools: commands of this program, with the options that an assistant may choose.

use clap::{Arg, ArgAction, Command as Definition, CommandFactory};
use serde_json::{Map, Value, json};

use crate::cli::args::Args;

/// A tool.
pub(super) struct Tool {
    /// Its name.
    pub(super) name: &'static str,
    /// The command that answers.
    pub(super) command: &'static str,
    /// What it is for.
    about: &'static str,
    /// What the command is given besides.
    pub(super) always: &'static [&'static str],
    /// The result is text, and stands in a field of this name.
    pub(super) text: Option<&'static str>,
}

/// All of them.
pub(super) const TOOLS: [Tool; 16] = [
    Tool {
        name: "open",
        command: "info",
        about: "Open a recording of CPU samples (an .etl file, .etl.zip or .diagsession). Begin with this one: machine, duration, \
                samples, the programs that used CPU time, data quality, and what stands out. Without files, list the recordings \
                that can be opened.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "info",
        command: "info",
        about: "All that is known of a recording: files, clock, account of all samples, losses, every process, every module \
                with what became of its symbols.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "findings",
        command: "findings",
        about: "What an expert would notice first in a recording: findings, each with its evidence and advice, and the data \
                quality in one word.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "gc",
        command: "gc",
        about: "The garbage collections of each .NET runtime: how many, by generation and reason, how long the program stood \
                still for them, and what it allocated by type. `rows` limits the collections, those with the longest pauses.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "jit",
        command: "jit",
        about: "The methods that each .NET runtime compiled at run time: how many, by tier, how long that took, and the \
                slowest. `rows` limits the methods.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "top",
        command: "top",
        about: "The functions, modules, processes, threads, kinds of code or source lines with the most CPU samples. `exclusive` \
                counts samples in the row itself, `inclusive` also those in what it called.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "callers",
        command: "callers",
        about: "What called a function, by samples. The function is its name as `top` lists it, or a pattern (`*`, `/regex/`).",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "callees",
        command: "callees",
        about: "What a function called, by samples. The function is its name as `top` lists it, or a pattern.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "lines",
        command: "lines",
        about: "The source lines of a function, with their samples, where its symbols have lines.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "tree",
        command: "convert",
        about: "The call tree as text: callers above what they called, with inclusive and exclusive share and time. Narrow it by \
                process, function, module, min_percent or max_depth.",
        always: &["-f", "tree", "--width", "140"],
        text: Some("tree"),
    },
    Tool {
        name: "threads",
        command: "threads",
        about: "How long each thread ran, was ready without a processor, and was blocked. Only for recordings with context \
                switches.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "waits",
        command: "waits",
        about: "The longest waits: where a thread slept, who made it ready, and what the waking thread had been waiting for. \
                Only for recordings with context switches.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "timeline",
        command: "timeline",
        about: "What threads and processes did in equal slots of time: CPU by samples, running, ready and blocked by context \
                switches, and pauses for garbage collections.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "disk",
        command: "disk",
        about: "Disk I/O and hard faults by file, process, thread, disk or kind: how often, how many bytes, how long. Only for \
                recordings with disk events.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "interrupts",
        command: "interrupts",
        about: "Interrupts and DPCs by driver routine, module, processor or kind: how many, how long, the longest. Only for \
                recordings with these events.",
        always: &["--json"],
        text: None,
    },
    Tool {
        name: "diff",
        command: "diff",
        about: "What changed between two recordings: functions that got slower or faster by more than chance explains.",
        always: &["--json"],
        text: None,
    },
];

/// What the options of an assistant stand under in the help.
const CHOSEN: [&str; 8] =
    ["Table", "Metric", "Stacks", "Filters", "Names", "Call tree", "Comparison", "Broken stacks"];

/// Of these, what makes another kind of result, reads other files, or costs without a limit.
const LEFT_OUT: [&str; 9] =
    ["addresses", "csv", "format", "json", "legend", "lines", "source", "threads", "width"];

/// True for an option that says where symbols come from.
pub(super) fn is_of_symbols(argument: &Arg) -> bool {
    argument.get_help_heading() == Some("Symbols")
}

impl Tool {
    /// The tool of a name.
    pub(super) fn of(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// What the command takes of what an assistant may choose, in the order of its command line.
    pub(super) fn arguments(&self, definition: &Definition) -> Vec<Arg> {
        let command = definition.find_subcommand(self.command);
        let all = command.into_iter().flat_map(Definition::get_arguments);
        let is_chosen = |argument: &&Arg| {
            let heading = argument.get_help_heading();
            argument.is_positional()
                || heading.is_some_and(|heading| CHOSEN.contains(&heading))
                    && argument.get_long().is_some_and(|long| !LEFT_OUT.contains(&long))
        };
        all.filter(is_chosen).cloned().collect()
    }

    /// True for an argument without which there is no answer.
    pub(super) fn needs(&self, argument: &Arg) -> bool {
        argument.is_required_set() && self.name != "open"
    }

    /// The tool as the protocol has it.
    pub(super) fn definition(&self) -> rmcp::model::Tool {
        let definition = Args::command();
        let arguments = self.arguments(&definition);
        let properties: Map<String, Value> =
            arguments.iter().map(|argument| (name(argument), schema(argument))).collect();
        let required: Vec<String> =
            arguments.iter().filter(|argument| self.needs(argument)).map(name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        // Symbols may come from servers.
        let hints = rmcp::model::ToolAnnotations::new().read_only(true).open_world(true);
        rmcp::model::Tool::new(self.name, self.about, schema).with_annotations(hints)
    }
}

/// What an argument is called: as its option, with `_`.
pub(super) fn name(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => long.replace('-', "_"),
        None if argument.get_id() == "wanted" => "function_name".to_owned(),
        None => argument.get_id().to_string(),
    }
}

/// True for an argument that may be given several times.
pub(super) fn is_list(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|count| count.max_values() > 1)
}

/// What a value is in JSON.
fn type_of(argument: &Arg) -> &'static str {
    match name(argument).as_str() {
        "pid" | "tid" | "rows" | "max_depth" => "integer",
        "min_percent" => "number",
        _ => "string",
    }
}

fn schema(argument: &Arg) -> Value {
    let about = argument.get_help().map(ToString::to_string);
    let mut schema = Map::new();
    let values: Vec<String> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let mut one = Map::from_iter([("type".to_owned(), json!(type_of(argument)))]);
    if !values.is_empty() && !matches!(argument.get_action(), ArgAction::SetTrue) {
        one.insert("enum".to_owned(), json!(values));
    }
    match argument.get_action() {
        ArgAction::SetTrue => {
            schema.insert("type".to_owned(), json!("boolean"));
        }
        _ if is_list(argument) => {
            schema.insert("type".to_owned(), json!("array"));
            schema.insert("items".to_owned(), Value::Object(one));
        }
        _ => schema.extend(one),
    }
    schema.insert("description".to_owned(), json!(about.unwrap_or_default()));
    Value::Object(schema)
}
