//! How the facts of a profile read.
//!
//! `module!function`, `module!~function` for one that is only the nearest name, `module!0xRVA` without a symbol,
//! `0xADDRESS` without a module. Names of native functions are short ([`short_name`]). Which readable form of a .NET
//! method is enough depends on the other methods of its module. Those of the whole trace count, shown or not: a method
//! has one name, whatever samples are kept.

use std::borrow::Cow;
use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::compare::stable;
use crate::event::NO_ID;
use crate::profile::{
    Category, Detail, Entry, Frame, FrameId, Function, Group, GroupId, Line, Nameless, Profile, Remark,
    Unresolved,
};
use crate::symbols::{Certainty, FunctionName, RawName, distinct, short_name};
use crate::trace::code::{BodyKind, MethodName, outer_type};
use crate::trace::{ProcessId, Trace};
use crate::winpath::file_name;

use super::label::{Label, Labels};

/// Spells the entries of a profile's call trees.
#[derive(Clone, Debug)]
pub struct Spelling<'p> {
    profile: &'p Profile,
    detail: Detail,
    /// The readable names of .NET methods and of native functions, by function; of those that read otherwise than their
    /// facts.
    readable: FxHashMap<usize, String>,
    /// Names of threads by process id and thread id, of those that have one.
    threads: FxHashMap<(u32, u32), &'p str>,
    groups: Vec<Group>,
}

impl<'p> Spelling<'p> {
    /// Spells what `profile` has, in this detail.
    pub fn new(profile: &'p Profile, detail: Detail) -> Spelling<'p> {
        let readable = if detail.raw { FxHashMap::default() } else { readable(profile, detail.parameters) };
        // Of several threads that had the ids, the first gives the name.
        let named = profile.trace.threads.iter().rev().filter(|thread| !thread.name.is_empty());
        let threads = named.map(|thread| ((thread.pid, thread.tid), thread.name.as_str())).collect();
        Spelling { profile, detail, readable, threads, groups: Vec::new() }
    }

    /// Spells what was arranged with these groups too.
    pub fn with_groups(self, groups: &[Group]) -> Spelling<'p> {
        Spelling { groups: groups.to_vec(), ..self }
    }

    /// The text of an entry.
    pub fn text(&self, entry: Entry) -> String {
        match entry {
            Entry::Process(process) => process_text(&self.profile.trace, process),
            Entry::Thread(process, tid) => self.thread_text(process, tid),
            Entry::Remark(remark) => self.remark_text(remark).into_owned(),
            Entry::Frame(frame) => self.frame_text(frame),
            Entry::Group(group) => self.group_text(group),
            Entry::Unnamed(frame) => match self.profile.stacks.frame(frame) {
                Some(frame) if frame.module.is_none() => "?!?".to_owned(),
                Some(frame) => format!("{}!?", self.image_name(frame)),
                None => String::new(),
            },
        }
    }

