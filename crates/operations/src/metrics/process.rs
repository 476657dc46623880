//! Metrics of the process, read from `/proc` when somebody asks.

use std::fs;

use super::text::go_number;

/// How many ticks of `/proc` a second has: a constant of Linux' interface, whatever the kernel's own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// The metrics of this process. What `/proc` does not tell is left out.
pub(super) fn read(proc: &str) -> String {
    let file = |name: &str| fs::read_to_string(format!("{proc}/{name}")).unwrap_or_default();
    let open_files = fs::read_dir(format!("{proc}/self/fd")).map(Iterator::count).ok();
    describe(
        &file("self/stat"),
        &file("self/status"),
        &file("self/limits"),
        &file("stat"),
        // One of them is the folder being read.
        open_files.map(|files| files.saturating_sub(1)),
    )
}

fn describe(stat: &str, status: &str, limits: &str, system: &str, open_files: Option<usize>) -> String {
    // The second field is the program's name in brackets and may hold anything; fields are counted from behind it.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<f64>().ok());
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0)
    };
    let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
    let files_max = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse::<f64>().ok());
    let processor = ticks(14).zip(ticks(15)).map(|(user, kernel)| (user + kernel) / TICKS_PER_SECOND);
    let started = booted.zip(ticks(22)).map(|(booted, since)| booted + since / TICKS_PER_SECOND);

    let table = [
        (
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            processor,
        ),
        ("process_max_fds", "gauge", "Maximum number of open file descriptors.", files_max),
        (
            "process_open_fds",
            "gauge",
            "Number of open file descriptors.",
            open_files.map(|files| files as f64),
        ),
        ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", kilobytes("VmRSS")),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            started,
        ),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", kilobytes("VmSize")),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in table {
        if let Some(value) = value {
            let value = go_number(value);
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
        }
    }
    text
}
