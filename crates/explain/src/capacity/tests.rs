use supercargo_config::{KubeSchedulerConfiguration, build_profile};
use supercargo_testkit::{PodBuilder, cluster, node, pod};

use super::limits::LOOKS_MAX;
use super::*;
use crate::render::{Detail, render_capacity};

fn options() -> CapacityOptions {
    CapacityOptions { now: Timestamp::from_nanoseconds(0), fixes: Fixes::default(), most: None }
}

fn profile() -> Profile {
    build_profile(&KubeSchedulerConfiguration::default(), &supercargo_plugins::registry(), 0)
        .expect("the default is valid")
}

/// Nodes for 12 pods of one cpu, and such a pod.
fn scene(pod: PodBuilder) -> (Cluster, Arc<Pod>) {
    let mut cluster = cluster()
        .with(node("c").cpu("4").zone("x").pods(110))
        .with(node("a").cpu("2").zone("y").pods(110))
        .with(node("b").cpu("6").zone("y").pods(110).taint("slow", "", "PreferNoSchedule"));
    let pod = cluster.pod(pod.uid("p").label("app", "web").cpu("1"));
    (cluster.into_cluster(), pod)
}

/// What comes of it by the index and by asking every plugin, which is the same.
#[track_caller]
fn count(pod: PodBuilder, budget: Budget) -> (String, Vec<(String, usize)>) {
    let (profile, (mut cluster, pod)) = (profile(), scene(pod));
    let mut ignore = |_: usize| ();
    let filling = Filling::new(&profile, &mut cluster, &pod, options(), budget, &mut ignore);
    let (limit, by_index) = filling.run().expect("copies can be placed");
    let mut filling = Filling::new(&profile, &mut cluster, &pod, options(), budget, &mut ignore);
    let plain_limit = filling.fill_plainly().expect("copies can be placed");
    let pairs = |nodes: Vec<NodeCapacity>| -> Vec<(String, usize)> {
        nodes.into_iter().map(|node| (node.node, node.fits)).collect()
    };
    let by_index = pairs(by_index);
    assert_eq!(pairs(filling.into_nodes()), by_index);
    assert_eq!(format!("{limit:?}"), format!("{plain_limit:?}"));
    (words(&limit), by_index)
}

fn words(limit: &CapacityLimit) -> String {
    match limit {
        CapacityLimit::Full { message, .. } => message.split(". ").next().unwrap_or_default().to_owned(),
        CapacityLimit::Failed { error } => error.clone(),
        CapacityLimit::Enough => "enough".to_owned(),
        CapacityLimit::Stopped { message, .. } => message.clone(),
    }
}

#[test]
fn both_ways_come_to_the_same_and_stop_at_the_same_limits() {
    let apart = || pod("p").near(true, ("app", "web"), "topology.kubernetes.io/zone");
    let full = "0/3 nodes are available: 3 Insufficient cpu";
    let budget = |copies, copies_limit| Budget { copies, copies_limit, ..Budget::new(None) };
    let limited = |copies| budget(copies, Some(CountingLimit::Count));
    for (pod, budget, limit, placed) in [
        (pod("p"), Budget::new(None), full, &[("a", 2), ("b", 6), ("c", 4)][..]),
        (pod("p"), Budget::new(Some(12)), full, &[("a", 2), ("b", 6), ("c", 4)]),
        (pod("p"), limited(12), full, &[("a", 2), ("b", 6), ("c", 4)]),
        (
            pod("p"),
            limited(3),
            "counting stopped at the limit of 3; --most counts further",
            &[("a", 1), ("c", 2)],
        ),
        (
            pod("p"),
            budget(3, Some(CountingLimit::MostCount)),
            "counting stopped at the limit of 3; no more are ever counted",
            &[("a", 1), ("c", 2)],
        ),
        (pod("p"), Budget::new(Some(3)), "enough", &[("a", 1), ("c", 2)]),
        (pod("p"), Budget::new(Some(0)), "enough", &[]),
        (
            apart(),
            Budget::new(None),
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules",
            &[("a", 1), ("c", 1)],
        ),
    ] {
        let expected = placed.iter().map(|(node, fits)| ((*node).to_owned(), *fits)).collect::<Vec<_>>();
        assert_eq!(count(pod, budget), (limit.to_owned(), expected));
    }
}

#[test]
fn slow_counting_stops_too() {
    let (profile, (mut cluster, pod)) = (profile(), scene(pod("p")));
    let mut ignore = |_: usize| ();
    let budget = Budget { looks_max: Some(5), ..Budget::new(None) };
    let mut filling = Filling::new(&profile, &mut cluster, &pod, options(), budget, &mut ignore);
    let limit = filling.fill_plainly().expect("copies can be placed");
    let why = "these pods take long to count, and --most counts further";
    assert_eq!(words(&limit), format!("counting stopped at the limit of 3; {why}"));
    assert!(matches!(limit, CapacityLimit::Stopped { at: 3, limit: CountingLimit::Work, .. }));
}

#[test]
fn a_wish_for_more_lifts_the_limits_but_one() {
    let mut budget = Budget::new(None);
    assert_eq!(budget.limit(COPIES_DEFAULT_MAX - 1), None);
    assert_eq!(budget.limit(COPIES_DEFAULT_MAX), Some(CountingLimit::Count));
    for _ in 0..LOOKS_MAX / 2 {
        budget.look(256);
    }
    assert_eq!(budget.limit(7), Some(CountingLimit::Work));
    let mut budget = Budget::new(Some(usize::MAX));
    for _ in 0..LOOKS_MAX {
        budget.look(usize::MAX);
    }
    assert_eq!((budget.copies, budget.limit(7)), (COPIES_MAX, None));
    assert_eq!(budget.limit(COPIES_MAX), Some(CountingLimit::MostCount));
    assert_eq!(Budget::new(Some(COPIES_MAX)).limit(COPIES_MAX), None);
}

#[test]
fn a_limit_is_said_in_words_and_in_json() {
    let message = format!("counting stopped at the limit of 20; {}", CountingLimit::Count);
    let capacity = Capacity {
        pod: "default/p".to_owned(),
        alike: Vec::new(),
        fits: 20,
        nodes: vec![NodeCapacity { node: "n".to_owned(), fits: 20 }],
        limit: CapacityLimit::Stopped { at: 20, limit: CountingLimit::Count, message },
    };
    assert_eq!(
        render_capacity(&capacity, Detail::Table),
        "at least 20 more like default/p fit, on 1 node\n  EACH  NODES  FOR EXAMPLE\n    20      1  n\n  counting stopped \
         at the limit of 20; --most counts further\n"
    );
    let json = serde_json::to_value(&capacity).expect("JSON");
    assert_eq!(
        json["limit"]["stopped"],
        serde_json::json!({ "at": 20, "limit": "count",
            "message": "counting stopped at the limit of 20; --most counts further" })
    );
}
