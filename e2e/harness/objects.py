"""Builders of Kubernetes objects. They give plain dictionaries: what they do not know of is put in by the caller."""

from fractions import Fraction

IMAGE = "pause"
FACTORS = {
    "": 1, "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}


def node(name, cpu="4", memory="16Gi", pods="110", labels=None, taints=None, resources=None):
    """A ready node."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": taints or []},
        "status": {
            "capacity": room, "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
        },
    }


def nodes(count, **options):
    return [node(f"node-{number:03}", **options) for number in range(count)]


def pod(name, cpu=None, memory=None, labels=None, ports=None, priority_class=None, claims=(), requests=None, **spec):
    """A pending pod; further arguments are fields of its spec, by their Kubernetes names."""
    requests = dict(requests or {})
    if cpu:
        requests["cpu"] = cpu
    if memory:
        requests["memory"] = memory
    extended = {key: value for key, value in requests.items() if "/" in key}
    container = {"name": "main", "image": IMAGE, "resources": {"requests": requests, "limits": extended}}
    if ports:
        container["ports"] = ports
    if priority_class:
        spec["priorityClassName"] = priority_class
    if claims:
        spec["volumes"] = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def priority_class(name, value, **fields):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}


def budget(name, labels, **spec):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, **spec}}


def storage_class(name, provisioner="kubernetes.io/no-provisioner", mode="WaitForFirstConsumer"):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": mode}


def local_volume(name, node_name, storage, storage_class_name):
    """A disk of one node."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}]}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class_name,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": f"/disks/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def made_volume(name, node_name, claim_object):
    """A volume as a driver makes it for a claim."""
    spec = claim_object["spec"]
    volume = local_volume(name, node_name, spec["resources"]["requests"]["storage"], spec["storageClassName"])
    volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "driver.example.com"}
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
        "name": claim_object["metadata"]["name"], "uid": claim_object["metadata"]["uid"],
    }
    return volume


def claim(name, storage, storage_class_name):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class_name,
                 "resources": {"requests": {"storage": storage}}},
    }


def replica_set(name, replicas, template):
    labels = {"name": name}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def daemon_set(name, template):
    daemons = replica_set(name, 0, template)
    daemons["kind"] = "DaemonSet"
    del daemons["spec"]["replicas"]
    return daemons


def taint(key, effect="NoSchedule", value=""):
    return {"key": key, "value": value, "effect": effect}


def condition(item, kind):
    """A condition of an object, or None."""
    for each in item.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each
    return None


def node_of(pod_object):
    return pod_object["spec"].get("nodeName")


def milli(quantity):
    """CPU in thousandths."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def amount(quantity):
    """A quantity as an exact number."""
    suffix = quantity.lstrip("0123456789.")
    return Fraction(quantity.removesuffix(suffix)) * FACTORS[suffix]
