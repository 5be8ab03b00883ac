//! DWARF: names, inlined calls and lines, against `addr2line`; and files made to take all memory.

use addr2line::gimli::{self, EndianSlice, LittleEndian};
use etwprof::symbols::Limits;
use etwprof::symbols::read::location::{Evidence, Location};
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;
use object::{Object, ObjectSection};
use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::support::data;
use crate::synth::dwarf::{Dwarf, TEXT};

/// `function file:line` for each level, innermost first.
fn levels(location: &Location) -> Vec<String> {
    let level = |function: &str, file: &Option<String>, line: &Option<u32>| {
        format!("{function} {}:{}", file.as_deref().unwrap_or("?"), line.unwrap_or(0))
    };
    let inlined = location.inlined.iter().map(|call| level(&call.function, &call.file, &call.line));
    inlined.chain([level(&location.function, &location.file, &location.line)]).collect()
}

fn lookup(image: &[u8], rva: u32, limits: Limits) -> Option<Location> {
    let image = Image::parse(image).unwrap();
    NativeSymbols::open(Some(&image), None).unwrap().limited(limits).lookup(rva)
}

/// By the library that reads the whole file first.
fn by_addr2line(
    context: &addr2line::Context<EndianSlice<'_, LittleEndian>>,
    address: u64,
) -> Option<Vec<String>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut levels = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function?.raw_name().ok()?.into_owned();
        let readable = Name::from(name.as_str()).demangle(DemangleOptions::name_only()).unwrap_or(name);
        let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
        levels.push(format!("{readable} {}:{}", file.unwrap_or("?"), line.unwrap_or(0)));
    }
    Some(levels)
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn real_images_read_as_by_addr2line() {
    for file in ["dump_syms/basic64-dwarf.dll", "symbolic/windows/hello-dwarf.exe", "dump_syms/mozwer.dll"] {
        let path = data::file(&format!("pdb/{file}"));
        let bytes = std::fs::read(path).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        if object.section_by_name(".debug_info").is_none() {
            continue;
        }
        let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let data = object.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
        };
        let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(section).unwrap()).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let mut symbols = NativeSymbols::open(Some(&image), None).unwrap().limited(Limits::NONE);
        let text = image.sections.iter().find(|section| section.is_executable()).unwrap();
        let (mut named, mut inlined) = (0, 0);
        for rva in (text.rva..text.end()).step_by(3) {
            let expected = by_addr2line(&context, image.image_base + u64::from(rva));
            let ours = symbols.lookup(rva).filter(|location| location.evidence == Evidence::Dwarf);
            let ours = ours.as_ref().map(levels);
            assert_eq!(ours, expected.filter(|levels| !levels.is_empty()), "{file} {rva:#x}");
            named += usize::from(ours.is_some());
            inlined += usize::from(ours.is_some_and(|levels| levels.len() > 1));
        }
        assert!(named > 100, "{file}: {named} named, {inlined} with inlined calls");
    }
}

