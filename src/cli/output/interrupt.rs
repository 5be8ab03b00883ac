//! Signals that end the program while a file is half written: the file goes first.

#[cfg(unix)]
pub(super) use unix::Interrupt;

#[cfg(unix)]
mod unix {
    use std::io::{self, Seek, SeekFrom, Write};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::{Arc, LazyLock};

    use etwprof::etl::writer::Output;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::{flag, low_level};

    /// Signals end the program at once, as ever. There is one for all, for a handler stays.
    static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

    /// While it lives, a signal is kept until [`Interrupt::obey`], and ends the writing.
    pub(in crate::cli::output) struct Interrupt {
        /// The signal that came; 0 for none.
        came: Arc<AtomicUsize>,
    }

    impl Interrupt {
        pub(in crate::cli::output) fn listen() -> io::Result<Interrupt> {
            AT_ONCE.store(false, SeqCst);
            let interrupt = Interrupt { came: Arc::default() };
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                flag::register_conditional_default(signal, Arc::clone(&AT_ONCE))?;
                flag::register_usize(signal, Arc::clone(&interrupt.came), signal as usize)?;
            }
            Ok(interrupt)
        }

        /// Refuses to write once a signal came.
        pub(in crate::cli::output) fn guard<W: Write>(&self, out: W) -> Guarded<W> {
            Guarded { out, came: Arc::clone(&self.came) }
        }

        /// Ends the program by the signal that came, if one did. Nothing half written may be left by now.
        pub(in crate::cli::output) fn obey(&self) {
            AT_ONCE.store(true, SeqCst);
            let came = self.came.load(SeqCst);
            if came != 0 {
                let _ends_the_program = low_level::emulate_default_handler(came as i32);
            }
        }
    }

    pub(in crate::cli::output) struct Guarded<W> {
        out: W,
        came: Arc<AtomicUsize>,
    }

    impl<W: Write> Write for Guarded<W> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.came.load(SeqCst) {
                0 => self.out.write(bytes),
                _ => Err(io::Error::other("a signal came")),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            self.out.flush()
        }
    }

    impl<W: Seek> Seek for Guarded<W> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.out.seek(to)
        }
    }

    impl<W: Output> Output for Guarded<W> {
        fn clear(&mut self) -> io::Result<()> {
            self.out.clear()
        }
    }
}

/// Ctrl-C ends the program on a thread of its own, which knows of no file.
#[cfg(not(unix))]
pub(super) struct Interrupt;

#[cfg(not(unix))]
impl Interrupt {
    pub(super) fn listen() -> std::io::Result<Interrupt> {
        Ok(Interrupt)
    }

    pub(super) fn guard<W>(&self, out: W) -> W {
        out
    }

    pub(super) fn obey(&self) {}
}
