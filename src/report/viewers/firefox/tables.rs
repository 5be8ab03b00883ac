//! What all threads share: stacks, frames, functions, source files, libraries, and the strings that name them.
//!
//! A node of the call tree is a stack, with the same number. A function is one row, wherever its code is; a frame is a
//! place in it.

use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use super::json::{Json, OrNull};
use crate::interned::Interned;
use crate::origin::Machine;
use crate::profile::{Category, Entry, Frame, FrameId, Instruction};
use crate::report::format::Picture;
use crate::report::{Labels, Spelling};
use crate::trace::{Module, ModuleId, Trace};
use crate::winpath::file_name;

/// The tables of a picture.
pub(super) struct Tables<'p> {
    trace: &'p Trace,
    labels: &'p Spelling<'p>,
    pub(super) strings: Interned<String>,
    categories: Vec<Subcategories>,
    libs: Interned<ModuleId>,
    resources: Interned<u32>,
    /// By resource, one of its libraries.
    lib_of: Vec<Option<u32>>,
    sources: Interned<u32>,
    natives: Interned<Native>,
    funcs: Interned<FuncKey>,
    func_sources: Vec<Option<u32>>,
    frames: Vec<FrameRow>,
    /// The frame of each node of the tree.
    stacks: Vec<u32>,
    /// Functions with code of their own, by where it begins.
    owners: FxHashMap<(ModuleId, u32), FrameId>,
}

/// The kinds of code in a category; the first is all that is no other.
struct Subcategories(Vec<&'static str>);

/// A function with code of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Native {
    lib: u32,
    start: u32,
    name: u32,
}

/// What makes a function one row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FuncKey {
    name: u32,
    resource: Option<u32>,
    is_script: bool,
}

struct FrameRow {
    func: u32,
    category: usize,
    subcategory: usize,
    instruction: Option<Instruction>,
    native: Option<u32>,
    inlined: u16,
    line: Option<u32>,
}

