"""Families of scheduling cases whose subject is the configuration: which plugins run where, and their arguments."""
from gen import NAMESPACES, TIERS
from touches import HARD, HOST, PREFERRED, REQUIRED, SOFT, ZONE, Touch, cluster, plain_config

POINTS = {
    "preEnqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
    "queueSort": ["PrioritySort"],
    "preFilter": ["NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
                  "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"],
    "filter": ["NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions",
               "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"],
    "postFilter": ["DynamicResources", "DefaultPreemption"],
    "preScore": ["TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation"],
    "score": ["TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
              "NodeResourcesBalancedAllocation", "ImageLocality"],
    "reserve": ["VolumeBinding", "DynamicResources"],
    "preBind": ["VolumeBinding", "DynamicResources"],
    "bind": ["DefaultBinder"],
}
ALL = sorted({p for names in POINTS.values() for p in names})
CORE = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]


# -- which plugins run, and in which order ----------------------------------
def entry(g, name, weigh=True):
    out = {"name": name}
    if weigh and g.chance(0.6):
        out["weight"] = g.r.choice([0, 1, 2, 3, 10, 100, 1000, 100000])
    return out


def sample(g, pool, most):
    return g.r.sample(pool, g.r.randint(1, min(most, len(pool))))


def enable_some(g, plugins):
    """Enabled again at a point: to the front, weight anew."""
    point = g.r.choice(["score", "score", "filter", "preFilter", "preScore", "postFilter"])
    plugins.setdefault(point, {})["enabled"] = [entry(g, n) for n in sample(g, POINTS[point], 4)]


def disable_some(g, plugins):
    """Disabled at one point only; at preFilter or preScore the later point may miss its state."""
    point = g.r.choice(["score", "score", "filter", "preFilter", "preScore", "postFilter"])
    plugins.setdefault(point, {})["disabled"] = [{"name": n} for n in sample(g, POINTS[point], 3)]


def move_some(g, plugins):
    """Disabled and enabled: to the end."""
    point = g.r.choice(["score", "filter", "preFilter", "preScore", "postFilter"])
    names = sample(g, POINTS[point], 3)
    plugins[point] = {"disabled": [{"name": n} for n in names], "enabled": [entry(g, n) for n in names]}


def replace_all(g, plugins):
    """`*` disabled at a point, a few enabled or none."""
    point = g.r.choice(["score", "score", "filter", "preFilter", "preScore", "postFilter", "reserve", "preBind"])
    plugins[point] = {"disabled": [{"name": "*"}]}
    if g.chance(0.6):
        plugins[point]["enabled"] = [entry(g, n) for n in sample(g, POINTS[point], 4)]


def multi_some(g, plugins):
    plugins["multiPoint"] = {}
    if g.chance(0.7):
        plugins["multiPoint"]["disabled"] = [{"name": n} for n in sample(g, [n for n in ALL if n not in ("PrioritySort", "DefaultBinder")], 4)]
    if g.chance(0.6):
        plugins["multiPoint"]["enabled"] = [entry(g, n) for n in sample(g, ALL, 4)]


def multi_all(g, plugins):
    chosen = sample(g, [n for n in ALL if n not in ("PrioritySort", "DefaultBinder")], 12)
    enabled = CORE + [entry(g, n) for n in chosen]
    g.r.shuffle(enabled)
    plugins["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": enabled}


def points_only(g, plugins):
    """No multiPoint at all: every point spelt out."""
    plugins["multiPoint"] = {"disabled": [{"name": "*"}]}
    chosen = set(sample(g, ALL, 14)) | {"PrioritySort", "DefaultBinder"}
    for point, names in POINTS.items():
        enabled = [entry(g, n) for n in names if n in chosen]
        if enabled:
            plugins[point] = {"enabled": enabled}


def both_all(g, plugins):
    multi_all(g, plugins)
    g.r.choice([enable_some, move_some, replace_all])(g, plugins)


