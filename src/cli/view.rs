//! `etwprof view`: a profile in the browser, served on this machine only.

mod answer;
mod request;
mod server;
mod stop;
mod symbol_api;

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use etwprof::Analysis;
use etwprof::mmap::Mapped;
use etwprof::report::format::{Format, Picture};
use etwprof::report::{page, viewers};
use etwprof::symbols::Limits;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::convert::View;
use super::source::Sources;
use super::usage::Usage;
use super::{args, output, samples, say, strict};
use answer::{Answer, Document, JSON};
use request::Method;
use server::{Server, Site};
use stop::Stop;
use symbol_api::SymbolApi;

/// Where the Firefox Profiler is.
const PROFILER: &str = "https://profiler.firefox.com";
/// Where it finds the profile.
const PROFILE: &str = "/profile.json";

pub(super) fn run(args: &args::View, quiet: bool) -> Result<()> {
    let format: &'static Format = if args.firefox { &viewers::firefox::FORMAT } else { &page::FORMAT };
    let (tree, reading) = (args::Tree::default(), &args.reading);
    let mut view = View::of(format, None, &args.shaping, &tree, &reading.names)?;
    Sources::new(&args.source)?;
    // What is wrong with the port is known before any work.
    let server = Server::listen(args.port).map_err(|error| cannot_listen(args.port, error))?;
    let filter = &reading.filter.samples;
    view.range = (filter.from, filter.to);
    view.chosen = reading.filter.chosen();
    let analysis = samples::open(&args.files, reading, &args::Measure::default(), view.detail, quiet)?;
    let name = args.files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
    let mut document = None;
    view.draw(&analysis, &name, quiet, |picture| {
        document = Some(kept(format, picture).context("cannot make the profile")?);
        Ok(())
    })?;
    let document = document.context("there is no profile")?;
    let symbols = if args.firefox { symbol_api(args, &analysis)? } else { None };
    let reasons = match reading.limits.strict {
        true => strict::reasons(&analysis, !reading.symbols.no_symbols),
        false => Vec::new(),
    };
    drop(analysis);
    let address = address(&server.url(), args.firefox, symbols.is_some());
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    server.serve(Profile { document, is_for_profiler: args.firefox, symbols }).context("cannot serve")?;
    output::print(|out| writeln!(out, "{address}"))?;
    if args.firefox && !quiet {
        say::note(
            "the browser asks whether profiler.firefox.com may reach this device (\"local network\"): click Allow",
        );
    }
    if !args.no_open
        && let Err(error) = open::that_detached(&address)
    {
        say::warning(format_args!("cannot open a browser ({error}); open the address in one"));
    }
    if !quiet {
        say::note(format_args!("serving {name} on this machine only; Ctrl-C ends it"));
    }
    let served = stop.wait().context("cannot wait for Ctrl-C");
    strict::checked(reading.limits.strict, served, || reasons)
}

fn cannot_listen(port: Option<u16>, error: io::Error) -> anyhow::Error {
    match port {
        Some(port) => {
            Usage(format!("--port {port}: cannot listen there: {error}; name another port, or none")).into()
        }
        None => anyhow::Error::new(error).context("cannot listen on 127.0.0.1"),
    }
}

/// A profile, written to a file that has no name.
fn kept(format: &Format, picture: &Picture<'_>) -> io::Result<Document> {
    let file = tempfile::tempfile()?;
    let mut out = BufWriter::new(&file);
    (format.write)(&mut out, picture)?;
    out.flush()?;
    drop(out);
    let packed = format.name == viewers::firefox::FORMAT.name;
    let kind = if packed { JSON } else { "text/html; charset=utf-8" };
    Ok(Document { kind, packed, bytes: Mapped::of(&file)? })
}

/// What answers questions about the symbols of a recording; `None` where no names are wanted.
fn symbol_api(args: &args::View, analysis: &Analysis) -> Result<Option<SymbolApi>> {
    let reading = &args.reading;
    // All that there is to say of the options has been said.
    let Some(options) = reading.symbols.options(true)? else { return Ok(None) };
    let limits = if reading.limits.no_limit { Limits::NONE } else { Limits::default() };
    let store = options.store(&args.files);
    Ok(Some(SymbolApi::new(analysis, store, limits, reading.names.raw_names, args.source.clone())))
}

/// The address to open: our page at `own`, or the Firefox Profiler, with our profile and our symbols.
fn address(own: &str, is_for_profiler: bool, has_symbols: bool) -> String {
    if !is_for_profiler {
        return format!("{own}/");
    }
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let encoded = |url: &str| utf8_percent_encode(url, RESERVED).to_string();
    let profile = encoded(&format!("{own}{PROFILE}"));
    let symbols = if has_symbols { format!("?symbolServer={}", encoded(own)) } else { String::new() };
    format!("{PROFILER}/from-url/{profile}/{symbols}")
}

/// What is served: a page, or a profile with its symbols.
struct Profile {
    document: Document,
    /// For the Firefox Profiler.
    is_for_profiler: bool,
    symbols: Option<SymbolApi>,
}

impl Site for Profile {
    fn friend(&self) -> Option<&'static str> {
        self.is_for_profiler.then_some(PROFILER)
    }

    fn answer(&self, method: Method, path: &str, body: &[u8]) -> Answer<'_> {
        let place = if self.is_for_profiler { PROFILE } else { "/" };
        match (method, &self.symbols) {
            (Method::Get | Method::Head, _) if path == place => Answer::document(&self.document),
            (Method::Post, Some(symbols)) => match symbols.answer(path, body) {
                Some(answer) => Answer::json(answer),
                None => Answer::text(404, "there is nothing here"),
            },
            (Method::Get | Method::Head, _) => Answer::text(404, "there is nothing here"),
            _ => Answer::text(405, "this is not done here").with("Allow", "GET, HEAD"),
        }
    }
}
