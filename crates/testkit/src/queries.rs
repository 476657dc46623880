//! Answers from outside, as a test gives them.

use supercargo_framework::{Needs, Query, ResolvedFacts};
use supercargo_model::{Kind, Object, ObjectKey};

use crate::cluster::TestCluster;
use crate::trial::Trial;

impl TestCluster {
    /// Has this fact of a query in it: about the node of that name or, if it is about everything, named like the query.
    #[must_use]
    pub fn fact<T: Kind>(mut self, name: &str, value: T) -> Self {
        self.change(|cluster| cluster.put_object(Object::new("", name, value)));
        self
    }

    /// Has this answer to a question about the pod of that namespace and name in it.
    #[must_use]
    pub fn answer_about<T: Kind>(mut self, namespace: &str, pod: &str, value: T) -> Self {
        self.change(|cluster| cluster.put_object(Object::new(namespace, pod, value)));
        self
    }
}

impl Trial {
    /// Somebody answers a query of the plugin with this text, at the time of the cluster: what it says is in the cluster from now on, and
    /// what was answered before is not. Returns what does not count, in words; or why the answer cannot be read, which changes nothing.
    pub fn answer(&self, cluster: &mut TestCluster, query: &str, answer: &str) -> Result<String, String> {
        let query = self.query(query);
        let facts = query.read(answer.as_bytes(), cluster.now)?;
        let ResolvedFacts { objects, left_out, .. } = query.resolve(facts, cluster.snapshot(), cluster.now);
        let kind = query.kind().id;
        let before: Vec<ObjectKey> =
            cluster.snapshot().objects().of_kind(kind).map(|object| object.key).collect();
        cluster.change(|cluster| {
            for key in &before {
                cluster.remove_object(kind, key);
            }
            for (object, _) in objects.into_values() {
                cluster.put_object(object);
            }
        });
        Ok(left_out.to_string())
    }

    /// The query of this name that the plugin declares.
    pub fn query(&self, name: &str) -> Query {
        let needs = Needs::of([&self.profile]);
        let found = needs.queries().iter().find(|query| query.name() == name).cloned();
        found.unwrap_or_else(|| panic!("the plugin declares no query {name:?}: {:?}", needs.queries()))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;
    use supercargo_framework::{
        Cycle, Endpoint, Extensions, HttpSource, NoArgs, Plugin, Reads, Score, Status, fact_kind,
    };
    use supercargo_model::{KindId, NodeRef};

    use super::*;
    use crate::{cluster, node, pod, trial};

    #[derive(Debug, PartialEq, Deserialize)]
    struct Points(i64);

    impl Kind for Points {
        const ID: KindId = fact_kind("Points", "points");
    }

    struct ByPoints;

    impl Plugin for ByPoints {
        const NAME: &'static str = "ByPoints";
        type Args = NoArgs;

        fn new(_: NoArgs) -> Self {
            ByPoints
        }

        fn extensions(points: Extensions<Self>) -> Extensions<Self> {
            points.score()
        }

        fn reads(&self) -> Reads {
            let source = HttpSource::get(Endpoint::new("http://points"));
            Reads::nothing().query(Query::per_node::<Points>("points", source, |answer, nodes| {
                for (node, points) in answer.json::<std::collections::BTreeMap<String, i64>>()? {
                    nodes.put(&node, Points(points));
                }
                Ok(())
            }))
        }
    }

    impl Score for ByPoints {
        fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
            Ok(cycle.object_of::<Points>(node).map_or(0, |points| points.0))
        }
    }

    #[test]
    fn what_a_test_answers_is_in_the_cluster_until_it_answers_something_else() {
        let by_points = trial::<ByPoints>();
        let address = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
        let mut cluster = cluster().with(node("a").with(address)).with(node("b")).fact("b", Points(7));
        assert_eq!(by_points.scores(&mut cluster, pod("p")), ["a: 0", "b: 7"]);
        let said = by_points.answer(&mut cluster, "points", r#"{"10.0.0.1:80": 3, "c": 1}"#);
        assert_eq!(said, Ok("1 of unknown nodes".to_owned()));
        assert_eq!(by_points.scores(&mut cluster, pod("p")), ["a: 3", "b: 0"]);
        let said = by_points.answer(&mut cluster, "points", "<html>");
        assert!(said.is_err_and(|reason| reason.contains("<html>")));
        assert_eq!(by_points.scores(&mut cluster, pod("p")), ["a: 3", "b: 0"]);
    }
}
