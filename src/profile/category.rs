//! What kind of code a frame is.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::trace::code::{Body, BodyKind};
use crate::trace::{Module, ModuleId, Trace};
use crate::winpath::{file_name, without_volume};

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// No code: a process, a thread, or a remark.
    Heading,
    /// The kernel and its drivers.
    Kernel,
    /// Compiled code in user mode.
    Native,
    /// .NET code that was compiled at run time.
    ManagedJit,
    /// .NET code that was compiled before, by NGEN or ReadyToRun.
    ManagedPrecompiled,
    /// The .NET runtime.
    Runtime,
    /// The garbage collector of the .NET runtime.
    Gc,
    /// The JIT compiler of the .NET runtime.
    JitCompiler,
    /// What the .NET runtime generates to get from one kind of code to another.
    Stub,
    /// Functions of scripts.
    #[serde(rename = "javascript")]
    JavaScript,
    /// Code outside every known image and body.
    Unresolved,
}

impl Category {
    /// All kinds of code.
    pub const CODE: [Category; 10] = [
        Category::Kernel,
        Category::Native,
        Category::ManagedJit,
        Category::ManagedPrecompiled,
        Category::Runtime,
        Category::Gc,
        Category::JitCompiler,
        Category::Stub,
        Category::JavaScript,
        Category::Unresolved,
    ];

    /// Its name in words.
    pub fn text(self) -> &'static str {
        match self {
            Category::Heading => "heading",
            Category::Kernel => "kernel",
            Category::Native => "native",
            Category::ManagedJit => "managed JIT",
            Category::ManagedPrecompiled => "managed precompiled",
            Category::Runtime => "runtime",
            Category::Gc => "GC",
            Category::JitCompiler => "JIT compiler",
            Category::Stub => "stub",
            Category::JavaScript => "JavaScript",
            Category::Unresolved => "unresolved",
        }
    }

    /// .NET code, however it was compiled.
    pub fn is_managed(self) -> bool {
        matches!(self, Category::ManagedJit | Category::ManagedPrecompiled)
    }

    pub(super) fn of_body(body: &Body) -> Category {
        match body.kind {
            BodyKind::Jitted | BodyKind::Dynamic => Category::ManagedJit,
            BodyKind::IlStub | BodyKind::Helper => Category::Stub,
            BodyKind::Precompiled => Category::ManagedPrecompiled,
            BodyKind::Script => Category::JavaScript,
        }
    }

    /// The category of a named function in an image of this category: older runtimes have their collector in
    /// themselves, once for workstations and once for servers.
    pub(super) fn of_function(self, name: &str) -> Category {
        let collects = || ["WKS::gc", "SVR::gc"].iter().any(|prefix| name.starts_with(prefix));
        if self == Category::Runtime && collects() { Category::Gc } else { self }
    }
}

/// The categories of all modules of a trace.
#[derive(Debug)]
pub(super) struct ModuleCategories(Vec<Category>);

impl ModuleCategories {
    pub(super) fn new(trace: &Trace) -> Self {
        // The runtime knows a file by its path with a drive; the kernel may know it by its volume.
        let precompiled: HashSet<String> = trace
            .code
            .modules()
            .iter()
            .filter_map(|module| match module.native_path.as_str() {
                "" if module.flags.is_ready_to_run() => Some(without_volume(&module.path)),
                "" => None,
                native => Some(without_volume(native)),
            })
            .collect();
        let of = |module: &Module| match of_image(module) {
            Category::Native if precompiled.contains(&without_volume(&module.path)) => {
                Category::ManagedPrecompiled
            }
            category => category,
        };
        ModuleCategories(trace.modules.iter().map(of).collect())
    }

    pub(super) fn of(&self, module: ModuleId) -> Category {
        self.0.get(module.0 as usize).copied().unwrap_or(Category::Native)
    }
}

/// By the image alone.
fn of_image(module: &Module) -> Category {
    if module.kernel {
        return Category::Kernel;
    }
    let name = file_name(&module.path).to_ascii_lowercase();
    let stem = name.strip_suffix(".dll").unwrap_or(&name);
    match stem {
        "coreclr" | "clr" | "mscorwks" | "mscorsvr" => Category::Runtime,
        "clrgc" | "clrgcexp" => Category::Gc,
        "clrjit" | "mscorjit" | "compatjit" | "protojit" => Category::JitCompiler,
        // Only precompiled images have a second PDB.
        _ if module.managed_pdb.is_some() => Category::ManagedPrecompiled,
        _ if stem.ends_with(".ni") || name.ends_with(".ni.exe") => Category::ManagedPrecompiled,
        _ => Category::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, of_image};
    use crate::trace::Module;

    fn module(path: &str) -> Module {
        Module {
            path: path.into(),
            size: 0,
            timestamp: 0,
            checksum: 0,
            pdb: None,
            managed_pdb: None,
            kernel: false,
        }
    }

    #[test]
    fn images_are_known_by_their_names() {
        for (path, category) in [
            (r"C:\dotnet\CoreCLR.dll", Category::Runtime),
            (r"C:\Windows\Microsoft.NET\Framework\v2.0.50727\mscorwks.dll", Category::Runtime),
            (r"C:\dotnet\clrgc.dll", Category::Gc),
            (r"C:\dotnet\clrjit.dll", Category::JitCompiler),
            (r"C:\a\mscorlib.ni.dll", Category::ManagedPrecompiled),
            (r"C:\a\clr.exe", Category::Native),
            (r"C:\a\mini.dll", Category::Native),
        ] {
            assert_eq!(of_image(&module(path)), category, "{path}");
        }
        assert_eq!(of_image(&Module { kernel: true, ..module("clr.dll") }), Category::Kernel);
    }

    #[test]
    fn the_collector_is_told_by_its_functions() {
        assert_eq!(Category::Runtime.of_function("WKS::gc_heap::mark_object_simple"), Category::Gc);
        assert_eq!(Category::Runtime.of_function("SVR::gc_heap::plan_phase"), Category::Gc);
        assert_eq!(Category::Runtime.of_function("JIT_New"), Category::Runtime);
        assert_eq!(Category::Native.of_function("WKS::gc_heap::x"), Category::Native);
    }
}
