//! The colours of the kinds of code: one table for every report. `docs/guide.md` has the same as a legend.

use std::fmt;

use crate::profile::Category;

/// A colour on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl fmt::Display for Rgb {
    /// `#f2a65a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rgb(r, g, b) = self;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

/// The colour of a kind of code, in the forms that reports need. All have about the same hue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// What people call it.
    pub name: &'static str,
    /// A surface on a light page, for black text.
    pub light: Rgb,
    /// A surface on a dark page, for white text.
    pub dark: Rgb,
    /// Text on a terminal, whose background may be black or white: one of the 256 colours of `xterm`. `None` for text that
    /// keeps the terminal's own colour.
    pub terminal: Option<u8>,
}

/// A great share, on a terminal: red.
pub const HOT: u8 = 160;
/// A notable share: amber.
pub const WARM: u8 = 136;

/// The colour of a kind of code.
pub fn of(category: Category) -> Colour {
    let (name, light, dark, terminal) = match category {
        Category::Heading => ("light grey", Rgb(208, 208, 212), Rgb(84, 84, 90), None),
        Category::Kernel => ("orange", Rgb(242, 166, 90), Rgb(168, 84, 8), Some(166)),
        Category::Native => ("blue", Rgb(132, 178, 240), Rgb(40, 98, 176), Some(68)),
        Category::ManagedJit => ("green", Rgb(112, 208, 118), Rgb(20, 116, 44), Some(28)),
        Category::ManagedPrecompiled => ("yellow-green", Rgb(176, 214, 98), Rgb(84, 112, 12), Some(64)),
        Category::Runtime => ("violet", Rgb(176, 164, 240), Rgb(98, 80, 184), Some(98)),
        Category::Gc => ("magenta", Rgb(236, 140, 204), Rgb(166, 46, 132), Some(169)),
        Category::JitCompiler => ("cyan", Rgb(88, 204, 212), Rgb(8, 112, 122), Some(30)),
        Category::Stub => ("pale green", Rgb(168, 208, 178), Rgb(64, 108, 80), Some(65)),
        Category::JavaScript => ("yellow", Rgb(232, 212, 84), Rgb(128, 104, 0), Some(100)),
        Category::Unresolved => ("grey", Rgb(182, 182, 182), Rgb(104, 104, 104), Some(245)),
    };
    Colour { name, light, dark, terminal }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{HOT, Rgb, WARM, of};
    use crate::profile::Category;

    const BLACK: Rgb = Rgb(0, 0, 0);
    const WHITE: Rgb = Rgb(255, 255, 255);

    /// The relative luminance of WCAG 2.
    fn luminance(Rgb(r, g, b): Rgb) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// In degrees; `None` for a grey.
    fn hue(Rgb(r, g, b): Rgb) -> Option<f64> {
        let [r, g, b] = [r, g, b].map(f64::from);
        let (most, least) = (r.max(g).max(b), r.min(g).min(b));
        let range = most - least;
        if range < 16.0 {
            return None;
        }
        let sixths = if most == r {
            (g - b) / range
        } else if most == g {
            2.0 + (b - r) / range
        } else {
            4.0 + (r - g) / range
        };
        Some((sixths * 60.0).rem_euclid(360.0))
    }

    /// One of the 256: a cube of 6 × 6 × 6, and 24 greys.
    fn of_terminal(number: u8) -> Rgb {
        const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        let step = |number: u8| STEPS[usize::from(number % 6)];
        match number {
            16..=231 => Rgb(step((number - 16) / 36), step((number - 16) / 6), step(number - 16)),
            232.. => Rgb(8 + 10 * (number - 232), 8 + 10 * (number - 232), 8 + 10 * (number - 232)),
            _ => panic!("{number}: terminals differ in what it is"),
        }
    }

    fn all() -> impl Iterator<Item = Category> {
        Category::CODE.into_iter().chain([Category::Heading])
    }

    #[test]
    fn text_can_be_read() {
        for category in all() {
            let colour = of(category);
            // WCAG 2 asks for 4.5, and for 7 at its best.
            assert!(contrast(colour.light, BLACK) >= 7.0, "{category:?}");
            assert!(contrast(colour.dark, WHITE) >= 4.5, "{category:?}");
        }
        // No colour has more than 4.58 on both; 3 is what WCAG asks for large text and for pictures.
        for number in all().filter_map(|category| of(category).terminal).chain([HOT, WARM]) {
            let terminal = of_terminal(number);
            assert!(contrast(terminal, WHITE) >= 3.0, "{number} on white");
            assert!(contrast(terminal, BLACK) >= 3.0, "{number} on black");
        }
    }

    #[test]
    fn a_kind_has_one_hue_everywhere() {
        for category in all() {
            let colour = of(category);
            let hues = [Some(colour.light), Some(colour.dark), colour.terminal.map(of_terminal)];
            let hues: Vec<Option<f64>> = hues.into_iter().flatten().map(hue).collect();
            for (one, other) in hues.iter().zip(hues.iter().skip(1)) {
                let apart = match (one, other) {
                    (Some(one), Some(other)) => {
                        let apart = (one - other).abs();
                        apart.min(360.0 - apart)
                    }
                    (None, None) => 0.0,
                    _ => 360.0,
                };
                assert!(apart <= 30.0, "{category:?}: {hues:?}");
            }
        }
    }

    #[test]
    fn no_two_kinds_look_alike() {
        let distinct = |colours: Vec<String>| colours.iter().collect::<HashSet<_>>().len() == colours.len();
        assert!(distinct(all().map(|category| of(category).name.to_owned()).collect()));
        assert!(distinct(all().map(|category| of(category).light.to_string()).collect()));
        assert!(distinct(all().map(|category| of(category).dark.to_string()).collect()));
        assert!(distinct(all().map(|category| format!("{:?}", of(category).terminal)).collect()));
    }

    #[test]
    fn a_colour_reads_as_in_css() {
        assert_eq!(Rgb(1, 171, 255).to_string(), "#01abff");
    }

    /// The guide has the legend of this table.
    #[test]
    fn the_guide_has_every_colour() {
        let guide = include_str!("../../docs/guide.md");
        for category in Category::CODE {
            let row = format!("| {} | `{}` |", of(category).name, category.text());
            assert!(guide.contains(&row), "{row}");
        }
    }
}
