use supercargo_framework::News;
use supercargo_testkit::{cluster, node, pod, status_text, trial};

use super::*;

#[test]
fn binding_is_an_effect_and_ends_with_its_outcome() {
    let mut cluster = cluster().with(node("n"));
    let pod = cluster.pod(pod("p"));
    let mut cycle = cluster.cycle(&pod);
    let binder = trial::<DefaultBinder>().profile.bind.remove(0).plugin;
    let Step::Wait { effects, events, deadline } = binder.bind(&mut cycle, cluster.node("n")) else {
        panic!("it waits for the API server")
    };
    let [Effect::Bind { pod, node }] = &effects[..] else { panic!("one effect: {effects:?}") };
    assert_eq!((&*pod.name, &**node, events.len(), deadline), ("p", "n", 0, None));
    for (news, outcome) in [
        (News::Succeeded { objects: &[] }, "ok"),
        (News::Failed { error: "conflict", code: Some(409) }, "error: conflict"),
        (News::TimedOut, "error: timed out"),
    ] {
        let Step::Done(status) = binder.resume(&mut cycle, cluster.node("n"), &news) else {
            panic!("it is over")
        };
        assert_eq!(status_text(&status), outcome);
    }
}
