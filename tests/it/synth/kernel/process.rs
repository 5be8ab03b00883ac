//! Processes: event group 3.

use crate::synth::{Bytes, Event, IntoEvent};

const GROUP: u8 = 0x03;

/// A process event of versions 0 to 5. Version 4 by default, 5 for the defunct.
#[derive(Clone, Debug)]
pub struct Process {
    kind: u8,
    version: u16,
    key: u64,
    id: u32,
    parent: u32,
    session: u32,
    exit_status: i32,
    directory_table: u64,
    flags: u32,
    user: User,
    image: String,
    command_line: String,
    package: String,
    application: String,
    exit_time: i64,
}

#[derive(Clone, Debug)]
enum User {
    /// Just a zero: four bytes.
    None,
    /// Two pointers without meaning, then the SID.
    Sid { token: u64, authority: u8, sub_authorities: Vec<u32> },
}

impl Process {
    fn new(kind: u8, id: u32, image: &str) -> Self {
        Process {
            kind,
            version: 4,
            key: 0x8000_0000 + u64::from(id) * 0x40, // an object of the kernel; fits in 32 bits
            id,
            parent: 4,
            session: 1,
            exit_status: 259, // still running
            directory_table: u64::from(id) << 12,
            flags: 0,
            user: User::Sid { token: 0x9000_1000, authority: 5, sub_authorities: vec![18] },
            image: image.into(),
            command_line: String::new(),
            package: String::new(),
            application: String::new(),
            exit_time: 0,
        }
    }

    /// A process begins. The header knows its creator (see [`by`](crate::synth::IntoEvent::by)).
    pub fn start(id: u32, image: &str) -> Self {
        Self::new(1, id, image)
    }

    /// A process ends.
    pub fn end(id: u32, image: &str) -> Self {
        Self { exit_status: 0, ..Self::new(2, id, image) }
    }

    /// A process that ran when the session began.
    pub fn dc_start(id: u32, image: &str) -> Self {
        Self::new(3, id, image)
    }

    /// A process that ran when the session ended.
    pub fn dc_end(id: u32, image: &str) -> Self {
        Self::new(4, id, image)
    }

    /// A process that ended while its kernel object lived on.
    pub fn defunct(id: u32, image: &str) -> Self {
        Self { version: 5, exit_status: 0, ..Self::new(39, id, image) }
    }

    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    /// The address of the kernel's object; before version 2 the page directory stands in its place.
    pub fn key(self, key: u64) -> Self {
        Self { key, ..self }
    }

    pub fn parent(self, parent: u32) -> Self {
        Self { parent, ..self }
    }

    pub fn session(self, session: u32) -> Self {
        Self { session, ..self }
    }

    pub fn exit_status(self, exit_status: i32) -> Self {
        Self { exit_status, ..self }
    }

    pub fn directory_table(self, directory_table: u64) -> Self {
        Self { directory_table, ..self }
    }

    /// 1 packaged, 2 WOW64, 4 protected, 8 package related.
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// `S-1-authority-sub-sub...`.
    pub fn sid(self, authority: u8, sub_authorities: &[u32]) -> Self {
        let user = User::Sid { token: 0x9000_1000, authority, sub_authorities: sub_authorities.to_vec() };
        Self { user, ..self }
    }

    /// A SID whose first pointer is 0 although it is there, as rewritten traces have it.
    pub fn sid_behind_null(self, authority: u8, sub_authorities: &[u32]) -> Self {
        let user = User::Sid { token: 0, authority, sub_authorities: sub_authorities.to_vec() };
        Self { user, ..self }
    }

    pub fn no_sid(self) -> Self {
        Self { user: User::None, ..self }
    }

    /// From version 2 on.
    pub fn command_line(self, text: &str) -> Self {
        Self { command_line: text.into(), ..self }
    }

    /// From version 4 on.
    pub fn package(self, full_name: &str, application: &str) -> Self {
        Self { package: full_name.into(), application: application.into(), ..self }
    }

    /// FILETIME, version 5.
    pub fn exit_time(self, exit_time: i64) -> Self {
        Self { exit_time, ..self }
    }

    fn lay(&self, bytes: Bytes) -> Bytes {
        let version = self.version;
        if version == 0 {
            let ids = bytes.ptr(self.id.into()).ptr(self.parent.into());
            return self.lay_user(ids).ansiz(&self.image);
        }
        let mut bytes =
            bytes.ptr(self.key).u32(self.id).u32(self.parent).u32(self.session).i32(self.exit_status);
        if version >= 3 {
            bytes = bytes.ptr(self.directory_table);
        }
        if version >= 4 {
            bytes = bytes.u32(self.flags);
        }
        bytes = self.lay_user(bytes).ansiz(&self.image);
        if version >= 2 {
            bytes = bytes.utf16z(&self.command_line);
        }
        if version >= 4 {
            bytes = bytes.utf16z(&self.package).utf16z(&self.application);
        }
        if version >= 5 {
            bytes = bytes.i64(self.exit_time);
        }
        bytes
    }

    fn lay_user(&self, bytes: Bytes) -> Bytes {
        match &self.user {
            User::None => bytes.u32(0),
            User::Sid { token, authority, sub_authorities } => {
                bytes.ptr(*token).ptr(0).sid(*authority, sub_authorities)
            }
        }
    }
}

impl From<Process> for Event {
    /// Start is written by the creator, End by the process itself, both with ids; the rundown has none.
    fn from(process: Process) -> Event {
        let (kind, id, parent) = (process.kind, process.id, process.parent);
        let event = Event::kernel(GROUP, kind, process.version, move |bytes| process.lay(bytes));
        match kind {
            1 => event.by(parent, parent + 4),
            2 => event.by(id, id + 4),
            _ => event,
        }
    }
}

/// A process was told to end.
pub fn terminate(id: u32) -> Event {
    Event::kernel(GROUP, 11, 2, move |bytes| bytes.u32(id)).by(id, id + 4)
}

/// The counters of a process: `kind` 32 at its end, 33 in the rundown.
pub fn counters(kind: u8, id: u32) -> Event {
    Event::kernel(GROUP, kind, 2, move |bytes| {
        (0..11).fold(bytes.u32(id).u32(1_000).u32(50).u32(0), |bytes, counter| bytes.ptr(counter * 4_096))
    })
}