    fn remark_text(&self, remark: Remark) -> Cow<'static, str> {
        let name = match remark {
            Remark::Allocated(name) => self.profile.trace.kept.types.get(name as usize),
            _ => None,
        };
        name.map_or(remark.text().into(), |name| format!("[{name}]").into())
    }

    /// `NAME`, or `NAME <<module!function>>` by the frame that it was entered by.
    fn group_text(&self, id: GroupId) -> String {
        match self.groups.get(id.0 as usize) {
            // A group is entered by what is none.
            Some(Group { name, entry: Some(entry), .. }) if !matches!(entry, Entry::Group(_)) => {
                format!("{name} <<{}>>", self.text(*entry))
            }
            Some(group) => group.name.to_string(),
            None => String::new(),
        }
    }

    fn thread_text(&self, process: ProcessId, tid: u32) -> String {
        let pid = self.profile.trace.process(process).map_or(NO_ID, |process| process.pid);
        match self.threads.get(&(pid, tid)) {
            Some(name) => format!("thread {tid} {name}"),
            None if tid == NO_ID => "any thread".to_owned(),
            None => format!("thread {tid}"),
        }
    }

    fn frame_text(&self, id: FrameId) -> String {
        let Some(frame) = self.profile.stacks.frame(id) else { return String::new() };
        match self.profile.stacks.function_of(frame) {
            Some(Function { name: FunctionName::Start(_), .. }) | None
                if self.detail.nameless == Nameless::ByAddress =>
            {
                self.address_text(frame)
            }
            None => self.address_text(frame),
            Some(function) => self.function_text(frame, function),
        }
    }

    fn address_text(&self, frame: &Frame) -> String {
        match frame.module {
            Some(_) => format!("{}!0x{:x}", self.image_name(frame), frame.address),
            None => format!("0x{:x}", frame.address),
        }
    }

    /// `module!~[tier]name (shared) (file:line)`.
    fn function_text(&self, frame: &Frame, function: &Function) -> String {
        let mut text = String::new();
        if !function.module.is_empty() || frame.module.is_some() && !frame.category.is_managed() {
            text.push_str(&function.module);
            text.push('!');
        }
        if frame.certainty == Certainty::Nearest {
            text.push('~');
        }
        if let Some(tier) = frame.tier.filter(|_| self.detail.tiers) {
            // Writing to a string does not fail.
            let _ = write!(text, "[{}]", tier.text());
        }
        let readable = frame.function.and_then(|id| self.readable.get(&(id.0 as usize)));
        let _ = match (&function.name, readable) {
            (_, Some(readable)) => write!(text, "{readable}"),
            (FunctionName::Text(name) | FunctionName::Native(name), _) => write!(text, "{name}"),
            (FunctionName::Method(name), _) => write!(text, "{name}"),
            (FunctionName::Token(token), _) => write!(text, "method 0x{token:08x}"),
            (FunctionName::Start(rva), _) => write!(text, "sub_{rva:x}"),
        };
        if frame.certainty == Certainty::Shared {
            text.push_str(" (shared)");
        }
        if let Some(line) = frame.line.as_ref().filter(|_| self.detail.lines) {
            let _ = write!(text, " ({}:{})", file_name(&line.file), line.line);
        }
        text
    }

    /// The module that the text of an entry begins with, without the `!`; empty for one without, and for a group.
    pub(super) fn module(&self, entry: Entry) -> String {
        let frame = match entry {
            Entry::Frame(frame) | Entry::Unnamed(frame) => Some(frame),
            _ => None,
        };
        let frame = frame.and_then(|frame| self.profile.stacks.frame(frame));
        match frame.map(|frame| (frame, self.profile.stacks.function_of(frame))) {
            None => String::new(),
            Some((_, Some(function))) if !matches!(entry, Entry::Unnamed(_)) => function.module.to_string(),
            Some((frame, _)) => self.image_name(frame),
        }
    }

    /// The source line of an entry, where lines are shown: of all others, the entry stands for any line of its function.
    pub(super) fn line(&self, entry: Entry) -> Option<&'p Line> {
        let Entry::Frame(frame) = entry else { return None };
        self.profile.stacks.frame(frame)?.line.as_ref().filter(|_| self.detail.lines)
    }

    /// What an entry is in every recording and every build: its facts without ids, addresses, tiers, and numbers that a
    /// compiler counted up.
    pub(super) fn key(&self, entry: Entry) -> String {
        let nameless =
            |module: &str| if module.is_empty() { "?!?".to_owned() } else { format!("{module}!?") };
        let frame = match entry {
            Entry::Process(process) => {
                let process = self.profile.trace.process(process);
                return process.map_or("unknown process", |process| process.label()).to_owned();
            }
            Entry::Thread(process, tid) => {
                let pid = self.profile.trace.process(process).map_or(NO_ID, |process| process.pid);
                let name = self.threads.get(&(pid, tid)).copied().unwrap_or_default();
                return format!("thread {name}").trim_end().to_owned();
            }
            Entry::Remark(remark) => return self.remark_text(remark).into_owned(),
            Entry::Group(group) => {
                return match self.groups.get(group.0 as usize) {
                    Some(Group { name, entry: Some(entry), .. }) if !matches!(entry, Entry::Group(_)) => {
                        format!("{} <<{}>>", stable(name), self.key(*entry))
                    }
                    group => stable(group.map_or("", |group| &group.name)),
                };
            }
            Entry::Frame(frame) | Entry::Unnamed(frame) => self.profile.stacks.frame(frame),
        };
        let Some(frame) = frame else { return String::new() };
        let function = self.profile.stacks.function_of(frame).filter(|_| !matches!(entry, Entry::Unnamed(_)));
        let Some(function) = function else { return nameless(&self.image_name(frame)) };
        let name = match &function.name {
            FunctionName::Text(name) => stable(name),
            FunctionName::Native(name) => stable(&short_name(name)),
            // The runtime shares one body among many type arguments, and names it by those that came first.
            FunctionName::Method(name) => {
                stable(&RawName { type_args: String::new(), ..(**name).clone() }.to_string())
            }
            FunctionName::Token(_) | FunctionName::Start(_) => return nameless(&function.module),
        };
        format!("{}!{name}", function.module)
    }

    /// Why an entry has no name; `None` for one that has.
    pub(super) fn unnamed(&self, entry: Entry) -> Option<Unresolved> {
        self.profile.stacks.frame(entry.frame()?)?.unresolved
    }

    fn image_name(&self, frame: &Frame) -> String {
        let module = frame.module.and_then(|module| self.profile.trace.module(module));
        crate::profile::cut_module_name(module.map_or("", |module| module.name())).to_owned()
    }
}

