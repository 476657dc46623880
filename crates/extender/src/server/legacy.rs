//! Answers with the names that schedulers before 1.17 wrote. Whoever reads as Go does reads either.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::wire::{
    ExtenderBindingResult, ExtenderFilterResult, ExtenderPreemptionResult, HostPriorityList, MetaVictims,
    NodeList, RawJson,
};

/// An answer that can be written with the old names.
pub(super) trait Legacy: Serialize {
    /// Writes the answer with the old names.
    fn serialize_legacy<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// An answer that is written with the old names.
pub(super) struct WithOldNames<'a, T>(pub(super) &'a T);

impl<T: Legacy> Serialize for WithOldNames<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_legacy(serializer)
    }
}

impl Legacy for ExtenderFilterResult {
    fn serialize_legacy<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Old<'a> {
            nodes: &'a Option<NodeList<RawJson>>,
            nodenames: &'a Option<Vec<Box<str>>>,
            #[serde(rename = "failedNodes")]
            failed_nodes: BTreeMap<&'a str, &'a str>,
            error: &'a str,
        }
        // Nobody told the two apart then.
        let failed = self.failed_nodes.iter().chain(&self.failed_and_unresolvable_nodes);
        Old {
            nodes: &self.nodes,
            nodenames: &self.node_names,
            failed_nodes: failed.map(|(name, reason)| (&**name, reason.as_str())).collect(),
            error: &self.error,
        }
        .serialize(serializer)
    }
}

impl Legacy for HostPriorityList {
    fn serialize_legacy<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Old<'a> {
            host: &'a str,
            score: i64,
        }
        serializer.collect_seq(self.iter().map(|entry| Old { host: &entry.host, score: entry.score }))
    }
}

impl Legacy for ExtenderPreemptionResult {
    fn serialize_legacy<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Old<'a> {
            #[serde(rename = "nodeNameToMetaVictims")]
            victims: BTreeMap<&'a str, OldVictims<'a>>,
        }
        #[derive(Serialize)]
        struct OldVictims<'a> {
            pods: Vec<OldPod<'a>>,
            #[serde(rename = "numPDBViolations")]
            pdb_violations: i64,
        }
        #[derive(Serialize)]
        struct OldPod<'a> {
            uid: &'a str,
        }
        fn old(victims: &MetaVictims) -> OldVictims<'_> {
            let pods = victims.pods.iter().map(|pod| OldPod { uid: &pod.uid }).collect();
            OldVictims { pods, pdb_violations: victims.pdb_violations }
        }
        let victims = self.node_name_to_meta_victims.iter();
        Old { victims: victims.map(|(node, victims)| (&**node, old(victims))).collect() }
            .serialize(serializer)
    }
}

impl Legacy for ExtenderBindingResult {
    fn serialize_legacy<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Old<'a> {
            error: &'a str,
        }
        Old { error: &self.error }.serialize(serializer)
    }
}
