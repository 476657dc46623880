"""The further families of scheduling cases: one feature each.

A family is a Touch: the base features its nodes and pods start from, and what it then does to each node, to each pod, and to the
cluster as a whole. `mixed2` and `wide` put several touches on the same cluster.
"""
from gen import MI
from relations import (defaultspread_config, defaultspread_extra, defaultspread_pod, labelkeys_pod, nsselector_extra, nsselector_pod, nsselector_whole,
                       terminating_pod, topology_node, topology_pod)
from resources import podlevel_node, podlevel_pod, quantities_node, quantities_pod, resized_pod
from touches import HARD, HOST, PREFERRED, REQUIRED, SOFT, ZONE, Touch, add_terms, cluster, containers, namespaces, some


# -- taints and tolerations -------------------------------------------------
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def tolerations_node(g, n):
    taints = []
    for _ in range(g.r.choice([0, 1, 1, 2, 4])):
        t = {"key": g.r.choice(["dedicated", "spot", "level"]), "effect": g.r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute", "PreferNoSchedule", "Odd", ""])}
        if g.chance(0.8):
            t["value"] = g.r.choice(["", "a", "b", "5", "10", "007", "-3"])
        if g.chance(0.1):
            t["timeAdded"] = "2026-01-01T00:00:00Z"
        taints.append(t)
    if taints and g.chance(0.2):
        taints.append(dict(taints[0]))
    n["spec"].pop("unschedulable", None)
    if g.chance(0.25):
        n["spec"]["unschedulable"] = True
    if g.chance(0.7 if n["spec"].get("unschedulable") else 0.05):
        taints.insert(g.r.randint(0, len(taints)), {"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    if taints:
        n["spec"]["taints"] = taints


def tolerations_pod(g, p, placed):
    tolerations = []
    for _ in range(g.r.choice([0, 1, 2, 3, 4])):
        t = {}
        op = g.r.choice(["absent", "", "Equal", "Equal", "Exists", "Exists", "Lt", "Gt", "Odd", "equal"])
        if op != "absent":
            t["operator"] = op
        if g.chance(0.85):
            t["key"] = g.r.choice(["dedicated", "spot", "level", "level", UNSCHEDULABLE, ""])
        if g.chance(0.25 if op == "Exists" else 0.85):
            t["value"] = g.r.choice(["", "a", "b", "5", "10", "x"])
        if g.chance(0.6):
            t["effect"] = g.r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute", "", "Odd"])
        if g.chance(0.2):
            t["tolerationSeconds"] = g.r.choice([0, -1, 300])
        tolerations.append(t)
    if tolerations:
        p["spec"]["tolerations"] = tolerations


# -- node selectors ---------------------------------------------------------
def node_name(g):
    return g.r.choice(["n000", "n001", "n002", "n003", "n004", "n099", "ghost", ""] if g.chance(0.3) else ["n000", "n001", "n002"])


def field(g, odd=0.08):
    if g.chance(odd):
        return g.r.choice([{"key": "metadata.name", "operator": "Exists"}, {"key": "metadata.namespace", "operator": "In", "values": ["n000"]},
                           {"key": "metadata.name", "operator": "In", "values": ["n000", "n001"]}, {"key": "metadata.name", "operator": "In"},
                           {"key": "metadata.name", "operator": "NotIn", "values": ["n000", "n001"]}, {"key": "metadata.name", "operator": "Gt", "values": ["1"]},
                           {"key": "metadata.name", "operator": "Odd", "values": ["n001"]}, {"key": "spec.unschedulable", "operator": "NotIn", "values": ["true"]}])
    return {"key": "metadata.name", "operator": g.r.choice(["In", "In", "In", "NotIn"]), "values": [node_name(g)]}


def expression(g):
    if g.chance(0.4):
        return g.node_requirement()
    if g.chance(0.6):
        return {"key": g.r.choice(["rank", "size"]), "operator": g.r.choice(["Gt", "Lt"]),
                "values": [g.r.choice(["-1", "0", "4", "+5", "007", "9223372036854775807", "-9223372036854775808", "5"])]}
    return g.r.choice([{"key": "rank", "operator": "Gt", "values": ["x"]}, {"key": "rank", "operator": "Lt", "values": ["1", "2"]},
                       {"key": "rank", "operator": "Lt"}, {"key": "rank", "operator": "Gt", "values": ["1.5"]}, {"key": "rank", "operator": "Gt", "values": ["9223372036854775808"]},
                       {"key": "disk", "operator": "Exists", "values": ["ssd"]}, {"key": "disk", "operator": "In"}, {"key": "disk", "operator": "NotIn", "values": []},
                       {"key": "disk", "operator": "Odd", "values": ["ssd"]}, {"key": "disk", "operator": "", "values": ["ssd"]}, {"key": "bad key!", "operator": "Exists"},
                       {"key": "disk", "operator": "In", "values": ["not a value!"]}, {"key": "disk", "operator": "NotIn", "values": ["x" * 64]},
                       {"key": "", "operator": "DoesNotExist"}, {"key": "disk", "operator": "In", "values": ["", "ssd"]}, {"key": "a/b/c", "operator": "In", "values": ["a"]}])


def node_term(g, names=False):
    out = {}
    if not names and g.chance(0.06):
        return g.r.choice([{}, {"matchExpressions": []}, {"matchFields": []}, {"matchExpressions": [], "matchFields": []}])
    if names or g.chance(0.35):
        out["matchFields"] = [field(g, 0.04 if names else 0.15) for _ in range(g.r.choice([1, 1, 2]))]
    if g.chance(0.2 if names else 0.8):
        out["matchExpressions"] = [expression(g) for _ in range(g.r.choice([1, 1, 2]))]
    return out


def node_affinity(g):
    out = {}
    if g.chance(0.65):
        names = g.chance(0.4)
        out[REQUIRED] = {"nodeSelectorTerms": [node_term(g, names) for _ in range(g.r.choice([0, 1, 1, 2, 3]))]}
    if g.chance(0.6):
        terms = []
        for _ in range(g.r.choice([0, 1, 2, 3])):
            t = {"weight": g.r.choice([0, 1, 10, 50, 100]), "preference": node_term(g)}
            if g.chance(0.07):
                del t["preference"]
            if g.chance(0.03):
                t["weight"] = 1000000
            if t.get("preference") and g.chance(0.7):  # mostly without what fails to parse
                t["preference"] = {"matchExpressions": [g.node_requirement()]}
            terms.append(t)
        out[PREFERRED] = terms
    return out


def nodeselector_node(g, n):
    if g.chance(0.5):
        n["metadata"]["labels"]["size"] = g.r.choice(["0", "5", "+5", "007", "-2", "1.5", "9223372036854775807", "99999999999999999999", ""])
    if g.chance(0.1):
        n["metadata"]["labels"]["disk"] = g.r.choice(["", "not a value!"])


def nodeselector_pod(g, p, placed):
    if g.chance(0.4):
        p["spec"]["nodeSelector"] = g.r.choice([{}, {"disk": "ssd"}, {"disk": "hdd"}, {"disk": ""}, {"disk": "not a value!"}, {"cpu": "true"}, {HOST: "n001"},
                                                {"absent": "x"}, {"bad key!": "x"}])
    if g.chance(0.7):
        p["spec"].setdefault("affinity", {})["nodeAffinity"] = node_affinity(g)
    if g.chance(0.05):
        p["spec"]["affinity"] = {}
    bad = {"labelSelector": g.r.choice([{"matchLabels": {"app": "not a value!"}}, {"matchExpressions": [{"key": "app", "operator": "Odd"}]}, {"matchLabels": {"bad key!": "x"}},
                                        {"matchExpressions": [{"key": "app", "operator": "In"}]}, {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]}])}
    if not placed and g.chance(0.07):
        p["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": g.r.choice([HARD, SOFT]), **bad}]
    if g.chance(0.02 if placed else 0.07):  # on a placed pod too: its node's pods are then read without it or not at all
        add_terms(g, p, g.r.choice(["podAffinity", "podAntiAffinity"]), lambda: {"topologyKey": ZONE, **bad}, 0.6, 0.6)


# -- host ports -------------------------------------------------------------
def ports(g):
    out = []
    for _ in range(g.r.choice([0, 1, 1, 2, 3])):
        p = {"containerPort": g.r.choice([80, 8080])}
        if g.chance(0.9):
            p["hostPort"] = g.r.choice([0, 8080, 8080, 8081, 9000])
        if g.chance(0.7):
            p["protocol"] = g.r.choice(["TCP", "UDP", "SCTP", "", "tcp"])
        if g.chance(0.5):
            p["hostIP"] = g.r.choice(["", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "::1", "fe80::1", "0:0:0:0:0:0:0:0", "[::]"])
        out.append(p)
    if out and g.chance(0.15):
        out.append(dict(out[0]))
    return out


def hostports_pod(g, p, placed):
    if g.chance(0.5):
        p["spec"]["initContainers"] = [{"name": f"i{k}", "image": "img", **({"restartPolicy": "Always"} if g.chance(0.5) else {})} for k in range(g.r.randint(1, 2))]
    for c in containers(p):
        if g.chance(0.6):
            c["ports"] = ports(g)
    if g.chance(0.2):
        p["spec"]["hostNetwork"] = True


# -- image names ------------------------------------------------------------
REPOSITORIES = ["app", "library/app", "registry/app", "host:5000/app", "host:5000/team/app", "docker.io/library/app"]
SUFFIXES = ["", ":1", ":latest", "@sha256:" + "ab" * 32, ":1@sha256:" + "ab" * 32, ":"]


def image(g):
    return g.r.choice(REPOSITORIES) + g.r.choice(SUFFIXES)


def imagenames_node(g, n):
    images = []
    for _ in range(g.r.choice([0, 2, 5, 12])):
        size = g.r.choice([0, 1, 22, 23, 24, 200, 999, 1000, 1001, 5000, 40000, 1 << 40]) * MI + g.r.choice([-1, 0, 0, 1])
        images.append({"names": [image(g) for _ in range(g.r.choice([0, 1, 1, 1, 2, 3]))], "sizeBytes": max(size, 0)})
    if images and g.chance(0.1):
        images[0].pop("names")
    if images and g.chance(0.1):
        images[-1].pop("sizeBytes")
    n["status"]["images"] = images


def imagenames_pod(g, p, placed):
    if placed:
        return
    many = g.chance(0.15)
    p["spec"]["containers"] = [{"name": f"c{k}", "image": image(g)} for k in range(12 if many else g.r.randint(1, 3))]
    if g.chance(0.1):
        p["spec"]["containers"][0].pop("image")
    if g.chance(0.5):
        p["spec"]["initContainers"] = [{"name": f"i{k}", "image": image(g), **({"restartPolicy": "Always"} if g.chance(0.3) else {})} for k in range(g.r.randint(1, 3))]
    if g.chance(0.4):
        p["spec"]["volumes"] = [{"name": f"v{k}", "image": {"reference": image(g)} if g.chance(0.9) else {}} for k in range(g.r.randint(1, 3))]
        if g.chance(0.3):
            p["spec"]["volumes"].append({"name": "plain", "emptyDir": {}})
    if g.chance(0.1):
        p["spec"]["ephemeralContainers"] = [{"name": "e0", "image": image(g)}]


# -- declared features ------------------------------------------------------
DECLARED = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]


