use supercargo_model::kinds::{Namespace, Service};

use super::*;
use crate::queries::{QuerySource, fact_kind};

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
    #[derive(PartialEq, serde::Deserialize)]
    struct Load {}

    impl Kind for Load {
        const ID: KindId = fact_kind("Load", "loads");
    }

    let query = Query::per_node::<Load>("load", QuerySource::NodeMetrics, |_, _| Ok(()));
    let first = Reads::nothing().pod(&[PodField::Labels]).kind::<Service>().topology();
    let second =
        Reads::nothing().node(&[NodeField::Taints]).kind::<Service>().kind::<Namespace>().feasible_set();
    let second = second.query(query.clone());
    let both = first.and(second.clone()).and(second);
    assert!(both.pod.contains(PodField::Labels) && !both.pod.contains(PodField::Name));
    assert!(both.node.contains(NodeField::Taints) && !both.node.contains(NodeField::Labels));
    assert!(both.topology && both.feasible_set && !both.time && !both.memory && !both.raw_objects);
    assert_eq!(
        both.kinds.iter().map(|kind| kind.id.kind).collect::<Vec<_>>(),
        ["Service", "Namespace", "Load"]
    );
    assert_eq!(both.queries, [query], "what two ask is asked once");
}
