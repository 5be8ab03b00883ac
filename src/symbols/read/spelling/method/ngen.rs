//! The names that the PDB of an NGEN image gives to methods.
//!
//! The .NET Framework writes them by reflection's spelling, unlike its events (verified on mscorlib.ni.pdb):
//!
//! ```text
//! [COLD] System.Collections.Generic.List`1[System.__Canon].Find(System.Predicate`1<System.__Canon>){shared}
//! System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start[System.Xml.Reader+<Read>d__3](<Read>d__3 ByRef)
//! System.Collections.Generic.SortedList`2[System.Int32,System.__Canon].System.Collections.IList.Add(Int32, Byte[])
//! ```
//!
//! What the method returns, and whether a type is a class, is not there.

use rustc_hash::FxHashSet;

use super::RawName;

/// Longer names are damage: the longest of mscorlib has 800 bytes.
const MAX_LEN: usize = 16 * 1024;

/// An assembly is named as its file, and files have no longer names.
const MAX_ASSEMBLY: usize = 255;

/// A method's name from its public symbol; `None` for what is no name of a method.
pub(crate) fn ngen_method(symbol: &str) -> Option<RawName> {
    let symbol = symbol.strip_prefix("[COLD] ").unwrap_or(symbol);
    let (head, parameters) = split_parameters(symbol).filter(|_| symbol.len() <= MAX_LEN)?;
    let (head, type_args) = split_type_args(head);
    let (type_name, method) = split_method(head)?;
    let type_name = match type_name {
        "DomainNeutralILStubClass" | "DomainBoundILStubClass" => "dynamicClass",
        other => other,
    };
    Some(RawName {
        type_name: type_name.to_owned(),
        method: method.to_owned(),
        type_args: type_args.to_owned(),
        signature: signature(parameters),
    })
}

/// The assembly and token that a symbol ends with, `$#Assembly#Token`; `None` without them, or where the assembly is
/// the image's own and left out. The token is 0 where only the assembly is there.
pub(crate) fn ngen_definition(symbol: &str) -> Option<(&str, u32)> {
    let (_, marks) = symbol.split_once("$#")?;
    let (assembly, token) = marks.split_once('#').unwrap_or((marks, ""));
    (!assembly.is_empty() && assembly.len() <= MAX_ASSEMBLY)
        .then(|| (assembly, u32::from_str_radix(token, 16).unwrap_or(0)))
}

/// The names of the methods among `symbols` that are of these outermost types. A PDB lists fifty thousand methods of which
/// few matter, so the others are not taken apart.
pub(crate) fn ngen_methods_of<S: AsRef<str>>(
    symbols: impl Iterator<Item = S>,
    types: &FxHashSet<String>,
) -> Vec<RawName> {
    let may_be = |symbol: &str| {
        let symbol = symbol.strip_prefix("[COLD] ").unwrap_or(symbol);
        let name = symbol.split(['`', '+', '[', '<', '(']).next().unwrap_or_default();
        let dots = name.match_indices('.').map(|(at, _)| at);
        let mut beginnings = dots.chain([name.len()]).filter_map(|end| name.get(..end));
        name.starts_with("Domain") || beginnings.any(|beginning| types.contains(beginning))
    };
    let methods = symbols.filter(|symbol| may_be(symbol.as_ref()));
    let methods = methods.filter_map(|symbol| ngen_method(symbol.as_ref()));
    methods.filter(|name| types.contains(name.outer_type())).collect()
}

/// What stands before and in the parameters' brackets. Behind them may stand marks: `{shared}`, `$#Assembly#Token`.
fn split_parameters(symbol: &str) -> Option<(&str, &str)> {
    let symbol = symbol.split_once("$#").map_or(symbol, |(symbol, _)| symbol);
    let end = symbol.rfind(')')?;
    let mut depth = 0usize;
    for (at, byte) in symbol.get(..end)?.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 0 => return Some((symbol.get(..at)?, symbol.get(at + 1..end)?)),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The method's own type arguments are in the brackets that end the name.
fn split_type_args(head: &str) -> (&str, &str) {
    if !head.ends_with(']') {
        return (head, "");
    }
    let mut depth = 0usize;
    for (at, byte) in head.bytes().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return head.split_at_checked(at).unwrap_or((head, ""));
                }
            }
            _ => {}
        }
    }
    (head, "")
}

