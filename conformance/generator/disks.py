"""The families about where a disk is: zone labels of volumes, and disks of the plugins that were once built in."""
from touches import REGION, ZONE, plain_config, some
from volumes import (BETA_REGION, BETA_ZONE, DRIVERS, IN_TREE, MIGRATED, NAMESPACES, claim, csi_nodes, mount, mount_claim, reference,
                     sometimes_without, storage_class, volume)


# -- zones: the labels of volumes against those of nodes -----------------------
def zones_node(g, n):
    labels = n["metadata"]["labels"]
    for key, pool in ((ZONE, "abc"), (REGION, ["r1", "r2"]), (BETA_ZONE, "abc"), (BETA_REGION, ["r1", "r2"])):
        labels.pop(key, None)
        if g.chance(0.7 if key in (ZONE, REGION) else 0.25):
            labels[key] = g.r.choice(pool)


def zone_value(g, pool):
    return g.r.choice(["__".join(some(g, pool, 1)), g.r.choice(pool), "a__", "", f" {g.r.choice(pool)} ", "a__ b"] if g.chance(0.25) else ["__".join(some(g, pool, 1)), g.r.choice(pool)])


def zones_pod(g, p, placed):
    if not placed:
        for name in g.r.sample([f"z{k}" for k in range(5)], g.r.choice([0, 1, 1, 2, 3])):
            mount_claim(p, name)
        if g.chance(0.12):
            mount_claim(p, g.r.choice(["missing", "", "gone", "waiting", "waiting", "classless", "immediate", "stranger", "modeless"]))


def zones_extra(g):
    out = [storage_class("wffc", DRIVERS[0]), storage_class("now", DRIVERS[0], "Immediate"), storage_class("modeless", DRIVERS[0], None)]
    for ns in NAMESPACES:
        for k in range(5):
            labels = {}
            for key, pool in ((ZONE, ["a", "b", "c"]), (REGION, ["r1", "r2"]), (BETA_ZONE, ["a", "b", "c"]), (BETA_REGION, ["r1", "r2"])):
                if g.chance(0.3):
                    labels[key] = zone_value(g, pool)
            out.append(volume(f"pv-{ns}-{k}", phase="Bound", labels=labels, storageClassName="wffc", claimRef=reference(ns, f"z{k}")))
            out.append(claim(ns, f"z{k}", volume=f"pv-{ns}-{k}", storageClassName="wffc", bound=g.chance(0.97)))
        out += [claim(ns, "gone", volume="pv-gone"), claim(ns, "waiting", storageClassName="wffc"), claim(ns, "classless"), claim(ns, "immediate", storageClassName="now"),
                claim(ns, "stranger", storageClassName="unknown"), claim(ns, "modeless", storageClassName="modeless")]
    return out


def zones_config(g):
    # Without VolumeBinding the words of VolumeZone itself are heard.
    if g.chance(0.3):
        return plain_config(plugins={"multiPoint": {"disabled": [{"name": "VolumeBinding"}, *([{"name": "VolumeRestrictions"}] if g.chance(0.5) else [])]}})
    return sometimes_without(g, "VolumeZone")


# -- intree: disks that are written in pods, and their CSI drivers -------------
def disk(g):
    kind = g.r.choice(["gce", "gce", "ebs", "ebs", "rbd", "iscsi", "azure", "cinder", "portworx", "azureFile", "vsphere"])
    read_only = {"readOnly": True} if g.chance(0.5) else {}
    k = g.r.randint(1, 3)
    if kind == "gce":
        return {"gcePersistentDisk": {"pdName": f"pd-{k}", **read_only}}
    if kind == "ebs":
        return {"awsElasticBlockStore": {"volumeID": g.r.choice([f"vol-{k}", f"aws://z/vol-{k}", f"aws:///vol-{k}", "aws://z/disk" if g.chance(0.1) else f"vol-{k}"]), **read_only}}
    if kind == "rbd":
        return {"rbd": {"monitors": some(g, ["m1", "m2", "m3"], 1), "pool": g.r.choice(["p", "q"]), "image": f"i{g.r.randint(1, 2)}", **read_only}}
    if kind == "iscsi":
        return {"iscsi": {"targetPortal": "t", "iqn": f"iqn-{k}", "lun": g.r.randint(0, 1), **read_only}}
    if kind == "azure":
        azure = {"diskName": "d", "diskURI": f"/subscriptions/s/disks/d{k}", **read_only}
        if g.chance(0.3):
            azure["kind"] = g.r.choice(["Managed", "managed", "Shared" if g.chance(0.2) else "Managed"])
        return {"azureDisk": azure}
    if kind == "cinder":
        return {"cinder": {"volumeID": f"cinder-{k}", **read_only}}
    if kind == "portworx":
        return {"portworxVolume": {"volumeID": f"px-{k}", **read_only}}
    return {"azureFile": {"secretName": "s", "shareName": "x"}} if kind == "azureFile" else {"vsphereVolume": {"volumePath": "[d] x"}}


