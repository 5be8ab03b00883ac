//! `etwprof symbolize`: names of the addresses of one image.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use etwprof::SymbolOptions;
use etwprof::mmap::Mapped;
use etwprof::report::one_line;
use etwprof::symbols::find::beside;
use etwprof::symbols::find::key::FileKey;
use etwprof::symbols::find::lookup::Checked;
use etwprof::symbols::find::request::{Progress, Request};
use etwprof::symbols::find::verify;
use etwprof::symbols::il_images::IlImage;
use etwprof::symbols::il_pdbs::{IlPdbs, WantedPdb};
use etwprof::symbols::read::dotnet::r2r::{R2rError, R2rImage, own_metadata};
use etwprof::symbols::read::location::Location;
use etwprof::symbols::read::native::NativeSymbols;
use etwprof::symbols::read::pdb;
use etwprof::symbols::read::pe::Image;
use etwprof::symbols::read::precompiled;
use etwprof::symbols::{Store, StoreOptions, SymbolPath};
use serde::Serialize;

use super::args::Symbolize;
use super::usage::{self, Usage};
use super::{output, say, symbols};

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
    fn new(rva: u32, location: Option<&'a Location>, urls: Option<&'a HashMap<String, String>>) -> Self {
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
            source: location.map(|location| location.evidence.as_str()),
            approximate: location.is_some_and(|location| location.approximate),
        }
    }
}

