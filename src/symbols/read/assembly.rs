//! Machine code as text, for x86 and x64.

use iced_x86::{Decoder, DecoderOptions, FastFormatter};

use super::functions::Functions;
use super::pe::{Image, Machine};

/// No function is longer than so many bytes of text are worth.
const MOST_BYTES: u32 = 1 << 20;

/// A stretch of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// First RVA.
    pub start: u32,
    /// Its length in bytes.
    pub size: u32,
    /// Bits of the processor's mode: 32 or 64.
    pub bits: u32,
    /// Each instruction, by its distance from the start in bytes. Addresses in it are RVAs. What is none is `(bad)`.
    pub instructions: Vec<(u32, String)>,
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// It is code for another processor.
    #[error("only x86 and x64 code is disassembled")]
    Machine,
    /// The image has no code there.
    #[error("the image has no code at this address")]
    NoCode,
}

/// The instructions that begin in the `size` bytes from `start`; with `whole` those up to the end of the function at
/// least, where the image shows it.
///
/// # Errors
/// [`AssemblyError`].
pub fn assembly(image: &Image<'_>, start: u32, size: u32, whole: bool) -> Result<Assembly, AssemblyError> {
    let bits = match image.machine {
        Machine::X86 => 32,
        Machine::X64 => 64,
        Machine::Arm64 | Machine::Other(_) => return Err(AssemblyError::Machine),
    };
    let is_code = image.section_at(start).is_some_and(|section| section.is_executable());
    let code = image.bytes_from(start).filter(|code| is_code && !code.is_empty());
    let code = code.ok_or(AssemblyError::NoCode)?;
    let end = whole.then(|| Functions::new(image).at(start)).flatten().map_or(0, |extent| extent.end);
    let size = size.max(end.saturating_sub(start)).min(MOST_BYTES);
    let mut decoder = Decoder::with_ip(bits, code, u64::from(start), DecoderOptions::NONE);
    let mut formatter = FastFormatter::new();
    let mut instructions = Vec::new();
    let mut length = 0;
    while length < size && decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            // The next byte may begin one.
            let next = length.saturating_add(1);
            if decoder.set_position(next as usize).is_err() {
                break;
            }
            decoder.set_ip(u64::from(start) + u64::from(next));
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        instructions.push((length, text));
        // Of a section; RVAs are no larger.
        length = u32::try_from(decoder.position()).unwrap_or(u32::MAX);
    }
    Ok(Assembly { start, size: length, bits, instructions })
}
