//! Files mapped into memory.
//!
//! A mapped file may become shorter while it is read: its writer begins anew, a share goes away, a disk fails. Unix ends
//! the program for that with SIGBUS, without a word. [`survive_shrinking`] makes zeros of what is gone instead, and
//! [`Mapped::shrunk_at`] says so. Windows does not let anybody cut a mapped file; a network share that goes away there
//! still ends the program (EXCEPTION_IN_PAGE_ERROR).

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The path by which Windows opens a file that the kernel names: a volume need not have a drive letter.
///
/// `GLOBALROOT` stands for the root of the kernel's names (documentation of naming files). Other paths stay as they are.
/// This is no path to show.
pub fn openable(path: &Path) -> Cow<'_, Path> {
    const KERNEL: [&str; 3] = [r"\Device\", r"\SystemRoot\", r"\??\"];
    let is_kernels = |text: &&str| {
        let starts =
            |prefix: &&str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        cfg!(windows) && KERNEL.iter().any(starts)
    };
    match path.to_str().filter(is_kernels) {
        Some(text) => Cow::Owned(PathBuf::from(format!(r"\\?\GLOBALROOT{text}"))),
        None => Cow::Borrowed(path),
    }
}

use watch::Watch;
pub use watch::survive_shrinking;

/// From this size on, in bytes, it matters how much of a file is fetched.
#[cfg(unix)]
const LARGE: usize = 64 << 20;

/// A file's bytes, read-only, paged in as they are used.
#[derive(Debug)]
pub struct Mapped {
    // Dropped before the map: afterwards the addresses may be somebody else's.
    watch: Option<Watch>,
    map: Option<memmap2::Mmap>,
}

