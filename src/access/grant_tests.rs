use super::{Cause, Outcome, Taken, grant, preview, revoke};
use crate::access::fake::{Fake, World, default_descriptor};
use crate::access::{
    Account, Ace, Acl, Difference, Feature, Machine, Method, Object, Record, Right, SecurityDescriptor, Sid,
    State, granted_less, permissions, works,
};
use crate::guids;

const CODES: [u32; 5] = [5, 87, 1332, 1313, 0xc000_0022];
const METHODS: [Method; 2] = [Method::Each, Method::Group];

fn me() -> Sid {
    "S-1-5-21-1-2-3-1001".parse().unwrap()
}

fn other() -> Sid {
    "S-1-5-21-1-2-3-1002".parse().unwrap()
}

/// A machine where Windows keeps rights to the kernel's events to administrators, as it is installed, and where an
/// administrator had set rights on another of the objects, in an order and layout of his own.
fn machine() -> Fake {
    let mut fake = Fake::default();
    let mut stored = default_descriptor();
    stored.owner = None;
    stored
        .dacl
        .as_mut()
        .unwrap()
        .aces
        .insert(0, Ace { kind: 1, ..Ace::allow(&"S-1-5-32-546".parse().unwrap(), 0xfff) });
    let mut bytes = stored.to_bytes();
    bytes.extend([0; 4]);
    fake.world.stored.insert(guids::CLR, bytes);
    fake.world.stored.insert(guids::SYSTEM_TRACE_CONTROL, with_entries(&[("S-1-5-18", 0x120fff)]).to_bytes());
    fake
}

/// A descriptor with these allow entries and no others.
fn with_entries(entries: &[(&str, u32)]) -> SecurityDescriptor {
    let mut descriptor = default_descriptor();
    let allow = |(who, rights): &(&str, u32)| Ace::allow(&who.parse().unwrap(), *rights);
    descriptor.dacl.as_mut().unwrap().aces = entries.iter().map(allow).collect();
    descriptor
}

/// The machine with this value for the CLR's provider.
fn machine_with(clr: Vec<u8>) -> Fake {
    let mut fake = machine();
    fake.world.stored.insert(guids::CLR, clr);
    fake
}

fn changed(fake: &Fake) -> bool {
    const CHANGES: [&str; 10] = [
        "EventAccessControl",
        "EventAccessRemove",
        "RegSetValueExW",
        "RegCreateKeyExW",
        "RegDeleteTreeW",
        "LsaAddAccountRights",
        "LsaRemoveAccountRights",
        "NetLocalGroupAddMembers",
        "NetLocalGroupDelMembers",
        "RegDeleteValueW",
    ];
    fake.log.borrow().iter().any(|line| CHANGES.iter().any(|call| line.starts_with(call)))
}

#[test]
fn grants_exactly_what_is_needed_in_order() {
    let mut fake = machine();
    let outcomes = grant(&mut fake, &me(), Method::Each).unwrap();
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Given));
    let log = fake.log.borrow();
    let changes: Vec<_> = log
        .iter()
        .filter(|line| line.starts_with("EventAccessControl") || line.starts_with("LsaAdd"))
        .collect();
    assert_eq!(
        changes,
        [
            "EventAccessControl b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e10 S-1-5-21-1-2-3-1001 0x4a1",
            "EventAccessControl b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e11 S-1-5-21-1-2-3-1001 0x4a1",
            "EventAccessControl 9e814aad-3204-11d2-9a82-006008a86939 S-1-5-21-1-2-3-1001 0x80",
            "EventAccessControl e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 S-1-5-21-1-2-3-1001 0x80",
            "EventAccessControl a669021c-c450-4609-a035-5af59af4df18 S-1-5-21-1-2-3-1001 0x80",
            "LsaAddAccountRights S-1-5-21-1-2-3-1001 SeSystemProfilePrivilege",
        ]
    );
    let before = machine().world.stored;
    for (guid, bytes) in &fake.world.stored {
        let after = SecurityDescriptor::read(bytes).unwrap();
        let before = before.get(guid).map(|bytes| SecurityDescriptor::read(bytes).unwrap());
        let before = before.unwrap_or_else(default_descriptor);
        assert!(after.is_canonical());
        let (new, rest) = after.aces().split_last().unwrap();
        assert_eq!((rest, new.subject().unwrap().1), (before.aces(), me()));
    }
}

