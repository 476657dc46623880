//! What plugins ask outside, made of their arguments.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Endpoint, Extensions, Filter, HttpSource, Plugin, Query, Reads, Registry, Status, fact_kind,
};
use supercargo_model::{Kind, KindId, NodeRef};

use super::{HEAD, problems_of, support};

#[derive(PartialEq, Deserialize)]
struct Load {}

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct AskerArgs {
    url: String,
}

impl Default for AskerArgs {
    fn default() -> Self {
        AskerArgs { url: "http://a".to_owned() }
    }
}

impl Args for AskerArgs {}

/// Asks what its arguments say. `OTHER` is another plugin that asks for the same facts.
struct Asker<const OTHER: bool>(AskerArgs);

impl<const OTHER: bool> Plugin for Asker<OTHER> {
    const NAME: &'static str = if OTHER { "Other" } else { "Asker" };
    type Args = AskerArgs;

    fn new(args: AskerArgs) -> Self {
        Asker(args)
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        let source = HttpSource::get(Endpoint::new(&self.0.url));
        let name = if OTHER { "other" } else { "load" };
        Reads::nothing().query(Query::per_node::<Load>(name, source, |_, _| Ok(())))
    }
}

impl<const OTHER: bool> Filter for Asker<OTHER> {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

fn registry() -> Registry {
    let mut registry = support::registry();
    registry.register::<Asker<false>>().expect("new");
    registry.register::<Asker<true>>().expect("new");
    registry
}

fn profile(name: &str, plugins: &str, url: &str) -> String {
    format!(
        "{{schedulerName: {name}, plugins: {{filter: {{enabled: [{plugins}]}}}}, \
         pluginConfig: [{{name: Asker, args: {{url: '{url}'}}}}]}}"
    )
}

#[test]
fn queries_that_cannot_be_asked_are_errors_of_their_plugins() {
    let asker = "{name: Asker}";
    let both = "{name: Asker}, {name: Other}";
    let good = "http://prometheus:9090";
    let table = [
        (vec![profile("a", asker, good), profile("b", asker, good)], vec![]),
        (
            vec![profile("a", asker, "prometheus:9090")],
            vec![
                "C022 profiles[0].pluginConfig[0].args: initializing plugin \"Asker\": Invalid value: \"load\": query \
                 \"load\": url: an address begins with http:// or https://",
            ],
        ),
        (
            vec![profile("a", asker, good), profile("b", asker, "http://other")],
            vec![
                "C064 profiles[1]: Asker asks query \"load\" of http://other every 30s within 10s, and Asker asks query \
                 \"load\" of http://prometheus:9090 every 30s within 10s: both would tell of objects of kind Load, or \
                 have one name",
            ],
        ),
        (
            vec![profile("a", both, good)],
            vec![
                "C064 profiles[0]: Other asks query \"other\" of http://a every 30s within 10s, and Asker asks query \
                 \"load\" of http://prometheus:9090 every 30s within 10s: both would tell of objects of kind Load, or \
                 have one name",
            ],
        ),
    ];
    for (profiles, expected) in table {
        let text = format!("{HEAD}profiles: [{}]\n", profiles.join(", "));
        let problems = problems_of(&text, &registry());
        let found: Vec<String> = problems
            .into_iter()
            .map(|problem| format!("{} {}: {}", problem.code, problem.path, problem.message))
            .collect();
        assert_eq!(found, expected, "of:\n{text}");
    }
}
