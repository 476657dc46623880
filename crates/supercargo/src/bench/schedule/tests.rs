//! Runs that are right, and caught if they are not.

use super::*;

fn workload(name: &str) -> &'static Workload {
    WORKLOADS.iter().find(|known| known.name == name).expect("there is such a workload")
}

fn profile(workload: &Workload) -> Profile {
    let mut profile = super::super::profile(None, 0, &supercargo_plugins::registry())
        .expect("the default profile is right");
    (workload.change)(&mut profile).expect("can be changed");
    profile
}

#[test]
fn all_workloads_try_pods_in_order() {
    for workload in WORKLOADS {
        let profile = profile(workload);
        let run = run_once(workload, &profile, 50, 1500).expect("can be run");
        assert_eq!(check(workload, &profile, &run, 1500).expect("in order"), 1500, "{}", workload.name);
    }
}

#[test]
fn the_order_of_ageing_pods_changes_while_they_wait() {
    let workload = workload("ageing");
    let ageing = profile(workload);
    let run = run_once(workload, &ageing, 50, 1500).expect("can be run");
    let at_once = Run { tried: run.tried.iter().map(|(_, pod)| (NOW, pod.clone())).collect(), ..run };
    let error = check(workload, &ageing, &at_once, 1500).expect_err("another order at the beginning");
    assert!(error.to_string().contains("the first by a plain sort is"), "{error}");
}

#[test]
fn what_is_wrong_is_found() {
    let workload = workload("default");
    let profile = profile(workload);
    let run = || run_once(workload, &profile, 50, 100).expect("can be run");
    let mut swapped = run();
    let (first, last) = (swapped.tried[0].1.clone(), swapped.tried[99].1.clone());
    (swapped.tried[0].1, swapped.tried[99].1) = (last, first);
    let mut lost = run();
    lost.tried.pop();
    let unbound = Run { bound: 99, ..run() };
    for (run, expected) in [
        (swapped, "the first by a plain sort is"),
        (lost, "not each was tried once"),
        (unbound, "99 of 100 pods got a node"),
    ] {
        let error = check(workload, &profile, &run, 100).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
