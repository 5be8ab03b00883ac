//! The samples that the flags choose: what facts of the recording decide is checked, and what names decide is done.

use anyhow::{Result, bail};
use clap::ValueEnum;
use etwprof::Analysis;
use etwprof::profile::{
    Balance, Category, Detail, Entry, Filter, Frame, FrameId, FrameSet, Matcher, Nameless, Profile,
    StackFilter,
};
use etwprof::report::{Spelling, count};
use etwprof::winpath::file_name;

use super::args::{self, Samples};
use super::candidates::{self, added_up, answer, instead};

/// Keeps of a recording what the flags choose by names; `filter` is what facts have decided. Names of functions are those
/// that `detail` shows.
///
/// # Errors
/// A flag asks for what the recording does not have.
pub(super) fn narrow(
    analysis: &mut Analysis,
    filter: &Filter,
    flags: &Samples,
    detail: Detail,
    quiet: bool,
) -> Result<()> {
    candidates::check_processes(filter, &analysis.profile.trace, quiet)?;
    candidates::check_facts(filter, &analysis.profile.trace, quiet)?;
    narrow_by_names(analysis, flags, detail, quiet)
}

/// The same, where what facts have decided is checked already.
pub(super) fn narrow_by_names(
    analysis: &mut Analysis,
    flags: &Samples,
    detail: Detail,
    quiet: bool,
) -> Result<()> {
    let Samples { module, function, exclude, category, .. } = flags;
    let by_names = !(module.is_empty() && function.is_empty() && exclude.is_empty());
    if !by_names && category.is_empty() {
        return Ok(());
    }
    let profile = &analysis.profile;
    let frames = if by_names { named(profile, detail) } else { Vec::new() };
    let function: Vec<Matcher> = function.iter().map(|name| name.among(labels(&frames))).collect();
    // Where there are no samples nothing has a name, and why there are none is another question.
    if !profile.samples.is_empty() {
        check(profile, &frames, flags, &function, quiet)?;
    }
    let filter = StackFilter {
        modules: chosen(&frames, module, Named::is_of),
        functions: chosen(&frames, &function, Named::is_function),
        excluded: chosen(&frames, exclude, Named::is_either),
        categories: (!category.is_empty()).then(|| covered(category)),
    };
    let narrowed = profile.with_stacks(&filter);
    if !profile.samples.is_empty() {
        check_some_are_left(&Filter::default(), &narrowed.balance)?;
    }
    analysis.profile = narrowed;
    let samples = analysis.profile.samples_by_module();
    let modules = &mut analysis.symbols.modules;
    for report in modules.iter_mut() {
        report.samples = samples.get(&report.module).copied().unwrap_or(0);
    }
    modules.retain(|report| report.samples > 0);
    modules.sort_by_key(|report| std::cmp::Reverse(report.samples));
    Ok(())
}

/// A frame with what it is called.
pub(super) struct Named<'p> {
    pub(super) id: FrameId,
    /// As it is shown: code without a name by its address and by its module.
    labels: Vec<String>,
    /// The path of its image.
    image: Option<&'p str>,
    /// The module of its function; that of a .NET method may be none of the images.
    module: &'p str,
}

impl Named<'_> {
    fn is_of(&self, wanted: &Matcher) -> bool {
        self.image.is_some_and(|path| wanted.matches_image(path))
            || !self.module.is_empty()
                && (wanted.matches(self.module) || wanted.matches(&format!("{}.dll", self.module)))
    }

    pub(super) fn is_function(&self, wanted: &Matcher) -> bool {
        self.labels.iter().any(|label| wanted.matches_label(label))
    }

    fn is_either(&self, wanted: &Matcher) -> bool {
        self.is_of(wanted) || self.is_function(wanted)
    }

    fn module_name(&self) -> &str {
        self.image.map_or(self.module, file_name)
    }
}

/// All frames, with what they are called.
pub(super) fn named(profile: &Profile, detail: Detail) -> Vec<Named<'_>> {
    let spelling = Spelling::new(profile, Detail { lines: false, tiers: false, ..detail });
    let stacks = &profile.stacks;
    let of = |(id, frame): (FrameId, &Frame)| {
        let function = stacks.function_of(frame);
        let mut entries = vec![Entry::Frame(id)];
        if function.is_none() && frame.module.is_some() && detail.nameless == Nameless::ByModule {
            entries.push(Entry::Unnamed(id));
        }
        if frame.inlined > 0 && !detail.inlined {
            entries.clear();
        }
        Named {
            id,
            labels: entries.into_iter().map(|entry| spelling.text(entry)).collect(),
            image: frame
                .module
                .and_then(|module| profile.trace.module(module))
                .map(|module| module.path.as_str()),
            module: function.map_or("", |function| &function.module),
        }
    };
    (0..).map(FrameId).zip(stacks.frames()).map(of).collect()
}

