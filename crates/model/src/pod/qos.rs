//! A pod's quality of service, as Kubernetes computes it.

use super::words::SpecWords;
use crate::names::resource;
use crate::resources::{ResourceList, ResourceRequirements};

/// `status.qosClass`: how much of what it uses is promised to a pod. The higher class is the greater value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// It asks for nothing.
    #[default]
    BestEffort,
    /// It asks for something, and may use more.
    Burstable,
    /// All that it may use it has asked for.
    Guaranteed,
}

impl QosClass {
    /// The class that `status.qosClass` names.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "BestEffort" => Some(QosClass::BestEffort),
            "Burstable" => Some(QosClass::Burstable),
            "Guaranteed" => Some(QosClass::Guaranteed),
            _ => None,
        }
    }

    /// The class that follows from a spec. What a pod asks for as a whole counts instead of what its containers ask for.
    pub(super) fn of_spec(spec: &SpecWords) -> Self {
        let mut sums = Sums { is_guaranteed: true, ..Sums::default() };
        match spec.whole_resources() {
            Some(whole) => {
                let has_limits = !whole.limits.is_empty();
                sums.add(whole, has_limits);
            }
            None => {
                let containers = spec.containers.iter().chain(&spec.init_containers);
                containers.for_each(|container| sums.add(&container.resources, true));
            }
        }
        sums.class()
    }
}

/// What is asked for and what is the limit so far, of the resources that count.
#[derive(Default)]
struct Sums {
    requests: ResourceList,
    limits: ResourceList,
    /// Whether everybody has limits of both cpu and memory.
    is_guaranteed: bool,
}

impl Sums {
    fn add(&mut self, resources: &ResourceRequirements, needs_limits: bool) {
        self.requests.add(&positive(&resources.requests));
        let limits = positive(&resources.limits);
        let has_both = [resource::CPU, resource::MEMORY].iter().all(|name| limits.get(name).is_some());
        self.is_guaranteed &= has_both || !needs_limits;
        self.limits.add(&limits);
    }

    fn class(&self) -> QosClass {
        if self.requests.is_empty() && self.limits.is_empty() {
            QosClass::BestEffort
        } else if self.is_guaranteed && self.requests == self.limits {
            QosClass::Guaranteed
        } else {
            QosClass::Burstable
        }
    }
}

/// The amounts of cpu and memory that are more than nothing.
fn positive(list: &ResourceList) -> ResourceList {
    let counts = |name: &str| matches!(name, resource::CPU | resource::MEMORY);
    list.iter()
        .filter(|(name, quantity)| counts(name) && !quantity.is_zero() && !quantity.is_negative())
        .map(|(name, quantity)| (name.clone(), quantity.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoded, Decoder, Interner};
    use serde_json::{Value, json};

    fn class_of(spec: &Value, status: &Value) -> QosClass {
        let metadata = json!({ "name": "a", "namespace": "default", "uid": "a" });
        let text = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status });
        let decoded = Decoder::new([], false).decode(&text.to_string()).expect("a pod");
        let Decoded::Pod(words) = decoded else { panic!("a pod") };
        Interner::default().pod(*words).qos_class()
    }

    #[test]
    fn a_class_follows_from_requests_and_limits() {
        let container = |requests: Value, limits: Value| json!({ "resources": { "requests": requests, "limits": limits } });
        let both = json!({ "cpu": "1", "memory": "1Gi" });
        let of = |containers: &[Value]| class_of(&json!({ "containers": containers }), &json!({}));
        let whole = container(both.clone(), both.clone());
        assert_eq!(of(&[container(json!({}), json!({}))]), QosClass::BestEffort);
        assert_eq!(of(std::slice::from_ref(&whole)), QosClass::Guaranteed);
        assert_eq!(
            of(&[container(json!({ "cpu": "1000m", "memory": "1024Mi" }), both.clone())]),
            QosClass::Guaranteed
        );
        assert_eq!(
            of(&[whole.clone(), container(json!({}), json!({}))]),
            QosClass::Burstable,
            "one has no limits"
        );
        assert_eq!(
            of(&[container(json!({ "cpu": "1" }), both.clone())]),
            QosClass::Burstable,
            "not all is asked for"
        );
        assert_eq!(
            of(&[container(json!({ "cpu": "0" }), json!({}))]),
            QosClass::BestEffort,
            "nothing is nothing"
        );
        assert_eq!(
            of(&[container(json!({ "example.com/gpu": "1" }), json!({}))]),
            QosClass::BestEffort,
            "it does not count"
        );
        let init =
            json!({ "containers": [whole], "initContainers": [container(json!({ "cpu": "1" }), json!({}))] });
        assert_eq!(class_of(&init, &json!({})), QosClass::Burstable, "init containers count");
    }

    #[test]
    fn what_the_pod_asks_for_as_a_whole_counts_instead_and_the_status_before_all() {
        let both = json!({ "cpu": "1", "memory": "1Gi" });
        let whole = |resources: Value| json!({ "containers": [{}], "resources": resources });
        let guaranteed = whole(json!({ "requests": both, "limits": both }));
        assert_eq!(class_of(&guaranteed, &json!({})), QosClass::Guaranteed);
        assert_eq!(class_of(&whole(json!({ "requests": both })), &json!({})), QosClass::Burstable);
        let empty = [json!({}), json!({ "requests": {} }), json!({ "limits": { "example.com/gpu": "1" } })];
        for resources in empty {
            let containers = json!([{ "resources": { "requests": both, "limits": both } }]);
            let spec = json!({ "containers": containers, "resources": resources });
            assert_eq!(
                class_of(&spec, &json!({})),
                QosClass::Guaranteed,
                "{resources} says nothing of the whole"
            );
        }
        assert_eq!(class_of(&guaranteed, &json!({ "qosClass": "BestEffort" })), QosClass::BestEffort);
        assert_eq!(class_of(&guaranteed, &json!({ "qosClass": "Guaranteed" })), QosClass::Guaranteed);
    }
}
