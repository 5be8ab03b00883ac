//! Images without their PDB: names from exports, and where functions begin. The PDB, read by `pdb2`, knows the truth.

use std::collections::BTreeMap;
use std::path::Path;

use etwprof::mmap::Mapped;
use etwprof::symbols::read::functions::Functions;
use etwprof::symbols::read::location::Evidence;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pe::Image;

use crate::support::data;
use crate::support::luck::Luck;
use crate::support::native::each_symbol;

const X86: [(&str, &str); 9] = [
    ("debugpy/attach_x86.dll", "debugpy/attach_x86.pdb"),
    ("debugpy/inject_dll_x86.exe", "debugpy/inject_dll_x86.pdb"),
    ("dump_syms/basic32-min.dll", "dump_syms/basic32-min.pdb"),
    ("symbolic/debuginfo/CppConsoleApp.exe", "symbolic/debuginfo/CppConsoleApp.pdb"),
    ("symbolic/windows/crash.exe", "symbolic/windows/crash.pdb"),
    ("syzygy/foo.dll", "syzygy/foo.pdb"),
    ("syzygy/test_dll_iltcg.dll", "syzygy/test_dll_iltcg.dll.pdb"),
    ("syzygy/test_types.dll", "syzygy/test_types.dll.pdb"),
    ("syzygy/test_vtables.dll", "syzygy/test_vtables.dll.pdb"),
];

const X64: [(&str, &str); 10] = [
    ("debugpy/attach_amd64.dll", "debugpy/attach_amd64.pdb"),
    ("debugpy/inject_dll_amd64.exe", "debugpy/inject_dll_amd64.pdb"),
    ("dump_syms/dump_syms_regtest64.exe", "dump_syms/dump_syms_regtest64.pdb"),
    ("node-pty/conpty_console_list.node", "node-pty/conpty_console_list.pdb"),
    ("samply/softokn3.dll", "samply/softokn3.pdb"),
    ("samply/WriteArgument.exe", "samply/WriteArgument.pdb"),
    ("symbolic/windows/CrashWithException.exe", "symbolic/windows/CrashWithException.pdb"),
    ("syzygy/test_types_x64.dll", "syzygy/test_types_x64.dll.pdb"),
    ("built-clang/biginline.exe", "built-clang/biginline.pdb"),
    ("breakpad/dump_syms_regtest64.exe", "breakpad/dump_syms_regtest64.pdb"),
];

const ARM64: [(&str, &str); 3] = [
    ("node-pty/arm64/conpty_console_list.node", "node-pty/arm64/conpty_console_list.pdb"),
    ("systeminformer/arm64/systeminformer.sys", "systeminformer/arm64/systeminformer.pdb"),
    ("systeminformer/arm64/ksi.dll", "systeminformer/arm64/ksi.pdb"),
];

/// Random addresses on each image.
const ADDRESSES: usize = 40_000;

/// What the PDB says of the code.
struct Truth {
    /// End of each procedure by its start.
    procedures: BTreeMap<u32, u32>,
    /// Where functions begin, public ones too.
    starts: Vec<u32>,
    /// Labels of assembly, within functions.
    labels: Vec<u32>,
    longest: u32,
}

impl Truth {
    fn read(pdb: &Path) -> Self {
        let mut pdb = pdb2::PDB::open(std::fs::File::open(pdb).unwrap()).unwrap();
        let map = pdb.address_map().unwrap();
        let (mut procedures, mut starts, mut labels) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut add = |symbol: pdb2::SymbolData<'_>| {
            let mut is_label = false;
            let (offset, len) = match symbol {
                pdb2::SymbolData::Procedure(procedure) => (procedure.offset, procedure.len),
                pdb2::SymbolData::Thunk(thunk) => (thunk.offset, thunk.len.into()),
                pdb2::SymbolData::Public(public) => {
                    is_label = !public.function;
                    (public.offset, 0)
                }
                _ => return,
            };
            let Some(start) = offset.to_rva(&map) else { return };
            if is_label { &mut labels } else { &mut starts }.push(start.0);
            if len > 0 {
                let end = procedures.entry(start.0).or_insert(0);
                *end = (start.0 + len).max(*end);
            }
        };
        each_symbol(&mut pdb, &mut add);
        starts.sort_unstable();
        starts.dedup();
        let longest = procedures.iter().map(|(start, end)| end - start).max().unwrap_or(0);
        Truth { procedures, starts, labels, longest }
    }

    /// Starts of the procedures that hold `rva`.
    fn procedures_at(&self, rva: u32) -> Vec<u32> {
        let near = self.procedures.range(rva.saturating_sub(self.longest)..=rva);
        near.filter(|(_, end)| rva < **end).map(|(start, _)| *start).collect()
    }

    /// Whether the function that begins at `start` may hold `rva`.
    fn allows(&self, start: u32, rva: u32) -> bool {
        let procedures = self.procedures_at(rva);
        if !procedures.is_empty() {
            return procedures.contains(&start)
                || self.labels.contains(&start) && procedures == self.procedures_at(start);
        }
        let last = self.starts[..self.starts.partition_point(|at| *at <= rva)].last();
        self.procedures_at(start).iter().all(|procedure| *procedure == start)
            && last.is_none_or(|last| *last <= start)
    }
}

