use super::short;

#[track_caller]
fn all_read(names: &[&str], expected: &str) {
    for name in names {
        assert_eq!(short(name), expected, "{name}");
    }
}

#[test]
fn every_source_gives_one_spelling() {
    all_read(
        &[
            "std::vector<int,std::allocator<int> >::push_back",
            "std::vector<int, class std::allocator<int>>::push_back",
            "std::__1::vector<int, std::__1::allocator<int>>::push_back",
            "std::vector<int>::push_back",
        ],
        "std::vector<int>::push_back",
    );
    all_read(
        &[
            "std::list<std::pair<unsigned long const ,void *>,A<std::pair<unsigned long,void *> > >::~list<std::pair<unsigned long const ,void *>,A<std::pair<unsigned long,void *> > >",
            "std::list<std::pair<const unsigned long, void*>, A<std::pair<unsigned long, void*>>>::~list",
            "std::list<std::pair<long unsigned int const, void*>, A<std::pair<unsigned long int, void*> > >::~list",
        ],
        "std::list<std::pair<const unsigned long, void*>, A<std::pair<unsigned long, void*>>>::~list",
    );
    all_read(
        &[
            "f<char const *,unsigned __int64>",
            "f<const char *, unsigned long long>",
            "f<char const*, unsigned long long int>",
        ],
        "f<const char*, unsigned long long>",
    );
    all_read(
        &["f<int (__cdecl*)(unsigned int)>", "f<int (__cdecl *)(unsigned int)>", "f<int (*)(unsigned int)>"],
        "f<int (*)(unsigned int)>",
    );
    all_read(&["f<void (__cdecl**)(void)>", "f<void (**)()>"], "f<void (**)()>");
    all_read(&["f<0,1,16>", "f<false, true, 16ul>"], "f<0, 1, 16>");
    all_read(
        &["A::`scalar deleting dtor'", "A::`scalar deleting destructor'"],
        "A::`scalar deleting destructor'",
    );
    all_read(&["unit::name[abi:cxx11]", "unit::name"], "unit::name");
    all_read(
        &[
            "`anonymous namespace'::f",
            "(anonymous namespace)::f",
            "`anonymous-namespace'::f",
            "?A0x1234abcd::f",
        ],
        "(anonymous namespace)::f",
    );
    all_read(
        &[
            "g<X<`lambda at ./big.h:16:144'> >",
            "g<X<T<A, B>::sorted() const::{lambda(A const&, B const&)#1}> >",
            "g<X<<lambda_1a2b> >>",
        ],
        "g<X<<lambda>>>",
    );
}

#[test]
fn default_arguments_are_left_out() {
    let string = "std::basic_string<char,std::char_traits<char>,std::allocator<char> >";
    all_read(
        &[
            &format!("{string}::append"),
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append",
        ],
        "std::string::append",
    );
    all_read(&[&format!("{string}::{}", string.trim_start_matches("std::"))], "std::string::string");
    all_read(
        &[&format!(
            "std::map<{string},int,std::less<{string} >,std::allocator<std::pair<{string} const ,int> > >::find"
        )],
        "std::map<std::string, int>::find",
    );
    all_read(
        &["std::map<char *,int,std::less<char *>,std::allocator<std::pair<char * const,int> > >::find"],
        "std::map<char*, int>::find",
    );
    all_read(
        &["std::map<int,int,std::greater<int>,std::allocator<std::pair<int const ,int> > >::find"],
        "std::map<int, int, std::greater<int>>::find",
    );
    all_read(&["std::vector<int,Own<int> >::size"], "std::vector<int, Own<int>>::size");
    all_read(&["std::unique_ptr<A,std::default_delete<A> >::reset"], "std::unique_ptr<A>::reset");
    all_read(
        &[
            "std::unordered_map<int,A,std::hash<int>,std::equal_to<int>,std::allocator<std::pair<int const ,A> > >::find",
        ],
        "std::unordered_map<int, A>::find",
    );
    all_read(
        &["std::num_put<char,std::ostreambuf_iterator<char,std::char_traits<char> > >::_Ifmt"],
        "std::num_put<char>::_Ifmt",
    );
    all_read(
        &["std::basic_ostream<wchar_t,std::char_traits<wchar_t> >::sentry::~sentry"],
        "std::wostream::sentry::~sentry",
    );
    all_read(
        &["std::basic_string_view<char16_t,std::char_traits<char16_t> >::find"],
        "std::u16string_view::find",
    );
    all_read(&["std::pair<A,B>::pair<A,B><C,D,0>"], "std::pair<A, B>::pair<C, D, 0>");
    all_read(&["own::vector<int,std::allocator<int> >::f"], "own::vector<int, std::allocator<int>>::f");
}

