use super::{Ace, Acl, DENY, Difference, INHERITED, SecurityDescriptor};
use crate::access::Sid;

fn sid(text: &str) -> Sid {
    text.parse().unwrap()
}

fn deny(who: &str, rights: u32) -> Ace {
    Ace { kind: DENY, ..Ace::allow(&sid(who), rights) }
}

fn allow(who: &str, rights: u32) -> Ace {
    Ace::allow(&sid(who), rights)
}

fn descriptor(aces: Vec<Ace>) -> SecurityDescriptor {
    let administrators = Some(sid("S-1-5-32-544"));
    SecurityDescriptor {
        control: 0x8004,
        owner: administrators.clone(),
        group: administrators,
        sacl: None,
        dacl: Some(Acl { revision: 2, aces }),
    }
}

const ME: &str = "S-1-5-21-1-2-3-1001";

/// Typed by hand from [MS-DTYP] 2.4.6: owner and group first, as Windows lays them out, then the DACL.
const BY_HAND: [u8; 20 + 16 + 12 + 8 + 24 + 20] = [
    1, 0, 4, 0x80, 20, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0, // header
    1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0, // owner S-1-5-32-544
    1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0, // group S-1-5-18
    2, 0, 52, 0, 2, 0, 0, 0, // DACL: 52 bytes, 2 entries
    0, 0, 24, 0, 0xff, 0x0f, 0x12, 0, 1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0,
    0, // allow 120fff
    0, 0, 20, 0, 0x00, 0x08, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, // allow Everyone 800
];

#[test]
fn reads_the_layout_of_the_specification() {
    let read = SecurityDescriptor::read(&BY_HAND).unwrap();
    assert_eq!(read.owner, Some(sid("S-1-5-32-544")));
    assert_eq!(read.group, Some(sid("S-1-5-18")));
    assert_eq!(read.sacl, None);
    assert_eq!(read.aces(), [allow("S-1-5-32-544", 0x120fff), allow("S-1-1-0", 0x800)]);
    let written = SecurityDescriptor::read(&read.to_bytes()).unwrap();
    assert_eq!(written, read);
}

#[test]
fn no_cut_or_changed_byte_panics() {
    for end in 0..BY_HAND.len() {
        assert!(SecurityDescriptor::read(&BY_HAND[..end]).is_err(), "{end} bytes");
    }
    for place in 0..BY_HAND.len() {
        for value in [0, 1, 3, 0x7f, 0xff] {
            let mut bytes = BY_HAND;
            bytes[place] = value;
            if let Ok(read) = SecurityDescriptor::read(&bytes) {
                let _ = (read.to_bytes(), read.is_canonical(), read.access(&[Sid::everyone()], 0xfff));
            }
        }
    }
}

#[test]
fn the_first_entry_that_speaks_of_a_right_decides() {
    let object = descriptor(vec![deny("S-1-5-11", 0x20), allow(ME, 0x421), allow("S-1-1-0", 0x80)]);
    let me = [sid(ME), Sid::everyone(), Sid::authenticated_users()];
    assert_eq!(object.access(&me, 0x4a1), (0x481, vec![sid(ME), Sid::everyone()]));
    assert_eq!(object.access(&me[..1], 0x4a1), (0x421, vec![sid(ME)]));
    assert_eq!(object.access(&[], 0x4a1), (0, vec![]));
    let generic = descriptor(vec![allow(ME, 1 << 29)]);
    assert_eq!(generic.access(&me, 0x4a1).0, 0x480);
    let open = SecurityDescriptor { dacl: None, ..object };
    assert_eq!(open.access(&[], 0x4a1).0, 0x4a1);
}

#[test]
fn an_added_entry_leaves_all_others() {
    let before =
        descriptor(vec![deny("S-1-5-7", 0xfff), allow("S-1-5-32-544", 0x120fff), allow("S-1-1-0", 0x800)]);
    let with = |at: usize, ace: Ace| {
        let mut aces = before.aces().to_vec();
        aces.insert(at, ace);
        descriptor(aces)
    };
    let check = |after: &SecurityDescriptor| after.is_with(&before, &sid(ME), 0x421);
    assert_eq!(check(&with(3, allow(ME, 0x421))), Ok(()));
    assert_eq!(check(&with(1, allow(ME, 0x421))), Ok(()));
    assert_eq!(check(&with(0, allow(ME, 0x421))), Err(Difference::Disordered));
    assert_eq!(check(&before), Err(Difference::NotAdded));
    assert_eq!(check(&with(3, allow(ME, 0x423))), Err(Difference::Strange));
    assert_eq!(check(&descriptor(vec![allow(ME, 0x421)])), Err(Difference::Lost));
    let mut twice = with(3, allow(ME, 0x421));
    twice.dacl.as_mut().unwrap().aces.push(allow(ME, 0x421));
    assert_eq!(check(&twice), Err(Difference::Strange));
    let mut narrowed = with(3, allow(ME, 0x421));
    narrowed.dacl.as_mut().unwrap().aces[1] = allow("S-1-5-32-544", 0xfff);
    assert_eq!(check(&narrowed), Err(Difference::Lost));
}

