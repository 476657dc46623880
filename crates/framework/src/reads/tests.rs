use supercargo_model::kinds::{Namespace, Service};

use super::*;

#[test]
fn every_field_has_its_own_place() {
    for (index, field) in PodField::ALL.into_iter().enumerate() {
        assert_eq!(field.index() as usize, index);
        let only = FieldSet::EMPTY.with(&[field]);
        assert_eq!(PodField::ALL.into_iter().filter(|field| only.contains(*field)).count(), 1);
        assert!(FieldSet::FULL.contains(field) && !FieldSet::EMPTY.contains(field));
    }
    for (index, field) in NodeField::ALL.into_iter().enumerate() {
        assert_eq!(field.index() as usize, index);
    }
}

#[test]
fn together_two_plugins_read_what_either_reads() {
    let query = Query {
        name: "load".to_owned(),
        source: QuerySource::NodeMetrics,
        refresh: std::time::Duration::from_secs(30),
        deadline: std::time::Duration::from_secs(5),
    };
    let first = Reads::nothing().pod(&[PodField::Labels]).kind::<Service>().topology();
    let second = Reads {
        queries: vec![query.clone()],
        ..Reads::nothing().node(&[NodeField::Taints]).kind::<Service>().kind::<Namespace>().feasible_set()
    };
    let both = first.and(second.clone()).and(second);
    assert!(both.pod.contains(PodField::Labels) && !both.pod.contains(PodField::Name));
    assert!(both.node.contains(NodeField::Taints) && !both.node.contains(NodeField::Labels));
    assert!(both.topology && both.feasible_set && !both.time && !both.memory && !both.raw_objects);
    assert_eq!(both.kinds.iter().map(|kind| kind.id.kind).collect::<Vec<_>>(), ["Service", "Namespace"]);
    assert_eq!(both.queries, [query], "what two ask is asked once");
}

#[test]
fn an_answer_from_outside_is_part_of_the_snapshot() {
    let query = Query {
        name: "load".to_owned(),
        source: QuerySource::Http { url: "http://127.0.0.1:9000/load".to_owned() },
        refresh: std::time::Duration::from_secs(30),
        deadline: std::time::Duration::from_secs(5),
    };
    let mut cluster = supercargo_model::Cluster::default();
    assert_eq!(query.answer(cluster.snapshot()), None, "nobody has answered yet");
    let answer = |load: u32| QueryAnswer { value: load.into(), at: Timestamp::from_seconds(i64::from(load)) };
    cluster.put_object(answer(1).into_object("load"));
    let before = cluster.snapshot().clone();
    cluster.put_object(answer(2).into_object("load"));
    assert_eq!(query.answer(&before), Some(&answer(1)), "a cycle keeps the answer it began with");
    assert_eq!(query.answer(cluster.snapshot()), Some(&answer(2)));
    let version = |snapshot: &Snapshot| snapshot.objects().version(QueryAnswer::ID);
    assert!(version(cluster.snapshot()) > version(&before));
}
