//! What a live recording says: on its status line, when something is odd, and when there is nothing to show.

use std::time::Duration;

use etwprof::profile::Balance;
use etwprof::report::{bytes, count};
use etwprof::session::Status;

use crate::cli::time;

/// A look at a recording, with the targets' share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Samples of the targets since the start.
    pub(super) samples: u64,
    /// Their part of all samples of late, idle processors included; `None` if there were none.
    pub(super) percent: Option<f64>,
    pub(super) processors: u32,
}

/// At most 80 columns, but for enormous figures; what is lost stands before what may be cut off.
pub(super) fn status_line(status: &Status, share: &Share, target: &str, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let what = if share.samples == 0 {
        format!("no samples of {target} yet")
    } else {
        let percent = share.percent.map(|percent| format!(", {percent:.1}% of {} CPUs", share.processors));
        format!("{} samples{}", count(share.samples), percent.unwrap_or_default())
    };
    let losses = &status.losses;
    let lost = match (losses.events + losses.dropped, losses.buffers) {
        (0, 0) => "lost 0".to_owned(),
        (events, buffers) => format!("lost {} events, {} buffers", count(events), count(buffers)),
    };
    const NOTABLE: u64 = 512 << 20;
    let memory = if status.memory >= NOTABLE { format!("  {}", bytes(status.memory)) } else { String::new() };
    format!(
        "{seconds} s  {what}  {lost}{memory}  buffers {} of {}  Ctrl-C stops",
        status.buffers_used, status.buffers
    )
}

/// Said at the start where no status line shows that it records.
pub(super) fn recording(target: &str, frequency: u32, duration: Option<Duration>) -> String {
    let end = duration.map(|duration| format!(" for {}", time::spell(duration)));
    let rate = count(u64::from(frequency));
    format!(
        "recording {target}{}, {rate} samples per second on each processor; Ctrl-C stops",
        end.unwrap_or_default()
    )
}

/// Said when it has ended.
pub(super) fn recorded(target: &str, elapsed: Duration, share: &Share) -> String {
    format!("recorded {:.1} s; {} samples of {target}", elapsed.as_secs_f64(), count(share.samples))
}

/// While .NET programs list their code: whoever asked to stop should see why it takes time.
pub(super) fn listing(names: &[String], events: u64) -> String {
    const SHOWN: usize = 2;
    let mut who = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        who += &format!(" and {} more", names.len() - SHOWN);
    }
    format!(
        "waiting for .NET rundown of {who}, {} events; Ctrl-C again aborts without a result",
        count(events)
    )
}

/// Why the whole machine may give no sample at all.
pub(super) const NO_SAMPLE_CAUSES: &str = "another profiler (VTune, ...), Microsoft Defender or another security product \
    (EDR) may hold the sampling source, which Windows does not show; some virtual machines have none. Stop the other \
    profiler, add an exception to the security product, or give the virtual machine performance counters";

/// No processor gave a sample in the first seconds, not even an idle one.
pub(super) fn no_sample_yet(elapsed: Duration) -> String {
    format!("no samples in {} s, not even from idle processors: {NO_SAMPLE_CAUSES}", elapsed.as_secs())
}

/// The machine is sampled, the targets are not.
pub(super) fn no_sample_of(target: &str, status: &Status) -> String {
    let samples = &status.samples;
    let idle = 100.0 * samples.idle as f64 / samples.all.max(1) as f64;
    format!(
        "no samples of {target} yet: it has not used the CPU, or it is not the process you mean (the machine took {} \
         samples, {idle:.0}% of them idle)",
        count(samples.all)
    )
}

/// The recording gave nothing at all.
pub(super) fn no_sample() -> String {
    format!("no samples were recorded: {NO_SAMPLE_CAUSES}")
}

/// What is needed to show the result would not fit into memory for much longer.
pub(super) fn memory_is_short(status: &Status) -> String {
    format!(
        "stopping the recording because memory is running out: it uses {}, and {} are left; use a lower --frequency or a \
         shorter --duration",
        bytes(status.memory),
        bytes(status.memory_left)
    )
}

/// True when a recording must end to be shown at all: it takes about as much memory again to make a result of it.
pub(super) fn is_memory_short(status: &Status) -> bool {
    status.memory > status.memory_left
}

/// What the targets are called, and whether one of them ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Targeted<'a> {
    pub(super) label: &'a str,
    /// Given by `--name`, and nothing of this name ran.
    pub(super) never_ran: Option<&'a str>,
}

