//! Runs the built `etwprof` as a user would, in an environment that is the same on every machine.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, Stdio};

/// What one run left behind.
#[derive(Debug)]
pub struct Output {
    /// The exit code; -1 when a signal ended the program.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Output {
    /// Itself, when the program said success; otherwise the test fails and shows what the program said.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, 0, "etwprof failed, stderr:\n{}", self.stderr);
        self
    }

    /// stdout as text. Data that is not UTF-8 fails the test.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("stdout is UTF-8")
    }
}

/// Runs `etwprof` with these arguments.
pub fn etwprof<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    output(command().args(args))
}

/// The program in the fixed environment, for a test that sets more than arguments.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etwprof"));
    // Settings of the person who runs the tests: colours, width, symbols, backtraces.
    for name in [
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "NETRC",
        "RUST_BACKTRACE",
        "_NT_ALT_SYMBOL_PATH",
        "_NT_SYMCACHE_PATH",
        "ETWPROF_SYMBOL_HEADERS",
        "_NT_SYMBOL_PROXY",
    ] {
        command.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    // Caches go to the build folder and never to the person's own.
    for name in ["HOME", "LOCALAPPDATA", "XDG_CACHE_HOME"] {
        command.env(name, env!("CARGO_TARGET_TMPDIR"));
    }
    // No test asks Microsoft's server, which is the default.
    command.env("_NT_SYMBOL_PATH", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-symbols"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs a command that [`command`] began.
pub fn output(command: &mut Command) -> Output {
    let output = started(|| command.output());
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What `start` makes of a process. Wine sometimes refuses one while many others start (1359, internal error); it is asked
/// again then.
pub fn started<T>(mut start: impl FnMut() -> io::Result<T>) -> T {
    const INTERNAL_ERROR: Option<i32> = Some(1359);
    let mut tries = 0;
    loop {
        match start() {
            Err(error) if cfg!(windows) && error.raw_os_error() == INTERNAL_ERROR && tries < 3 => tries += 1,
            result => return result.expect("the built etwprof starts"),
        }
    }
}

/// The commands that the help lists.
pub fn commands() -> Vec<String> {
    let output = etwprof(["--help"]).success();
    let listed = output.text().lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}