def features_node(g, n):
    if g.chance(0.8):
        n["status"]["declaredFeatures"] = some(g, [*DECLARED, "ExtendWebSocketsToKubelet", "Unheard"])


def features_pod(g, p, placed):
    spec = p["spec"]
    if g.chance(0.4):
        spec["initContainers"] = [{"name": "i0", "image": "img", **({"restartPolicy": "Always"} if g.chance(0.4) else {})}]
    for c in containers(p):
        if g.chance(0.3):
            c.setdefault("restartPolicy", "Never")
            c["restartPolicyRules"] = [{"action": g.r.choice(["Restart", "RestartAllContainers"]), "exitCodes": {"operator": "In", "values": [42]}}
                                       for _ in range(g.r.randint(1, 2))]
    if g.chance(0.5):
        spec["hostNetwork"] = g.chance(0.8)
    if g.chance(0.6):
        spec["hostUsers"] = g.chance(0.3)


# -- next to nothing --------------------------------------------------------
def empty(g):
    count = g.r.choice([0, 0, 1, 1, 2])
    features = g.r.choice([(), ("affinity",), ("spread",), ("ports", "images", "init")])
    objects = namespaces() if g.chance(0.5) else []
    for i in range(count):
        n = g.node(i, features)
        if g.chance(0.3):
            n["metadata"].pop("labels")
        if g.chance(0.3):
            n.pop("spec")
        if g.chance(0.2):
            n.pop("status")
        objects.append(n)
    if g.chance(0.4):  # with no node at all: pods of ghosts
        objects += [g.pod(f"placed-{k}", features, node=f"n{g.r.randint(0, 2):03d}") for k in range(g.r.randint(1, 3))]
    pods = [g.pod(f"pending-{k}", features) for k in range(g.r.choice([0, 1, 2, 3]))]
    for p in pods:
        kind = g.r.choice(["full", "full", "bare", "empty", "nameless"])
        if kind == "bare":
            p["spec"] = {"containers": [{"name": "c0"}]}
        if kind == "empty":
            p["spec"]["containers"] = []
        if kind == "nameless":
            p["spec"].pop("containers")
            p.pop("status")
    return {"objects": objects, "pods": pods}


