//! What other subcommands make of a plugin that was added is in `tests/added_plugin.rs`.

use supercargo_conformance::Judge;
use supercargo_sdk::prelude::*;

use super::*;
use crate::Plugins;

/// Lets no pod onto any node.
struct Berths;

impl Plugin for Berths {
    const NAME: &'static str = "Berths";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Berths
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Berths {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::unresolvable("node(s) had no berth")
    }
}

#[test]
fn verdicts_judge_with_it() {
    let registry = Plugins::with(Plugins::add::<Berths>).expect("the name is free");
    let case = r#"{"name":"c","config":{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",
        "profiles":[{"plugins":{"multiPoint":{"enabled":[{"name":"Berths"}]}}}]},
        "objects":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"},"status":{"allocatable":{"cpu":"4","pods":"9"}}}],
        "pods":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"p"},"spec":{"containers":[]}}]}"#;
    let mut output = Vec::new();
    let case = case.replace('\n', "");
    let outcome =
        judge_all(case.as_bytes(), &mut output, Judge::new(&registry), &[]).expect("it can be written");
    let text = String::from_utf8(output).expect("verdicts are text");
    assert_eq!(outcome.code, 0, "{text}");
    assert!(text.contains("node(s) had no berth"), "{text}");
}
