//! The account of all samples in words, with the options that left some out.

use crate::profile::{Balance, FilteredBy};
use crate::trace::Lost;

use super::text::count;

/// The options that left samples out, and how many each did.
pub fn reasons(by: &FilteredBy) -> Vec<(u64, &'static str)> {
    let FilteredBy {
        process,
        thread,
        cpu,
        time,
        during,
        module,
        function,
        exclude,
        category,
        patterns,
        focus,
    } = *by;
    let mut reasons = vec![
        (process, "--pid/--name"),
        (thread, "--tid/--thread"),
        (cpu, "--cpu"),
        (time, "--from/--to"),
        (during, "--during"),
        (module, "--module"),
        (function, "--function"),
        (exclude, "--exclude"),
        (category, "--category"),
        (patterns, "--inc-pats/--exc-pats"),
        (focus, "--focus/--from-function"),
    ];
    reasons.retain(|(samples, _)| *samples > 0);
    reasons
}

/// `1,234 filtered out (1,000 --pid/--name, 234 --function)`; a single reason goes without saying.
pub fn filtered_out(balance: &Balance) -> String {
    let text = format!("{} filtered out", count(balance.filtered));
    let reasons = reasons(&balance.filtered_by);
    if reasons.len() < 2 {
        return text;
    }
    let parts: Vec<String> =
        reasons.iter().map(|(samples, option)| format!("{} {option}", count(*samples))).collect();
    format!("{text} ({})", parts.join(", "))
}

/// What a recording lost: how many, and of what.
pub(super) fn losses(lost: &Lost) -> [(u64, &'static str); 6] {
    [
        (lost.events, "events"),
        (lost.buffers, "buffers"),
        (lost.sequence_gaps, "gaps in the buffer sequence"),
        (lost.orphan_stacks, "stacks without an event"),
        (lost.undefined_stack_keys, "stacks whose key was never defined"),
        (lost.malformed_events, "malformed events"),
    ]
}

#[cfg(test)]
mod tests {
    use super::filtered_out;
    use crate::profile::{Balance, FilteredBy};

    #[test]
    fn several_reasons_are_listed_and_a_single_one_is_not() {
        let balance = |filtered_by: FilteredBy| Balance {
            filtered: filtered_by.sum(),
            filtered_by,
            ..Balance::default()
        };
        let one = FilteredBy { function: 1234, ..FilteredBy::default() };
        assert_eq!(filtered_out(&balance(one)), "1,234 filtered out");
        assert_eq!(
            filtered_out(&balance(FilteredBy { process: 1000, function: 234, ..FilteredBy::default() })),
            "1,234 filtered out (1,000 --pid/--name, 234 --function)"
        );
    }
}
