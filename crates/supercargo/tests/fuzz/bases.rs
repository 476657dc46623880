//! What is mutated: clusters and configurations in which everything is as it should be.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::chance::Chance;

/// Larger cases of the conformance vectors are left out: what they show, smaller ones show sooner.
const CASE_BYTES_MAX: usize = 20_000;

/// Clusters, and configurations as texts.
pub(crate) struct Bases {
    clusters: Vec<Vec<Value>>,
    configurations: Vec<String>,
}

impl Bases {
    /// From the conformance vectors, and from what the configuration's own tests read.
    pub(crate) fn load() -> Self {
        let mut clusters = Vec::new();
        let mut configurations = vec![OWN_CONFIGURATION.to_owned()];
        let cases = File::open(repository().join("conformance/vectors/cases.jsonl.gz"))
            .expect("the vectors are there");
        for line in BufReader::new(GzDecoder::new(cases)).lines() {
            let line = line.expect("the vectors are text");
            if line.len() > CASE_BYTES_MAX {
                continue;
            }
            let mut case: Value = serde_json::from_str(&line).expect("a case is JSON");
            let list = |value: Value| match value {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            let mut objects = list(case["objects"].take());
            objects.extend(list(case["pods"].take()));
            clusters.push(objects);
            if case["config"].is_object() {
                configurations.push(case["config"].to_string());
            }
        }
        let fixtures = repository().join("crates/config/tests/fixtures/legacy");
        let mut files: Vec<PathBuf> = fs::read_dir(&fixtures)
            .expect("the fixtures are there")
            .map(|entry| entry.expect("a folder can be listed").path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        configurations.extend(files.iter().filter_map(|path| fs::read_to_string(path).ok()));
        assert!(clusters.len() >= 500 && configurations.len() >= 100, "the bases were not found");
        Bases { clusters, configurations }
    }

    /// A cluster, often with workloads and devices beside it.
    pub(crate) fn cluster(&self, chance: &mut Chance) -> Vec<Value> {
        let mut objects = chance.pick(&self.clusters).clone();
        let others = others();
        for _ in 0..chance.below(4) {
            let place = chance.below(objects.len() + 1);
            objects.insert(place, chance.pick(&others).clone());
        }
        objects
    }

    pub(crate) fn configuration(&self, chance: &mut Chance) -> String {
        // The one that has everything comes more often than its share.
        if chance.one_in(3) {
            self.configurations[0].clone()
        } else {
            chance.pick(&self.configurations).clone()
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every section of a configuration.
const OWN_CONFIGURATION: &str = r#"apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
percentageOfNodesToScore: 50
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
delayCacheUntilActive: true
leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, resourceLock: leases}
clientConnection: {qps: 50.5, burst: 100, kubeconfig: ""}
profiles:
- schedulerName: default-scheduler
  percentageOfNodesToScore: 40
  plugins:
    score:
      enabled: [{name: ImageLocality, weight: 5}, {name: NodeResourcesFit}]
      disabled: [{name: '*'}]
    multiPoint:
      enabled: [{name: NodeAffinity, weight: 10}]
      disabled: [{name: NodeName}]
  pluginConfig:
  - name: InterPodAffinity
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs, hardPodAffinityWeight: 5}
  - name: NodeResourcesFit
    args:
      ignoredResources: [a.b/c]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: NotIn, values: [tape]}]}]
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 60}}
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}}
- schedulerName: second
extenders:
- urlPrefix: http://localhost:8080/x
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 2
  httpTimeout: 5s
  nodeCacheCapable: true
  ignorable: true
  tlsConfig: {certData: YWJj}
  managedResources: [{name: a.b/c, ignoredByScheduler: true}]
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
tieBreak: Seeded
seed: 5
fixes: [emptySpreadSelector]
"#;

/// Kinds that the vectors do not have: workloads, which stand for pods, and others that are read or left out.
fn others() -> Vec<Value> {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "250m", "memory": "64Mi" } } }],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "app": "web" } },
            }],
        },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let workload = |api_version: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": { "name": "web", "namespace": "default", "uid": format!("uid-{kind}") }, "spec": spec,
        })
    };
    let replicas = json!({ "replicas": 3, "selector": selector, "template": template });
    let job = json!({ "parallelism": 2, "completions": 5, "template": template });
    let claims = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    let mut stateful = replicas.clone();
    stateful["volumeClaimTemplates"] = claims;
    vec![
        workload("apps/v1", "Deployment", replicas.clone()),
        workload("apps/v1", "ReplicaSet", replicas),
        workload("apps/v1", "StatefulSet", stateful),
        workload("apps/v1", "DaemonSet", json!({ "selector": selector, "template": template })),
        workload("batch/v1", "Job", job.clone()),
        workload("batch/v1", "CronJob", json!({ "schedule": "* * * * *", "jobTemplate": { "spec": job } })),
        workload("policy/v1", "PodDisruptionBudget", json!({ "minAvailable": 1, "selector": selector })),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "default" } }),
        json!({ "apiVersion": "example.com/v1", "kind": "Ship", "metadata": { "name": "s" } }),
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "high" }, "value": 1000,
        }),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu" },
            "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }] },
        }),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": "n000-gpu" },
            "spec": {
                "driver": "gpu.example.com", "nodeName": "n000",
                "pool": { "name": "n000", "generation": 1, "resourceSliceCount": 1 },
                "devices": [{ "name": "gpu-0", "attributes": { "model": { "string": "a" } },
                    "capacity": { "memory": { "value": "16Gi" } } }],
            },
        }),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": { "name": "claim", "namespace": "default", "uid": "uid-claim" },
            "spec": { "devices": { "requests": [{ "name": "r", "exactly": { "deviceClassName": "gpu", "count": 1 } }] } },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "with-claim", "namespace": "default", "uid": "uid-wc" },
            "spec": {
                "containers": [{ "name": "c", "image": "i", "resources": { "claims": [{ "name": "gpu" }] } }],
                "resourceClaims": [{ "name": "gpu", "resourceClaimName": "claim" }], "priority": 10,
                "initContainers": [{ "name": "i", "image": "i", "restartPolicy": "Always",
                    "resources": { "requests": { "cpu": "1" } } }],
                "overhead": { "cpu": "10m" },
            },
        }),
    ]
}
