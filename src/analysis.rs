//! From files, or from a live recording, to a named profile: the one call that most callers want.
//!
//! ```
//! use etwprof::{Analysis, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let analysis = Analysis::open(&["examples/demo.etl"], &Options::default(), &())?;
//! let balance = analysis.profile.balance;
//! assert_eq!(balance.total, balance.kept + balance.idle + balance.filtered);
//! # Ok(())
//! # }
//! ```

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::etl::{self, Damage, DamageKind, Reading, Recording};
use crate::event::{Event, Pointer};
use crate::events::kernel::Kernel;
use crate::events::{Decoded, decode};
use crate::guids::SYSTEM_CONFIG;
use crate::origin::{KernelSpace, Origin};
use crate::profile::{Filter, Limit, Located, Measure, Profile};
use crate::symbols::resolver::{self, Symbols};
use crate::symbols::{self, Limits, Store, StoreOptions, SymbolPath, Unnamed};
use crate::trace::{Builder, EventSet, Keep, Trace};

/// What to make of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is measured.
    pub measure: Measure,
    /// What is kept beside what that needs.
    pub keep: Keep,
    /// Events that are kept with their stacks.
    pub events: EventSet,
    /// The samples to keep.
    pub filter: Filter,
    /// Where to look for symbols; `None` for the names that the recording itself has.
    pub symbols: Option<SymbolOptions>,
    /// The recording comes from somebody trusted: nothing is cut, whatever memory that takes.
    pub trusted: bool,
    /// Repair broken stacks where their thread's other samples show how ([`Profile::repair`]).
    pub repair: bool,
    /// Keep where the code of frames is ([`Located::addresses`]).
    pub addresses: bool,
    /// Read, and look up names, with so many threads; `None` for as many as there are processors. The result is the same.
    /// How many look for symbol files, [`StoreOptions`] says.
    pub jobs: Option<NonZeroUsize>,
    /// How many bytes of memory samples may take ([`Builder::hold`]); `None` for what they need.
    pub memory: Option<u64>,
}

/// Where to look for symbols, and for how many.
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// The places to look in.
    pub path: SymbolPath,
    /// How to look.
    pub store: StoreOptions,
    /// Skip modules that a smaller share of the samples hits, in percent.
    pub min_share: f64,
    /// Find the source lines of .NET methods too.
    pub lines: bool,
}

impl Default for Options {
    /// All samples, with names from the recording and from symbols that are on this machine: beside the recording, and where
    /// it says that they are. No server is asked.
    fn default() -> Options {
        let symbols = Some(SymbolOptions::new(SymbolPath::default()));
        let (trusted, repair, addresses) = (false, false, false);
        let (jobs, memory) = (None, None);
        let (measure, filter) = (Measure::default(), Filter::default());
        let keep = Keep::default();
        let events = EventSet::default();
        Options { measure, keep, events, filter, symbols, trusted, repair, addresses, jobs, memory }
    }
}

impl SymbolOptions {
    /// Looks along `path` for the symbols of every module.
    pub fn new(path: SymbolPath) -> SymbolOptions {
        SymbolOptions { path, store: StoreOptions::default(), min_share: 0.0, lines: false }
    }

    /// The places where the symbols of `files` are looked for, for whoever asks again after the analysis.
    pub fn store(&self, files: &[impl AsRef<Path>]) -> Store {
        self.store_beside(&beside(files))
    }

    fn store_beside(&self, beside: &[PathBuf]) -> Store {
        let path = beside.iter().rev().fold(self.path.clone(), |path, place| match place.is_dir() {
            true => path.behind(place.clone()),
            false => path.behind_archives([place.clone()]),
        });
        Store::new(&path, self.store.clone())
    }
}

/// Receives progress. `()` ignores it.
pub trait Progress: Sync {
    /// `bytes` of the recording's `of` have been read.
    fn read(&self, _bytes: u64, _of: u64) {}

