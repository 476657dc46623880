//! The arguments of NetworkOverhead.

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, FieldProblems, Fixes};

use crate::community::network_aware::{DEFAULT_NAMESPACES, NETPERF_COSTS, NetworkTopology, Weights};

/// Arguments of [`NetworkOverhead`](super::NetworkOverhead).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NetworkOverheadArgs {
    /// The namespaces in which AppGroups and the NetworkTopology are looked for, the first that has one first.
    pub namespaces: Vec<String>,
    /// The set of weights that counts.
    pub weights_name: Option<String>,
    /// The name of the NetworkTopology.
    pub network_topology_name: Option<String>,
    /// Whether `NetperfCosts` are worked out here, where they count.
    pub calculate_costs: bool,
}

impl Default for NetworkOverheadArgs {
    fn default() -> Self {
        NetworkOverheadArgs {
            namespaces: Vec::new(),
            weights_name: None,
            network_topology_name: None,
            calculate_costs: true,
        }
    }
}

impl Args for NetworkOverheadArgs {
    fn complete(&mut self) {
        if self.namespaces.is_empty() {
            self.namespaces = DEFAULT_NAMESPACES.map(str::to_owned).into();
        }
        self.weights_name.get_or_insert_with(|| "UserDefined".to_owned());
        self.network_topology_name.get_or_insert_with(|| "nt-default".to_owned());
    }

    fn validate(&self, _: &mut FieldProblems) {}
}

impl NetworkOverheadArgs {
    pub(super) fn weights_name(&self) -> &str {
        self.weights_name.as_deref().unwrap_or_default()
    }

    pub(super) fn network_topology_name(&self) -> &str {
        self.network_topology_name.as_deref().unwrap_or_default()
    }

    /// The set of weights that counts, of this NetworkTopology.
    pub(super) fn weights<'a>(&'a self, topology: &'a NetworkTopology, fixes: Fixes) -> Weights<'a> {
        let is_in_order = self.has_measured_costs() && !fixes.unsorted_netperf_costs;
        Weights { topology, name: self.weights_name(), is_in_order }
    }

    /// Whether the costs that count are those that are worked out from measurements.
    fn has_measured_costs(&self) -> bool {
        self.weights_name() == NETPERF_COSTS
    }

    /// Whether they are worked out here.
    pub(super) fn calculates_costs(&self) -> bool {
        self.calculate_costs && self.has_measured_costs()
    }
}
