//! Where results go: a file that is whole or not there, or stdout.

mod interrupt;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use etwprof::etl::writer;
use etwprof::report::console;
use etwprof::report::format::{self, Content, Format};
use same_file::Handle;

use super::args::Output;
use super::served;
use super::usage::Usage;
use interrupt::Interrupt;

impl Output {
    /// The file to write; `None` for stdout.
    pub(super) fn file(&self) -> Option<&Path> {
        self.path.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// The format that the flags ask for.
    pub(super) fn format(&self) -> Result<&'static Format> {
        match (self.format, self.file()) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(&console::FORMAT),
            (None, Some(path)) => by_ending(path),
        }
    }

    /// Fails where the file cannot be written, without writing it, and where it is one of `inputs` under whatever name.
    /// Work that takes long or cannot be repeated asks before it begins.
    pub(super) fn check(&self, inputs: &[PathBuf]) -> Result<()> {
        let Some(path) = self.file() else { return Ok(()) };
        // Opening a pipe would wait for its other end.
        if path.is_file() {
            for input in inputs.iter().filter(|input| input.is_file()) {
                if same_file::is_same_file(path, input).unwrap_or(false) {
                    let (path, input) = (path.display(), input.display());
                    bail!(Usage(format!("-o {path} would overwrite {input}; choose another name")));
                }
            }
        }
        let context = || format!("-o: cannot write {}", path.display());
        if path.is_dir() {
            bail!(Usage(format!("-o {}: this is a folder; name a file in it", path.display())));
        }
        let target = behind_links(path).with_context(context)?;
        let folder = folder_of(&target);
        if !folder.is_dir() {
            let (path, folder) = (path.display(), folder.display());
            bail!(Usage(format!(
                "-o: cannot write {path}: there is no folder {folder}; create it, or name another"
            )));
        }
        // A pipe or a device is opened only once there is something to write.
        if target.is_file() {
            OpenOptions::new().write(true).open(&target).with_context(context)?;
        }
        if target.is_file() || !target.exists() {
            // What is written later is written beside it first.
            let interrupt = Interrupt::listen().with_context(context)?;
            let probe = tempfile::Builder::new().prefix(".etwprof-").tempfile_in(folder).map(drop);
            interrupt.obey();
            probe.map_err(without_path).with_context(context)?;
        }
        Ok(())
    }
}

fn by_ending(path: &Path) -> Result<&'static Format> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Format::by_ending(&name).ok_or_else(|| {
        let endings: Vec<&str> =
            format::ALL.iter().filter_map(|format| format.endings.first()).copied().collect();
        let (path, endings) = (path.display(), endings.join(", "));
        Usage(format!("-o {path}: the extension names no format; use one of {endings}, or add -f FORMAT"))
            .into()
    })
}

/// Gives `write` stdout, for text with styles.
pub(super) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    self::write(None, Content::Styled, write)
}

/// Gives `write` the file at `path`, or stdout.
pub(super) fn write(
    path: Option<&Path>,
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let Some(path) = path.filter(|path| !is_stdout(path)) else {
        if served::is_on() {
            let mut text = Vec::new();
            write(&mut text)?;
            served::print(&anstream::adapter::strip_bytes(&text).into_vec());
            return Ok(());
        }
        let mut out: BufWriter<Box<dyn Write>> = BufWriter::new(match content {
            Content::Binary => Box::new(io::stdout().lock()),
            _ => Box::new(anstream::stdout()),
        });
        return write(&mut out).and_then(|()| out.flush()).context("cannot write to stdout");
    };
    let context = || format!("cannot write {}", path.display());
    // A pipe or device takes what it is given; only a plain file can be replaced.
    if path.exists() && !path.is_file() {
        let mut out = BufWriter::new(unstyled(File::create(path).with_context(context)?, content));
        return write(&mut out).and_then(|()| out.flush()).with_context(context);
    }
    write_whole(path, content, write).with_context(context)
}

/// A file takes no styles.
fn unstyled(file: File, content: Content) -> Box<dyn Write> {
    match content {
        Content::Styled => Box::new(anstream::StripStream::new(file)),
        Content::Plain | Content::Binary => Box::new(file),
    }
}

/// Gives `write` a recording to write, which is at `path` when it is whole.
pub(super) fn write_recording(
    path: &Path,
    write: impl FnOnce(&mut dyn writer::Output) -> io::Result<()>,
) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    put_whole(path, |file, interrupt| write(&mut interrupt.guard(file))).with_context(context)
}

/// Writes a file in one go: see [`put_whole`].
fn write_whole(
    path: &Path,
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    put_whole(path, |file, interrupt| {
        let mut out = interrupt.guard(BufWriter::new(unstyled(file, content)));
        write(&mut out).and_then(|()| out.flush())
    })
}

/// Lets `write` write a file beside its place, and moves it there when it is whole. A link stays, and the file that it names
/// is written; a file that may not be written stays, too.
fn put_whole(path: &Path, write: impl FnOnce(File, &Interrupt) -> io::Result<()>) -> io::Result<()> {
    let target = behind_links(path)?;
    let mut builder = tempfile::Builder::new();
    if target.exists() {
        // Whether a new file may take its place is asked of the folder only.
        OpenOptions::new().write(true).open(&target)?;
        builder.permissions(fs::metadata(&target)?.permissions());
    } else {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
    }
    let interrupt = Interrupt::listen()?;
    let file = builder.prefix(".etwprof-").tempfile_in(folder_of(&target)).map_err(without_path)?;
    let written = write(file.reopen()?, &interrupt);
    let moved = written.and_then(|()| file.persist(&target).map_err(|error| error.error));
    interrupt.obey();
    moved.map(drop)
}

/// The system's error without the path that `tempfile` adds: nobody has heard of that file.
fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source()?.downcast_ref::<io::Error>());
    match inner.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}

/// The file that a link, or a chain of links, names; it need not be there.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    const LONGEST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LONGEST {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = folder_of(&path).join(next);
    }
    Err(io::Error::other("its links form a circle"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True for the file that stdout goes to, as `/dev/stdout` may name it: what is there already must stay.
fn is_stdout(path: &Path) -> bool {
    path.is_file() && Handle::from_path(path).is_ok_and(|file| Handle::stdout().is_ok_and(|out| out == file))
}

/// The columns of the terminal that stdout is, if it is one.
pub(super) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (_, columns) = ::console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}
