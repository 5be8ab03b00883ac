//! How stacks are shaped, by the flags.

use std::cmp::Reverse;

use anyhow::{Result, bail};
use etwprof::profile::patterns::{List, PatternCause, PatternError, Recipe, RecipeText, presets};
use etwprof::profile::{
    Arranged, Category, Detail, Entry, Focus, FrameSet, Group, GroupId, Grouping, Part, Patterns, Profile,
    Remark, Shape,
};
use etwprof::report::{Spelling, count, verbose};
use rustc_hash::FxHashMap;

use super::args::{GroupBy, Shaping};
use super::candidates::instead;
use super::choose::{hottest, labels, named};
use super::say;
use super::usage::Usage;
use super::words;

impl Shaping {
    /// Fails if a pattern cannot be read, before any work.
    pub(super) fn check(&self) -> Result<()> {
        self.recipe(|| None).map(drop)
    }

    /// How to shape the stacks of `profile`.
    pub(super) fn shape(&self, profile: &Profile, detail: Detail) -> Result<Shape> {
        let recipe = self.recipe(|| main_program(profile))?;
        let focus = match (&self.focus, &self.from_function) {
            (Some(name), _) => Some((name, "--focus", Part::Through)),
            (None, Some(name)) => Some((name, "--from-function", Part::From)),
            (None, None) => None,
        };
        let focus = focus.map(|(name, flag, part)| {
            let frames = named(profile, detail);
            let meant = name.among(labels(&frames));
            let functions: FrameSet =
                frames.iter().filter(|frame| frame.is_function(&meant)).map(|frame| frame.id).collect();
            if functions.is_empty() {
                let instead = instead(name, &hottest(profile, &frames), "the hottest are", "");
                bail!("{flag} {}: no function of the kept samples has this name; {instead}", name.text());
            }
            Ok(Focus { functions, part })
        });
        Ok(Shape {
            grouping: self.grouping(),
            detail,
            // Whoever brings patterns from PerfView gets what they say and no more.
            fold_glue: !self.no_fold && recipe.is_none(),
            patterns: recipe.map(|recipe| Patterns { recipe, names: verbose(profile) }),
            fold_kernel: self.no_kernel,
            own_code: self.just_my_code,
            fold_recursion: self.fold_recursion,
            focus: focus.transpose()?,
            inverted: self.invert,
            keep_ends: false,
        })
    }

    /// The tree of `profile` in this shape.
    pub(super) fn arranged(&self, profile: &Profile, shape: &Shape, spelling: &Spelling<'_>) -> Arranged {
        let mut arranged = profile.arrange(shape);
        let Some(percent) = self.fold_percent else { return arranged };
        let rest = Entry::Group(GroupId(arranged.groups.len() as u32));
        arranged.groups.push(Group {
            name: format!("[below {percent}%]").into(),
            entry: None,
            category: Category::Heading,
        });
        let spelling = spelling.clone().with_groups(&arranged.groups);
        let mut names: FxHashMap<Entry, String> = FxHashMap::default();
        for (_, node) in arranged.counts.nodes() {
            names.entry(node.entry).or_insert_with(|| spelling.text(node.entry));
        }
        let is_broken = |entry| match entry {
            Entry::Remark(remark) => !matches!(remark, Remark::Dpc | Remark::Isr),
            _ => false,
        };
        arranged.without_small(percent, |entry| names.get(&entry), is_broken, rest)
    }

    /// Says on stderr what could not be done.
    pub(super) fn warn(&self, profile: &Profile, arranged: &Arranged) {
        for gave_up in &arranged.gave_up {
            say::warning(format_args!(
                "{} `{}`: took too long on {} frames, which count as no match",
                flag(gave_up.list),
                gave_up.item,
                count(gave_up.frames as u64)
            ));
        }
        if self.just_my_code {
            for process in profile.without_own_folder() {
                let (name, pid) = (process.label(), process.pid);
                say::warning(format_args!(
                    "--just-my-code: the folder of {name} ({pid}) is unknown; its stacks stay whole"
                ));
            }
            if !arranged.counts.nodes().any(|(_, node)| node.entry.frame().is_some()) {
                say::warning("--just-my-code: no sample has code from the folder of its program");
            }
        }
    }

