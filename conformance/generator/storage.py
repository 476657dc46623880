"""The families about volumes: claims and what they are bound to, limits, capacities, zones, and disks written in pods.

Every family is a Touch. Objects are named so that pods of several namespaces share names, since some of upstream's rules look at
names alone. What upstream leaves to chance is kept out; see `local_volumes` and `prebound`.
"""
from disks import (intree_config, intree_extra, intree_node, intree_pod, intree_whole, zones_config, zones_extra, zones_node,
                   zones_pod)
from touches import HOST, ZONE, Touch, cluster, plain_config, some
from volumes import (BETA_CLASS, DRIVERS, IN_TREE, MODES, NAMESPACES, SELECTED_NODE, all_pods, claim, csi, csi_nodes, mount, mount_claim,
                     node_names, on, reference, sometimes_without, storage_class, topologies, volume)


# -- rwop: one pod a claim, shared names in several namespaces ----------------
CLAIMS = ["data", "logs", "scratch"]


def rwop_pod(g, p, placed):
    if g.chance(0.85):
        for name in some(g, CLAIMS, 1):
            mount_claim(p, name)
        if g.chance(0.1):
            mount_claim(p, CLAIMS[0])
    if g.chance(0.05):
        mount_claim(p, g.r.choice(["missing", ""]))
    # Preemption must have somebody to evict, and a reason to.
    p["spec"]["priority"] = g.r.choice([0, 10, 100]) if placed else g.r.choice([0, 100, 1000])


def rwop_extra(g):
    out = [storage_class("wffc", "example.com/csi"), storage_class("now", "example.com/csi", "Immediate")]
    for ns in NAMESPACES:
        for name in CLAIMS:
            if g.chance(0.05):
                continue
            modes = g.r.choice([["ReadWriteOncePod"], ["ReadWriteOncePod"], ["ReadWriteOnce"], ["ReadOnlyMany", "ReadWriteOncePod"]])
            if g.chance(0.6):
                out.append(volume(f"pv-{ns}-{name}", phase="Bound", accessModes=modes, storageClassName="wffc", claimRef=reference(ns, name), **csi("example.com/csi", f"{ns}-{name}")))
                out.append(claim(ns, name, volume=f"pv-{ns}-{name}", accessModes=modes, storageClassName="wffc"))
            else:
                out.append(claim(ns, name, accessModes=modes, storageClassName=g.r.choice(["wffc", "wffc", "wffc", "now"])))
    return out


def rwop_whole(g, case):
    names = node_names(case)
    for k in range(g.r.choice([0, 0, 1, 2])):  # nominated pods are added to the state as well
        p = g.pod(f"nominated-{k}", {"namespaces"})
        rwop_pod(g, p, False)
        p["status"]["nominatedNodeName"] = g.r.choice(names)
        case["objects"].append(p)
    if g.chance(0.2):
        case["objects"].append({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb", "namespace": g.r.choice(NAMESPACES)},
                                "spec": {"selector": {}}, "status": {"disruptionsAllowed": g.r.choice([0, 1])}})


# -- csilimits: how many volumes a node takes ---------------------------------
def limits_pod(g, p, placed):
    for name in some(g, [f"c{k}" for k in range(6)], 0)[:4]:
        mount_claim(p, name)
    if g.chance(0.15):
        mount_claim(p, "missing" if placed or g.chance(0.3) else "c0")
    if placed and g.chance(0.03):
        mount_claim(p, "")
    if placed:
        p["spec"]["priority"] = g.r.choice([0, 10])
    else:
        p["spec"]["priority"] = g.r.choice([0, 0, 100])


