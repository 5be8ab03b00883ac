//! Machine code, as far as it shows where control goes.
//!
//! x86 and x64 are decoded by `iced-x86`. ARM64 has four bytes to an instruction, and six kinds that branch (Arm
//! Architecture Reference Manual, "Branches, Exception Generating and System instructions").

use iced_x86::{Code as Code32, Decoder, DecoderOptions, FlowControl, OpKind, Register};

use crate::symbols::read::pe::{Image, Machine};

/// One instruction, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// First RVA.
    pub(super) at: u32,
    /// The RVA behind it.
    pub(super) end: u32,
    /// Where control goes from it.
    pub(super) flow: Flow,
}

/// Where control goes from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next one.
    Next,
    /// To the next one, or to this RVA.
    Branch(u32),
    /// To this RVA.
    Jump(u32),
    /// To this RVA and back.
    Call(u32),
    /// To one of the [addresses](Code::switch) in the table at this RVA.
    Switch(u32),
    /// Nowhere that the code shows: a return, a jump through a register or a table.
    Away,
    /// Nowhere: an instruction that is not meant to run.
    Trap,
}

/// The code of an image.
#[derive(Clone, Debug)]
pub(super) struct Code<'a> {
    machine: Machine,
    base: u64,
    sections: Vec<(u32, &'a [u8])>,
}

impl<'a> Code<'a> {
    /// What the file has of the sections that may run.
    pub(super) fn new(image: &Image<'a>) -> Self {
        // The loader takes no more of them.
        const MOST_SECTIONS: usize = 96;
        let sections = image.sections.iter().filter(|section| section.is_executable()).take(MOST_SECTIONS);
        let sections = sections.filter_map(|section| Some((section.rva, image.bytes_from(section.rva)?)));
        // Sections of a damaged image may all be the same bytes.
        let sections = sections.scan(image.data().len(), |left, (rva, bytes)| {
            *left = left.checked_sub(bytes.len())?;
            Some((rva, bytes))
        });
        Code { machine: image.machine, base: image.image_base, sections: sections.collect() }
    }

    /// First RVA and bytes of each section.
    pub(super) fn sections(&self) -> &[(u32, &'a [u8])] {
        &self.sections
    }

    /// The bytes from `rva` to the end of its section.
    pub(super) fn bytes_from(&self, rva: u32) -> Option<&'a [u8]> {
        self.sections.iter().find_map(|(start, bytes)| {
            let bytes = bytes.get(rva.checked_sub(*start)? as usize..)?;
            (!bytes.is_empty()).then_some(bytes)
        })
    }

    /// Whether there is code at `rva`.
    pub(super) fn has(&self, rva: u32) -> bool {
        self.bytes_from(rva).is_some()
    }

    /// The bytes from one RVA to another, in one section.
    pub(super) fn between(&self, from: u32, to: u32) -> Option<&'a [u8]> {
        self.bytes_from(from)?.get(..to.checked_sub(from)? as usize)
    }

    /// Where a jump through the table at `table` leads. Microsoft's compiler puts tables of x86 behind the code of their
    /// function.
    pub(super) fn switch(&self, table: u32) -> impl Iterator<Item = u32> {
        const FURTHEST: u32 = 0x1_0000;
        let entries = self.bytes_from(table).unwrap_or_default().chunks_exact(4);
        let targets = entries.map_while(move |entry| {
            let address = u32::from_le_bytes(*entry.first_chunk()?);
            u32::try_from(u64::from(address).checked_sub(self.base)?).ok()
        });
        targets.take_while(move |target| {
            (table.saturating_sub(FURTHEST)..table).contains(target) && self.has(*target)
        })
    }

    /// The instructions from `rva` on, one behind the other, up to bytes that are none.
    pub(super) fn instructions(&self, rva: u32) -> Instructions<'a> {
        let bytes = self.bytes_from(rva).unwrap_or_default();
        match self.machine {
            Machine::X86 => Instructions::x86(32, bytes, rva, self.base),
            Machine::X64 => Instructions::x86(64, bytes, rva, self.base),
            Machine::Arm64 => Instructions::Arm64 { bytes, at: rva },
            Machine::Other(_) => Instructions::Arm64 { bytes: &[], at: rva },
        }
    }
}

