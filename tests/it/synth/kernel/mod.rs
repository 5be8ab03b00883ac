//! The payloads of kernel events. Each type makes one kind of record in any of its versions; what a test does
//! not set has a plausible value.

pub mod disk_io;
pub mod file_io;
pub mod image;
pub mod page_fault;
pub mod perfinfo;
pub mod process;
pub mod stack_walk;
pub mod system;
pub mod thread;