def limits_extra(g):
    out = [storage_class(f"class-{k}", d) for k, d in enumerate(DRIVERS)] + [storage_class("in-tree", g.r.choice(list(IN_TREE)))]
    classes = [f"class-{k}" for k in range(len(DRIVERS))] + ["in-tree", "unknown"]
    for ns in NAMESPACES:
        for k in range(6):
            kind = g.r.choices(["bound", "waiting", "shared", "gone"], [12, 5, 4, 1])[0]
            sc = g.r.choice(classes)
            if kind == "waiting":
                out.append(claim(ns, f"c{k}", storageClassName=sc if sc != "unknown" else "class-0"))
                continue
            if kind == "gone":
                out.append(claim(ns, f"c{k}", volume="gone", storageClassName=sc))
                continue
            handle = "shared" if kind == "shared" else f"{ns}-{k}"
            pv = f"pv-{ns}-{k}"
            source = csi(g.r.choice(DRIVERS + ["ebs.csi.aws.com"]), handle) if g.chance(0.9) else {}
            out.append(volume(pv, phase="Bound", storageClassName="class-0", claimRef=reference(ns, f"c{k}"), **source))
            out.append(claim(ns, f"c{k}", volume=pv, storageClassName="class-0"))
    return out


def limits_whole(g, case):
    csi_nodes(g, case, DRIVERS + ["ebs.csi.aws.com", "pd.csi.storage.gke.io"])
    volumes = [o["metadata"]["name"] for o in case["objects"] if o["kind"] == "PersistentVolume"]
    for k in range(g.r.choice([0, 2, 5, 9])):
        source = {"persistentVolumeName": g.r.choice(volumes + ["gone"])} if volumes and g.chance(0.9) else {}
        case["objects"].append({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": f"va-{k}"},
                                "spec": {"attacher": g.r.choice(DRIVERS + DRIVERS + [""]), "nodeName": g.r.choice(node_names(case) + ["ghost"]), "source": source}, "status": {"attached": True}})


def limits_config(g):
    if g.chance(0.3):  # VolumeZone stops pods whose volume is gone; without it the class counts in its place
        return plain_config(plugins={"multiPoint": {"disabled": [{"name": "VolumeZone"}]}})
    return sometimes_without(g, "NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions")


# -- capacity: room for volumes that are to be made ---------------------------
SIZES = ["1Gi", "5Gi", "5000Mi", "10Gi", "100G"]


def node_topology(g):
    kind = g.r.choice(["all", "zone", "zone", "host", "expression", "bad", "none"])
    if kind == "all":
        return {}
    if kind == "zone":
        return {"matchLabels": {ZONE: g.r.choice("abc")}}
    if kind == "host":
        return {"matchLabels": {HOST: g.r.choice(["n000", "n001", "n002", "n003"])}}
    if kind == "expression":
        return {"matchExpressions": [{"key": "disk", "operator": g.r.choice(["Exists", "DoesNotExist"])}]}
    return {"matchExpressions": [{"key": "disk", "operator": "Odd"}]} if kind == "bad" else None


def capacity_pod(g, p, placed):
    if not placed:
        for name in g.r.sample([f"c{k}" for k in range(5)], g.r.choice([1, 1, 1, 2, 3])):
            mount_claim(p, name)
        if g.chance(0.25):  # a bound volume has its own say
            mount_claim(p, "bound")


def capacity_extra(g):
    drivers = DRIVERS[:2] + ["kubernetes.io/no-provisioner", ""]
    out = []
    for k in range(3):
        out.append(storage_class(f"class-{k}", g.r.choice(DRIVERS[:2]) if g.chance(0.85) else g.r.choice(drivers), topologies=topologies(g) if g.chance(0.5) else None))
    for d in DRIVERS[:2]:
        if g.chance(0.9):
            spec = {"storageCapacity": g.chance(0.85)} if g.chance(0.9) else {}
            out.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": d}, "spec": spec})
    for k in range(g.r.choice([0, 4, 8, 12])):
        c = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": f"cap-{k}", "namespace": "kube-system"},
             "storageClassName": f"class-{g.r.randint(0, 2)}"}
        topology = node_topology(g)
        if topology is not None:
            c["nodeTopology"] = topology
        if g.chance(0.9):
            c["capacity"] = g.r.choice(SIZES + ["0", "1Ti"])
        if g.chance(0.3):
            c["maximumVolumeSize"] = g.r.choice(SIZES)
        out.append(c)
    for ns in NAMESPACES:
        out.append(volume(f"pv-{ns}", phase="Bound", storageClassName="class-0", nodeAffinity=on(ZONE, *some(g, ["a", "b", "c"], 1)), claimRef=reference(ns, "bound")))
        out.append(claim(ns, "bound", volume=f"pv-{ns}" if g.chance(0.9) else "gone", storageClassName="class-0"))
        for k in range(5):
            annotations = {SELECTED_NODE: f"n{g.r.randint(0, 3):03d}"} if g.chance(0.1) else {}
            out.append(claim(ns, f"c{k}", size=g.r.choice(SIZES) if g.chance(0.9) else None, annotations=annotations, storageClassName=f"class-{g.r.randint(0, 2)}"))
    return out


