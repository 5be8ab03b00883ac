//! Any image of native code: its tables, its names, and where its functions begin.
#![no_main]

use etwprof::symbols::read::functions::Functions;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(image) = Image::parse(file) else { return };
    let functions = Functions::new(&image);
    let Ok(mut symbols) = NativeSymbols::open(Some(&image), None) else { return };
    for rva in (0..0x1_0000).step_by(0x35) {
        if let Some(extent) = functions.at(rva) {
            assert!((extent.start..extent.end).contains(&rva), "{rva:#x}: {extent:x?}");
        }
        let _name = symbols.lookup(rva);
    }
});
