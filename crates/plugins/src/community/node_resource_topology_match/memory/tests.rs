use supercargo_model::Pod;
use supercargo_testkit::{cluster, pod};

use super::super::topology::Policy;
use super::*;

fn name(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn nodes_are_looked_at_again_only_after_they_became_smaller() {
    let mut cluster = cluster();
    let (small, large) = (cluster.pod(pod("s").cpu("1")), cluster.pod(pod("l").cpu("2")));
    let mut memory = TopologyMemory::default();
    for node in ["a", "b"] {
        memory.learn(&name(node), Arc::default(), |_| false);
    }
    let seen = |memory: &TopologyMemory, pod: &Pod| {
        memory.smaller_since(&pod.spec).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen(&memory, &small), "");
    memory.assume(&name("a"), &name("1"), ResourceList::default());
    memory.assume(&name("b"), &name("2"), ResourceList::default());
    assert_eq!(seen(&memory, &small), "a b");
    memory.saw(&small.spec);
    assert_eq!((seen(&memory, &small), seen(&memory, &large)), (String::new(), "a b".to_owned()));
    memory.assume(&name("a"), &name("3"), ResourceList::default());
    assert_eq!((seen(&memory, &small), seen(&memory, &large)), ("a".to_owned(), "b a".to_owned()));
    memory.suspect(&name("a"));
    memory.assume(&name("a"), &name("4"), ResourceList::default());
    assert_eq!(seen(&memory, &large), "b", "who is suspected need not be looked at");
    memory.learn(&name("a"), Arc::default(), |uid| uid == "4");
    assert_eq!(seen(&memory, &large), "b a", "a pod is still not counted");
    memory.forget(&name("a"));
    assert_eq!(seen(&memory, &large), "b");
}

#[test]
fn many_kinds_of_pods_are_told_apart_and_more_are_asked_about_again() {
    let mut cluster = cluster();
    let pods: Vec<_> =
        (0..=SPECS_MAX).map(|number| cluster.pod(pod("p").cpu(&(number + 1).to_string()))).collect();
    let mut memory = TopologyMemory::default();
    memory.learn(&name("a"), Arc::default(), |_| false);
    for _ in 0..2 * LOOK_UPS_MAX {
        memory.assume(&name("a"), &name("1"), ResourceList::default());
    }
    assert_eq!(memory.smaller_since(&pods[0].spec).len(), 1, "once, however often it became smaller");
    pods.iter().for_each(|pod| memory.saw(&pod.spec));
    let unseen = pods.iter().filter(|pod| !memory.smaller_since(&pod.spec).is_empty()).count();
    assert_eq!((unseen, memory.changes.seen.len()), (1, SPECS_MAX));
}

#[test]
fn policies_that_are_as_they_were_again_are_no_news() {
    let mut memory = TopologyMemory::default();
    memory.learn(&name("a"), Arc::default(), |_| false);
    memory.assume(&name("a"), &name("1"), ResourceList::default());
    let mut other = NodeResourceTopology::default();
    other.manager.policy = Policy::BestEffort;
    memory.update(&name("a"), Arc::new(other), true);
    assert_eq!(memory.doubtful(), [(name("a"), true)]);
    memory.update(&name("a"), Arc::default(), true);
    memory.trust(&name("a"));
    assert_eq!(memory.doubtful(), [], "or the next topology would count without a look at its pods");
    memory.suspect(&name("a"));
    memory.trust(&name("a"));
    assert_eq!(memory.doubtful(), [(name("a"), false)], "a pod is counted on top of it");
}
