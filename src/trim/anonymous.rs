//! Records without what they say of who recorded: users, machines, folders, command lines.
//!
//! A record keeps its length: each text is replaced in its place. That needs to know where texts are, so events of other
//! layouts are left out.

use std::ops::Range;

use crate::bytes::{Ansi, Reader, Utf16};
use crate::event::{Event, ExtendedItems};
use crate::events::clr::Clr;
use crate::events::javascript::JavaScript;
use crate::events::kernel::{ImageId, Kernel, LATE_USER_STACK, SysConfig};
use crate::events::{Decoded, decode};
use crate::guids::{EVENT_TRACE, KERNEL_EVENT_TRACING, LOST_EVENT};

use super::pseudonyms::{Pseudonyms, Style};

/// Opcodes of EventTrace: the header, its extension, the end of a rundown.
const HEADER: u8 = 0;
const NUMBERS: [u8; 3] = [5, 8, 80];

/// The item that names the user.
const SID_ITEM: u16 = 2;
/// Items with numbers only (related activity, terminal session, instance, stacks, counters, keys, clock), and what a
/// provider says of itself. The others name packages and containers.
const PLAIN_ITEMS: [u16; 14] = [
    1,
    3,
    4,
    ExtendedItems::STACK32,
    ExtendedItems::STACK64,
    7,
    8,
    10,
    ExtendedItems::TRACELOGGING_SCHEMA,
    ExtendedItems::PROVIDER_TRAITS,
    13,
    15,
    17,
    18,
];

/// True for an event whose texts are known, or that has none.
pub(super) fn is_known(event: &Event<'_>) -> bool {
    match decode(event) {
        // Its texts go on behind those that are read.
        Ok(Decoded::Kernel(Kernel::ImageId(ImageId::Version { .. }))) => false,
        Ok(Decoded::Kernel(_) | Decoded::Clr(_) | Decoded::JavaScript(_) | Decoded::Counter(_)) => true,
        Ok(Decoded::Other) => match event.provider {
            EVENT_TRACE => event.opcode == HEADER || NUMBERS.contains(&event.opcode),
            LOST_EVENT => true,
            // The provider's other events name sessions and their files.
            KERNEL_EVENT_TRACING => event.kind == LATE_USER_STACK,
            _ => false,
        },
        Err(_) => false,
    }
}

/// What is replaced in a record.
enum Field {
    /// UTF-16.
    Wide(Range<usize>, Style),
    /// Single bytes.
    Narrow(Range<usize>, Style),
    Sid(Range<usize>),
    /// Nobody needs it.
    Nothing(Range<usize>),
}

/// The record of an event without its secrets, as long as before; `None` if it has none.
pub(super) fn without_secrets(
    pseudonyms: &mut Pseudonyms,
    event: &Event<'_>,
    record: &[u8],
) -> Option<Vec<u8>> {
    let fields = fields(event, record);
    if fields.is_empty() {
        return None;
    }
    let mut record = record.to_vec();
    for field in fields {
        match field {
            Field::Wide(place, style) => {
                let (bytes, _) = record.get_mut(place)?.as_chunks_mut::<2>();
                let mut units: Vec<u16> = bytes.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
                pseudonyms.replace(&mut units, style);
                bytes.iter_mut().zip(units).for_each(|(bytes, unit)| *bytes = unit.to_le_bytes());
            }
            Field::Narrow(place, style) => {
                let bytes = record.get_mut(place)?;
                let mut units: Vec<u16> = bytes.iter().copied().map(u16::from).collect();
                pseudonyms.replace(&mut units, style);
                bytes.iter_mut().zip(units).for_each(|(byte, unit)| *byte = unit.to_le_bytes()[0]);
            }
            Field::Sid(place) => pseudonyms.sid(record.get_mut(place)?),
            Field::Nothing(place) => record.get_mut(place)?.fill(0),
        }
    }
    Some(record)
}

/// The places of an event's texts in its record.
struct Places<'r> {
    record: &'r [u8],
    fields: Vec<Field>,
}

impl Places<'_> {
    /// Where a part of the record is in it.
    fn of(&self, part: &[u8]) -> Option<Range<usize>> {
        let start = part.as_ptr().addr().checked_sub(self.record.as_ptr().addr())?;
        let place = start..start + part.len();
        (!part.is_empty() && place.end <= self.record.len()).then_some(place)
    }

    fn wide(&mut self, text: Utf16<'_>, style: Style) {
        self.fields.extend(self.of(text.bytes()).map(|place| Field::Wide(place, style)));
    }

    fn narrow(&mut self, text: Ansi<'_>, style: Style) {
        self.fields.extend(self.of(text.0).map(|place| Field::Narrow(place, style)));
    }

    fn sid(&mut self, sid: &[u8]) {
        self.fields.extend(self.of(sid).map(Field::Sid));
    }

    fn nothing(&mut self, part: &[u8]) {
        self.fields.extend(self.of(part).map(Field::Nothing));
    }
}

