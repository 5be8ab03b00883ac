//! `etwprof symbolize`: names of the addresses of one image.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use etwprof::mmap::Mapped;
use etwprof::report::one_line;
use etwprof::symbols::beside;
use etwprof::symbols::debug_id::DebugId;
use etwprof::symbols::identity;
use etwprof::symbols::key::FileKey;
use etwprof::symbols::lookup::Verdict;
use etwprof::symbols::managed::r2r::R2rError;
use etwprof::symbols::native::{Location, NativeSymbols};
use etwprof::symbols::path::SymbolPath;
use etwprof::symbols::pe::Image;
use etwprof::symbols::precompiled;
use etwprof::symbols::sources::{Sources, Wanted};
use etwprof::symbols::store::Request;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::output::{self, Usage};
use super::symbols;

const EXAMPLES: &str = "\
Examples:
  etwprof symbolize app.exe 0x1a2b 0x3c4d             by the PDB beside it, or from a symbol server
  etwprof symbolize System.Private.CoreLib.dll 5e1f0  by the image's own ReadyToRun tables
  etwprof symbolize app.exe - --json < rvas.txt       many, for scripts";

/// Name addresses of an image: function, inlined calls, file and line
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Symbolize {
    /// Image (.exe, .dll, .sys ...), or a PDB without its image
    image: PathBuf,

    /// Addresses as hexadecimal offsets from the load address, with or without 0x; `-` reads them from stdin
    #[arg(value_name = "RVA", required = true)]
    rvas: Vec<String>,

    /// PDB of the image [default: beside it, at the path that it names, then along --symbols]
    #[arg(long, value_name = "FILE")]
    pdb: Option<PathBuf>,

    /// Look here for the PDB, before _NT_SYMBOL_PATH and in its syntax: a folder, srv*CACHE*URL, ... (repeatable)
    #[arg(long, value_name = "PATH")]
    symbols: Vec<String>,

    /// Ask no symbol server; caches and folders are still looked into
    #[arg(long)]
    offline: bool,

    /// Ask servers again for what they did not have lately
    #[arg(long)]
    retry_failed: bool,

    /// Name precompiled .NET methods as their runtime does
    #[arg(long)]
    raw_names: bool,

    /// Print one JSON array, in the order of the addresses
    #[arg(long)]
    json: bool,
}

/// One address in the JSON output.
#[derive(Serialize)]
struct Entry<'a> {
    rva: u32,
    function: Option<&'a str>,
    offset: Option<u32>,
    file: Option<&'a str>,
    line: Option<u32>,
    url: Option<&'a str>,
    inlined: Vec<Inlined<'a>>,
    source: Option<&'static str>,
    approximate: bool,
}

#[derive(Serialize)]
struct Inlined<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl<'a> Entry<'a> {
    fn new(rva: u32, location: Option<&'a Location>, urls: Option<&'a FxHashMap<String, String>>) -> Self {
        let inlined = location.map_or(&[][..], |location| &location.inlined);
        Entry {
            rva,
            function: location.map(|location| location.function.as_str()),
            offset: location.map(|location| location.offset),
            file: location.and_then(|location| location.file.as_deref()),
            line: location.and_then(|location| location.line),
            url: location.and_then(|location| urls?.get(location.file.as_ref()?)).map(String::as_str),
            inlined: inlined
                .iter()
                .map(|call| Inlined { function: &call.function, file: call.file.as_deref(), line: call.line })
                .collect(),
            source: location.map(|location| location.source.as_str()),
            approximate: location.is_some_and(|location| location.approximate),
        }
    }
}

