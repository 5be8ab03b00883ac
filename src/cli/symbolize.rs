//! `etwprof symbolize`: names of the addresses of one image.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use etwprof::mmap::Mapped;
use etwprof::symbols::beside;
use etwprof::symbols::native::{Location, NativeSymbols};
use etwprof::symbols::pe::Image;
use serde::Serialize;

use super::output;

/// Name addresses of an image: function, inlined calls, file and line
#[derive(Debug, clap::Args)]
pub(crate) struct Symbolize {
    /// Image (.exe, .dll, .sys ...), or a PDB without its image
    image: PathBuf,

    /// Addresses as hexadecimal offsets from the load address, with or without 0x; `-` reads them from stdin
    #[arg(value_name = "RVA", required = true)]
    rvas: Vec<String>,

    /// PDB of the image [default: beside it, or at the path that it names]
    #[arg(long, value_name = "FILE")]
    pdb: Option<PathBuf>,

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
    fn new(rva: u32, location: Option<&'a Location>) -> Self {
        let inlined = location.map_or(&[][..], |location| &location.inlined);
        Entry {
            rva,
            function: location.map(|location| location.function.as_str()),
            offset: location.map(|location| location.offset),
            file: location.and_then(|location| location.file.as_deref()),
            line: location.and_then(|location| location.line),
            inlined: inlined
                .iter()
                .map(|call| Inlined { function: &call.function, file: call.file.as_deref(), line: call.line })
                .collect(),
            source: location.map(|location| location.source.as_str()),
            approximate: location.is_some_and(|location| location.approximate),
        }
    }
}

pub(super) fn run(args: &Symbolize) -> anyhow::Result<()> {
    let rvas = addresses(&args.rvas)?;
    let open = |path: &Path| Mapped::open(path).with_context(|| format!("cannot read {}", path.display()));
    let file = open(&args.image)?;

    let is_pdb = file.starts_with(b"Microsoft C/C++");
    if is_pdb && args.pdb.is_some() {
        bail!("--pdb: {} is a PDB itself; give the image or leave --pdb out", args.image.display());
    }
    let image = match is_pdb {
        true => None,
        false => Some(Image::parse(&file).with_context(|| args.image.display().to_string())?),
    };
    let pdb = match (&image, &args.pdb) {
        (Some(_), Some(path)) => Some(open(path)?),
        (Some(image), None) => {
            let found = beside::find(&args.image, image);
            for (path, rejection) in &found.rejected {
                eprintln!("warning: {} is not used: {rejection}", path.display());
            }
            found.pdb.map(|(_, pdb)| pdb)
        }
        (None, _) => None,
    };
    let bytes = if is_pdb { Some(&*file) } else { pdb.as_deref() };
    let mut symbols = NativeSymbols::open(image.as_ref(), bytes).with_context(|| {
        let path = args.pdb.as_deref().unwrap_or(&args.image);
        format!("cannot use the symbols in {}", path.display())
    })?;

    let locations: Vec<_> = rvas.iter().map(|rva| (*rva, symbols.lookup(*rva))).collect();
    output::write(None, |mut out| {
        if args.json {
            let entries: Vec<_> =
                locations.iter().map(|(rva, found)| Entry::new(*rva, found.as_ref())).collect();
            serde_json::to_writer(&mut out, &entries)?;
            return writeln!(out);
        }
        locations.iter().try_for_each(|(rva, location)| write_line(&mut out, *rva, location.as_ref()))
    })
}

fn addresses(args: &[String]) -> anyhow::Result<Vec<u32>> {
    let mut rvas = Vec::new();
    for arg in args {
        if arg == "-" {
            for line in std::io::stdin().lock().lines() {
                let line = line.context("cannot read addresses from stdin")?;
                for word in line.split_whitespace() {
                    rvas.push(address(word)?);
                }
            }
        } else {
            rvas.push(address(arg)?);
        }
    }
    Ok(rvas)
}

fn address(word: &str) -> anyhow::Result<u32> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    // `from_str_radix` would take a sign.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let rva = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    rva.with_context(|| {
        format!("{word:?} is not an address: expected up to 8 hexadecimal digits, such as 0x1a2b")
    })
}

/// `0x1a2b  inlined (file:1) < function+0x4 (file:2)`
fn write_line(out: &mut impl Write, rva: u32, location: Option<&Location>) -> std::io::Result<()> {
    write!(out, "{rva:#x}\t")?;
    let Some(location) = location else { return writeln!(out, "?") };
    for call in &location.inlined {
        write!(out, "{}", call.function)?;
        write_source(out, call.file.as_deref(), call.line)?;
        write!(out, " < ")?;
    }
    let about = if location.approximate { "~" } else { "" };
    write!(out, "{about}{}+{:#x}", location.function, location.offset)?;
    write_source(out, location.file.as_deref(), location.line)?;
    writeln!(out)
}

fn write_source(out: &mut impl Write, file: Option<&str>, line: Option<u32>) -> std::io::Result<()> {
    match (file, line) {
        (Some(file), Some(line)) => write!(out, " ({file}:{line})"),
        (Some(file), None) => write!(out, " ({file})"),
        (None, _) => Ok(()),
    }
}