#[test]
fn revoke_leaves_every_byte_as_it_was() {
    for method in METHODS {
        let (mut fake, before) = (machine(), machine().world);
        let outcomes = grant(&mut fake, &me(), method).unwrap();
        assert_ne!(fake.world, before);
        let revoked = revoke(&mut fake, Some(&me())).unwrap();
        let mut given: Vec<_> = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Given).collect();
        given.reverse();
        assert!(revoked.left.is_empty());
        assert!(
            revoked.taken.iter().map(|(_, right, _)| right).eq(given.iter().map(|(need, _)| &need.right))
        );
        assert!(revoked.taken.iter().all(|(_, _, taken)| *taken == Taken::AsFound), "{revoked:?}");
        assert_eq!(fake.world, before);
        assert_eq!(fake.record, Record::default());
        assert_eq!(revoke(&mut fake, None).unwrap(), Default::default());
    }
}

#[test]
fn granting_twice_changes_nothing() {
    for method in METHODS {
        let mut fake = machine();
        grant(&mut fake, &me(), method).unwrap();
        let (world, record) = (fake.world.clone(), fake.record.clone());
        fake.log.borrow_mut().clear();
        let outcomes = grant(&mut fake, &me(), method).unwrap();
        let nothing = |outcome| matches!(outcome, Outcome::AlreadyGranted | Outcome::ByGroup);
        assert!(outcomes.iter().all(|(_, outcome)| nothing(*outcome)));
        assert!(!changed(&fake), "{:?}", fake.log);
        assert_eq!((fake.world, fake.record), (world, record));
    }
}

/// The machine after a grant by a version that gave 0x421 on the sessions, without TRACELOG_GUID_ENABLE.
fn granted_by_an_older_version(widens: bool) -> Fake {
    let mut fake = Fake { widens, ..machine() };
    for (guid, rights) in [
        (guids::KERNEL_SESSION, 0x421),
        (guids::CLR_SESSION, 0x421),
        (guids::SYSTEM_TRACE_CONTROL, 0x80),
        (guids::CLR, 0x80),
        (guids::CLR_RUNDOWN, 0x80),
    ] {
        let stored = fake.stored(guid).unwrap();
        let applied = fake.applied(guid).unwrap();
        fake.record.objects.insert(guid, Object { stored, applied, ours: vec![(me(), rights)] });
        fake.allow(guid, &me(), rights).unwrap();
    }
    fake.add_privilege(&me(), "SeSystemProfilePrivilege").unwrap();
    let account = Account { privileges: vec!["SeSystemProfilePrivilege".into()], group: false };
    fake.record.accounts.insert(me(), account);
    fake.calls.set(0);
    fake.log.borrow_mut().clear();
    fake
}

