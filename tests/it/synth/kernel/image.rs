//! Images: event group 0x14, and group 3 type 10 for a load.

use crate::synth::{Bytes, Event, IntoEvent};

/// An image event of versions 0 to 3. Version 3 by default.
#[derive(Clone, Debug)]
pub struct Image {
    hook: (u8, u8),
    version: u16,
    base: u64,
    size: u64,
    process: u32,
    checksum: u32,
    time_date_stamp: u32,
    signature: (u8, u8),
    default_base: Option<u64>,
    name: String,
}

impl Image {
    fn new(hook: (u8, u8), process: u32, base: u64, size: u64, name: &str) -> Self {
        Image {
            hook,
            version: 3,
            base,
            size,
            process,
            checksum: 0,
            time_date_stamp: 0,
            signature: (0, 0),
            default_base: None,
            name: name.into(),
        }
    }

    /// Mapped while the session ran. Process 0 is for the kernel's modules.
    pub fn load(process: u32, base: u64, size: u64, name: &str) -> Self {
        Self::new((0x03, 10), process, base, size, name)
    }

    pub fn unload(process: u32, base: u64, size: u64, name: &str) -> Self {
        Self::new((0x14, 2), process, base, size, name)
    }

    /// Was mapped when the session began.
    pub fn dc_start(process: u32, base: u64, size: u64, name: &str) -> Self {
        Self::new((0x14, 3), process, base, size, name)
    }

    /// Was mapped when the session ended.
    pub fn dc_end(process: u32, base: u64, size: u64, name: &str) -> Self {
        Self::new((0x14, 4), process, base, size, name)
    }

    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    pub fn checksum(self, checksum: u32) -> Self {
        Self { checksum, ..self }
    }

    /// 0 in the rundown of user processes, as in this type unless told otherwise.
    pub fn time_date_stamp(self, time_date_stamp: u32) -> Self {
        Self { time_date_stamp, ..self }
    }

    /// Level and type, version 3.
    pub fn signature(self, level: u8, kind: u8) -> Self {
        Self { signature: (level, kind), ..self }
    }

    /// The base itself, unless told otherwise.
    pub fn default_base(self, default_base: u64) -> Self {
        Self { default_base: Some(default_base), ..self }
    }

    fn lay(&self, bytes: Bytes) -> Bytes {
        let bytes = bytes.ptr(self.base);
        if self.version == 0 {
            let size = u32::try_from(self.size).expect("version 0 has a 32-bit size");
            return bytes.u32(size).utf16z(&self.name);
        }
        let bytes = bytes.ptr(self.size).u32(self.process);
        if self.version == 1 {
            return bytes.utf16z(&self.name);
        }
        let bytes = bytes.u32(self.checksum).u32(self.time_date_stamp);
        let bytes = match self.version {
            2 => bytes.u32(0),
            _ => bytes.u8(self.signature.0).u8(self.signature.1).u16(0),
        };
        bytes.ptr(self.default_base.unwrap_or(self.base)).u32(0).u32(0).u32(0).u32(0).utf16z(&self.name)
    }
}

impl From<Image> for Event {
    /// Load and Unload are written by a thread of the process; the rundown has no ids.
    fn from(image: Image) -> Event {
        let ((group, kind), process) = (image.hook, image.process);
        let event = Event::kernel(group, kind, image.version, move |bytes| image.lay(bytes));
        match kind {
            10 | 2 => event.by(process, process + 4),
            _ => event,
        }
    }
}

/// Where the kernel lies; written in the end rundown.
pub fn kernel_base(base: u64) -> Event {
    Event::kernel(0x14, 33, 2, move |bytes| bytes.ptr(base))
}

/// Where the hypervisor's call page lies; written in the end rundown.
pub fn hypercall_page(address: u64) -> Event {
    Event::kernel(0x14, 34, 2, move |bytes| bytes.ptr(address))
}
