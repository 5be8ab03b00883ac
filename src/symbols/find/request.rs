//! What is asked of a store, and what it says while it works.

use std::path::PathBuf;

use super::key::FileKey;
use super::lookup::{Lookup, Verify};

/// One file to find.
pub struct Request<'a> {
    /// What.
    pub key: FileKey,
    /// Full paths to look at first, such as the path in the image's RSDS record and that beside the image. They
    /// may come from a trace: paths on a network are not opened, and relative ones neither.
    pub hints: Vec<PathBuf>,
    /// False for a file that is welcome and not worth a request: then only this machine is searched.
    pub ask_servers: bool,
    /// The check of a candidate. The file it is given may still have a temporary name.
    pub verify: Box<Verify<'a>>,
}

/// What [`Store::find_all`](super::store::Store::find_all) reports while it works.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The search began.
    Started,
    /// A server is asked for a file, and no bytes have come yet; or it sends the file.
    Receiving {
        /// Bytes of the file so far.
        bytes: u64,
        /// Bytes in all, if the server says.
        total: Option<u64>,
    },
    /// Nothing comes from any server; the name is that of the file that is waited for longest.
    Waiting {
        /// Who is to send it: the server's address.
        server: &'a str,
        /// How long it has been silent, in whole seconds.
        seconds: u64,
    },
    /// The search is over.
    Finished(&'a Lookup),
}

/// Called for each file that is looked for, with its name. From several threads.
pub type OnProgress<'a> = dyn Fn(&str, Progress<'_>) + Sync + 'a;
