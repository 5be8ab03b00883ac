//! Whom to profile.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use etwprof::profile::{Filter, Matcher};
use etwprof::session::process::{self, Entry, Stdout, Watched};
use etwprof::session::undo::Guard;
use etwprof::session::{SampleCounts, Scope};

use super::cures::with_cure;
use crate::cli::args::Recording;
use crate::cli::say;
use crate::cli::usage::{self, Usage};

/// The processes that are profiled, and whether they still run.
pub(super) struct Targets {
    which: Which,
    children: bool,
    /// Every target that was seen, while it runs.
    watched: BTreeMap<u32, Watched>,
    /// Every target that was seen, and when it was started, where the system says.
    seen: BTreeMap<u32, Option<u64>>,
    looked: Instant,
    /// What they are called in messages.
    label: String,
}

enum Which {
    All,
    Pids(Vec<u32>),
    Name(Matcher),
    /// With a guard as long as it does not run: then it must not stay behind.
    Program {
        name: String,
        child: Child,
        suspended: Option<Guard>,
        code: Option<i32>,
    },
}

/// How often the system's processes are looked through.
const LOOK: Duration = Duration::from_millis(500);

impl Targets {
    /// The targets that the flags name. A program is started, with this stdout, but does not run yet.
    pub(super) fn find(args: &Recording, stdout: Stdout, quiet: bool) -> Result<Targets> {
        let mut watched = BTreeMap::new();
        let which = if let [program, arguments @ ..] = args.run.as_slice() {
            let (guard, child) = process::spawn_suspended(program, arguments, stdout)
                .map_err(|error| usage::cannot("start", program.as_ref(), &error))?;
            watched.extend(process::watch(child.id()).map(|watch| (child.id(), watch)));
            let name = program.to_string_lossy().into_owned();
            Which::Program { name, child, suspended: Some(guard), code: None }
        } else if !args.pid.is_empty() {
            // A process is one, however often it is named.
            let mut pids = Vec::new();
            for pid in &args.pid {
                let Some(watch) = process::watch(*pid) else {
                    bail!("--pid {pid}: there is no such process; `tasklist` lists what is running");
                };
                if watched.insert(*pid, watch).is_none() {
                    pids.push(*pid);
                }
            }
            Which::Pids(pids)
        } else if let Some(name) = &args.name {
            Which::Name(name.clone())
        } else if args.all {
            Which::All
        } else {
            let text = "no target given; use --pid N, --name EXE, --all, or -- COMMAND";
            bail!(Usage(text.to_owned()))
        };
        let long_ago = Instant::now().checked_sub(LOOK).unwrap_or_else(Instant::now);
        let seen = watched.values().map(|watch: &Watched| (watch.pid, watch.since)).collect();
        let label = label(&which);
        let mut targets = Targets { which, children: args.children, watched, seen, looked: long_ago, label };
        targets.look();
        if let Which::Name(name) = &targets.which
            && targets.watched.is_empty()
            && !quiet
        {
            say::note(format_args!("no process named {name} is running; waiting for one to start"));
        }
        Ok(targets)
    }

    /// Lets the program run that was started; once.
    pub(super) fn resume(&mut self) -> Result<()> {
        if let Which::Program { child, suspended, .. } = &mut self.which
            && let Some(guard) = suspended.take()
        {
            process::resume(child.id(), guard).map_err(|error| anyhow!(with_cure(&error)))?;
        }
        Ok(())
    }

    /// True for a program that was not let run.
    pub(super) fn never_ran(&self) -> bool {
        matches!(self.which, Which::Program { suspended: Some(_), .. })
    }

