//! What stands in which field of an object.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Words of the API, keys, quantities, times: nothing that anybody chose to mean something.
    Harmless,
    /// Nothing that scheduling depends on, and perhaps something that is nobody's business.
    Dropped,
    /// What became of an object, or a word of the API if it is a text.
    Status,
    /// Labels, or a selector of labels.
    Labels,
    /// Annotations, most of which are dropped.
    Annotations,
    /// The values of the label or taint whose key stands beside them; without a key, names.
    Values,
    /// Times, by name.
    NameKeys,
    /// The name of an image.
    Image,
    /// What a volume is called where it comes from: names and well-known words between slashes.
    Handle,
    /// The name of a node.
    NodeName,
    /// The name of a namespace.
    Namespace,
    /// The name of a driver, which is part of what resources and volumes are.
    Driver,
    /// Something else: a name.
    Unknown,
}

/// What a field of this name holds.
pub(super) fn field(name: &str) -> Field {
    match name {
        "apiVersion" | "kind" | "uid" | "resourceVersion" | "phase" | "type" | "timeAdded" => Field::Harmless,
        time if time.ends_with("Time") || time.ends_with("Timestamp") => Field::Harmless,
        "status" => Field::Status,
        // Quantities, by resource.
        "requests" | "limits" | "allocatable" | "capacity" | "overhead" | "allocatedResources"
        | "storage" | "maximumVolumeSize" | "sizeLimit" | "hard" | "used" => Field::Harmless,
        // Keys, and words that the API defines.
        "key"
        | "topologyKey"
        | "topologyKeys"
        | "matchLabelKeys"
        | "mismatchLabelKeys"
        | "operator"
        | "effect"
        | "whenUnsatisfiable"
        | "nodeAffinityPolicy"
        | "nodeTaintsPolicy"
        | "preemptionPolicy"
        | "restartPolicy"
        | "action"
        | "protocol"
        | "schedulerName"
        | "accessModes"
        | "volumeMode"
        | "volumeBindingMode"
        | "reclaimPolicy"
        | "persistentVolumeReclaimPolicy"
        | "declaredFeatures"
        | "qosClass"
        | "dnsPolicy"
        | "extendedResourceName"
        | "reason"
        | "resourceName"
        | "fsGroupPolicy"
        | "volumeLifecycleModes"
        | "unhealthyPodEvictionPolicy"
        | "minAvailable"
        | "maxUnavailable"
        | "addressType" => Field::Harmless,
        "env"
        | "envFrom"
        | "command"
        | "args"
        | "livenessProbe"
        | "readinessProbe"
        | "startupProbe"
        | "lifecycle"
        | "securityContext"
        | "volumeMounts"
        | "volumeDevices"
        | "workingDir"
        | "terminationMessagePath"
        | "managedFields"
        | "generateName"
        | "finalizers"
        | "selfLink"
        | "message"
        | "podIP"
        | "podIPs"
        | "hostIPs"
        | "addresses"
        | "nodeInfo"
        | "providerID"
        | "podCIDR"
        | "podCIDRs"
        | "daemonEndpoints"
        | "volumesAttached"
        | "volumesInUse"
        | "parameters"
        | "volumeAttributes"
        | "mountOptions"
        | "imageID"
        | "containerID"
        | "state"
        | "lastState"
        | "imagePullSecrets"
        | "serviceAccount"
        | "serviceAccountName"
        | "hostAliases"
        | "dnsConfig"
        | "hostname"
        | "subdomain"
        | "template"
        | "volumeClaimTemplate"
        | "volumeClaimTemplates"
        | "clusterIP"
        | "clusterIPs"
        | "externalIPs"
        | "externalName"
        | "loadBalancer"
        | "loadBalancerIP"
        | "runtimeHandlers"
        | "attachmentMetadata"
        | "tokenRequests"
        | "config"
        | "secretRef"
        | "nodePublishSecretRef"
        | "controllerExpandSecretRef"
        | "nodeStageSecretRef"
        | "controllerPublishSecretRef"
        | "nodeExpandSecretRef"
        | "projected"
        | "configMap"
        | "secret"
        | "downwardAPI"
        | "hostPath" => Field::Dropped,
        "labels" | "matchLabels" | "nodeSelector" | "selector" => Field::Labels,
        "annotations" => Field::Annotations,
        "values" | "value" => Field::Values,
        "disruptedPods" => Field::NameKeys,
        "image" | "names" | "reference" => Field::Image,
        "volumeHandle" | "volumeID" | "diskURI" | "pdName" => Field::Handle,
        "nodeName" | "nominatedNodeName" => Field::NodeName,
        "namespace" | "namespaces" => Field::Namespace,
        "driver" | "provisioner" | "attacher" => Field::Driver,
        _ => Field::Unknown,
    }
}

/// What an annotation holds: those that volumes are bound by, and none else.
pub(super) fn annotation(key: &str) -> Field {
    match key {
        "pv.kubernetes.io/bind-completed"
        | "pv.kubernetes.io/bound-by-controller"
        | "storageclass.kubernetes.io/is-default-class"
        | "storageclass.beta.kubernetes.io/is-default-class"
        | "storage.alpha.kubernetes.io/migrated-plugins"
        | "pv.kubernetes.io/migrated-to"
        | "pv.kubernetes.io/provisioned-by"
        | "volume.kubernetes.io/storage-provisioner"
        | "volume.beta.kubernetes.io/storage-provisioner" => Field::Harmless,
        "volume.kubernetes.io/selected-node" => Field::NodeName,
        "volume.beta.kubernetes.io/storage-class" => Field::Unknown,
        _ => Field::Dropped,
    }
}

/// Whether the values of a label say where a node is and what machine it is, and no more.
pub(super) fn is_well_known_label(key: &str) -> bool {
    const LABELS: [&str; 9] = [
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    ];
    LABELS.contains(&key)
        || key.starts_with("topology.kubernetes.io/")
        || key.starts_with("node-role.kubernetes.io/")
        || (key.starts_with("topology.") && key.ends_with("/zone"))
}

/// Whether a value is a number or a word that means yes or no. Numbers are compared by their size.
pub(super) fn is_harmless_value(value: &str) -> bool {
    value.is_empty() || value == "true" || value == "false" || value.parse::<i64>().is_ok()
}

/// Whether a part of a volume's handle has a meaning to the scheduler, which finds out from it what is the same volume.
pub(super) fn is_handle_word(part: &str) -> bool {
    ["", "aws:", "vol-", "projects", "UNSPECIFIED", "zones", "regions", "disks", "subscriptions"]
        .contains(&part)
}
