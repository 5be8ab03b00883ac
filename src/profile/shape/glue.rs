//! Code that only leads from one kind of code to another.

use crate::profile::{Category, Frame, Profile};
use crate::symbols::FunctionName;
use crate::trace::Module;

/// The modules that run 32-bit code on a 64-bit system. They stand at the root of each 32-bit stack, and once more
/// wherever it calls the kernel.
const WOW64: [&str; 4] = ["wow64", "wow64cpu", "wow64win", "wow64base"];

/// Functions of the .NET runtime by which native and .NET code call each other. Those that do work of their own, such as
/// `ThePreStub`, which compiles, are not among them.
const CROSSINGS: [&str; 10] = [
    "CallDescrWorkerInternal",
    "CallDescrWorker",
    "CallDescrWorkerWithHandler",
    "CallDescrWorkerReflectionWrapper",
    "UMThunkStub",
    "UMThunkStubCommon",
    "UM2MThunk_Wrapper",
    "GenericPInvokeCalliHelper",
    "CallJittedMethodRetVoid",
    "CallDescrSaveFPArgRegs",
];

/// For each frame of `profile` whether it is glue.
pub(super) fn of(profile: &Profile) -> Vec<bool> {
    let runs_32_bits =
        |image: &Module| !image.kernel && WOW64.iter().any(|name| name.eq_ignore_ascii_case(image.name()));
    let modules: Vec<bool> = profile.trace.modules.iter().map(runs_32_bits).collect();
    let is_in_glue =
        |frame: &Frame| frame.module.is_some_and(|module| modules.get(module.0 as usize) == Some(&true));
    let frames = profile.stacks.frames().iter();
    frames.map(|frame| is_in_glue(frame) || is_glue(profile, frame)).collect()
}

fn is_glue(profile: &Profile, frame: &Frame) -> bool {
    if frame.category == Category::Stub {
        return true;
    }
    let function = profile.stacks.function_of(frame).map(|function| &function.name);
    let Some(FunctionName::Text(name) | FunctionName::Native(name)) = function else { return false };
    // What the linker makes for incremental linking.
    let is_thunk = name.starts_with("@ILT+") || name.starts_with("ILT+");
    is_thunk || frame.category == Category::Runtime && CROSSINGS.contains(&&**name)
}
