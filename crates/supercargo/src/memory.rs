//! How the process asks the system for memory.

use crate::Command;

/// Objects are read on one thread and dropped on another; with glibc's allocator the threads then wait for each other's
/// arenas for a third of the time that reading a large dump takes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Chooses the size of pages, before much has been asked for.
///
/// Pages of 2 MiB make decisions on very large clusters a fifth faster, and a small process twice as large. What runs in
/// a cluster waits for the API server most of the time, and is better off small.
pub(crate) fn choose_pages(command: &Command) {
    #[cfg(target_os = "linux")]
    if matches!(command, Command::Run(_) | Command::Shadow(_)) {
        // An old kernel may not know this, and then nothing is lost but memory.
        _ = rustix::thread::disable_transparent_huge_pages(true);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
