//! What every byte of an event's payload is: a number, or a text that says something of who recorded, or one that does not.
//!
//! A walk steps over the parts of a layout. What it does not reach, because a newer writer appended it or because nobody
//! knows what it is, is behind its end. A layout that cannot be the writer's gives no walk.

use std::ops::Range;

use crate::bytes::Reader;
use crate::event::{Event, Kind, Pointer};
use crate::events::clr::{self, Clr};
use crate::events::javascript::JavaScript;
use crate::events::kernel::{ImageId, Kernel, LATE_USER_STACK, StackWalk, SysConfig};
use crate::events::{Decoded, decode};
use crate::guids::{EVENT_TRACE, KERNEL_EVENT_TRACING, LOST_EVENT};

use super::pseudonyms::Style;

/// Bytes of a recording's header before its two pointers, and the names behind them.
const HEADER_NUMBERS: usize = 264;

/// A part of a payload that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// UTF-16.
    Wide(Range<usize>, Style),
    /// Single bytes.
    Narrow(Range<usize>, Style),
    /// A user, or whatever else has a SID.
    Sid(Range<usize>),
    /// Nobody needs it.
    Nothing(Range<usize>),
}

impl Field {
    /// The same with its place as `moved` makes it.
    pub(super) fn at(self, moved: impl FnOnce(Range<usize>) -> Range<usize>) -> Field {
        match self {
            Field::Wide(place, style) => Field::Wide(moved(place), style),
            Field::Narrow(place, style) => Field::Narrow(moved(place), style),
            Field::Sid(place) => Field::Sid(moved(place)),
            Field::Nothing(place) => Field::Nothing(moved(place)),
        }
    }
}

/// What is known of a payload.
#[derive(Debug)]
pub(super) struct Layout {
    /// The parts that are replaced, by their places in the payload.
    pub(super) fields: Vec<Field>,
    /// Where the known parts end.
    pub(super) end: usize,
}

impl Layout {
    /// That of a recording's header that is laid out as no header is: it is all that a recording must have.
    pub(super) fn of_header() -> Layout {
        Layout { fields: Vec::new(), end: HEADER_NUMBERS + 2 * Pointer::Bits32.bytes() }
    }
}

/// The layout of an event's payload; `None` if it is not known, or if the payload is not laid out as its header says.
pub(super) fn layout(event: &Event<'_>) -> Option<Layout> {
    let walk = walk(event)?;
    if let Some(text) = &walk.text
        && is_of_other_width(event, &walk, text)
    {
        return None;
    }
    Some(Layout { fields: walk.fields, end: walk.at })
}

/// True if pointers in a payload have not the width that its header names: tools that convert recordings have written such
/// (image_data_64_v2.etl). Then the payload fits the other width from its first byte to its last, or the text begins
/// before the place where it is looked for.
fn is_of_other_width(event: &Event<'_>, own: &Walk<'_>, text: &Range<usize>) -> bool {
    let pointer = match event.pointer {
        Pointer::Bits32 => Pointer::Bits64,
        Pointer::Bits64 => Pointer::Bits32,
    };
    let other = walk(&Event { pointer, ..*event });
    let Some((other, begins)) = other.as_ref().and_then(|other| Some((other, other.text.clone()?))) else {
        return false;
    };
    // Two bytes of a pointer are no such character.
    let is_read = |at: usize| event.payload.get(at).is_some_and(|byte| (b' '..=b'~').contains(byte));
    let is_cut = begins.start < text.start && begins.end == text.end && is_read(begins.start);
    other.is_exact() && !own.is_exact() || is_cut
}

/// A way through a payload, part by part.
struct Walk<'e> {
    payload: &'e [u8],
    pointer: Pointer,
    at: usize,
    fields: Vec<Field>,
    /// The first text.
    text: Option<Range<usize>>,
    /// Every part so far was there as a whole.
    is_whole: bool,
}

