//! Names as a person wants to read them: scope, name and template arguments; no parameters, no return type.
//!
//! What symbol files give: decorated names of C++ (Microsoft's and the Itanium ABI's) and Rust (legacy and v0),
//! C names with the calling convention around them on x86, and plain ones.

use symbolic_common::Name;
use symbolic_demangle::{Demangle, DemangleOptions};

use crate::symbols::limits::shortened;
use crate::symbols::pe::Machine;

/// Longer names are cut before they are decoded: the work grows with the length, and damage has none.
const MAX_DECORATED: usize = 16 * 1024;

/// The readable form of a linker symbol, which on x86 shows the calling convention of C functions.
pub(super) fn linker_symbol(name: &str, machine: Machine) -> String {
    let is_c = machine == Machine::X86 && !is_decorated(name);
    if is_c { shortened(without_convention(name).to_owned()) } else { readable(name) }
}

/// The readable form of an export. Builders choose the names of exports, so an underscore may be the function's
/// own (`_open`); only with the size of the parameters behind it does it belong to the convention.
pub(super) fn export(name: &str, machine: Machine) -> String {
    let is_stdcall = name.rsplit_once('@').is_some_and(|(_, size)| size.parse::<u16>().is_ok());
    if is_stdcall { linker_symbol(name, machine) } else { readable(name) }
}

/// The readable form of a name from a symbol file.
pub(super) fn readable(name: &str) -> String {
    shortened(undecorated(name))
}

fn undecorated(name: &str) -> String {
    if name.len() <= MAX_DECORATED && is_decorated(name) && !grows(name) {
        let demangled = Name::from(name).demangle(DemangleOptions::name_only());
        return demangled.unwrap_or_else(|| name.to_owned());
    }
    if name.ends_with("::{ctor}") || name.ends_with("::{dtor}") {
        return structor(name);
    }
    name.to_owned()
}

fn is_decorated(name: &str) -> bool {
    ["?", "@?", "_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a name of Microsoft's may stand for more than any memory holds. A digit in it repeats an earlier part; the
/// demangler copies that part, and parts nest with the templates. Each level ends with an `@` at least, so the parts
/// grow by no more than the product of what is repeated between two of those, for as many levels as there are
/// templates. (Of 4,600 names of real files the largest product is below 2,000.)
fn grows(name: &str) -> bool {
    const MOST: usize = 1 << 20;
    if !name.starts_with(['?', '@']) {
        return false;
    }
    let digits = |part: &str| part.bytes().filter(u8::is_ascii_digit).count();
    let mut repeated: Vec<usize> = name.split('@').map(digits).filter(|digits| *digits > 0).collect();
    repeated.sort_unstable_by_key(|digits| std::cmp::Reverse(*digits));
    let levels = repeated.into_iter().take(name.matches("?$").count());
    levels.fold(name.len(), |size, digits| size.saturating_mul(1 + digits)) > MOST
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
            ("??_GUsed@@UAEPAXI@Z", "Used::`scalar deleting destructor'"),
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

    /// 700 bytes that stand for 2^60 types: the demangler would copy until memory ends.
    #[test]
    fn names_that_repeat_themselves_in_each_other_stay_decorated() {
        let levels = 60;
        let nested = |repeat: &str| {
            let open = "V?$A@".repeat(levels);
            let close = format!("@@{repeat}").repeat(levels);
            format!("?x@@3{open}H{close}@@A")
        };
        for repeat in ["0", "V0@", "0@0"] {
            assert_eq!(readable(&nested(repeat)), nested(repeat));
        }
        let real = "??$emplace@AEAV?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@@?$vector@V?$basic_\
                    string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@V?$allocator@V?$basic_string@DU?$char_\
                    traits@D@std@@V?$allocator@D@2@@std@@@2@@std@@QEAAXAEAV?$basic_string@DU?$char_traits@D@std@@V\
                    ?$allocator@D@2@@1@@Z";
        assert!(!grows(real));
        assert!(readable(real).starts_with("std::vector<std::basic_string<char"), "{}", readable(real));
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
        ];
        for (decorated, expected) in cases {
            assert_eq!(linker_symbol(decorated, Machine::X86), expected);
        }
        assert_eq!(linker_symbol("_main", Machine::X64), "_main");
        assert_eq!(export("_open", Machine::X86), "_open");
        assert_eq!(export("_DllMain@12", Machine::X86), "DllMain");
    }
}
