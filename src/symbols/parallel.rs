//! Work over all processors, where a panic costs one piece of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Damaged symbols are an error and not a panic. Should a reader break that promise, it costs one module.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let because = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
        Err(format!("its reader failed: {text}"))
    };
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(because)
}

/// Runs `work` on this thread, and on as many others as are wanted and can be made: a container may allow none.
pub(super) fn with_helpers(others: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..others {
            if thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Does the work over all processors; answers are in the order of the work.
pub(super) fn in_parallel<W: Sync, R: Send>(work: &[W], each: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(work.len());
    with_helpers(threads.saturating_sub(1), || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(index) else { return };
            let result = each(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::{guarded, in_parallel};

    #[test]
    fn a_panic_costs_one_module() {
        let answers = in_parallel(&[1, 0, 2], |number| {
            guarded(|| if *number == 0 { panic!("no {number}") } else { Ok(10 * number) })
        });
        assert_eq!(answers, [Ok(10), Err("its reader failed: no 0".to_owned()), Ok(20)]);
    }
}