    /// The flags that change what the stacks are, as they may be typed.
    pub(super) fn chosen(&self) -> Vec<String> {
        let Shaping { focus, from_function, group_pats, fold_pats, inc_pats, exc_pats, .. } = self;
        let mut flags = Vec::new();
        let switches = [
            ("--just-my-code", self.just_my_code),
            ("--no-kernel", self.no_kernel),
            ("--fold-recursion", self.fold_recursion),
            ("--invert", self.invert),
        ];
        flags.extend(switches.iter().filter(|(_, on)| *on).map(|(flag, _)| (*flag).to_owned()));
        flags.extend(words::flags("--focus", focus));
        flags.extend(words::flags("--from-function", from_function));
        for (flag, patterns) in [
            ("--group-pats", group_pats),
            ("--fold-pats", fold_pats),
            ("--inc-pats", inc_pats),
            ("--exc-pats", exc_pats),
        ] {
            flags.extend(patterns.iter().map(|patterns| words::flag(flag, patterns)));
        }
        flags.extend(self.fold_percent.map(|percent| format!("--fold-percent {percent}")));
        flags
    }

    fn grouping(&self) -> Grouping {
        match self.group_by {
            _ if self.threads => Grouping::Thread,
            GroupBy::Process => Grouping::Process,
            GroupBy::Thread => Grouping::Thread,
            GroupBy::Module => Grouping::Module,
            GroupBy::Category => Grouping::Category,
            GroupBy::None => Grouping::None,
        }
    }

    /// The patterns; `None` without any. `program` gives the path of the executable for `[Just My App]`.
    fn recipe(&self, program: impl FnOnce() -> Option<String>) -> Result<Option<Recipe>> {
        let Shaping { group_pats, fold_pats, inc_pats, exc_pats, .. } = self;
        if [group_pats, fold_pats, inc_pats, exc_pats].iter().all(|patterns| patterns.is_none()) {
            return Ok(None);
        }
        let text = |patterns: &Option<String>| patterns.clone().unwrap_or_default();
        let text = RecipeText {
            group: text(group_pats),
            fold: text(fold_pats),
            inc: text(inc_pats),
            exc: text(exc_pats),
            program: program(),
        };
        Recipe::parse(&text).map(Some).map_err(|error| Usage(explained(&error)).into())
    }
}

fn flag(list: List) -> &'static str {
    match list {
        List::Group => "--group-pats",
        List::Fold => "--fold-pats",
        List::Inc => "--inc-pats",
        List::Exc => "--exc-pats",
    }
}

fn explained(PatternError { list, item, cause }: &PatternError) -> String {
    let flag = flag(*list);
    match cause {
        PatternCause::NoPreset => {
            let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
            format!("{flag} {item}: there is no such preset; there are [Just My App], {}", names.join(", "))
        }
        cause => format!("{flag}: `{item}`: {cause}"),
    }
}

/// The path of the executable of the process with the most samples.
fn main_program(profile: &Profile) -> Option<String> {
    let mut samples: FxHashMap<_, u64> = FxHashMap::default();
    for sample in &profile.samples {
        *samples.entry(profile.runner(sample).process).or_default() += sample.count();
    }
    let trace = &profile.trace;
    let (process, _) = samples.into_iter().max_by_key(|(process, samples)| (*samples, Reverse(*process)))?;
    let name = &trace.process(process)?.name;
    let images = trace.mappings.of(process).filter_map(|mapping| trace.module(mapping.module));
    let mut images = images.filter(|image| image.file_name().eq_ignore_ascii_case(name));
    images.next().map(|image| image.path.clone())
}
