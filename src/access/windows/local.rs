//! This machine.

use crate::access::{Account, CallError, Machine, Object, Record, Sid};
use crate::guid::Guid;

use super::lsa::Policy;
use super::{etw, group, record};

/// The machine that this program runs on.
#[derive(Debug, Default)]
pub struct LocalMachine;

impl Machine for LocalMachine {
    fn stored(&self, guid: Guid) -> Result<Option<Vec<u8>>, CallError> {
        etw::stored(guid)
    }

    fn applied(&self, guid: Guid) -> Result<Vec<u8>, CallError> {
        etw::applied(guid)
    }

    fn allow(&mut self, guid: Guid, sid: &Sid, rights: u32) -> Result<(), CallError> {
        etw::allow(guid, sid, rights)
    }

    fn store(&mut self, guid: Guid, descriptor: Option<&[u8]>) -> Result<(), CallError> {
        match descriptor {
            Some(bytes) => etw::store(guid, bytes),
            None => etw::remove(guid),
        }
    }

    fn privileges(&self, sid: &Sid) -> Result<Vec<String>, CallError> {
        Policy::open(Policy::READ)?.rights(sid)
    }

    fn add_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError> {
        Policy::open(Policy::WRITE)?.add(sid, name)
    }

    fn remove_privilege(&mut self, sid: &Sid, name: &str) -> Result<(), CallError> {
        Policy::open(Policy::WRITE)?.remove(sid, name)
    }

    fn is_member(&self, sid: &Sid) -> Result<bool, CallError> {
        group::is_member(sid)
    }

    fn join(&mut self, sid: &Sid) -> Result<(), CallError> {
        group::join(sid)
    }

    fn leave(&mut self, sid: &Sid) -> Result<(), CallError> {
        group::leave(sid)
    }

    fn record(&self) -> Result<Record, CallError> {
        record::read()
    }

    fn remember_object(&mut self, guid: Guid, object: Option<&Object>) -> Result<(), CallError> {
        record::write_object(guid, object)
    }

    fn remember_account(&mut self, sid: &Sid, account: Option<&Account>) -> Result<(), CallError> {
        record::write_account(sid, account)
    }
}
