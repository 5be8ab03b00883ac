//! From a module and an address in it to the functions there.
//!
//! | room | its job |
//! |---|---|
//! | [`find`] | the files: on this machine, in stores and caches, on symbol servers |
//! | [`read`] | what images and symbol files say of an address |
//! | [`resolver`] | both for the modules of a trace, with a [`Verdict`] on each |
//!
//! `read` knows nothing of where files come from; `find` reads only what shows which build a file is of. Neither knows
//! of a trace. What is named here is meant to be used; the modules below are public for tests and tools, and may
//! change.

pub mod find;
pub mod il_images;
pub mod il_pdbs;
pub mod image_facts;
pub mod local_images;
mod named;
mod names;
mod parallel;
pub mod read;
pub mod resolver;
mod url;
pub mod verdict;

pub use find::lookup::{Attempt, Lookup, Outcome};
pub use find::options::StoreOptions;
pub use find::path::SymbolPath;
pub use find::request::Progress;
pub use find::store::Store;
pub use il_pdbs::IlPdbReport;
pub use names::{Certainty, Function, FunctionName, Hit, IlPlace, Names, Siblings, Unnamed, Wanted};
pub use read::dotnet::lines::{SourceLine, il_offset};
pub use read::limits::Limits;
pub use read::location::Evidence;
pub use read::spelling::method::{RawName, distinct};
pub use read::spelling::native::short as short_name;
pub use resolver::{ModuleReport, Symbols};
pub use verdict::Verdict;
