//! What a pod asks for, as most of the community's plugins add it up.

use supercargo_framework::Fixes;
use supercargo_model::names::resource;
use supercargo_model::pod::Container;
use supercargo_model::resources::ResourceRequirements;
use supercargo_model::{PodSpec, ResourceList};

/// The sum of the containers, raised to each init container, and the overhead on top. Unlike [`PodSpec::requests`], init containers
/// that go on running are not added to the others, and what the pod asks for as a whole does not count: the plugins of the
/// community have learnt of neither. The same rule as [`PodSpec::plain_requests`], by name instead of by column.
pub fn plain_requests(spec: &PodSpec) -> ResourceList {
    let mut sum = ResourceList::default();
    spec.containers.iter().for_each(|container| sum.add(&container.resources.requests));
    spec.init_containers.iter().for_each(|container| sum.raise_to(&container.resources.requests));
    sum.add(&spec.overhead);
    sum
}

/// How much cpu, in thousandths of a core, and memory, in bytes, come of that; or what NodeResourcesFit adds up, if the fix
/// `loadSidecars` is asked for.
pub(super) fn request_amounts(spec: &PodSpec, fixes: &Fixes) -> [i64; 2] {
    if fixes.load_sidecars {
        let requests = &spec.requests.resources;
        return [requests.milli_cpu, requests.memory];
    }
    plain_amounts(spec, |resources| &resources.requests)
}

/// The same of the limits.
pub(super) fn limit_amounts(spec: &PodSpec, fixes: &Fixes) -> [i64; 2] {
    let amounts = if fixes.load_sidecars { whole_amounts } else { plain_amounts };
    amounts(spec, |resources| &resources.limits)
}

/// What comes of a list of each container with sidecars beside the others, and of the same list of the pod as a whole, which takes the
/// place of the sum.
fn whole_amounts(spec: &PodSpec, list: fn(&ResourceRequirements) -> &ResourceList) -> [i64; 2] {
    let of = |container: &Container| amounts_in(list(&container.resources));
    let plus = |a: [i64; 2], b: [i64; 2]| [0, 1].map(|index: usize| a[index].saturating_add(b[index]));
    let (mut sidecars, mut starting) = ([0, 0], [0, 0]);
    for container in &spec.init_containers {
        let together = plus(sidecars, of(container));
        starting = [0, 1].map(|index: usize| starting[index].max(together[index]));
        if container.is_sidecar {
            sidecars = together;
        }
    }
    let running = spec.containers.iter().map(of).fold(sidecars, plus);
    let mut amounts = [0, 1].map(|index: usize| running[index].max(starting[index]));
    let whole = spec.whole_resources.as_deref().map(list);
    for (index, name) in [resource::CPU, resource::MEMORY].into_iter().enumerate() {
        if let Some(whole) = whole.filter(|whole| whole.get(name).is_some()) {
            amounts[index] = amounts_in(whole)[index];
        }
    }
    plus(amounts, amounts_in(&spec.overhead))
}

/// Every container's amount is rounded up to whole units before they are added, as upstream does.
fn plain_amounts(spec: &PodSpec, list: fn(&ResourceRequirements) -> &ResourceList) -> [i64; 2] {
    let of_containers = |containers: &[Container], combine: fn(i64, i64) -> i64| {
        let amounts = containers.iter().map(|container| amounts_in(list(&container.resources)));
        amounts.reduce(|[cpu, memory], more| [combine(cpu, more[0]), combine(memory, more[1])])
    };
    let running = of_containers(&spec.containers, i64::wrapping_add).unwrap_or_default();
    let starting = of_containers(&spec.init_containers, i64::max).unwrap_or_default();
    let overhead = amounts_in(&spec.overhead);
    [0, 1].map(|index| running[index].max(starting[index]).wrapping_add(overhead[index]))
}

/// The amounts of cpu and memory in a list, in one go.
fn amounts_in(list: &ResourceList) -> [i64; 2] {
    let mut amounts = [0, 0];
    for (name, quantity) in list.iter() {
        match &**name {
            resource::CPU => amounts[0] = quantity.milli_value(),
            resource::MEMORY => amounts[1] = quantity.value(),
            _ => {}
        }
    }
    amounts
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_testkit::{cluster, pod};

    use super::*;

    #[test]
    fn init_containers_raise_the_sum_and_overhead_comes_on_top() {
        let requests = |cpu: &str| json!({ "resources": { "requests": { "cpu": cpu } } });
        for (what, init, cpu) in [
            ("a small one fits in", requests("100m"), 350),
            ("a large one raises the sum", requests("1"), 1_050),
            (
                "one that goes on running is not added",
                json!({ "restartPolicy": "Always", "resources": { "requests": { "cpu": "200m" } } }),
                350,
            ),
        ] {
            let spec = json!({
                "containers": [requests("100m"), requests("200m")],
                "initContainers": [init],
                "overhead": { "cpu": "50m" },
                "resources": { "requests": { "cpu": "9" } },
            });
            let pod = cluster().pod(pod("a").with(json!({ "spec": spec })));
            assert_eq!(plain_requests(&pod.spec).amount(resource::CPU), cpu, "{what}");
        }
    }
}
