//! The .etl file of a live recording.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use etwprof::etl::writer::{self, LiveFile, Newest, Tee};
use etwprof::origin::Origin;
use etwprof::profile::Filter;
use etwprof::report::bytes;
use etwprof::session::Losses;
use etwprof::symbols::local_images::{self, Identified};
use etwprof::trace::{Builder, Mapping, Module, ModuleId, ProcessId, Trace};
use etwprof::trim::{Identities, is_fact};

use crate::cli::args::RecordedFile;
use crate::cli::usage::Usage;
use crate::cli::{say, trim};

/// Where a recording goes.
pub(super) struct Destination<'a> {
    path: &'a Path,
    /// The bytes of the newest events that are kept.
    ring: Option<u64>,
    whole_system: bool,
    compress: bool,
}

/// The open files of a recording that goes on.
pub(super) struct Open {
    name: String,
    part: File,
    newest: Option<(File, u64)>,
}

impl<'a> Destination<'a> {
    /// That of a file named by a flag. Fails where no recording can be written to.
    pub(super) fn new(args: &RecordedFile, path: &'a Path, flag: &str) -> Result<Destination<'a>> {
        let RecordedFile { ring, whole_system, compress } = *args;
        let to = Destination { path, ring, whole_system, compress };
        if path.is_dir() {
            bail!(Usage(format!("{flag} {}: this is a folder; name a file in it", path.display())));
        }
        if let Some(left) = [to.part(), to.newest()].into_iter().find(|file| file.exists()) {
            bail!(Usage(format!(
                "{flag}: {} is what a recording that was cut short has left, and opens; rename or remove it first",
                left.display()
            )));
        }
        let part = to.part();
        let context = || format!("{flag}: cannot write {}", part.display());
        File::create(&part).with_context(context)?;
        fs::remove_file(&part).with_context(context)?;
        Ok(to)
    }

    /// Where the recording is until it is whole.
    fn part(&self) -> PathBuf {
        self.with(".part")
    }

    /// Where its newest events are until then, if only those are kept.
    fn newest(&self) -> PathBuf {
        self.with(".newest.part")
    }

    fn with(&self, ending: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// All files that it consists of until it is whole.
    fn parts(&self) -> Vec<PathBuf> {
        let newest = self.ring.map(|_| self.newest());
        std::iter::once(self.part()).chain(newest).collect()
    }

    /// Makes the files.
    pub(super) fn open(&self) -> Result<Open> {
        let create =
            |path: PathBuf| File::create(&path).with_context(|| format!("cannot write {}", path.display()));
        let part = create(self.part())?;
        let newest = self.ring.map(|size| create(self.newest()).map(|file| (file, size))).transpose()?;
        Ok(Open { name: self.path.display().to_string(), part, newest })
    }

    /// Removes the files of a recording that did not begin. They are empty; that one cannot be removed is no news.
    pub(super) fn abandon(&self) {
        for file in self.parts() {
            let _ = fs::remove_file(file);
        }
    }

    /// Ends the file of a recording, and leaves out of it what the targets do not need.
    pub(super) fn write(
        &self,
        mut file: LiveFile<File>,
        trace: &mut Trace,
        targets: Filter,
        losses: &Losses,
        quiet: bool,
    ) -> Result<()> {
        let kept = if self.whole_system { Filter::default() } else { targets };
        let identities = identities(trace, &kept);
        let end = trace.clock.filetime(trace.span.map_or(trace.clock.base, |(_, last)| last));
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let ending = writer::Ending {
            end,
            events_lost: count(losses.events.saturating_add(losses.dropped)),
            buffers_lost: count(losses.buffers),
        };
        leave_out_what_events_say(&mut file, trace);
        // Those of what ran before come with the others.
        let written = file.finish(ending, |_, _| None);
        let parts = self.parts();
        let left = parts.iter().map(|part| part.display().to_string()).collect::<Vec<_>>().join(" and ");
        let (have, open) = if parts.len() == 1 { ("has", "opens") } else { ("have", "open together") };
        written.size.with_context(|| {
            format!("cannot write all of {left}, which {have} what came before, and {open}")
        })?;
        let shown = self.path.display();
        let is_whole = kept.keeps_all() && !self.compress && identities.is_empty();
        if let ([part], true) = (parts.as_slice(), is_whole) {
            return fs::rename(part, self.path).with_context(|| format!("cannot write {shown}"));
        }
        let trimmed = trim::shrink(&parts, self.path, &kept, identities, self.compress, quiet)
            .with_context(|| format!("{left} {have} the whole recording, and {open}"))?;
        if !quiet {
            let (of, size) = (bytes(trimmed.bytes_in), bytes(trimmed.bytes_out));
            say::note(format_args!("{shown} has {size}, of {of} that were recorded of the whole system"));
        }
        let remove = |part: &PathBuf| {
            fs::remove_file(part).with_context(|| format!("cannot remove {}", part.display()))
        };
        parts.iter().try_for_each(remove)
    }
}

impl Open {
    /// Events go to the files as well as to `builder`.
    pub(super) fn tee(self, builder: Builder, origin: &Origin) -> Tee<Builder, File> {
        let Open { name, part, newest } = self;
        match newest {
            Some((out, bytes)) => {
                Tee::with_newest(builder, origin, &name, part, Newest { out, bytes, is_fact })
            }
            None => Tee::with_file(builder, origin, &name, part),
        }
    }
}

fn pid(trace: &Trace, mapping: &Mapping, module: &Module) -> u32 {
    match trace.process(mapping.process) {
        Some(process) if !module.kernel => process.pid,
        _ => 0,
    }
}

/// The link times and PDBs that files have and events do not, of the images of kept processes and of the kernel.
fn identities(trace: &mut Trace, kept: &Filter) -> Identities {
    let processes = kept.processes(trace);
    let is_kept = |process: ProcessId| processes.get(process.0 as usize) == Some(&true);
    let mapped = trace.mappings.iter().filter(|mapping| is_kept(mapping.process));
    let kernel = (0..).map(ModuleId).zip(&trace.modules).filter(|(_, module)| module.kernel);
    let is_unknown = |id: &ModuleId| {
        trace.module(*id).is_some_and(|module| module.pdb.is_none() && module.managed_pdb.is_none())
    };
    let modules = mapped.map(|mapping| mapping.module).chain(kernel.map(|(id, _)| id)).filter(is_unknown);
    let modules: BTreeSet<ModuleId> = modules.collect();
    let found = local_images::identify(trace, modules);
    let found = found.into_iter().filter(|(_, file)| *file == Identified::Same).map(|(id, _)| id).collect();
    trim::identities_of(trace, &found)
}

/// Where events say otherwise than the list of what ran before, they are right, and the file has them.
fn leave_out_what_events_say(file: &mut LiveFile<File>, trace: &Trace) {
    let inventory = file.inventory_mut();
    let processes: HashSet<_> =
        trace.processes.iter().map(|process| (process.pid, process.label())).collect();
    let threads: HashSet<_> = trace.threads.iter().map(|thread| (thread.tid, thread.pid)).collect();
    let images: HashSet<_> = trace
        .mappings
        .iter()
        .filter_map(|mapping| Some((pid(trace, mapping, trace.module(mapping.module)?), mapping.base)))
        .collect();
    inventory.processes.retain(|process| processes.contains(&(process.pid, process.name.as_str())));
    inventory.threads.retain(|ids| threads.contains(ids));
    inventory.modules.retain(|module| images.contains(&(module.pid, module.base)));
}
