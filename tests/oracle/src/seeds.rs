//! Many seeds, on as many threads as there are processors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Runs `check` with so many seeds, from `first` on, and tells `progress` how many are done.
///
/// # Errors
/// The first seed that fails, and how.
pub fn each<T: Send>(
    seeds: u64,
    first: u64,
    check: impl Fn(u64) -> Result<T, String> + Sync,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<T>, (u64, String)> {
    let next = AtomicU64::new(0);
    // After the first failure no later seed is started, and all earlier ones were.
    let end = AtomicU64::new(seeds);
    let work = || {
        let (mut passed, mut failed) = (Vec::new(), None);
        loop {
            let n = next.fetch_add(1, Ordering::SeqCst);
            if n >= end.load(Ordering::SeqCst) {
                return (passed, failed);
            }
            match check(first.wrapping_add(n)) {
                Ok(one) => passed.push(one),
                Err(how) => {
                    end.fetch_min(n, Ordering::SeqCst);
                    // This thread starts no earlier one.
                    failed = Some((n, how));
                }
            }
            progress(n + 1);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no check panics")).collect()
    });
    let (passed, failed): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    match failed.into_iter().flatten().min_by_key(|(n, _)| *n) {
        Some((n, how)) => Err((first.wrapping_add(n), how)),
        None => Ok(passed.into_iter().flatten().collect()),
    }
}