impl Labels<Entry> for Spelling<'_> {
    fn all(&self) -> &'static str {
        "all processes"
    }

    fn label(&self, entry: Entry) -> Label<'_> {
        let frame = match entry {
            Entry::Frame(frame) | Entry::Unnamed(frame) => self.profile.stacks.frame(frame),
            _ => None,
        };
        let group = match entry {
            Entry::Group(group) => self.groups.get(group.0 as usize),
            _ => None,
        };
        let category = frame.map(|frame| frame.category).or(group.map(|group| group.category));
        Label {
            text: self.text(entry).into(),
            category: category.unwrap_or(Category::Heading),
            inlined: frame.is_some_and(|frame| frame.inlined > 0),
        }
    }
}

/// `name (pid)`.
pub(super) fn process_text(trace: &Trace, process: ProcessId) -> String {
    match trace.process(process) {
        Some(process) if process.pid != NO_ID => format!("{} ({})", process.label(), process.pid),
        Some(process) => process.label().to_owned(),
        None => "unknown process".to_owned(),
    }
}

/// A .NET method of the profile, by the number of its function.
type Method<'p> = (usize, &'p str, &'p RawName);

/// The readable names of the functions of `profile`.
fn readable(profile: &Profile, parameters: bool) -> FxHashMap<usize, String> {
    let mut readable = readable_methods(profile, parameters);
    for (number, function) in profile.stacks.functions().iter().enumerate() {
        if let FunctionName::Native(name) = &function.name
            && let Cow::Owned(short) = short_name(name)
        {
            readable.insert(number, short);
        }
    }
    readable
}

/// The readable names of the methods of `profile`. No two methods of a module get the same, those of the trace that
/// have no sample among them.
fn readable_methods(profile: &Profile, parameters: bool) -> FxHashMap<usize, String> {
    let functions = profile.stacks.functions().iter().enumerate();
    let mut methods: Vec<Method<'_>> = functions
        .filter_map(|(number, function)| match &function.name {
            FunctionName::Method(name) => Some((number, &*function.module, &**name)),
            _ => None,
        })
        .collect();
    methods.sort_by_key(|(_, module, _)| *module);
    let others = other_names(profile, &methods);
    let mut readable = FxHashMap::default();
    for of_module in methods.chunk_by(|(_, a, _), (_, b, _)| a == b) {
        let also = of_module.first().and_then(|(_, module, _)| others.get(module));
        let shown = of_module.iter().map(|(_, _, name)| *name);
        let names = distinct(shown.chain(also.into_iter().flatten()), parameters);
        readable.extend(of_module.iter().map(|(number, ..)| *number).zip(names));
    }
    readable
}

/// The names of all methods in the trace and in precompiled images that may read like one of `methods`, by module: those
/// of the same types.
fn other_names<'m>(profile: &Profile, methods: &[Method<'m>]) -> FxHashMap<&'m str, Vec<RawName>> {
    let trace = &profile.trace;
    let mut others: FxHashMap<&str, Vec<RawName>> = FxHashMap::default();
    if methods.is_empty() {
        return others;
    }
    let mut types: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
    for (_, module, name) in methods {
        types.entry(*module).or_default().insert(name.outer_type());
    }
    // Of each module in the trace the types that matter, if any do.
    let wanted = |name: &str| types.get_key_value(name).map(|(module, types)| (*module, types));
    let modules = trace.code.modules().iter();
    let modules: Vec<_> =
        modules.map(|module| wanted(crate::profile::cut_module_name(module.name()))).collect();
    let mut known: FxHashSet<(&str, MethodName<'_>)> = FxHashSet::default();
    for body in trace.code.bodies() {
        let module = body.module.and_then(|module| modules.get(module.0 as usize).copied().flatten());
        let Some((module, types)) = module else { continue };
        if matches!(body.kind, BodyKind::Script | BodyKind::Helper) {
            continue;
        }
        let Some(name) = trace.code.name(body) else { continue };
        if types.contains(outer_type(name.type_name)) && known.insert((module, name)) {
            others.entry(module).or_default().push(RawName {
                type_name: name.type_name.to_owned(),
                method: name.method.to_owned(),
                type_args: String::new(),
                signature: name.signature.to_owned(),
            });
        }
    }
    for (module, siblings) in profile.stacks.siblings() {
        if let Some((module, _)) = types.get_key_value(&**module) {
            others.entry(module).or_default().extend(siblings.iter().cloned());
        }
    }
    others
}
