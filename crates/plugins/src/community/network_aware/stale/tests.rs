use std::collections::BTreeSet;

use serde_json::json;
use supercargo_framework::{AskedActs, Memories};
use supercargo_testkit::{TestCluster, cluster};

use super::*;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept(StaleObjects);

impl Memory for Kept {
    const NAME: &'static str = "Kept";
}

impl KeepsTrue for Kept {
    fn objects(&self) -> &StaleObjects {
        &self.0
    }

    fn objects_mut(&mut self) -> &mut StaleObjects {
        &mut self.0
    }
}

/// Somebody who keeps objects true, for a moment.
fn with_acts<R>(
    memories: &mut Memories,
    cluster: &TestCluster,
    act: impl FnOnce(&Context<'_>, &mut Acts<'_>) -> R,
) -> R {
    let mut asked = AskedActs::default();
    memories.declare::<Kept>();
    act(&cluster.context(), &mut Acts::new("Keeper", memories, &mut asked))
}

fn patch(name: &str) -> Effect {
    let key = ObjectKey { namespace: "default".into(), name: name.into() };
    Effect::Patch { kind: KindId::POD, key, subresource: Some("status"), patch: json!({}) }
}

#[test]
fn every_name_has_its_turn_though_the_first_ones_come_again_and_again() {
    let (mut memories, cluster) = (Memories::default(), cluster());
    let names: Vec<String> = (0..2 * NAMES_PER_WAKE_MAX + 10).map(|number| format!("{number:05}")).collect();
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        with_acts(&mut memories, &cluster, |context, acts| {
            let to_mark = if seen.is_empty() { &names[..] } else { &names[..NAMES_PER_WAKE_MAX] };
            for name in to_mark {
                mark_stale::<Kept>(context, name, NEXT_PAUSE, acts);
            }
            let taken = take_stale::<Kept>(context, acts);
            assert!(taken.is_sorted());
            seen.extend(taken);
        });
    }
    assert_eq!(seen.len(), names.len());
}

#[test]
fn what_is_being_written_is_not_written_again_meanwhile() {
    let (mut memories, mut cluster) = (Memories::default(), cluster());
    let key = ObjectKey { namespace: "default".into(), name: "a".into() };
    let stale = |memories: &mut Memories, cluster: &TestCluster| {
        with_acts(memories, cluster, |context, acts| {
            mark_stale::<Kept>(context, "a", NEXT_PAUSE, acts);
            take_stale::<Kept>(context, acts)
        })
    };
    let answer = |memories: &mut Memories, cluster: &TestCluster| {
        with_acts(memories, cluster, |context, acts| {
            written::<Kept>(context, &patch("a"), &Conclusion::Done, acts);
        });
    };
    with_acts(&mut memories, &cluster, |context, acts| {
        write::<Kept>(context, KindId::POD, &key, Some("status"), json!({}), acts);
        write::<Kept>(context, KindId::POD, &key, None, json!({}), acts);
    });
    assert_eq!(stale(&mut memories, &cluster), [""; 0]);
    answer(&mut memories, &cluster);
    assert_eq!(stale(&mut memories, &cluster), [""; 0], "there was another write");
    answer(&mut memories, &cluster);
    assert_eq!(stale(&mut memories, &cluster), ["a"]);

    with_acts(&mut memories, &cluster, |context, acts| {
        write::<Kept>(context, KindId::POD, &key, Some("status"), json!({}), acts);
    });
    assert_eq!(stale(&mut memories, &cluster), [""; 0]);
    cluster.now = cluster.now.after(ANSWER_PAUSE);
    assert_eq!(stale(&mut memories, &cluster), ["a"], "an answer may be lost");
}
