//! By which frames a rule knows what it is about.

use rustc_hash::FxHashMap;

use crate::prefix_tree::NodeId;
use crate::profile::{Category, Frame, FrameId, Profile, Unresolved};
use crate::symbols::FunctionName;

use super::rules::{Frames, Until};

/// Frames that are meant. A `*` at the end of a name stands for any rest; modules and native functions match in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Methods of .NET: the full name of the type, as the runtime has it, and the method.
    Method(&'static str, &'static str),
    /// Functions of native code: the names of modules without an ending, and the function without its parameters.
    Native(&'static [&'static str], &'static str),
    /// All code of a category.
    Category(Category),
    /// All code of modules, by their names without an ending.
    Modules(&'static [&'static str]),
    /// Code without a name for one of these causes.
    Unresolved(&'static [Unresolved]),
}

/// How the names of the assemblies of .NET begin: what they call back is not theirs.
const FRAMEWORK: [&str; 10] = [
    "mscorlib",
    "netstandard",
    "presentationcore",
    "presentationframework",
    "system",
    "windowsbase",
    "microsoft.csharp",
    "microsoft.extensions.",
    "microsoft.win32.",
    "system.",
];

/// What a part of a stack amounts to: one bit for each rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// The rules that hold for its innermost frame.
    holds: u64,
    /// The rules that no longer hold below it if they did above.
    ends: u64,
    /// The rules that cannot hold below it.
    bars: u64,
}

impl Marks {
    fn below(self, above: Marks) -> Marks {
        let bars = above.bars | self.bars;
        let holds = above.holds & !self.ends | self.holds;
        Marks { holds: holds & !bars, ends: above.ends | self.ends, bars }
    }
}

/// Which rules hold for which stacks of a profile.
pub(super) struct Marked<'p> {
    profile: &'p Profile,
    frames: Vec<Marks>,
    stacks: Vec<Marks>,
}

/// Where a rule holds in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The outermost of its frames.
    pub(super) frame: FrameId,
    /// What called that.
    pub(super) caller: Option<FrameId>,
}

impl<'p> Marked<'p> {
    /// Looks at each function once, then at each frame and each stack. There may be 64 of `wanted`.
    pub(super) fn new<'w>(
        profile: &'p Profile,
        wanted: impl Iterator<Item = &'w Frames> + Clone,
    ) -> Marked<'p> {
        let bits = || wanted.clone().zip(0..64).map(|(frames, number)| (frames, 1_u64 << number));
        let mut known: FxHashMap<_, Marks> = FxHashMap::default();
        let mut marks_of = |frame: &Frame| {
            let key = (frame.function, frame.module, frame.category, frame.unresolved);
            *known.entry(key).or_insert_with(|| {
                let named = Named::new(profile, frame);
                let holds = bits().filter(|(frames, _)| frames.what.iter().any(|what| named.is(what)));
                let holds = holds.fold(0, |holds, (_, bit)| holds | bit);
                let ends = bits().filter(|(frames, _)| {
                    let is_end = match frames.until {
                        Until::OwnCode => named.is_own(),
                        Until::ManagedCode => frame.category.is_managed(),
                        Until::End => false,
                    };
                    is_end || frames.ends.iter().any(|what| named.is(what))
                });
                let ends = ends.fold(0, |ends, (_, bit)| ends | bit) & !holds;
                let bars = bits().filter(|(frames, _)| frames.but.iter().any(|what| named.is(what)));
                Marks { holds, ends, bars: bars.fold(0, |bars, (_, bit)| bars | bit) }
            })
        };
        let frames: Vec<Marks> = profile.stacks.frames().iter().map(&mut marks_of).collect();
        let of = |frame: FrameId| frames.get(frame.0 as usize).copied().unwrap_or_default();
        let stacks = profile.stacks.accumulated(of, |above, here| here.below(above));
        Marked { profile, frames, stacks }
    }

    /// The rules that hold for a stack, by their numbers.
    pub(super) fn rules(&self, stack: NodeId) -> impl Iterator<Item = usize> {
        let holds = self.stacks.get(stack.0 as usize).map_or(0, |marks| marks.holds);
        (0..64).filter(move |rule| holds >> rule & 1 == 1)
    }

    /// Where a rule holds in a stack for which it does.
    pub(super) fn find(&self, stack: NodeId, rule: usize) -> Option<Found> {
        let bit = 1 << rule;
        let mut found: Option<Found> = None;
        for id in self.profile.stacks.frames_of(stack) {
            let marks = self.frames.get(id.0 as usize).copied().unwrap_or_default();
            if marks.holds & bit != 0 {
                found = Some(Found { frame: id, caller: None });
            } else if let Some(found) = &mut found {
                found.caller.get_or_insert(id);
                if marks.ends & bit != 0 {
                    break;
                }
            }
        }
        found
    }
}

/// A frame with its names at hand.
struct Named<'p> {
    frame: &'p Frame,
    /// In lower case.
    module: String,
    name: Option<&'p FunctionName>,
}

impl<'p> Named<'p> {
    fn new(profile: &'p Profile, frame: &'p Frame) -> Named<'p> {
        let function = profile.stacks.function_of(frame);
        let of_image =
            || frame.module.and_then(|module| profile.trace.module(module)).map(|module| module.name());
        let module = match function {
            Some(function) if !function.module.is_empty() => Some(&*function.module),
            _ => of_image(),
        };
        Named {
            frame,
            // NGEN adds an ending of its own.
            module: module.map_or("", |name| name.strip_suffix(".ni").unwrap_or(name)).to_ascii_lowercase(),
            name: function.map(|function| &function.name),
        }
    }

    fn is(&self, signature: &Signature) -> bool {
        match signature {
            Signature::Method(type_name, method) => match self.name {
                Some(FunctionName::Method(name)) => {
                    matches(type_name, &name.type_name) && matches(method, &name.method)
                }
                _ => false,
            },
            Signature::Native(modules, function) => match self.name {
                Some(FunctionName::Native(name) | FunctionName::Text(name)) => {
                    modules.contains(&&*self.module)
                        && matches(&function.to_ascii_lowercase(), &bare(name).to_ascii_lowercase())
                }
                _ => false,
            },
            Signature::Category(category) => self.frame.category == *category,
            Signature::Modules(modules) => modules.contains(&&*self.module),
            Signature::Unresolved(causes) => {
                self.frame.unresolved.is_some_and(|cause| causes.contains(&cause))
            }
        }
    }

    /// True for .NET code that is not part of .NET.
    fn is_own(&self) -> bool {
        let is_framework = |name: &&str| match name.strip_suffix('.') {
            Some(_) => self.module.starts_with(name),
            None => self.module == *name,
        };
        self.frame.category.is_managed() && !FRAMEWORK.iter().any(is_framework)
    }
}

/// A native function without its parameters, and without what linkers put before names in C.
fn bare(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    name.rsplit_once(' ').map_or(name, |(_, name)| name)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}
