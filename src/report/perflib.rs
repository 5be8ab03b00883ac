//! What is wrong with performance counters, as text and as JSON. Cures are commands for people: none of them is run.

use std::io::{self, Write};

use serde::Serialize;

use super::console::DIM;
use super::text::{counted, json, one_line};
use crate::counters::perflib::{self, Kind, Range, Severity, Unchecked};
use crate::counters::trial::{Failure, Step};

/// Findings with all their texts. Fields are only ever added.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The services that were looked at. Names come from outside, and may hold anything.
    pub services: Vec<String>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub unchecked: Vec<Unchecked>,
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The service, and what was found with its evidence.
    #[serde(flatten)]
    pub found: perflib::Finding,
    /// What was found, in words. It may hold names from outside, and so may the others.
    pub what: String,
    /// Where it comes from.
    pub cause: String,
    /// What to do.
    pub cure: String,
}

impl Diagnosis {
    /// The texts of findings.
    pub fn new(found: perflib::Diagnosis) -> Diagnosis {
        let finding = |found: perflib::Finding| {
            let [what, cause, cure] = texts(found.service.as_deref().unwrap_or("SERVICE"), &found.kind);
            Finding { severity: found.kind.severity(), found, what, cause, cure }
        };
        Diagnosis {
            services: found.services,
            findings: found.findings.into_iter().map(finding).collect(),
            unchecked: found.unchecked,
        }
    }

    /// Whether something is wrong, and not only unusual.
    pub fn is_wrong(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity != Severity::Note)
    }
}

/// Writes the findings, the worst first, and how many there are.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    /// Longer names push their line to the right.
    const WIDEST: usize = 32;
    let name = |finding: &Finding| one_line(finding.found.service.as_deref().unwrap_or("(all)")).into_owned();
    let width = diagnosis.findings.iter().map(|finding| name(finding).chars().count()).max();
    let width = width.unwrap_or(0).min(WIDEST);
    for finding in &diagnosis.findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        writeln!(out, "{severity:<7}  {:<width$}  {}", name(finding), one_line(&finding.what))?;
        for (head, text) in [("cause", &finding.cause), ("cure", &finding.cure)] {
            writeln!(out, "{:7}  {:width$}  {DIM}{head:<5}{DIM:#}  {}", "", "", one_line(text))?;
        }
    }
    if !diagnosis.findings.is_empty() {
        writeln!(out)?;
    }
    if !diagnosis.unchecked.is_empty() {
        let words: Vec<_> = diagnosis.unchecked.iter().map(|unchecked| words(*unchecked)).collect();
        writeln!(out, "not checked: {}", words.join("; "))?;
    }
    let findings = match diagnosis.findings.len() as u64 {
        0 => "no findings".to_owned(),
        number => counted(number, "finding", "findings"),
    };
    writeln!(out, "{findings} in {}", counted(diagnosis.services.len() as u64, "service", "services"))
}

/// Writes them as JSON.
///
/// # Errors
/// Those of `out`.
pub fn write_json(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    json(out, diagnosis)
}

fn words(unchecked: Unchecked) -> &'static str {
    match unchecked {
        Unchecked::Files => "the DLLs, which are on the machine of the export",
        Unchecked::Perflib => r"what services have in common, for the key Perflib was not exported",
        Unchecked::Names => r"names of counters, for Perflib\009 was not exported",
        Unchecked::Events => "the event log, which could not be read",
        Unchecked::Trials => "how the DLLs do when they are loaded",
    }
}

/// A name for a command line.
fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("\"{name}\"") } else { name.to_owned() }
}

fn span(Range { first, last }: Range) -> String {
    format!("{first} to {last}")
}

