//! IL-to-native maps.

/// In a map, in place of an IL offset: code that came from none.
pub const NO_MAPPING: i32 = -1;
/// In a map, in place of an IL offset: the prolog of the method, or of an exception handler in it.
pub const PROLOG: i32 = -2;
/// In a map, in place of an IL offset: an epilog. A method may have several.
pub const EPILOG: i32 = -3;

/// What is added to IL offsets in images, so that the three above are not negative.
pub(in crate::symbols::read::dotnet) const MAPPING_OFFSET_BIAS: u32 = 3;

/// The IL offset of the code at a native offset (bytes from the method's entry point); `None` for an empty map.
///
/// `map` holds pairs of native and IL offset, sorted by native offset (the runtime's events have them in another order);
/// each pair's code lasts until the next pair's. The rules where that is not the whole answer, with the aim that a
/// sample gets the line of the statement that was running:
///
/// - Of several pairs at one native offset the last has the code; the statements of the others compiled to nothing.
/// - The method's prolog is IL 0, as for a debugger: the line where the method begins. A later prolog is that of an
///   exception handler, and belongs to the code behind it.
/// - An epilog belongs to the code before it. A debugger shows the method's last instruction there; with one epilog
///   that is the same `return`, but optimized code has an epilog for each `return`.
/// - So does code with no mapping. The JIT made it for the statement at hand, and a name without a line would hide the
///   cost of that statement.
/// - What has nothing before it is IL 0 as well.
///
/// A return address lies behind its call, maybe in the next statement: ask for the byte before it.
pub fn il_offset(map: &[(u32, i32)], native: u32) -> Option<u32> {
    let (before, after) = map.split_at_checked(map.partition_point(|&(start, _)| start <= native))?;
    let mapped = |&(start, il): &(u32, i32)| match il {
        PROLOG if start == 0 => Some(0),
        _ => u32::try_from(il).ok(),
    };
    let of_handler = match before.last() {
        Some(&(start, PROLOG)) if start > 0 => after.first().and_then(mapped),
        _ => None,
    };
    let found = of_handler.or_else(|| before.iter().rev().find_map(mapped));
    found.or((!map.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::{EPILOG, NO_MAPPING, PROLOG, il_offset};

    #[test]
    fn each_rule() {
        let map = [
            (0, PROLOG),
            (4, 0),
            (10, 7),
            (10, 9),
            (20, NO_MAPPING),
            (24, 30),
            (30, EPILOG),
            (36, 18),
            (40, EPILOG),
            (46, NO_MAPPING),
            (50, PROLOG),
            (54, 50),
            (60, EPILOG),
            (64, PROLOG),
            (68, EPILOG),
        ];
        for (native, il) in [
            (0, 0),
            (3, 0),
            (4, 0),
            (9, 0),
            (10, 9),
            (19, 9),
            (22, 9),
            (29, 30),
            (35, 30),
            (39, 18),
            (45, 18),
            (49, 18),
            (50, 50),
            (63, 50),
            (64, 50),
            (1000, 50),
        ] {
            assert_eq!(il_offset(&map, native), Some(il), "{native}");
        }
    }

    #[test]
    fn maps_that_say_little() {
        assert_eq!(il_offset(&[], 5), None);
        assert_eq!(il_offset(&[(8, 3)], 5), Some(0));
        assert_eq!(il_offset(&[(0, NO_MAPPING), (8, 3)], 5), Some(0));
        assert_eq!(il_offset(&[(0, EPILOG)], 5), Some(0));
        assert_eq!(il_offset(&[(0, i32::MIN), (0, i32::MAX)], u32::MAX), Some(i32::MAX as u32));
    }
}
