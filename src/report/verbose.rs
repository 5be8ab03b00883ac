//! How entries read to PerfView's patterns: `C:\app\app!Program.Main(class System.String[])`, `Process64 app (100) Args: x`,
//! `Thread (101) CPU=20ms (Worker)`, `BROKEN`.

use rustc_hash::FxHashMap;

use crate::event::{NO_ID, Pointer};
use crate::profile::patterns::FrameText;
use crate::profile::{Entry, Frame, FrameId, Profile, Remark, cut_module_name};
use crate::symbols::FunctionName;
use crate::trace::{ProcessId, Runner};

/// How every process, thread, remark and frame of `profile` reads to patterns.
pub fn verbose(profile: &Profile) -> FxHashMap<Entry, FrameText<'static>> {
    let assemblies = assemblies(profile);
    let mut texts: FxHashMap<Entry, String> = FxHashMap::default();
    let remarks =
        [Remark::Dpc, Remark::Isr, Remark::NoStack, Remark::UserStackMissing, Remark::Broken, Remark::Cut(0)];
    texts.extend(remarks.map(|remark| (Entry::Remark(remark), remark_text(remark).to_owned())));
    let mut time: FxHashMap<(ProcessId, u32), i64> = FxHashMap::default();
    for sample in &profile.samples {
        let Runner { process, tid, .. } = profile.runner(sample);
        let spent = time.entry((process, tid)).or_default();
        *spent = spent.saturating_add(sample.value);
    }
    // Of several threads that had the ids, the first gives the name.
    let named = profile.trace.threads.iter().rev().filter(|thread| !thread.name.is_empty());
    let threads: FxHashMap<(u32, u32), &str> =
        named.map(|thread| ((thread.pid, thread.tid), thread.name.as_str())).collect();
    for ((process, tid), spent) in time {
        texts.entry(Entry::Process(process)).or_insert_with(|| process_text(profile, process));
        texts.insert(Entry::Thread(process, tid), thread_text(profile, &threads, process, tid, spent));
    }
    for (id, frame) in (0..).map(FrameId).zip(profile.stacks.frames()) {
        let text = frame_text(profile, &assemblies, frame);
        if frame.function.is_none() {
            texts.insert(Entry::Unnamed(id), text.clone());
        }
        texts.insert(Entry::Frame(id), text);
    }
    let of = |(entry, text): (Entry, String)| {
        let FrameText { verbose, short } = FrameText::of(&text);
        let text = FrameText { verbose: verbose.into_owned().into(), short: short.into_owned().into() };
        (entry, text)
    };
    texts.into_iter().map(of).collect()
}

/// Samples without a whole stack are all broken to PerfView.
fn remark_text(remark: Remark) -> &'static str {
    match remark {
        Remark::NoStack | Remark::UserStackMissing | Remark::Broken => "BROKEN",
        remark => remark.text(),
    }
}

fn process_text(profile: &Profile, id: ProcessId) -> String {
    let Some(process) = profile.trace.process(id) else { return "Process unknown".to_owned() };
    let bits = if process.wow64 || profile.trace.machine.pointer == Pointer::Bits32 { "32" } else { "64" };
    let name = without_exe(process.label());
    let mut text = match process.pid {
        NO_ID => format!("Process{bits} {name}"),
        pid => format!("Process{bits} {name} ({pid})"),
    };
    if let Some(arguments) = arguments(&process.command_line) {
        text += &format!(" Args: {arguments}");
    }
    text
}

/// What follows the program in a command line.
fn arguments(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(_, rest)| rest),
        None => line.split_once(' ').map(|(_, rest)| rest),
    };
    rest.map(str::trim).filter(|rest| !rest.is_empty())
}

fn thread_text(
    profile: &Profile,
    threads: &FxHashMap<(u32, u32), &str>,
    process: ProcessId,
    tid: u32,
    spent: i64,
) -> String {
    let pid = profile.trace.process(process).map_or(NO_ID, |process| process.pid);
    let mut text = format!("Thread ({tid})");
    let milliseconds = spent.saturating_add(5_000) / 10_000;
    if milliseconds > 0 {
        text += &format!(" CPU={milliseconds}ms");
    }
    if let Some(name) = threads.get(&(pid, tid)) {
        text += &format!(" ({name})");
    }
    text
}

/// The paths of assemblies without their endings, by the names that their methods have.
fn assemblies(profile: &Profile) -> FxHashMap<&str, &str> {
    let modules = profile.trace.code.modules().iter().rev();
    modules.map(|module| (cut_module_name(module.name()), without_exe(&module.path))).collect()
}

fn frame_text(profile: &Profile, assemblies: &FxHashMap<&str, &str>, frame: &Frame) -> String {
    let image = frame.module.and_then(|module| profile.trace.module(module));
    let image = image.map(|image| without_exe(&image.path));
    let Some(function) = profile.stacks.function_of(frame) else {
        return format!("{}!?", image.unwrap_or("?"));
    };
    let assembly = assemblies.get(&*function.module).copied();
    // Precompiled code is the image's that it is in: `mscorlib.ni`.
    let own = image.or(assembly.filter(|_| frame.category.is_managed()));
    let module = own.unwrap_or(if function.module.is_empty() { "?" } else { &function.module });
    match &function.name {
        FunctionName::Text(name) | FunctionName::Native(name) => format!("{module}!{name}"),
        FunctionName::Method(name) => format!("{module}!{name}"),
        FunctionName::Token(_) | FunctionName::Start(_) => format!("{module}!?"),
    }
}

fn without_exe(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((stem, ending)) if ["exe", "dll"].iter().any(|known| known.eq_ignore_ascii_case(ending)) => stem,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::{arguments, without_exe};

    #[test]
    fn command_lines_begin_with_the_program() {
        assert_eq!(arguments(r#""C:\a b\x.exe" --y 1"#), Some("--y 1"));
        assert_eq!(arguments("x.exe  /q "), Some("/q"));
        assert_eq!(arguments(r#""x.exe""#), None);
        assert_eq!(arguments("x"), None);
        assert_eq!(arguments(r#""unclosed"#), None);
    }

    #[test]
    fn only_the_endings_of_images_are_cut() {
        for (path, name) in
            [(r"C:\a\B.DLL", r"C:\a\B"), ("x.exe", "x"), ("disk.sys", "disk.sys"), ("a.b", "a.b")]
        {
            assert_eq!(without_exe(path), name);
        }
    }
}
