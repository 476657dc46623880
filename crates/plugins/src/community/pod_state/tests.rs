use supercargo_testkit::{check_points, check_reads, cluster, node, pod, trial};

use super::*;

#[test]
fn it_is_what_it_declares() {
    check_points!(PodState);
    check_reads::<PodState>();
}

#[test]
fn pods_that_leave_make_a_node_better_and_nominated_ones_worse() {
    let mut cluster = cluster()
        .with(node("leaving"))
        .with(node("promised"))
        .with(node("quiet"))
        .with(pod("a").on("leaving").terminating())
        .with(pod("b").on("leaving").terminating())
        .with(pod("c").on("quiet"))
        .with(pod("d").nominated("promised"));
    let scores = trial::<PodState>().scores(&mut cluster, pod("web"));
    assert_eq!(scores, ["leaving: 100", "promised: 0", "quiet: 33"]);
}

#[test]
fn nodes_that_are_alike_get_nothing() {
    let mut cluster = cluster().with(node("a")).with(node("b"));
    assert_eq!(trial::<PodState>().scores(&mut cluster, pod("web")), ["a: 0", "b: 0"]);
}
