//! Whom to profile.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use etwprof::profile::{Filter, same_name};
use etwprof::session::process::{self, Watched};
use etwprof::trace::Trace;

use crate::cli::args::Live;

/// The processes that are profiled, and whether they still run.
pub(super) struct Targets {
    which: Which,
    children: bool,
    /// Every target that was seen, while it runs.
    watched: BTreeMap<u32, Watched>,
    /// Some target has been seen.
    seen: bool,
    looked: Instant,
}

enum Which {
    All,
    Pids(Vec<u32>),
    Name(String),
    Program { name: String, child: Child, pid: u32, suspended: bool, code: Option<i32> },
}

/// How often the system's processes are looked through.
const LOOK: Duration = Duration::from_millis(500);

impl Targets {
    /// The targets that the flags name. A program is started, but does not run yet.
    pub(super) fn find(args: &Live) -> Result<Targets> {
        let mut watched = BTreeMap::new();
        let which = if let [program, arguments @ ..] = args.run.as_slice() {
            let child = process::spawn_suspended(program, arguments)
                .with_context(|| format!("cannot start {}", program.display()))?;
            let pid = child.id();
            watched.extend(process::watch(pid).map(|watch| (pid, watch)));
            let name = program.to_string_lossy().into_owned();
            Which::Program { name, child, pid, suspended: true, code: None }
        } else if !args.pid.is_empty() {
            for pid in &args.pid {
                let Some(watch) = process::watch(*pid) else {
                    bail!("--pid {pid}: there is no such process; `tasklist` lists those that run");
                };
                watched.insert(*pid, watch);
            }
            Which::Pids(args.pid.clone())
        } else if let Some(name) = &args.name {
            Which::Name(name.clone())
        } else if args.all {
            Which::All
        } else {
            bail!("whom to profile? Say --pid N, --name EXE, --all, or -- COMMAND")
        };
        let long_ago = Instant::now().checked_sub(LOOK).unwrap_or_else(Instant::now);
        let seen = !watched.is_empty();
        let mut targets = Targets { which, children: args.children, watched, seen, looked: long_ago };
        targets.look();
        if let Which::Name(name) = &targets.which
            && targets.watched.is_empty()
            && args.duration.is_none()
        {
            anstream::eprintln!("no process named {name} runs yet; waiting for one");
        }
        Ok(targets)
    }

    /// Lets the program run that was started; once.
    pub(super) fn resume(&mut self) -> Result<()> {
        if let Which::Program { pid, suspended, .. } = &mut self.which
            && std::mem::take(suspended)
        {
            process::resume(*pid)?;
        }
        Ok(())
    }

    /// The processes that the CLR's events are wanted of; empty for all.
    pub(super) fn clr_pids(&self) -> Vec<u32> {
        match &self.which {
            _ if self.children => Vec::new(),
            Which::Pids(pids) => pids.clone(),
            Which::Program { pid, .. } => vec![*pid],
            // Some may start later.
            Which::Name(_) | Which::All => Vec::new(),
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
        if self.watched.is_empty() && self.seen {
            // The last may have left a child behind since.
            self.look();
        }
        self.seen && self.watched.is_empty()
    }

    /// Finds targets that have come since.
    fn look(&mut self) {
        self.looked = Instant::now();
        if !self.children && !matches!(self.which, Which::Name(_)) {
            return;
        }
        let own = std::process::id();
        let all = process::all();
        let named: Vec<u32> = match &self.which {
            Which::Name(name) => {
                let targets = all.iter().filter(|entry| same_name(name, &entry.name) && entry.pid != own);
                targets.map(|entry| entry.pid).collect()
            }
            _ => Vec::new(),
        };
        let children = all.iter().filter(|entry| self.children && self.watched.contains_key(&entry.parent));
        let children: Vec<u32> = children.map(|entry| entry.pid).collect();
        for pid in named.into_iter().chain(children) {
            if !self.watched.contains_key(&pid)
                && let Some(watched) = process::watch(pid)
            {
                self.watched.insert(pid, watched);
                self.seen = true;
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

    /// Keeps their samples.
    pub(super) fn filter(&self, trace: &Trace) -> Filter {
        let mut filter = Filter::default();
        match &self.which {
            Which::All => return filter,
            Which::Pids(pids) => filter.pids = pids.clone(),
            Which::Program { pid, .. } => filter.pids = vec![*pid],
            Which::Name(name) => filter.names = vec![name.clone()],
        }
        if self.children {
            filter.pids.extend(descendants(trace, &filter));
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
            Which::Name(name) | Which::Program { name, .. } => name.clone(),
        }
    }
}

impl Drop for Targets {
    /// A program that never ran must not stay behind.
    fn drop(&mut self) {
        if let Which::Program { child, suspended: true, .. } = &mut self.which {
            let _ = child.kill();
        }
    }
}

/// The ids of all processes that the kept ones started, and those started in turn.
fn descendants(trace: &Trace, roots: &Filter) -> BTreeSet<u32> {
    let is_root = |pid: u32, label: &str| {
        roots.pids.contains(&pid) || roots.names.iter().any(|name| same_name(name, label))
    };
    let mut family: BTreeSet<u32> = trace
        .processes
        .iter()
        .filter(|process| is_root(process.pid, process.label()))
        .map(|p| p.pid)
        .collect();
    loop {
        let before = family.len();
        let born = trace.processes.iter().filter(|process| family.contains(&process.parent_pid));
        let born: Vec<u32> = born.map(|process| process.pid).collect();
        family.extend(born);
        if family.len() == before {
            return family;
        }
    }
}