#[test]
fn an_older_grant_is_seen_completed_and_taken_back() {
    for widens in [false, true] {
        let older = granted_by_an_older_version(widens);
        let states = permissions(&older, &[me()]);
        let missing = |rights| states.iter().filter(|(_, state)| *state == State::Missing { rights }).count();
        assert_eq!((missing(0x80), works(&states, Feature::Sampling)), (2, Some(false)));
        assert!(granted_less(&older.record, &me()) && !granted_less(&older.record, &other()));

        // An older grant alone is taken back, too.
        let mut fake = granted_by_an_older_version(widens);
        assert!(revoke(&mut fake, None).unwrap().left.is_empty());
        assert_eq!((&fake.world, &fake.record), (&machine().world, &Record::default()));

        let mut fake = granted_by_an_older_version(widens);
        let expected = preview(&fake, &me(), Method::Each).unwrap();
        fake.log.borrow_mut().clear();
        let outcomes = grant(&mut fake, &me(), Method::Each).unwrap();
        let given: Vec<_> = outcomes.iter().map(|(_, outcome)| *outcome == Outcome::Given).collect();
        assert_eq!(given, [true, true, false, false, false, false]);
        assert!(expected.into_iter().map(|(need, outcome)| (need, outcome.unwrap())).eq(outcomes));
        let adds = fake.log.borrow().iter().filter(|line| is_giving(line)).cloned().collect::<Vec<_>>();
        assert_eq!(adds.len(), 2, "{adds:?}");
        assert!(adds.iter().all(|line| line.ends_with(" 0x4a1")), "{adds:?}");
        assert_eq!(works(&permissions(&fake, &[me()]), Feature::DotNet), Some(true));
        assert!(!granted_less(&fake.record, &me()));

        fake.log.borrow_mut().clear();
        grant(&mut fake, &me(), Method::Each).unwrap();
        assert!(!changed(&fake), "{:?}", fake.log);
        let revoked = revoke(&mut fake, None).unwrap();
        assert_eq!((revoked.taken.len(), revoked.left.len()), (6, 0));
        assert!(revoked.taken.iter().all(|(_, _, taken)| *taken == Taken::AsFound), "{revoked:?}");
        assert_eq!((fake.world, fake.record), (machine().world, Record::default()));
    }
}

/// Completing an older grant fails at every call in turn: the older one is still there.
#[test]
fn completing_an_older_grant_that_fails_leaves_it() {
    for widens in [false, true] {
        let mut whole = granted_by_an_older_version(widens);
        grant(&mut whole, &me(), Method::Each).unwrap();
        for call in 0..whole.calls.get() {
            let older = granted_by_an_older_version(widens);
            let (world, record) = (older.world.clone(), older.record.clone());
            let mut fake = Fake { fails_at: Some(call), failures: 1, code: 5, ..older };
            let error = grant(&mut fake, &me(), Method::Each).unwrap_err();
            assert!(error.left.is_empty(), "call {call}: {error:?}");
            let rights = |world: &World, guid| {
                SecurityDescriptor::read(&world.stored[&guid]).unwrap().allowed_to(&me())
            };
            for guid in [guids::KERNEL_SESSION, guids::CLR_SESSION] {
                assert_eq!(rights(&fake.world, guid), rights(&world, guid), "call {call}: {:#?}", fake.log);
            }
            assert_eq!(fake.record, record, "call {call}");
        }
    }
}

#[test]
fn what_the_account_had_before_stays_its_own() {
    let mut fake = machine();
    fake.world.privileges.insert(me(), vec!["SeSystemProfilePrivilege".into(), "SeDebugPrivilege".into()]);
    let mut descriptor = default_descriptor();
    descriptor.dacl.as_mut().unwrap().aces.push(Ace::allow(&me(), 0x80));
    fake.world.stored.insert(guids::CLR_RUNDOWN, descriptor.to_bytes());
    let before = fake.world.clone();
    let outcomes = grant(&mut fake, &me(), Method::Each).unwrap();
    let there = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::AlreadyThere).count();
    assert_eq!(there, 2);
    assert_eq!(revoke(&mut fake, None).unwrap().taken.len(), 4);
    assert_eq!(fake.world, before);
}

#[test]
fn accounts_are_revoked_one_by_one_and_in_any_order() {
    for [first, second] in [[me(), other()], [other(), me()]] {
        let (mut fake, before) = (machine(), machine().world);
        grant(&mut fake, &me(), Method::Each).unwrap();
        grant(&mut fake, &other(), Method::Each).unwrap();
        let revoked = revoke(&mut fake, Some(&first)).unwrap();
        assert!(revoked.taken.iter().all(|(sid, ..)| *sid == first));
        let sees = |fake: &Fake, sid: Sid| works(&permissions(fake, &[sid]), Feature::DotNet);
        assert_eq!((sees(&fake, first), sees(&fake, second.clone())), (Some(false), Some(true)));
        revoke(&mut fake, Some(&second)).unwrap();
        assert_eq!(fake.world, before);
    }
}