    /// The recording has been read.
    fn read_all(&self) {}

    /// A symbol file is looked for, by its name. Called from several threads.
    fn symbols(&self, _file: &str, _state: symbols::Progress<'_>) {}

    /// All symbol files have been looked for.
    fn symbols_done(&self) {}
}

impl Progress for () {}

/// A recording with all that was made of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Analysis {
    /// The files; `None` where the caller read the events, as of a live recording.
    pub recording: Option<Arc<Recording>>,
    /// The places of the files that could not be read.
    pub damage: Vec<Damage>,
    /// The kept samples with named stacks. Its balance says where every other sample went, its
    /// [`Trace::lost`] what the session lost.
    pub profile: Profile,
    /// What became of the symbols of each module.
    pub symbols: Symbols,
}

/// Why there is no analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The files are no recording.
    #[error(transparent)]
    Recording(#[from] etl::EtlError),
    /// A file became shorter while it was read: what was read of it is no recording that ever was.
    #[error("{0}")]
    Shrunk(Damage),
}

impl Analysis {
    /// Reads `files` as one recording, finds symbols and names its stacks.
    ///
    /// # Errors
    /// [`AnalysisError`] where the files are no recording. Damage inside of one is none: it is reported in the result.
    pub fn open(
        files: &[impl AsRef<Path>],
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Analysis, AnalysisError> {
        // First of all: it knows what is no file to look into.
        let recording = Recording::open(files)?;
        Analysis::read(recording, &beside(files), options, progress)
    }

    /// Reads a recording, finds symbols and names its stacks. `beside` are archives and folders that came
    /// with it: they may have symbols too.
    ///
    /// # Errors
    /// [`AnalysisError::Shrunk`].
    pub fn read(
        recording: Recording,
        beside: &[PathBuf],
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Analysis, AnalysisError> {
        let Reading { value: trace, damage } = read(&recording, options, progress)?;
        let located = options.locate(&trace);
        let analysis = Analysis::name(Arc::new(trace), located, beside, options, progress);
        Ok(Analysis { recording: Some(Arc::new(recording)), damage, ..analysis })
    }

    /// Finds the symbols of located stacks and names them: what is left to do of a live recording.
    pub fn name(
        trace: Arc<Trace>,
        located: Located,
        beside: &[PathBuf],
        options: &Options,
        progress: &dyn Progress,
    ) -> Analysis {
        let analysis = |mut profile: Profile, symbols| {
            if options.repair {
                profile.repair();
            }
            Analysis { recording: None, damage: Vec::new(), profile, symbols }
        };
        let Some(wanted) = &options.symbols else {
            return analysis(located.named(trace, &Unnamed), Symbols::default());
        };
        let store = wanted.store_beside(beside);
        let limits = if options.trusted { Limits::NONE } else { Limits::default() };
        let resolving = resolver::Options {
            min_share: wanted.min_share,
            lines: wanted.lines,
            limits,
            jobs: options.jobs,
        };
        let on_progress = |name: &str, state: symbols::Progress<'_>| progress.symbols(name, state);
        let list = located.wanted(&trace, wanted.lines);
        let symbols = resolver::resolve(&trace, &list, &store, &resolving, &on_progress);
        progress.symbols_done();
        analysis(located.named(trace, &symbols), symbols)
    }
}

/// Where symbols travel with a recording: in an archive with it, and in a folder `symbols` beside it, whose files lie
/// flat or in the layout of a symbol store.
fn beside(files: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    let files = || files.iter().map(AsRef::as_ref);
    let archives = files().filter(|file| etl::is_archive(file)).map(Path::to_owned);
    let folders = files().map(|file| file.with_file_name("symbols")).filter(|folder| folder.is_dir());
    let mut beside: Vec<PathBuf> = archives.chain(folders).collect();
    beside.dedup();
    beside
}

impl Options {
    /// Lets a builder keep what they ask for. To be called before the first event.
    pub fn prepare(&self, builder: &mut Builder) {
        if !self.events.is_empty() {
            builder.keep_events(self.events.clone());
        }
        let keep = self.measure.keep().or(self.keep);
        if keep != Keep::default() {
            builder.keep(keep);
        }
        if self.filter.include_idle {
            builder.keep_idle();
        }
        if let Some(memory) = self.memory {
            builder.hold(memory);
        }
    }

    /// Locates the stacks of the samples to keep.
    pub fn locate(&self, trace: &Trace) -> Located {
        let limit = if self.trusted { Limit::NONE } else { Limit::of(trace) };
        Located { addresses: self.addresses, ..Located::of(trace, &self.measure, &self.filter, limit) }
    }
}

/// Reads a recording into a trace that has what `options` ask for, as [`watched`] does.
///
/// # Errors
/// [`AnalysisError::Shrunk`].
pub fn read(
    recording: &Recording,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Reading<Trace>, AnalysisError> {
    watched(recording, progress, |bytes| {
        trace_with(recording, options.jobs, bytes, |builder| options.prepare(builder))
    })
}

/// Lets `read` read a recording, which must stay as it is meanwhile.
///
/// # Errors
/// [`AnalysisError::Shrunk`].
pub fn watched<T>(
    recording: &Recording,
    progress: &dyn Progress,
    read: impl FnOnce(&mut dyn FnMut(u64)) -> Reading<T>,
) -> Result<Reading<T>, AnalysisError> {
    let size = recording.size();
    let reading = read(&mut |bytes| progress.read(bytes, size));
    progress.read_all();
    match reading.damage.iter().find(|damage| damage.kind == DamageKind::Shrunk) {
        Some(cut) => Err(AnalysisError::Shrunk(cut.clone())),
        None => Ok(reading),
    }
}

/// Reads a recording into a trace. `progress` gets the number of bytes that have been read.
pub fn trace(recording: &Recording, progress: &mut dyn FnMut(u64)) -> Reading<Trace> {
    trace_with(recording, None, progress, |_| ())
}

/// The same with so many threads ([`Options::jobs`]), and a builder that `prepare` changes before the first event, for
/// instance by [`Builder::keep_only`].
pub fn trace_with(
    recording: &Recording,
    jobs: Option<NonZeroUsize>,
    progress: &mut dyn FnMut(u64),
    prepare: impl Fn(&mut Builder),
) -> Reading<Trace> {
    let origin = origin(recording);
    let start = || {
        let mut builder = Builder::new(&origin);
        prepare(&mut builder);
        builder
    };
    let jobs = jobs.unwrap_or_else(processors);
    let buffers = start().buffers();
    let Reading { value: (mut builder, workers), damage } = recording.digest(&buffers, jobs, progress, start);
    builder.graft(workers);
    Reading { value: builder.finish(), damage }
}

/// As many threads as there are processors for this process.
pub fn processors() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// All that a recording says of where it comes from. One of a 32-bit system is read once for it: the record that says
/// where its kernel begins comes at the end, and a [`Builder`] must know it at the start.
pub fn origin(recording: &Recording) -> Origin {
    let origin = recording.origin();
    let kernel = match origin.machine.pointer {
        Pointer::Bits32 => kernel_space(recording),
        Pointer::Bits64 => origin.kernel,
    };
    Origin { kernel, ..origin }
}

fn kernel_space(recording: &Recording) -> KernelSpace {
    let step = |kernel: &mut KernelSpace, event: &Event<'_>| {
        if event.provider == SYSTEM_CONFIG
            && let Ok(Decoded::Kernel(Kernel::Cpu(cpu))) = decode(event)
        {
            *kernel = KernelSpace::above(cpu.highest_user_address);
        }
    };
    recording.fold(NonZeroUsize::MIN, &mut |_| (), KernelSpace::default, step).value
}
