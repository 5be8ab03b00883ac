//! The shared memory in which .NET Framework counts, typed by hand from CoreCLR's `ipcheader.h` and `perfcounterdefs.h`.

/// How wide a field is: as a pointer, 4 bytes, 8 bytes.
#[derive(Clone, Copy)]
pub enum Wide {
    P,
    Four,
    Eight,
}

use Wide::{Eight, Four, P};

/// Each field: its offset for a 32-bit runtime and for a 64-bit one.
pub const FIELDS: &[(&str, usize, usize, Wide)] = &[
    ("gen0_collections", 4, 8, P),
    ("gen1_collections", 8, 16, P),
    ("gen2_collections", 12, 24, P),
    ("gen0_promoted", 16, 32, P),
    ("gen1_promoted", 20, 40, P),
    ("promoted_by_finalization", 24, 48, P),
    ("process_id", 28, 56, P),
    ("gen0_budget", 32, 64, P),
    ("gen1_size", 36, 72, P),
    ("gen2_size", 40, 80, P),
    ("committed", 44, 88, P),
    ("reserved", 48, 96, P),
    ("large_objects", 52, 104, P),
    ("finalization_survivors", 56, 112, P),
    ("handles", 60, 120, P),
    ("allocated", 64, 128, P),
    ("large_allocated", 68, 136, P),
    ("induced", 72, 144, P),
    ("gc_time", 76, 152, Four),
    ("gc_time_base", 80, 156, Four),
    ("pinned", 84, 160, P),
    ("sink_blocks", 88, 168, P),
    ("remote_calls", 92, 176, Four),
    ("channels", 96, 180, Four),
    ("proxies", 100, 184, Four),
    ("context_classes", 104, 188, Four),
    ("context_objects", 108, 192, Four),
    ("contexts", 112, 196, Four),
    ("ccws", 116, 200, Four),
    ("stubs", 120, 204, Four),
    ("marshalling", 124, 208, Four),
    ("tlb_imports", 128, 212, Four),
    ("tlb_exports", 132, 216, Four),
    ("classes", 136, 224, Four),
    ("classes_total", 140, 228, Four),
    ("app_domains", 144, 232, Four),
    ("app_domains_total", 148, 236, Four),
    ("assemblies", 152, 240, Four),
    ("assemblies_total", 156, 244, Four),
    ("loading_time", 160, 248, Eight),
    ("search_length", 168, 256, Four),
    ("load_failures", 172, 260, Four),
    ("loader_heap", 176, 264, P),
    ("app_domains_unloaded", 180, 272, Four),
    ("thrown", 184, 280, Four),
    ("filters", 188, 284, Four),
    ("finallys", 192, 288, Four),
    ("throw_to_catch_depth", 196, 292, Four),
    ("contentions", 200, 296, Four),
    ("queue", 204, 300, Four),
    ("queue_total", 208, 304, Four),
    ("logical", 212, 308, Four),
    ("physical", 216, 312, Four),
    ("recognized", 220, 316, Four),
    ("recognized_total", 224, 320, Four),
    ("methods", 228, 324, Four),
    ("il_bytes", 232, 328, Four),
    ("il_bytes_total", 236, 332, Four),
    ("jit_failures", 240, 336, Four),
    ("jit_time", 244, 340, Four),
    ("jit_time_before", 248, 344, Four),
    ("runtime_checks", 252, 352, Four),
    ("time_authorizing", 256, 360, Eight),
    ("link_checks", 264, 368, Four),
    ("checks_time", 268, 372, Four),
    ("checks_time_base", 272, 376, Four),
    ("stack_depth", 276, 380, Four),
];

/// The counters of a runtime: 280 or 384 bytes.
#[derive(Clone)]
pub struct Counters {
    pub is_32: bool,
    pub bytes: Vec<u8>,
}

pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

impl Counters {
    /// Switched on, and zero.
    pub fn new(is_32: bool) -> Counters {
        let size = if is_32 { 280_u16 } else { 384 };
        let mut bytes = vec![0; size.into()];
        put(&mut bytes, 0, &size.to_le_bytes());
        bytes[2] = 1;
        Counters { is_32, bytes }
    }

    pub fn with(mut self, name: &str, value: u64) -> Counters {
        let (_, in_32, in_64, wide) = FIELDS.iter().find(|field| field.0 == name).unwrap();
        let at = if self.is_32 { *in_32 } else { *in_64 };
        let length = match wide {
            Four => 4,
            Eight => 8,
            P if self.is_32 => 4,
            P => 8,
        };
        put(&mut self.bytes, at, &value.to_le_bytes()[..length]);
        self
    }

    /// A block of version 4, of 2,048 bytes.
    pub fn block(&self, id: u32) -> Vec<u8> {
        let mut block = vec![0; 2_048];
        let size = self.bytes.len() as u32;
        put(&mut block, 0, &2_i32.to_le_bytes());
        put(&mut block, 4, &id.to_le_bytes());
        put(&mut block, 16, &4_u16.to_le_bytes());
        put(&mut block, 18, &(if self.is_32 { 7_u16 } else { 3 }).to_le_bytes());
        put(&mut block, 20, &(40 + size).to_le_bytes());
        put(&mut block, 24, &4_u16.to_le_bytes());
        put(&mut block, 26, &30_319_u16.to_le_bytes());
        put(&mut block, 28, &1_u32.to_le_bytes());
        put(&mut block, 32, &40_u32.to_le_bytes());
        put(&mut block, 36, &size.to_le_bytes());
        put(&mut block, 40, &self.bytes);
        block
    }

    /// The block of version 2.0, with the handle of its module.
    pub fn legacy(&self) -> Vec<u8> {
        let mut block = 1_u16.to_le_bytes().to_vec();
        block.extend(0_u16.to_le_bytes());
        if self.is_32 {
            block.extend(0x134_u32.to_le_bytes());
            block.extend(0x7900_0000_u32.to_le_bytes());
        } else {
            block.extend(0x1a0_u32.to_le_bytes());
            block.extend(0x6_4278_0000_u64.to_le_bytes());
        }
        block.extend(2_u16.to_le_bytes());
        block.extend(50_727_u16.to_le_bytes());
        block.extend(1_u32.to_le_bytes());
        // The offset is that behind the table, or that in the block.
        block.extend((if self.is_32 { 0_u32 } else { 32 }).to_le_bytes());
        block.extend((self.bytes.len() as u32).to_le_bytes());
        block.extend(&self.bytes);
        block
    }
}

/// The memory that the runtimes of version 4 share, with blocks at these places.
pub fn memory(blocks: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut memory = vec![0; 65_536];
    for (number, block) in blocks {
        put(&mut memory, number * 2_048, block);
    }
    memory
}
