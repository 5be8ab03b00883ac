//! A PE file's bytes by relative virtual address.

use object::LittleEndian as LE;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, ImageDosHeader, ImageNtHeaders32, ImageNtHeaders64, Machine,
};
use object::read::pe::{ExportTarget, ImageNtHeaders};

use super::cursor::Cursor;

/// A section: where it is mapped, and its bytes in the file.
struct Section<'d> {
    rva: u32,
    bytes: &'d [u8],
}

/// A PE file in its file layout, readable by RVA.
pub(crate) struct PeBytes<'d> {
    /// The processor, with the mark of another operating system taken out.
    pub(crate) machine: Machine,
    /// RVA and size of the COR header; `None` when the image is not managed.
    pub(crate) cor_header: Option<(u32, u32)>,
    /// RVA of the exported `RTR_HEADER` (a composite image).
    pub(crate) rtr_header: Option<u32>,
    sections: Vec<Section<'d>>,
}

/// What ReadyToRun images for other systems XOR into the machine field: Linux, Apple, FreeBSD, NetBSD, SunOS
/// (dotnet/runtime, pedecoder.h; Linux verified on System.ComponentModel.EventBasedAsync.dll: 0xFD1D).
const OS_MARKS: [u16; 6] = [0, 0x7B79, 0x4644, 0xADC4, 0x1993, 0x1992];

impl<'d> PeBytes<'d> {
    pub(crate) fn parse(file: &'d [u8]) -> Result<Self, object::read::Error> {
        match object::FileKind::parse(file)? {
            object::FileKind::Pe32 => Self::parse_as::<ImageNtHeaders32>(file),
            _ => Self::parse_as::<ImageNtHeaders64>(file),
        }
    }

    fn parse_as<Pe: ImageNtHeaders>(file: &'d [u8]) -> Result<Self, object::read::Error> {
        let mut offset = ImageDosHeader::parse(file)?.nt_headers_offset().into();
        let (headers, directories) = Pe::parse(file, &mut offset)?;
        let table = headers.sections(file, offset)?;
        let mut sections: Vec<_> = table
            .iter()
            .filter_map(|section| {
                let (start, size) = section.pe_file_range();
                // A section cut off by the end of the file keeps what is there.
                let bytes = file.get(start as usize..)?;
                let bytes = bytes.get(..size as usize).unwrap_or(bytes);
                Some(Section { rva: section.virtual_address.get(LE), bytes })
            })
            .collect();
        sections.sort_by_key(|section| section.rva);

        let machine = headers.file_header().machine.get(LE);
        let machine = OS_MARKS
            .iter()
            .map(|mark| Machine(machine.0 ^ mark))
            .find(|&machine| super::r2r::is_known_machine(machine))
            .unwrap_or(machine);
        let cor_header = directories
            .get(IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR)
            .map(|directory| directory.address_range())
            .filter(|&(rva, _)| rva != 0);
        // Only a composite image has exports and no usable COR header; hostile export tables cost one linear pass.
        let rtr_header = directories.export_table(file, &table).ok().flatten().and_then(|exports| {
            exports.name_iter().find_map(|(name, index)| {
                let name = exports.name_from_pointer(name).ok()?;
                if name != b"RTR_HEADER" {
                    return None;
                }
                match exports.target_from_address(exports.address_by_index(index).ok()?).ok()? {
                    ExportTarget::Address(rva) => Some(rva),
                    _ => None,
                }
            })
        });
        Ok(PeBytes { machine, cor_header, rtr_header, sections })
    }

    /// The file's bytes from `rva` to the end of its section.
    pub(crate) fn at(&self, rva: u32) -> Option<&'d [u8]> {
        let index = self.sections.partition_point(|section| section.rva <= rva).checked_sub(1)?;
        let section = self.sections.get(index)?;
        section.bytes.get((rva - section.rva) as usize..).filter(|bytes| !bytes.is_empty())
    }

    /// `size` bytes at `rva`, or as many as the file has.
    pub(crate) fn range(&self, rva: u32, size: u32) -> Option<&'d [u8]> {
        let bytes = self.at(rva)?;
        Some(bytes.get(..size as usize).unwrap_or(bytes))
    }

    pub(crate) fn cursor(&self, rva: u32) -> Option<Cursor<'d>> {
        Some(Cursor::new(self.at(rva)?, 0))
    }
}
