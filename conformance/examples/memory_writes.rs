//! Measures what it takes to change one entry of a memory with many, while its last state is still looked at: what every step of a
//! scheduler does whose plugin remembers something. For `bench/memory`.
//!
//!     memory_writes ENTRIES WRITES

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Memories, Memory, SharedMap};

/// How often the writes are repeated; the median counts.
const RUNS: usize = 11;

/// What a plugin remembers of each pod.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Pods(SharedMap<Arc<str>, u64>);

impl Memory for Pods {
    const NAME: &'static str = "Pods";
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let mut counts =
        std::env::args().skip(1).map(|count| count.parse().expect("ENTRIES and WRITES are numbers"));
    let (entries, writes): (usize, usize) =
        counts.next().zip(counts.next()).expect("give two numbers: ENTRIES and WRITES");
    let keys: Vec<Arc<str>> = (0..entries).map(|number| format!("pod-{number}").into()).collect();
    let mut memories = Memories::default();
    memories.declare::<Pods>();
    for key in &keys {
        memories.get_mut::<Pods>().0.insert(key.clone(), 0);
    }
    let mut nanoseconds: Vec<u128> = (0..RUNS).map(|_| time(&mut memories, &keys, writes)).collect();
    nanoseconds.sort_unstable();
    println!(
        "{} ns for a write to one of {entries} entries, the median of {RUNS} runs",
        nanoseconds[RUNS / 2]
    );
    let written =
        memories.get::<Pods>().map_or(0, |pods| pods.0.iter().map(|(_, count)| *count).sum::<u64>());
    assert_eq!(written, (RUNS * writes) as u64, "every write is there");
}

/// What one of so many writes takes, on average.
#[expect(clippy::disallowed_methods, reason = "this measures")]
fn time(memories: &mut Memories, keys: &[Arc<str>], writes: usize) -> u128 {
    /// A prime, so that neighbours are not written one after the other.
    const STRIDE: usize = 7919;
    let began = Instant::now();
    for number in 0..writes {
        let key = &keys[number * STRIDE % keys.len()];
        let last_state = memories.clone();
        let pods = &mut memories.get_mut::<Pods>().0;
        let count = pods.get(key).copied().unwrap_or_default();
        pods.insert(key.clone(), count + 1);
        drop(last_state);
    }
    began.elapsed().as_nanos() / writes as u128
}
