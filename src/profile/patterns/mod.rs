//! PerfView's language of grouping, folding, including and excluding, with its results: docs/patterns.md.
//!
//! A [`Recipe`] is the parsed lists. An [`Engine`] applies it to stacks of any kind of frame; of a frame it knows only how
//! it reads ([`FrameText`]). It decides on each distinct frame once, however many stacks have it. What folds because it is
//! small is decided on the finished tree ([`Arranged::without_small`](super::Arranged::without_small)).
//!
//! ```
//! use etwprof::profile::patterns::{Engine, FrameText, Recipe, RecipeText, Shaped};
//!
//! let text = RecipeText { group: r"system32\*!=>OS".into(), ..RecipeText::default() };
//! let recipe = Recipe::parse(&text).unwrap();
//! let mut engine = Engine::new(&recipe, FrameText::of);
//! let kept = engine.apply(["app!main", r"C:\Windows\System32\ntdll!Read", r"C:\Windows\System32\ntdll!Copy"]).unwrap();
//! let [Shaped::Frame("app!main"), Shaped::Group(os)] = kept.stack[..] else { panic!() };
//! assert_eq!(engine.name(Shaped::Group(os)), "OS <<ntdll!Read>>");
//! ```

mod along;
mod frame;
mod language;
mod percent;
mod presets;
mod recipe;

pub use along::{Dropped, Engine, Kept, PatternGroup, Shaped};
pub use frame::{FrameText, short_name};
pub use presets::{Preset, just_my_app, presets};
pub use recipe::{List, PatternCause, PatternError, Recipe, RecipeText};