/// Why there is nothing to show, though the machine was sampled.
pub(super) fn nothing_left(targeted: Targeted<'_>, balance: &Balance) -> String {
    if let Some(name) = targeted.never_ran {
        return format!("--name {name}: no process of this name ran; `tasklist` lists what is running");
    }
    let others = balance.total.saturating_sub(balance.idle);
    format!(
        "no samples of {}: it used no CPU while it was recorded ({} samples: {} idle, {} of other processes)",
        targeted.label,
        count(balance.total),
        count(balance.idle),
        count(others)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwprof::session::{Losses, SampleCounts};

    fn share(samples: u64) -> Share {
        Share { samples, percent: Some(12.44), processors: 8 }
    }

    fn line(status: &Status, samples: u64) -> String {
        status_line(status, &share(samples), "orders.exe (1234)", Duration::from_millis(12_900))
    }

    #[test]
    fn the_status_line_is_about_the_target_and_fits() {
        let mut status = Status { buffers: 64, buffers_used: 3, ..Status::default() };
        let text = line(&status, 5120);
        assert_eq!(text, "12 s  5,120 samples, 12.4% of 8 CPUs  lost 0  buffers 3 of 64  Ctrl-C stops");
        assert!(text.len() <= 80);
        assert!(line(&status, 0).starts_with("12 s  no samples of orders.exe (1234) yet  lost 0"));
        status.losses = Losses { events: 1200, buffers: 7, dropped: 34, late: 0 };
        let text = line(&status, 5120);
        assert!(
            text.starts_with("12 s  5,120 samples, 12.4% of 8 CPUs  lost 1,234 events, 7 buffers"),
            "{text}"
        );
        status.memory = 3 << 29;
        assert!(line(&status, 5120).contains("  1.5 GiB  "));
    }

    #[test]
    fn a_machine_without_samples_names_who_may_hold_them() {
        for text in [no_sample_yet(Duration::from_secs(2)), no_sample()] {
            for cause in ["Defender", "EDR", "VTune", "virtual machine"] {
                assert!(text.contains(cause), "{cause}: {text}");
            }
            assert!(!text.contains("etwprof sessions"), "it shows none of these: {text}");
        }
    }

    #[test]
    fn a_target_without_samples_does_not_look_like_success() {
        let samples = SampleCounts { all: 2000, idle: 1900, ..SampleCounts::default() };
        let text = no_sample_of("orders.exe (1234)", &Status { samples, ..Status::default() });
        assert!(text.starts_with("no samples of orders.exe (1234) yet: "), "{text}");
        assert!(text.ends_with("(the machine took 2,000 samples, 95% of them idle)"), "{text}");
    }

    #[test]
    fn an_empty_result_is_of_the_recording_and_not_of_a_file() {
        let balance = Balance { total: 1000, idle: 900, filtered: 100, ..Balance::default() };
        let targeted = Targeted { label: "process 1234", never_ran: None };
        let text = nothing_left(targeted, &balance);
        assert!(
            text.contains("process 1234") && text.contains("1,000 samples: 900 idle, 100 of other"),
            "{text}"
        );
        let named = Targeted { label: "orders", never_ran: Some("orders") };
        let text = nothing_left(named, &balance);
        assert!(text.starts_with("--name orders: no process of this name ran"), "{text}");
        for text in [text, nothing_left(targeted, &balance)] {
            assert!(!text.contains("etwprof info") && !text.contains("--tid"), "{text}");
        }
    }

    #[test]
    fn the_start_the_end_and_the_lists_are_said_in_one_line_each() {
        assert_eq!(
            recording("orders.exe (12)", 1000, Some(Duration::from_secs(10))),
            "recording orders.exe (12) for 10s, 1,000 samples per second on each processor; Ctrl-C stops"
        );
        assert_eq!(
            recorded("orders.exe (12)", Duration::from_millis(1250), &share(4000)),
            "recorded 1.2 s; 4,000 samples of orders.exe (12)"
        );
        let names = ["a.exe (1)", "b.exe (2)", "c.exe (3)"].map(str::to_owned);
        assert!(listing(&names, 12345).starts_with(
            "waiting for .NET rundown of a.exe (1), b.exe (2) and 1 more, 12,345 events; Ctrl-C"
        ));
    }

    #[test]
    fn a_recording_ends_while_its_result_still_fits() {
        let status = |memory, memory_left| Status { memory, memory_left, ..Status::default() };
        assert!(!is_memory_short(&status(1 << 30, 4 << 30)));
        assert!(is_memory_short(&status(3 << 30, 2 << 30)));
        assert!(memory_is_short(&status(3 << 30, 2 << 30)).contains("it uses 3.0 GiB, and 2.0 GiB are left"));
    }
}
