//! Any recipe, a list to a line, on a stack of any frames, one to a line.
#![no_main]

use etwprof::profile::patterns::{Engine, FrameText, Recipe, RecipeText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut list = || lines.next().unwrap_or_default().to_owned();
    let recipe = RecipeText { group: list(), fold: list(), inc: list(), exc: list(), program: None };
    let Ok(recipe) = Recipe::parse(&recipe) else { return };
    let mut engine = Engine::new(&recipe, FrameText::of);
    let stack: Vec<&str> = lines.collect();
    if let Ok(kept) = engine.apply(stack.iter().copied()) {
        assert!(kept.stack.len() <= stack.len());
        assert_eq!(kept.stack.is_empty(), stack.is_empty());
        assert!(kept.stack.iter().all(|shaped| engine.name(*shaped).len() <= (64 << 10) + 2 * text.len() + 64));
    }
});