def broken(g, plugins):
    """What no framework can be made of (and a little that only looks so). No negative weights: the oracle cannot choose among negative totals."""
    name = g.r.choice(POINTS["score"])
    plugins.update(g.r.choice([
        {"score": {"enabled": [{"name": name}, {"name": name}]}},
        {"multiPoint": {"enabled": [{"name": "ImageLocality"}, {"name": "ImageLocality"}]}},
        {"score": {"enabled": [{"name": "Unheard"}]}},
        {"multiPoint": {"enabled": [{"name": "Unheard"}]}},
        {"filter": {"enabled": [{"name": "Unheard"}]}},
        {"score": {"enabled": [{"name": "NodePorts"}]}},
        {"filter": {"enabled": [{"name": "ImageLocality"}]}},
        {"bind": {"enabled": [{"name": "NodePorts"}]}},
        {"queueSort": {"disabled": [{"name": "*"}]}},
        {"queueSort": {"disabled": [{"name": "PrioritySort"}]}},
        {"bind": {"disabled": [{"name": "*"}]}},
        {"multiPoint": {"disabled": [{"name": "*"}]}},
        {"multiPoint": {"disabled": [{"name": "DefaultBinder"}]}},
        {"multiPoint": {"disabled": [{"name": "PrioritySort"}]}},
        {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
        {"preFilter": {"enabled": [{"name": "NodeName"}]}},
        {"placementScore": {"enabled": [{"name": "ImageLocality"}]}},
        {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        {"score": {"enabled": [{"name": ""}]}},
        {"score": {"enabled": [{"name": "ImageLocality", "weight": 2147483647}, {"name": "NodeAffinity", "weight": 2147483647}]}},  # large, but no overflow
        {"unheard": {"enabled": [{"name": "ImageLocality"}]}},  # decoding is strict
        {"score": {"enabled": [{"name": "ImageLocality", "weight": "5"}]}},
        {"score": {"enabled": [{"name": "ImageLocality", "weight": 3000000000}]}},
        {"score": {"disabled": [{"name": "Unheard"}]}},
        {"multiPoint": {"disabled": [{"name": "Unheard"}]}},
    ]))


def orders_config(g):
    plugins = {}
    kinds = [enable_some, disable_some, move_some, replace_all, multi_some, multi_all, points_only, both_all]
    for _ in range(g.r.choice([1, 1, 2])):
        g.r.choice(kinds)(g, plugins)
    if g.chance(0.15):
        broken(g, plugins)
    cfg = plain_config(plugins=plugins)
    profile = cfg["profiles"][0]
    if g.chance(0.2):
        cfg["percentageOfNodesToScore"] = g.r.choice([0, 1, 50, 100])
    if g.chance(0.2):
        profile["percentageOfNodesToScore"] = g.r.choice([0, 5, 100])
    if g.chance(0.1):
        cfg["parallelism"] = g.r.choice([1, 16])
    if g.chance(0.15):  # the first profile counts
        cfg["profiles"].insert(g.r.randint(0, 1), {"schedulerName": "other", "plugins": {"score": {"disabled": [{"name": "*"}]}}})
    elif g.chance(0.05):  # two profiles need their names
        del profile["schedulerName"]
    if g.chance(0.05):
        profile["pluginConfig"] = [{"name": "Unheard", "args": {"x": 1}}]
    if g.chance(0.04):
        return g.r.choice([{**cfg, "kind": "Unheard"}, {**cfg, "apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, {**cfg, "profiles": []}, {**cfg, "unheard": 1}])
    return cfg


# -- arguments --------------------------------------------------------------
RESOURCES = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "pods", "storage", "unheard", "kubernetes.io/foo"]


def resources(g, weights, most=4):
    out = []
    for name in g.r.sample(RESOURCES if g.chance(0.5) else RESOURCES[:5], g.r.randint(1, most)):
        out.append({"name": name})
        w = g.r.choice(weights)
        if w is not None:
            out[-1]["weight"] = w
    return out


def shape(g):
    points = sorted(g.r.sample([0, 1, 10, 25, 33, 50, 66, 75, 90, 99, 100], g.r.randint(1, 5)))
    return [{"utilization": u, "score": g.r.randint(0, 10)} for u in points]


def fit(g):
    out = {}
    if g.chance(0.85):
        kind = g.r.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
        out["scoringStrategy"] = {"type": kind}
        if g.chance(0.85):
            out["scoringStrategy"]["resources"] = resources(g, [1, 1, 2, 7, 50, 100, 0, None])
        if kind == "RequestedToCapacityRatio":
            out["scoringStrategy"]["requestedToCapacityRatio"] = {"shape": shape(g)}
    if g.chance(0.25):
        out["ignoredResources"] = g.r.choice([[], ["example.com/gpu"], ["cpu"], ["hugepages-2Mi"], ["example.com/other", "example.com/gpu"]])
    if g.chance(0.25):
        out["ignoredResourceGroups"] = g.r.choice([[], ["example.com"], ["other.com"], ["kubernetes.io"], ["example"]])
    return out


def fit_bad(g):
    point = lambda *p: {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": [{"utilization": u, "score": s} for u, s in p]}}
    strategy = lambda s: {"scoringStrategy": s}
    return g.r.choice([
        strategy({"type": ""}), strategy({"type": "Unheard"}), strategy({"resources": [{"name": "cpu", "weight": 1}]}), strategy({"type": "RequestedToCapacityRatio"}),
        strategy(point()), strategy(point((0, 0), (0, 1))), strategy(point((50, 0), (10, 1))), strategy(point((0, 11))), strategy(point((101, 1))),
        strategy(point((-1, 1))), strategy(point((0, -1))), strategy({**point((0, 0), (100, 10)), "type": "LeastAllocated"}),
        strategy({"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}), strategy({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": -1}]}),
        {"ignoredResources": ["bad name!"]}, {"ignoredResourceGroups": ["a/b"]}, {"ignoredResourceGroups": ["bad name!"]}, {"unheard": 1}, {"ignoredResources": "cpu"},
        strategy({"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "cpu", "weight": 1}]}),  # twice is allowed here
    ])


def balanced(g):
    return {"resources": resources(g, [1, 1, 0, None])} if g.chance(0.9) else {}


def balanced_bad(g):
    return {"resources": g.r.choice([[{"name": "cpu", "weight": 2}], [{"name": "cpu", "weight": -1}], [{"name": "cpu", "weight": 1}, {"name": "cpu", "weight": 1}]])}


def interpod(g):
    out = {}
    if g.chance(0.7):
        out["hardPodAffinityWeight"] = g.r.choice([0, 1, 33, 100])
    if g.chance(0.6):
        out["ignorePreferredTermsOfExistingPods"] = g.chance(0.6)
    return out


def interpod_bad(g):
    return {"hardPodAffinityWeight": g.r.choice([-1, 101, "5", 1.5])}


def affinity(g):
    added = {}
    names = lambda: {"matchFields": [{"key": "metadata.name", "operator": g.r.choice(["In", "NotIn", "NotIn"]), "values": [f"n{g.r.randint(0, 4):03d}"]}]}
    if g.chance(0.5):
        added[REQUIRED] = {"nodeSelectorTerms": [g.r.choice([names, g.node_term, lambda: {"matchExpressions": [g.node_requirement()]}])() for _ in range(g.r.randint(1, 3))]}
    if g.chance(0.7):
        added[PREFERRED] = [{"weight": g.r.choice([1, 9, 100]), "preference": g.r.choice([names(), {"matchExpressions": [g.node_requirement()]}])} for _ in range(g.r.randint(1, 3))]
    return {"addedAffinity": added} if g.chance(0.9) else {}


def affinity_bad(g):
    bad = g.r.choice([{"matchExpressions": [{"key": "disk", "operator": "Odd"}]}, {"matchExpressions": [{"key": "bad key!", "operator": "Exists"}]},
                      {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}])
    return {"addedAffinity": g.r.choice([{REQUIRED: {"nodeSelectorTerms": [bad]}}, {PREFERRED: [{"weight": 1, "preference": bad}]},
                                         {REQUIRED: {"nodeSelectorTerms": []}}, {REQUIRED: {"nodeSelectorTerms": [{}]}}, {PREFERRED: [{"weight": 0, "preference": bad}]}])}


def defaults(g):
    if g.chance(0.3):
        return g.r.choice([{}, {"defaultingType": "System"}, {"defaultingType": "List"}])
    pairs = g.r.sample([(k, w) for k in (HOST, ZONE, "disk") for w in (HARD, SOFT)], g.r.randint(1, 3))
    return {"defaultingType": "List", "defaultConstraints": [{"maxSkew": g.r.randint(1, 3), "topologyKey": k, "whenUnsatisfiable": w} for k, w in pairs]}


def defaults_bad(g):
    c = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": SOFT}
    as_list = lambda *cs: {"defaultingType": "List", "defaultConstraints": list(cs)}
    return g.r.choice([{"defaultingType": "Unheard"}, {"defaultingType": "System", "defaultConstraints": [c]}, {"defaultConstraints": [c]}, as_list({**c, "maxSkew": 0}), as_list({**c, "maxSkew": -1}),
                       as_list({**c, "topologyKey": ""}), as_list({**c, "topologyKey": "bad key!"}), as_list({**c, "whenUnsatisfiable": "Odd"}), as_list({**c, "whenUnsatisfiable": ""}),
                       as_list({**c, "labelSelector": {"matchLabels": {"a": "b"}}}), as_list(c, {**c, "maxSkew": 2}), as_list({**c, "minDomains": 0}),
                       as_list({**c, "nodeTaintsPolicy": "Odd"}), as_list({**c, "labelSelector": {}}), as_list({**c, "matchLabelKeys": ["bad key!"]})])


def preemption(g):
    return g.r.choice([{}, {"minCandidateNodesPercentage": 0}, {"minCandidateNodesAbsolute": 0}, {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 1}])


def preemption_bad(g):
    return g.r.choice([{"minCandidateNodesPercentage": 101}, {"minCandidateNodesPercentage": -1}, {"minCandidateNodesAbsolute": -1},
                       {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}])


def binding(g):
    return g.r.choice([{}, {"bindTimeoutSeconds": 0}, {"bindTimeoutSeconds": 30}])


def binding_bad(g):
    return g.r.choice([{"bindTimeoutSeconds": -1}, {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}, {"bindTimeoutSeconds": "x"}])


def devices(g):
    return g.r.choice([{}, {"filterTimeout": "5s"}, {"filterTimeout": "0s"}, {"bindingTimeout": "1s"}])


def devices_bad(g):
    return g.r.choice([{"filterTimeout": "-1s"}, {"bindingTimeout": "0s"}, {"bindingTimeout": "999ms"}, {"filterTimeout": "soon"}])


ARGS = {
    "NodeResourcesFit": (fit, fit_bad), "NodeResourcesBalancedAllocation": (balanced, balanced_bad), "InterPodAffinity": (interpod, interpod_bad),
    "NodeAffinity": (affinity, affinity_bad), "PodTopologySpread": (defaults, defaults_bad), "DefaultPreemption": (preemption, preemption_bad),
    "VolumeBinding": (binding, binding_bad), "DynamicResources": (devices, devices_bad),
}
LIKELY = {"NodeResourcesFit": 0.6, "NodeResourcesBalancedAllocation": 0.4, "InterPodAffinity": 0.4, "NodeAffinity": 0.4, "PodTopologySpread": 0.4}


def args_config(g):
    config = []
    wrong = g.r.choice(sorted(ARGS)) if g.chance(0.2) else None
    for name, (good, bad) in ARGS.items():
        if name != wrong and not g.chance(LIKELY.get(name, 0.1)):
            continue
        args = (bad if name == wrong else good)(g)
        if g.chance(0.5):
            args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args", **args}
        config.append({"name": name, "args": args})
    g.r.shuffle(config)
    if g.chance(0.04):
        config.append(g.r.choice([{"name": "InterPodAffinity", "args": {}}, {"name": "TaintToleration", "args": {"x": 1}}, {"name": "Unheard"}, {"name": "NodeResourcesFit"},
                                  {"name": "NodeAffinity", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs"}},
                                  {"name": "NodeName", "args": {"kind": "Unheard", "apiVersion": "v1"}}]))
    return plain_config(config)


# A cluster in which every plugin has something to say.
BUSY = ("extended", "hugepages", "affinity", "nodeaffinity", "images", "taints", "spread", "ports", "owners")


def args_node(g, n):
    alloc = n["status"]["allocatable"]
    for name, pool in (("example.com/gpu", ["4", "8"]), ("hugepages-2Mi", ["512Mi", "2Gi"]), ("kubernetes.io/foo", ["5"]), ("storage", ["50Gi"])):
        if g.chance(0.7):
            alloc[name] = g.r.choice(pool)


def args_pod(g, p, placed):
    """Fewer ways to be rejected than the base features give: the arguments are mostly about scores."""
    spec = p["spec"]
    for name in ("topologySpreadConstraints", "nodeSelector"):
        if g.chance(0.7):
            spec.pop(name, None)
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        if g.chance(0.75):
            spec.get("affinity", {}).get(kind, {}).pop(REQUIRED, None)
    spec["tolerations"] = [{"operator": "Exists", "effect": e} for e in ("NoSchedule", "NoExecute")]
    if not placed and g.chance(0.2):
        spec["containers"][0].setdefault("resources", {}).setdefault("requests", {})[g.r.choice(["kubernetes.io/foo", "storage", "pods"])] = "1"


def services(g):
    """Something for the default constraints to select by."""
    return [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": ns}, "spec": {"selector": {"tier": g.r.choice(TIERS)}}} for ns in NAMESPACES]


def orders_pod(g, p, placed):
    if g.chance(0.5):
        args_pod(g, p, placed)


BUSY_NODES = (2, 5, 8)
FAMILIES = {
    "args": lambda g: cluster(g, [Touch(base=BUSY, node=args_node, extra=services, pod=args_pod, config=args_config, nodes=BUSY_NODES, share=(0.5, 1.5), pending=(1, 2, 4), roomy=0.3)]),
    "orders": lambda g: cluster(g, [Touch(base=BUSY, node=args_node, extra=services, pod=orders_pod, config=orders_config, nodes=BUSY_NODES, share=(0.5, 1.5), pending=(1, 2, 4), roomy=0.3)]),
}