/// A generic type ends with its arguments; what follows is the method, which may carry an interface's name. After
/// another type the last dot separates.
fn split_method(head: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let mut last = None;
    let bytes = head.as_bytes();
    for (at, byte) in head.bytes().enumerate() {
        match byte {
            b'[' | b'<' => depth += 1,
            b']' | b'>' => depth = depth.saturating_sub(1),
            b'.' if depth == 0 => {
                let behind_arguments = at.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b']');
                if behind_arguments {
                    last = Some(at);
                    break;
                }
                // `Type..ctor`: the name begins with the second dot.
                if at.checked_sub(1) != last {
                    last = Some(at);
                }
            }
            _ => {}
        }
    }
    let (type_name, method) = head.split_at_checked(last?)?;
    let method = method.strip_prefix('.').filter(|method| !method.is_empty())?;
    (!type_name.is_empty() && !type_name.contains("::")).then_some((type_name, method))
}

/// The parameters as the runtime's events spell them.
fn signature(parameters: &str) -> String {
    let mut out = String::from("(");
    for (at, parameter) in split_list(parameters, ", ").into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_type(parameter, 0, &mut out);
    }
    out.push(')');
    out
}

/// The elements of a list that are not inside brackets.
fn split_list<'a>(list: &'a str, separator: &str) -> Vec<&'a str> {
    let mut elements = Vec::new();
    if list.is_empty() {
        return elements;
    }
    let (mut start, mut depth) = (0, 0usize);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' | b'<' | b'(' => depth += 1,
            b']' | b'>' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0
                && at >= start
                && list.get(at..).is_some_and(|rest| rest.starts_with(separator)) =>
            {
                elements.extend(list.get(start..at));
                start = at + separator.len();
            }
            _ => {}
        }
    }
    elements.extend(list.get(start..));
    elements
}

/// Types nest a handful of levels; text beyond this is left as it is.
const MAX_DEPTH: u32 = 16;

fn push_type(text: &str, depth: u32, out: &mut String) {
    if let Some(target) = text.strip_suffix(" ByRef") {
        push_type(target, depth, out);
        out.push('&');
        return;
    }
    // Arrays and pointers: `Byte[]`, `Int32[,]`, `Void*`.
    let stem = text.trim_end_matches(['[', ']', ',', '*']);
    let (stem, shape) = text.split_at_checked(stem.len()).unwrap_or((text, ""));
    out.push_str("class ");
    let generic = stem.strip_suffix('>').filter(|_| depth < MAX_DEPTH && !stem.starts_with('<'));
    match generic.and_then(|inside| inside.split_once('<')) {
        Some((name, arguments)) => {
            out.push_str(name);
            out.push('<');
            for (at, argument) in split_list(arguments, ",").into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_type(argument, depth + 1, out);
            }
            out.push('>');
        }
        None => {
            // Reflection writes primitive types without their namespace.
            if PRIMITIVES.contains(&stem) {
                out.push_str("System.");
            }
            out.push_str(stem);
        }
    }
    out.push_str(shape);
}

const PRIMITIVES: [&str; 15] = [
    "Boolean", "Byte", "Char", "Double", "Int16", "Int32", "Int64", "IntPtr", "SByte", "Single", "UInt16",
    "UInt32", "UInt64", "UIntPtr", "Void",
];

#[cfg(test)]
mod tests {
    use super::super::{Style, readable};
    use super::{ngen_definition, ngen_method};

