//! The plugin `Gangs`: pods with the label `example.com/gang` go to their nodes together, as many as the Gang of that name says.

mod status;

use supercargo_sdk::PodSet;
use supercargo_sdk::prelude::*;

const LABEL: &str = "example.com/gang";
/// How long the first pod of a gang waits for the last one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets the pods of a gang go when enough of them have a node, and keeps count in the gang's status.
#[derive(Debug)]
pub struct Gangs;

/// A custom resource, as far as the plugin reads it.
#[derive(Debug, Deserialize)]
#[serde(crate = "supercargo_sdk::serde")]
pub struct Gang {
    spec: GangSpec,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "supercargo_sdk::serde")]
struct GangSpec {
    size: usize,
}

impl Kind for Gang {
    const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Gang", plural: "gangs" };
}

impl Plugin for Gangs {
    const NAME: &'static str = "Gangs";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Gangs
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.permit().observe().page()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Labels]).kind::<Gang>().pods_by_label(LABEL)
    }

    fn writes(&self) -> Writes {
        Writes::nothing().patch_status::<Gang>()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label(LABEL).is_some()
    }
}

/// The pods of a gang, wherever they stand.
fn members<'a>(context: &Context<'a>, namespace: &str, gang: &str) -> PodSet<'a> {
    context.pods().by_label_in(namespace, LABEL, gang)
}

impl Permit for Gangs {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let (pod, context) = (cycle.pod, &cycle.context);
        let Some(name) = pod.labels.label(LABEL) else { return PermitDecision::Allow };
        let gang = context.cluster.objects().get::<Gang>(&pod.namespace, name);
        let members = members(context, &pod.namespace, name);
        // The pod itself has a node now, too.
        let placed = members.count(Standing::AtPermit) + members.count(Standing::Bound) + 1;
        if gang.is_none_or(|gang| placed < gang.spec.size) {
            return PermitDecision::wait_until(context.now.after(PATIENCE));
        }
        for waiting in members.iter().filter(|member| member.standing == Standing::AtPermit) {
            acts.allow(&waiting.pod.uid);
        }
        PermitDecision::Allow
    }
}
