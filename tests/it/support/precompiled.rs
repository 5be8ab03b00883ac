//! Files of the real data that several tests read: images that were compiled ahead of time.

use super::data;

/// The bytes of a file of the real data.
pub fn real(path: &str) -> Vec<u8> {
    std::fs::read(data::file(path)).unwrap()
}

pub const EVENT_BASED_ASYNC: &str =
    "dotnet/symstore/PerfMapEnabled/System.ComponentModel.EventBasedAsync.dll";
pub const CORELIB: &str = "dotnet/dotnetcore2/3.1.23-x64/System.Private.CoreLib.dll";

/// Every image with code: (file, format version, runtime functions, methods).
pub const IMAGES: [(&str, (u16, u16), u32, usize); 7] = [
    (EVENT_BASED_ASYNC, (5, 4), 74, 71),
    (CORELIB, (3, 1), 32_060, 30_396),
    ("dotnet/dotnetcore2/3.1.23-x64/System.Linq.dll", (3, 1), 1_164, 985),
    ("dotnet/dotnetcore2/3.1.23-x64/System.Collections.dll", (3, 1), 881, 813),
    ("dotnet/dotnetcore2/2.1.28-x64-ngen/System.Linq.dll", (2, 2), 1_156, 973),
    ("dotnet/symstore/System.Diagnostics.StackTrace.dll", (2, 2), 32, 27),
    ("dotnet/symstore/dir1/System.Threading.Thread.dll", (2, 2), 129, 125),
];
