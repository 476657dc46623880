use supercargo_model::kinds::{Namespace, PersistentVolume, Service, StorageClass};
use supercargo_model::{Kind, KindId};

use super::*;
use crate::obstacles::{Obstacle, Obstacles};

fn missing(kind: KindId, reason: MissingReason) -> Missing {
    Missing { unread: Unread { kind, known_namespace: None }, reason, message: String::new() }
}

fn doubt(plugin: &str, about: &'static str, part: Part, kind: KindId) -> Doubt {
    let causes = vec![missing(kind, MissingReason::Forbidden)];
    Doubt { plugin: plugin.to_owned(), about, missing: vec![kind_name(kind)], part, causes }
}

fn pending(plugins: &[&str]) -> Explanation {
    let obstacles = plugins.iter().map(|plugin| Obstacle {
        plugin: (*plugin).to_owned(),
        reason: "no".to_owned(),
        nodes: 1,
        examples: Vec::new(),
        is_uncertain: false,
    });
    Explanation::new(
        "a/b".to_owned(),
        Verdict::Pending(Obstacles {
            message: String::new(),
            nodes: 2,
            obstacles: obstacles.collect(),
            hints: Vec::new(),
            preemption: None,
        }),
    )
}

#[test]
fn nodes_that_others_rule_out_stay_ruled_out() {
    let doubts = || {
        vec![
            doubt("V", "volumes", Part::Feasibility, StorageClass::ID),
            doubt("S", "spreading", Part::Choice, Service::ID),
        ]
    };
    for (plugins, is_uncertain) in
        [(&["F"][..], false), (&["V"], true), (&["F", "V"], true), (&["S"], true), (&[UNATTRIBUTED], true)]
    {
        let mut explanation = pending(plugins);
        explanation.mark_doubts(doubts());
        assert_eq!(explanation.is_uncertain, is_uncertain, "{plugins:?}");
        // Which node is best does not matter where there is none.
        let kept: Vec<&str> = explanation.doubts.iter().map(|doubt| doubt.plugin.as_str()).collect();
        assert_eq!(kept, ["V"], "{plugins:?}");
    }
}

#[test]
fn a_sentence_says_why_and_about_what() {
    let sentence = |doubts: &[Doubt]| doubt_sentence(doubts);
    assert_eq!(sentence(&[]), None);
    let volumes = doubt("V", "volumes", Part::Feasibility, StorageClass::ID);
    let zones = doubt("Z", "volumes", Part::Feasibility, PersistentVolume::ID);
    let pods = doubt("F", "free resources", Part::Feasibility, KindId::POD);
    assert_eq!(
        sentence(&[volumes, zones, pods]).as_deref(),
        Some(
            "you may not read storageclasses, persistentvolumes and pods; the answer may be wrong about free resources and \
             volumes"
        )
    );
}

#[test]
fn many_kinds_are_counted() {
    let kinds = [StorageClass::ID, PersistentVolume::ID, Service::ID, Namespace::ID, KindId::POD];
    let mut all: Vec<Missing> = kinds.iter().map(|kind| missing(*kind, MissingReason::Forbidden)).collect();
    let forbidden = "you may not read storageclasses, persistentvolumes, services, namespaces, … (5 kinds)";
    assert_eq!(missing_sentence(&all).as_deref(), Some(forbidden));
    all[4].unread.known_namespace = Some("shop".into());
    assert_eq!(missing_sentence(&all[4..]).as_deref(), Some("you may not read pods outside shop"));
    let gone =
        [missing(Service::ID, MissingReason::NotServed), missing(KindId::POD, MissingReason::Unreadable)];
    let said = "the API server has no services; some objects could not be understood: pods";
    assert_eq!(missing_sentence(&gone).as_deref(), Some(said));
}
