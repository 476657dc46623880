//! The `supercargo` program: the library's `main_with`, with Kubernetes' own plugins and no others.

use std::process::ExitCode;

/// Objects are read on one thread and dropped on another; with glibc's allocator the threads then wait for each other's
/// arenas for a third of the time that reading a large dump takes. Pages of 2 MiB are left alone (`no_thp`): they make a
/// small process half as large again, and decisions no faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    supercargo::main_with(|_| Ok(()))
}