/// See [`Code::instructions`].
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack, one at a time; a box would be an allocation per jump"
)]
pub(super) enum Instructions<'a> {
    X86(Decoder<'a>, u64),
    Arm64 { bytes: &'a [u8], at: u32 },
}

impl<'a> Instructions<'a> {
    fn x86(bits: u32, bytes: &'a [u8], rva: u32, base: u64) -> Self {
        Instructions::X86(Decoder::with_ip(bits, bytes, rva.into(), DecoderOptions::NONE), base)
    }
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        match self {
            Instructions::X86(decoder, base) => x86(decoder, *base),
            Instructions::Arm64 { bytes, at } => {
                let (word, rest) = bytes.split_first_chunk()?;
                let instruction = Instruction {
                    at: *at,
                    end: at.checked_add(4)?,
                    flow: arm64(u32::from_le_bytes(*word), *at)?,
                };
                (*bytes, *at) = (rest, instruction.end);
                Some(instruction)
            }
        }
    }
}

fn x86(decoder: &mut Decoder<'_>, base: u64) -> Option<Instruction> {
    if !decoder.can_decode() {
        return None;
    }
    let found = decoder.decode();
    // A target that wraps around lies in no section.
    let target = || u32::try_from(found.near_branch_target()).unwrap_or(u32::MAX);
    let flow = match found.flow_control() {
        _ if found.is_invalid() => return None,
        FlowControl::Next | FlowControl::IndirectCall | FlowControl::XbeginXabortXend => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Branch(target()),
        FlowControl::UnconditionalBranch => Flow::Jump(target()),
        FlowControl::Call if found.is_call_near() => Flow::Call(target()),
        // System calls come back.
        FlowControl::Call => Flow::Next,
        FlowControl::IndirectBranch => table(&found, base).map_or(Flow::Away, Flow::Switch),
        FlowControl::Return => Flow::Away,
        // `int 29h` (fast fail) does not come back; `int 2Eh` does, but is in no code of today.
        FlowControl::Interrupt | FlowControl::Exception => Flow::Trap,
    };
    Some(Instruction { at: u32::try_from(found.ip()).ok()?, end: u32::try_from(found.next_ip()).ok()?, flow })
}

/// The table of `jmp [4 * index + table]`.
fn table(jump: &iced_x86::Instruction, base: u64) -> Option<u32> {
    let is_indexed = jump.op0_kind() == OpKind::Memory
        && jump.code() == Code32::Jmp_rm32
        && (jump.memory_base(), jump.memory_index_scale()) == (Register::None, 4)
        && jump.memory_index() != Register::None;
    is_indexed.then(|| u32::try_from(jump.memory_displacement64().checked_sub(base)?).ok()).flatten()
}

/// `None` for a word of zeroes, which fills gaps.
fn arm64(word: u32, at: u32) -> Option<Flow> {
    // The low `bits` of `word >> shift`, with their sign, in instructions.
    let target = |shift: u32, bits: u32| {
        let offset = (word >> shift << (32 - bits)) as i32 >> (32 - bits);
        at.wrapping_add_signed(offset.wrapping_mul(4))
    };
    Some(match word {
        0 => return None,
        _ if word & 0xfc00_0000 == 0x1400_0000 => Flow::Jump(target(0, 26)),
        _ if word & 0xfc00_0000 == 0x9400_0000 => Flow::Call(target(0, 26)),
        // b.cond, cbz and cbnz
        _ if word & 0xfe00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => {
            Flow::Branch(target(5, 19))
        }
        // tbz and tbnz
        _ if word & 0x7e00_0000 == 0x3600_0000 => Flow::Branch(target(5, 14)),
        // br and ret, plain and with pointer authentication; blr has bit 21 set and bit 22 clear
        _ if word & 0xfe00_0000 == 0xd600_0000 && word >> 21 & 3 != 1 => Flow::Away,
        // brk
        _ if word & 0xffe0_0000 == 0xd420_0000 => Flow::Trap,
        _ => Flow::Next,
    })
}

/// Where control goes from the instruction at `rva` of an ARM64 image; `None` for what fills gaps.
pub(super) fn arm64_at(image: &Image<'_>, rva: u32) -> Option<Flow> {
    const NOP: u32 = 0xd503_201f;
    let word = u32::from_le_bytes(*image.bytes_at(rva, 4)?.first_chunk()?);
    if word == NOP { None } else { arm64(word, rva) }
}
