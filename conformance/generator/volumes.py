"""Volumes, claims and what goes with them, as the families about storage write them."""
from gen import NAMESPACES
from touches import HOST, REGION, ZONE, plain_config, some

BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
MODES = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
DRIVERS = ["one.csi.example.com", "two.csi.example.com", "example.com/three"]
IN_TREE = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com", "kubernetes.io/gce-pd": "pd.csi.storage.gke.io", "kubernetes.io/azure-disk": "disk.csi.azure.com",
           "kubernetes.io/cinder": "cinder.csi.openstack.org", "kubernetes.io/portworx-volume": "pxd.portworx.com",
           "kubernetes.io/azure-file": "file.csi.azure.com", "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com"}


# -- objects ----------------------------------------------------------------
def storage_class(name, provisioner, mode="WaitForFirstConsumer", topologies=None):
    out = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}
    if mode:
        out["volumeBindingMode"] = mode
    if topologies is not None:
        out["allowedTopologies"] = topologies
    return out


def claim(namespace, name, size="5Gi", volume=None, bound=True, annotations=None, phase=None, **spec):
    """A claim; with a volume it is bound, unless only half so."""
    annotations = dict(annotations or {})
    if volume is not None:
        spec["volumeName"] = volume
        if bound:
            annotations[BIND_COMPLETED] = "yes"
    spec.setdefault("accessModes", ["ReadWriteOnce"])
    if size:
        spec["resources"] = {"requests": {"storage": size}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "uid": f"pvc-{namespace}-{name}", "annotations": annotations},
            "spec": spec, "status": {"phase": phase or ("Bound" if volume is not None and bound else "Pending")}}


def volume(name, size="10Gi", phase="Available", labels=None, annotations=None, **spec):
    spec.setdefault("accessModes", ["ReadWriteOnce"])
    if not any(k in spec for k in ("csi", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "portworxVolume", "vsphereVolume", "azureFile")):
        spec["hostPath"] = {"path": "/d"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": f"pv-{name}", "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"capacity": {"storage": size}, **spec}, "status": {"phase": phase}}


def csi(driver, handle):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def reference(namespace, name, uid=True):
    out = {"namespace": namespace, "name": name}
    if uid:
        out["uid"] = f"pvc-{namespace}-{name}"
    return out


def on(key, *values, operator="In"):
    e = {"key": key, "operator": operator}
    if values:
        e["values"] = list(values)
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [e]}]}}


def mount(p, name, **source):
    p["spec"].setdefault("volumes", []).append({"name": name, **source})


def mount_claim(p, name):
    mount(p, f"v{len(p['spec'].get('volumes', []))}", persistentVolumeClaim={"claimName": name})


def node_names(case):
    return [o["metadata"]["name"] for o in case["objects"] if o["kind"] == "Node"]


def all_pods(case):
    return [o for o in case["objects"] if o["kind"] == "Pod"] + case["pods"]


def sometimes_without(g, *plugins):
    """A configuration without some PreFilters, or none."""
    if g.chance(0.12):
        return plain_config(plugins={"preFilter": {"disabled": [{"name": g.r.choice(plugins)}]}})
    if g.chance(0.08):
        return plain_config(plugins={"multiPoint": {"disabled": [{"name": g.r.choice(plugins)}]}})
    return None


def csi_nodes(g, case, drivers, limits=(0, 1, 2, 3, 5), annotations=None):
    for name in node_names(case):
        if g.chance(0.15):
            continue
        listed = []
        for driver in some(g, drivers, 1):
            d = {"name": driver, "nodeID": name, "topologyKeys": []}
            if g.chance(0.85):
                d["allocatable"] = {"count": g.r.choice(limits)} if g.chance(0.9) else {}
            listed.append(d)
        meta = {"name": name}
        if annotations:
            meta["annotations"] = annotations(g)
        case["objects"].append({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": listed}})


def topologies(g):
    terms = []
    for _ in range(g.r.choice([0, 1, 2, 2, 3])):
        expressions = []
        for _ in range(g.r.choice([0, 1, 1, 1, 1, 1, 2])):
            key = g.r.choice([ZONE, ZONE, ZONE, ZONE, REGION, REGION, "disk", HOST, "not a key"])
            pool = {ZONE: ["a", "b", "c"], REGION: ["r1", "r2"], "disk": ["ssd", "hdd"], HOST: ["n000", "n001", "n002"], "not a key": ["x"]}[key]
            expressions.append({"key": key, "values": some(g, pool, 0 if g.chance(0.1) else 1)})
        terms.append({"matchLabelExpressions": expressions})
    return terms
