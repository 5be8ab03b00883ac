//! The recipes that PerfView lists by name.

use std::borrow::Cow;

use super::recipe::{List, PatternCause, PatternError};

/// A list of groups with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name, with the brackets.
    pub name: &'static str,
    /// Its items.
    pub text: &'static str,
}

/// Groups by module, with a node for each entry. PerfView's default for CPU time.
pub(super) const MODULE_ENTRIES: &str = "{%}!=>module $1";

/// What stands for `[Just My App]`, which depends on the program.
const JUST_MY_APP: &str = "[Just My App]";

/// What `[Just My App]` is for a worker process of IIS.
const ASP_NET: &str = r"\Temporary ASP.NET Files\->;!dynamicClass.S->;!=>OTHER";

/// Programs that host code of others: their own folder says nothing about it.
const HOSTS: [&str; 3] = ["WWAHost", "iexplore", "dotnet"];

/// The groupings that PerfView lists, but `[Just My App]`: [`just_my_app`].
pub fn presets() -> &'static [Preset] {
    &[
        Preset { name: "[no grouping]", text: "" },
        Preset {
            name: "[group CLR/OS entries]",
            text: r"\Temporary ASP.NET Files\->;v4.0.30319\%!=>CLR;v2.0.50727\%!=>CLR;mscoree=>CLR;\mscorlib.*!=>LIB;\System.Xaml.*!=>WPF;\System.*!=>LIB;Presentation%=>WPF;WindowsBase%=>WPF;system32\*!=>OS;syswow64\*!=>OS;{%}!=> module $1",
        },
        Preset { name: "[group modules]", text: "{%}!->module $1" },
        Preset { name: "[group module entries]", text: MODULE_ENTRIES },
        Preset { name: "[group full path module entries]", text: "{*}!=>module $1" },
        Preset { name: "[group class entries]", text: "{%!*}.%(=>class $1;{%!*}::=>class $1" },
        Preset { name: "[group classes]", text: "{%!*}.%(->class $1;{%!*}::->class $1" },
        Preset { name: "[fold threads]", text: "Thread -> AllThreads" },
        Preset { name: "[ASP.NET Just My App]", text: ASP_NET },
        Preset {
            name: "[Nuget]",
            text: r"System.%!=>OTHER;Microsoft.%!=>OTHER;mscorlib%=>OTHER;v4.0.30319%\%!=>OTHER;system32\*!=>OTHER;syswow64\*!=>OTHER",
        },
        Preset { name: "[Ignore PID/TID]", text: "^Process% {%}->$1;^Thread->Thread;" },
        Preset { name: "[Ignore Paths]", text: "^Process% {%}->$1;^Thread->Thread;{%}!{*}->$1!$2" },
        Preset {
            name: "[group CLR/OS ignore paths]",
            text: r"^Process% {%}->$1;^Thread->Thread;\Temporary ASP.NET Files\->;v4.0.30319\%!=>CLR;v2.0.50727\%!=>CLR;mscoree=>CLR;\mscorlib.*!=>LIB;\System.Xaml.*!=>WPF;\System.*!=>LIB;Presentation%=>WPF;WindowsBase%=>WPF;system32\*!=>OS;syswow64\*!=>OS;{%}!=> module $1;{%}!{*}->$1!$2",
        },
    ]
}

/// The items of `[Just My App]`: all code from outside the folder of the program is `OTHER`. `None` for a program that
/// hosts code of others, and for one without a folder.
pub fn just_my_app(program: &str) -> Option<Cow<'static, str>> {
    let (folder, file) = program.rsplit_once(['\\', '/'])?;
    let name = match file.rsplit_once('.') {
        Some((name, ending)) if ending.eq_ignore_ascii_case("exe") => name,
        _ => file,
    };
    if name.eq_ignore_ascii_case("w3wp") {
        return Some(ASP_NET.into());
    }
    let is_iis = name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("IISAspHost"));
    if is_iis || HOSTS.iter().any(|host| name.eq_ignore_ascii_case(host)) {
        return None;
    }
    let folder =
        folder.rsplit(['\\', '/']).next().filter(|folder| !folder.is_empty() && !folder.ends_with(':'))?;
    Some(format!(r"\{folder}\%!->;!=>OTHER").into())
}

/// GroupPats without the comment in brackets at its start. If there is nothing else, the preset of that name.
pub(super) fn expanded<'t>(text: &'t str, program: Option<&str>) -> Result<Cow<'t, str>, PatternError> {
    let text = text.trim();
    let Some((comment, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
        return Ok(text.into());
    };
    if !rest.trim().is_empty() {
        return Ok(rest.trim().into());
    }
    let is_named = |name: &str| name.trim_matches(['[', ']']).eq_ignore_ascii_case(comment.trim());
    if is_named(JUST_MY_APP) {
        return Ok(program.and_then(just_my_app).unwrap_or(MODULE_ENTRIES.into()));
    }
    let preset = presets().iter().find(|preset| is_named(preset.name));
    let no_preset =
        || PatternError { list: List::Group, item: text.to_owned(), cause: PatternCause::NoPreset };
    Ok(preset.ok_or_else(no_preset)?.text.into())
}