#[test]
fn pieces_of_functions_read_as_pieces() {
    all_read(&["f$catch$0", "`f'::`1'::catch$0"], "f (catch)");
    all_read(&["a::f$fin$2", "`a::f'::`1'::fin$2"], "a::f (finally)");
    all_read(&["`std::numpunct<char>::_Getcat'::`1'::dtor$0"], "std::numpunct<char>::_Getcat (dtor)");
    all_read(&["`S<A>::operator<<'::`1'::filt$0"], "S<A>::operator<< (filter)");
    all_read(
        &["__crt_seh_guarded_call<void>::operator()<<lambda_1f>,<lambda_2f> &,<lambda_3f> >"],
        "__crt_seh_guarded_call<void>::operator()<<lambda>, <lambda>&, <lambda>>",
    );
    all_read(
        &[
            "f::__l2::<lambda_1>::operator()",
            "`f'::`2'::<lambda_1>::operator()",
            "f(int)::{lambda()#1}::operator()",
            "f::<lambda_1a2b3c4d>::operator()",
            "f::lambda_1::operator()",
        ],
        "f::<lambda>",
    );
    all_read(
        &["<lambda_cc9a5ba8a5d8428b9634eab82665e5dc>::operator()", "<lambda_cc9a5ba8>"],
        "<lambda_cc9a5ba8>",
    );
    all_read(&["f<void __cdecl(int)>", "f<void (int)>"], "f<void (int)>");
    all_read(&["f::<lambda_1>::operator()<int>"], "f::<lambda>::operator()<int>");
    all_read(&["f.llvm.10213438086095151783"], "f");
    all_read(&["f::__l2::Local::g", "`f'::`2'::Local::g"], "f::Local::g");
    all_read(&["std::`dynamic initializer for 'initlocks''"], "std::`dynamic initializer for 'initlocks''");
}

#[test]
fn operators_keep_their_signs() {
    all_read(&["A::operator<<<char>", "A::operator<< <char>"], "A::operator<<<char>");
    all_read(&["A::operator<<int>", "A::operator< <int>"], "A::operator<<int>");
    all_read(&["A::operator<=><int>"], "A::operator<=><int>");
    all_read(&["A<B>::operator->"], "A<B>::operator->");
    all_read(&["A<B >::operator std::vector<C,std::allocator<C> >"], "A<B>::operator std::vector<C>");
    all_read(
        &["A::operator<int __cdecl(char)> int (__cdecl *)(char)", "A::operator int (__cdecl*)(char)"],
        "A::operator int (*)(char)",
    );
    all_read(&["A::operator unsigned __int64"], "A::operator unsigned long long");
    all_read(&["operator new[]"], "operator new[]");
    all_read(&["foo::operator co_await"], "foo::operator co_await");
    all_read(&["operator\"\" _s<1>", "operator\"\"_s<1>"], "operator\"\"_s<1>");
}

#[test]
fn rust_reads_as_rust() {
    all_read(
        &["alloc::vec::impl$0::push<ref$<str$>,alloc::alloc::Global>"],
        "alloc::vec::{impl#0}::push<&str, alloc::alloc::Global>",
    );
    all_read(
        &["alloc::vec::Vec<tuple$<u8,u16>,alloc::alloc::Global>::push"],
        "alloc::vec::Vec<(u8, u16)>::push",
    );
    all_read(
        &[
            "core::ptr::drop_in_place<enum2$<core::option::Option<alloc::boxed::Box<dyn$<a::T>,alloc::alloc::Global> > > >",
        ],
        "core::ptr::drop_in_place<core::option::Option<alloc::boxed::Box<dyn a::T>>>",
    );
    all_read(&["a::main::closure$0", "a::main::{{closure}}", "a::main::{closure#0}"], "a::main::{closure}");
    all_read(
        &["<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"],
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
    );
    all_read(&["f<&mut [u8]>"], "f<&mut [u8]>");
    all_read(&["f<fn(u8) -> u16>"], "f<fn(u8) -> u16>");
    all_read(&["f<*const u8>"], "f<*const u8>");
    all_read(&["f<ref$<slice2$<u8> >,array$<u8,4>,never$,ptr_mut$<u8> >"], "f<&[u8], [u8; 4], !, *mut u8>");
}

#[test]
fn what_is_not_understood_stays() {
    let deep = format!("f<{}int{}>::g", "A<".repeat(200), ">".repeat(200));
    for name in [
        "main",
        "_start",
        "f<",
        "f<int",
        "f>",
        "[3 inlined calls left out]",
        "a…b<c",
        "`",
        "`x",
        "'",
        "<>",
        "?x",
        "",
        "f<int>>",
        "-[A b]",
        &deep,
    ] {
        assert_eq!(short(name), name);
    }
}

/// Nothing that a file can hold takes more than its length, or much time.
#[test]
fn any_text_is_read_in_bounds() {
    for part in [
        "<",
        ">",
        "`",
        "'",
        "(",
        ")",
        "A<",
        "A::",
        "`f'::`1'::",
        "ref$<",
        "operator ",
        "operator<",
        "<lambda",
        "{",
        "(A",
        "[",
        "A<B,",
        "std::vector<",
        "const ",
        "~",
        "$catch$0",
    ] {
        for end in ["", ">", "'", ")", "::A", "]"] {
            let name = format!("{}{}", part.repeat(4096 / part.len()), end.repeat(100));
            assert!(short(&name).len() <= 4 * name.len());
        }
    }
}
