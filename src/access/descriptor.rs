//! Security descriptors: who may do what with an object.
//!
//! Windows stores one as a block of bytes whose parts are found by offsets (*self-relative*, [MS-DTYP] 2.4.6): control
//! bits, an owner, a group, and two lists of access control entries (ACEs). The DACL says who may do what; the system
//! walks it from the top, and the first entry that speaks of a right decides on it. Hence the *canonical order*:
//! entries that deny before entries that allow, and the object's own before inherited ones.

use crate::bytes::Reader;

use super::Sid;

const ALLOW: u8 = 0;
const DENY: u8 = 1;
const INHERIT_ONLY: u8 = 0x08;
const INHERITED: u8 = 0x10;
const DACL_PRESENT: u16 = 0x4;
const SACL_PRESENT: u16 = 0x10;
const SELF_RELATIVE: u16 = 0x8000;

/// One access control entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ace {
    /// The type: 0 allows, 1 denies; others are kept as they are.
    pub kind: u8,
    /// Inheritance and audit flags.
    pub flags: u8,
    /// What follows the header of 4 bytes; for types 0 and 1 the rights, then the SID.
    pub body: Vec<u8>,
}

impl Ace {
    /// An entry that allows `sid` these rights.
    pub fn allow(sid: &Sid, rights: u32) -> Ace {
        Ace { kind: ALLOW, flags: 0, body: [&rights.to_le_bytes(), sid.bytes()].concat() }
    }

    /// The rights and whom they are for, if the entry plainly allows or denies.
    pub fn subject(&self) -> Option<(u32, Sid)> {
        if self.kind > DENY {
            return None;
        }
        let mut reader = Reader::new(&self.body);
        Some((reader.u32()?, Sid::read(reader.rest())?))
    }

    /// The rights that the object's own entry allows `sid`.
    fn allows(&self, sid: &Sid) -> Option<u32> {
        let (rights, subject) = self.subject()?;
        (self.kind == ALLOW && self.flags == 0 && subject == *sid).then_some(rights)
    }

    /// The place in the canonical order.
    fn rank(&self) -> u8 {
        let inherited = if self.flags & INHERITED != 0 { 2 } else { 0 };
        // Object and callback entries deny with 6, 10 and 12.
        inherited + u8::from(!matches!(self.kind, DENY | 6 | 10 | 12))
    }
}

/// A list of access control entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    /// 2, or 4 for a list with object entries.
    pub revision: u8,
    /// The entries, the deciding one first.
    pub aces: Vec<Ace>,
}

/// A security descriptor, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityDescriptor {
    /// The control bits.
    pub control: u16,
    /// The owner.
    pub owner: Option<Sid>,
    /// The primary group.
    pub group: Option<Sid>,
    /// The list for auditing.
    pub sacl: Option<Acl>,
    /// The list of who may do what. Without one everybody may do everything.
    pub dacl: Option<Acl>,
}

/// Bytes that are no security descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a security descriptor: {what} at byte {offset}")]
pub struct NotADescriptor {
    /// What is wrong.
    pub what: &'static str,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl SecurityDescriptor {
    /// Takes a self-relative descriptor apart.
    pub fn read(bytes: &[u8]) -> Result<SecurityDescriptor, NotADescriptor> {
        let wrong = |what, offset| NotADescriptor { what, offset };
        let mut reader = Reader::new(bytes);
        let header = (|| Some((reader.u8()?, reader.u8()?, reader.u16()?, reader.array::<16>()?)))();
        let Some((1, _, control, offsets)) = header else { return Err(wrong("no header", 0)) };
        if control & SELF_RELATIVE == 0 {
            return Err(wrong("its parts are not with it", 2));
        }
        let mut offsets = Reader::new(&offsets);
        let mut offset = || offsets.u32().unwrap_or_default() as usize;
        let sid = |offset| match offset {
            0 => Ok(None),
            _ => Sid::read(Reader::at(bytes, offset).rest()).map(Some).ok_or(wrong("no SID", offset)),
        };
        let acl = |offset, present| match offset {
            0 => Ok(None),
            _ if control & present == 0 => Ok(None),
            _ => Acl::read(Reader::at(bytes, offset).rest()).map(Some).ok_or(wrong("a broken list", offset)),
        };
        let (owner, group) = (sid(offset())?, sid(offset())?);
        let (sacl, dacl) = (acl(offset(), SACL_PRESENT)?, acl(offset(), DACL_PRESENT)?);
        Ok(SecurityDescriptor { control, owner, group, sacl, dacl })
    }

