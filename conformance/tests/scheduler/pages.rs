//! The pages of plugins: made of what they remember and of the cluster, for whoever asks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Acts, Context, Cycle, Extensions, Memory, NoArgs, Page, PageRequest, Plugin, Rendered, Reserve, Status,
};
use supercargo_model::NodeRef;
use supercargo_testkit::{node, pod};

use crate::acting::world_with;

/// Counts the pods that were given a node, and shows how many there were.
struct Counts;

/// Has a page, and takes part in nothing else.
struct OnlyPage;

#[derive(Clone, Default, Deserialize, Serialize)]
struct Placed(usize);

impl Memory for Placed {
    const NAME: &'static str = "Counts";
}

impl Plugin for Counts {
    const NAME: &'static str = "Counts";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Counts
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve().page().remembers::<Placed>()
    }
}

impl Reserve for Counts {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Placed>().0 += 1;
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

impl Page for Counts {
    fn title(&self) -> Cow<'static, str> {
        "Pods and nodes".into()
    }

    fn render(&self, context: &Context<'_>, request: &PageRequest) -> Rendered {
        let placed = context.memories.get::<Placed>().map_or(0, |placed| placed.0);
        match (request.path.as_str(), request.query.as_str()) {
            ("", "") => Rendered::text(format!("{placed} pods on {} nodes", context.cluster.node_count())),
            ("twice", query) => Rendered::text(format!("{} {query}", 2 * placed)),
            ("panic", _) => panic!("on purpose"),
            _ => Rendered::not_found(),
        }
    }
}

impl Plugin for OnlyPage {
    const NAME: &'static str = "OnlyPage";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        OnlyPage
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.page()
    }
}

impl Page for OnlyPage {
    fn title(&self) -> Cow<'static, str> {
        "A page".into()
    }

    fn render(&self, _: &Context<'_>, _: &PageRequest) -> Rendered {
        Rendered::html("<p>here")
    }
}

#[test]
fn a_page_shows_what_is_remembered_and_what_is_there() {
    let mut world = world_with(&["Counts", "OnlyPage"], |plugins| {
        plugins.add::<OnlyPage>()?;
        plugins.add::<Counts>()
    });
    world.put(node("n1").cpu("2"));
    world.put(node("n2").cpu("2"));
    for name in ["a", "b", "c"] {
        world.put(pod(name).cpu("1"));
    }
    world.run();
    assert_eq!(world.scheduler.pages(), [("Counts", "Pods and nodes".into()), ("OnlyPage", "A page".into())]);
    let now = world.now();
    let mut ask = |plugin: &str, path: &str, query: &str| {
        let rendered = world.scheduler.render(plugin, &PageRequest::new(path, query), now);
        rendered.map(|rendered| rendered.map(|page| (page.is_found, page.body)))
    };
    let found = |body: &str| Some(Ok((true, body.to_owned())));
    for (plugin, path, query, expected) in [
        ("Counts", "", "", found("3 pods on 2 nodes")),
        ("Counts", "twice", "a=b", found("6 a=b")),
        ("Counts", "elsewhere", "", Some(Ok((false, "404 page not found\n".to_owned())))),
        ("Counts", "panic", "", Some(Err("plugin \"Counts\" panicked: on purpose".to_owned()))),
        ("Counts", "", "", found("3 pods on 2 nodes")),
        ("OnlyPage", "", "", found("<p>here")),
        ("NodeAffinity", "", "", None),
    ] {
        assert_eq!(ask(plugin, path, query), expected, "{plugin} {path} {query}");
    }
}
