//! `--strict`: what is wrong with a recording is a failure, once its result is printed.

use anyhow::Result;
use etwprof::Analysis;
use etwprof::etl::Damage;
use etwprof::report::count;
use etwprof::trace::Lost;

use super::load;

/// A result was printed, and is not what it should be; one reason in each line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(super) struct Strict(pub(super) Vec<String>);

/// The samples without a whole stack, in percent, from which on a recording is poor.
const MOST_BROKEN: f64 = 10.0;

/// The samples whose leaf has a name, in percent, below which a result is poor.
const LEAST_NAMED: f64 = 50.0;

/// What came of printing a result. Where it is there and `--strict` is set, there must be no `reasons` against it. A
/// reader that has had enough has its result.
pub(super) fn checked(
    strict: bool,
    printed: Result<()>,
    reasons: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    if strict && printed.as_ref().err().is_none_or(super::is_broken_pipe) {
        let reasons = reasons();
        if !reasons.is_empty() {
            return Err(Strict(reasons).into());
        }
    }
    printed
}

/// What is wrong with a recording and what was made of it. Names count only where some were looked for.
pub(super) fn reasons(analysis: &Analysis, names_wanted: bool) -> Vec<String> {
    let profile = &analysis.profile;
    let mut reasons = of_reading(&profile.trace.lost, &analysis.damage);
    let balance = &profile.balance;
    let percent = |part: u64| 100.0 * part as f64 / balance.kept.max(1) as f64;
    if balance.total == 0 {
        reasons.push("the recording has no CPU samples".to_owned());
    } else if balance.kept == 0 {
        reasons.push("the filters leave no samples".to_owned());
    } else {
        let stacks = &balance.stacks;
        // What was mended is as poor as before.
        let broken = stacks.broken + stacks.repaired;
        let incomplete = broken + stacks.none + profile.cut().samples;
        if percent(incomplete) > MOST_BROKEN {
            reasons.push(format!(
                "{:.1}% of the samples have a broken stack or none (more than {MOST_BROKEN:.0}%)",
                percent(incomplete)
            ));
        }
        let named = percent(profile.named_leaves());
        if names_wanted && named < LEAST_NAMED {
            reasons.push(format!(
                "{named:.1}% of the samples have a name for their leaf (less than {LEAST_NAMED:.0}%)"
            ));
        }
    }
    reasons
}

/// What is wrong with the files and the session.
pub(super) fn of_reading(lost: &Lost, damage: &[Damage]) -> Vec<String> {
    // Stacks without an event, or without a definition, are counted among the samples without a stack.
    let whole = Lost { orphan_stacks: 0, undefined_stack_keys: 0, ..lost.clone() };
    let mut reasons = load::losses(&whole);
    match damage {
        [] => {}
        [damage] => reasons.push(damage.to_string()),
        [first, more @ ..] => {
            reasons.push(format!("{first}; and {} more damaged places", count(more.len() as u64)));
        }
    }
    reasons
}
