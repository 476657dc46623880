//! What is answered, without a wire.

use serde_json::json;
use supercargo_testkit::{node, pod};

use super::{answerer, cluster, one, raw, sized, view};
use crate::wire::{
    ExtenderArgs, ExtenderFilterResult, ExtenderPreemptionArgs, MetaPod, MetaVictims, NodeList, Victims,
};

fn names(names: &[&str]) -> Option<Vec<Box<str>>> {
    Some(names.iter().map(|name| (*name).into()).collect())
}

/// `kept | failed: reason | unresolvable: reason`
fn told(result: Result<ExtenderFilterResult, String>) -> String {
    let result = match result {
        Ok(result) => result,
        Err(error) => return format!("error: {error}"),
    };
    assert_eq!(result.error, "");
    let kept = match (&result.node_names, &result.nodes) {
        (Some(names), None) => names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        (None, Some(nodes)) => nodes.items.iter().map(|node| node.get().len().to_string()).collect(),
        _ => panic!("either the one or the other"),
    };
    let words = |map: &std::collections::BTreeMap<Box<str>, String>| {
        map.iter().map(|(name, reason)| format!("{name}: {reason}")).collect::<Vec<_>>().join(", ")
    };
    let (failed, unresolvable) = (words(&result.failed_nodes), words(&result.failed_and_unresolvable_nodes));
    format!("{} | {failed} | {unresolvable}", kept.join(" "))
}

#[test]
fn every_node_gets_its_reason() {
    let known = || {
        cluster(
            vec![sized("a", "4"), sized("full", "1"), sized("tainted", "4").taint("k", "v", "NoSchedule")],
            vec![one("runs").on("full")],
        )
    };
    let args = |pod| ExtenderArgs {
        pod: Some(raw(pod)),
        node_names: names(&["tainted", "full", "stranger", "a"]),
        ..ExtenderArgs::default()
    };
    let answer = |always, pod| told(answerer(always).filter(view(known()), args(pod)));
    let by_all = "a | full: Insufficient cpu | stranger: the extender has not heard of this node, tainted: node(s) had \
                  untolerated taint(s)";
    let by_name = "tainted full a |  | stranger: the extender has not heard of this node";
    assert_eq!(answer(None, one("p")), by_all, "the profile of the pod's scheduler");
    assert_eq!(answer(None, one("p").scheduler("by-name")), by_name, "the same");
    assert_eq!(answer(None, one("p").scheduler("else")), by_all, "that of the default scheduler");
    assert_eq!(answer(Some("by-name"), one("p")), by_name, "whatever the pod says");
    assert_eq!(
        answer(None, one("p").scheduler("panics")),
        "error: plugin \"Panics\" panicked: as a test wants it"
    );
}

#[test]
fn whole_nodes_count_as_they_are_sent_and_pods_as_they_are_known() {
    let known = || cluster(vec![sized("a", "1"), sized("b", "1")], vec![one("runs").on("b")]);
    let sent = [raw(sized("a", "4")), raw(sized("b", "4")), raw(sized("new", "1"))];
    let lengths = |nodes: &[usize]| {
        nodes.iter().map(|node| sent[*node].get().len().to_string()).collect::<Vec<_>>().join(" ")
    };
    let args = |cpu| ExtenderArgs {
        pod: Some(raw(pod("p").cpu(cpu))),
        nodes: Some(NodeList::new(sent.to_vec())),
        ..ExtenderArgs::default()
    };
    let answer = |cpu| told(answerer(None).filter(view(known()), args(cpu)));
    assert_eq!(answer("1"), format!("{} |  | ", lengths(&[0, 1, 2])), "they are larger than was known");
    let failed = "b: Insufficient cpu | new: Insufficient cpu";
    assert_eq!(
        answer("3500m"),
        format!("{} | {failed}", lengths(&[0])),
        "a pod runs on b, and new is too small"
    );
    // Without a cluster nobody knows of that pod.
    let answerer = answerer(None);
    let nothing = || answerer.empty_view(supercargo_model::Timestamp::from_seconds(0), 0);
    let answer = told(answerer.filter(nothing(), args("3500m")));
    assert_eq!(answer, format!("{} |  | new: Insufficient cpu", lengths(&[0, 1])));
    let by_name = ExtenderArgs { nodes: None, node_names: names(&["a"]), ..args("1") };
    assert!(told(answerer.filter(nothing(), by_name)).contains("set nodeCacheCapable: false"));
}