    /// Puts it together, self-relative: header, lists, owner, group.
    pub fn to_bytes(&self) -> Vec<u8> {
        let [sacl, dacl] = [&self.sacl, &self.dacl].map(|acl| acl.as_ref().map(Acl::to_bytes));
        let [owner, group] =
            [&self.owner, &self.group].map(|sid| sid.as_ref().map(|sid| sid.bytes().to_vec()));
        let mut body = Vec::new();
        let mut place = |part: Option<Vec<u8>>| -> u32 {
            let Some(part) = part else { return 0 };
            let offset = 20 + body.len() as u32;
            body.extend(part);
            offset
        };
        let (sacl, dacl) = (place(sacl), place(dacl));
        let (owner, group) = (place(owner), place(group));
        let mut bytes = vec![1, 0];
        bytes.extend((self.control | SELF_RELATIVE).to_le_bytes());
        bytes.extend([owner, group, sacl, dacl].iter().flat_map(|offset| offset.to_le_bytes()));
        bytes.extend(body);
        bytes
    }

    /// The entries that say who may do what.
    pub fn aces(&self) -> &[Ace] {
        self.dacl.as_ref().map_or(&[], |dacl| &dacl.aces)
    }

    /// True if the entries are in canonical order.
    pub fn is_canonical(&self) -> bool {
        self.aces().is_sorted_by_key(Ace::rank)
    }

    /// The rights that entries of the object's own allow exactly this SID.
    pub fn allowed_to(&self, sid: &Sid) -> u32 {
        self.aces().iter().filter_map(|ace| ace.allows(sid)).fold(0, |all, rights| all | rights)
    }

    /// True if exactly this SID is allowed all these rights, or if there is no list, and everything is allowed.
    pub fn grants(&self, sid: &Sid, rights: u32) -> bool {
        self.dacl.is_none() || self.allowed_to(sid) & rights == rights
    }

    /// Whom of `sids` an entry denies one of these rights.
    pub fn denied<'s>(&self, sids: &'s [Sid], rights: u32) -> Option<&'s Sid> {
        let denies = self.aces().iter().filter(|ace| ace.kind == DENY && ace.flags & INHERIT_ONLY == 0);
        let mut denied =
            denies.filter_map(Ace::subject).filter(|(denied, _)| specific(*denied) & rights != 0);
        denied.find_map(|(_, denied)| sids.iter().find(|sid| **sid == denied))
    }

    /// True if both lists are the same, but for entries that allow [`Sid::nobody`] something.
    pub fn same_entries(&self, other: &SecurityDescriptor) -> bool {
        let (nobody, open) = (Sid::nobody(), |descriptor: &SecurityDescriptor| descriptor.dacl.is_none());
        let entries = |descriptor| {
            let aces = SecurityDescriptor::aces(descriptor).iter();
            aces.filter(|ace| ace.allows(&nobody).is_none())
        };
        open(self) == open(other) && entries(self).eq(entries(other))
    }

    /// Which of the `wanted` rights somebody has who is all of `sids`, with the SIDs that give them; as the system
    /// decides: from the top, the first entry that speaks of a right. Entries for parts of objects and entries with
    /// conditions are passed over; ETW's objects have no parts.
    pub fn access(&self, sids: &[Sid], wanted: u32) -> (u32, Vec<Sid>) {
        if self.dacl.is_none() {
            return (wanted, Vec::new());
        }
        let (mut given, mut open, mut by) = (0, wanted, Vec::new());
        for ace in self.aces().iter().filter(|ace| ace.flags & INHERIT_ONLY == 0) {
            let Some((rights, sid)) = ace.subject().filter(|(_, sid)| sids.contains(sid)) else { continue };
            let decided = specific(rights) & open;
            open &= !decided;
            if ace.kind == ALLOW && decided != 0 {
                given |= decided;
                if !by.contains(&sid) {
                    by.push(sid);
                }
            }
        }
        (given, by)
    }

    /// Checks that `self` is `before` and one more entry that allows `sid` these `rights`, or one that was widened by
    /// them; and in canonical order, if `before` was.
    pub fn is_with(&self, before: &SecurityDescriptor, sid: &Sid, rights: u32) -> Result<(), Difference> {
        if self.allowed_to(sid) & rights != rights {
            return Err(Difference::NotAdded);
        }
        if before.is_canonical() && !self.is_canonical() {
            return Err(Difference::Disordered);
        }
        let (mut rest, mut added) = (self.aces().iter(), 0);
        for ace in before.aces() {
            loop {
                let found = rest.next().ok_or(Difference::Lost)?;
                let widened = || {
                    let (had, has) = (ace.allows(sid)?, found.allows(sid)?);
                    (has == had | rights).then_some(())
                };
                if found == ace || (widened().is_some() && !rest.clone().any(|later| later == ace)) {
                    break;
                }
                added += 1;
                if found.allows(sid) != Some(rights) {
                    return Err(Difference::Lost);
                }
            }
        }
        added += rest.len();
        if rest.any(|ace| ace.allows(sid) != Some(rights)) || added > 1 {
            return Err(Difference::Strange);
        }
        if before.dacl.is_none() {
            // Nobody was shut out before, and now the list shuts out all but one.
            return Err(Difference::Lost);
        }
        Ok(())
    }

    /// Without one entry that allows `sid` exactly these `rights`; where there is none such, because somebody has
    /// changed it, without what is left of them in another entry. `keep` is what it was allowed before, which stays
    /// even if the system put it into one entry with ours. `None` if nothing of ours is left.
    pub fn without(&self, sid: &Sid, rights: u32, keep: u32) -> Option<SecurityDescriptor> {
        let mut left = self.clone();
        let aces = &mut left.dacl.as_mut()?.aces;
        let ours = rights & !keep;
        // The last, because new entries come after those of their kind.
        let exactly = aces.iter().rposition(|ace| ace.allows(sid) == Some(rights));
        let partly = || aces.iter().rposition(|ace| ace.allows(sid).is_some_and(|all| all & ours != 0));
        let place = exactly.or_else(partly)?;
        let all = aces.remove(place).allows(sid)?;
        let elsewhere = aces.iter().filter_map(|ace| ace.allows(sid)).fold(0, |all, rights| all | rights);
        let foreign = if exactly.is_some() { 0 } else { all & !ours };
        let stays = foreign | (keep & rights & !elsewhere);
        if stays != 0 {
            aces.insert(place, Ace::allow(sid, stays));
        }
        Some(left)
    }
}

