//! Luck is fair, and repeats itself where it should.

use std::collections::BTreeMap;

use lucky_extender::Lucky;
use supercargo_sdk::testkit::{TestCluster, cluster, node, pod, trial};

const NODES: usize = 20;
const QUESTIONS: u64 = 200;

fn nodes() -> TestCluster {
    (0..NODES).fold(cluster(), |cluster, number| cluster.with(node(&format!("node-{number:02}"))))
}

#[test]
fn half_of_the_nodes_have_luck() {
    let mut cluster = nodes();
    let mut lucky = BTreeMap::<String, usize>::new();
    for seed in 0..QUESTIONS {
        cluster.seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in trial::<Lucky>().filter(&mut cluster, pod("web")) {
            let (name, said) = word.split_once(": ").expect("a node and a word");
            match said {
                "ok" => *lucky.entry(name.to_owned()).or_default() += 1,
                said => assert_eq!(said, "unschedulable: Well, you're not lucky"),
            }
        }
    }
    assert_eq!(lucky.len(), NODES);
    assert!(lucky.values().all(|count| (60..140).contains(count)), "{lucky:?}");
}

#[test]
fn every_score_is_as_good_as_any() {
    let mut cluster = nodes();
    let mut counts = BTreeMap::<String, usize>::new();
    for seed in 0..QUESTIONS {
        cluster.seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in trial::<Lucky>().scores(&mut cluster, pod("web")) {
            let (_, score) = word.split_once(": ").expect("a node and a score");
            *counts.entry(score.to_owned()).or_default() += 1;
        }
    }
    let scores: Vec<String> = (0..=10).map(|score| (score * 10).to_string()).collect();
    assert!(
        counts.len() == scores.len() && scores.iter().all(|score| counts.contains_key(score)),
        "{counts:?}"
    );
    assert!(counts.values().all(|count| (250..480).contains(count)), "{counts:?}");
}

#[test]
fn the_same_seed_means_the_same_luck() {
    let words = |seed| {
        let mut cluster = nodes();
        cluster.seed = seed;
        trial::<Lucky>().filter(&mut cluster, pod("web"))
    };
    assert_eq!(words(5), words(5));
    assert_ne!(words(5), words(6));
}

#[test]
fn the_configurations_are_right() {
    let check = |file: &str| {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        supercargo::outcome_of(["lucky-extender", "config", "check", &path], |plugins| plugins.add::<Lucky>())
    };
    let own = check("extender-config.yaml");
    assert_eq!(own.code, 0, "{}", own.stdout);
    let theirs = check("scheduler-extender-config.yaml");
    assert_eq!(theirs.code, 0, "{}", theirs.stdout);
}
