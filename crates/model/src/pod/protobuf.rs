//! Which fields of Kubernetes' messages are those of a pod's words.

use super::GeneratedClaim;
use super::words::{
    AffinityTermWords, AffinityWords, ClaimWords, ConditionWords, ContainerStatusWords, ContainerWords,
    DiskWords, NameWords, NodeAffinityWords, PodAffinityWords, PodWords, PortWords, Present,
    RestartRuleWords, SeccompWords, SpecWords, SpreadConstraintWords, StatusWords, VolumeWords,
    WeightedAffinityTermWords,
};
use crate::protobuf::{Malformed, ReadField, Value, message, read_message};

message!(PodWords { 1 => metadata, 2 => spec, 3 => status });

message!(SpecWords {
    1 => volumes,
    2 => containers,
    10 => node_name,
    11 => host_network,
    14 => security_context { 10 => seccomp_profile },
    18 => affinity,
    19 => scheduler_name,
    20 => init_containers,
    22 => tolerations,
    24 => priority_class_name,
    25 => priority,
    31 => preemption_policy,
    32 => overhead,
    33 => topology_spread_constraints,
    37 => host_users,
    38 => scheduling_gates,
    39 => resource_claims,
    40 => resources,
} pairs { 7 => node_selector });

message!(StatusWords {
    1 => phase,
    2 => conditions,
    7 => start_time,
    8 => container_statuses,
    9 => qos_class,
    10 => init_container_statuses,
    11 => nominated_node_name,
    15 => resource_claim_statuses,
    19 => allocated_resources,
    20 => resources,
});

message!(ConditionWords { 1 => kind, 2 => status, 4 => last_transition_time, 5 => reason, 6 => message });
message!(ContainerStatusWords { 1 => name, 10 => allocated_resources, 11 => resources });
message!(ContainerWords {
    1 => name,
    2 => image,
    6 => ports,
    8 => resources,
    15 => security_context { 11 => seccomp_profile },
    24 => restart_policy,
    25 => restart_policy_rules,
});
message!(PortWords { 2 => host_port, 4 => protocol, 5 => host_ip });
message!(RestartRuleWords { 1 => action });
message!(SeccompWords { 1 => kind, 2 => localhost_profile });
message!(NameWords { 1 => name });
message!(ClaimWords { 1 => name, 3 => resource_claim_name, 4 => resource_claim_template_name });
message!(GeneratedClaim { 1 => name, 2 => claim_name });

message!(AffinityWords { 1 => node_affinity, 2 => pod_affinity, 3 => pod_anti_affinity });
message!(NodeAffinityWords { 1 => required, 2 => preferred });
message!(PodAffinityWords { 1 => required, 2 => preferred });
message!(AffinityTermWords { 1 => label_selector, 2 => namespaces, 3 => topology_key, 4 => namespace_selector });
message!(WeightedAffinityTermWords { 1 => weight, 2 => pod_affinity_term });
message!(SpreadConstraintWords {
    1 => max_skew,
    2 => topology_key,
    3 => when_unsatisfiable,
    4 => label_selector,
    5 => min_domains,
    6 => node_affinity_policy,
    7 => node_taints_policy,
    8 => match_label_keys,
});

/// A volume has its source in a message of its own, which JSON has not. Sources of different kinds have their fields in different places.
impl ReadField for VolumeWords {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        for field in value.fields()? {
            match field? {
                (1, name) => self.name.read_field(name)?,
                (2, source) => self.read_source(source)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl VolumeWords {
    fn read_source(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        macro_rules! disk {
            ($value:ident, $source:ident { $($fields:tt)* }) => {{
                let disk: &mut DiskWords = self.$source.get_or_insert_default();
                read_message!($value, disk { $($fields)* });
            }};
        }
        for field in value.fields()? {
            let (number, value) = field?;
            match number {
                3 => disk!(value, gce_persistent_disk { 1 => pd_name, 4 => read_only }),
                4 => disk!(value, aws_elastic_block_store { 1 => volume_id, 4 => read_only }),
                8 => disk!(value, iscsi { 2 => iqn, 6 => read_only }),
                10 => disk!(value, persistent_volume_claim { 1 => claim_name, 2 => read_only }),
                11 => disk!(value, rbd { 1 => monitors, 2 => image, 4 => pool, 8 => read_only }),
                13 => disk!(value, cinder { 1 => volume_id, 3 => read_only }),
                18 => self.azure_file.read_field(value)?,
                20 => self.vsphere_volume.read_field(value)?,
                22 => disk!(value, azure_disk { 2 => disk_uri, 5 => read_only, 6 => kind }),
                24 => disk!(value, portworx_volume { 1 => volume_id, 3 => read_only }),
                28 => disk!(value, csi { 1 => driver, 2 => read_only }),
                29 => self.ephemeral.read_field(value)?,
                30 => disk!(value, image { 1 => reference }),
                _ => {}
            }
        }
        Ok(())
    }
}

impl ReadField for Present {
    fn read_field(&mut self, _: Value<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}