pub(super) fn run(args: &Symbolize, quiet: bool) -> anyhow::Result<()> {
    // Wrong is wrong, also where nothing is to be looked for.
    symbols::symbol_path(&args.symbols)?;
    let rvas = addresses(&args.rvas)?;
    let open = |path: &Path| Mapped::open(path).with_context(|| format!("cannot read {}", path.display()));
    let file = open(&args.image)?;

    let is_pdb = file.starts_with(b"Microsoft C/C++");
    if is_pdb && args.pdb.is_some() {
        let problem = "is a PDB itself; give the image or leave --pdb out";
        bail!(Usage(format!("--pdb: {} {problem}", args.image.display())));
    }
    let image = match is_pdb {
        true => None,
        false => Some(Image::parse(&file).with_context(|| args.image.display().to_string())?),
    };
    let given = args.pdb.as_deref().map(|path| Ok::<_, anyhow::Error>((path, open(path)?))).transpose()?;
    let of_il = given.as_ref().filter(|(_, bytes)| identity::is_portable(bytes)).map(|(path, _)| *path);
    let methods = match &image {
        // A native PDB that the user gives is what they want.
        Some(image) if image.is_managed() && given.is_some() == of_il.is_some() => {
            methods(args, image, of_il, &rvas, quiet)?
        }
        _ => None,
    };
    let pdb = match (&image, given) {
        (Some(_), Some((_, bytes))) if of_il.is_none() => Some(bytes),
        (Some(image), None) if methods.is_none() => {
            find_pdb(args, image, quiet)?.map(|path| open(&path)).transpose()?
        }
        _ => None,
    };
    let bytes = if is_pdb { Some(&*file) } else { pdb.as_deref() };
    let mut symbols = NativeSymbols::open(image.as_ref(), bytes).with_context(|| {
        let path = args.pdb.as_deref().unwrap_or(&args.image);
        format!("cannot use the symbols in {}", path.display())
    })?;
    let mut lookup = |rva: u32| {
        let method = methods.as_ref().and_then(|methods| methods.locations.get(&rva).cloned());
        method.or_else(|| symbols.lookup(rva))
    };
    let mut locations: Vec<_> = rvas.iter().map(|rva| (*rva, lookup(*rva))).collect();
    let found = locations.iter_mut().filter_map(|(_, location)| location.as_mut());
    match args.raw_names {
        true => precompiled::keep_raw(found),
        false => precompiled::make_readable(found),
    }
    let urls = methods.as_ref().map(|methods| &methods.urls);
    output::write(None, |mut out| {
        if args.json {
            let entries: Vec<_> =
                locations.iter().map(|(rva, found)| Entry::new(*rva, found.as_ref(), urls)).collect();
            serde_json::to_writer(&mut out, &entries)?;
            return writeln!(out);
        }
        locations.iter().try_for_each(|(rva, location)| write_line(&mut out, *rva, location.as_ref()))
    })
}

/// The .NET methods of a precompiled image.
struct Methods {
    locations: FxHashMap<u32, Location>,
    /// Where source files lie on the web.
    urls: FxHashMap<String, String>,
}

/// What the image's own tables and the PDB of its IL say; `None` if it has no ReadyToRun code.
fn methods(
    args: &Symbolize,
    image: &Image<'_>,
    pdb: Option<&Path>,
    rvas: &[u32],
    quiet: bool,
) -> anyhow::Result<Option<Methods>> {
    let mut sources = Sources::default();
    let path = search_path(args)?;
    let here = std::path::absolute(&args.image).context("the current folder")?;
    if let Some(wanted) = Wanted::of_image(image, here) {
        let id = DebugId { guid: wanted.pdb.guid, age: wanted.pdb.age };
        if let Some(given) = pdb
            && let Verdict::Differs(found) = identity::check_pdb(given, id)
        {
            bail!("--pdb: {} is {found}, the image needs {id}", given.display());
        }
        sources.want([Wanted { pdb_here: pdb.map(Path::to_owned), ..wanted }]);
        let talk = symbols::Talk::new(&path, args.offline, quiet);
        let store = symbols::store(&path, args.offline, args.retry_failed);
        sources.find(&store, &|name, state| talk.on(name, state));
        talk.done();
    }
    let found = sources.ask(image, |pdb| {
        let locations = precompiled::locations(image, rvas.iter().copied(), pdb)?;
        let url = |file: &String| Some((file.clone(), pdb?.source_link(file)?));
        let urls = locations.values().filter_map(|location| url(location.file.as_ref()?)).collect();
        Ok::<_, R2rError>(Methods { locations, urls })
    });
    match found {
        Ok(methods) => {
            for report in sources.into_reports().iter().filter(|_| !quiet) {
                symbols::without_lines(report);
            }
            Ok(Some(methods))
        }
        Err(error) => {
            if !quiet {
                anstream::eprintln!("warning: {}: {error}", args.image.display());
            }
            Ok(None)
        }
    }
}

/// Beside the image, then along the symbol path.
fn search_path(args: &Symbolize) -> anyhow::Result<SymbolPath> {
    let image = std::path::absolute(&args.image).context("the current folder")?;
    let path = symbols::symbol_path(&args.symbols)?;
    Ok(match image.parent() {
        Some(folder) => path.behind(folder.to_owned()),
        None => path,
    })
}