# -- resource claims (a start; not in turn) ---------------------------------
# The oracle does not wait for its claim cache: under load it may not find a claim that is there, so a verdict need not come out
# the same twice. Wait for that before using them.
def claims_pod(g, p, placed):
    p["metadata"]["namespace"] = "default"
    if placed or g.chance(0.2):
        return
    claims, statuses = [], []
    for k in range(g.r.randint(1, 2)):
        if g.chance(0.7):
            claims.append({"name": f"r{k}", "resourceClaimName": g.r.choice(["free", "taken", "classless", "missing"])})
            continue
        claims.append({"name": f"r{k}", "resourceClaimTemplateName": "template"})
        if g.chance(0.5):  # what the claim controller made of the template, if anything
            statuses.append({"name": f"r{k}", **({"resourceClaimName": "generated"} if g.chance(0.5) else {})})
    p["spec"]["resourceClaims"] = claims
    if statuses:
        p["status"]["resourceClaimStatuses"] = statuses


def claims_extra(g):
    meta = lambda name: {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    asks = lambda cls: {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": cls, "allocationMode": "ExactCount", "count": g.r.randint(1, 2)}}]}}
    api = {"apiVersion": "resource.k8s.io/v1"}
    out = [{**api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
           {**api, "kind": "ResourceClaim", "metadata": meta("free"), "spec": asks("gpu")},
           {**api, "kind": "ResourceClaim", "metadata": meta("generated"), "spec": asks("gpu")},
           {**api, "kind": "ResourceClaim", "metadata": meta("classless"), "spec": asks("unheard")},
           {**api, "kind": "ResourceClaim", "metadata": meta("taken"), "spec": asks("gpu"), "status": {
               "allocation": {"devices": {"results": [{"request": "d", "driver": "example.com", "pool": "n000", "device": "d0"}]},
                              "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n000"]}]}]}},
               "reservedFor": [{"resource": "pods", "name": "other", "uid": "other"}]}}]
    for i in range(g.r.randint(0, 4)):
        node = f"n{i:03d}"
        out.append({**api, "kind": "ResourceSlice", "metadata": {"name": f"slice-{node}"}, "spec": {
            "driver": "example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{k}"} for k in range(g.r.randint(1, 3))]}})
    return out