    /// True for a program that was started here.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.which, Which::Program { .. })
    }

    /// The name that was given, where no process of it has been seen.
    pub(super) fn unseen_name(&self) -> Option<&str> {
        match &self.which {
            Which::Name(name) if self.seen.is_empty() => Some(name.text()),
            _ => None,
        }
    }

    /// What to call them in messages.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// The ids of targets that run now; `None` where all processes are.
    pub(super) fn running(&self) -> Option<Vec<u32>> {
        if matches!(self.which, Which::All) {
            return None;
        }
        Some(
            self.watched.values().filter(|watched| watched.is_running()).map(|watched| watched.pid).collect(),
        )
    }

    /// True if a target runs, as far as the last look knows.
    pub(super) fn are_running(&self) -> bool {
        !self.watched.is_empty()
    }

    /// True for a process that is one of them, as far as the last look knows.
    pub(super) fn include(&self, pid: u32) -> bool {
        matches!(self.which, Which::All) || self.seen.contains_key(&pid)
    }

    /// Their samples, of those that were counted; of all processes those of processors that worked.
    pub(super) fn samples(&self, counts: &SampleCounts) -> u64 {
        match self.which {
            Which::All => counts.busy(),
            _ => counts.of(self.seen.keys().copied()),
        }
    }

    /// Processes with their names, as far as they still run.
    pub(super) fn names(&self, pids: &[u32]) -> Vec<String> {
        let all = process::all();
        pids.iter().map(|pid| named(&all, *pid)).collect()
    }

    /// The processes that the CLR's events are wanted of.
    pub(super) fn scope(&self) -> Scope {
        match &self.which {
            // Children have other names.
            _ if self.children => Scope::All,
            Which::All => Scope::All,
            Which::Pids(pids) => Scope::Pids(pids.clone()),
            Which::Program { child, .. } => Scope::Pids(vec![child.id()]),
            // Some may start later.
            Which::Name(name) => match name.literal() {
                Some(name) => Scope::Names(executables(name)),
                None => Scope::All,
            },
        }
    }

    /// The only processes that are profiled, where that is known before the recording ends.
    pub(super) fn only_pids(&self) -> Option<Vec<u32>> {
        match &self.which {
            _ if self.children => None,
            Which::Pids(pids) => Some(pids.clone()),
            Which::Program { child, .. } => Some(vec![child.id()]),
            Which::Name(_) | Which::All => None,
        }
    }

    /// True when there were targets and none is left.
    pub(super) fn have_ended(&mut self) -> bool {
        if matches!(self.which, Which::All) {
            return false;
        }
        if self.looked.elapsed() >= LOOK {
            self.look();
        }
        self.watched.retain(|_, watched| watched.is_running());
        if self.watched.is_empty() && !self.seen.is_empty() {
            // The last may have left a child behind since.
            self.look();
        }
        !self.seen.is_empty() && self.watched.is_empty()
    }

    /// Finds targets that have come since.
    fn look(&mut self) {
        self.looked = Instant::now();
        if !self.children && !matches!(self.which, Which::Name(_)) {
            return;
        }
        let own = std::process::id();
        for Entry { pid, parent, name } in process::all() {
            let is_named =
                matches!(&self.which, Which::Name(wanted) if wanted.matches_executable(&name)) && pid != own;
            let parent = self.seen.get(&parent).copied().filter(|_| self.children);
            if self.watched.contains_key(&pid) || !(is_named || parent.is_some()) {
                continue;
            }
            let Some(watched) = process::watch(pid) else { continue };
            // Older than its parent: that is another process, whose id the target got later.
            let is_child = parent.is_some_and(|parent| watched.since >= parent || watched.since.is_none());
            if is_named || is_child {
                self.seen.insert(pid, watched.since);
                self.watched.insert(pid, watched);
            }
        }
    }

    /// The exit code of the program that was started, if it has ended.
    pub(super) fn exit_code(&mut self) -> Option<i32> {
        match &mut self.which {
            Which::Program { child, code, .. } => {
                if code.is_none() {
                    *code = child.try_wait().ok().flatten().and_then(|status| status.code());
                }
                *code
            }
            _ => None,
        }
    }

    /// Keeps their samples, of those that `filter` keeps.
    pub(super) fn filter(&self, mut filter: Filter) -> Filter {
        match &self.which {
            Which::All => return filter,
            Which::Pids(pids) => filter.pids = pids.clone(),
            Which::Program { child, .. } => filter.pids = vec![child.id()],
            Which::Name(name) => filter.names = vec![name.clone()],
        }
        if self.children {
            filter.pids.extend(self.seen.keys());
            filter.children = true;
        }
        filter
    }

    /// What to call it.
    pub(super) fn title(&self) -> String {
        match &self.which {
            Which::All => "all processes".to_owned(),
            Which::Pids(pids) => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                format!("process {}", pids.join(", "))
            }
            Which::Name(name) => name.to_string(),
            Which::Program { name, .. } => name.clone(),
        }
    }
}

/// A process as `orders.exe (1234)`.
fn named(all: &[Entry], pid: u32) -> String {
    match all.iter().find(|entry| entry.pid == pid) {
        Some(entry) => format!("{} ({pid})", entry.name),
        None => format!("process {pid}"),
    }
}

fn label(which: &Which) -> String {
    match which {
        Which::All => "all processes".to_owned(),
        Which::Name(name) => name.to_string(),
        Which::Program { child, .. } => named(&process::all(), child.id()),
        Which::Pids(pids) => {
            let all = process::all();
            pids.iter().map(|pid| named(&all, *pid)).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The file names of executables that `--name` takes for this name, with `.exe` or without.
fn executables(name: &str) -> Vec<String> {
    let bare = name.len().checked_sub(4).and_then(|end| name.split_at_checked(end));
    let bare = bare.filter(|(_, ending)| ending.eq_ignore_ascii_case(".exe")).map_or(name, |(bare, _)| bare);
    vec![format!("{bare}.exe"), bare.to_owned()]
}