/// An image with the truth about it, and addresses all over its code.
struct Case<'a> {
    image: Image<'a>,
    truth: Truth,
    addresses: Vec<u32>,
}

fn with(image: &str, pdb: &str, check: impl FnOnce(&Case<'_>)) {
    let bytes = Mapped::open(&data::file(&format!("pdb/{image}"))).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let code = image.sections.iter().filter(|section| section.is_executable());
    let code: Vec<_> =
        code.map(|section| section.rva..section.rva + section.virtual_size.min(section.file_size)).collect();
    let mut random = Luck(0x0dd_c0de);
    let mut address = || {
        let mut at = random.next(code.iter().map(|range| range.len()).sum()) as u32;
        for range in &code {
            if at < range.len() as u32 {
                return range.start + at;
            }
            at -= range.len() as u32;
        }
        unreachable!("the sum is of these ranges")
    };
    let addresses = (0..ADDRESSES).map(|_| address()).collect();
    check(&Case { truth: Truth::read(&data::file(&format!("pdb/{pdb}"))), addresses, image });
}

/// Of how many addresses something is known, of how many it could be, and what is wrong.
#[derive(Default)]
struct Score {
    known: usize,
    all: usize,
    wrong: Vec<String>,
}

impl Score {
    fn share(&self) -> String {
        let share = 100.0 * self.known as f64 / self.all.max(1) as f64;
        format!("{} of {} ({share:.1} %), {} wrong", self.known, self.all, self.wrong.len())
    }
}

/// Runs `measure` on all these images: what it finds out, all together.
fn all(images: &[(&str, &str)], measure: impl Fn(&Case<'_>, &mut Score)) -> Score {
    let mut sum = Score::default();
    for (name, pdb) in images {
        let mut score = Score::default();
        with(name, pdb, |case| measure(case, &mut score));
        println!("{name}: {}", score.share());
        sum.known += score.known;
        sum.all += score.all;
        sum.wrong.extend(score.wrong.into_iter().map(|wrong| format!("{name} {wrong}")));
    }
    sum
}

/// Where functions begin, for addresses in procedures and for all others.
fn starts(case: &Case<'_>, score: &mut Score) {
    let functions = Functions::new(&case.image);
    for rva in &case.addresses {
        let is_inside = !case.truth.procedures_at(*rva).is_empty();
        let found = functions.at(*rva);
        score.all += usize::from(is_inside);
        score.known += usize::from(is_inside && found.is_some());
        let wrong = found.filter(|extent| !case.truth.allows(extent.function, *rva));
        score.wrong.extend(wrong.map(|extent| format!("{rva:#x}: {extent:x?}")));
    }
}

/// The names that the image alone gives: at the addresses, and in whatever the PDB says that an export names.
fn exports(case: &Case<'_>, score: &mut Score) {
    let mut symbols = NativeSymbols::open(Some(&case.image), None).unwrap();
    let exports = case.image.exports();
    let exported = exports.iter().filter_map(|export| {
        let end = *case.truth.procedures.get(&export.rva)?;
        Some(export.rva..end)
    });
    let exported: Vec<_> = exported.flatten().collect();
    for rva in case.addresses.iter().chain(&exported) {
        // MinGW's linker also leaves symbols and DWARF in the image.
        let Some(found) = symbols.lookup(*rva).filter(|found| found.evidence == Evidence::Export) else {
            continue;
        };
        let start = rva - found.offset;
        if !case.truth.allows(start, *rva) || !exports.iter().any(|export| export.rva == start) {
            score.wrong.push(format!("{rva:#x}: {} at {start:#x}", found.function));
        }
    }
    score.all += exported.len();
    score.known += exported.iter().filter(|rva| symbols.lookup(**rva).is_some()).count();
}

/// On x86, functions that are called only through pointers stay unknown.
#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn functions_begin_where_the_pdb_says() {
    for (what, images, percent) in [("x86", &X86[..], 55), ("x64", &X64, 99), ("ARM64", &ARM64, 95)] {
        let score = all(images, starts);
        println!("{what}: {}", score.share());
        assert!(score.wrong.is_empty(), "{}\n{}", score.share(), score.wrong.join("\n"));
        assert!(score.known * 100 > score.all * percent, "{what}: {}", score.share());
    }
}

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn exports_name_their_own_code_and_nothing_else() {
    for (what, images, percent) in [("x86", &X86[..], 80), ("x64", &X64, 95), ("ARM64", &ARM64, 90)] {
        let score = all(images, exports);
        println!("{what}: {}", score.share());
        assert!(score.wrong.is_empty(), "{}\n{}", score.share(), score.wrong.join("\n"));
        assert!(score.known * 100 > score.all * percent, "{what}: {}", score.share());
    }
}
