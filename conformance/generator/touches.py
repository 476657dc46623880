"""How a family touches its feature onto the nodes and pods of gen.Gen, and the pieces that several families use."""
from dataclasses import dataclass
from typing import Callable

from gen import APPS, NAMESPACES, TIERS

HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


def nothing(*_):
    return None


@dataclass
class Touch:
    base: tuple = ()
    node: Callable = nothing  # (g, node)
    pod: Callable = nothing  # (g, pod, placed)
    extra: Callable = nothing  # (g) -> further objects
    config: Callable = nothing  # (g) -> the configuration
    whole: Callable = nothing  # (g, case), at the end
    nodes: tuple = (1, 2, 4, 7, 12)
    share: tuple = (0.5, 1.5, 3)  # placed pods per node
    pending: tuple = (1, 2, 4, 6)
    roomy: float = 0.7  # how often resources are no obstacle


def namespaces():
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n, "labels": {"team": n[-1]}}} for n in NAMESPACES]


def cluster(g, touches, shape=None):
    shape = shape or touches[0]
    base = {f for t in touches for f in t.base}
    count = g.r.choice(shape.nodes)
    nodes = [g.node(i, base) for i in range(count)]
    placed = [g.pod(f"placed-{k}", base, node=f"n{g.r.randrange(count):03d}") for k in range(int(count * g.r.choice(shape.share)))]
    pending = [g.pod(f"pending-{k}", base) for k in range(g.r.choice(shape.pending))]
    if g.chance(shape.roomy):
        for n in nodes:
            n["status"]["allocatable"].update({"cpu": g.r.choice(["32", "48", "64"]), "memory": g.r.choice(["96Gi", "128Gi"]), "pods": "110", "ephemeral-storage": "900Gi"})
            n["spec"].pop("unschedulable", None)
    objects = namespaces() + nodes + placed
    out = {"objects": objects, "pods": pending}
    for t in touches:
        for n in nodes:
            t.node(g, n)
        for p in placed:
            t.pod(g, p, True)
        for p in pending:
            t.pod(g, p, False)
        objects += t.extra(g) or []
        cfg = t.config(g)
        if cfg:
            out["config"] = cfg
    for t in touches:
        t.whole(g, out)
    return out


def containers(p):
    return p["spec"].get("initContainers", []) + p["spec"]["containers"]


def some(g, pool, least=0):
    return sorted(g.r.sample(pool, g.r.randint(least, len(pool))))


# -- selectors --------------------------------------------------------------
def selector(g, keys=("app", "tier", "rev")):
    """A label selector, or none; every kind of requirement, several at a time."""
    kind = g.r.choice(["nil", "empty", "labels", "labels", "labels", "both", "expressions"])
    if kind == "nil":
        return None
    out = {}
    if kind in ("labels", "both"):
        out["matchLabels"] = {"app": g.r.choice(APPS)}
    if kind in ("both", "expressions"):
        out["matchExpressions"] = [requirement(g, g.r.choice(keys)) for _ in range(g.r.randint(1, 2))]
    return out


def requirement(g, key):
    pool = {"app": APPS, "tier": TIERS, "rev": ["1", "2", ""], "team": ["a", "b", "t"], "env": ["prod", "dev"]}[key]
    e = {"key": key, "operator": g.r.choice(["In", "NotIn", "Exists", "DoesNotExist"])}
    if e["operator"] in ("In", "NotIn"):
        e["values"] = some(g, pool, 1)
    return e


def term(g, sel):
    out = {"topologyKey": g.r.choice([HOST, ZONE, ZONE, "disk"])}
    if sel is not None:
        out["labelSelector"] = sel
    return out


def add_terms(g, p, kind, make, required=0.4, preferred=0.5):
    pa = p["spec"].setdefault("affinity", {}).setdefault(kind, {})
    if g.chance(required):
        pa[REQUIRED] = [make() for _ in range(g.r.randint(1, 2))]
    if g.chance(preferred):
        pa[PREFERRED] = [{"weight": g.r.choice([1, 7, 50, 100]), "podAffinityTerm": make()} for _ in range(g.r.randint(1, 3))]


def spread(g, keys=False, topology=(HOST, ZONE, "disk")):
    c = {"maxSkew": g.r.choice([1, 1, 2, 3]), "topologyKey": g.r.choice(topology), "whenUnsatisfiable": g.r.choice([HARD, SOFT])}
    sel = selector(g)
    if sel is not None:
        c["labelSelector"] = sel
    if keys and g.chance(0.7):
        c["matchLabelKeys"] = some(g, ["tier", "rev", "absent"], 1)
    return c


# -- the rest --------------------------------------------------------------
def plain_config(plugin_config=None, plugins=None, **top):
    profile = {"schedulerName": "default-scheduler"}
    if plugin_config:
        profile["pluginConfig"] = plugin_config
    if plugins:
        profile["plugins"] = plugins
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile], **top}


def tolerate(g, p, chance=0.7):
    """The base taints are there for nodeTaintsPolicy: most pods may go anywhere."""
    if g.chance(chance):
        p["spec"].setdefault("tolerations", []).extend({"operator": "Exists", "effect": e} for e in ("NoSchedule", "NoExecute"))
