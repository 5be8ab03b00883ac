//! Work on several threads, where a panic costs one piece of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Damaged symbols are an error and not a panic. Should a reader break that promise, it costs one module.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let because = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(format!("its reader failed: {text}"))
    };
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(because)
}

/// Does the work on this thread, and on as many others as are wanted and can be made: a container may allow none. It
/// is begun in its order, and so are the answers.
pub(super) fn in_parallel<W: Sync, R: Send>(
    threads: usize,
    work: &[W],
    each: impl Fn(&W) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let take = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(index) else { return };
            let result = each(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(work.len()) {
            if thread::Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// As many threads as there are processors for this process.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::{guarded, in_parallel};

    #[test]
    fn a_panic_costs_one_module() {
        let answers = in_parallel(2, &[1, 0, 2], |number| {
            guarded(|| if *number == 0 { panic!("no {number}") } else { Ok(10 * number) })
        });
        assert_eq!(answers, [Ok(10), Err("its reader failed: no 0".to_owned()), Ok(20)]);
    }
}