#[test]
fn inlined_calls_nest_in_blocks_and_lists_of_ranges() {
    let dwarf = Dwarf::new(0x100);
    let a = dwarf.here();
    let dwarf = dwarf.declaration("a");
    let b = dwarf.here();
    let mut dwarf = dwarf.declaration("b");
    let list = dwarf.list([(TEXT + 0x10, 4), (TEXT + 0x20, 4)]);
    let dwarf = dwarf
        .function("f", TEXT, 0x40)
        .block()
        .inlined(a, TEXT + 0x10, 0x20, (2, 7))
        .block()
        .inlined_in_list(b, list, (1, 9))
        .end()
        .end()
        .end()
        .end()
        .end()
        .function("g", TEXT + 0x40, 0x10)
        .end();
    let rows = [(0, 1, 3), (0x10, 2, 50), (0x14, 1, 20), (0x20, 2, 51), (0x40, 1, 60)];
    let image = dwarf.lines(&["a.c", "b.h"], &rows, 0x50).image(0x100, 0);
    let levels = |offset| lookup(&image, TEXT + offset, Limits::default()).map(|found| levels(&found));
    let expected = |levels: &[&str]| Some(levels.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(levels(4), expected(&["f /build/a.c:3"]));
    assert_eq!(levels(0x11), expected(&["b /build/b.h:50", "a /build/a.c:9", "f /build/b.h:7"]));
    assert_eq!(levels(0x15), expected(&["a /build/a.c:20", "f /build/b.h:7"]));
    assert_eq!(levels(0x23), expected(&["b /build/b.h:51", "a /build/a.c:9", "f /build/b.h:7"]));
    assert_eq!(levels(0x44), expected(&["g /build/a.c:60"]));
    assert_eq!(lookup(&image, TEXT + 0x44, Limits::default()).map(|found| found.offset), Some(4));
    assert_eq!(levels(0x60), None);
}

/// A function with calls inlined into each other, each of them all of its code.
fn nested(depth: usize) -> Vec<u8> {
    let dwarf = Dwarf::new(0x100);
    let origin = dwarf.here();
    let mut dwarf = dwarf.declaration("call").function("f", TEXT, 0x100);
    for level in 0..depth {
        dwarf = dwarf.inlined(origin, TEXT, 0x100, (1, (level % 100) as u8 + 1));
    }
    dwarf.image(0x100, depth + 1)
}

#[test]
fn the_middle_of_too_many_inlined_calls_is_left_out() {
    let image = nested(100);
    let all = lookup(&image, TEXT, Limits::NONE).unwrap();
    assert_eq!((all.inlined.len(), all.left_out), (100, 0));
    let some = lookup(&image, TEXT, Limits { inlined_calls: 10 }).unwrap();
    assert_eq!((some.inlined.len(), some.left_out), (11, 90));
    assert_eq!(some.inlined[5].function, "[90 inlined calls left out]");
    // Innermost first; each call's line is where the next is called from.
    assert_eq!(some.inlined[..5], all.inlined[..5]);
    assert_eq!(some.inlined[6..], all.inlined[95..]);
    assert_eq!((some.line, &some.function), (all.line, &all.function));
    assert_eq!(lookup(&image, TEXT, Limits::default()).unwrap().left_out, 36);
}

/// Names an address of an image in a process that may not take more than a third of a gigabyte.
#[cfg(unix)]
fn symbolize_in_little_memory(name: &str, image: &[u8]) -> crate::support::command::Output {
    use crate::support::command::{command, output};
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, image).unwrap();
    let etwprof = command();
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 350000; exec \"$0\" symbolize --offline \"$1\" 1004"]);
    limited.arg(etwprof.get_program()).arg(path);
    limited.envs(etwprof.get_envs().filter_map(|(name, value)| Some((name, value?))));
    output(&mut limited)
}

/// Each level would be a call of the reader's own, and 6,000 of them overflowed the stack of a thread.
#[test]
#[cfg(unix)]
fn deep_nesting_is_no_stack_overflow() {
    let output = symbolize_in_little_memory("nested.dll", &nested(100_000)).success();
    assert!(output.text().contains("[99936 inlined calls left out]"), "{}", output.text());
}

/// A list of ranges is shared by all inlined calls: 500 KB that stand for 100 million ranges.
#[test]
#[cfg(unix)]
fn shared_lists_of_ranges_do_not_multiply() {
    let mut dwarf = Dwarf::new(0x100);
    let origin = dwarf.here();
    let list = dwarf.list((0..20_000).map(|_| (TEXT, 0x100)));
    let mut dwarf = dwarf.declaration("call").function("f", TEXT, 0x100);
    for _ in 0..5_000 {
        dwarf = dwarf.inlined_in_list(origin, list, (1, 1)).end();
    }
    let output = symbolize_in_little_memory("ranges.dll", &dwarf.image(0x100, 1)).success();
    assert!(output.text().contains("f+0x4"), "the function has its name: {}", output.text());
}