/// What is wrong with a descriptor after an entry was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The rights are not there.
    #[error("the rights are not there")]
    NotAdded,
    /// An entry that was there before is gone or changed.
    #[error("an entry that was there before is gone or changed")]
    Lost,
    /// More was added than asked for.
    #[error("more was added than asked for")]
    Strange,
    /// Not in canonical order.
    #[error("the entries are not in canonical order")]
    Disordered,
}

/// Generic rights as ETW maps them, beside what else is there. (Of GENERIC_ALL only what all the others imply.)
fn specific(rights: u32) -> u32 {
    const GENERIC: [(u32, u32); 4] =
        [(1 << 31, 0x000d), (1 << 30, 0x0062), (1 << 29, 0x1e90), (1 << 28, 0x1eff)];
    GENERIC.iter().filter(|(bit, _)| rights & bit != 0).fold(rights, |all, (_, meaning)| all | meaning)
}

impl Acl {
    fn read(bytes: &[u8]) -> Option<Acl> {
        let mut header = Reader::new(bytes);
        let (revision, _, size) = (header.u8()?, header.u8()?, usize::from(header.u16()?));
        let count = header.u16()?;
        let mut entries = Reader::at(bytes.get(..size)?, 8);
        let mut aces = Vec::new();
        for _ in 0..count {
            let (kind, flags) = (entries.u8()?, entries.u8()?);
            let length = usize::from(entries.u16()?).checked_sub(4)?;
            aces.push(Ace { kind, flags, body: entries.take(length)?.to_vec() });
        }
        Some(Acl { revision, aces })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut entries = Vec::new();
        for ace in &self.aces {
            entries.extend([ace.kind, ace.flags]);
            entries.extend((ace.body.len() as u16 + 4).to_le_bytes());
            entries.extend(&ace.body);
        }
        let mut bytes = vec![self.revision, 0];
        bytes.extend((entries.len() as u16 + 8).to_le_bytes());
        bytes.extend((self.aces.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(entries);
        bytes
    }
}

#[cfg(test)]
#[path = "descriptor_tests.rs"]
mod tests;
