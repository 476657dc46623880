//! Whatever goes wrong on the way to the server, no two lead at once, and somebody leads when it is over.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::store::{Candidate, Faults, Server, overlap, overstayed};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// After this nothing goes wrong any more.
const TROUBLE: Duration = Duration::from_secs(300);

fn milliseconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn faults() -> impl Strategy<Value = Faults> {
    let outages = prop::collection::vec((milliseconds(0..300_000), milliseconds(0..40_000)), 0..6);
    (milliseconds(0..6_000), milliseconds(0..6_000), outages).prop_map(|(there, back, outages)| Faults {
        there,
        back,
        outages: outages.into_iter().map(|(from, length)| (from, (from + length).min(TROUBLE))).collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_lead_at_once(
        faults in prop::array::uniform3(faults()),
        ends in prop::array::uniform3(prop::option::of((milliseconds(0..300_000), any::<bool>()))),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let (reigns, writes, led_at_last, alive) = runtime.block_on(async {
            let (server, epoch) = (Server::default(), Instant::now());
            let mut candidates: Vec<Candidate> = NAMES
                .iter()
                .zip(faults)
                .map(|(name, faults)| Candidate::start(&server, epoch, name, faults))
                .collect();
            let mut events: Vec<(Duration, usize, bool)> = Vec::new();
            for (index, end) in ends.iter().enumerate() {
                events.extend(end.map(|(at, gracefully)| (at, index, gracefully)));
            }
            events.sort();
            for (at, index, gracefully) in events {
                sleep((epoch + at).saturating_duration_since(Instant::now())).await;
                if gracefully {
                    candidates[index].ask_to_stop();
                } else {
                    candidates[index].kill();
                }
            }
            sleep((epoch + TROUBLE).saturating_duration_since(Instant::now())).await;
            for candidate in &candidates {
                *candidate.faults.lock().expect("free") = Faults::default();
            }
            sleep(Duration::from_secs(60)).await;
            let reigns: Vec<_> = candidates.iter().flat_map(Candidate::reigns).collect();
            // Who has lost a lease does not come back by itself, and who was killed does not either.
            let alive = candidates.iter().filter(|candidate| candidate.is_running()).count();
            (reigns, server.writes(), candidates.iter().any(Candidate::leads_now), alive)
        });
        prop_assert_eq!(overstayed(&reigns, &writes), None);
        prop_assert_eq!(overlap(reigns), None);
        prop_assert!(led_at_last || alive == 0);
    }
}