pub(super) fn run(args: &Symbolize, quiet: bool) -> anyhow::Result<()> {
    let options = args.symbols.options(quiet)?;
    let rvas = addresses(&args.rvas)?;
    let open = |path: &Path| {
        Mapped::open(path).map(Mapped::for_lookups).map_err(|error| usage::cannot("open", path, &error))
    };
    let file = open(&args.image)?;

    let is_pdb = file.starts_with(pdb::MAGIC);
    if is_pdb && args.pdb.is_some() {
        let problem = "is a PDB itself; name the image, or omit --pdb";
        bail!(Usage(format!("--pdb: {} {problem}", args.image.display())));
    }
    let image = match is_pdb {
        true => None,
        false => Some(Image::parse(&file).with_context(|| args.image.display().to_string())?),
    };
    let given = args.pdb.as_deref().map(|path| Ok::<_, anyhow::Error>((path, open(path)?))).transpose()?;
    let of_il = given.as_ref().filter(|(_, bytes)| verify::is_portable(bytes)).map(|(path, _)| *path);
    let methods = match &image {
        // A native PDB that the user gives is what they want.
        Some(image) if given.is_some() == of_il.is_some() => {
            methods(args, options.as_ref(), image, of_il, &rvas, quiet)?
        }
        _ => None,
    };
    let pdb = match (&image, given) {
        (Some(_), Some((_, bytes))) if of_il.is_none() => Some(bytes),
        (Some(image), None) if methods.is_none() => {
            find_pdb(args, options.as_ref(), image, quiet)?.map(|path| open(&path)).transpose()?
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
        symbols.better(rva, method)
    };
    // In ascending order, each function is read once.
    let mut sorted: Vec<_> = rvas.iter().copied().enumerate().collect();
    sorted.sort_unstable_by_key(|(_, rva)| *rva);
    let mut locations: Vec<_> =
        sorted.into_iter().map(|(number, rva)| (number, (rva, lookup(rva)))).collect();
    locations.sort_unstable_by_key(|(number, _)| *number);
    let mut locations: Vec<_> = locations.into_iter().map(|(_, answer)| answer).collect();
    let found = locations.iter_mut().filter_map(|(_, location)| location.as_mut());
    match args.raw_names {
        true => precompiled::keep_raw(found),
        false => precompiled::make_readable(found),
    }
    if !args.raw_names {
        locations.iter_mut().filter_map(|(_, location)| location.as_mut()).for_each(Location::shorten);
    }
    let urls = methods.as_ref().map(|methods| &methods.urls);
    output::print(|mut out| {
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
    locations: HashMap<u32, Location>,
    /// Where source files lie on the web.
    urls: HashMap<String, String>,
}

/// What the image's own tables, the IL that lies apart and the PDBs of the IL say; `None` if it has no ReadyToRun code.
fn methods(
    args: &Symbolize,
    options: Option<&SymbolOptions>,
    image: &Image<'_>,
    pdb: Option<&Path>,
    rvas: &[u32],
    quiet: bool,
) -> anyhow::Result<Option<Methods>> {
    let mut tables = match R2rImage::parse(image) {
        Ok(tables) => tables,
        Err(R2rError::NotManaged) => return Ok(None),
        Err(error) => {
            if !quiet {
                say::warning(format_args!("{}: {error}", args.image.display()));
            }
            return Ok(None);
        }
    };
    let path = search_path(args, options)?.or_else(|| pdb.map(|_| SymbolPath::default()));
    let here = std::path::absolute(&args.image).context("the current folder")?;
    let store = options.map_or_else(StoreOptions::default, |options| options.store.clone());
    let talk = path.as_ref().map(|path| symbols::Talk::new(path, store.offline, quiet));
    let store = path.as_ref().map(|path| Store::new(path, store));
    let on = |name: &str, state: Progress<'_>| talk.iter().for_each(|talk| talk.on(name, state));

    let name = here.file_name().unwrap_or_default().to_string_lossy();
    let mut il = IlImage::wanted(&tables, &here, &name, rvas.iter().copied(), |_| Vec::new());
    if let Some(store) = &store {
        IlImage::find(&mut il, store, false, &on);
    }
    let files: Vec<Mapped> =
        il.iter().filter_map(IlImage::path).filter_map(|path| Mapped::open(path).ok()).collect();
    let images: Vec<Image<'_>> = files.iter().filter_map(|bytes| Image::parse(bytes).ok()).collect();
    for metadata in images.iter().filter_map(|image| own_metadata(image).ok()) {
        tables.add_reference(metadata);
    }

    let mut sources = IlPdbs::default();
    if let (Some(wanted), Some(store)) = (WantedPdb::of_image(image, here), &store) {
        let id = wanted.pdb.id;
        if let Some(given) = pdb
            && let Checked::Differs(found) = verify::check_pdb(given, id)
        {
            bail!("--pdb: {} is {found}, but the image needs {id}", given.display());
        }
        sources.want([WantedPdb { pdb_here: pdb.map(Path::to_owned), ..wanted }]);
        let apart = images.iter().zip(il.iter().filter_map(IlImage::path));
        sources.want(apart.filter_map(|(image, path)| WantedPdb::of_image(image, path.to_owned())));
        sources.find(store, &on);
    }
    talk.iter().for_each(symbols::Talk::done);
    let pdbs = sources.of_images(std::iter::once(image).chain(&images));
    let locations = precompiled::locations(&tables, rvas.iter().copied(), &pdbs);
    let link = |file: &String| pdbs.values().find_map(|pdb| pdb.source_link(file));
    let url = |file: &String| Some((file.clone(), link(file)?));
    let urls = locations.values().filter_map(|location| url(location.file.as_ref()?)).collect();
    drop(pdbs);
    if !quiet {
        il.iter().filter(|il| il.path().is_none()).for_each(symbols::without_il);
        sources.into_reports().iter().for_each(symbols::without_lines);
    }
    Ok(Some(Methods { locations, urls }))
}

/// Beside the image, then along the symbol path; `None` if nothing is to be looked for.
fn search_path(args: &Symbolize, options: Option<&SymbolOptions>) -> anyhow::Result<Option<SymbolPath>> {
    let image = std::path::absolute(&args.image).context("the current folder")?;
    Ok(options.map(|options| options.path.clone()).map(|path| match image.parent() {
        Some(folder) => path.behind(folder.to_owned()),
        None => path,
    }))
}

/// The PDB of `image`, at the usual places and along the symbol path. What was not found, or is another build's, is
/// said on stderr.
fn find_pdb(
    args: &Symbolize,
    options: Option<&SymbolOptions>,
    image: &Image<'_>,
    quiet: bool,
) -> anyhow::Result<Option<PathBuf>> {
    let (Some(path), Some(options)) = (search_path(args, options)?, options) else { return Ok(None) };
    let Some(wanted) = image.native_pdb() else { return Ok(None) };
    let image_path = std::path::absolute(&args.image).context("the current folder")?;
    let store = Store::new(&path, options.store.clone());
    let key = FileKey::pdb(&wanted.path, wanted.id);
    let hints = beside::places(&image_path, &wanted);
    let verify = |candidate: &Path| verify::check_pdb(candidate, wanted.id);
    let talk = symbols::Talk::new(&path, options.store.offline, quiet);
    let shown = key.to_string();
    let request = Request { key, hints, ask_servers: true, verify: Box::new(verify) };
    let lookup = store.find_all(&[request], &|name, state| talk.on(name, state)).pop();
    talk.done();
    let lookup = lookup.unwrap_or_default();
    if !quiet {
        let wrong = lookup.attempts.iter().filter(|attempt| attempt.outcome.is_wrong_file());
        wrong.for_each(symbols::not_used);
        if lookup.found.is_none() {
            say::warning(format_args!("cannot find {shown} ({})", wanted.id));
            for attempt in &lookup.attempts {
                say::note(format_args!("  {attempt}"));
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
                    "more than {MOST_ADDRESSES} addresses; split the input"
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