#[test]
fn what_others_changed_since_stays() {
    let mut fake = machine();
    grant(&mut fake, &me(), Method::Each).unwrap();
    let foreign = Ace::allow(&other(), 0x1);
    let change = |world: &mut World| {
        let bytes = world.stored.get_mut(&guids::CLR).unwrap();
        let mut descriptor = SecurityDescriptor::read(bytes).unwrap();
        descriptor.dacl.as_mut().unwrap().aces.push(foreign.clone());
        *bytes = descriptor.to_bytes();
    };
    change(&mut fake.world);
    // And somebody took one of ours back by hand.
    fake.world.stored.remove(&guids::CLR_RUNDOWN);
    let revoked = revoke(&mut fake, None).unwrap();
    let of = |wanted| revoked.taken.iter().filter(|(_, _, taken)| *taken == wanted).count();
    assert_eq!((of(Taken::AsFound), of(Taken::Removed), of(Taken::WasGone)), (4, 1, 1));
    let mut expected = machine().world;
    change(&mut expected);
    let read = |world: &World| SecurityDescriptor::read(&world.stored[&guids::CLR]).unwrap();
    assert_eq!(read(&fake.world), read(&expected));
    assert_eq!(fake.world.stored.len(), 2);
    assert_eq!(fake.record, Record::default());
}

/// What stands in a descriptor beside plain entries goes through a grant and a revoke unharmed.
#[test]
fn unusual_content_stays() {
    let plain = with_entries(&[("S-1-5-32-544", 0x120fff)]);
    let mut odd = default_descriptor();
    odd.control |= 0x10 | 0x2000;
    odd.sacl = Some(Acl {
        revision: 2,
        aces: vec![Ace { kind: 2, flags: 0x40, ..Ace::allow(&Sid::everyone(), 0xfff) }],
    });
    let dacl = odd.dacl.as_mut().unwrap();
    dacl.revision = 4;
    // An entry for a part of an object, one with a condition, and one that is only for what is below.
    let part = [&0x80u32.to_le_bytes()[..], &[0; 4], me().bytes()].concat();
    dacl.aces.insert(0, Ace { kind: 5, flags: 0, body: part });
    dacl.aces.insert(1, Ace { kind: 9, ..Ace::allow(&other(), 0x80) });
    dacl.aces.insert(2, Ace { flags: 0x0a, ..Ace::allow(&me(), 0x80) });
    let mut empty = plain.clone();
    empty.dacl.as_mut().unwrap().aces.clear();
    let bare = SecurityDescriptor { owner: None, group: None, ..plain };
    for descriptor in [odd, empty, bare] {
        for spare in [0, 12] {
            let bytes = [descriptor.to_bytes(), vec![0; spare]].concat();
            let mut fake = machine_with(bytes.clone());
            grant(&mut fake, &me(), Method::Each).unwrap();
            let granted = SecurityDescriptor::read(&fake.world.stored[&guids::CLR]).unwrap();
            assert_eq!(granted.sacl, descriptor.sacl);
            assert_eq!(granted.access(&[me()], 0x80).0, 0x80);
            // With a second account's entry still in it, too.
            grant(&mut fake, &other(), Method::Each).unwrap();
            revoke(&mut fake, Some(&me())).unwrap();
            let left = SecurityDescriptor::read(&fake.world.stored[&guids::CLR]).unwrap();
            assert_eq!((left.sacl, left.owner), (descriptor.sacl.clone(), descriptor.owner.clone()));
            revoke(&mut fake, None).unwrap();
            assert_eq!(fake.world, machine_with(bytes).world);
        }
    }
}

/// An entry in a list where none was would shut out all others.
#[test]
fn where_everybody_may_do_everything_nothing_is_added() {
    let open = SecurityDescriptor { dacl: None, ..default_descriptor() }.to_bytes();
    let mut fake = machine_with(open.clone());
    let outcomes = grant(&mut fake, &me(), Method::Each).unwrap();
    let of_clr = |right| matches!(right, Right::Trace { guid, .. } if guid == guids::CLR);
    let (_, outcome) = outcomes.iter().find(|(need, _)| of_clr(need.right)).unwrap();
    assert_eq!((*outcome, &fake.world.stored[&guids::CLR]), (Outcome::AlreadyThere, &open));
    assert_eq!(works(&permissions(&fake, &[me()]), Feature::DotNet), Some(true));
    revoke(&mut fake, None).unwrap();
    assert_eq!(fake.world, machine_with(open).world);
}