/// The PDB of `image`, at the usual places and along the symbol path. What was not found, or is another build's, is
/// said on stderr.
fn find_pdb(args: &Symbolize, image: &Image<'_>, quiet: bool) -> anyhow::Result<Option<PathBuf>> {
    let Some(wanted) = image.native_pdb() else { return Ok(None) };
    let image_path = std::path::absolute(&args.image).context("the current folder")?;
    let path = search_path(args)?;
    let store = symbols::store(&path, args.offline, args.retry_failed);
    let key = FileKey::pdb(&wanted.path, wanted.id.guid.to_bytes(), wanted.id.age);
    let hints = beside::places(&image_path, &wanted);
    let verify = |candidate: &Path| identity::check_pdb(candidate, wanted.id);
    let talk = symbols::Talk::new(&path, args.offline, quiet);
    let request = Request { key: &key, hints: &hints, ask_servers: true, verify: &verify };
    let lookup = store.find_all(&[request], &|_, state| talk.on(wanted.file_name(), state)).pop();
    talk.done();
    let lookup = lookup.unwrap_or_default();
    if !quiet {
        let wrong = lookup.attempts.iter().filter(|attempt| attempt.outcome.is_wrong_file());
        wrong.for_each(symbols::not_used);
        if lookup.found.is_none() {
            anstream::eprintln!("warning: {} was not found ({})", one_line(&key.to_string()), wanted.id);
            for attempt in &lookup.attempts {
                anstream::eprintln!("  {}", one_line(&attempt.to_string()));
            }
        }
    }
    Ok(lookup.found.map(|found| found.path))
}

/// More are not read from stdin: all answers are held until the last name is known.
const MOST_ADDRESSES: usize = 1 << 20;
/// Longer than any address, in bytes.
const LONGEST_WORD: usize = 64;

fn addresses(args: &[String]) -> anyhow::Result<Vec<u32>> {
    // The command line first: what is wrong there needs no input.
    let given: Vec<Option<u32>> = args
        .iter()
        .map(|arg| if arg == "-" { Ok(None) } else { address(arg).map(Some).map_err(Usage) })
        .collect::<Result<_, Usage>>()?;
    let mut rvas = Vec::new();
    for given in given {
        match given {
            Some(rva) => rvas.push(rva),
            None => read_addresses(std::io::stdin().lock(), &mut rvas).context("stdin")?,
        }
    }
    Ok(rvas)
}

/// Adds the addresses in a text, which is read no further than the first word that is none.
fn read_addresses(mut text: impl BufRead, rvas: &mut Vec<u32>) -> anyhow::Result<()> {
    let mut word = Vec::new();
    loop {
        let piece = text.fill_buf().context("cannot read addresses")?;
        let len = piece.len();
        for byte in piece.iter().copied().chain((len == 0).then_some(b'\n')) {
            if !byte.is_ascii_whitespace() {
                word.push(byte);
                anyhow::ensure!(word.len() <= LONGEST_WORD, not_an_address(&String::from_utf8_lossy(&word)));
                continue;
            }
            if !word.is_empty() {
                anyhow::ensure!(
                    rvas.len() < MOST_ADDRESSES,
                    "more than {MOST_ADDRESSES} addresses; split them"
                );
                rvas.push(address(&String::from_utf8_lossy(&word)).map_err(anyhow::Error::msg)?);
                word.clear();
            }
        }
        text.consume(len);
        if len == 0 {
            return Ok(());
        }
    }
}

fn address(word: &str) -> Result<u32, String> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    // `from_str_radix` would take a sign.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let rva = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    rva.ok_or_else(|| not_an_address(word))
}

fn not_an_address(word: &str) -> String {
    format!("{word:?} is not an address: expected up to 8 hexadecimal digits, such as 0x1a2b")
}

/// `0x1a2b  inlined (file:1) < function+0x4 (file:2)`
fn write_line(out: &mut impl Write, rva: u32, location: Option<&Location>) -> std::io::Result<()> {
    write!(out, "{rva:#x}\t")?;
    let Some(location) = location else { return writeln!(out, "?") };
    for call in &location.inlined {
        write!(out, "{}", one_line(&call.function))?;
        write_source(out, call.file.as_deref(), call.line)?;
        write!(out, " < ")?;
    }
    let about = if location.approximate { "~" } else { "" };
    write!(out, "{about}{}+{:#x}", one_line(&location.function), location.offset)?;
    write_source(out, location.file.as_deref(), location.line)?;
    writeln!(out)
}

fn write_source(out: &mut impl Write, file: Option<&str>, line: Option<u32>) -> std::io::Result<()> {
    match (file.map(one_line), line) {
        (Some(file), Some(line)) => write!(out, " ({file}:{line})"),
        (Some(file), None) => write!(out, " ({file})"),
        (None, _) => Ok(()),
    }
}
