use supercargo_model::Timestamp;
use supercargo_testkit::{PodBuilder, cluster, pod, trial};

use super::*;

#[test]
fn the_more_important_goes_first_and_then_who_waited_longer() {
    let (low, high) = (|| pod("low"), || pod("high").priority(10));
    for (what, a, b, less) in [
        ("higher priority", (high(), 9), (low(), 1), true),
        ("lower priority", (low(), 1), (high(), 9), false),
        ("waited longer", (low(), 1), (low(), 2), true),
        ("waited less", (low(), 2), (low(), 1), false),
        ("the same", (low(), 1), (low(), 1), false),
        ("unset is zero", (pod("p").priority(-1), 1), (low(), 2), false),
    ] {
        let mut cluster = cluster();
        let mut queued = |(pod, seconds): (PodBuilder, i64)| QueuedPod {
            pod: cluster.pod(pod),
            queued_at: Timestamp::from_seconds(seconds),
            first_attempt_at: None,
            attempts: 0,
        };
        let (a, b) = (queued(a), queued(b));
        let sort = trial::<PrioritySort>().profile.queue_sort.remove(0);
        assert_eq!(sort.plugin.less(&cluster.context(), &a, &b), less, "{what}");
    }
}
