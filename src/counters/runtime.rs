//! The counters that a .NET program keeps itself: EventCounters, which its runtime sends to whoever asks.
//!
//! A runtime of .NET Core 3.0 or later listens on a socket or, on Windows, a named pipe (the *diagnostics IPC* of
//! dotnet/diagnostics). Each connection takes one command. The answer to "collect" is the stream of events itself.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::nettrace::{Nettrace, NettraceError, StreamEvent, Value};
use super::{NoValue, Reading};

/// Why a runtime gives no counters.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// Nobody listens.
    #[error(
        "no .NET runtime answers in process {0}: it has none of .NET Core 3.0 or later, or another user runs it, or \
         DOTNET_EnableDiagnostics=0 is set there"
    )]
    Nobody(u32),
    /// It cannot be reached.
    #[error("cannot reach the .NET runtime of process {pid}: {error}")]
    Unreachable {
        /// The process.
        pid: u32,
        /// Why.
        error: io::Error,
    },
    /// It refuses.
    #[error("the .NET runtime of process {pid} refuses to send events: error {code:#x}")]
    Refused {
        /// The process.
        pid: u32,
        /// An HRESULT.
        code: u32,
    },
    /// Its answer is damaged.
    #[error("the .NET runtime of process {0} answers in a way that is not understood")]
    Answer(u32),
    /// What it sends is damaged.
    #[error("process {pid}: {error}")]
    Stream {
        /// The process.
        pid: u32,
        /// What is wrong.
        error: NettraceError,
    },
}

const PIPES: &str = r"\\.\pipe\";
const PREFIX: &str = "dotnet-diagnostic-";

/// The processes with a runtime that listens, by id, each with where it does. Those of other users may be among them.
pub fn listening() -> Vec<(u32, PathBuf)> {
    let mut all: Vec<_> = endpoints().unwrap_or_default();
    all.sort();
    // A process that crashed leaves its socket, and another may get its id: the last is the newest.
    all.reverse();
    all.dedup_by_key(|(pid, _)| *pid);
    all.reverse();
    all
}

fn endpoints() -> io::Result<Vec<(u32, PathBuf)>> {
    let folder = if cfg!(windows) {
        PathBuf::from(PIPES)
    } else {
        std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    };
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder)?.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        // On Windows nothing follows the id; elsewhere a key and `socket`.
        let pid = rest.split('-').next().and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid
            && (cfg!(windows) || (rest.ends_with("-socket") && runs(pid)))
        {
            all.push((pid, folder.join(&name)));
        }
    }
    Ok(all)
}

/// False for a process that is known to have ended. Only Linux says so without asking the runtime itself.
fn runs(pid: u32) -> bool {
    !cfg!(target_os = "linux") || std::path::Path::new(&format!("/proc/{pid}")).exists()
}

trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

#[cfg(windows)]
fn connect(pid: u32) -> Result<Box<dyn Connection>, RuntimeError> {
    let pipe = format!("{PIPES}{PREFIX}{pid}");
    match std::fs::OpenOptions::new().read(true).write(true).open(pipe) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RuntimeError::Nobody(pid)),
        Err(error) => Err(RuntimeError::Unreachable { pid, error }),
    }
}

#[cfg(not(windows))]
fn connect(pid: u32) -> Result<Box<dyn Connection>, RuntimeError> {
    let endpoint = listening().into_iter().find(|(of, _)| *of == pid);
    let (_, path) = endpoint.ok_or(RuntimeError::Nobody(pid))?;
    let connected = std::os::unix::net::UnixStream::connect(path);
    connected.map(|stream| Box::new(stream) as _).map_err(|error| RuntimeError::Unreachable { pid, error })
}

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
/// EventPipe's commands.
const EVENT_PIPE: u8 = 0x02;
const COLLECT: u8 = 0x02;
const OK: [u8; 2] = [0xff, 0x00];
/// The runtime's own buffer.
const BUFFER_MB: u32 = 10;
const NETTRACE: u32 = 1;
/// Informational, as counters are.
const LEVEL: u32 = 4;

/// A length and so many UTF-16 units with the zero at the end.
fn push_text(message: &mut Vec<u8>, text: &str) {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    message.extend_from_slice(&(units.len() as u32).to_le_bytes());
    message.extend(units.into_iter().flat_map(u16::to_le_bytes));
}

