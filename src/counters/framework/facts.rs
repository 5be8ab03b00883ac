//! What a runtime counts, and where it stands.

use crate::event::Pointer;

/// The counters of a runtime as bytes.
pub(super) struct Counters<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pointer: Pointer,
}

impl Counters<'_> {
    fn array<const N: usize>(&self, in_32: usize, in_64: usize) -> Option<[u8; N]> {
        let at = if self.pointer == Pointer::Bits32 { in_32 } else { in_64 };
        self.bytes.get(at..)?.first_chunk().copied()
    }

    /// As wide as a pointer.
    pub(super) fn size(&self, in_32: usize, in_64: usize) -> Option<u64> {
        match self.pointer {
            Pointer::Bits32 => self.u32(in_32, in_64).map(u64::from),
            Pointer::Bits64 => self.array(in_32, in_64).map(u64::from_le_bytes),
        }
    }

    fn u32(&self, in_32: usize, in_64: usize) -> Option<u32> {
        self.array(in_32, in_64).map(u32::from_le_bytes)
    }

    fn i64(&self, in_32: usize, in_64: usize) -> Option<i64> {
        self.array(in_32, in_64).map(i64::from_le_bytes)
    }
}

/// Groups of counters: the name of each, its kind, and its offset in the block of a 32-bit and of a 64-bit runtime.
macro_rules! groups {
    ($($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $name:ident: $kind:ident at $in_32:literal, $in_64:literal;)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $group {
            $($(#[$doc])* pub $name: groups!(@ $kind),)*
        }

        impl $group {
            pub(super) fn read(counters: &Counters<'_>) -> Option<$group> {
                Some($group { $($name: counters.$kind($in_32, $in_64)?,)* })
            }
        }
    )*};
    (@ size) => { u64 };
    (@ u32) => { u32 };
    (@ i64) => { i64 };
}

groups! {
    /// Collections and heaps, as of the last collection: between two collections none of them changes. What was allocated and
    /// the number of induced collections step when a collection begins, the others when it ends. Sizes are in bytes.
    Gc {
        /// Collections of generation 0; those of higher generations are among them.
        gen0_collections: size at 4, 8;
        /// Collections of generation 1, with those of generation 2.
        gen1_collections: size at 8, 16;
        /// Collections of generation 2.
        gen2_collections: size at 12, 24;
        /// What survived in generation 0 in the last collection.
        gen0_promoted: size at 16, 32;
        /// What survived in generation 1 in the last collection; 0 after one of generation 0.
        gen1_promoted: size at 20, 40;
        /// What survived the last collection only because it waits to be finalized.
        promoted_by_finalization: size at 24, 48;
        /// The process.
        process_id: size at 28, 56;
        /// How much generation 0 may allocate until its next collection. It stands where a size would, and is none.
        gen0_budget: size at 32, 64;
        /// The size of generation 1.
        gen1_size: size at 36, 72;
        /// The size of generation 2.
        gen2_size: size at 40, 80;
        /// What the heaps have committed.
        committed: size at 44, 88;
        /// What the heaps have reserved.
        reserved: size at 48, 96;
        /// The size of the large object heap.
        large_objects: size at 52, 104;
        /// Objects that survived the last collection only because they wait to be finalized.
        finalization_survivors: size at 56, 112;
        /// Handles to objects.
        handles: size at 60, 120;
        /// All that was allocated up to the beginning of the last collection.
        allocated: size at 64, 128;
        /// The part of it on the large object heap.
        large_allocated: size at 68, 136;
        /// Collections that the program asked for.
        induced: size at 72, 144;
        /// The time of the last collection. Only its share of `time_base` means anything.
        time: u32 at 76, 152;
        /// The time from the end of the collection before to the end of the last.
        time_base: u32 at 80, 156;
        /// Pinned objects that the last collection met.
        pinned: size at 84, 160;
        /// Synchronization blocks.
        sink_blocks: size at 88, 168;
    }

    /// Remoting.
    Remoting {
        /// Calls to objects elsewhere, up to now.
        remote_calls: u32 at 92, 176;
        /// Channels, up to now.
        channels: u32 at 96, 180;
        /// Proxies of contexts, up to now.
        proxies: u32 at 100, 184;
        /// Classes that are bound to a context.
        classes: u32 at 104, 188;
        /// Objects that are bound to a context, allocated up to now.
        objects: u32 at 108, 192;
        /// Contexts.
        contexts: u32 at 112, 196;
    }

    /// Calls between managed and native code.
    Interop {
        /// COM callable wrappers.
        ccws: u32 at 116, 200;
        /// Stubs.
        stubs: u32 at 120, 204;
        /// How often arguments were marshalled.
        marshalling: u32 at 124, 208;
        /// Type libraries imported.
        tlb_imports: u32 at 128, 212;
        /// Type libraries exported.
        tlb_exports: u32 at 132, 216;
    }

    /// What is loaded.
    Loading {
        /// Classes that are loaded.
        classes: u32 at 136, 224;
        /// Classes loaded up to now.
        classes_total: u32 at 140, 228;
        /// Application domains that are loaded.
        app_domains: u32 at 144, 232;
        /// Application domains loaded up to now.
        app_domains_total: u32 at 148, 236;
        /// Assemblies that are loaded.
        assemblies: u32 at 152, 240;
        /// Assemblies loaded up to now.
        assemblies_total: u32 at 156, 244;
        /// Documented as reserved.
        time: i64 at 160, 248;
        /// Documented as reserved.
        search_length: u32 at 168, 256;
        /// Classes that could not be loaded.
        failures: u32 at 172, 260;
        /// The bytes that the loader has committed.
        loader_heap: size at 176, 264;
        /// Application domains unloaded up to now.
        app_domains_unloaded: u32 at 180, 272;
    }

    /// Exceptions.
    Exceptions {
        /// Exceptions thrown.
        thrown: u32 at 184, 280;
        /// Filters run.
        filters: u32 at 188, 284;
        /// Finally blocks run for an exception.
        finallys: u32 at 192, 288;
        /// Stack frames between throw and catch, summed up.
        throw_to_catch_depth: u32 at 196, 292;
    }

    /// Locks and threads.
    Locks {
        /// How often a thread found a lock taken. Not counted atomically everywhere: a few may be missing.
        contentions: u32 at 200, 296;
        /// Threads that wait for a lock.
        queue: u32 at 204, 300;
        /// Threads that waited for a lock up to now.
        queue_total: u32 at 208, 304;
        /// Managed threads, running or not.
        logical: u32 at 212, 308;
        /// Threads of the system that the runtime made for them.
        physical: u32 at 216, 312;
        /// Threads that others made and that have run managed code.
        recognized: u32 at 220, 316;
        /// Such threads up to now.
        recognized_total: u32 at 224, 320;
    }

    /// Compiling at run time.
    Jit {
        /// Methods compiled.
        methods: u32 at 228, 324;
        /// Bytes of IL compiled.
        il_bytes: u32 at 232, 328;
        /// The same.
        il_bytes_total: u32 at 236, 332;
        /// Methods that could not be compiled.
        failures: u32 at 240, 336;
        /// Time, in ticks of QPC modulo 2³².
        time: u32 at 244, 340;
        /// Called a base, and the value of `time` before the last method.
        time_before: u32 at 248, 344;
    }

    /// Code access security.
    Security {
        /// Checks at run time.
        runtime_checks: u32 at 252, 352;
        /// The time of checking signatures.
        time_authorizing: i64 at 256, 360;
        /// Checks at link time.
        link_checks: u32 at 264, 368;
        /// The time of checks at run time since the last collection began.
        time_of_runtime_checks: u32 at 268, 372;
        /// Its base; 1 after a collection.
        time_of_runtime_checks_base: u32 at 272, 376;
        /// The depth of the stack at the last check.
        stack_depth: u32 at 276, 380;
    }
}

/// A runtime in a process, and its counters. Numbers of 4 bytes wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Which of the runtimes of version 4 it is; `None` for the one of version 2.0, 3.0 or 3.5.
    pub id: Option<u32>,
    /// Its version: 4 and 30319, for example.
    pub version: (u16, u16),
    /// Whether it is a 32-bit one.
    pub pointer: Pointer,
    /// 1 for counters that are switched on, 2 for those of all processes together.
    pub attributes: u16,
    /// `None` until the first collection has ended.
    pub gc: Option<Gc>,
    /// Remoting.
    pub remoting: Remoting,
    /// Calls between managed and native code.
    pub interop: Interop,
    /// What is loaded.
    pub loading: Loading,
    /// Exceptions.
    pub exceptions: Exceptions,
    /// Locks and threads.
    pub locks: Locks,
    /// Compiling at run time.
    pub jit: Jit,
    /// Code access security.
    pub security: Security,
}
