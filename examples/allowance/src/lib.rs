//! The plugin `Allowance`: so many pods of a namespace are ever given a node, whether they still run or not. That cannot be read off
//! the cluster, so the plugin remembers it, and has it saved.

use std::borrow::Cow;
use std::fmt::Write as _;

use supercargo_sdk::escape_html;
use supercargo_sdk::prelude::*;

/// Refuses pods of namespaces that have had all theirs.
#[derive(Debug)]
pub struct Allowance {
    args: AllowanceArgs,
}

/// Arguments of [`Allowance`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AllowanceArgs {
    pods: u32,
}

impl Default for AllowanceArgs {
    fn default() -> Self {
        AllowanceArgs { pods: 3 }
    }
}

impl Args for AllowanceArgs {
    fn validate(&self, problems: &mut FieldProblems) {
        if self.pods == 0 {
            problems.invalid("pods", self.pods, "must be at least 1");
        }
    }
}

/// How many pods of each namespace were bound. It survives the process.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde")]
pub struct Spent {
    pods: SharedMap<String, u32>,
}

impl Memory for Spent {
    const NAME: &'static str = "Allowance/Spent";
    const SAVED: Option<u32> = Some(1);
}

/// How many are on their way to a node. A new process has none, so this is not saved.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde")]
pub struct OnTheirWay {
    pods: SharedMap<String, u32>,
}

impl Memory for OnTheirWay {
    const NAME: &'static str = "Allowance/OnTheirWay";
}

impl Plugin for Allowance {
    const NAME: &'static str = "Allowance";
    type Args = AllowanceArgs;

    fn new(args: AllowanceArgs) -> Self {
        Allowance { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().reserve().post_bind().page().remembers::<Spent>().remembers::<OnTheirWay>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Namespace]).memory()
    }
}

impl PreFilter for Allowance {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let (memories, namespace) = (cycle.context.memories, cycle.pod.namespace.to_string());
        let spent = memories.get::<Spent>().and_then(|spent| spent.pods.get(&namespace));
        let coming = memories.get::<OnTheirWay>().and_then(|coming| coming.pods.get(&namespace));
        let had = spent.copied().unwrap_or(0) + coming.copied().unwrap_or(0);
        if had < self.args.pods {
            return PreFilterResult::AllNodes;
        }
        PreFilterResult::Reject(Status::unresolvable(format!(
            "the namespace has had its {} pods",
            self.args.pods
        )))
    }
}

impl Reserve for Allowance {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        *acts.memory::<OnTheirWay>().pods.get_or_default(&cycle.pod.namespace.to_string()) += 1;
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        arrived(cycle, acts);
    }
}

impl PostBind for Allowance {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        arrived(cycle, acts);
        *acts.memory::<Spent>().pods.get_or_default(&cycle.pod.namespace.to_string()) += 1;
    }
}

/// A pod is not on its way any more.
fn arrived(cycle: &Cycle<'_>, acts: &mut Acts<'_>) {
    let namespace = cycle.pod.namespace.to_string();
    let coming = &mut acts.memory::<OnTheirWay>().pods;
    match coming.get_mut(&namespace) {
        Some(pods) if *pods > 1 => *pods -= 1,
        _ => _ = coming.remove(&namespace),
    }
}

impl Page for Allowance {
    fn title(&self) -> Cow<'static, str> {
        "Pods that namespaces have had".into()
    }

    fn render(&self, context: &Context<'_>, _: &PageRequest) -> Rendered {
        let mut page = "<table>\n<tr><th>namespace<th>pods\n".to_owned();
        for (namespace, pods) in context.memories.get::<Spent>().iter().flat_map(|spent| spent.pods.iter()) {
            let _ = writeln!(page, "<tr><td>{}<td>{pods}", escape_html(namespace));
        }
        Rendered::html(page + "</table>\n")
    }
}