fn fields(event: &Event<'_>, record: &[u8]) -> Vec<Field> {
    let mut places = Places { record, fields: Vec::new() };
    for (kind, data) in event.extended() {
        match kind {
            SID_ITEM => places.sid(data),
            plain if PLAIN_ITEMS.contains(&plain) => {}
            _ => places.nothing(data),
        }
    }
    match decode(event) {
        Ok(Decoded::Kernel(kernel)) => of_kernel(&mut places, &kernel, event),
        Ok(Decoded::Clr(clr)) => of_clr(&mut places, &clr),
        // Where a script was loaded from.
        Ok(Decoded::JavaScript(JavaScript::Source(source))) => places.wide(source.url, Style::Words),
        // Processes, disks, network adapters.
        Ok(Decoded::Counter(value)) => places.wide(value.instance, Style::Words),
        Ok(Decoded::Other) if event.provider == EVENT_TRACE && event.opcode == HEADER => {
            // The session's name and the file's, behind the fields.
            let fields = 264 + 2 * event.pointer.bytes();
            let mut names = Reader::at(event.payload, fields);
            let (session, file) = (names.utf16(), names.utf16());
            places.wide(session, Style::Words);
            places.wide(file, Style::Path);
        }
        _ => {}
    }
    places.fields
}

fn of_kernel(places: &mut Places<'_>, kernel: &Kernel<'_>, event: &Event<'_>) {
    match *kernel {
        Kernel::Process(process) => {
            places.sid(process.sid);
            places.narrow(process.image_file_name, Style::Path);
            places.wide(process.command_line, Style::Words);
            if event.version >= 4 {
                // The package and the application.
                let name = places.of(process.image_file_name.0).map(|name| name.end + 1);
                let line = places.of(process.command_line.bytes()).map(|line| line.end);
                let end = line.or(name).map_or(places.record.len(), |end| end + 2);
                let mut rest = Reader::at(places.record, end);
                let (package, application) = (rest.utf16(), rest.utf16());
                places.wide(package, Style::Words);
                places.wide(application, Style::Words);
            }
        }
        Kernel::Thread(thread) => places.wide(thread.name, Style::Words),
        Kernel::ThreadName(name) => places.wide(name.name, Style::Words),
        Kernel::Image(image) => places.wide(image.file_name, Style::Path),
        Kernel::ImageId(ImageId::File { original_name, .. }) => places.wide(original_name, Style::Path),
        Kernel::ImageId(ImageId::Pdb { name, .. }) => places.narrow(name, Style::Path),
        Kernel::FileName(file) => places.wide(file.path, Style::Path),
        Kernel::Cpu(_) => {
            // The machine's name and its domain's, with whatever stands behind their ends.
            let names = event.payload.get(20..).unwrap_or_default();
            places.nothing(names.get(..512 + 268).unwrap_or(names));
        }
        Kernel::SysConfig(SysConfig::Paths { system, windows }) => {
            places.wide(system, Style::Path);
            places.wide(windows, Style::Path);
        }
        Kernel::SysConfig(SysConfig::Volume { nt, dos }) => {
            places.wide(nt, Style::Path);
            places.wide(dos, Style::Path);
        }
        _ => {}
    }
}

fn of_clr(places: &mut Places<'_>, clr: &Clr<'_>) {
    match *clr {
        Clr::Module(module) => {
            places.wide(module.il_path, Style::Module);
            places.wide(module.native_path, Style::Module);
            for pdb in [module.managed_pdb, module.native_pdb].into_iter().flatten() {
                places.wide(pdb.path, Style::Path);
            }
        }
        Clr::DomainModule(module) => {
            places.wide(module.il_path, Style::Module);
            places.wide(module.native_path, Style::Module);
        }
        Clr::AppDomain(domain) => places.wide(domain.name, Style::Path),
        Clr::Runtime(runtime) => {
            places.wide(runtime.command_line, Style::Words);
            places.wide(runtime.path, Style::Path);
        }
        Clr::Exception(exception) => places.wide(exception.message, Style::Words),
        _ => {}
    }
}
