//! A summary in Markdown, as build servers show it.

use std::io::{self, Write};

use console::strip_ansi_codes;

use crate::report::text::{capital, milliseconds, one_line};

use super::{Checked, Diff, Row, Tree, change_ms, percent};

/// Writes a summary in Markdown, as build servers show it.
pub fn write_markdown(
    out: &mut impl Write,
    diff: &Diff,
    conditions: &[Checked],
    tree: Option<&Tree>,
) -> io::Result<()> {
    let failed = conditions.iter().filter(|checked| checked.verdict != "passed").count();
    let verdict = match (conditions.len(), failed) {
        (0, _) => " compared".to_owned(),
        (_, 0) => ": all conditions hold".to_owned(),
        (all, failed) => format!(": {failed} of {all} conditions do not hold"),
    };
    writeln!(out, "### {}{verdict}\n", capital(diff.metric))?;
    for line in diff.head().lines() {
        writeln!(out, "- {line}")?;
    }
    if !conditions.is_empty() {
        writeln!(out, "\n| condition | verdict | |\n|---|---|---|")?;
        for checked in conditions {
            let (condition, reason) = (code(&checked.condition), code(&checked.reason));
            writeln!(out, "| {condition} | {} | {reason} |", checked.verdict)?;
        }
    }
    writeln!(out)?;
    write_rows(out, diff)?;
    let Some(tree) = tree else { return Ok(()) };
    let mut lines = Vec::new();
    tree.write(&mut lines, None)?;
    // Every line begins with numbers or blanks: no name ends the block.
    writeln!(out, "\n```text\n{}```", strip_ansi_codes(&String::from_utf8_lossy(&lines)))
}

fn write_rows(out: &mut impl Write, diff: &Diff) -> io::Result<()> {
    if diff.rows.is_empty() {
        writeln!(out, "{}", diff.nothing())?;
    } else {
        let heads = match diff.sort {
            "overweight" => &["interest", "overweight", "resp %", "change ms", "before ms", "after ms"][..],
            _ => &["change ms", "change", "before ms", "after ms"],
        };
        let cells = |row: &Row| {
            let change = change_ms(row.delta_ns);
            let both = [milliseconds(row.scaled_ns() / 100), milliseconds(row.after_ns / 100)];
            let before_them = match diff.sort {
                "overweight" => {
                    let (overweight, share) = (percent(row.overweight), percent(row.responsibility));
                    vec![row.interest.to_string(), overweight, share, change]
                }
                _ => vec![change, row.marked_growth()],
            };
            [before_them, both.to_vec()].concat()
        };
        writeln!(out, "| {} | {} |", heads.join(" | "), diff.by.text())?;
        writeln!(out, "|{}---|", "--:|".repeat(heads.len()))?;
        for row in &diff.rows {
            // `~` twice would strike out what is between.
            let cells = cells(row).join(" | ").replace('~', "\\~");
            writeln!(out, "| {cells} | {} |", code(&row.name))?;
        }
    }
    let rest = diff.rest();
    if rest.is_empty() { Ok(()) } else { writeln!(out, "\n{}", rest.join("  \n")) }
}

/// A name as code in a cell of Markdown: no text ends the code or the cell.
fn code(text: &str) -> String {
    let text = one_line(text).replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}
