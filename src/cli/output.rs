//! Where results go: a file that is whole or not there, or stdout.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::args::{Format, Output};

/// The command line is wrong in a way that clap does not see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

impl Output {
    /// The format that the flags ask for.
    pub(super) fn format(&self) -> Result<Format> {
        match (self.format, &self.path) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(Format::Tree),
            (None, Some(path)) => by_ending(path),
        }
    }
}

fn by_ending(path: &Path) -> Result<Format> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    const ENDINGS: [(&str, Format); 5] = [
        (".tree.txt", Format::Tree),
        (".tree", Format::Tree),
        (".svg", Format::Svg),
        (".folded", Format::Folded),
        (".txt", Format::Folded),
    ];
    match ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)) {
        Some((_, format)) => Ok(*format),
        None => bail!(Usage(format!(
            "-o {}: the ending names no format; use .svg, .folded, .txt or .tree.txt, or say -f FORMAT",
            path.display()
        ))),
    }
}

/// Fails where a file cannot be written, without writing it: for work that takes long or cannot be repeated.
pub(super) fn check(path: &Path) -> Result<()> {
    let context = || format!("-o: cannot write {}", path.display());
    if path.is_dir() {
        bail!("-o: {} is a folder; name a file in it", path.display());
    }
    let directory = directory_of(path);
    if !directory.is_dir() {
        bail!(
            "-o: cannot write {}: there is no folder {}; create it, or name another",
            path.display(),
            directory.display()
        );
    }
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    if path.exists() {
        File::options().write(true).open(path).with_context(context)?;
    }
    // What is written later is written beside it first.
    tempfile::Builder::new().prefix(".etwprof-").tempfile_in(directory).with_context(context)?;
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Gives `write` the file at `path`, or stdout. A file is written beside its place and moved there when it is whole.
pub(super) fn write(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let Some(path) = path else {
        let mut out = BufWriter::new(anstream::stdout());
        write(&mut out)?;
        return Ok(out.flush()?);
    };
    let context = || format!("cannot write {}", path.display());
    // A pipe or device takes what it is given; only a plain file can be replaced.
    if path.exists() && !path.is_file() {
        let mut out = BufWriter::new(anstream::StripStream::new(File::create(path).with_context(context)?));
        write(&mut out).and_then(|()| out.flush()).with_context(context)?;
        return Ok(());
    }
    let directory = directory_of(path);
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.prefix(".etwprof-").tempfile_in(directory).with_context(context)?;
    let handle = file.reopen().with_context(context)?;
    let mut out = BufWriter::new(anstream::StripStream::new(handle));
    write(&mut out).and_then(|()| out.flush()).with_context(context)?;
    drop(out);
    file.persist(path).map_err(|error| error.error).with_context(context)?;
    Ok(())
}

/// The columns of the terminal that stdout is, if it is one.
pub(super) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}