/// A code as Windows' own tools show it, with what it means for a performance DLL where that is known.
fn code(code: u32) -> String {
    let known = match code {
        2 => "file or key not found",
        5 => "access denied",
        21 => "device not ready",
        126 => "the DLL, or one that it needs, is not there",
        127 => "a function is not there",
        193 => "of another width, or no DLL",
        1010 | 1011 => "the registry of counters is damaged",
        0xc000_0005 => "access violation",
        0xc000_0022 => "access denied",
        0xc000_0094 => "division by zero",
        0xc000_00fd => "stack overflow",
        0xc000_0374 => "damaged heap",
        0xc000_0409 => "damaged stack, or a failed check",
        _ => "",
    };
    let number = if code > 0xffff { format!("{code:#x}") } else { code.to_string() };
    if known.is_empty() { format!("error {number}") } else { format!("error {number}, {known}") }
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::NoValue { value } => format!("the registry has no value {value} that can be read"),
        Failure::NotLoaded { code: number } => format!("it does not load ({})", code(*number)),
        Failure::NoExport { function } => format!("it has no function {function}"),
        Failure::Returned { code: number } => format!("it returns {}", code(*number)),
        Failure::Overran => "it writes behind the room that it is given".to_owned(),
        Failure::WrongLengths => "the lengths of what it gives do not fit together".to_owned(),
        Failure::Crashed { code: Some(number) } => format!("it crashes ({})", code(*number)),
        Failure::Crashed { code: None } => "it crashes".to_owned(),
        Failure::Hung { seconds } => format!("it does not return in {seconds} s"),
    }
}

const REBUILD: &str = "`lodctr /R` in an elevated console, in System32 and once more in SysWOW64";

