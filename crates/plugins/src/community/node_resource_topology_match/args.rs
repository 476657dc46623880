//! The arguments of NodeResourceTopologyMatch.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems};
use supercargo_model::names::resource;

use crate::community::ResourceWeight;

/// Arguments of [`NodeResourceTopologyMatch`](super::NodeResourceTopologyMatch).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeResourceTopologyMatchArgs {
    /// How nodes are scored.
    pub scoring_strategy: Option<TopologyScoringStrategy>,
    /// Above 0, pods are counted on top of a topology until a newer one has them, which is looked for so often.
    pub cache_resync_period_seconds: i64,
    /// Whether a node is left alone from the moment that a pod is given to it until it is bound there.
    pub discard_reserved_nodes: bool,
    /// How topologies and pods are compared.
    pub cache: Option<TopologyCacheArgs>,
    /// Whether preemption knows in which zones pods run: `Disabled`, or `Enabled`.
    pub preemption_mode: Option<String>,
}

/// How nodes are scored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TopologyScoringStrategy {
    /// `LeastAllocated`, `MostAllocated`, `BalancedAllocation` or `LeastNUMANodes`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The weights of resources; 1 for all others.
    pub resources: Vec<ResourceWeight>,
}

/// How topologies and pods are compared. As upstream, a value that nobody knows is no error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TopologyCacheArgs {
    /// Which pods of other schedulers make a topology doubtful: `All`, `None` or `OnlyExclusiveResources`.
    pub foreign_pods_detect: Option<String>,
    /// Which pods a fingerprint is made of: `Autodetect`, `All` or `OnlyExclusiveResources`.
    pub resync_method: Option<String>,
    /// Which pods of a node count: `Shared`, those that run; `Dedicated`, those that are not pending.
    pub informer_mode: Option<String>,
    /// Whether other policies of a node count without a look at its pods: `All`, or `OnlyResources`.
    pub resync_scope: Option<String>,
}

/// How nodes are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    LeastAllocated,
    MostAllocated,
    BalancedAllocation,
    LeastNumaNodes,
}

/// What a topology is worth while pods come to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheMode {
    /// The topology counts as it is.
    Passthrough,
    /// The topology does not count while a pod is on its way to the node.
    DiscardReserved,
    /// Pods are taken off the topology until a newer one has them, which is looked for so often.
    OverReserve(Duration),
}

/// Which foreign pods are looked for, or which pods a fingerprint is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodsMode {
    None,
    All,
    OnlyExclusive,
    /// As the topology says.
    Autodetect,
}

impl Strategy {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "LeastAllocated" => Strategy::LeastAllocated,
            "MostAllocated" => Strategy::MostAllocated,
            "BalancedAllocation" => Strategy::BalancedAllocation,
            "LeastNUMANodes" => Strategy::LeastNumaNodes,
            _ => return None,
        })
    }
}

impl Args for NodeResourceTopologyMatchArgs {
    fn complete(&mut self) {
        let strategy = self.scoring_strategy.get_or_insert_with(|| TopologyScoringStrategy {
            kind: "LeastAllocated".to_owned(),
            resources: Vec::new(),
        });
        if strategy.resources.is_empty() {
            let named = |name: &str| ResourceWeight { name: name.to_owned(), weight: 1 };
            strategy.resources = [resource::CPU, resource::MEMORY].map(named).into();
        }
        for weighed in &mut strategy.resources {
            if weighed.weight == 0 {
                weighed.weight = 1;
            }
        }
        let cache = self.cache.get_or_insert_default();
        for (field, default) in [
            (&mut cache.foreign_pods_detect, "All"),
            (&mut cache.resync_method, "Autodetect"),
            (&mut cache.informer_mode, "Dedicated"),
            (&mut cache.resync_scope, "All"),
            (&mut self.preemption_mode, "Disabled"),
        ] {
            field.get_or_insert_with(|| default.to_owned());
        }
    }

    fn validate(&self, problems: &mut FieldProblems) {
        let kind = self.scoring_strategy.as_ref().map_or("", |strategy| &*strategy.kind);
        if Strategy::parse(kind).is_none() {
            problems.invalid("scoringStrategy.type", kind, "invalid ScoringStrategyType");
        }
        if let Some(mode) = &self.preemption_mode
            && !matches!(&**mode, "Disabled" | "Enabled")
        {
            problems.invalid("preemptionMode", mode, "invalid PreemptionMode");
        }
    }
}

impl NodeResourceTopologyMatchArgs {
    pub(super) fn strategy(&self) -> Strategy {
        let kind = self.scoring_strategy.as_ref().and_then(|strategy| Strategy::parse(&strategy.kind));
        kind.unwrap_or(Strategy::LeastAllocated)
    }

