//! The DLL of a service as a file.

use std::collections::BTreeSet;

use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{ImageNtHeaders, PeFile, PeFile32, PeFile64};

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// Nothing: it is on another machine, or its place depends on what is not known.
    #[default]
    NotChecked,
    /// It is nowhere where Windows looks for it.
    Missing,
    /// It is there, and is no image that can be loaded.
    NotAnImage {
        /// Where.
        path: String,
    },
    /// It is there.
    Image(Image),
}

/// A DLL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it is.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The width of its pointers in bits: 32 or 64; 0 for a processor that is not known.
    pub bits: u32,
    /// The names of its functions.
    pub exports: BTreeSet<String>,
}

/// The greatest file that is looked into.
pub const MOST_BYTES: u64 = 512 << 20;

/// A library has no more functions than fit in their numbers of 16 bits.
const MOST_EXPORTS: usize = 1 << 16;

/// The longest name of a function that is kept, in bytes. A value of the registry could name a longer one, which no DLL has.
const LONGEST_NAME: usize = 1024;

impl Library {
    /// Looks into the bytes of a file.
    pub fn parse(path: &str, file: &[u8]) -> Library {
        let image = PeFile64::parse(file).map(|file| facts(&file));
        match image.or_else(|_| PeFile32::parse(file).map(|file| facts(&file))) {
            Ok((bits, exports)) => {
                Library::Image(Image { path: path.to_owned(), size: file.len() as u64, bits, exports })
            }
            Err(_) => Library::NotAnImage { path: path.to_owned() },
        }
    }
}

fn facts<Headers: ImageNtHeaders>(file: &PeFile<'_, Headers>) -> (u32, BTreeSet<String>) {
    let bits = match file.nt_headers().file_header().machine.get(LE) {
        pe::IMAGE_FILE_MACHINE_I386 | pe::IMAGE_FILE_MACHINE_ARMNT => 32,
        pe::IMAGE_FILE_MACHINE_AMD64 | pe::IMAGE_FILE_MACHINE_ARM64 => 64,
        _ => 0,
    };
    let table = file.export_table().ok().flatten();
    let names = table
        .iter()
        .flat_map(|table| table.name_iter().filter_map(|(pointer, _)| table.name_from_pointer(pointer).ok()));
    let names = names.take(MOST_EXPORTS).filter(|name| name.len() <= LONGEST_NAME);
    (bits, names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