/// What they are called.
pub(super) fn labels<'f>(frames: &'f [Named<'_>]) -> impl Iterator<Item = &'f str> + Clone {
    frames.iter().flat_map(|frame| frame.labels.iter().map(String::as_str))
}

/// The frames that are meant; `None` where nothing is asked for.
fn chosen<'p>(
    frames: &[Named<'p>],
    wanted: &[Matcher],
    is: impl Fn(&Named<'p>, &Matcher) -> bool,
) -> Option<FrameSet> {
    let is_meant = |frame: &&Named<'p>| wanted.iter().any(|wanted| is(frame, wanted));
    (!wanted.is_empty()).then(|| frames.iter().filter(is_meant).map(|frame| frame.id).collect())
}

fn covered(kinds: &[args::Category]) -> Vec<Category> {
    kinds.iter().flat_map(|kind| kind.covers()).copied().collect()
}

/// Fails for a flag that finds nothing, and warns of each of its names that does not.
fn check(
    profile: &Profile,
    frames: &[Named<'_>],
    flags: &Samples,
    function: &[Matcher],
    quiet: bool,
) -> Result<()> {
    let modules = || {
        let all = frames.iter().map(|frame| (frame.module_name(), 0));
        let there = all.chain(leaves(profile, frames).map(|(leaf, samples)| (leaf.module_name(), samples)));
        added_up(there.filter(|(name, _)| !name.is_empty()))
    };
    let functions = || hottest(profile, frames);
    let without = missing(frames, &flags.module, Named::is_of);
    let any = without.len() < flags.module.len();
    let text = |name: &Matcher| {
        let instead = instead(name, &modules(), "the samples are in", "");
        format!("--module {name}: no sample has code of this module; {instead}")
    };
    answer(without.into_iter().map(text).collect(), any, quiet)?;

    let without = missing(frames, function, Named::is_function);
    let any = without.len() < function.len();
    let text = |name: &Matcher| {
        let instead = instead(name, &functions(), "the hottest are", "");
        format!("--function {name}: no sample has this function; {instead}")
    };
    answer(without.into_iter().map(text).collect(), any, quiet)?;

    let without = missing(frames, &flags.exclude, Named::is_either);
    let text = |name: &Matcher| {
        let both: Vec<_> = functions().into_iter().chain(modules()).collect();
        let instead = instead(name, &both, "the hottest are", "");
        format!("--exclude {name}: no sample has this function or module; {instead}")
    };
    // A stack without what is not wanted is a good one.
    answer(without.into_iter().map(text).collect(), true, quiet)?;
    check_categories(profile, &flags.category)
}

/// The leaves of samples, and how many have each.
fn leaves<'f, 'p>(
    profile: &'f Profile,
    frames: &'f [Named<'p>],
) -> impl Iterator<Item = (&'f Named<'p>, u64)> {
    profile.samples.iter().filter_map(|sample| {
        let leaf = profile.stacks.frames_of(sample.stack).next()?;
        Some((frames.get(leaf.0 as usize)?, sample.count()))
    })
}

/// What functions are called, with the samples that end in them.
pub(super) fn hottest<'f>(profile: &'f Profile, frames: &'f [Named<'_>]) -> Vec<(&'f str, u64)> {
    let all = frames.iter().flat_map(|frame| frame.labels.iter().map(|label| (label.as_str(), 0)));
    let hot =
        leaves(profile, frames).filter_map(|(leaf, samples)| Some((leaf.labels.last()?.as_str(), samples)));
    added_up(all.chain(hot))
}

/// What no frame is.
fn missing<'p, 'w>(
    frames: &[Named<'p>],
    wanted: &'w [Matcher],
    is: impl Fn(&Named<'p>, &Matcher) -> bool,
) -> Vec<&'w Matcher> {
    wanted.iter().filter(|wanted| !frames.iter().any(|frame| is(frame, wanted))).collect()
}

/// Fails if no sample is of one of these kinds.
fn check_categories(profile: &Profile, kinds: &[args::Category]) -> Result<()> {
    let samples = profile.categories();
    let there = |kind: &args::Category| {
        kind.covers().iter().filter_map(|category| samples.get(category)).sum::<u64>()
    };
    if kinds.is_empty() || kinds.iter().any(|kind| there(kind) > 0) {
        return Ok(());
    }
    let name = |kind: &args::Category| {
        kind.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    };
    let given: Vec<String> = kinds.iter().map(name).collect();
    let mut others: Vec<&args::Category> =
        args::Category::value_variants().iter().filter(|kind| there(kind) > 0).collect();
    others.sort_by_key(|kind| std::cmp::Reverse(there(kind)));
    let others: Vec<String> = others.into_iter().map(name).collect();
    bail!(
        "--category {}: no sample is in such code; the samples are in {}",
        given.join(","),
        others.join(", ")
    )
}

/// Fails if filters were given and kept nothing.
pub(super) fn check_some_are_left(filter: &Filter, balance: &Balance) -> Result<()> {
    if balance.kept == 0 && (balance.filtered > 0 || !filter.keeps_all()) {
        bail!("no samples left after filtering: {}", why_empty(balance));
    }
    Ok(())
}

fn why_empty(balance: &Balance) -> String {
    let by = &balance.filtered_by;
    let parts: Vec<String> = [
        (balance.idle, "are idle"),
        (by.process, "belong to other processes (--pid, --name)"),
        (by.thread, "belong to other threads (--tid, --thread)"),
        (by.cpu, "ran on other processors (--cpu)"),
        (by.time, "are outside the time range (--from, --to)"),
        (by.during, "are at other moments of the .NET runtime (--during)"),
        (by.module, "have no code of such a module (--module)"),
        (by.function, "have no such function (--function)"),
        (by.exclude, "have what is excluded (--exclude)"),
        (by.category, "are in other code (--category)"),
        (by.patterns, "have other stacks (--inc-pats, --exc-pats)"),
        (by.focus, "do not contain the function (--focus, --from-function)"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect();
    format!("of {}, {}", count(balance.total), parts.join(", "))
}