#[test]
fn a_list_where_none_was_shuts_others_out() {
    let open = SecurityDescriptor { dacl: None, ..descriptor(vec![]) };
    assert_eq!(descriptor(vec![allow(ME, 0x80)]).is_with(&open, &sid(ME), 0x80), Err(Difference::Lost));
}

#[test]
fn a_widened_entry_counts_as_added_and_is_narrowed_again() {
    let before = descriptor(vec![allow(ME, 0x1), allow("S-1-5-32-544", 0x120fff)]);
    let after = descriptor(vec![allow(ME, 0x421), allow("S-1-5-32-544", 0x120fff)]);
    assert_eq!(after.is_with(&before, &sid(ME), 0x421), Ok(()));
    assert_eq!(after.without(&sid(ME), 0x421, 0x1).unwrap(), before);
    let wider = descriptor(vec![allow(ME, 0x423), allow("S-1-5-32-544", 0x120fff)]);
    assert_eq!(wider.without(&sid(ME), 0x421, 0x1).unwrap().allowed_to(&sid(ME)), 0x3);
}

#[test]
fn what_is_left_of_a_changed_entry_is_taken_back_too() {
    let admins = allow("S-1-5-32-544", 0x120fff);
    let narrowed = descriptor(vec![allow(ME, 0x420), admins.clone()]);
    assert_eq!(narrowed.without(&sid(ME), 0x421, 0).unwrap(), descriptor(vec![admins.clone()]));
    let mixed = descriptor(vec![allow(ME, 0x442), admins.clone()]);
    assert_eq!(mixed.without(&sid(ME), 0x421, 0).unwrap().aces(), [allow(ME, 0x42), admins.clone()]);
    assert_eq!(descriptor(vec![allow(ME, 0x42), admins]).without(&sid(ME), 0x421, 0), None);
}

#[test]
fn an_entry_that_denies_is_found_in_its_general_form_too() {
    let me = [sid(ME), Sid::everyone()];
    assert_eq!(descriptor(vec![deny("S-1-1-0", 0x80)]).denied(&me, 0x80), Some(&me[1]));
    assert_eq!(descriptor(vec![deny(ME, 1 << 29)]).denied(&me, 0x80), Some(&me[0]));
    assert_eq!(
        descriptor(vec![deny(ME, 0x1), deny("S-1-5-7", 0x80), allow(ME, 0x80)]).denied(&me, 0x80),
        None
    );
}

#[test]
fn entries_for_nobody_say_nothing() {
    let before = descriptor(vec![allow(ME, 0x1), allow("S-1-1-0", 0x800)]);
    let after = descriptor(vec![allow(ME, 0x1), allow("S-1-1-0", 0x800), allow("S-1-0-0", 0x1)]);
    assert!(after.same_entries(&before) && before.same_entries(&after));
    assert!(!before.same_entries(&descriptor(vec![allow("S-1-1-0", 0x800), allow(ME, 0x1)])));
    let open = SecurityDescriptor { dacl: None, ..descriptor(vec![]) };
    assert!(!open.same_entries(&descriptor(vec![])) && open.same_entries(&open));
    assert!(open.grants(&sid(ME), 0x80) && !descriptor(vec![]).grants(&sid(ME), 0x80));
}

#[test]
fn taking_back_takes_one_entry_only() {
    let after =
        descriptor(vec![allow(ME, 0x421), allow("S-1-1-0", 0x421), allow(ME, 0x80), allow(ME, 0x421)]);
    let left = after.without(&sid(ME), 0x421, 0).unwrap();
    assert_eq!(left.aces(), [allow(ME, 0x421), allow("S-1-1-0", 0x421), allow(ME, 0x80)]);
    assert_eq!(descriptor(vec![deny(ME, 0x421)]).without(&sid(ME), 0x421, 0), None);
}

#[test]
fn inherited_entries_come_last() {
    let inherited = Ace { flags: INHERITED, ..deny(ME, 1) };
    assert!(descriptor(vec![deny(ME, 1), allow(ME, 1), inherited.clone()]).is_canonical());
    assert!(!descriptor(vec![inherited, allow(ME, 1)]).is_canonical());
}
