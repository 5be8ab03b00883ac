//! Findings, as facts.

use serde::Serialize;

use crate::counters::trial::{Failure, Step};

/// Something that is wrong or unusual.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The service; `None` for the whole machine.
    pub service: Option<String>,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Counters are missing or wrong.
    Error,
    /// Something contradicts what the documentation asks for, or was logged.
    Warning,
    /// Somebody has set it so; nothing need be wrong.
    Note,
}

/// The indices of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The first, which is that of an object.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// What was found, with the values that show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// All counters of DLLs are switched off.
    AllDisabled {
        /// `Disable Performance Counters` of Perflib.
        value: u32,
    },
    /// Reading counters is refused to this user.
    AccessDenied,
    /// A query of all counters fails, though no DLL does by itself.
    QueryFails {
        /// How.
        #[serde(flatten)]
        failure: Failure,
    },
    /// Perflib lacks a value that it needs, or has one of another type.
    PerflibValue {
        /// Its name.
        value: &'static str,
        /// The type that it has; `None` if it is missing.
        found: Option<String>,
    },
    /// Perflib's highest index is lower than that of a service.
    LastTooLow {
        /// `Last Counter` or `Last Help`.
        value: &'static str,
        /// What Perflib has.
        perflib: u32,
        /// What the service has.
        of_service: u32,
    },
    /// `Last Help` of Perflib is not the index behind `Last Counter`.
    LastHelp {
        /// `Last Counter`.
        last_counter: u32,
        /// `Last Help`.
        last_help: u32,
    },
    /// The names end before the highest index.
    NamesEnd {
        /// The highest index with a name.
        highest: u32,
        /// `Last Counter` of Perflib.
        last_counter: u32,
    },
    /// In place of an index the names have something else, or they end within the value.
    NamesDamaged {
        /// The last index before it.
        after: Option<u32>,
        /// What is there.
        found: String,
    },
    /// A name has an odd index, which belong to help.
    NameOdd {
        /// The index.
        index: u32,
        /// The name.
        name: String,
    },
    /// A file with the names is missing.
    NameFileMissing {
        /// Its path.
        path: String,
    },
    /// A setting differs from what is usual.
    Setting {
        /// Its name.
        name: &'static str,
        /// What it is.
        value: u32,
        /// What is usual.
        usual: u32,
    },
    /// The program of a provider with a manifest is gone.
    ManifestProgramMissing {
        /// The GUID of the provider.
        provider: String,
        /// The path.
        path: String,
    },
    /// The service's counters are switched off.
    Disabled {
        /// `Disable Performance Counters`.
        value: u32,
    },
    /// Values are missing that every DLL needs.
    ValuesMissing {
        /// Their names.
        values: Vec<&'static str>,
    },
    /// A value has another type than it must have.
    ValueType {
        /// Its name.
        value: &'static str,
        /// Its type.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// There is no such DLL.
    LibraryMissing {
        /// `Library`.
        library: String,
    },
    /// The DLL is of another width than the programs that read counters.
    WrongBits {
        /// Where it is.
        path: String,
        /// Its width.
        bits: u32,
        /// The width of this program.
        wanted: u32,
    },
    /// The DLL is no image.
    NotAnImage {
        /// Where it is.
        path: String,
    },
    /// The DLL lacks functions.
    ExportsMissing {
        /// Where it is.
        path: String,
        /// The functions that the registry names and it lacks.
        functions: Vec<String>,
    },
    /// The DLL is another than the one that was looked at last.
    LibraryChanged {
        /// Where it is.
        path: String,
        /// Its size.
        size: u64,
        /// The size then.
        size_before: u32,
    },
    /// The names of its counters were never loaded.
    NeverLoaded {
        /// `PerfIniFile`.
        ini: String,
    },
    /// The four values of its range do not fit together.
    RangeInconsistent {
        /// `First Counter`.
        first_counter: Option<u32>,
        /// `Last Counter`.
        last_counter: Option<u32>,
        /// `First Help`.
        first_help: Option<u32>,
        /// `Last Help`.
        last_help: Option<u32>,
    },
    /// The range begins among the indices of Windows itself.
    RangeTooLow {
        /// The range.
        #[serde(flatten)]
        range: Range,
        /// `Base Index` of Perflib.
        base_index: u32,
    },
    /// Two services have the same indices.
    Overlap {
        /// The range.
        #[serde(flatten)]
        range: Range,
        /// The other service.
        other: String,
        /// Its range.
        other_range: Range,
    },
    /// Counters of the range have no names.
    NamesMissing {
        /// The range.
        #[serde(flatten)]
        range: Range,
        /// How many have none.
        missing: u32,
        /// Of how many.
        of: u32,
    },
    /// `Linkage\Export` has another type than several texts.
    LinkageType {
        /// The type.
        found: String,
    },
    /// `Linkage\Export` is missing, and all other services with this DLL have it.
    LinkageMissing {
        /// `Library`.
        library: String,
        /// How many others.
        others: usize,
    },
    /// The DLL failed when it was tried by itself.
    TrialFailed {
        /// In which step.
        step: Step,
        /// How.
        #[serde(flatten)]
        failure: Failure,
    },
    /// Windows has logged that the counters of the service failed.
    Logged {
        /// The provider of the event.
        provider: String,
        /// The id of the event.
        id: u32,
        /// How often.
        count: u64,
        /// When last, UTC.
        last: String,
        /// The code in the last one.
        code: Option<u32>,
        /// The texts in the last one: a service and a DLL among them.
        texts: Vec<String>,
    },
}

impl Kind {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Kind::AllDisabled { .. }
            | Kind::AccessDenied
            | Kind::QueryFails { .. }
            | Kind::PerflibValue { .. }
            | Kind::LastTooLow { .. }
            | Kind::NamesDamaged { .. }
            | Kind::Disabled { .. }
            | Kind::ValuesMissing { .. }
            | Kind::LibraryMissing { .. }
            | Kind::WrongBits { .. }
            | Kind::NotAnImage { .. }
            | Kind::ExportsMissing { .. }
            | Kind::Overlap { .. }
            | Kind::NamesMissing { .. }
            | Kind::TrialFailed { .. } => Severity::Error,
            // Only its help is wrong.
            Kind::RangeInconsistent { first_counter: Some(first), last_counter: Some(last), .. }
                if first.is_multiple_of(2) && first <= last =>
            {
                Severity::Warning
            }
            Kind::RangeInconsistent { .. } => Severity::Error,
            Kind::LastHelp { .. }
            | Kind::NamesEnd { .. }
            | Kind::NameOdd { .. }
            | Kind::NameFileMissing { .. }
            | Kind::ManifestProgramMissing { .. }
            | Kind::ValueType { .. }
            | Kind::NeverLoaded { .. }
            | Kind::RangeTooLow { .. }
            | Kind::LinkageType { .. }
            | Kind::LinkageMissing { .. }
            | Kind::Logged { .. } => Severity::Warning,
            Kind::Setting { .. } | Kind::LibraryChanged { .. } => Severity::Note,
        }
    }
}
