//! The order of two pods, as time passes.

use ageing::Ageing;
use supercargo_sdk::prelude::*;
use supercargo_sdk::testkit::{cluster, pod};

#[test]
fn a_pod_that_has_waited_goes_before_one_that_is_more_important() {
    let mut cluster = cluster();
    let (old, new) = (cluster.pod(pod("old").priority(0)), cluster.pod(pod("new").priority(5)));
    let context = cluster.context();
    let began = context.now;
    let queued = |pod: &Arc<Pod>, after: u64| {
        let queued_at = began.after(Duration::from_secs(after));
        QueuedPod { pod: pod.clone(), queued_at, first_attempt_at: Some(queued_at), attempts: 0 }
    };
    let (old, new) = (queued(&old, 0), queued(&new, 3));
    for (seconds, is_first) in [(3, false), (4, false), (60, false)] {
        let context = Context { now: began.after(Duration::from_secs(seconds)), ..context.clone() };
        assert_eq!(Ageing.less(&context, &old, &new), is_first, "after {seconds} s");
    }
    // The new one has come later than its priority makes up for.
    let late = QueuedPod { first_attempt_at: Some(began.after(Duration::from_secs(6))), ..new };
    let context = Context { now: began.after(Duration::from_secs(6)), ..context };
    assert!(Ageing.less(&context, &old, &late));
}

#[test]
fn the_configuration_is_right() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let checked =
        supercargo::outcome_of(["ageing", "config", "check", file], |plugins| plugins.add::<Ageing>());
    assert_eq!((checked.stdout.as_str(), checked.code), ("", 0));
}