#[test]
fn what_is_not_there_is_named() {
    let answerer = answerer(None);
    let answer = |args| told(answerer.filter(view(cluster(vec![], vec![])), args));
    let pod = || Some(raw(one("p")));
    let table = [
        (ExtenderArgs::default(), "error: the question has no Pod"),
        (
            ExtenderArgs { pod: pod(), ..Default::default() },
            "error: the question has neither Nodes nor NodeNames",
        ),
        (
            ExtenderArgs { pod: Some(raw(json!(5))), ..Default::default() },
            "error: cannot read the Pod of the question: ",
        ),
        (
            ExtenderArgs {
                pod: pod(),
                nodes: Some(NodeList::new(vec![raw(json!([]))])),
                ..Default::default()
            },
            "error: cannot read Nodes.items[0]: ",
        ),
    ];
    for (args, expected) in table {
        let found = answer(args);
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn the_best_node_has_the_highest_score_and_strangers_have_none() {
    let known = || {
        cluster(
            vec![sized("idle", "4"), sized("half", "4"), sized("busy", "4")],
            vec![pod("x").cpu("2").on("half"), pod("y").cpu("3").on("busy")],
        )
    };
    let args = ExtenderArgs {
        pod: Some(raw(one("p"))),
        node_names: names(&["busy", "stranger", "idle", "half"]),
        ..ExtenderArgs::default()
    };
    let list = answerer(None).prioritize(view(known()), args).expect("scores");
    let scores: Vec<(&str, i64)> = list.iter().map(|entry| (&*entry.host, entry.score)).collect();
    assert_eq!(
        scores.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["busy", "stranger", "idle", "half"]
    );
    let [(_, busy), (_, stranger), (_, idle), (_, half)] = scores[..] else { panic!("{scores:?}") };
    assert!(idle > half && half >= busy && stranger == 0 && idle <= 10, "{scores:?}");
}

#[test]
fn victims_are_enough_or_joined_by_others_or_in_vain() {
    let known = || {
        cluster(
            vec![
                sized("enough", "2"),
                sized("more", "2"),
                sized("vain", "1"),
                sized("tainted", "2").taint("k", "v", "NoSchedule"),
            ],
            vec![
                pod("e1").cpu("1").on("enough").uid("e1"),
                pod("e2").cpu("1").on("enough").uid("e2"),
                pod("m1").cpu("1").on("more").uid("m1"),
                pod("m2").cpu("1").on("more").uid("m2"),
                pod("t").cpu("2").on("tainted").uid("t"),
            ],
        )
    };
    let meta = |uids: &[&str], pdb_violations| MetaVictims {
        pods: uids.iter().map(|uid| MetaPod { uid: (*uid).into() }).collect(),
        pdb_violations,
    };
    let args = ExtenderPreemptionArgs {
        pod: Some(raw(pod("p").cpu("2").priority(10))),
        node_name_to_meta_victims: Some(
            [
                ("enough".into(), meta(&["e1", "e2", "gone"], 1)),
                ("more".into(), meta(&["m1"], 0)),
                ("vain".into(), meta(&["v"], 0)),
                ("tainted".into(), meta(&["t"], 0)),
                ("stranger".into(), meta(&["s"], 0)),
            ]
            .into(),
        ),
        ..ExtenderPreemptionArgs::default()
    };
    let told = |args, view| {
        let result = answerer(None).preempt(view, args).expect("an answer");
        let line = |node: &str, victims: &MetaVictims| {
            let uids: Vec<&str> = victims.pods.iter().map(|pod| &*pod.uid).collect();
            format!("{node}: {} ({})", uids.join(" "), victims.pdb_violations)
        };
        let told = result.node_name_to_meta_victims.iter();
        told.map(|(node, victims)| line(node, victims)).collect::<Vec<_>>()
    };
    assert_eq!(told(args.clone(), view(known())), ["enough: e1 e2 gone (1)", "more: m1 m2 (0)"]);
    // Who preempts nobody gets no more victims than he was given.
    let never = raw(pod("p").cpu("2").priority(10).with(json!({ "spec": { "preemptionPolicy": "Never" } })));
    let shy = ExtenderPreemptionArgs { pod: Some(never), ..args.clone() };
    assert_eq!(told(shy, view(known())), ["enough: e1 e2 gone (1)"]);
    let nothing = answerer(None).empty_view(supercargo_model::Timestamp::from_seconds(0), 0);
    assert_eq!(told(args, nothing).len(), 5, "there is nothing to object to");

    // Whole pods are told by UID.
    let whole = ExtenderPreemptionArgs {
        pod: Some(raw(pod("p").cpu("2").priority(10))),
        node_name_to_victims: Some(
            [("more".into(), Victims { pods: vec![raw(pod("m1").uid("m1"))], pdb_violations: 2 })].into(),
        ),
        ..ExtenderPreemptionArgs::default()
    };
    assert_eq!(told(whole, view(known())), ["more: m1 m2 (2)"]);
    let neither = ExtenderPreemptionArgs { pod: Some(raw(node("p"))), ..ExtenderPreemptionArgs::default() };
    assert!(answerer(None).preempt(view(known()), neither).is_err());
}

#[test]
fn a_profile_that_is_not_there_is_named() {
    let kube =
        supercargo_config::load(super::CONFIG.split("- schedulerName: panics").next().unwrap_or_default());
    let profiles = supercargo_config::build_profiles(
        &kube.expect("a configuration").kube,
        &supercargo_plugins::registry(),
    );
    let missing = super::Answerer::new(profiles.expect("profiles"), Default::default(), Some("gpu"));
    let words = missing.expect_err("there is none").to_string();
    assert_eq!(words, r#"no profile is called "gpu"; the configuration has by-name, default-scheduler"#);
}
