//! The names in real ReadyToRun images, against what the compiler and the runtime say about the same images.

use etwprof::symbols::read::dotnet::r2r::{R2rError, R2rImage};
use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::spelling::method::RawName;

use crate::support::precompiled::{CORELIB, EVENT_BASED_ASYNC, IMAGES, real};

const R2RMAP: &str = "dotnet/symstore/PerfMapEnabled/System.ComponentModel.EventBasedAsync.ni.r2rmap";

/// The compiler's own list: RVA, length of the body, name.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_method_of_the_compilers_map_has_the_maps_name() {
    let (file, map) = (real(EVENT_BASED_ASYNC), real(R2RMAP));
    let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
    let map = String::from_utf8(map).unwrap();
    let mut compared = 0;
    // The first five lines are about the image.
    for line in map.lines().skip(5) {
        let mut fields = line.splitn(3, ' ');
        let rva = u32::from_str_radix(fields.next().unwrap(), 16).unwrap();
        let len = u32::from_str_radix(fields.next().unwrap(), 16).unwrap();
        let expected = fields.next().unwrap();
        let (method, offset) = image.lookup(rva).unwrap_or_else(|| panic!("no method at {line}"));
        assert_eq!(offset, 0, "{line}");
        assert_eq!(map_form(&method.name()), expected);
        assert_eq!(image.lookup(rva + len - 1).unwrap().1, len - 1, "{line}");
        compared += 1;
    }
    assert_eq!(compared, image.methods().count());
}

/// A name as the compiler's map spells it: `ReturnType Type::Method(Type, Type)`, no return type for void.
fn map_form(name: &RawName) -> String {
    let words = |types: &str| {
        let types = types.split(',').map(|word| {
            match word.trim_start_matches("value class ").trim_start_matches("class ") {
                "bool" => "System.Boolean",
                "unsigned int8" => "System.Byte",
                "int32" => "System.Int32",
                word => word,
            }
        });
        types.collect::<Vec<_>>().join(", ")
    };
    let signature = name.signature.strip_prefix("instance ").unwrap_or(&name.signature);
    let (returned, parameters) = signature.split_once("  (").unwrap();
    let returned = if returned == "void" { String::new() } else { words(returned) + " " };
    format!("{returned}{}::{}({})", name.type_name, name.method, words(parameters.trim_end_matches(')')))
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_runtime_function_belongs_to_a_named_method() {
    for (path, version, functions, methods) in IMAGES {
        let file = real(path);
        let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
        assert_eq!(image.version(), version, "{path}");
        assert_eq!((image.function_count(), image.methods().count()), (functions, methods), "{path}");
        for index in 0..functions {
            let range = image.function_range(index).unwrap();
            let (method, offset) = image.lookup(range.start).unwrap_or_else(|| panic!("{path}: {range:x?}"));
            let name = method.name();
            assert!(!name.type_name.is_empty() && !name.method.is_empty(), "{path} {range:x?}: {name:?}");
            // A token instead of a name would be `Assembly!0x02......`.
            assert!(!name.to_string().contains("!0x"), "{path} {range:x?}: {name}");
            assert!(name.signature.contains("  (") && name.signature.ends_with(')'), "{path}: {name:?}");
            // The method covers the function it was found by.
            let start = method.ranges().next().unwrap().start;
            assert_eq!(range.start, start + offset, "{path} {name}");
            assert_eq!(image.lookup(range.end - 1).unwrap().0.index(), method.index(), "{path} {name}");
        }
    }
}

/// Each method's code begins after the end of the one before, or is the very same code.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn methods_are_in_order_and_disjoint_or_the_same_code() {
    let file = real(CORELIB);
    let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
    let (mut end, mut shared) = (0, 0);
    let mut last = 0..0;
    for method in image.methods() {
        for range in method.ranges() {
            if range == last {
                // Only marshalling code is shared: P/Invokes of one signature.
                assert!(method.same_code().count() > 1);
                shared += 1;
                continue;
            }
            assert!(range.start >= end, "{} at {range:x?}", method.name());
            end = range.end;
            last = range;
        }
    }
    assert_eq!(shared, 103);
    assert!(image.lookup(end).is_none());
    assert!(image.lookup(0).is_none() && image.lookup(u32::MAX).is_none());
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn instantiations_carry_their_type_arguments() {
    let file = real(CORELIB);
    let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
    let names: std::collections::HashSet<String> =
        image.methods().map(|method| method.name().to_string()).collect();
    for expected in [
        "System.Tuple`2[System.__Canon,System.__Canon].System.ITupleInternal.GetHashCode(class System.Collections.IEqualityComparer)",
        "System.Collections.Generic.Dictionary`2[System.Int32,System.Byte].System.Collections.IDictionary.GetEnumerator()",
        "System.Collections.Generic.ArraySortHelper`1[System.DateTimeOffset].Sort(!0[],int32,int32,class System.Comparison`1<!0>)",
    ] {
        assert!(names.contains(expected), "{expected}");
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn images_without_such_code_say_what_they_are() {
    let ngen = real("dotnet/dotnetcore2/2.1.28-x64-ngen/System.Private.CoreLib.dll");
    assert!(matches!(R2rImage::parse(&Image::parse(&ngen).unwrap()), Err(R2rError::Ngen)));
    for path in ["dotnet/dotnetcore2/3.1.23-x64/mscorlib.dll", "dotnet/symstore/HelloWorld.exe"] {
        let file = real(path);
        assert!(matches!(R2rImage::parse(&Image::parse(&file).unwrap()), Err(R2rError::IlOnly)), "{path}");
    }
    let native = real("dotnet/symstore/coreclr.dll");
    assert!(matches!(R2rImage::parse(&Image::parse(&native).unwrap()), Err(R2rError::NotManaged)));
}

/// Images are parsed and asked on several threads.
#[test]
fn images_go_between_threads() {
    fn sendable<T: Send + Sync>() {}
    sendable::<R2rImage<'static>>();
}