impl Walk<'_> {
    /// True if the parts were all there, and nothing else.
    fn is_exact(&self) -> bool {
        self.is_whole && self.at == self.payload.len()
    }

    /// Steps over bytes that hold numbers.
    fn numbers(&mut self, bytes: usize) -> &mut Self {
        let left = self.payload.len().saturating_sub(self.at);
        self.is_whole &= bytes <= left;
        self.at += bytes.min(left);
        self
    }

    fn pointers(&mut self, count: usize) -> &mut Self {
        self.numbers(count * self.pointer.bytes())
    }

    /// Addresses up to the end.
    fn addresses(&mut self) -> &mut Self {
        let left = self.payload.len().saturating_sub(self.at);
        self.pointers(left / self.pointer.bytes())
    }

    /// Bytes that are emptied.
    fn nothing(&mut self, bytes: usize) -> &mut Self {
        let start = self.at;
        self.numbers(bytes);
        self.fields.push(Field::Nothing(start..self.at));
        self
    }

    fn wide(&mut self, style: Style) -> &mut Self {
        let place = self.wide_text();
        if !place.is_empty() {
            self.fields.push(Field::Wide(place, style));
        }
        self
    }

    /// A text that stays.
    fn plain(&mut self) -> &mut Self {
        self.wide_text();
        self
    }

    fn narrow(&mut self, style: Style) -> &mut Self {
        let length = Reader::at(self.payload, self.at).ansi().0.len();
        let place = self.text(length, 1);
        if !place.is_empty() {
            self.fields.push(Field::Narrow(place, style));
        }
        self
    }

    fn wide_text(&mut self) -> Range<usize> {
        let length = Reader::at(self.payload, self.at).utf16().bytes().len();
        self.text(length, 2)
    }

    /// A text and what ends it, which is missing where a writer cut the text.
    fn text(&mut self, length: usize, terminator: usize) -> Range<usize> {
        let place = self.at..self.at + length;
        self.text.get_or_insert(place.clone());
        let behind = place.end + terminator;
        self.at = if behind <= self.payload.len() { behind } else { place.end };
        place
    }

    /// The block of a SID that was read there; `None` if what was read is none.
    fn sid(&mut self, sid: &[u8]) -> Option<&mut Self> {
        match *sid {
            [] => Some(self.numbers(4)),
            // Its revision, and how many authorities it has at most.
            [1, 0..=15, ..] => {
                self.pointers(2);
                let start = self.at;
                self.numbers(sid.len());
                self.fields.push(Field::Sid(start..self.at));
                Some(self)
            }
            _ => None,
        }
    }
}

fn walk<'e>(event: &Event<'e>) -> Option<Walk<'e>> {
    let Event { payload, pointer, .. } = *event;
    let mut walk = Walk { payload, pointer, at: 0, fields: Vec::new(), text: None, is_whole: true };
    match decode(event).ok()? {
        Decoded::Kernel(kernel) => of_kernel(&mut walk, &kernel, event)?,
        Decoded::Clr(clr) => of_clr(&mut walk, &clr, event)?,
        Decoded::JavaScript(JavaScript::Method(_)) => {
            walk.pointers(2).numbers(8 + 4 + 4 + 8 + 4 + 4).plain();
        }
        // Where a script was loaded from.
        Decoded::JavaScript(JavaScript::Source(_)) => {
            walk.numbers(8).pointers(1).numbers(4).wide(Style::Words);
        }
        // Instances are processes, disks, network adapters.
        Decoded::Counter(_) => {
            walk.numbers(4).plain().wide(Style::Words).plain().plain().numbers(8);
        }
        Decoded::Trimmed(_) => {
            walk.numbers(payload.len());
        }
        Decoded::Other => match (event.kind, event.provider, event.opcode) {
            // The header, with the session's name and the file's.
            (Kind::Classic, EVENT_TRACE, 0) => {
                walk.numbers(HEADER_NUMBERS).pointers(2).wide(Style::Words).wide(Style::Path);
            }
            // What a session is set to collect, that its rundown is complete, and its processors.
            (Kind::Classic, EVENT_TRACE, 5) => {
                walk.numbers(36);
            }
            (Kind::Classic, EVENT_TRACE, 8) | (Kind::Classic, LOST_EVENT, _) => {}
            (Kind::Classic, EVENT_TRACE, 80) => {
                walk.numbers(48);
            }
            // The provider's other events name sessions and their files.
            (LATE_USER_STACK, KERNEL_EVENT_TRACING, _) => {
                walk.numbers(8);
            }
            _ => return None,
        },
    }
    Some(walk)
}

