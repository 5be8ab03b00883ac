//! The report page: one HTML file that opens in any browser, without a server.
//!
//! Its scripts are our own and stand in the file as they are. They unpack the data (`data.rs`), and count it anew with every
//! choice of time and threads; nothing is asked of any server. A content security policy allows exactly these scripts and
//! this style, by their hashes.

mod column;
mod counters;
mod data;
mod facts;
mod lanes;
mod threads;
mod tree;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::report::format::{Content, Format, Needs, Picture, Tops};

/// The format.
pub const FORMAT: Format = Format {
    name: "html",
    endings: &[".html", ".htm"],
    about: "Interactive report, one file",
    viewers: "any browser",
    content: Content::Plain,
    tops: Tops::Code,
    needs: Needs { ends: true, cpu_time: true, lines: true, waits: true, ..Needs::NOTHING },
    write,
};

const HTML: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
/// In the order in which they need each other.
const SCRIPTS: [&str; 14] = [
    include_str!("data.js"),
    include_str!("counts.js"),
    include_str!("branches.js"),
    include_str!("../narrow.js"),
    include_str!("text.js"),
    include_str!("state.js"),
    include_str!("summary.js"),
    include_str!("timeline.js"),
    include_str!("flame.js"),
    include_str!("table.js"),
    include_str!("calls.js"),
    include_str!("callers.js"),
    include_str!("keys.js"),
    include_str!("main.js"),
];

fn write(out: &mut dyn Write, picture: &Picture<'_>) -> io::Result<()> {
    let script = SCRIPTS.concat();
    // What stands between the marks of the page, and what is written for each.
    let mut rest = HTML;
    while let Some((before, behind)) = rest.split_once("{{") {
        out.write_all(before.as_bytes())?;
        let (mark, behind) = behind.split_once("}}").unwrap_or((behind, ""));
        match mark {
            "script" => out.write_all(script.as_bytes())?,
            "script-hash" => out.write_all(hash(&script).as_bytes())?,
            "style" => out.write_all(CSS.as_bytes())?,
            "style-hash" => out.write_all(hash(CSS).as_bytes())?,
            _ => data::write(out, picture)?,
        }
        rest = behind;
    }
    out.write_all(rest.as_bytes())
}

/// As a content security policy wants it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests;