# -- ephemeral: claims that are made for a pod --------------------------------
def ephemeral_pod(g, p, placed):
    for k in range(g.r.choice([0, 1, 1, 2, 3])):
        mount(p, f"e{k}", ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "wffc", "resources": {"requests": {"storage": "1Gi"}}}}})
    if g.chance(0.2):
        mount_claim(p, "data")
    if g.chance(0.2):
        mount(p, "inline", csi={"driver": DRIVERS[0]})
    p["spec"]["priority"] = 0 if placed else g.r.choice([0, 100])


def ephemeral_whole(g, case):
    objects = case["objects"]
    objects += [storage_class("wffc", DRIVERS[0], topologies=topologies(g) if g.chance(0.2) else None), storage_class("now", DRIVERS[0], "Immediate")]
    objects += [claim(ns, "data", storageClassName="wffc") for ns in NAMESPACES]
    for k, p in enumerate(case["pods"]):
        if g.chance(0.3):
            p["metadata"]["uid"] = f"pending-{k}"  # what a pod without one gets
    for p in all_pods(case):
        meta = p["metadata"]
        for v in p["spec"].get("volumes", []):
            if "ephemeral" not in v:
                continue
            kind = g.r.choices(["good", "missing", "stranger", "orphan", "helper"], [20, 1.5, 0.7, 0.7, 0.7])[0]
            if kind == "missing":
                continue
            name, ns = f"{meta['name']}-{v['name']}", meta["namespace"]
            c = claim(ns, name, size="1Gi", storageClassName="wffc" if g.chance(0.95) else "now")
            if g.chance(0.5):
                pv = f"pv-{ns}-{name}"
                c = claim(ns, name, size="1Gi", volume=pv, storageClassName="wffc")
                objects.append(volume(pv, phase="Bound", storageClassName="wffc", claimRef=reference(ns, name), **csi(DRIVERS[0], pv)))
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
            if kind == "stranger":
                owner["uid"] = "somebody-else"
            if kind == "helper":
                owner.pop("controller")
            if kind != "orphan":
                c["metadata"]["ownerReferences"] = [owner]
            if g.chance(0.03):
                c["metadata"].update({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]})
            objects.append(c)
    csi_nodes(g, case, DRIVERS[:1], limits=(1, 2, 3, 6))


def ephemeral_config(g):
    return sometimes_without(g, "VolumeBinding", "NodeVolumeLimits")


# -- volumes2: static binding, and every state that a claim can be in ---------
LOCAL_SIZES = ["1Gi", "2Gi", "3Gi", "4Gi", "6Gi", "8Gi", "12Gi", "16Gi", "24Gi", "32Gi", "48Gi", "64Gi", "3G", "9G"]


