//! Readable names: a table of real ones, and what must hold for all names of the real images.

use std::collections::{HashMap, HashSet};

use etwprof::symbols::read::dotnet::r2r::R2rImage;
use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::spelling::method::RawName;
use etwprof::symbols::read::spelling::method::{Style, distinct, readable};
use proptest::prelude::*;

use crate::support::precompiled::{IMAGES, real};

fn name(type_name: &str, method: &str, type_args: &str, signature: &str) -> RawName {
    RawName {
        type_name: type_name.to_owned(),
        method: method.to_owned(),
        type_args: type_args.to_owned(),
        signature: signature.to_owned(),
    }
}

#[test]
fn table_of_names() {
    let lines: Vec<_> = include_str!("names.txt").lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 2 * 150);
    let mut wrong = Vec::new();
    for pair in lines.chunks(2) {
        let fields: Vec<_> = pair[0].splitn(4, " |").map(str::trim).collect();
        let found = readable(&name(fields[0], fields[1], fields[2], fields[3]), Style::SHORT);
        if found != pair[1].trim() {
            wrong.push(format!("{}\n  expected {}\n  found    {found}", pair[0], pair[1].trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn exact_names_keep_ordinals_and_namespaces() {
    let lambda = name("Shop.Cart+<>c", "<Total>b__3_1", "", "instance bool  (class Shop.Item)");
    assert_eq!(readable(&lambda, Style::SHORT), "Shop.Cart.Total.lambda(Item)");
    assert_eq!(readable(&lambda, Style::EXACT), "Shop.Cart.Total.lambda#3_1(Shop.Item)");
    let captured =
        name("Shop.Cart+<>c__DisplayClass3_0", "<Total>b__0", "", "instance bool  (class Shop.Item)");
    assert_eq!(readable(&captured, Style::EXACT), "Shop.Cart.Total.lambda#3_0(Shop.Item)");
    let load = name("Shop.Cart+<Load>d__7", "MoveNext", "", "instance void  ()");
    assert_eq!(readable(&load, Style::EXACT), "Shop.Cart.Load#7 (async)");
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1\
                   [System.__Canon,Shop.Cart+<Load>d__7]";
    assert_eq!(
        readable(&name(builder, "MoveNext", "", "instance void  ()"), Style::EXACT),
        "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<T1>.AsyncStateMachineBox<Shop.Cart.Load#7>.MoveNext()"
    );
    let stub = name("dynamicClass", "IL_STUB_PInvoke", "", "int32  (int,pMT: 00007FF7D2C0FDC8*)");
    assert_eq!(readable(&stub, Style::SHORT), "P/Invoke stub (nint, ?*)");
    assert_eq!(readable(&stub, Style::EXACT), "P/Invoke stub (nint, pMT: 00007FF7D2C0FDC8*): int");
}

#[test]
fn parameters_can_be_left_out() {
    let style = Style { parameters: false, exact: false };
    let add = name("System.Collections.Generic.List`1[System.__Canon]", "Add", "", "instance void  (!0)");
    assert_eq!(readable(&add, style), "System.Collections.Generic.List<T>.Add");
    assert_eq!(
        readable(&name("dynamicClass", "IL_STUB_PInvoke", "", "int32  (int)"), style),
        "P/Invoke stub"
    );
    assert_eq!(readable(&name("A[", "B", "", "void  (int32)"), style), "A[.B");
}

#[test]
fn ordinals_appear_only_where_names_would_be_equal() {
    let lambda = |method| name("Shop.Cart+<>c", method, "", "instance bool  (class Shop.Item)");
    let names =
        [lambda("<Total>b__3_0"), lambda("<Total>b__3_1"), lambda("<Find>b__4_0"), lambda("<Find>b__4_0")];
    assert_eq!(
        distinct(&names, true),
        [
            "Shop.Cart.Total.lambda#3_0(Shop.Item)",
            "Shop.Cart.Total.lambda#3_1(Shop.Item)",
            "Shop.Cart.Find.lambda(Item)",
            "Shop.Cart.Find.lambda(Item)",
        ]
    );
    // Overrides with another return type differ in nothing else.
    let clone = |signature| name("Shop.Cart", "Clone", "", signature);
    let names = [clone("instance class System.Object  ()"), clone("instance class Shop.Cart  ()")];
    let found: HashSet<_> = distinct(&names, true).into_iter().collect();
    assert_eq!(found.len(), 2);
}

#[test]
fn parameters_appear_only_where_methods_would_read_alike() {
    let cart = |method, signature| name("Shop.Cart", method, "", signature);
    let names = [
        cart("Add", "instance void  (class Shop.Item)"),
        cart("Add", "instance void  (class Shop.Item,int32)"),
        cart("Clear", "instance void  ()"),
        cart("Add", "instance void  (class Shop.Item)"),
        cart("Add", "instance void  (class Stock.Item)"),
    ];
    assert_eq!(
        distinct(&names, false),
        [
            "Shop.Cart.Add(Shop.Item)",
            "Shop.Cart.Add(Item, int)",
            "Shop.Cart.Clear",
            "Shop.Cart.Add(Shop.Item)",
            "Shop.Cart.Add(Stock.Item)",
        ]
    );
    assert_eq!(distinct(&names[1..3], false), ["Shop.Cart.Add", "Shop.Cart.Clear"]);
    assert_eq!(distinct(&names[1..3], true), ["Shop.Cart.Add(Item, int)", "Shop.Cart.Clear()"]);
}

/// What an event, the image's tables, and the PDB of an NGEN image call one method.
#[test]
fn a_method_has_one_name_wherever_it_comes_from() {
    let signature = "generic void  (!!0[],int32)";
    let told = name("Shop.Sorter", "Sort", "", signature);
    let shared = name("Shop.Sorter", "Sort", "[System.__Canon]", signature);
    let of_numbers = name("Shop.Sorter", "Sort", "[System.Int32]", signature);
    assert_eq!(
        distinct([&told, &shared, &of_numbers], false),
        ["Shop.Sorter.Sort<U>", "Shop.Sorter.Sort<U>", "Shop.Sorter.Sort<int>"]
    );
    let event = name("Shop.Cart", "Add", "", "instance bool  (value class Shop.Item,int32)");
    let ngen = name("Shop.Cart", "Add", "", "(class Shop.Item,class System.Int32)");
    let other = name("Shop.Cart", "Add", "", "(class Shop.Item)");
    assert!(event.is_same_method(&ngen) && !event.is_same_method(&other));
    assert_eq!(
        distinct([&event, &ngen, &other], false),
        ["Shop.Cart.Add(Item, int)", "Shop.Cart.Add(Item, int)", "Shop.Cart.Add(Item)"]
    );
}

/// No two methods of an image end up under one name.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn readable_names_of_real_images_tell_methods_apart() {
    for (path, ..) in IMAGES {
        let file = real(path);
        let image = R2rImage::parse(&Image::parse(&file).unwrap()).unwrap();
        let names: Vec<_> = image.methods().map(|method| method.name()).collect();
        let exact: Vec<_> = names.iter().map(|name| readable(name, Style::EXACT)).collect();
        for forms in [exact, distinct(&names, true), distinct(&names, false)] {
            let mut owners = HashMap::new();
            for (form, name) in forms.iter().zip(&names) {
                let owner = *owners.entry(form).or_insert(name);
                assert!(owner.is_same_method(name), "{path}: {form} is {owner} and {name}");
                // Everything was understood: nothing of the runtime's own spelling is left.
                assert!(
                    !form.contains("class ") && !form.contains("__Canon") && !form.contains('`'),
                    "{form}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_name(
        type_name in r"[A-C.+`\[\],*&<>\\12c_d|]{0,40}",
        method in r"[A-C.<>bgd_|12$-]{0,30}",
        signature in r"(instance |generic |class |int32|value |!|!!|A|<|>|\(|\)|,|&|\[|\]|fnptr | |1){0,24}",
    ) {
        let name = name(&type_name, &method, "", &signature);
        for parameters in [true, false] {
            for exact in [true, false] {
                // Ends, and grows by a bounded factor.
                let text = readable(&name, Style { parameters, exact });
                prop_assert!(text.len() <= 64 * (type_name.len() + method.len() + signature.len() + 4));
            }
        }
    }
}

/// Text made to nest: the parsers stop at a depth and leave it as it is.
#[test]
fn deep_text_is_left_as_it_is() {
    let deep_type = format!("A{}{}", "[B".repeat(100_000), "]".repeat(100_000));
    assert_eq!(readable(&name(&deep_type, "M", "", ""), Style::SHORT), format!("{deep_type}.M"));
    let deep = format!("void  ({}{})", "class A<".repeat(100_000), ">".repeat(100_000));
    assert_eq!(readable(&name("A", "M", "", &deep), Style::SHORT), format!("A.M{}", &deep[6..]));
    let owner = format!("{}M{}", "<".repeat(100_000), ">b__0".repeat(100_000));
    assert!(readable(&name("A", &owner, "", ""), Style::SHORT).len() < 2_000_000);
}
