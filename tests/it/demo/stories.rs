//! What the threads do: the call paths of `stories.txt`.

use std::collections::{BTreeSet, HashMap};

use super::random::Random;

const TEXT: &str = include_str!("stories.txt");

/// All stories by name.
pub(super) struct Stories {
    pieces: HashMap<&'static str, Vec<&'static str>>,
    stories: HashMap<&'static str, Story>,
}

/// The path that all scenes of a story share, and the weighted scenes.
#[derive(Default)]
struct Story {
    root: Vec<&'static str>,
    scenes: Vec<(u64, Vec<&'static str>)>,
}

impl Stories {
    pub(super) fn new() -> Self {
        let mut all = Stories { pieces: HashMap::new(), stories: HashMap::new() };
        let mut title = ("", "");
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            if !line.starts_with(' ') {
                title = line.split_once(' ').unwrap_or(title);
                continue;
            }
            match title {
                ("piece", name) => all.pieces.entry(name).or_default().extend(line.split_whitespace()),
                ("story", name) => all.stories.entry(name).or_default().add(line),
                _ => panic!("neither a piece nor a story: {title:?}"),
            }
        }
        all
    }

    /// Every function of a module, `module!name`, once, sorted.
    pub(super) fn functions(&self) -> BTreeSet<&'static str> {
        let roots = self.stories.values().map(|story| &story.root);
        let scenes = self.stories.values().flat_map(|story| story.scenes.iter().map(|(_, scene)| scene));
        let words = self.pieces.values().chain(roots).chain(scenes).flatten();
        words
            .map(|word| word.split_once('*').map_or(*word, |(symbol, _)| symbol))
            .filter(|word| word.contains('!'))
            .collect()
    }

    /// One path of a story, with its pieces and recursions spelled out.
    pub(super) fn path(&self, story: &str, random: &mut Random) -> Vec<&'static str> {
        let story = self.stories.get(story).unwrap_or_else(|| panic!("no story {story}"));
        let (_, scene) = &story.scenes[random.weighted(story.scenes.iter().map(|&(weight, _)| weight))];
        let mut path = Vec::new();
        self.spell(&story.root, random, &mut path);
        self.spell(scene, random, &mut path);
        path
    }

    fn spell(&self, words: &[&'static str], random: &mut Random, path: &mut Vec<&'static str>) {
        for word in words {
            if let Some(name) = word.strip_prefix('$') {
                let piece = self.pieces.get(name).unwrap_or_else(|| panic!("no piece {name}"));
                self.spell(piece, random, path);
            } else if let Some((symbol, range)) = word.split_once('*') {
                let (low, high) = range.split_once("..").expect("a range");
                let times = random.between(low.parse().unwrap(), high.parse().unwrap());
                path.extend((0..times).map(|_| symbol));
            } else {
                path.push(word);
            }
        }
    }
}

impl Story {
    /// A number begins a scene; what stands before the first number is the root.
    fn add(&mut self, line: &'static str) {
        for word in line.split_whitespace() {
            match (word.parse(), self.scenes.last_mut()) {
                (Ok(weight), _) => self.scenes.push((weight, Vec::new())),
                (Err(_), Some((_, scene))) => scene.push(word),
                (Err(_), None) => self.root.push(word),
            }
        }
    }
}
