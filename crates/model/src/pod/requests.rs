//! The pod request formula: what a pod asks of its node, all containers taken together.
//!
//! Follows `k8s.io/component-helpers/resource` of v1.36: app containers and sidecars run together; each init
//! container runs beside the sidecars declared before it; requests at pod level replace the sum; overhead comes
//! on top.

use std::sync::{Arc, LazyLock};

use super::words::{ContainerStatusWords, ContainerWords, SpecWords, StatusWords};
use crate::names::resource;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceRequirements, Resources};

/// What a container without a cpu request is taken to use when nodes are scored, in thousandths of a core.
const DEFAULT_MILLI_CPU: i64 = 100;
/// What a container without a memory request is taken to use when nodes are scored, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// What a pod asks of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodRequests {
    /// All requests, exact.
    pub list: ResourceList,
    /// The same, in the units that the scheduler counts in.
    pub resources: Resources,
    /// Thousandths of a core, with the default for containers that do not say.
    pub non_zero_milli_cpu: i64,
    /// Bytes of memory, with the default for containers that do not say.
    pub non_zero_memory: i64,
}

impl PodRequests {
    /// What the spec says.
    pub(super) fn of_spec(spec: &SpecWords) -> Self {
        Self::compute(&Formula { spec, status: None, pod_level: true, defaults: &NO_DEFAULTS })
    }

    /// What the pod holds on its node while a resize is under way; none if that is no other than what its spec
    /// says. Every running pod reports what it holds, so the difference matters: only few are being resized.
    pub(super) fn of_status(spec: &SpecWords, status: &StatusWords, asked: &Self) -> Option<Self> {
        let reports =
            |statuses: &[ContainerStatusWords]| statuses.iter().any(|status| status.resources.is_some());
        let reported = status.resources.is_some()
            || reports(&status.container_statuses)
            || reports(&status.init_container_statuses);
        if !reported {
            return None;
        }
        let held =
            Self::compute(&Formula { spec, status: Some(status), pod_level: true, defaults: &NO_DEFAULTS });
        (held != *asked).then_some(held)
    }

    /// What comes of it without sidecars, which count as other init containers, and without requests at pod level; none if it is the same.
    pub(super) fn differing_plain(&self, spec: &SpecWords) -> Option<Box<Resources>> {
        let has_sidecars = spec.init_containers.iter().any(ContainerWords::is_sidecar);
        if !has_sidecars && spec.whole_resources().is_none() {
            return None;
        }
        let mut plain = ResourceList::default();
        spec.containers.iter().for_each(|container| plain.add(&container.resources.requests));
        spec.init_containers.iter().for_each(|container| plain.raise_to(&container.resources.requests));
        plain.add(&spec.overhead);
        let plain = Resources::from_list(&plain);
        (plain != self.resources).then(|| plain.into())
    }

    /// What NodeResourcesFit scores a pending pod by: defaults for containers that do not say, and requests at
    /// pod level left out, as upstream does.
    pub(super) fn for_fit_score(spec: &SpecWords) -> ResourceList {
        Formula { spec, status: None, pod_level: false, defaults: &DEFAULTS }.total()
    }

    fn compute(formula: &Formula<'_>) -> Self {
        let list = formula.total();
        let missing: ResourceList = if formula.uses_pod_level() {
            // The default stands in only for what is missing at both levels.
            DEFAULTS
                .iter()
                .filter(|(name, _)| list.get(name).is_none())
                .map(|(name, quantity)| (name.clone(), quantity.clone()))
                .collect()
        } else {
            DEFAULTS.clone()
        };
        let non_zero = Formula { defaults: &missing, ..*formula }.total();
        PodRequests {
            resources: Resources::from_list(&list),
            non_zero_milli_cpu: non_zero.amount(resource::CPU),
            non_zero_memory: non_zero.amount(resource::MEMORY),
            list,
        }
    }
}

static NO_DEFAULTS: ResourceList = ResourceList::new();
static DEFAULTS: LazyLock<ResourceList> = LazyLock::new(|| {
    [(resource::CPU, Quantity::milli(DEFAULT_MILLI_CPU)), (resource::MEMORY, Quantity::from(DEFAULT_MEMORY))]
        .into_iter()
        .collect()
});

