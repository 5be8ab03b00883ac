//! Of which processes a provider's events are wanted.

/// The processes that a provider of programs is switched on for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every process of the machine.
    #[default]
    All,
    /// The processes of these ids.
    Pids(Vec<u32>),
    /// The processes of these executables, by file name, with `.exe` and without a folder; later ones, too.
    Names(Vec<String>),
}

/// A scope as EVENT_FILTER_DESCRIPTOR takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFilter {
    /// The type of the filter.
    pub kind: u32,
    /// What it points to, aligned as ids have to be.
    pub data: Vec<u32>,
    /// Its size in bytes.
    pub size: u32,
}

/// A filter takes so many ids (documentation of EVENT_FILTER_DESCRIPTOR).
const MOST_PIDS: usize = 8;
/// The bytes of a filter's data (MAX_EVENT_FILTER_DATA_SIZE of evntprov.h).
const MOST_BYTES: usize = 1024;
/// EVENT_FILTER_TYPE_PID of evntprov.h.
const BY_PID: u32 = 0x8000_0004;
/// EVENT_FILTER_TYPE_EXECUTABLE_NAME of evntprov.h.
const BY_NAME: u32 = 0x8000_0008;

impl Scope {
    /// This scope, or all processes where a filter cannot express it.
    pub fn expressible(self) -> Scope {
        if self.filter().is_some() { self } else { Scope::All }
    }

    /// The filter; `None` for all processes, and for a scope that no filter can express.
    pub fn filter(&self) -> Option<ScopeFilter> {
        match self {
            Scope::All => None,
            Scope::Pids(pids) if pids.is_empty() || pids.len() > MOST_PIDS => None,
            Scope::Pids(pids) => Some(ScopeFilter {
                kind: BY_PID,
                data: pids.clone(),
                size: size_of_val(pids.as_slice()) as u32,
            }),
            // One text that ends with 0, its names apart by semicolons.
            Scope::Names(names) => {
                if names.is_empty() || names.iter().any(|name| name.contains(';')) {
                    return None;
                }
                let text: Vec<u16> = names.join(";").encode_utf16().chain([0]).collect();
                let size = size_of_val(text.as_slice());
                let word =
                    |pair: &[u16]| pair.iter().rev().fold(0, |word, unit| word << 16 | u32::from(*unit));
                let data = text.chunks(2).map(word).collect();
                (size <= MOST_BYTES).then_some(ScopeFilter { kind: BY_NAME, data, size: size as u32 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, ScopeFilter};

    #[test]
    fn scopes_become_the_filters_of_the_system() {
        let pids = Scope::Pids(vec![4, 0x1234]).filter();
        assert_eq!(pids, Some(ScopeFilter { kind: 0x8000_0004, data: vec![4, 0x1234], size: 8 }));
        // "a;b" and its end: 61 00 3b 00 62 00 00 00; an odd number of units is filled up.
        let names = |names: &[&str]| Scope::Names(names.iter().map(|name| (*name).to_owned()).collect());
        let filter = |data: &[u32], size| Some(ScopeFilter { kind: 0x8000_0008, data: data.to_vec(), size });
        assert_eq!(names(&["a", "b"]).filter(), filter(&[0x003b_0061, 0x0000_0062], 8));
        assert_eq!(names(&["ab"]).filter(), filter(&[0x0062_0061, 0], 6));
        assert_eq!(Scope::All.filter(), None);
    }

    #[test]
    fn what_no_filter_can_express_is_all() {
        let too_long = "x".repeat(512);
        for scope in [
            Scope::Pids(vec![1; 9]),
            Scope::Pids(vec![]),
            Scope::Names(vec![]),
            Scope::Names(vec!["a;b".to_owned()]),
            Scope::Names(vec![too_long]),
        ] {
            assert_eq!(scope.expressible(), Scope::All);
        }
        let kept = Scope::Names(vec!["x".repeat(511)]);
        assert_eq!(kept.clone().expressible(), kept);
    }
}