#[test]
fn what_is_no_descriptor_is_not_built_on() {
    for broken in [vec![], vec![1, 0, 4, 0x80], default_descriptor().to_bytes()[..60].to_vec()] {
        let mut fake = machine_with(broken.clone());
        let error = grant(&mut fake, &me(), Method::Each).unwrap_err();
        assert!(matches!(error.cause, Cause::Broken { .. }), "{error:?}");
        assert_eq!((error.undone.len(), error.left.len()), (3, 0));
        assert_eq!((fake.world, fake.record), (machine_with(broken).world, Record::default()));
    }
}

#[test]
fn an_entry_that_denies_is_told_before_anything_is_given() {
    for whom in [me(), Sid::everyone(), Sid::authenticated_users()] {
        let mut denied = default_descriptor();
        let aces = &mut denied.dacl.as_mut().unwrap().aces;
        aces.insert(0, Ace { kind: 1, ..Ace::allow(&whom, 0x80) });
        let mut fake = machine_with(denied.to_bytes());
        let before = fake.world.clone();
        let error = grant(&mut fake, &me(), Method::Each).unwrap_err();
        assert_eq!(error.cause, Cause::Denied { guid: guids::CLR, whom });
        assert!(error.left.is_empty());
        assert_eq!((fake.world, fake.record), (before, Record::default()));
    }
}

#[test]
fn nobody_grants_to_everybody() {
    for anybody in [Sid::everyone(), Sid::authenticated_users(), Sid::nobody()] {
        let mut fake = machine();
        let error = grant(&mut fake, &anybody, Method::Group).unwrap_err();
        assert_eq!(error.cause, Cause::Anybody(anybody.clone()));
        assert!(!changed(&fake) && preview(&fake, &anybody, Method::Each).is_err());
    }
}

/// Whoever could write the record must not have a revoke write rights of their choice.
#[test]
fn remembered_bytes_that_give_other_rights_are_not_put_back() {
    let mut fake = machine();
    grant(&mut fake, &me(), Method::Each).unwrap();
    let object = fake.record.objects.get_mut(&guids::CLR).unwrap();
    object.stored = Some(with_entries(&[("S-1-5-21-6-6-6-1001", 0x120fff)]).to_bytes());
    let revoked = revoke(&mut fake, None).unwrap();
    assert!(revoked.left.is_empty());
    let read = |world: &World| SecurityDescriptor::read(&world.stored[&guids::CLR]).unwrap();
    assert_eq!(read(&fake.world), read(&machine().world));
}

/// A provider that the group cannot switch on is given by itself.
#[test]
fn what_the_group_does_not_give_is_given() {
    let clr = with_entries(&[("S-1-5-18", 0x120fff)]).to_bytes();
    let mut fake = machine_with(clr.clone());
    let expected = preview(&fake, &me(), Method::Group).unwrap();
    assert!(!changed(&fake));
    let outcomes = grant(&mut fake, &me(), Method::Group).unwrap();
    let by_group = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::ByGroup).count();
    assert_eq!((by_group, outcomes.len()), (3, 7));
    assert!(expected.into_iter().map(|(need, outcome)| (need, outcome.unwrap())).eq(outcomes));
    let member = [me(), Sid::performance_log_users()];
    assert_eq!(works(&permissions(&fake, &member), Feature::DotNet), Some(true));
    revoke(&mut fake, None).unwrap();
    assert_eq!((fake.world, fake.record), (machine_with(clr).world, Record::default()));
}