    /// The weight of a resource.
    pub(super) fn weight_of(&self, name: &str) -> i64 {
        let mut weighed = self.scoring_strategy.iter().flat_map(|strategy| &strategy.resources);
        weighed.rfind(|weighed| weighed.name == name).map_or(1, |weighed| weighed.weight.max(1))
    }

    pub(super) fn cache_mode(&self) -> CacheMode {
        match u64::try_from(self.cache_resync_period_seconds) {
            _ if self.discard_reserved_nodes => CacheMode::DiscardReserved,
            Ok(seconds @ 1..) => CacheMode::OverReserve(Duration::from_secs(seconds)),
            _ => CacheMode::Passthrough,
        }
    }

    /// Which pods of other schedulers make a topology doubtful.
    pub(super) fn foreign_pods(&self) -> PodsMode {
        match self.cache_word(|cache| &cache.foreign_pods_detect) {
            "None" => PodsMode::None,
            "OnlyExclusiveResources" => PodsMode::OnlyExclusive,
            _ => PodsMode::All,
        }
    }

    /// Which pods a fingerprint is made of.
    pub(super) fn fingerprinted_pods(&self) -> PodsMode {
        match self.cache_word(|cache| &cache.resync_method) {
            "" | "Autodetect" => PodsMode::Autodetect,
            "OnlyExclusiveResources" => PodsMode::OnlyExclusive,
            _ => PodsMode::All,
        }
    }

    /// Whether only pods count that run, not all that are not pending.
    pub(super) fn only_running_pods(&self) -> bool {
        self.cache_word(|cache| &cache.informer_mode) == "Shared"
    }

    /// Whether other policies of a node count without a look at its pods.
    pub(super) fn takes_over_policies(&self) -> bool {
        matches!(self.cache_word(|cache| &cache.resync_scope), "" | "All")
    }

    /// Whether preemption knows in which zones pods run. Only where pods are counted does anybody know.
    pub(super) fn simulates_evictions(&self) -> bool {
        self.preemption_mode.as_deref() == Some("Enabled")
            && matches!(self.cache_mode(), CacheMode::OverReserve(_))
    }

    fn cache_word(&self, field: impl Fn(&TopologyCacheArgs) -> &Option<String>) -> &str {
        self.cache.as_ref().and_then(|cache| field(cache).as_deref()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_testkit::{args_of, problems_of};

    use super::super::NodeResourceTopologyMatch;
    use super::*;

    #[test]
    fn arguments_have_defaults() {
        let expected = json!({
            "scoringStrategy": {
                "type": "LeastAllocated",
                "resources": [{ "name": "cpu", "weight": 1 }, { "name": "memory", "weight": 1 }],
            },
            "cacheResyncPeriodSeconds": 0,
            "discardReservedNodes": false,
            "cache": {
                "foreignPodsDetect": "All", "resyncMethod": "Autodetect", "informerMode": "Dedicated", "resyncScope": "All",
            },
            "preemptionMode": "Disabled",
        });
        assert_eq!(args_of::<NodeResourceTopologyMatch>(json!({})), expected);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (args, problem) in [
            (json!({ "scoringStrategy": {} }), "scoringStrategy.type"),
            (json!({ "scoringStrategy": { "type": "Odd" } }), "scoringStrategy.type"),
            (json!({ "preemptionMode": "Maybe" }), "preemptionMode"),
            (json!({ "resyncPeriod": 1 }), "unknown field"),
        ] {
            let problems = problems_of::<NodeResourceTopologyMatch>(args.clone());
            assert!(problems.len() == 1 && problems[0].contains(problem), "{args}: {problems:?}");
        }
        for args in [
            json!({ "cacheResyncPeriodSeconds": -1 }),
            json!({ "cache": { "foreignPodsDetect": "Odd" } }),
            json!({ "scoringStrategy": { "type": "LeastAllocated", "resources": [{ "name": "cpu", "weight": -4 }] } }),
        ] {
            assert!(problems_of::<NodeResourceTopologyMatch>(args.clone()).is_empty(), "{args}");
        }
    }

    #[test]
    fn two_settings_choose_one_of_three_caches() {
        let mode = |seconds, discards| {
            let (cache_resync_period_seconds, discard_reserved_nodes) = (seconds, discards);
            let args = NodeResourceTopologyMatchArgs {
                cache_resync_period_seconds,
                discard_reserved_nodes,
                ..NodeResourceTopologyMatchArgs::default()
            };
            args.cache_mode()
        };
        assert_eq!(mode(0, false), CacheMode::Passthrough);
        assert_eq!(mode(-1, false), CacheMode::Passthrough);
        assert_eq!(mode(5, false), CacheMode::OverReserve(Duration::from_secs(5)));
        assert_eq!(mode(5, true), CacheMode::DiscardReserved);
    }
}
