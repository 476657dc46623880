use serde_json::json;
use supercargo_model::Timestamp;
use supercargo_testkit::{PodBuilder, check_points, check_reads, cluster, pod, trial};

use super::*;

fn guaranteed(name: &str) -> PodBuilder {
    let both = json!({ "cpu": "1", "memory": "1Gi" });
    pod(name).container(json!({ "resources": { "requests": both, "limits": both } }))
}

#[test]
fn it_is_what_it_declares() {
    check_points!(QosSort);
    check_reads::<QosSort>();
}

#[test]
fn the_more_important_goes_first_then_to_whom_more_is_promised_then_who_waited_longer() {
    let burstable = |name| pod(name).cpu("1");
    let said = |name, class: &str| pod(name).with(json!({ "status": { "qosClass": class } }));
    for (what, a, b, less) in [
        ("priority before class", (pod("a").priority(1), 9), (guaranteed("b"), 1), true),
        ("guaranteed before burstable", (guaranteed("a"), 9), (burstable("b"), 1), true),
        ("burstable before best effort", (burstable("a"), 9), (pod("b"), 1), true),
        ("best effort after burstable", (pod("a"), 1), (burstable("b"), 9), false),
        ("what the status says counts", (said("a", "Guaranteed"), 9), (burstable("b"), 1), true),
        ("the earlier of equals", (burstable("a"), 1), (burstable("b"), 2), true),
        ("the same", (burstable("a"), 1), (burstable("b"), 1), false),
        ("the lowest priority", (pod("a").priority(i32::MIN), 1), (pod("b").priority(i32::MAX), 2), false),
    ] {
        let mut cluster = cluster();
        let mut queued = |(pod, seconds): (PodBuilder, i64)| QueuedPod {
            pod: cluster.pod(pod),
            queued_at: Timestamp::from_seconds(seconds),
            first_attempt_at: None,
            attempts: 0,
        };
        let (a, b) = (queued(a), queued(b));
        let sort = trial::<QosSort>().profile.queue_sort.remove(0);
        assert_eq!(sort.plugin.less(&cluster.context(), &a, &b), less, "{what}");
        assert!(!less || !sort.plugin.less(&cluster.context(), &b, &a), "{what}: not both ways");
    }
}
