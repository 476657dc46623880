"""How pods relate to each other: label keys, default spreading, pods on their way out, namespaces, topology."""
from gen import APPS, NAMESPACES, TIERS
from touches import HARD, HOST, REGION, SOFT, ZONE, add_terms, plain_config, requirement, selector, some, spread, term, tolerate


# -- matchLabelKeys ---------------------------------------------------------
def keyed_term(g, p):
    t = term(g, selector(g))
    for field, op in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        if not g.chance(0.5):
            continue
        t[field] = some(g, ["tier", "rev", "absent"], 1)
        if g.chance(0.6) and "labelSelector" in t:  # as the API server stores it
            merged = [{"key": k, "operator": op, "values": [p["metadata"]["labels"][k]]} for k in t[field] if k in p["metadata"]["labels"]]
            t["labelSelector"] = {**t["labelSelector"], "matchExpressions": t["labelSelector"].get("matchExpressions", []) + merged}
    return t


def labelkeys_pod(g, p, placed):
    labels = p["metadata"].setdefault("labels", {})
    if g.chance(0.7):
        labels["rev"] = g.r.choice(["1", "2", ""])
    for kind in ("podAffinity", "podAntiAffinity"):
        if g.chance(0.5):
            add_terms(g, p, kind, lambda: keyed_term(g, p), 0.35 if placed else 0.5)
    if g.chance(0.8):
        p["spec"]["topologySpreadConstraints"] = [spread(g, keys=True) for _ in range(g.r.randint(1, 2))]


# -- default spreading ------------------------------------------------------
def defaultspread_config(g):
    kind = g.r.choice(["absent", "System", "List", "List", "List"])
    if kind == "absent":
        return None
    args = {"defaultingType": kind}
    if kind == "List":
        pairs = g.r.sample([(k, w) for k in (HOST, ZONE, "disk") for w in (HARD, SOFT)], g.r.randint(0, 3))
        args["defaultConstraints"] = [{"maxSkew": g.r.randint(1, 3), "topologyKey": k, "whenUnsatisfiable": w,
                                       **({"minDomains": g.r.randint(1, 4)} if w == HARD and g.chance(0.3) else {}),
                                       **({"nodeTaintsPolicy": "Honor"} if g.chance(0.2) else {}),
                                       **({"nodeAffinityPolicy": "Ignore"} if g.chance(0.2) else {}),
                                       **({"matchLabelKeys": ["tier"]} if g.chance(0.2) else {})} for k, w in pairs]
    return plain_config([{"name": "PodTopologySpread", "args": args}])


OWNERS = [("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"),
          ("batch/v1", "Job"), ("v1", "ReplicaSet"), ("apps/v1beta1", "ReplicaSet"), ("a/b/c", "ReplicaSet")]


def defaultspread_pod(g, p, placed):
    refs = []
    for _ in range(g.r.choice([0, 1, 1, 1, 2])):
        version, kind = g.r.choice(OWNERS[:3] if g.chance(0.8) else OWNERS)
        name = g.r.choice(["own-0", "own-1", "own-2", "gone"])
        ref = {"apiVersion": version, "kind": kind, "name": name, "uid": f"{kind}-{name}".lower()}
        if g.chance(0.85):
            ref["controller"] = g.chance(0.9)
        refs.append(ref)
    if refs:
        p["metadata"]["ownerReferences"] = refs
    if g.chance(0.15):
        p["metadata"].pop("labels")
    if g.chance(0.15):  # its own constraints: no defaults
        p["spec"]["topologySpreadConstraints"] = g.r.choice([[], [spread(g)]])
    tolerate(g, p)


def defaultspread_extra(g):
    out = []
    labels = lambda: g.r.choice([{"app": g.r.choice(APPS)}, {"tier": g.r.choice(TIERS)}, {"app": g.r.choice(APPS), "tier": g.r.choice(TIERS)}])
    for ns in NAMESPACES:
        for k in range(g.r.randint(0, 3)):
            spec = g.r.choice([{}, {"selector": {}}, {"selector": labels()}, {"selector": labels()}, {"selector": labels()}])
            out.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"svc-{k}", "namespace": ns}, "spec": spec})
        for version, kind in OWNERS[:3]:
            for k in range(3):
                if g.chance(0.2):
                    continue
                sel = g.r.choice([labels(), labels(), {}]) if kind == "ReplicationController" else selector(g)
                out.append({"apiVersion": version, "kind": kind, "metadata": {"name": f"own-{k}", "namespace": ns, "uid": f"{kind}-{ns}-{k}".lower()},
                            "spec": {"selector": sel} if sel is not None else {}})
    return out


