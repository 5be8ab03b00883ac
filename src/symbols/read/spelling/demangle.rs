//! The names of linker symbols, decoded: scope, name and template arguments; no parameters, no return type.
//!
//! What symbol files give: decorated names of C++ (Microsoft's and the Itanium ABI's) and Rust (legacy and v0),
//! C names with the calling convention around them on x86, and plain ones. What comes of them is exact, and each source
//! spells it in its own way; [`native`](super::native) has the one short spelling for people.

use std::borrow::Cow;

use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::symbols::read::limits::shortened;
use crate::symbols::read::pe::Machine;

/// Longer names stay as they are: the work grows with the length, and damage has none.
const MAX_DECORATED: usize = 16 * 1024;

/// Longer names of Microsoft's stay as they are. Compilers make none: they write a hash instead. The decoder calls itself
/// for each nested part, which takes at most 730 KiB of stack for so many bytes.
const MAX_MICROSOFT: usize = 4096;

/// The name that a linker symbol stands for. On x86 it shows the calling convention of C functions.
pub fn linker_symbol(name: &str, machine: Machine) -> String {
    // C functions of ARM64EC, and C++ ones too in some tables.
    let name = name.strip_prefix('#').unwrap_or(name);
    let is_c = machine == Machine::X86 && !is_microsoft(name);
    shortened(match decoded(name) {
        Some(decoded) => decoded,
        None if is_c => without_convention(name).to_owned(),
        None => plain(name),
    })
}

/// The name that an export stands for. Builders choose the names of exports, so an underscore may be the function's
/// own (`_open`); only with the size of the parameters behind it does it belong to the convention.
pub(in crate::symbols::read) fn export(name: &str, machine: Machine) -> String {
    let is_stdcall = name.rsplit_once('@').is_some_and(|(_, size)| size.parse::<u16>().is_ok());
    if is_stdcall { linker_symbol(name, machine) } else { readable(name) }
}

/// The name that a symbol file gives, decoded if it is decorated.
pub fn readable(name: &str) -> String {
    shortened(decoded(name).unwrap_or_else(|| plain(name)))
}

fn decoded(name: &str) -> Option<String> {
    if is_microsoft(name) { microsoft(name) } else { others(name) }
}

fn plain(name: &str) -> String {
    if name.ends_with("::{ctor}") || name.ends_with("::{dtor}") { structor(name) } else { name.to_owned() }
}

fn is_microsoft(name: &str) -> bool {
    name.starts_with('?') || name.starts_with("@?")
}

/// C++ by Microsoft's rules.
fn microsoft(name: &str) -> Option<String> {
    let name = name.strip_prefix('@').unwrap_or(name);
    if name.len() > MAX_MICROSOFT {
        return None;
    }
    // ARM64EC marks the functions that have the calling convention of ARM64.
    let name =
        if name.contains("$$h") { Cow::Owned(name.replacen("$$h", "", 1)) } else { Cow::Borrowed(name) };
    let decode = |name: &str| undname::demangle(name, undname::Flags::NAME_ONLY).ok();
    if name.contains(FUNCTION_TYPE) && !name.contains(STAND_IN) {
        return Some(with_function_types(&decode(&name.replace(FUNCTION_TYPE, STAND_IN))?));
    }
    decode(&name)
}

/// The type of a function, the argument of `std::function`. With names only, undname leaves it empty.
const FUNCTION_TYPE: &str = "$$A6";
/// A constant and volatile pointer to a function, which nobody has as an argument.
const STAND_IN: &str = "S6";

/// `void (__cdecl *const volatile)(int)` is to be `void __cdecl(int)`.
fn with_function_types(decoded: &str) -> String {
    let mut text = String::with_capacity(decoded.len());
    let mut pieces = decoded.split(" *const volatile)").peekable();
    while let Some(piece) = pieces.next() {
        match piece.rsplit_once('(').filter(|_| pieces.peek().is_some()) {
            Some((before, convention)) => text.extend([before, convention]),
            None => text.push_str(piece),
        }
    }
    text
}

/// C++ by the rules of the Itanium ABI, and Rust.
fn others(name: &str) -> Option<String> {
    let is_decorated = ["_Z", "__Z", "_R", "__R"].iter().any(|prefix| name.starts_with(prefix));
    if !is_decorated || name.len() > MAX_DECORATED {
        return None;
    }
    Name::from(name).demangle(DemangleOptions::name_only())
}

/// `A::B<int>::{ctor}` is `A::B<int>::B`, as in the source.
fn structor(name: &str) -> String {
    let (class, tilde) = match name.strip_suffix("::{ctor}") {
        Some(class) => (class, ""),
        None => (name.trim_end_matches("::{dtor}"), "~"),
    };
    format!("{class}::{tilde}{}", last_identifier(class))
}

