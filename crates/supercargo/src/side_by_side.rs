//! Work that can be done side by side, with the results in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each task, in the order of the tasks. How many threads there are shows nowhere but in the time.
pub(crate) fn side_by_side<T: Sync, R: Send>(tasks: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(tasks.len());
    if threads < 2 {
        return tasks.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(tasks.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(task) = tasks.get(index)
                {
                    let result = work(task);
                    results.lock().expect("no thread panics while it holds this").push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("a thread that panics ends the scope");
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        for count in [0, 1, 2, 1000] {
            let tasks: Vec<usize> = (0..count).collect();
            let results = side_by_side(&tasks, |task| task * 2);
            assert!(results.iter().copied().eq((0..count).map(|task| task * 2)), "{count}");
        }
    }
}
