//! Which code is the program's own: that in the folder of its executable, and below. A .NET runtime that was deployed
//! there too is none of it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::frame::FrameId;
use crate::profile::{Profile, cut_module_name};
use crate::trace::{Process, ProcessId};
use crate::winpath::{file_name, without_volume};

/// Programs that run the programs of others: their folder says nothing. As PerfView has it.
const HOSTS: [&str; 3] = ["dotnet", "iexplore", "wwahost"];
/// How the names of others of these begin.
const IIS_HOSTS: &str = "iisasphost";

/// How the files of the .NET runtime and its frameworks begin.
const FRAMEWORK: [&str; 14] = [
    "clrgc",
    "clrjit",
    "coreclr",
    "hostfxr",
    "hostpolicy",
    "microsoft.",
    "mscor",
    "netstandard.",
    "presentation",
    "system.",
    "ucrtbase",
    "vcruntime",
    "windowsbase.",
    "wpfgfx",
];

/// Where IIS compiles pages to.
const ASP_NET: &str = r"\temporary asp.net files\";

/// The own code of each process.
pub(super) struct OwnCode<'p> {
    profile: &'p Profile,
    /// The paths of all modules, without their volumes, in lower case.
    paths: Vec<String>,
    programs: FxHashMap<ProcessId, Option<Program>>,
    /// What was asked before.
    known: FxHashMap<(ProcessId, FrameId), bool>,
}

/// One program.
struct Program {
    /// The folder of its own files, with a backslash at both ends. Nothing is the own code of a process without user
    /// mode.
    folder: Option<String>,
    /// Its own assemblies, by the names that their methods have.
    assemblies: FxHashSet<String>,
    /// The folder has the .NET runtime too.
    has_runtime: bool,
}

impl Program {
    /// True for a file of its own, by its path without the volume in lower case.
    fn owns(&self, path: &str) -> bool {
        let is_framework = || FRAMEWORK.iter().any(|name| file_name(path).starts_with(name));
        self.folder.as_ref().is_some_and(|folder| is_in(path, folder))
            && !(self.has_runtime && is_framework())
    }
}

impl<'p> OwnCode<'p> {
    pub(super) fn new(profile: &'p Profile) -> OwnCode<'p> {
        let paths = profile.trace.modules.iter().map(|module| without_volume(&module.path)).collect();
        OwnCode { profile, paths, programs: FxHashMap::default(), known: FxHashMap::default() }
    }

    /// True if it is known which code is the own of a process.
    pub(super) fn is_known(&mut self, process: ProcessId) -> bool {
        self.program(process).is_some()
    }

    /// True for the own code of a process.
    pub(super) fn is_own(&mut self, process: ProcessId, frame: FrameId) -> bool {
        if let Some(known) = self.known.get(&(process, frame)) {
            return *known;
        }
        let is_own = self.decide(process, frame);
        self.known.insert((process, frame), is_own);
        is_own
    }

    fn decide(&mut self, process: ProcessId, frame: FrameId) -> bool {
        let profile = self.profile;
        let Some(frame) = profile.stacks.frame(frame) else { return false };
        let path = frame.module.and_then(|module| self.paths.get(module.0 as usize)).cloned();
        let Some(program) = self.program(process) else { return true };
        if path.is_some_and(|path| program.owns(&path)) {
            return true;
        }
        let function = profile.stacks.function_of(frame);
        frame.category.is_managed()
            && function.is_some_and(|function| program.assemblies.contains(&*function.module))
    }

    fn program(&mut self, process: ProcessId) -> Option<&Program> {
        let known = self.programs.entry(process).or_insert_with(|| {
            let nothing = Program { folder: None, assemblies: FxHashSet::default(), has_runtime: false };
            if self.profile.trace.is_kernel_only(process) {
                return Some(nothing);
            }
            let folder = folder_of(self.profile, &self.paths, process)?;
            let images = self.profile.trace.mappings.of(process);
            let images: Vec<&String> =
                images.filter_map(|mapping| self.paths.get(mapping.module.0 as usize)).collect();
            let has_runtime = images
                .iter()
                .any(|path| path.strip_suffix("coreclr.dll").is_some_and(|start| start.ends_with(&folder)));
            let program = Program { folder: Some(folder), has_runtime, ..nothing };
            let modules = self.profile.trace.code.modules().iter();
            let modules = modules.filter(|module| module.process == process);
            // The runtime may know a file by another path than the kernel: by a mapped drive.
            let own: FxHashSet<&str> =
                images.iter().filter(|path| program.owns(path)).map(|path| file_name(path)).collect();
            let own = modules.filter(|module| {
                let path = without_volume(&module.path);
                program.owns(&path) || own.contains(file_name(&path))
            });
            let assemblies = own.map(|module| cut_module_name(module.name()).to_owned()).collect();
            Some(Program { assemblies, ..program })
        });
        known.as_ref()
    }
}

/// The folder of a process's own files, in lower case and without its volume; `None` where it is unknown.
fn folder_of(profile: &Profile, paths: &[String], id: ProcessId) -> Option<String> {
    let process = profile.trace.process(id)?;
    let name = process.name.to_ascii_lowercase();
    let stem = name.strip_suffix(".exe").unwrap_or(&name);
    let managed = || profile.trace.code.modules().iter().filter(|module| module.process == id);
    if stem == "w3wp" {
        return managed()
            .any(|module| is_in(&without_volume(&module.path), ASP_NET))
            .then(|| ASP_NET.to_owned());
    }
    if HOSTS.contains(&stem) || stem.starts_with(IIS_HOSTS) {
        let assembly = assembly_of(process)?;
        let of = |module: &&crate::trace::code::ManagedModule| {
            file_name(&module.path).eq_ignore_ascii_case(&assembly)
        };
        return managed().find(of).and_then(|module| folder(&without_volume(&module.path)));
    }
    let is_executable = |path: &&String| file_name(path) == name;
    let images = profile.trace.mappings.of(id).filter_map(|mapping| paths.get(mapping.module.0 as usize));
    images.into_iter().find(is_executable).and_then(|path| folder(path))
}

/// True for a path without its volume in a folder. The pages of IIS are wherever Windows keeps them.
fn is_in(path: &str, folder: &str) -> bool {
    path.starts_with(folder) || folder == ASP_NET && path.contains(folder)
}

/// `\a\b\` of `\a\b\c.exe`; nothing for a file at the root of a volume.
fn folder(path: &str) -> Option<String> {
    let folder = path.strip_suffix(file_name(path))?;
    (folder.len() > 1).then(|| folder.to_owned())
}

/// The file name of the first assembly in a command line: `dotnet C:\app\app.dll --x`.
fn assembly_of(process: &Process) -> Option<String> {
    let line = process.command_line.to_ascii_lowercase();
    let end = line.find(".dll")? + ".dll".len();
    let path = line.get(..end)?;
    let start = path.rfind(['\\', '/', ' ', '"']).map_or(0, |at| at + 1);
    path.get(start..).map(str::to_owned)
}