/// The last part of a scoped name, without its template arguments.
fn last_identifier(class: &str) -> &str {
    let (mut depth, mut start, mut end) = (0usize, 0, class.len());
    for (at, character) in class.char_indices() {
        match character {
            '<' => {
                if depth == 0 {
                    end = at;
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => (start, end) = (at + 1, class.len()),
            _ => {}
        }
    }
    class.get(start..end).unwrap_or(class)
}

/// x86 calling conventions show in C names: `_cdecl`, `_stdcall@8`, `@fastcall@8`, `vectorcall@@16`.
fn without_convention(name: &str) -> &str {
    let digits_behind = |separator: &str| {
        let (stem, digits) = name.rsplit_once(separator)?;
        (!stem.is_empty() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some(stem)
    };
    if let Some(stem) = digits_behind("@@") {
        return stem;
    }
    match digits_behind("@") {
        Some(stem) => stem.strip_prefix(['_', '@']).unwrap_or(stem),
        None => name.strip_prefix('_').unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorated_names_lose_parameters_and_keep_scope_and_template_arguments() {
        let cases = [
            ("??_GUsed@@UAEPAXI@Z", "Used::`scalar deleting dtor'"),
            ("?do_widen@?$ctype@D@std@@MEBADD@Z", "std::ctype<char>::do_widen"),
            ("_ZN3foo3barIiEEvT_", "foo::bar<int>"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("std::vector<a::b<c>,d>::{ctor}", "std::vector<a::b<c>,d>::vector"),
            ("A::{dtor}", "A::~A"),
            ("plain", "plain"),
        ];
        for (decorated, expected) in cases {
            assert_eq!(readable(decorated), expected);
        }
    }

    #[test]
    fn names_of_microsoft_that_undname_reads_are_read() {
        let cases = [
            ("??$f@P6AHH@Z@@YAXXZ", "f<int (__cdecl *)(int)>"),
            (
                "??_E?$basic_ostream@DU?$char_traits@D@std@@@std@@$4PPPPPPPM@A@EAAPEAXI@Z",
                "std::basic_ostream<char, std::char_traits<char>>::`vector deleting dtor'`vtordisp{-4, 0}'",
            ),
            (
                "??$_Reallocate_grow_by@V<lambda_b986da8d428e4af07c64af60eec09b61>@@_K_KD@?$basic_string@DU?$char_traits@D\
                 @std@@V?$allocator@D@2@@std@@AEAAAEAV01@_KV<lambda_b986da8d428e4af07c64af60eec09b61>@@_K2D@Z",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char>>::_Reallocate_grow_by<\
                 <lambda_b986da8d428e4af07c64af60eec09b61>, unsigned __int64, unsigned __int64, char>",
            ),
            (
                "??0?$function@$$A6AXH@Z@std@@QEAA@XZ",
                "std::function<void __cdecl(int)>::function<void __cdecl(int)>",
            ),
            (
                "??$f@V?$function@$$A6AHV?$function@$$A6AXXZ@std@@@Z@std@@PEAH@@YAXXZ",
                "f<std::function<int __cdecl(std::function<void __cdecl(void)>)>, int *>",
            ),
            ("??__Lfoo@@YAXXZ", "foo::operator co_await"),
            ("?f@?$S@$1?g@@3HA@@QEAAXXZ", "S<&g>::f"),
            // ARM64EC.
            ("?f@A@@$$hQEAAXXZ", "A::f"),
            ("@?f@@YAXXZ", "f"),
            ("??not a name", "??not a name"),
        ];
        for (decorated, expected) in cases {
            assert_eq!(readable(decorated), expected);
        }
    }

    /// 700 bytes can stand for 2^60 types.
    #[test]
    fn names_that_repeat_themselves_in_each_other_stay_decorated() {
        let levels = 60;
        let nested = |repeat: &str| {
            let open = "V?$A@".repeat(levels);
            let close = format!("@@{repeat}").repeat(levels);
            format!("?f@@YAX{open}H{close}@@@Z")
        };
        for repeat in ["0", "V0@", "0@0"] {
            let name = format!("??$f@{}@@YAXXZ", nested(repeat));
            assert!(readable(&name).len() <= 4096 + 3);
            assert!(readable(&nested(repeat)).len() <= 4096 + 3);
        }
    }

    /// The main thread of a Windows program has a stack of 1 MiB.
    #[test]
    fn deep_names_of_microsoft_fit_a_small_stack() {
        let deep = || {
            for part in ["P", "PEA", "P6A", "V?$A@", "PAV?$A@", "P6AV?$A@", "W4?$A@", "$1?", "?1??", "?$A@"] {
                for start in ["?a@@3", "?a@@YA", "??$f@", "?f@?1??", "?"] {
                    for len in [MAX_MICROSOFT, 2 * MAX_MICROSOFT] {
                        let mut name = format!("{start}{}", part.repeat(len));
                        name.truncate(len);
                        assert!(readable(&name).len() <= 4096 + 3);
                    }
                }
            }
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(deep).unwrap().join().unwrap();
    }

    /// The other manglings have limits of their own.
    #[test]
    fn deep_names_of_all_manglings_end() {
        for part in ["P", "K", "N1a", "I1a", "F", "S_", "T_", "1aI", "A", "Q", "R"] {
            for start in ["_Z", "_Z1a", "_ZN", "_R", "_RNv", "_RI", "?a@@3", "?$a@", "??"] {
                let name = format!("{start}{}", part.repeat(MAX_DECORATED / part.len() - 10));
                assert!(readable(&name).len() <= 4096 + 3);
            }
        }
        let doubling = format!("_ZN1aI{}E", "S_S_".repeat(1000));
        assert!(readable(&doubling).len() <= 4096 + 3);
    }

    #[test]
    fn x86_names_lose_their_calling_convention() {
        let cases = [
            ("_main", "main"),
            ("_DllMain@12", "DllMain"),
            ("@fast@8", "fast"),
            ("vec@@16", "vec"),
            ("a@b", "a@b"),
            ("_Run", "Run"),
            ("__ZN3foo3barEv", "foo::bar"),
        ];
        for (decorated, expected) in cases {
            assert_eq!(linker_symbol(decorated, Machine::X86), expected);
        }
        assert_eq!(linker_symbol("_main", Machine::X64), "_main");
        assert_eq!(linker_symbol("#main", Machine::Arm64), "main");
        assert_eq!(linker_symbol("#?f@A@@$$hQEAAXXZ", Machine::Arm64), "A::f");
        assert_eq!(export("_open", Machine::X86), "_open");
        assert_eq!(export("_DllMain@12", Machine::X86), "DllMain");
    }
}