/// A Windows that would replace the default by our entry alone must not lock everybody else out.
#[test]
fn an_entry_that_replaces_others_is_put_back() {
    struct Replacing(Fake);
    impl super::Machine for Replacing {
        fn allow(&mut self, guid: super::Guid, sid: &Sid, rights: u32) -> Result<(), super::CallError> {
            let mut descriptor = default_descriptor();
            descriptor.dacl.as_mut().unwrap().aces = vec![Ace::allow(sid, rights)];
            self.0.world.stored.insert(guid, descriptor.to_bytes());
            Ok(())
        }
        fn stored(&self, guid: super::Guid) -> Result<Option<Vec<u8>>, super::CallError> {
            self.0.stored(guid)
        }
        fn applied(&self, guid: super::Guid) -> Result<Vec<u8>, super::CallError> {
            self.0.applied(guid)
        }
        fn store(&mut self, guid: super::Guid, descriptor: Option<&[u8]>) -> Result<(), super::CallError> {
            self.0.store(guid, descriptor)
        }
        fn privileges(&self, sid: &Sid) -> Result<Vec<String>, super::CallError> {
            self.0.privileges(sid)
        }
        fn add_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), super::CallError> {
            self.0.add_privilege(sid, name)
        }
        fn remove_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), super::CallError> {
            self.0.remove_privilege(sid, name)
        }
        fn is_member(&self, sid: &Sid) -> Result<bool, super::CallError> {
            self.0.is_member(sid)
        }
        fn join(&mut self, sid: &Sid) -> Result<(), super::CallError> {
            self.0.join(sid)
        }
        fn leave(&mut self, sid: &Sid) -> Result<(), super::CallError> {
            self.0.leave(sid)
        }
        fn record(&self) -> Result<Record, super::CallError> {
            self.0.record()
        }
        fn remember_object(
            &mut self,
            guid: super::Guid,
            object: Option<&super::Object>,
        ) -> Result<(), super::CallError> {
            self.0.remember_object(guid, object)
        }
        fn remember_account(
            &mut self,
            sid: &Sid,
            account: Option<&super::Account>,
        ) -> Result<(), super::CallError> {
            self.0.remember_account(sid, account)
        }
    }
    let mut replacing = Replacing(machine());
    let error = grant(&mut replacing, &me(), Method::Each).unwrap_err();
    assert!(matches!(error.cause, Cause::Differs { why: Difference::Lost, .. }), "{error:?}");
    assert!(error.left.is_empty());
    assert_eq!((replacing.0.world, replacing.0.record), (machine().world, Record::default()));
}

/// Every call of a grant fails in turn with every code: then all is as before, and the message says what failed.
#[test]
fn a_grant_that_fails_at_any_call_is_undone() {
    for (method, half) in
        [(Method::Each, false), (Method::Group, false), (Method::Each, true), (Method::Group, true)]
    {
        let mut whole = machine();
        grant(&mut whole, &me(), method).unwrap();
        for (call, code) in (0..whole.calls.get()).flat_map(|call| CODES.map(|code| (call, code))) {
            let mut fake = Fake { fails_at: Some(call), failures: 1, code, half, ..machine() };
            let error = grant(&mut fake, &me(), method).unwrap_err();
            let Cause::Call(failed) = &error.cause else { panic!("{error:?}") };
            assert_eq!(failed.code, code, "call {call}");
            assert_eq!(failed.is_denied(), matches!(code, 5 | 0xc000_0022));
            assert_eq!(fake.world, machine().world, "call {call} with {code}: {:#?}", fake.log);
            // A record whose writing failed but took place names a right that is not there, and does no harm.
            assert!(error.left.is_empty(), "call {call} with {code}: {error:?}");
            if !half {
                assert_eq!(fake.record, Record::default(), "call {call} with {code}");
            }
        }
    }
}

