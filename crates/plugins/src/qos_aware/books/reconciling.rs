//! Bringing the books up to date with a cluster that was not watched for a while: after a start, a takeover, another configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::SharedMap;
use supercargo_model::{Pod, Timestamp};

use super::{Books, ControllerId, Owner, OwnerId, State};
use crate::qos_aware::terms::{Terms, is_system};

/// How many replicas an owner wants, if it is of a kind that says so, and is there.
pub(in crate::qos_aware) trait Wanted {
    fn of(&self, owner: &OwnerId) -> Option<u32>;
}

impl<F: Fn(&OwnerId) -> Option<u32>> Wanted for F {
    fn of(&self, owner: &OwnerId) -> Option<u32> {
        self(owner)
    }
}

impl Books {
    /// Makes the books true for these pods, which are all that there are. Returned are those that came and were not known, as they came.
    ///
    /// A pod that runs and was not known to do so runs since the API server says that it was scheduled. A pod that is gone ended when that
    /// was noticed, because nobody says when it was.
    pub(in crate::qos_aware) fn reconcile(
        &mut self,
        pods: &[Arc<Pod>],
        wanted: &impl Wanted,
        now: Timestamp,
    ) -> (Vec<Arc<Pod>>, Vec<Arc<str>>) {
        let pods: BTreeMap<&Arc<str>, &Arc<Pod>> =
            pods.iter().filter(|pod| !is_system(pod)).map(|pod| (&pod.uid, pod)).collect();
        let known = &self.state.pods;
        let gone: Vec<Arc<str>> =
            known.iter().map(|(uid, _)| uid).filter(|uid| !pods.contains_key(uid)).cloned().collect();
        let mut came: Vec<Arc<Pod>> =
            pods.iter().filter(|(uid, _)| !known.contains_key(uid)).map(|(_, pod)| (*pod).clone()).collect();
        came.sort_by(|a, b| (a.created_at, &a.uid).cmp(&(b.created_at, &b.uid)));
        for pod in &came {
            self.arrive(pod, wanted, now);
        }
        let state = self.change(now);
        let mut started: Vec<(Timestamp, &Arc<str>)> = Vec::new();
        for (uid, pod) in &pods {
            state.refresh(pod);
            let is_running = state.pods.get(uid).is_some_and(|known| known.life.running.is_some());
            if pod.node_name.is_some() && !is_running {
                started.push((pod.scheduled_at().unwrap_or(now).min(now), uid));
            }
        }
        // What ran together is known only if it is told in order.
        started.sort_unstable();
        for (running, uid) in started {
            state.start(uid, None, running);
        }
        for (uid, _) in pods.iter().filter(|(_, pod)| pod.is_terminating()) {
            state.release(uid, now);
        }
        state.count_owners(wanted, now);
        (came, gone)
    }
}

impl State {
    /// Takes over what a pod says now.
    fn refresh(&mut self, pod: &Pod) {
        let (terms, owner) = (Terms::of(pod), OwnerId::of(pod));
        let Some(known) = self.pods.get_mut(&pod.uid) else { return };
        known.name = (*pod.name).into();
        (known.slo, known.acceptable_overhead) = (terms.slo, terms.acceptable_overhead);
        (known.phase, known.owner) = (pod.phase(), owner);
    }

    /// Counts all owners anew, and the replicas that they want.
    fn count_owners(&mut self, wanted: &impl Wanted, now: Timestamp) {
        let known = |(id, owner): (&OwnerId, &Owner)| {
            (id.clone(), Owner { wanted: wanted.of(id), pods: 0, ..owner.clone() })
        };
        let mut owners: BTreeMap<OwnerId, Owner> = self.owners.iter().map(known).collect();
        let mut replicas: BTreeMap<ControllerId, u32> = BTreeMap::new();
        for (_, pod) in self.pods.iter().filter(|(_, pod)| !pod.is_terminating) {
            match &pod.owner {
                None => *replicas.entry(pod.controller.clone()).or_default() += 1,
                Some(id) => {
                    let new = || Owner { controller: pod.controller.clone(), wanted: wanted.of(id), pods: 0 };
                    owners.entry(id.clone()).or_insert_with(new).pods += 1;
                }
            }
        }
        owners.retain(|_, owner| owner.pods > 0 || owner.wanted.is_some());
        for owner in owners.values() {
            *replicas.entry(owner.controller.clone()).or_default() += owner.replicas();
        }
        self.owners = SharedMap::default();
        for (id, owner) in owners {
            self.owners.insert(id, owner);
        }
        let ids: Vec<ControllerId> = self.controllers.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            let replicas = replicas.get(&id).copied().unwrap_or(0);
            if let Some(controller) = self.controllers.get_mut(&id).filter(|it| it.replicas != replicas) {
                controller.set_replicas(replicas, now);
            }
        }
    }
}