# -- terminating and finished pods ------------------------------------------
def terminating_pod(g, p, placed):
    if not placed:
        return
    if g.chance(0.4):
        p["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
        if g.chance(0.7):
            p["metadata"]["deletionGracePeriodSeconds"] = g.r.choice([0, 1, 30])
    p["status"]["phase"] = g.r.choice(["Pending", "Running", "Running", "Running", "Succeeded", "Failed", "Unknown"])


# -- namespace selectors ----------------------------------------------------
def nsselector_term(g):
    t = term(g, selector(g, ("app", "tier")) or {"matchLabels": {"app": g.r.choice(APPS)}})
    if g.chance(0.75):
        t["namespaceSelector"] = g.r.choice([
            {}, {"matchLabels": {"team": g.r.choice(["a", "b", "t", "zzz"])}},
            *[{"matchExpressions": [requirement(g, g.r.choice(["team", "env"])) for _ in range(n)]} for n in (1, 1, 2)],
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
            {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
            {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}])
    if g.chance(0.4):
        t["namespaces"] = g.r.choice([[], some(g, NAMESPACES, 1), ["nowhere"], ["", "team-a"], ["bare"], ["lost", "default"]])
    return t


def nsselector_pod(g, p, placed):
    p["metadata"]["namespace"] = g.r.choice([*NAMESPACES, "bare", "lost"])  # bare: no labels; lost: no Namespace object
    for kind in ("podAffinity", "podAntiAffinity"):
        if g.chance(0.6):
            add_terms(g, p, kind, lambda: nsselector_term(g), 0.25 if placed else 0.5)


def nsselector_extra(g):
    out = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bare"}}]
    if g.chance(0.5):
        out.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "idle", "labels": {"team": "a", "env": "prod"}}})
    return out


def nsselector_whole(g, case):
    """Some Namespace objects go, some get a second label."""
    if g.chance(0.3):
        gone = g.r.choice(NAMESPACES)
        case["objects"] = [o for o in case["objects"] if o["kind"] != "Namespace" or o["metadata"]["name"] != gone]
    for o in case["objects"]:
        if o["kind"] == "Namespace" and "labels" in o["metadata"] and g.chance(0.3):
            o["metadata"]["labels"]["env"] = g.r.choice(["prod", "dev"])


# -- topology ---------------------------------------------------------------
KEYS = [HOST, ZONE, REGION, "rack", "disk"]


def topology_node(g, n):
    labels = n["metadata"]["labels"]
    kind = g.r.choice(["own", "own", "own", "none", "shared", "empty", "other"])
    if kind == "none":
        labels.pop(HOST)
    elif kind != "own":
        labels[HOST] = {"shared": "n000", "empty": "", "other": n["metadata"]["name"] + ".example"}[kind]
    if g.chance(0.25):
        labels.pop(ZONE, None)
    elif g.chance(0.2):
        labels[ZONE] = ""
    labels[REGION] = g.r.choice(["r1", "r2"])
    if g.chance(0.3):
        labels.pop(REGION)
    if g.chance(0.8):
        labels["rack"] = str(g.r.randint(0, 9))
    if g.chance(0.05):
        n["metadata"].pop("labels")


def topology_pod(g, p, placed):
    spec, meta = p["spec"], p["metadata"]
    tolerate(g, p, 0.4)
    if g.chance(0.8):  # few groups, so that counts are seldom zero
        meta["namespace"], meta["labels"] = "default", {"app": g.r.choice(["web", "web", "db"])}
    if placed and g.chance(0.12):
        spec["nodeName"] = g.r.choice(["ghost-1", "ghost-2"])
    if g.chance(0.1):
        meta["namespace"] = "lost"
    for kind in ("podAffinity", "podAntiAffinity"):
        if g.chance(0.3):
            add_terms(g, p, kind, lambda: {**term(g, {"matchLabels": {"app": g.r.choice(APPS)}}), "topologyKey": g.r.choice([*KEYS, ""])}, 0.2 if placed else 0.4)
    if placed or not g.chance(0.85):
        return
    cs = []
    for _ in range(g.r.randint(1, 3)):
        c = spread(g, topology=KEYS if g.chance(0.5) else [ZONE, "rack"])
        if g.chance(0.75):
            c["labelSelector"] = {"matchLabels": {"app": meta.get("labels", {}).get("app", "web")}}
        if c["whenUnsatisfiable"] == HARD and g.chance(0.5):
            c["minDomains"] = g.r.choice([1, 3, 5, 20])
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if g.chance(0.4):
                c[policy] = g.r.choice(["Honor", "Ignore"])
        cs.append(c)
    spec["topologySpreadConstraints"] = cs
    if g.chance(0.3):
        spec["nodeSelector"] = {"disk": "ssd"}