/// From one call on everything fails: what could not be undone is named, and a revoke takes it back later.
#[test]
fn what_cannot_be_undone_is_named_and_can_be_revoked() {
    for method in METHODS {
        let mut whole = machine();
        grant(&mut whole, &me(), method).unwrap();
        for call in 0..whole.calls.get() {
            let mut fake = Fake { fails_at: Some(call), failures: usize::MAX - call, code: 5, ..machine() };
            let error = grant(&mut fake, &me(), method).unwrap_err();
            let given = fake.log.borrow().iter().filter(|line| is_giving(line)).count();
            assert_eq!(error.undone, []);
            assert!(error.left.len() >= given, "call {call}: {given} given, {:?} named", error.left);
            fake.fails_at = None;
            revoke(&mut fake, None).unwrap();
            assert_eq!((fake.world, fake.record), (machine().world, Record::default()), "call {call}");
        }
    }
}

fn is_giving(line: &str) -> bool {
    let gives = ["EventAccessControl", "LsaAddAccountRights", "NetLocalGroupAddMembers"];
    !line.ends_with(" fails") && gives.iter().any(|call| line.starts_with(call))
}

/// Every call of a revoke fails in turn: the rest is taken back, what is left is named, and another revoke ends it.
#[test]
fn a_revoke_that_fails_goes_on_and_can_be_repeated() {
    for method in METHODS {
        let granted = || {
            let mut fake = machine();
            grant(&mut fake, &me(), method).unwrap();
            fake.calls.set(0);
            fake.log.borrow_mut().clear();
            fake
        };
        let mut whole = granted();
        let given = revoke(&mut whole, None).unwrap().taken.len();
        for (call, code) in (0..whole.calls.get()).flat_map(|call| CODES.map(|code| (call, code))) {
            for half in [false, true] {
                let mut fake = Fake { fails_at: Some(call), failures: 1, code, half, ..granted() };
                match revoke(&mut fake, None) {
                    Err(error) => assert_eq!((call, error.code), (0, code)),
                    Ok(revoked) => {
                        assert_eq!((revoked.left.len(), revoked.taken.len()), (1, given - 1), "call {call}");
                    }
                }
                assert!(revoke(&mut fake, None).unwrap().left.is_empty());
                assert_eq!((fake.world, fake.record), (machine().world, Record::default()), "call {call}");
            }
        }
    }
}

#[test]
fn permissions_tell_through_whom_and_what_is_missing() {
    let mut fake = machine();
    let group = Sid::performance_log_users();
    let sids = [me(), group.clone()];
    let states = permissions(&fake, &sids);
    assert_eq!(works(&states, Feature::Sampling), Some(false));
    assert!(states.iter().any(|(need, state)| matches!(need.right, Right::Privilege { .. })
        && *state == State::Missing { rights: 0 }));
    assert!(states.iter().any(|(_, state)| *state == State::Has { by: vec![group.clone()] }));

    grant(&mut fake, &me(), Method::Group).unwrap();
    assert_eq!(works(&permissions(&fake, &sids), Feature::DotNet), Some(true));
    assert_eq!(works(&permissions(&fake, &[other()]), Feature::Sampling), Some(false));

    let denied = Fake { fails_at: Some(0), failures: 1000, code: 5, ..machine() };
    assert_eq!(works(&permissions(&denied, &sids), Feature::Sampling), None);
}

/// Each call of `permissions` fails in turn with each code: what cannot be read is never told as missing.
#[test]
fn what_cannot_be_read_is_not_missing() {
    let mut granted = machine();
    grant(&mut granted, &me(), Method::Each).unwrap();
    granted.calls.set(0);
    permissions(&granted, &[me()]);
    for (call, code) in (0..granted.calls.get()).flat_map(|call| CODES.map(|code| (call, code))) {
        let fake =
            Fake { fails_at: Some(call), failures: 1, code, world: granted.world.clone(), ..Fake::default() };
        let states = permissions(&fake, &[me()]);
        let unknown =
            states.iter().filter(|(_, state)| matches!(state, State::Unknown(Cause::Call(_)))).count();
        let has = states.iter().filter(|(_, state)| matches!(state, State::Has { .. })).count();
        assert_eq!((unknown, has), (1, 5), "call {call} with {code}");
        let sampling = works(&states, Feature::Sampling);
        assert!(sampling != Some(false) && works(&states, Feature::DotNet).is_none(), "call {call}");
    }
}