def claims_whole(g, case):
    """The generated claim belongs to the first pod, mostly."""
    claim = next(o for o in case["objects"] if o["metadata"]["name"] == "generated")
    if g.chance(0.8):
        meta = case["pods"][0]["metadata"]
        claim["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}]


# -- the families -----------------------------------------------------------
TOUCHES = {
    "podlevel": Touch(node=podlevel_node, pod=podlevel_pod, roomy=0),
    "resized": Touch(node=podlevel_node, pod=resized_pod, share=(1.5, 3), roomy=0),
    "labelkeys": Touch(base=("affinity",), pod=labelkeys_pod, share=(1.5, 3)),
    "defaultspread": Touch(base=("namespaces", "taints"), pod=defaultspread_pod, extra=defaultspread_extra, config=defaultspread_config, share=(1.5, 3)),
    "terminating": Touch(base=("affinity", "spread"), pod=terminating_pod, share=(1.5, 3)),
    "quantities": Touch(base=("init",), node=quantities_node, pod=quantities_pod, roomy=0),
    "nsselector": Touch(base=("namespaces",), pod=nsselector_pod, extra=nsselector_extra, whole=nsselector_whole, share=(1.5, 3)),
    "tolerations": Touch(node=tolerations_node, pod=tolerations_pod, share=(0.5, 1.5)),
    "nodeselector": Touch(base=("namespaces",), node=nodeselector_node, pod=nodeselector_pod, share=(0.5, 1.5)),
    "hostports": Touch(pod=hostports_pod, nodes=(1, 2, 4, 7), share=(0.5, 1.5)),
    "imagenames": Touch(node=imagenames_node, pod=imagenames_pod, share=(0.5,)),
    "features": Touch(node=features_node, pod=features_pod, share=(0.5, 1.5)),
    "topology": Touch(base=("namespaces", "taints"), node=topology_node, pod=topology_pod, nodes=(1, 4, 8, 16), share=(1.5, 3)),
}


def mixed2(g, shape=None):
    return cluster(g, [t for t in TOUCHES.values() if g.chance(0.25)] or [TOUCHES["podlevel"]], shape or Touch())


def wide(g):
    return mixed2(g, Touch(nodes=(100, 101, 125, 150), share=(0.2, 0.5), pending=(1, 2)))


def leaving(g):
    """Preemption where some victims are on their way out already, and some preemptors have preempted before."""
    case = g.case("", g.r.choice(["preemption", "preemption-affinity", "nominated"]))
    del case["name"]
    placed = [o for o in case["objects"] if o["kind"] == "Pod" and o["spec"].get("nodeName")]
    for p in placed:
        if g.chance(0.35):
            p["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
            if g.chance(0.6):
                p["status"]["conditions"] = [{"type": "DisruptionTarget", "status": g.r.choice(["True", "True", "False"]),
                                              "reason": g.r.choice(["PreemptionByScheduler", "PreemptionByScheduler", "EvictionByEvictionAPI"])}]
    for p in case["pods"][:1]:  # later ones may have lost their nomination to an earlier preemptor
        if placed and g.chance(0.4):
            p["status"]["nominatedNodeName"] = g.r.choice(placed)["spec"]["nodeName"]
    return case


FAMILIES = {
    "leaving": leaving,
    **{name: lambda g, t=touch: cluster(g, [t]) for name, touch in TOUCHES.items()},
    "claims": lambda g: cluster(g, [Touch(pod=claims_pod, extra=claims_extra, whole=claims_whole)]),
    "empty": empty,
    "mixed2": mixed2,
    "wide": wide,
}
