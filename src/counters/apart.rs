//! Questions that a process of our own answers, because code of strangers runs in it.
//!
//! Windows loads the DLL of every vendor that counts something into the process that asks for performance counters. One
//! that crashes or hangs there takes that process with it, and nobody else.
//!
//! A question is a line of text on the standard input. An answer on the standard output is an error code as a
//! little-endian `u32`, 0 for none, a length as a `u64`, and so many bytes. The end of the input ends the process.

use std::io::{self, BufRead, Read, Write};
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::block::MOST_BYTES;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The process cannot be started.
    #[error("cannot start the process that reads counters: {0}")]
    Start(io::Error),
    /// The answer is an error of the system.
    #[error("error {0}")]
    Refused(u32),
    /// The process ended; on Windows with this exit code, elsewhere `None` for a signal.
    #[error("the process that reads counters ended, with exit code {}", .0.map_or_else(|| "unknown".to_owned(), |code| format!("{code:#x}")))]
    Ended(Option<i32>),
    /// It did not answer in this time, and was ended.
    #[error("no answer in {} s", .0.as_secs_f64())]
    TimeOut(Duration),
}

/// Answers questions until the input ends.
///
/// # Errors
/// Those of `output`.
pub fn answer(
    input: impl BufRead,
    mut output: impl Write,
    mut query: impl FnMut(&str) -> Result<Vec<u8>, u32>,
) -> io::Result<()> {
    for question in input.lines() {
        let (code, bytes) = match query(question?.trim_end()) {
            Ok(bytes) => (0, bytes),
            Err(code) => (code.max(1), Vec::new()),
        };
        output.write_all(&code.to_le_bytes())?;
        output.write_all(&(bytes.len() as u64).to_le_bytes())?;
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// A process that answers. It starts at the first question, and again at the first one after it ended.
#[derive(Debug)]
pub struct Apart {
    command: Command,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    process: process::Child,
    /// Closing it ends the process.
    questions: Option<ChildStdin>,
    answers: Receiver<(u32, Vec<u8>)>,
}

impl Apart {
    /// The process is started with this command, and calls [`answer`].
    pub fn new(mut command: Command) -> Apart {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Apart { command, running: None }
    }

    /// Asks, and waits for the answer so long at most.
    ///
    /// # Errors
    /// The process cannot be started, ends, or does not answer in time; or the answer is an error.
    pub fn ask(&mut self, question: &str, limit: Duration) -> Result<Vec<u8>, AskError> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::start(&mut self.command).map_err(AskError::Start)?),
        };
        // A line, whatever is in it. If nobody reads it, there is no answer either.
        let question = question.replace(['\r', '\n'], " ");
        if let Some(questions) = &mut running.questions {
            let _unread = writeln!(questions, "{question}").and_then(|()| questions.flush());
        }
        let error = match running.answers.recv_timeout(limit) {
            Ok((0, bytes)) => return Ok(bytes),
            Ok((code, _)) => return Err(AskError::Refused(code)),
            Err(RecvTimeoutError::Timeout) => {
                let _ended = running.process.kill();
                AskError::TimeOut(limit)
            }
            // It has closed its output; its end may take a moment.
            Err(RecvTimeoutError::Disconnected) => AskError::Ended(running.exit_code(Duration::from_secs(5))),
        };
        self.running = None;
        Err(error)
    }
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Running> {
        let mut process = command.spawn()?;
        let (questions, output) = (process.stdin.take(), process.stdout.take());
        let (Some(questions), Some(mut output)) = (questions, output) else {
            return Err(io::Error::other("it has no input or output"));
        };
        let (to, answers) = channel();
        thread::spawn(move || {
            while let Ok(answer) = read(&mut output) {
                if to.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Running { process, questions: Some(questions), answers })
    }

    /// How it ended, if it does so in this time.
    fn exit_code(&mut self, patience: Duration) -> Option<i32> {
        let start = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if start.elapsed() < patience => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

fn read(output: &mut impl Read) -> io::Result<(u32, Vec<u8>)> {
    let (mut code, mut length) = ([0; 4], [0; 8]);
    output.read_exact(&mut code)?;
    output.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).ok().filter(|length| *length <= MOST_BYTES);
    let mut bytes = vec![0; length.ok_or_else(|| io::Error::other("too long an answer"))?];
    output.read_exact(&mut bytes)?;
    Ok((u32::from_le_bytes(code), bytes))
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have something to close.
        self.questions = None;
        let _code = self.exit_code(Duration::from_secs(2));
        let _ended = self.process.kill();
        let _gone = self.process.wait();
    }
}