/// The command that asks for the counters of these providers, so many seconds apart.
fn command(providers: &[String], seconds: f64) -> Vec<u8> {
    let mut payload = [BUFFER_MB, NETTRACE, providers.len() as u32].map(u32::to_le_bytes).concat();
    for provider in providers {
        payload.extend_from_slice(&u64::MAX.to_le_bytes());
        payload.extend_from_slice(&LEVEL.to_le_bytes());
        push_text(&mut payload, provider);
        push_text(&mut payload, &format!("EventCounterIntervalSec={seconds}"));
    }
    let mut message = MAGIC.to_vec();
    message.extend_from_slice(&((20 + payload.len()) as u16).to_le_bytes());
    message.extend_from_slice(&[EVENT_PIPE, COLLECT, 0, 0]);
    message.extend_from_slice(&payload);
    message
}

/// The counters of a program, as it sends them. The runtime stops when this is dropped.
pub struct EventCounters {
    pid: u32,
    stream: Nettrace<Box<dyn Connection>>,
}

impl EventCounters {
    /// Asks the runtime of a process for the counters of these providers (`System.Runtime`, or those of its own code), so many
    /// seconds apart.
    ///
    /// # Errors
    /// There is no runtime, it cannot be reached, or it refuses.
    pub fn ask(pid: u32, providers: &[String], seconds: f64) -> Result<EventCounters, RuntimeError> {
        let mut connection = connect(pid)?;
        let unreachable = |error| RuntimeError::Unreachable { pid, error };
        connection.write_all(&command(providers, seconds)).map_err(unreachable)?;
        let mut head = [0; 20];
        connection.read_exact(&mut head).map_err(unreachable)?;
        let (is_known, code) = (head.starts_with(MAGIC), [head[16], head[17]]);
        if !is_known {
            return Err(RuntimeError::Answer(pid));
        }
        if code != OK {
            let mut error = [0; 4];
            connection.read_exact(&mut error).map_err(unreachable)?;
            return Err(RuntimeError::Refused { pid, code: u32::from_le_bytes(error) });
        }
        // The session, by which it could be stopped; it ends with the connection.
        connection.read_exact(&mut [0; 8]).map_err(unreachable)?;
        let stream = Nettrace::begin(connection).map_err(|error| RuntimeError::Stream { pid, error })?;
        Ok(EventCounters { pid, stream })
    }

    /// Waits for the next counters, and gives them; `None` when the program has ended.
    ///
    /// # Errors
    /// The stream is damaged.
    pub fn receive(&mut self) -> Result<Option<Vec<Counted>>, RuntimeError> {
        let mut all = Vec::new();
        match self.stream.block(&mut |event| all.extend(Counted::of(event))) {
            Ok(true) => Ok(Some(all)),
            Ok(false) => Ok(None),
            // A program that is killed does not say good-bye.
            Err(NettraceError::Io(_)) => Ok(None),
            Err(error) => Err(RuntimeError::Stream { pid: self.pid, error }),
        }
    }
}

/// The value of one EventCounter over an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// When it was written, in ticks of the program's clock: on Windows, of QueryPerformanceCounter.
    pub time: i64,
    /// The length of the interval in s.
    pub seconds: f64,
    /// The value: a mean, or what was counted per second.
    pub reading: Reading,
}

impl Counted {
    /// That of an event; `None` for events of another kind.
    ///
    /// A mean has `Mean`, a sum `Increment`, both `Name`, `IntervalSec` and `DisplayUnits`; the order of fields differs between
    /// versions.
    pub fn of(event: &StreamEvent<'_>) -> Option<Counted> {
        if event.kind.name != "EventCounters" {
            return None;
        }
        let values = event.values();
        let text = |name| match values.get(name) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let number = |name| match values.get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        let (name, seconds) = (text("Name")?, number("IntervalSec")?);
        let units = text("DisplayUnits").unwrap_or_default();
        let (unit, value) = match (number("Mean"), number("Increment")) {
            (Some(mean), _) => (units.to_owned(), Ok(mean)),
            (None, Some(sum)) if seconds > 0.0 => (format!("{units}/s"), Ok(sum / seconds)),
            (None, Some(_)) => (format!("{units}/s"), Err(NoValue::Time)),
            (None, None) => return None,
        };
        let reading = Reading {
            object: Arc::from(event.kind.provider.as_str()),
            instance: None,
            counter: Arc::from(name),
            unit: unit.into(),
            is_hex: false,
            value,
        };
        Some(Counted { time: event.time, seconds, reading })
    }
}
