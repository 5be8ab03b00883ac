//! Function starts that an image lists, for the loader and for other images.
//!
//! All of these are addresses that something outside of the code jumps to or calls: exports, the entry point, callbacks
//! for threads, handlers of exceptions (x86) and the targets of indirect calls (Control Flow Guard).
//!
//! References: "PE Format", sections on exports, thread local storage and the load configuration directory,
//! learn.microsoft.com/windows/win32/debug/pe-format; `IMAGE_LOAD_CONFIG_DIRECTORY32` and `64`.

use crate::symbols::read::pe::{Image, LOAD_CONFIG_DIRECTORY, Machine, TLS_DIRECTORY};

/// All of them, in no order, some more than once.
pub(super) fn starts(image: &Image<'_>) -> Vec<u32> {
    let config = LoadConfig::new(image);
    let mut starts = image.export_addresses();
    starts.extend(image.entry_point());
    starts.extend(tls_callbacks(image));
    if let Some(config) = config {
        starts.extend(config.handlers());
        starts.extend(config.guarded());
    }
    starts
}

/// Whether code of two processors is mixed in the image (ARM64EC, ARM64X, CHPE).
pub(super) fn is_hybrid(image: &Image<'_>) -> bool {
    LoadConfig::new(image).is_some_and(|config| config.pointer(124, 200).is_some_and(|pointer| pointer != 0))
}

/// The functions that run when a thread begins or ends: addresses up to a zero.
fn tls_callbacks(image: &Image<'_>) -> Vec<u32> {
    let fields = image.directory_bytes(TLS_DIRECTORY).unwrap_or_default();
    let size = pointer_size(image);
    let table = pointer(fields, 3 * size, size).and_then(|address| image.rva_of(address));
    let addresses = table.and_then(|table| image.bytes_from(table)).unwrap_or_default().chunks_exact(size);
    let rvas = addresses.map_while(|bytes| pointer(bytes, 0, size).filter(|address| *address != 0));
    rvas.map_while(|address| image.rva_of(address)).collect()
}

fn pointer_size(image: &Image<'_>) -> usize {
    if image.machine == Machine::X86 { 4 } else { 8 }
}

fn pointer(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut whole = [0; 8];
    for (to, from) in whole.iter_mut().zip(bytes.get(at..at.checked_add(size)?)?) {
        *to = *from;
    }
    Some(u64::from_le_bytes(whole))
}

/// The load configuration. Fields were added with every version of Windows; its first field says how many it has.
struct LoadConfig<'i, 'a> {
    image: &'i Image<'a>,
    fields: &'a [u8],
}

impl<'i, 'a> LoadConfig<'i, 'a> {
    fn new(image: &'i Image<'a>) -> Option<Self> {
        // The directory's own size is wrong on purpose in images for Windows XP.
        let bytes = image.bytes_from(image.directory(LOAD_CONFIG_DIRECTORY)?.rva)?;
        let size = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        Some(LoadConfig { image, fields: bytes.get(..size).unwrap_or(bytes) })
    }

    /// A field as wide as an address, by its place in a 32-bit and in a 64-bit image.
    fn pointer(&self, at_32: usize, at_64: usize) -> Option<u64> {
        let size = pointer_size(self.image);
        pointer(self.fields, if size == 4 { at_32 } else { at_64 }, size)
    }

    /// A table that two fields give, address and number of entries: as much of it as the file has.
    fn table(&self, at_32: usize, at_64: usize, entry: usize) -> &'a [u8] {
        let size = pointer_size(self.image);
        let bytes = self.pointer(at_32, at_64).and_then(|address| self.image.rva_of(address));
        let bytes = bytes.and_then(|rva| self.image.bytes_from(rva)).unwrap_or_default();
        let count = self.pointer(at_32 + size, at_64 + size).and_then(|count| usize::try_from(count).ok());
        let len = count.unwrap_or(0).saturating_mul(entry);
        bytes.get(..len).unwrap_or(bytes)
    }

    /// `SEHandlerTable`: the exception handlers of an x86 image.
    fn handlers(&self) -> impl Iterator<Item = u32> {
        let table = if self.image.machine == Machine::X86 { self.table(64, 96, 4) } else { &[] };
        rvas(table, 4)
    }

    /// `GuardCFFunctionTable`: whatever an indirect call may reach. The top four bits of `GuardFlags` are the number of
    /// bytes behind each RVA.
    fn guarded(&self) -> impl Iterator<Item = u32> {
        let at = if pointer_size(self.image) == 4 { 88 } else { 144 };
        let flags = pointer(self.fields, at, 4).unwrap_or(0);
        let entry = 4 + (flags >> 28) as usize;
        rvas(self.table(80, 128, entry), entry)
    }
}

fn rvas(table: &[u8], entry: usize) -> impl Iterator<Item = u32> {
    table.chunks_exact(entry).filter_map(|entry| Some(u32::from_le_bytes(*entry.first_chunk()?)))
}