def intree_pod(g, p, placed):
    for k in range(g.r.choice([0, 1, 1, 2])):
        mount(p, f"d{k}", **disk(g))
    if g.chance(0.6):
        for name in g.r.sample([f"i{k}" for k in range(6)], g.r.choice([1, 1, 2])):
            mount_claim(p, name)
    p["spec"]["priority"] = g.r.choice([0, 10]) if placed else g.r.choice([0, 100])


def intree_node(g, n):
    labels = n["metadata"]["labels"]
    zone = labels.get(ZONE)
    if zone:
        full = f"eu-west1-{zone}"
        labels[ZONE] = full
        for key in ("topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.cinder.csi.openstack.org/zone"):
            if g.chance(0.7):
                labels[key] = full
        if g.chance(0.2):
            labels[BETA_ZONE] = full
    if g.chance(0.2):
        labels[BETA_REGION] = "r1"


def intree_volume(g, name, claim_ref):
    zones = ["eu-west1-a", "eu-west1-b", "eu-west1-c"] + (["us-east1-a", "odd"] if g.chance(0.1) else [])
    labels = {}
    for key in (ZONE, BETA_ZONE):
        if g.chance(0.35):
            labels[key] = "__".join(some(g, zones, 1)) if g.chance(0.6) else g.r.choice(zones + [""])
    spec = {}
    if g.chance(0.5):
        expressions = [{"key": g.r.choice([ZONE, ZONE, BETA_ZONE, "disk", BETA_REGION, REGION]), "operator": "In", "values": some(g, zones, 1)} for _ in range(g.r.choice([1, 1, 2]))]
        for e in expressions:
            if e["key"] in (REGION, BETA_REGION):
                e["values"] = ["r1"]
            if e["key"] == "disk":
                e["values"] = ["ssd"]
            if g.chance(0.05):
                e.update({"operator": "Exists"})
                e.pop("values")
        terms = [{"matchExpressions": expressions}] + ([{}] if g.chance(0.1) else [])
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}} if g.chance(0.95) else {"required": {"nodeSelectorTerms": []}}
    source = disk(g)
    while "rbd" in source or "iscsi" in source:
        source = disk(g)
    if "azureFile" in source:
        source = {"azureFile": {"secretName": "s", "shareName": "x", "secretNamespace": "default"}}
    return volume(name, phase="Bound", labels=labels, storageClassName="wffc", claimRef=claim_ref, **source, **spec)


def intree_extra(g):
    out = [storage_class("wffc", g.r.choice(list(IN_TREE)))]
    for ns in NAMESPACES:
        for k in range(6):
            if g.chance(0.15):
                out.append(claim(ns, f"i{k}", storageClassName="wffc"))
                continue
            out.append(intree_volume(g, f"pv-{ns}-{k}", reference(ns, f"i{k}")))
            out.append(claim(ns, f"i{k}", volume=f"pv-{ns}-{k}", storageClassName="wffc"))
    return out


def intree_whole(g, case):
    csi_nodes(g, case, list(IN_TREE.values()), limits=(0, 1, 2, 3, 5), annotations=lambda g: {MIGRATED: ",".join(some(g, list(IN_TREE), 0))} if g.chance(0.8) else {"other": "x"})


def intree_config(g):
    # Zone labels of volumes also speak to VolumeZone, which then hides what the others say.
    if g.chance(0.4):
        return plain_config(plugins={"multiPoint": {"disabled": [{"name": "VolumeZone"}]}})
    return sometimes_without(g, "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding")
