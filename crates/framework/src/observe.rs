//! Hearing of changes between decisions: the point of plugins that keep books, or a status.

use std::sync::Arc;

use supercargo_model::{Pod, Row};

use crate::acts::Acts;
use crate::cycle::Context;
use crate::effects::{Conclusion, Effect};
use crate::events::{Change, ClusterEvent};

/// Hears what happens in the cluster, whether or not a pod is being tried.
///
/// Upstream has no such point: its plugins start informers and loops of their own. Here a plugin that lists `.observe()` is told as
/// soon as a profile has it at any point, or names it under `multiPoint`; if several profiles have it, once, by the arguments of the
/// first in which it [is a controller](Observe::is_controller), or else of the first. All calls come one after the other, and in virtual time just as in a live cluster. A panic here ends the process, because
/// the plugin's books would be wrong from then on; a restart makes them anew.
///
/// What the plugin remembers is in its hands, by [`Acts::recall`] and [`Acts::memory`], and not in `context.memories`: so it is changed in
/// place, and not copied first.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.observe()` but does not implement `Observe`")]
pub trait Observe: Send + Sync {
    /// What it wants to be told of. Kinds must be among what the plugin [reads](crate::Plugin::reads).
    fn events(&self) -> Vec<ClusterEvent>;

    /// Whether it writes objects by these arguments, which others may tell it not to.
    fn is_controller(&self) -> bool {
        false
    }

    /// Begins, or begins anew: after a start, after another configuration, and when this replica begins to lead. The cluster is known,
    /// and what was remembered is still there; changes before this were not told one by one.
    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let _ = (context, acts);
    }

    /// The same for who also wants to know which pods wait by then, those included that are being tried: they are in no snapshot. In the
    /// order in which they came. Called instead of [`Observe::started`].
    fn started_with(&self, context: &Context<'_>, waiting: &[Arc<Pod>], acts: &mut Acts<'_>) {
        let _ = waiting;
        self.started(context, acts);
    }

    /// Something came, changed or went. Pods that no profile is responsible for are told of once they have a node. The same state
    /// may be told twice.
    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let _ = (context, change, acts);
    }

    /// Whether it wants to know on which nodes its own Filter rejects the pods that are tried: then [`Observe::doubts`] is asked.
    fn wants_rejections(&self) -> bool {
        false
    }

    /// The nodes about which it wants to know whether its Filter rejects this pod, which was just tried and has not got a node yet. Most
    /// answers are kept from one pod to the next, so Filter is not asked about all nodes, and does not remember.
    fn doubts(&self, context: &Context<'_>, pod: &Arc<Pod>, acts: &mut Acts<'_>) -> Vec<Row> {
        let _ = (context, pod, acts);
        Vec::new()
    }

    /// The nodes that it [doubts](Observe::doubts), each with whether its Filter rejects the pod there, and no Filter before it does.
    fn rejected(&self, context: &Context<'_>, nodes: &[(Row, bool)], acts: &mut Acts<'_>) {
        let _ = (context, nodes, acts);
    }

    /// A pod has run its course; if it was known, it was told to have gone just before. Only plugins whose
    /// [reads](crate::Reads::finished_pods) include such pods hear of them, and a pod that is listed again is told of again.
    fn finished(&self, context: &Context<'_>, pod: &Pod, has_succeeded: bool, acts: &mut Acts<'_>) {
        let _ = (context, pod, has_succeeded, acts);
    }

    /// A time has come that the plugin asked to be woken at.
    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let _ = (context, acts);
    }

    /// An order that the plugin gave through its acts has ended. Whoever wants to try again does so with a pause, by
    /// [`Acts::wake_at`].
    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        let _ = (context, order, conclusion, acts);
    }
}
