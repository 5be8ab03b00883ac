//! Security identifiers: how Windows names users and groups.

use std::fmt;
use std::str::FromStr;

use crate::bytes::Reader;

/// A security identifier: revision 1, an authority of 48 bits, up to 15 sub-authorities ([MS-DTYP] 2.4.2).
///
/// Kept as its bytes, which is how Windows takes and gives it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(Vec<u8>);

const MAX_SUB_AUTHORITIES: usize = 15;

impl Sid {
    /// `Everyone`.
    pub fn everyone() -> Sid {
        Sid::new(1, &[0])
    }

    /// `NT AUTHORITY\Authenticated Users`.
    pub fn authenticated_users() -> Sid {
        Sid::new(5, &[11])
    }

    /// `BUILTIN\Performance Log Users`.
    pub fn performance_log_users() -> Sid {
        Sid::new(5, &[32, 559])
    }

    /// `BUILTIN\Administrators`.
    pub fn administrators() -> Sid {
        Sid::new(5, &[32, 544])
    }

    /// `NULL SID`: nobody is it, so an entry for it gives nothing.
    pub fn nobody() -> Sid {
        Sid::new(0, &[0])
    }

    /// True for those well-known SIDs ([MS-DTYP] 2.4.2.4) that are not chosen accounts: everybody, everybody who comes
    /// in some way, all users of a machine or domain, guests, app packages, and nobody.
    pub fn is_anybody(&self) -> bool {
        let mut reader = Reader::at(&self.0, 7);
        let authority = reader.u8();
        let subs: Vec<u32> = std::iter::from_fn(|| reader.u32()).collect();
        match (authority, subs.as_slice()) {
            // Nobody, Everyone, local and creator SIDs, app packages, integrity levels, how an identity was proved.
            (Some(0..=3 | 15 | 16 | 18), _) => true,
            // Dialup, network, batch, interactive, service, anonymous, self, authenticated, restricted, remote, this
            // organization, write restricted, local accounts, other organization.
            (Some(5), [1..=4 | 6 | 7 | 10..=15 | 33 | 113 | 114 | 1000]) => true,
            // Users, guests, everybody of old domains.
            (Some(5), [32, 545 | 546 | 554]) => true,
            // Of a machine or domain: guest, all users, guests, computers.
            (Some(5), [21, _, _, _, 501 | 513..=515]) => true,
            _ => false,
        }
    }

    fn new(authority: u64, sub_authorities: &[u32]) -> Sid {
        let [_, _, authority @ ..] = authority.to_be_bytes();
        let mut bytes = vec![1, sub_authorities.len() as u8];
        bytes.extend(authority);
        bytes.extend(sub_authorities.iter().flat_map(|sub| sub.to_le_bytes()));
        Sid(bytes)
    }

    /// The SID at the start of `bytes`; `None` when there is none.
    pub fn read(bytes: &[u8]) -> Option<Sid> {
        let (revision, count) = (*bytes.first()?, usize::from(*bytes.get(1)?));
        if revision != 1 || count > MAX_SUB_AUTHORITIES {
            return None;
        }
        bytes.get(..8 + 4 * count).map(|bytes| Sid(bytes.to_vec()))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `S-1-5-21-…`; an authority above 32 bits is hexadecimal.
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reader = Reader::at(&self.0, 2);
        let authority = reader.array::<6>().unwrap_or_default();
        let authority = authority.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
        if authority >> 32 == 0 {
            write!(f, "S-1-{authority}")?
        } else {
            write!(f, "S-1-0x{authority:012x}")?
        }
        while let Some(sub) = reader.u32() {
            write!(f, "-{sub}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Sid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no SID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a security identifier; one looks like S-1-5-21-1004336348-1177238915-682003330-1001")]
pub struct NotASid;

impl FromStr for Sid {
    type Err = NotASid;

    fn from_str(text: &str) -> Result<Sid, NotASid> {
        let rest = text.get(..4).filter(|head| head.eq_ignore_ascii_case("S-1-")).and(text.get(4..));
        let mut parts = rest.ok_or(NotASid)?.split('-');
        let authority = parts.next().ok_or(NotASid)?;
        let authority = match authority.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => authority.parse(),
        };
        let authority = authority.ok().filter(|authority| authority >> 48 == 0).ok_or(NotASid)?;
        let sub_authorities = parts.map(str::parse).collect::<Result<Vec<u32>, _>>().map_err(|_| NotASid)?;
        if sub_authorities.is_empty() || sub_authorities.len() > MAX_SUB_AUTHORITIES {
            return Err(NotASid);
        }
        Ok(Sid::new(authority, &sub_authorities))
    }
}

#[cfg(test)]
mod tests {
    use super::{NotASid, Sid};

    #[test]
    fn text_and_bytes_agree() {
        let administrators: Sid = "S-1-5-32-544".parse().unwrap();
        assert_eq!(administrators.bytes(), [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]);
        assert_eq!(Sid::read(administrators.bytes()), Some(administrators.clone()));
        assert_eq!(administrators.to_string(), "S-1-5-32-544");
        for text in ["S-1-5-21-1004336348-1177238915-682003330-4294967295", "S-1-1-0", "S-1-0xa00000000001-7"]
        {
            assert_eq!(text.parse::<Sid>().unwrap().to_string(), text);
        }
        assert_eq!("s-1-5-11".parse(), Ok(Sid::authenticated_users()));
        assert_eq!(Sid::performance_log_users().to_string(), "S-1-5-32-559");
        assert_eq!(Sid::administrators().to_string(), "S-1-5-32-544");
    }

    #[test]
    fn anybody_is_told_from_chosen_accounts() {
        for anybody in [
            "S-1-0-0",
            "S-1-1-0",
            "S-1-5-4",
            "S-1-5-7",
            "S-1-5-11",
            "S-1-5-32-545",
            "S-1-5-21-1-2-3-513",
            "S-1-15-2-1",
        ] {
            assert!(anybody.parse::<Sid>().unwrap().is_anybody(), "{anybody}");
        }
        for chosen in [
            "S-1-5-18",
            "S-1-5-32-544",
            "S-1-5-32-559",
            "S-1-5-21-1-2-3-1001",
            "S-1-5-21-1-2-3-512",
            "S-1-5-80-1-2-3-4-5",
        ] {
            assert!(!chosen.parse::<Sid>().unwrap().is_anybody(), "{chosen}");
        }
    }

    #[test]
    fn what_is_no_sid_is_refused() {
        for text in
            ["", "S-1", "S-1-5", "S-2-5-11", "S-1-5-x", "S-1-5-4294967296", "Bob", "S-1-281474976710656-1"]
        {
            assert_eq!(text.parse::<Sid>(), Err(NotASid), "{text}");
        }
        assert_eq!(Sid::read(&[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0]), None);
        assert_eq!(Sid::read(&[2, 0, 0, 0, 0, 0, 0, 5]), None);
        assert_eq!(Sid::read(&[1, 16]), None);
    }
}
