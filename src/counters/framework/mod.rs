//! The counters of a .NET Framework program, out of the *IPC block* that its runtime shares with the system.
//!
//! Each runtime keeps its counters in shared memory, for the performance counters `.NET CLR Memory` and the like. It is read
//! here as it is: no DLL is loaded, nothing is sent to the process, and a process that never asked for performance counters
//! has them too. .NET Core and .NET 5 and later have no such block; they send [EventCounters](super::runtime).
//!
//! The memory belongs to somebody else: it changes while it is read, and anyone with rights may have made it. Whoever has
//! it gives copies of parts ([`runtimes`], [`legacy`]); every place is checked before it is read, and only numbers come out.
//!
//! Layouts and meanings are those of the public source of CoreCLR, which had the block until it was removed there
//! (`ipcheader.h`, `perfcounterdefs.h`, `gcee.cpp`).

mod facts;
mod layout;
mod readings;
#[cfg(all(windows, feature = "live"))]
pub mod windows;

pub use facts::{Exceptions, Gc, Interop, Jit, Loading, Locks, Remoting, Runtime, Security};
pub use layout::{BlockError, MOST_BYTES, legacy, runtimes};
pub use readings::{Sample, USUAL, is_object, known, readings};