    /// Symbols of mscorlib.ni.pdb, System.ni.pdb and System.Xml.ni.pdb (.NET Framework 4).
    #[test]
    fn symbols_of_real_images() {
        for (symbol, expected) in [
            (
                "System.Diagnostics.Log.Status(System.String, System.String)",
                "System.Diagnostics.Log.Status(string, string)",
            ),
            (
                "System.Resources.ResourceWriter.AddResourceData(System.String, System.String, Byte[])",
                "System.Resources.ResourceWriter.AddResourceData(string, string, byte[])",
            ),
            (
                "System.Net.Sockets.DynamicWinsockMethods..cctor()",
                "System.Net.Sockets.DynamicWinsockMethods.cctor()",
            ),
            (
                "[COLD] System.Collections.Generic.List`1[System.Collections.DictionaryEntry].set_Capacity(Int32)",
                "System.Collections.Generic.List<DictionaryEntry>.Capacity.set(int)",
            ),
            (
                "System.Collections.Generic.SortedDictionary`2[System.__Canon,System.Int32].\
                 System.Collections.IDictionary.get_IsFixedSize(){shared}",
                "System.Collections.Generic.SortedDictionary<T1, int>.IDictionary.IsFixedSize.get()",
            ),
            (
                "System.Collections.Generic.ArraySortHelper`2[System.Int64,System.__Canon].IntrospectiveSort(\
                 Int64[], System.__Canon[], Int32, Int32, System.Collections.Generic.IComparer`1<Int64>)\
                 {shared}{requires-mt-arg}",
                "System.Collections.Generic.ArraySortHelper<long, T2>.IntrospectiveSort(\
                 long[], T[], int, int, IComparer<long>)",
            ),
            (
                "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start[\
                 System.Xml.XmlTextReaderImpl+<FinishReadElementContentAsBinaryAsync>d__f9](\
                 <FinishReadElementContentAsBinaryAsync>d__f9 ByRef)",
                "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start<\
                 XmlTextReaderImpl.FinishReadElementContentAsBinaryAsync>(\
                 ref <FinishReadElementContentAsBinaryAsync>d__f9)",
            ),
            (
                "System.Xml.DtdParser+<ReadDataInNameAsync>d__c4.MoveNext()",
                "System.Xml.DtdParser.ReadDataInNameAsync (state machine)",
            ),
            (
                "System.Collections.Generic.Dictionary`2+ValueCollection[System.IntPtr,System.__Canon].\
                 System.Collections.Generic.ICollection<TValue>.Clear(){shared}",
                "System.Collections.Generic.Dictionary<nint, T2>.ValueCollection.ICollection<TValue>.Clear()",
            ),
            (
                "System.Threading.CancellationToken.op_Inequality(System.Threading.CancellationToken, System.Threading.CancellationToken)",
                "System.Threading.CancellationToken.operator !=(CancellationToken, CancellationToken)",
            ),
            (
                "DomainNeutralILStubClass.IL_STUB_PInvoke(IntPtr, Int32 ByRef)",
                "P/Invoke stub (nint, ref int)",
            ),
        ] {
            let name = ngen_method(symbol).unwrap_or_default();
            assert_eq!(readable(&name, Style::SHORT), expected, "{symbol}");
        }
    }

    #[test]
    fn a_mark_may_tell_the_assembly() {
        let symbol = "System.Linq.Enumerable.Sum(System.Collections.Generic.IEnumerable`1<Int32>)";
        assert_eq!(ngen_definition(symbol), None);
        assert_eq!(ngen_definition(&format!("{symbol}$##60000dc")), None, "the image's own");
        assert_eq!(
            ngen_definition(&format!("{symbol}$#System.Core#60000DC")),
            Some(("System.Core", 0x0600_00DC))
        );
    }

    #[test]
    fn other_symbols_are_no_methods() {
        for symbol in [
            "memcpy",
            "std::vector<a.b>::operator()",
            "A.B",
            "(anonymous namespace)::f",
            "",
            ")",
            "()",
            ".()",
        ] {
            assert_eq!(ngen_method(symbol), None, "{symbol}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_name_or_none(symbol in r"(\[COLD\] )?[A-C.<>\[\]`+,*&(){}12$# ByRef]{0,60}") {
            if let Some(name) = ngen_method(&symbol) {
                readable(&name, Style::EXACT);
            }
        }
    }
}
