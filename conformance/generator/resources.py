"""What pods ask for: pod-level resources, resizes in place, odd quantities."""
from touches import containers


# -- pod-level resources ----------------------------------------------------
def amounts(g, p=0.7):
    out = {}
    for name, pool in (("cpu", ["0", "100m", "250m", "1", "1500m", "2"]), ("memory", ["0", "64Mi", "300Mi", "1Gi", "2500Mi"]),
                       ("hugepages-2Mi", ["0", "64Mi", "128Mi", "256Mi"])):
        if g.chance(p if name[0] != "h" else p / 2):
            out[name] = g.r.choice(pool)
    return out


def requirements(g):
    """Requests and limits in every combination: both, either, neither, empty."""
    out = {}
    if g.chance(0.7):
        out["requests"] = amounts(g)
    if g.chance(0.5):
        out["limits"] = amounts(g)
    return out


def initcontainers(g, most=3):
    out = []
    for k in range(g.r.randint(0, most)):
        c = {"name": f"i{k}", "image": "img", "resources": requirements(g)}
        if g.chance(0.5):
            c["restartPolicy"] = "Always"
        out.append(c)
    return out


def podlevel_node(g, n):
    alloc = n["status"]["allocatable"]
    alloc["cpu"] = g.r.choice(["2", "4", "6500m"])
    alloc["memory"] = g.r.choice(["2Gi", "4Gi", "9000Mi"])
    if g.chance(0.6):
        alloc["hugepages-2Mi"] = g.r.choice(["256Mi", "1Gi"])
    if g.chance(0.2):
        alloc["hugepages-1Gi"] = "4Gi"


def podlevel_pod(g, p, placed):
    spec = p["spec"]
    spec["containers"] = [{"name": f"c{k}", "image": "img", **({"resources": requirements(g)} if g.chance(0.8) else {})}
                          for k in range(g.r.randint(1, 3))]
    inits = initcontainers(g)
    if inits:
        spec["initContainers"] = inits
    if g.chance(0.3):
        spec["overhead"] = g.r.choice([{"cpu": "75m"}, {"memory": "33Mi"}, {"cpu": "1", "memory": "500Mi"}, {"hugepages-2Mi": "2Mi"}, {}])
    if g.chance(0.75):
        spec["resources"] = requirements(g)
        if g.chance(0.15):  # not supported at this level: left out of the sum
            spec["resources"].setdefault("requests", {})[g.r.choice(["ephemeral-storage", "example.com/gpu", "pods"])] = "3"
        if g.chance(0.1):
            spec["resources"].setdefault("requests", {})["hugepages-1Gi"] = "1Gi"


# -- in-place resize --------------------------------------------------------
def container_status(g, name):
    out = {"name": name, "image": "img", "imageID": "", "ready": True, "restartCount": 0}
    if g.chance(0.8):
        out["resources"] = requirements(g)
    if g.chance(0.6):
        out["allocatedResources"] = amounts(g)
    return out


def resized_pod(g, p, placed):
    podlevel_pod(g, p, placed)
    if not placed and g.chance(0.7):
        return
    if not g.chance(0.7):
        p["spec"].pop("resources", None)
    status = p["status"]
    status["containerStatuses"] = [container_status(g, c["name"]) for c in p["spec"]["containers"] if g.chance(0.8)]
    if g.chance(0.1):
        status["containerStatuses"].append(container_status(g, "stranger"))
    inits = [container_status(g, c["name"]) for c in p["spec"].get("initContainers", []) if g.chance(0.8)]
    if inits:
        status["initContainerStatuses"] = inits
    if g.chance(0.5):
        status["resources"] = requirements(g)
    if g.chance(0.5):
        status["allocatedResources"] = amounts(g)
    conditions = []
    if g.chance(0.3):
        conditions.append({"type": "Ready", "status": "True"})
    for _ in range(g.r.choice([0, 1, 1, 1, 2])):  # only the first of a type counts
        conditions.append({"type": g.r.choice(["PodResizePending", "PodResizePending", "PodResizeInProgress"]),
                           "status": g.r.choice(["True", "True", "False"]), "reason": g.r.choice(["Infeasible", "Infeasible", "Deferred", ""])})
    if conditions:
        status["conditions"] = conditions


