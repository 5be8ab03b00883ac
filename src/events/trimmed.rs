//! What a recording was trimmed to, as an event of a provider of our own.
//!
//! Without it, a recording of one process looks like one of a machine that did little else and lost most of it. `etwprof trim`
//! and `etwprof record` write it behind the header. It describes itself, so any reader shows it. The fields are
//! `AllProviders` (a `u32`, 0 or 1), `From` and `To` (`i64`, ticks of the recording's clock; 0 where the time is open), and
//! `ProcessIds` (a `u16`, how many there are, and so many `u32`; none where all are kept).

use crate::clock::Ticks;
use crate::event::Event;

use super::self_describing::{self, ARRAY, BOOL32, HAS_OUT_TYPE, INT64, PID, UINT32};

/// The name of the event.
pub const NAME: &str = "Trimmed";

/// What was kept of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The events of processes with these ids, in order; `None` for all.
    pub pids: Option<Vec<u32>>,
    /// Events from this moment on.
    pub from: Option<Ticks>,
    /// Events before this moment.
    pub to: Option<Ticks>,
    /// Events of some providers only.
    pub some_providers: bool,
}

impl Trimmed {
    /// True if events of this process are kept.
    pub fn has(&self, pid: u32) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.binary_search(&pid).is_ok())
    }

    /// What two parts of one recording have together.
    #[must_use]
    pub fn with(self, other: Trimmed) -> Trimmed {
        let pids = self.pids.zip(other.pids).map(|(pids, others)| in_order(pids.into_iter().chain(others)));
        Trimmed {
            pids,
            from: self.from.zip(other.from).map(|(from, other)| from.min(other)),
            to: self.to.zip(other.to).map(|(to, other)| to.max(other)),
            some_providers: self.some_providers || other.some_providers,
        }
    }
}

/// Each id once.
pub fn in_order(pids: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut pids: Vec<u32> = pids.collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimmedEvent<'a> {
    from: Option<Ticks>,
    to: Option<Ticks>,
    some_providers: bool,
    /// Of 4 bytes each.
    pids: &'a [u8],
}

impl TrimmedEvent<'_> {
    /// What it says.
    pub fn trimmed(&self) -> Trimmed {
        let TrimmedEvent { from, to, some_providers, pids } = *self;
        let (pids, _) = pids.as_chunks();
        let pids = (!pids.is_empty()).then(|| in_order(pids.iter().copied().map(u32::from_le_bytes)));
        Trimmed { pids, from, to, some_providers }
    }
}

/// Decodes the event; `None` if its payload is too short.
pub(super) fn decode<'a>(event: &Event<'a>) -> Option<TrimmedEvent<'a>> {
    let mut r = event.reader();
    let some_providers = r.u32()? == 0;
    let open = |moment: u64| (moment != 0).then_some(Ticks(moment.cast_signed()));
    let (from, to) = (open(r.u64()?), open(r.u64()?));
    let count = usize::from(r.u16()?);
    let pids = r.take(4 * count)?;
    Some(TrimmedEvent { from, to, some_providers, pids })
}

/// The payload of an event. Of more processes than it has room for, it has the first.
pub fn payload(trimmed: &Trimmed) -> Vec<u8> {
    let Trimmed { pids, from, to, some_providers } = trimmed;
    let mut payload = u32::from(!some_providers).to_le_bytes().to_vec();
    for moment in [from, to] {
        payload.extend_from_slice(&moment.map_or(0, |moment| moment.0).to_le_bytes());
    }
    let pids = pids.as_deref().unwrap_or_default();
    let count = u16::try_from(pids.len()).unwrap_or(MOST_PIDS).min(MOST_PIDS);
    payload.extend_from_slice(&count.to_le_bytes());
    payload.extend(pids.iter().take(count.into()).flat_map(|pid| pid.to_le_bytes()));
    payload
}

/// A record has less than 64 KiB.
const MOST_PIDS: u16 = 16_000;

/// The extended items of every such event, as they lie in a file.
pub fn items() -> Vec<u8> {
    self_describing::items(
        NAME,
        &[
            ("AllProviders", &[BOOL32]),
            ("From", &[INT64]),
            ("To", &[INT64]),
            ("ProcessIds", &[UINT32 | ARRAY | HAS_OUT_TYPE, PID]),
        ],
    )
}