/// One way to add up a pod's requests.
#[derive(Clone, Copy)]
struct Formula<'a> {
    spec: &'a SpecWords,
    /// Where a bound pod reports what its containers really hold.
    status: Option<&'a StatusWords>,
    pod_level: bool,
    /// Stands in for what a container does not name.
    defaults: &'a ResourceList,
}

impl Formula<'_> {
    fn total(&self) -> ResourceList {
        let mut total = self.containers();
        if self.uses_pod_level()
            && let Some(pod_level) = &self.spec.resources
        {
            let reported = self.status.and_then(|status| {
                let actual = status.resources.as_ref()?;
                Some(self.effective(&pod_level.requests, &actual.requests, &status.allocated_resources))
            });
            for (name, quantity) in pod_level.requests.iter().filter(|(name, _)| is_pod_level(name)) {
                let quantity = match &reported {
                    None => quantity.clone(),
                    Some(reported) => reported.get(name).cloned().unwrap_or_default(),
                };
                total.set(name, quantity);
            }
        }
        total.add(&self.spec.overhead);
        total
    }

    fn uses_pod_level(&self) -> bool {
        self.pod_level
            && (self.spec.resources.as_ref())
                .is_some_and(|resources| resources.requests.iter().any(|(name, _)| is_pod_level(name)))
    }

    fn containers(&self) -> ResourceList {
        let mut running = ResourceList::default();
        for container in &self.spec.containers {
            running.add(&self.container(container, true));
        }
        let mut sidecars = ResourceList::default();
        let mut starting = ResourceList::default();
        for container in &self.spec.init_containers {
            let is_sidecar = container.is_sidecar();
            let mut requests = self.container(container, is_sidecar);
            if is_sidecar {
                running.add(&requests);
                sidecars.add(&requests);
                starting.raise_to(&sidecars);
            } else {
                requests.add(&sidecars);
                starting.raise_to(&requests);
            }
        }
        running.raise_to(&starting);
        running
    }

    fn container(&self, container: &ContainerWords, may_be_resized: bool) -> ResourceList {
        let reported = (self.status.filter(|_| may_be_resized)).and_then(|status| {
            // Of two statuses with one name the later counts, and those of init containers come last.
            let status = (status.init_container_statuses.iter().rev())
                .chain(status.container_statuses.iter().rev())
                .find(|status| status.name == container.name)?;
            let actual = status.resources.as_ref()?;
            Some(self.effective(&container.resources.requests, &actual.requests, &status.allocated_resources))
        });
        let mut requests = reported.unwrap_or_else(|| container.resources.requests.clone());
        for (name, quantity) in self.defaults.iter() {
            if requests.get(name).is_none() {
                requests.set(name, quantity.clone());
            }
        }
        requests
    }

    /// The largest of what is asked for, what is actual and what is allocated; a resize that the node cannot
    /// carry out no longer counts what is asked for.
    fn effective(
        &self,
        asked: &ResourceList,
        actual: &ResourceList,
        allocated: &ResourceList,
    ) -> ResourceList {
        let infeasible = self.status.is_some_and(|status| {
            (status.conditions.iter().find(|condition| condition.kind == "PodResizePending"))
                .is_some_and(|condition| condition.reason == "Infeasible")
        });
        let mut effective = if infeasible { ResourceList::default() } else { asked.clone() };
        effective.raise_to(actual);
        effective.raise_to(allocated);
        effective
    }
}

impl ContainerWords {
    pub(super) fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl SpecWords {
    /// What the pod asks for as a whole. Upstream, who names nothing there that a pod can ask for says nothing.
    pub(super) fn whole_resources(&self) -> Option<&ResourceRequirements> {
        self.resources.as_ref().filter(|whole| {
            [&whole.requests, &whole.limits]
                .iter()
                .any(|list| list.iter().any(|(name, _)| is_pod_level(name)))
        })
    }
}

fn is_pod_level(name: &Arc<str>) -> bool {
    matches!(&**name, resource::CPU | resource::MEMORY) || resource::is_huge_pages(name)
}

#[cfg(test)]
mod tests;