/// The layouts are those of the decoders, by version and with the fields that these do not read.
fn of_kernel(walk: &mut Walk<'_>, kernel: &Kernel<'_>, event: &Event<'_>) -> Option<()> {
    let (version, opcode) = (event.version, event.opcode);
    match *kernel {
        Kernel::Process(process) => {
            match version {
                0 => walk.pointers(2),
                1 | 2 => walk.pointers(1).numbers(16),
                3 => walk.pointers(1).numbers(16).pointers(1),
                _ => walk.pointers(1).numbers(16).pointers(1).numbers(4),
            };
            walk.sid(process.sid)?.narrow(Style::Path);
            if version >= 2 {
                walk.wide(Style::Words);
            }
            if version >= 4 {
                // The package and the application.
                walk.wide(Style::Words).wide(Style::Words);
            }
            if version >= 5 {
                walk.numbers(8);
            }
        }
        Kernel::Thread(_) => {
            walk.numbers(8);
            match version {
                0 => {}
                // Records of ends hold the two ids only.
                1 if matches!(opcode, 2 | 4) => {}
                1 => {
                    walk.pointers(6).numbers(1);
                }
                2 => {
                    walk.pointers(7).numbers(4);
                }
                _ => {
                    walk.pointers(7).numbers(8).wide(Style::Words);
                }
            }
        }
        Kernel::ThreadName(_) => {
            walk.numbers(8).wide(Style::Words);
        }
        Kernel::ContextSwitch(_) => {
            walk.numbers(24);
        }
        Kernel::ReadyThread(_) => {
            walk.numbers(8);
        }
        Kernel::Image(_) => {
            match version {
                0 => walk.pointers(1).numbers(4),
                1 => walk.pointers(2).numbers(4),
                _ => walk.pointers(2).numbers(4 + 4 + 4 + 4).pointers(1).numbers(16),
            };
            walk.wide(Style::Path);
        }
        Kernel::ImageId(id) => match id {
            ImageId::File { .. } => {
                walk.pointers(2).numbers(8).wide(Style::Path);
            }
            ImageId::Pdb { .. } => {
                walk.pointers(1).numbers(4 + 16 + 4).narrow(Style::Path);
            }
            ImageId::NoPdb { .. } => {
                walk.pointers(1).numbers(4);
            }
            ImageId::Mark { .. } => {
                walk.pointers(1).numbers(if opcode == 38 { 12 } else { 4 });
            }
            // Its texts go on behind those that are read.
            ImageId::Version { .. } => return None,
        },
        Kernel::Sample(_) | Kernel::CounterSample(_) => {
            walk.pointers(1).numbers(8);
        }
        Kernel::PageFault(fault) => {
            match fault.read {
                Some(_) => walk.numbers(16).pointers(2).numbers(8),
                None => walk.pointers(2),
            };
        }
        // What the processor counts has a name, from version 3 on.
        Kernel::ProfileInterval(_) => {
            walk.numbers(12);
            if version >= 3 {
                walk.plain();
            }
        }
        Kernel::Interrupt(_) => {
            walk.numbers(8).pointers(1);
            match opcode {
                50 => walk.numbers(8),
                67 => walk.numbers(4),
                _ => walk,
            };
        }
        Kernel::DiskIo(io) => {
            match io.file {
                Some(_) => walk.numbers(24).pointers(2).numbers(8),
                None => walk.numbers(16).pointers(1),
            };
            walk.numbers(if version >= 3 { 4 } else { 0 });
        }
        Kernel::DiskIoInit(_) => {
            walk.pointers(1).numbers(if version >= 3 { 4 } else { 0 });
        }
        Kernel::FileName(_) => {
            walk.pointers(1).wide(Style::Path);
        }
        Kernel::StackWalk(stack) => {
            match stack {
                StackWalk::Stack { .. } => walk.numbers(16).addresses(),
                StackWalk::Key { .. } => walk.numbers(16).pointers(1),
                StackWalk::Definition { .. } => walk.pointers(1).addresses(),
            };
        }
        Kernel::Cpu(_) => {
            // The machine's name and its domain's, with whatever stands behind their ends.
            walk.numbers(20).nothing(512 + 268).pointers(2).numbers(12);
        }
        Kernel::SysConfig(config) => {
            match config {
                SysConfig::Build { .. } => walk.numbers(8).plain().plain(),
                SysConfig::Paths { .. } | SysConfig::Volume { .. } => {
                    walk.wide(Style::Path).wide(Style::Path)
                }
            };
        }
        Kernel::Lost(_) => {}
    }
    Some(())
}

/// Widths are fixed but for pointers of an exception. Of events without secrets, the decoder reads every field.
fn of_clr(walk: &mut Walk<'_>, clr: &Clr<'_>, event: &Event<'_>) -> Option<()> {
    let version = event.version;
    match *clr {
        Clr::Module(_) => {
            walk.numbers(24).wide(Style::Module).wide(Style::Module);
            if version >= 1 {
                walk.numbers(2);
            }
            if version >= 2 {
                // Of the IL and of precompiled code: GUID, age and path of a PDB.
                walk.numbers(20).wide(Style::Path).numbers(20).wide(Style::Path);
            }
        }
        Clr::DomainModule(_) => {
            walk.numbers(32).wide(Style::Module).wide(Style::Module);
            walk.numbers(if version >= 1 { 2 } else { 0 });
        }
        Clr::AppDomain(_) => {
            walk.numbers(12).wide(Style::Path);
            walk.numbers(if version >= 1 { 6 } else { 0 });
        }
        Clr::Runtime(_) => {
            walk.numbers(2 + 2 + 16 + 5).wide(Style::Words).numbers(16).wide(Style::Path);
        }
        // Its type and its message.
        Clr::Exception(_) => {
            walk.plain().wide(Style::Words).pointers(1).numbers(4 + 2 + 2);
        }
        _ => {
            let mut reader = event.reader();
            clr::read(event, &mut reader)?;
            walk.numbers(event.payload.len().saturating_sub(reader.rest().len()));
        }
    }
    Some(())
}