impl Mapped {
    /// Maps the file at `path`. Pipes and devices are refused without opening them, which may wait for ever.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let path = openable(path);
        let metadata = path.metadata()?;
        // Windows would call it a denied access.
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !metadata.is_file() {
            return Err(io::Error::other("it is a pipe or a device; only regular files can be read"));
        }
        Mapped::of(&File::open(&path)?)
    }

    /// Maps an open file.
    pub fn of(file: &File) -> io::Result<Mapped> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        // An empty file cannot be mapped on every system.
        if metadata.len() == 0 {
            return Ok(Mapped { watch: None, map: None });
        }
        // SAFETY: the map is read-only and private to us. A writer that cuts the file while we read is what `Watch` is
        // for; one that changes bytes under us gives a wrong value and nothing worse, because every value read is
        // checked before it is used.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Mapped { watch: Watch::new(&map), map: Some(map) })
    }

    /// Says that a large file will be looked up here and there: what a look-up does not touch is not fetched. Without
    /// this the system reads some hundred KiB around each touch (Linux: 714 of 793 MB for 1,000 look-ups in a PDB).
    /// Small files are soon read whole, and faster so.
    #[must_use]
    pub fn for_lookups(self) -> Mapped {
        #[cfg(unix)]
        if self.len() >= LARGE {
            advise(&self, libc::MADV_RANDOM);
        }
        self
    }

    /// The byte from which on the file was gone when it was read; `None` while all of it could be. Known only after
    /// [`survive_shrinking`].
    pub fn shrunk_at(&self) -> Option<u64> {
        self.watch.as_ref()?.shrunk_at()
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

/// Says that these bytes will be read from their first to their last: the system may fetch them together. Does nothing
/// for bytes that are no file's.
pub(crate) fn will_be_read(bytes: &[u8]) {
    #[cfg(unix)]
    if !bytes.is_empty() {
        advise(bytes, libc::MADV_WILLNEED);
    }
    #[cfg(not(unix))]
    let _nothing_to_do = bytes;
}

#[cfg(unix)]
fn advise(bytes: &[u8], advice: libc::c_int) {
    // SAFETY: reads a constant of the system.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let before = bytes.as_ptr() as usize % page;
    let start = bytes.as_ptr().wrapping_sub(before).cast_mut().cast();
    // SAFETY: the two kinds of advice that are given here change when pages are fetched and nothing else. What
    // becomes of an advice is the system's affair.
    let _whether_taken = unsafe { libc::madvise(start, bytes.len() + before, advice) };
}

#[cfg(unix)]
mod watch {
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// A mapped range of addresses, where the signal handler can find it.
    struct Place {
        /// The first address; [`FREE`] or [`TAKEN`] while there is none.
        start: AtomicUsize,
        /// The address behind the last.
        end: AtomicUsize,
        /// The first address that could not be read; 0 while all could.
        gone: AtomicUsize,
    }

    const FREE: usize = 0;
    const TAKEN: usize = 1;

    /// A run has the files of its recording mapped, and those of a module for each thread. What finds no place is
    /// mapped all the same, without a watch.
    static PLACES: [Place; 1024] = [const {
        Place { start: AtomicUsize::new(FREE), end: AtomicUsize::new(0), gone: AtomicUsize::new(0) }
    }; 1024];

    /// What was done about SIGBUS before, and the size of a page.
    static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

    /// Keeps the place of a map.
    pub(super) struct Watch(&'static Place);

    impl std::fmt::Debug for Watch {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("Watch").field(&self.shrunk_at()).finish()
        }
    }

    impl Watch {
        pub(super) fn new(map: &[u8]) -> Option<Watch> {
            let is_free = |place: &&Place| place.start.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok();
            let place = PLACES.iter().find(is_free)?;
            place.gone.store(0, SeqCst);
            place.end.store(map.as_ptr() as usize + map.len(), SeqCst);
            place.start.store(map.as_ptr() as usize, SeqCst);
            Some(Watch(place))
        }

        pub(super) fn shrunk_at(&self) -> Option<u64> {
            let gone = self.0.gone.load(SeqCst);
            gone.checked_sub(self.0.start.load(SeqCst)).map(|offset| offset as u64)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.0.start.store(FREE, SeqCst);
        }
    }

    /// From now on, what is gone of a mapped file reads as zeros and does not end the process. Takes over SIGBUS, which
    /// is for programs to decide and not for libraries.
    pub fn survive_shrinking() -> io::Result<()> {
        // SAFETY: reads a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: asks for the present action; `before` has room for it, and is read only after success.
        let before = unsafe {
            if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            before.assume_init()
        };
        if BEFORE.set((before, page)).is_err() {
            return Ok(());
        }
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        // SAFETY: all zeros is a valid action, whose fields are then set; the handler is a function of this program
        // that makes only calls which a handler may make.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut())
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    extern "C" fn on_fault(_signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let Some((before, page)) = BEFORE.get() else { return };
        // SAFETY: the system gives a handler with SA_SIGINFO a valid `info`; of SIGBUS it has an address.
        let at = unsafe { (*info).si_addr() } as usize;
        let is_there = |place: &&Place| {
            let start = place.start.load(SeqCst);
            start > TAKEN && (start..place.end.load(SeqCst).next_multiple_of(*page)).contains(&at)
        };
        if let Some(place) = PLACES.iter().find(is_there) {
            let from = at - at % page;
            let length = place.end.load(SeqCst).next_multiple_of(*page) - from;
            // SAFETY: the pages belong to a map that `place` keeps, which is private and only read; nothing but that
            // map is replaced, and `Mmap` unmaps its range whatever lies there. The call goes straight to the system.
            let zeros = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                libc::mmap(from as *mut libc::c_void, length, libc::PROT_READ, flags, -1, 0)
            };
            if zeros != libc::MAP_FAILED {
                // The earliest counts: another thread may have met a later page first.
                let _known = place
                    .gone
                    .fetch_update(SeqCst, SeqCst, |gone| (gone == 0 || from < gone).then_some(from));
                return;
            }
        }
        // Not ours: the instruction runs again, and meets what was there before.
        // SAFETY: sets the action that the system gave.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}

#[cfg(not(unix))]
mod watch {
    /// There is none.
    #[derive(Debug)]
    pub(super) enum Watch {}

    impl Watch {
        pub(super) fn new(_: &[u8]) -> Option<Watch> {
            None
        }

        pub(super) fn shrunk_at(&self) -> Option<u64> {
            match *self {}
        }
    }

    /// Does nothing: nobody can cut a mapped file here.
    pub fn survive_shrinking() -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, windows))]
mod tests {
    use super::{Mapped, openable};

    #[test]
    fn a_path_of_the_kernel_is_opened_by_the_root_of_its_names() {
        for (path, opened) in [
            (r"\Device\HarddiskVolume7\x.dll", r"\\?\GLOBALROOT\Device\HarddiskVolume7\x.dll"),
            (r"\systemroot\system32\ntoskrnl.exe", r"\\?\GLOBALROOT\systemroot\system32\ntoskrnl.exe"),
            (r"C:\Windows\x.dll", r"C:\Windows\x.dll"),
            (r"\Devices\x.dll", r"\Devices\x.dll"),
            (r"\\server\share\x.dll", r"\\server\share\x.dll"),
        ] {
            assert_eq!(openable(path.as_ref()), std::path::Path::new(opened));
        }
        assert!(Mapped::open(r"C:\windows\system32\ntdll.dll".as_ref()).is_ok());
    }
}
