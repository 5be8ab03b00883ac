//! The arguments of `trim`.

use std::path::PathBuf;

use clap::Args;
use etwprof::guid::Guid;
use etwprof::profile::{Matcher, Moment};

use super::filter::Processes;
use crate::cli::time;

const EXAMPLES: &str = "\
Examples:
  etwprof trim trace.etl -o small.etl --name orders       one program, all of its profile
  etwprof trim trace.etl -o part.etl --from 10s --to 20s  ten seconds
  etwprof trim x.etl x.kernel.etl -o all.etl              parts as one file
  etwprof trim trace.etl.zip -o trace.etl --no-compress   for tools that read no compressed file
  etwprof trim trace.etl -o small.etl --pid 42 --json | jq .bytes_out
  etwprof trim trace.etl -o vendor.etl --name orders --anonymize

Without a filter every event is kept. Filters combine: an event stays if all of
them keep it. With --pid or --name, what a profile of these processes needs
stays: their events, stacks, images and compiled code, the threads that they
switched with, and kernel modules. With --from, --to or --provider, processes,
threads, images and compiled code stay whatever the time.

--anonymize leaves out events of unknown layout: all but those of the kernel,
.NET and JavaScript that profiles need.";

/// Making a recording smaller.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trim {
    /// The recording: .etl files (parts of one recording), .etl.zip or .diagsession
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Write to this file
    #[arg(short = 'o', long = "output", value_name = "OUT", required = true, help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Compress the file [default: if a part of the recording is]
    #[arg(long, overrides_with = "no_compress", help_heading = "Output")]
    pub(crate) compress: bool,

    /// Do not compress the file
    #[arg(long, overrides_with = "compress", help_heading = "Output")]
    pub(crate) no_compress: bool,

    /// Look in this folder and below for image files (.dll, .exe), and add the ids of their PDBs where the recording has none
    /// (repeatable)
    ///
    /// A recording that was not merged on its machine lacks them, and without them no PDB is found. A file is taken if its
    /// size and its link time or checksum are those of the recording.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) images: Vec<PathBuf>,

    /// Replace names of users, machines, folders and files, and command lines
    ///
    /// Each word is replaced by another of the same length, the same word always by the same. Names of programs, DLLs,
    /// drivers, PDBs, and of .NET types and methods stay, as do folders that every Windows has: profiles look the same, and
    /// symbols are found. Events whose layout etwprof does not know are left out: all but those of the kernel, .NET and
    /// JavaScript that profiles need.
    #[arg(long, help_heading = "Output")]
    pub(crate) anonymize: bool,

    /// Print JSON: sizes, events, and what was dropped
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) processes: Processes,

    /// Keep events from this time on: 10, 1.5s, 200ms, 1m30s from the start, or a time of day, 09:00:14.5
    #[arg(long, value_name = "TIME", value_parser = time::moment, help_heading = "Filters")]
    pub(crate) from: Option<Moment>,

    /// Keep events before this time
    #[arg(long, value_name = "TIME", value_parser = time::moment, help_heading = "Filters")]
    pub(crate) to: Option<Moment>,

    /// Keep the events of this provider (repeatable): 'Microsoft-Windows-DotNET*', PerfInfo, or a GUID
    ///
    /// `etwprof events` lists the providers of a recording. Patterns are those of --name.
    #[arg(long, value_name = "PROVIDER", value_parser = provider, help_heading = "Filters")]
    pub(crate) provider: Vec<Provider>,
}

/// A provider, or the task of kernel events.
#[derive(Clone, Debug)]
pub(crate) enum Provider {
    /// By its GUID.
    Guid(Guid),
    /// By its name.
    Name(Matcher),
}

/// A GUID, with or without braces, or a name.
fn provider(text: &str) -> Result<Provider, String> {
    let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let groups: Vec<usize> = bare.split('-').map(str::len).collect();
    let digits: String = bare.split('-').collect();
    if groups != [8, 4, 4, 4, 12] || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return match text {
            "" => Err("expected the name or the GUID of a provider".to_owned()),
            name => Matcher::parse(name).map(Provider::Name).map_err(|error| error.to_string()),
        };
    }
    let printed = u128::from_str_radix(&digits, 16).map_err(|error| error.to_string())?;
    Ok(Provider::Guid(Guid::from_u128(printed)))
}

#[cfg(test)]
mod tests {
    use etwprof::guids::CLR;

    use super::{Provider, provider};

    #[test]
    fn providers_go_by_guid_or_name() {
        let guid = "E13C0D23-ccbc-4e12-931b-d9cc2eee27e4";
        for text in [guid, &format!("{{{guid}}}")] {
            assert!(matches!(provider(text), Ok(Provider::Guid(CLR))), "{text}");
        }
        let is_named =
            |text, name| matches!(provider(text), Ok(Provider::Name(wanted)) if wanted.matches(name));
        assert!(is_named("perfinfo", "PerfInfo") && !is_named("perf", "PerfInfo"));
        assert!(is_named("Microsoft-Windows-DotNET*", "Microsoft-Windows-DotNETRuntime"));
        assert!(provider("").is_err() && provider("/(/").is_err());
    }
}
