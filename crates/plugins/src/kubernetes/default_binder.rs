//! DefaultBinder: binds a pod through the API server.

use supercargo_framework::{Bind, Cycle, Effect, Extensions, NoArgs, Plugin, Reads, Step, Writes};
use supercargo_model::NodeRef;

/// # What
/// Binds the pod to its node through the API server: a POST to `pods/binding`.
///
/// # Why
/// Somebody has to. Another Bind plugin can do it its own way for the pods it cares about, if it stands before this
/// one.
///
/// # Arguments
/// None.
///
/// # Example
/// ```yaml
/// plugins:
///   bind:
///     enabled: [{name: MyBinder}, {name: DefaultBinder}]
///     disabled: [{name: "*"}]
/// ```
///
/// # Difference from upstream
/// None that shows: the plugin returns the binding as an effect, and the driver sends it.
#[derive(Debug)]
pub struct DefaultBinder;

impl Plugin for DefaultBinder {
    const NAME: &'static str = "DefaultBinder";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        DefaultBinder
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.bind()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().bindings()
    }
}

impl Bind for DefaultBinder {
    fn bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step {
        Step::perform(Effect::Bind { pod: cycle.pod.clone(), node: node.name().clone() })
    }
}

#[cfg(test)]
mod tests;
