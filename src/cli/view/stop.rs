//! Ctrl-C ends the program, and that is a success: nothing else would end it.

use std::io;

/// Hears Ctrl-C, and signals that ask to end, from now on.
#[derive(Debug)]
pub(super) struct Stop {
    #[cfg(unix)]
    came: std::os::unix::net::UnixStream,
}

#[cfg(unix)]
impl Stop {
    pub(super) fn listen() -> io::Result<Stop> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::low_level::pipe;

        let (came, send) = std::os::unix::net::UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            pipe::register(signal, send.try_clone()?)?;
        }
        Ok(Stop { came })
    }

    /// Waits for it.
    pub(super) fn wait(mut self) -> io::Result<()> {
        // The signal interrupts the wait, which then goes on and finds the byte.
        io::Read::read_exact(&mut self.came, &mut [0])
    }
}

#[cfg(not(unix))]
impl Stop {
    pub(super) fn listen() -> io::Result<Stop> {
        #[cfg(windows)]
        {
            use etwprof::session::console;

            // The first is awaited below; whoever presses it again has waited long enough.
            console::listen(|| std::process::exit(0)).map_err(io::Error::other)?;
        }
        Ok(Stop {})
    }

    /// Waits for it.
    pub(super) fn wait(self) -> io::Result<()> {
        loop {
            #[cfg(windows)]
            if etwprof::session::console::asked_to_stop() {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
