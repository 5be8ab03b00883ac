//! Names of C++ and Rust functions as a person writes them.
//!
//! Linkers, three demanglers and each compiler's debug information spell one function in their own ways: other blanks,
//! other words for a type, `const` on either side. And they say what nobody would write. [`short`] gives all of them
//! one form:
//!
//! | in symbol files | short |
//! |---|---|
//! | `std::vector<int,std::allocator<int> >::push_back` | `std::vector<int>::push_back` |
//! | `std::basic_string<char, struct std::char_traits<char>, class std::allocator<char>>::append` | `std::string::append` |
//! | `std::__1::list<A>::list<A>`, `std::__cxx11::list<A>::list` | `std::list<A>::list` |
//! | `f<char const *,unsigned __int64>`, `f<const char *, unsigned long long>` | `f<const char*, unsigned long long>` |
//! | `` `A::f'::`2'::<lambda_1a2b>::operator() ``, `A::f() const::{lambda(int)#1}::operator()` | `A::f::<lambda>` |
//! | `f$catch$0`, `` `f'::`1'::fin$0 `` | `f (catch)`, `f (finally)` |
//! | `` `anonymous namespace'::f `` | `(anonymous namespace)::f` |
//! | `` `scalar deleting dtor' `` | `` `scalar deleting destructor' `` |
//! | `alloc::vec::impl$0::push<ref$<str$>,alloc::alloc::Global>` | `alloc::vec::{impl#0}::push<&str, alloc::alloc::Global>` |
//!
//! A name that cannot be read through to its end stays as it is. Functions that differ only in what is left out, as two
//! lambdas of one function do, read alike and remain two.

mod defaults;
mod parts;
mod text;
mod types;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use text::Text;

/// The short form of a native function's name, as symbols have it.
pub fn short(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return name.into();
    }
    match Text::new(name).function() {
        Some(short) => short.into(),
        None => name.into(),
    }
}

/// Whether a name has nothing to shorten: most of C.
fn is_plain(name: &str) -> bool {
    let marks = |byte: &u8| b"<>`'({[$?. ".contains(byte);
    !name.as_bytes().iter().any(marks) && !name.contains("::_")
}