# -- odd quantities ---------------------------------------------------------
SMALL = ["0", "0.1", "100u", "1n", "0.0001", "0.5", "+1", "1", "2", "1.5", "250m", "1e0", "1E0", "12e-1", ".5", "1.", "0.0", "-0", "1e-3", "1000000n", 1, 2, 0.5, 0]
BYTES = ["0", "1e3", "1E3", "2Ki", "1.5Gi", "0.5Gi", "512M", "1G", "100k", "128974848", "129e6", "129M", "123Mi", "1024.5Ki", "0.1", "999999999n",
         "1Gi", "12345678u", "1000m", "1001m", "+1Gi", 1048576, 1.5]
HUGE = ["1E", "12E", "7Ei", "8Ei", "9223372036854775807", "9223372036854775808", "1e19", "99999999999999999999", "9.3E", "1Ti", "1P"]
NAMES = ["storage", "attachable-volumes-x", "hugepages-1Gi", "hugepages-2Mi", "kubernetes.io/foo", "requests.cpu", "example.com/gpu",
         "example.com/dotted.name_x", "pods", "ephemeral-storage", "requests.example.com/gpu", "sub.kubernetes.io/bar", "gpu"]
NEGATIVE = ["-1", "-250m", "-1Gi"]


def quantity(g, name, node):
    if g.chance(0.03):
        return g.r.choice(HUGE)
    if not node and g.chance(0.02):
        return g.r.choice(NEGATIVE)
    if name == "cpu":
        return g.r.choice(["4", "8.5", "3999m", "2e0", "1E1", 3, "0.0001k"] if node else SMALL)
    if name in ("memory", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi", "storage"):
        return g.r.choice(["4Gi", "3e9", "2.5Gi", "4294967296", "5000000001m", "6G"] if node else BYTES)
    return g.r.choice(["1", "2", "4e0", 8, "2500m", "10"] if node else ["0", "1", "1", "2", "1500m", "1n", 1])


def quantities_node(g, n):
    alloc = {"pods": g.r.choice(["110", "110", 10, "1e1", "2500m"] if g.chance(0.97) else ["0", "1n"])} if g.chance(0.97) else {}
    for name in ["cpu", "memory"]:
        if g.chance(0.95):
            alloc[name] = "0" if g.chance(0.05) else quantity(g, name, True)
    for name in NAMES:
        if name != "pods" and g.chance(0.6):
            alloc[name] = quantity(g, name, True)
    status = n["status"]
    status["allocatable"] = alloc
    kind = g.r.choice(["same", "same", "smaller", "none", "only"])
    status["capacity"] = {"cpu": "1", "memory": "1Mi", "pods": "1"} if kind == "smaller" else alloc
    if kind == "none":
        del status["capacity"]
    if kind == "only" and g.chance(0.3):  # capacity is not allocatable
        del status["allocatable"]


def quantities_list(g):
    out = {name: quantity(g, name, False) for name in ("cpu", "memory") if g.chance(0.7)}
    for name in NAMES:
        if g.chance(0.08):
            out[name] = quantity(g, name, False)
    return out


def quantities_pod(g, p, placed):
    for c in containers(p):
        c["resources"] = {"requests": quantities_list(g)}
        if g.chance(0.3):
            c["resources"]["limits"] = quantities_list(g)
    if g.chance(0.1):
        p["spec"]["overhead"] = {"cpu": g.r.choice(SMALL), "memory": g.r.choice(BYTES)}
    if g.chance(0.1):
        p["spec"]["resources"] = {"requests": quantities_list(g)}
