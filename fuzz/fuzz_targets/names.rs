//! Any name of a native function: decoded, and made short.
#![no_main]

use etwprof::symbols::read::pe::Machine;
use etwprof::symbols::read::spelling::demangle;
use etwprof::symbols::short_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    for name in [name.to_owned(), demangle::linker_symbol(name, Machine::X86), demangle::readable(name)] {
        assert!(short_name(&name).len() <= 4 * name.len() + 64);
    }
});