impl<'p> Tables<'p> {
    /// Makes a row for all that is in the tree.
    pub(super) fn new(picture: &Picture<'p>) -> Tables<'p> {
        let profile = picture.profile();
        let mut owners = FxHashMap::default();
        for (id, frame) in (0..).map(FrameId).zip(profile.stacks.frames()).filter(|(_, f)| f.inlined == 0) {
            let start = frame.instruction.and_then(|at| at.start);
            if let Some(key) = frame.module.zip(start) {
                owners.entry(key).or_insert(id);
            }
        }
        let mut tables = Tables {
            trace: &profile.trace,
            labels: picture.labels,
            strings: Interned::default(),
            categories: (0..=Category::CODE.len()).map(|_| Subcategories(vec!["Other"])).collect(),
            libs: Interned::default(),
            resources: Interned::default(),
            lib_of: Vec::new(),
            sources: Interned::default(),
            natives: Interned::default(),
            funcs: Interned::default(),
            func_sources: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            owners,
        };
        let mut known: FxHashMap<Entry, u32> = FxHashMap::default();
        for (_, node) in picture.arranged.counts.nodes() {
            let frame = *known.entry(node.entry).or_insert_with(|| {
                let frame = node.entry.frame().and_then(|id| profile.stacks.frame(id));
                tables.add_frame(node.entry, frame, picture.place(node.entry))
            });
            tables.stacks.push(frame);
        }
        tables
    }

    /// The number of a string.
    pub(super) fn string(&mut self, text: &str) -> u32 {
        self.strings.number(text.to_owned())
    }

    /// True if any function is of a script.
    pub(super) fn has_scripts(&self) -> bool {
        (0..).map_while(|func| self.funcs.get(func)).any(|func| func.is_script)
    }

    fn add_frame(&mut self, entry: Entry, frame: Option<&Frame>, place: Option<&Frame>) -> u32 {
        let label = self.labels.label(entry);
        let is_script = label.category == Category::JavaScript;
        let module = self.labels.module(entry);
        let name = match label.text.strip_prefix(module.as_str()).and_then(|name| name.strip_prefix('!')) {
            Some(name) if !module.is_empty() => name,
            _ => &label.text,
        };
        let name = self.string(name);
        let lib = frame.and_then(|frame| frame.module).map(|module| self.libs.number(module));
        let resource = (!module.is_empty()).then(|| self.resource(&module, lib));
        let line = place.and_then(|frame| frame.line.as_ref());
        let source = line.map(|line| {
            let file = self.string(&line.file);
            self.sources.number(file)
        });
        let func = self.func(FuncKey { name, resource, is_script }, source);
        // A function has one file. What of it comes from another has no line in that one.
        let has_lines = source.is_some() && self.func_sources.get(func as usize) == Some(&source);
        let category = category_number(label.category);
        let instruction = place.and_then(|frame| frame.instruction);
        let row = FrameRow {
            func,
            category,
            subcategory: frame.map_or(0, |frame| self.subcategory(category, frame)),
            instruction,
            native: place.zip(instruction).and_then(|(frame, at)| self.native(frame.module?, lib?, at)),
            inlined: frame.map_or(0, |frame| frame.inlined),
            line: line.filter(|_| has_lines).map(|line| line.line),
        };
        self.frames.push(row);
        (self.frames.len() - 1) as u32
    }

    fn func(&mut self, key: FuncKey, source: Option<u32>) -> u32 {
        let func = self.funcs.number(key);
        match self.func_sources.get_mut(func as usize) {
            Some(known) => *known = known.or(source),
            None => self.func_sources.push(source),
        }
        func
    }

    fn resource(&mut self, module: &str, lib: Option<u32>) -> u32 {
        let name = self.string(module);
        let resource = self.resources.number(name);
        match self.lib_of.get_mut(resource as usize) {
            Some(known) => *known = known.or(lib),
            None => self.lib_of.push(lib),
        }
        resource
    }

    /// The function with code of its own that an instruction is in.
    fn native(&mut self, module: ModuleId, lib: u32, at: Instruction) -> Option<u32> {
        let start = at.start?;
        let owner = Entry::Frame(*self.owners.get(&(module, start))?);
        let text = self.labels.text(owner);
        let of_module = self.labels.module(owner);
        let name = text.strip_prefix(of_module.as_str()).and_then(|name| name.strip_prefix('!'));
        let name = self.string(name.unwrap_or(&text));
        Some(self.natives.number(Native { lib, start, name }))
    }

    /// By why a frame has no name, or how its code was compiled.
    fn subcategory(&mut self, category: usize, frame: &Frame) -> usize {
        let cause = frame.unresolved.map(|cause| cause.text());
        let Some(text) = cause.or_else(|| frame.tier.map(|tier| tier.text())) else { return 0 };
        let Some(Subcategories(all)) = self.categories.get_mut(category) else { return 0 };
        all.iter().position(|known| *known == text).unwrap_or_else(|| {
            all.push(text);
            all.len() - 1
        })
    }

    /// The list of categories, which belongs to the head of a profile.
    pub(super) fn write_categories<W: Write>(&self, json: &mut Json<W>) -> io::Result<()> {
        json.array(|json| {
            let all = [Category::Heading].into_iter().chain(Category::CODE);
            for (category, Subcategories(parts)) in all.zip(&self.categories) {
                let (name, colour) = category_text(category);
                json.object(|json| {
                    json.key("name")?.text(name)?;
                    json.key("color")?.text(colour)?;
                    json.key("subcategories")?.array(|json| parts.iter().try_for_each(|part| json.text(part)))
                })?;
            }
            Ok(())
        })
    }

    /// The list of libraries.
    pub(super) fn write_libs<W: Write>(&self, json: &mut Json<W>) -> io::Result<()> {
        // A 32-bit process on a 64-bit system maps modules of both widths.
        let is_wow64 = |process| self.trace.process(process).is_some_and(|process| process.wow64);
        let mappings = self.trace.mappings.iter().filter(|mapping| is_wow64(mapping.process));
        let either: FxHashSet<ModuleId> = mappings.map(|mapping| mapping.module).collect();
        json.array(|json| {
            all(&self.libs).filter_map(|id| Some((*id, self.trace.module(*id)?))).try_for_each(
                |(id, module)| {
                    let arch = if either.contains(&id) { "" } else { architecture(&self.trace.machine) };
                    write_lib(json, module, arch)
                },
            )
        })
    }

    /// All tables, and the strings last: whatever is written before may add some.
    pub(super) fn write_shared<W: Write>(&self, picture: &Picture<'_>, json: &mut Json<W>) -> io::Result<()> {
        json.object(|json| {
            json.key("stackTable")?.object(|json| {
                let nodes = || picture.arranged.counts.nodes().map(|(_, node)| node);
                json.column("frame", &self.stacks)?;
                json.column("prefix", nodes().map(|node| OrNull(node.parent.map(|parent| parent.0))))?;
                json.key("length")?.plain(self.stacks.len())
            })?;
            json.key("frameTable")?.object(|json| self.write_frames(json))?;
            json.key("funcTable")?.object(|json| self.write_funcs(json))?;
            json.key("resourceTable")?.object(|json| {
                const LIBRARY: u8 = 1;
                json.column("lib", self.lib_of.iter().map(|lib| OrNull(*lib)))?;
                json.column("name", all(&self.resources))?;
                json.column("host", nulls(self.resources.len()))?;
                json.column("type", std::iter::repeat_n(LIBRARY, self.resources.len()))?;
                json.key("length")?.plain(self.resources.len())
            })?;
            json.key("nativeSymbols")?.object(|json| {
                let natives = || all(&self.natives);
                json.column("libIndex", natives().map(|native| native.lib))?;
                json.column("address", natives().map(|native| native.start))?;
                json.column("name", natives().map(|native| native.name))?;
                json.column("functionSize", nulls(self.natives.len()))?;
                json.key("length")?.plain(self.natives.len())
            })?;
            json.key("sources")?.object(|json| {
                let count = self.sources.len();
                json.column("id", nulls(count))?;
                json.column("filename", all(&self.sources))?;
                json.column("startLine", std::iter::repeat_n(1, count))?;
                json.column("startColumn", std::iter::repeat_n(1, count))?;
                json.column("sourceMapURL", nulls(count))?;
                json.column("content", nulls(count))?;
                json.key("length")?.plain(count)
            })?;
            json.key("sourceLocationTable")?.object(|json| {
                for name in ["source", "line", "column"] {
                    json.column(name, nulls(0))?;
                }
                json.key("length")?.plain(0)
            })?;
            json.key("stringArray")?
                .array(|json| all(&self.strings).try_for_each(|text: &String| json.text(text)))
        })
    }

    fn write_frames<W: Write>(&self, json: &mut Json<W>) -> io::Result<()> {
        let (frames, count) = (&self.frames, self.frames.len());
        let address = |frame: &FrameRow| frame.instruction.map_or(-1, |at| i64::from(at.rva));
        json.column("address", frames.iter().map(address))?;
        json.column("inlineDepth", frames.iter().map(|frame| frame.inlined))?;
        json.column("category", frames.iter().map(|frame| frame.category))?;
        json.column("subcategory", frames.iter().map(|frame| frame.subcategory))?;
        json.column("func", frames.iter().map(|frame| frame.func))?;
        json.column("nativeSymbol", frames.iter().map(|frame| OrNull(frame.native)))?;
        json.column("innerWindowID", std::iter::repeat_n(0, count))?;
        json.column("line", frames.iter().map(|frame| OrNull(frame.line)))?;
        json.column("column", nulls(count))?;
        json.column("originalLocation", nulls(count))?;
        json.key("length")?.plain(count)
    }

    fn write_funcs<W: Write>(&self, json: &mut Json<W>) -> io::Result<()> {
        let (funcs, count) = (|| all(&self.funcs), self.funcs.len());
        let resource = |func: &FuncKey| func.resource.map_or(-1, i64::from);
        json.column("name", funcs().map(|func| func.name))?;
        json.column("isJS", funcs().map(|func| func.is_script))?;
        json.column("relevantForJS", std::iter::repeat_n(false, count))?;
        json.column("resource", funcs().map(resource))?;
        json.column("source", self.func_sources.iter().map(|source| OrNull(*source)))?;
        json.column("lineNumber", nulls(count))?;
        json.column("columnNumber", nulls(count))?;
        json.column("originalLocation", nulls(count))?;
        json.key("length")?.plain(count)
    }
}

/// All things, by their numbers.
fn all<T: Eq + std::hash::Hash>(things: &Interned<T>) -> impl Iterator<Item = &T> {
    (0..).map_while(|number| things.get(number))
}

fn nulls(count: usize) -> impl Iterator<Item = OrNull<u32>> {
    std::iter::repeat_n((), count).map(|()| OrNull(None))
}

fn write_lib<W: Write>(json: &mut Json<W>, module: &Module, arch: &str) -> io::Result<()> {
    let debug_path = module.pdb.as_ref().map_or(module.path.as_str(), |pdb| &pdb.name);
    json.object(|json| {
        json.key("arch")?.text(arch)?;
        json.key("name")?.text(module.file_name())?;
        json.key("path")?.text(&module.path)?;
        json.key("debugName")?.text(file_name(debug_path))?;
        json.key("debugPath")?.text(debug_path)?;
        json.key("breakpadId")?.text(&match &module.pdb {
            Some(pdb) => pdb.id.digits(),
            None => "0".repeat(33),
        })?;
        match module.timestamp {
            0 => json.key("codeId")?.plain("null"),
            // As symbol servers write it.
            timestamp => json.key("codeId")?.text(&format!("{timestamp:08X}{:x}", module.size)),
        }
    })
}

/// The name of the machine's architecture in Breakpad's words; empty where it is not known.
pub(super) fn architecture(machine: &Machine) -> &'static str {
    match machine.architecture {
        Some(0) => "x86",
        Some(9) => "x86_64",
        Some(12) => "arm64",
        _ => "",
    }
}

/// The place of a category in the list.
pub(super) fn category_number(category: Category) -> usize {
    Category::CODE.iter().position(|code| *code == category).map_or(0, |place| place + 1)
}

/// Its name and its colour: the viewer has no others, and needs one grey. They come near to those of the flame graph.
fn category_text(category: Category) -> (&'static str, &'static str) {
    match category {
        Category::Heading => ("Other", "grey"),
        Category::Kernel => ("Kernel", "orange"),
        Category::Native => ("Native", "blue"),
        Category::ManagedJit => (".NET, JIT-compiled", "green"),
        Category::ManagedPrecompiled => (".NET, precompiled", "lightblue"),
        Category::Runtime => (".NET runtime", "purple"),
        Category::Gc => ("GC", "magenta"),
        Category::JitCompiler => ("JIT compiler", "red"),
        Category::Stub => ("Stub", "brown"),
        Category::JavaScript => ("JavaScript", "yellow"),
        Category::Unresolved => ("Unresolved", "darkgrey"),
    }
}