/// What was found, its cause and its cure.
fn texts(service: &str, kind: &Kind) -> [String; 3] {
    let name = quoted(service);
    let reinstall =
        || format!("repair or reinstall the product of {service}; lodctr does not write these values");
    let reload = || {
        format!(
            "`unlodctr {name}`, then `lodctr` with the INI file of the product; if several services are concerned, {REBUILD}"
        )
    };
    let [what, cause, cure] = match kind {
        Kind::AllDisabled { value } => [
            format!(r"all counters of DLLs are switched off: Perflib\Disable Performance Counters is {value}"),
            "somebody, or a tool for \"tuning\", set the value".to_owned(),
            "set the value to 0 or delete it, and restart what reads counters".to_owned(),
        ],
        Kind::AccessDenied => [
            "reading counters is refused to this user (error 5)".to_owned(),
            "the account is no administrator here, nor a member of Performance Monitor Users".to_owned(),
            "use an elevated console, or add the account to Performance Monitor Users and sign in again".to_owned(),
        ],
        Kind::QueryFails { failure } => [
            format!("a query of counters fails: {}", failed(failure)),
            "no DLL fails when it is tried by itself; two may disturb each other".to_owned(),
            "switch off the counters of one service after the other with `lodctr /D:SERVICE`, and try again".to_owned(),
        ],
        Kind::PerflibValue { value, found } => [
            match found {
                Some(found) => format!(r"Perflib\{value} is of type {found} and not REG_DWORD"),
                None => format!(r"Perflib\{value} is missing"),
            },
            "the registry of counters is damaged".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::LastTooLow { value, perflib, of_service } => [
            format!(r"its {value} is {of_service}, but Perflib\{value} is only {perflib}"),
            "the registry of counters is damaged or was restored in part; the next product gets the same indices".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::LastHelp { last_counter, last_help } => [
            format!(r"Perflib\Last Help is {last_help}, but Last Counter is {last_counter}, and help has the index behind it"),
            "a product was installed or removed in part".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::NamesEnd { highest, last_counter } => [
            format!(r"the names of counters end at index {highest}, but Perflib\Last Counter is {last_counter}"),
            "names were lost, or the registry of counters was restored in part".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::NamesDamaged { after, found } => [
            match after {
                Some(after) => format!("the names of counters are damaged behind index {after}: {found:?} is no index"),
                None => format!("the names of counters are damaged: they begin with {found:?}"),
            },
            "a name was lost or is empty, and all behind it is shifted or not there".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::NameOdd { index, name } => [
            format!("index {index} ({name:?}) is odd, and counters have even ones"),
            "an INI file was loaded at a wrong place".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::NameFileMissing { path } => [
            format!("{path} is missing, which has the names of counters"),
            "it was deleted".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::Setting { name: setting, value, usual } => [
            format!("{setting} is {value}; usual is {usual}"),
            "somebody set it".to_owned(),
            "nothing, if it is meant so; else delete the value".to_owned(),
        ],
        Kind::ManifestProgramMissing { provider, path } => [
            format!("{path} is missing, the program of provider {provider}"),
            "a product was removed, and the manifest of its counters is left".to_owned(),
            "repair the product, or load its manifest again with `lodctr /M:MANIFEST FOLDER`".to_owned(),
        ],
        Kind::Disabled { value } => [
            format!("its counters are switched off: Disable Performance Counters is {value}"),
            match value {
                1 => "Windows switched them off after errors, or somebody did".to_owned(),
                4 => "Windows switched them off because the DLL did not load; often it is of 32 bits".to_owned(),
                _ => "Windows or somebody switched them off".to_owned(),
            },
            format!("find the cause first (findings of this service, events of Perflib), then `lodctr /E:{name}`"),
        ],
        Kind::ValuesMissing { values } => [
            format!("the registry has no {}", values.join(", ")),
            "the product is installed in part".to_owned(),
            reinstall(),
        ],
        Kind::ValueType { value, found, wanted } => [
            format!("{value} is of type {found} and not {wanted}"),
            "a setup or a script wrote it so".to_owned(),
            reinstall(),
        ],
        Kind::LibraryMissing { library } => [
            format!("its DLL {library} is not there"),
            "the product was removed or moved, and its registration is left".to_owned(),
            format!("repair the product, or remove what is left with `unlodctr {name}`"),
        ],
        Kind::WrongBits { path, bits, wanted } => [
            format!("its DLL {path} is of {bits} bits, and programs of {wanted} bits cannot load it"),
            "the product has a DLL for other programs only".to_owned(),
            match bits {
                32 => format!("install the product for {wanted} bits, or read it with programs of 32 bits: `mmc /32 perfmon.msc`"),
                _ => format!("install the product for {wanted} bits"),
            },
        ],
        Kind::NotAnImage { path } => [
            format!("{path} is no DLL"),
            "the file is damaged or was replaced".to_owned(),
            reinstall(),
        ],
        Kind::ExportsMissing { path, functions } => [
            format!("its DLL {path} has no {}", functions.join(", ")),
            "the DLL is of another version than its registration".to_owned(),
            reinstall(),
        ],
        Kind::LibraryChanged { path, size, size_before } => [
            format!("{path} has {size} bytes, and had {size_before} when WMI looked at it last"),
            "the product was updated; Windows may not trust the new DLL".to_owned(),
            format!("if its counters are missing: `lodctr /T:{name}`, and `winmgmt /resyncperf` for WMI"),
        ],
        Kind::NeverLoaded { ini } => [
            format!("the names of its counters were never loaded: it has no First Counter, and its INI file is {ini}"),
            "its setup did not run lodctr, or it was unloaded".to_owned(),
            format!("`lodctr {}` in an elevated console, with the folder of the product", quoted(ini)),
        ],
        Kind::RangeInconsistent { first_counter, last_counter, first_help, last_help } => {
            let shown = |index: &Option<u32>| index.map_or("missing".to_owned(), |index| index.to_string());
            [
                format!(
                    "its indices do not fit together: counters {} to {}, help {} to {}",
                    shown(first_counter),
                    shown(last_counter),
                    shown(first_help),
                    shown(last_help)
                ),
                "counters have even indices, each with its help behind it; an INI file was loaded or unloaded in part"
                    .to_owned(),
                reload(),
            ]
        }
        Kind::RangeTooLow { range, base_index } => [
            format!("its indices, {}, are among those of Windows, which end at {base_index}", span(*range)),
            "its values were copied or written by hand, and not by lodctr".to_owned(),
            reload(),
        ],
        Kind::Overlap { range, other, other_range } => [
            format!("its indices, {}, are also those of {other}, {}", span(*range), span(*other_range)),
            "one was installed while the registry of counters was damaged, or was copied from another machine".to_owned(),
            REBUILD.to_owned(),
        ],
        Kind::NamesMissing { range, missing, of } => [
            format!("{missing} of its {of} indices, {}, have no name", span(*range)),
            "the names were lost, or the registry was restored without them".to_owned(),
            reload(),
        ],
        Kind::LinkageType { found } => [
            format!(r"Linkage\Export is of type {found} and not REG_MULTI_SZ"),
            "a setup or a script wrote it so".to_owned(),
            reinstall(),
        ],
        Kind::LinkageMissing { library, others } => [
            format!(r"it has no Linkage\Export, which all {others} others with {library} have"),
            "the key was lost, and the DLL does not know what to count".to_owned(),
            format!("repair the product of {service}, or copy the value from another machine"),
        ],
        Kind::TrialFailed { step, failure } => {
            let step = match step {
                Step::Load => "when its DLL is loaded",
                Step::Open => "in the function Open",
                Step::Collect => "in the function Collect",
                Step::Close => "in the function Close",
            };
            [
                format!("tried by itself, {step}: {}", failed(failure)),
                match failure {
                    Failure::Returned { code: 5 | 0xc000_0022 } => {
                        "the DLL has no right to what it reads; for a service whose account has changed, until all readers \
                         of counters are restarted"
                            .to_owned()
                    }
                    Failure::Returned { .. } => {
                        "the DLL does not find what it reads; perhaps its service does not run".to_owned()
                    }
                    _ => "a fault of the DLL".to_owned(),
                },
                format!("update the product; until then `lodctr /D:{name}` switches its counters off"),
            ]
        }
        Kind::Logged { provider, id, count, last, code: number, texts } => {
            let (meaning, cause) = meaning(*id);
            let number = number.filter(|number| *number != 0).map(|number| format!(" ({})", code(number)));
            [
                format!(
                    "event {id} of {provider}, {} in 7 days, last {last}: {meaning}{} ({})",
                    counted(*count, "time", "times"),
                    number.unwrap_or_default(),
                    texts.join(", ")
                ),
                cause.to_owned(),
                match id {
                    1000 => "add the account to Performance Monitor Users".to_owned(),
                    1017 | 1018 => format!("find the cause first, then `lodctr /E:{name}`"),
                    _ => format!("update or repair the product; until then `lodctr /D:{name}` switches its counters off"),
                },
            ]
        }
    };
    [what, cause, cure]
}

/// What an event of Perflib says, and its cause (Microsoft's lists of these events).
fn meaning(id: u32) -> (&'static str, &'static str) {
    const FAULT: &str = "a fault of the DLL";
    match id {
        1000 => ("access to counters was denied", "the account is no member of Performance Monitor Users"),
        1001 => ("Collect gave more than it had room for", FAULT),
        1002 => ("Collect wrote behind its room", FAULT),
        1003 | 1004 => ("Collect gave wrong lengths", FAULT),
        1005 => ("the DLL has no Open function", "the DLL is of another version than its registration"),
        1006 => ("the DLL has no Collect function", "the DLL is of another version than its registration"),
        1007 => ("the DLL has no Close function", "the DLL is of another version than its registration"),
        1008 => ("Open failed", "the DLL does not find what it reads; perhaps its service does not run"),
        1009 => ("Open crashed", FAULT),
        1010 => ("Collect crashed", FAULT),
        1011 => ("Close crashed", FAULT),
        1013 => ("Collect wrote behind its room and may have damaged the heap", FAULT),
        1014 => ("Collect failed", "the DLL does not find what it reads; perhaps its service does not run"),
        1015 => {
            ("Collect did not return in time", "the DLL waits for something, or the machine is overloaded")
        }
        1016 => ("Collect gave data that are not aligned", FAULT),
        1017 => ("Windows switched the counters off after errors", "what other events of this service say"),
        1018 => (
            "Windows switched the counters off until the reader restarts",
            "what other events of this service say",
        ),
        1019 => ("Collect gave a wrong definition", FAULT),
        1020 => ("Collect asked for more room than it had", "the DLL gives more than expected"),
        1021 | 1022 => {
            ("the DLL is of another width than the reader", "the product has a DLL for other programs only")
        }
        1023 => ("the DLL did not load", "the DLL, or one that it needs, is missing or of another width"),
        _ => ("a failure", "its text in the event viewer"),
    }
}