def local_volumes(g):
    """Volumes of one class and size are chosen from at random upstream, so no two have the same size."""
    out = []
    for k, size in enumerate(g.r.sample(LOCAL_SIZES, g.r.randint(3, len(LOCAL_SIZES)))):
        spec = {"storageClassName": g.r.choice(["local", "local", "local", "both"]), "accessModes": some(g, MODES, 1)}
        if g.chance(0.8):
            spec["accessModes"] = sorted({*spec["accessModes"], "ReadWriteOnce"})
        if g.chance(0.75):
            spec["nodeAffinity"] = g.r.choice([on(HOST, f"n{g.r.randint(0, 6):03d}"), on(ZONE, g.r.choice("abc")), on("disk", operator="Exists"),
                                               {"required": {"nodeSelectorTerms": []}}, {}, {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n000"]}]}]}},
                                               on("disk", "x", operator="Odd"), {"required": {"nodeSelectorTerms": [{}, *on(ZONE, "a")["required"]["nodeSelectorTerms"]]}}])
        if g.chance(0.3):
            spec["volumeMode"] = g.r.choice(["Block", "Filesystem"])
        if g.chance(0.1):
            spec["volumeAttributesClassName"] = g.r.choice(["gold", ""])
        pv = volume(f"pv-local-{k}", size=size, phase=g.r.choice(["Available"] * 8 + ["Released", "Pending", ""]), labels=g.r.choice([{}, {"tier": "fast"}, {"tier": "slow"}]), **spec)
        if g.chance(0.1):
            pv["metadata"]["annotations"] = {BETA_CLASS: g.r.choice(["local", "both", "now"])}
        if g.chance(0.05):
            pv["metadata"].update({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pv-protection"]})
        out.append(pv)
    return out


def prebound(g, volumes):
    """Reserves some volumes for claims; two volumes for one claim would leave the choice to chance."""
    taken = set()
    for pv in volumes:
        target = (g.r.choice(NAMESPACES), f"w{g.r.randint(0, 5)}")
        if g.chance(0.25) and target not in taken:
            taken.add(target)
            ref = reference(*target, uid=g.chance(0.5))
            if g.chance(0.15):
                ref["uid"] = "an-earlier-one"
            pv["spec"]["claimRef"] = ref


def waiting_claim(g, ns, name):
    spec = {"storageClassName": g.r.choice(["local", "local", "local", "both", "wffc"]), "accessModes": g.r.choice([["ReadWriteOnce"]] * 4 + [["ReadWriteMany"], ["ReadWriteOnce", "ReadOnlyMany"], []])}
    annotations = {}
    if g.chance(0.1):
        annotations[BETA_CLASS] = g.r.choice(["local", "both", "wffc", "now", ""])
    if g.chance(0.08):
        annotations[SELECTED_NODE] = f"n{g.r.randint(0, 3):03d}"
    if g.chance(0.15):
        spec["volumeMode"] = g.r.choice(["Block", "Filesystem"])
    if g.chance(0.2):
        spec["selector"] = g.r.choice([{"matchLabels": {"tier": "fast"}}, {"matchLabels": {"tier": "slow"}}, {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, {},
                                       {"matchExpressions": [{"key": "tier", "operator": "Odd" if g.chance(0.3) else "DoesNotExist"}]}])
    if g.chance(0.08):
        spec["volumeAttributesClassName"] = g.r.choice(["gold", "silver", ""])
    return claim(ns, name, size=g.r.choice(LOCAL_SIZES[:6]) if g.chance(0.95) else None, annotations=annotations, **spec)


def odd_claims(g, ns):
    zone = g.r.choice("abc")
    out = [volume(f"pv-{ns}-good", phase="Bound", storageClassName="wffc", nodeAffinity=on(ZONE, zone), claimRef=reference(ns, "good"), **csi(DRIVERS[0], "good"))]
    if g.chance(0.8):
        out.append(volume(f"pv-{ns}-other", phase="Bound", storageClassName="wffc", nodeAffinity=on(HOST, f"n{g.r.randint(0, 4):03d}"), claimRef=reference(ns, "other"), **csi(DRIVERS[0], "other")))
    out += [claim(ns, "good", volume=f"pv-{ns}-good", storageClassName="wffc"), claim(ns, "other", volume=f"pv-{ns}-other", storageClassName="wffc"),
            claim(ns, "lost", volume="pv-lost", phase="Lost", storageClassName="wffc"), claim(ns, "half", volume=f"pv-{ns}-good", bound=False, storageClassName="wffc"),
            claim(ns, "gone", volume="pv-gone", storageClassName="wffc"), claim(ns, "classless"), claim(ns, "stranger", storageClassName="unknown"),
            claim(ns, "immediate", storageClassName="now"), claim(ns, "modeless", storageClassName="modeless")]
    deleting = claim(ns, "deleting", storageClassName="wffc")
    deleting["metadata"].update({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]})
    return out + [deleting]


def volumes2_pod(g, p, placed):
    names = [f"w{k}" for k in range(6)]
    if g.chance(0.9):
        for name in g.r.sample(names, g.r.choice([1, 1, 1, 2, 2, 3, 4])):
            mount_claim(p, name)
    if g.chance(0.3):
        mount_claim(p, g.r.choice(["good", "good", "good", "other", "other", "gone"]))
    if not placed and g.chance(0.15):
        mount_claim(p, g.r.choice(["lost", "half", "classless", "stranger", "immediate", "modeless", "deleting", "missing", ""]))
    if g.chance(0.1):
        mount(p, "tmp", emptyDir={})
    p["spec"]["priority"] = 0 if placed else g.r.choice([0, 0, 100])


def volumes2_extra(g):
    out = [storage_class("local", "kubernetes.io/no-provisioner"), storage_class("both", DRIVERS[0], topologies=topologies(g) if g.chance(0.4) else None),
           storage_class("wffc", DRIVERS[1], topologies=topologies(g) if g.chance(0.4) else None), storage_class("now", DRIVERS[0], "Immediate"), storage_class("modeless", DRIVERS[0], None)]
    volumes = local_volumes(g)
    prebound(g, volumes)
    out += volumes
    for ns in NAMESPACES:
        out += odd_claims(g, ns) + [waiting_claim(g, ns, f"w{k}") for k in range(6)]
    return out


def volumes2_config(g):
    return sometimes_without(g, "VolumeBinding", "VolumeZone", "VolumeRestrictions")


TOUCHES = {
    "rwop": Touch(base=("namespaces",), pod=rwop_pod, extra=rwop_extra, whole=rwop_whole, nodes=(1, 2, 3, 5), share=(0.5, 1, 2)),
    "csilimits": Touch(base=("namespaces",), pod=limits_pod, extra=limits_extra, whole=limits_whole, config=limits_config, nodes=(1, 2, 4, 6), share=(0.5, 1, 2)),
    "capacity": Touch(base=("namespaces",), pod=capacity_pod, extra=capacity_extra, share=(0.5,), roomy=0.9),
    "ephemeral": Touch(base=("namespaces",), pod=ephemeral_pod, whole=ephemeral_whole, config=ephemeral_config, nodes=(1, 2, 4, 6), share=(0.5, 1.5), roomy=0.9),
    "volumes2": Touch(base=("namespaces",), pod=volumes2_pod, extra=volumes2_extra, config=volumes2_config, nodes=(1, 2, 4, 7), share=(0.5, 1), roomy=0.9),
    "zones": Touch(base=("namespaces",), node=zones_node, pod=zones_pod, extra=zones_extra, config=zones_config, share=(0.5,), roomy=0.9),
    "intree": Touch(base=("namespaces",), node=intree_node, pod=intree_pod, extra=intree_extra, whole=intree_whole, config=intree_config, nodes=(1, 2, 4, 6), share=(0.5, 1, 2), roomy=0.9),
}

def storagemix(g):
    """Several of these on one cluster, with other things that keep pods off nodes. Of two objects with one name the first stays."""
    shape = Touch(nodes=(1, 2, 4, 7), share=(0.5, 1, 2), pending=(1, 2, 4), roomy=0.6)
    rest = Touch(base=tuple(some(g, ["taints", "affinity", "spread", "nodeaffinity", "ports", "priority", "pdb"], 0)))
    case = cluster(g, [rest] + g.r.sample([t for t in TOUCHES.values()], g.r.choice([2, 2, 3])), shape)
    seen = {}
    for o in case["objects"]:
        seen.setdefault((o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]), o)
    case["objects"] = list(seen.values())
    for p in all_pods(case):  # two touches may name their volumes alike
        for k, v in enumerate(p["spec"].get("volumes", [])):
            if "ephemeral" not in v:
                v["name"] = f"v{k}"
    return case


FAMILIES = {
    "storagemix": storagemix,
    **{name: lambda g, t=touch: cluster(g, [t]) for name, touch in TOUCHES.items()},
}
