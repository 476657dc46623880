"""The first thirteen families of scheduling cases, and the generator that all families share.

What these families make for a seed never changes: the published vectors come from them.
"""
import random

ZONES = ["a", "b", "c"]
APPS = ["web", "db", "cache", "batch"]
TIERS = ["front", "back"]
NAMESPACES = ["default", "team-a", "team-b"]
IMAGES = [("registry/app:1", 300), ("registry/db:2", 900), ("registry/tiny:1", 12), ("registry/huge:9", 2400)]
MI = 1 << 20


class Gen:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.uid = 0

    def chance(self, p):
        return self.r.random() < p

    def next_uid(self):
        self.uid += 1
        return f"uid-{self.uid:05d}"

    # -- nodes ------------------------------------------------------------
    def node(self, i, f):
        r = self.r
        labels = {
            "kubernetes.io/hostname": f"n{i:03d}",
            "topology.kubernetes.io/zone": r.choice(ZONES),
            "topology.kubernetes.io/region": "r1",
        }
        if self.chance(0.1):
            labels.pop("topology.kubernetes.io/zone")
        for key, values in (("disk", ["ssd", "hdd"]), ("cpu", ["true"]), ("rank", ["1", "5", "12", "x"])):
            if self.chance(0.5):
                labels[key] = r.choice(values)
        cpu = r.choice([1000, 2000, 4000, 8000, 3900, 16000])
        mem = r.choice([2048, 4096, 7000, 16384, 32768])
        alloc = {"cpu": f"{cpu}m", "memory": f"{mem}Mi", "pods": str(r.choice([3, 10, 110]))}
        if self.chance(0.5):
            alloc["ephemeral-storage"] = f"{r.choice([10, 50, 100])}Gi"
        if "extended" in f and self.chance(0.6):
            alloc["example.com/gpu"] = str(r.choice([1, 2, 4, 8]))
        if "hugepages" in f and self.chance(0.4):
            alloc["hugepages-2Mi"] = "512Mi"
        spec = {}
        taints = []
        if "taints" in f:
            for _ in range(r.choice([0, 0, 1, 1, 2, 3])):
                taints.append({
                    "key": r.choice(["dedicated", "spot", "gpu"]),
                    "value": r.choice(["", "a", "b"]),
                    "effect": r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute", "PreferNoSchedule"]),
                })
            taints = list({(t["key"], t["effect"]): t for t in taints}.values())
        if taints:
            spec["taints"] = taints
        if self.chance(0.05):
            spec["unschedulable"] = True
        status = {"allocatable": alloc, "capacity": alloc}
        if "images" in f:
            status["images"] = [
                {"names": [name], "sizeBytes": size * MI} for name, size in IMAGES if self.chance(0.4)
            ]
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i:03d}", "labels": labels, "uid": self.next_uid()},
                "spec": spec, "status": status}

    # -- selectors --------------------------------------------------------
    def node_requirement(self):
        r = self.r
        kind = r.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        key = r.choice(["disk", "cpu", "rank", "topology.kubernetes.io/zone"])
        if kind in ("Gt", "Lt"):
            return {"key": "rank", "operator": kind, "values": [r.choice(["0", "4", "10"])]}
        if kind in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": kind}
        pool = {"disk": ["ssd", "hdd", "nvme"], "cpu": ["true", "false"], "rank": ["1", "5", "12"],
                "topology.kubernetes.io/zone": ZONES}[key]
        return {"key": key, "operator": kind, "values": sorted(r.sample(pool, r.randint(1, len(pool) - 1)))}

    def node_term(self):
        term = {"matchExpressions": [self.node_requirement() for _ in range(self.r.randint(1, 2))]}
        if self.chance(0.1):
            term["matchFields"] = [{"key": "metadata.name", "operator": self.r.choice(["In", "NotIn"]), "values": [f"n{self.r.randint(0, 9):03d}"]}]
        return term

    def label_selector(self):
        r = self.r
        if self.chance(0.6):
            return {"matchLabels": {"app": r.choice(APPS)}}
        op = r.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        key, pool = r.choice([("app", APPS), ("tier", TIERS)])
        e = {"key": key, "operator": op}
        if op in ("In", "NotIn"):
            e["values"] = sorted(r.sample(pool, r.randint(1, len(pool))))
        return {"matchExpressions": [e]}

    def pod_term(self):
        r = self.r
        t = {"labelSelector": self.label_selector(),
             "topologyKey": r.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "disk"])}
        if self.chance(0.25):
            t["namespaces"] = sorted(r.sample(NAMESPACES, r.randint(1, 2)))
        if self.chance(0.2):
            t["namespaceSelector"] = r.choice([{}, {"matchLabels": {"team": "a"}}])
        if self.chance(0.1):
            t["matchLabelKeys"] = ["tier"]
            t["labelSelector"] = dict(t["labelSelector"])
        return t

    # -- pods -------------------------------------------------------------
    def resources(self, f, scale=1.0):
        r = self.r
        req = {}
        if self.chance(0.85):
            req["cpu"] = f"{int(r.choice([0, 50, 100, 250, 500, 1000, 1500]) * scale)}m"
        if self.chance(0.85):
            req["memory"] = f"{int(r.choice([0, 64, 128, 256, 512, 1024, 3000]) * scale)}Mi"
        if self.chance(0.1):
            req["ephemeral-storage"] = f"{r.choice([1, 5, 20])}Gi"
        if "extended" in f and self.chance(0.4):
            req["example.com/gpu"] = str(r.choice([1, 1, 2]))
        if "hugepages" in f and self.chance(0.3):
            req["hugepages-2Mi"] = "128Mi"
        return req

    def container(self, name, f):
        r = self.r
        req = self.resources(f)
        c = {"name": name, "image": r.choice(IMAGES)[0] if "images" in f else "img"}
        if req:
            c["resources"] = {"requests": req}
            hard = {k: v for k, v in req.items() if "/" in k or k.startswith("hugepages")}
            if hard:
                c["resources"]["limits"] = hard
        if "ports" in f and self.chance(0.5):
            p = {"containerPort": 80, "hostPort": r.choice([8080, 8081, 9000]), "protocol": r.choice(["TCP", "TCP", "UDP"])}
            if self.chance(0.4):
                p["hostIP"] = r.choice(["127.0.0.1", "10.0.0.1", "0.0.0.0"])
            c["ports"] = [p]
        return c

    def pod(self, name, f, node=None):
        r = self.r
        meta = {"name": name, "namespace": r.choice(NAMESPACES) if "namespaces" in f or "affinity" in f or "spread" in f else "default",
                "uid": self.next_uid(), "labels": {"app": r.choice(APPS), "tier": r.choice(TIERS)}}
        if self.chance(0.1):
            meta["labels"] = {}
        spec = {"containers": [self.container(f"c{k}", f) for k in range(r.choice([1, 1, 1, 2]))],
                "schedulerName": "default-scheduler"}
        if "init" in f and self.chance(0.6):
            inits = []
            for k in range(r.randint(1, 3)):
                c = self.container(f"i{k}", f)
                if self.chance(0.4):
                    c["restartPolicy"] = "Always"
                inits.append(c)
            spec["initContainers"] = inits
        if "overhead" in f and self.chance(0.5):
            spec["overhead"] = {"cpu": "120m", "memory": "90Mi"}
        if "taints" in f and self.chance(0.7):
            tol = []
            for _ in range(r.randint(0, 2)):
                t = {}
                if self.chance(0.85):
                    t["key"] = r.choice(["dedicated", "spot", "gpu"])
                    t["operator"] = r.choice(["Exists", "Equal"])
                    if t["operator"] == "Equal":
                        t["value"] = r.choice(["a", "b"])
                else:
                    t["operator"] = "Exists"
                if self.chance(0.6):
                    t["effect"] = r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"])
                tol.append(t)
            spec["tolerations"] = tol
        aff = {}
        if "nodeaffinity" in f:
            if self.chance(0.3):
                spec["nodeSelector"] = {"disk": r.choice(["ssd", "hdd"])}
            na = {}
            if self.chance(0.5):
                na["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [self.node_term() for _ in range(r.randint(1, 2))]}
            if self.chance(0.6):
                na["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": r.randint(1, 100), "preference": {"matchExpressions": [self.node_requirement()]}} for _ in range(r.randint(1, 3))]
            if na:
                aff["nodeAffinity"] = na
        if "affinity" in f:
            for kind in ("podAffinity", "podAntiAffinity"):
                pa = {}
                if self.chance(0.3):
                    pa["requiredDuringSchedulingIgnoredDuringExecution"] = [self.pod_term() for _ in range(r.randint(1, 2))]
                if self.chance(0.45):
                    pa["preferredDuringSchedulingIgnoredDuringExecution"] = [
                        {"weight": r.randint(1, 100), "podAffinityTerm": self.pod_term()} for _ in range(r.randint(1, 2))]
                if pa:
                    aff[kind] = pa
        if aff:
            spec["affinity"] = aff
        if "spread" in f and self.chance(0.8):
            cs, seen = [], set()
            for _ in range(r.randint(1, 3)):
                c = {"maxSkew": r.randint(1, 3),
                     "topologyKey": r.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"]),
                     "whenUnsatisfiable": r.choice(["DoNotSchedule", "ScheduleAnyway"]),
                     "labelSelector": self.label_selector()}
                if (c["topologyKey"], c["whenUnsatisfiable"]) in seen:
                    continue
                seen.add((c["topologyKey"], c["whenUnsatisfiable"]))
                if c["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.3):
                    c["minDomains"] = r.randint(1, 5)
                if self.chance(0.3):
                    c["nodeAffinityPolicy"] = r.choice(["Honor", "Ignore"])
                if self.chance(0.3):
                    c["nodeTaintsPolicy"] = r.choice(["Honor", "Ignore"])
                if self.chance(0.2):
                    c["matchLabelKeys"] = ["tier"]
                cs.append(c)
            spec["topologySpreadConstraints"] = cs
        if "priority" in f:
            spec["priority"] = r.choice([0, 0, 10, 100]) if node else r.choice([0, 100, 1000, 2000])
            if self.chance(0.1):
                spec["preemptionPolicy"] = "Never"
        if "nodename" in f and node is None and self.chance(0.15):
            spec.setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{r.randint(0, 12):03d}"]}]}]}}
        if "volumes" in f and node is None and self.chance(0.8):
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": r.choice(["bound-a", "bound-b", "wait", "missing", "immediate", "local"])}}]
        if "gates" in f and node is None and self.chance(0.2):
            spec["schedulingGates"] = [{"name": "example.com/hold"}]
        p = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        if node:
            spec["nodeName"] = node
            p["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{r.randint(0, 59):02d}:00Z"}
            if "owners" in f and self.chance(0.5):
                p["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-uid", "controller": True}]
        return p

    # -- the rest of the cluster ------------------------------------------
    def volumes(self):
        zone = lambda z: {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [z]}]}]}}
        out = [
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "wffc"}, "provisioner": "example.com/csi", "volumeBindingMode": "WaitForFirstConsumer",
             "allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}]}]},
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "now"}, "provisioner": "example.com/csi", "volumeBindingMode": "Immediate"},
        ]
        for n, z in (("bound-a", "a"), ("bound-b", "b")):
            out.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{n}", "uid": f"pv-{n}", "labels": {"topology.kubernetes.io/zone": z}},
                        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "wffc", "nodeAffinity": zone(z),
                                 "csi": {"driver": "example.com/csi", "volumeHandle": n}, "claimRef": {"namespace": "default", "name": n, "uid": f"pvc-{n}"}},
                        "status": {"phase": "Bound"}})
        for k in range(3):
            out.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-local-{k}", "uid": f"pv-local-{k}"},
                        "spec": {"capacity": {"storage": f"{5 * (k + 1)}Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "local": {"path": "/d"},
                                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{self.r.randint(0, 7):03d}"]}]}]}}},
                        "status": {"phase": "Available"}})
        for name, sc, vol in (("bound-a", "wffc", "pv-bound-a"), ("bound-b", "wffc", "pv-bound-b"), ("wait", "wffc", ""), ("immediate", "now", ""), ("local", "local", "")):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "storageClassName": sc}
            ann = {}
            if vol:
                spec["volumeName"] = vol
                ann = {"pv.kubernetes.io/bind-completed": "yes"}
            out.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default", "uid": f"pvc-{name}", "annotations": ann},
                        "spec": spec, "status": {"phase": "Bound" if vol else "Pending"}})
        return out

    def config(self, family):
        r = self.r
        args = []
        if family in ("config", "mixed") and self.chance(0.8):
            kind = r.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
            strategy = {"type": kind, "resources": [{"name": "cpu", "weight": r.randint(1, 5)}, {"name": "memory", "weight": r.randint(1, 5)}]}
            if self.chance(0.4):
                strategy["resources"].append({"name": "example.com/gpu", "weight": r.randint(1, 10)})
            if kind == "RequestedToCapacityRatio":
                strategy["requestedToCapacityRatio"] = {"shape": r.choice([
                    [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
                    [{"utilization": 0, "score": 10}, {"utilization": 40, "score": 3}, {"utilization": 100, "score": 0}],
                    [{"utilization": 20, "score": 1}, {"utilization": 70, "score": 9}]])}
            args.append({"name": "NodeResourcesFit", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs", "scoringStrategy": strategy,
                                                             **({"ignoredResources": ["example.com/gpu"]} if self.chance(0.2) else {})}})
        if family == "config" and self.chance(0.5):
            args.append({"name": "InterPodAffinity", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs",
                                                             "hardPodAffinityWeight": r.choice([0, 1, 50, 100]), "ignorePreferredTermsOfExistingPods": self.chance(0.5)}})
        if family == "config" and self.chance(0.4):
            args.append({"name": "NodeAffinity", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs", "addedAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}]}}})
        if family in ("config", "spread") and self.chance(0.4):
            args.append({"name": "PodTopologySpread", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "PodTopologySpreadArgs", "defaultingType": "List",
                                                              "defaultConstraints": [{"maxSkew": r.randint(1, 2), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": r.choice(["ScheduleAnyway", "DoNotSchedule"])}]}})
        if family == "config" and self.chance(0.4):
            args.append({"name": "NodeResourcesBalancedAllocation", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesBalancedAllocationArgs",
                                                                           "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}, {"name": "example.com/gpu", "weight": 1}]}})
        plugins = {}
        if family == "config" and self.chance(0.5):
            plugins["multiPoint"] = {"disabled": [{"name": r.choice(["ImageLocality", "TaintToleration", "NodeResourcesBalancedAllocation", "InterPodAffinity"])}]}
        if family == "config" and self.chance(0.4):
            plugins["score"] = {"disabled": [{"name": "NodeAffinity"}], "enabled": [{"name": "NodeAffinity", "weight": r.randint(1, 9)}]}
        if not args and not plugins:
            return None
        profile = {"schedulerName": "default-scheduler"}
        if args:
            profile["pluginConfig"] = args
        if plugins:
            profile["plugins"] = plugins
        return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}

    def case(self, name, family):
        f = set(FAMILIES[family])
        if family == "mixed":
            f = {x for x in ALL if self.chance(0.5)}
        nodes = self.r.choice([1, 2, 5, 8, 13, 20])
        objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n, "labels": {"team": n[-1]}}} for n in NAMESPACES]
        objects += [self.node(i, f) for i in range(nodes)]
        # Preemption needs a full cluster, and pods that may go.
        placed = int(nodes * (self.r.choice([6, 10, 14]) if "priority" in f else self.r.choice([0.5, 1.5, 3])))
        for k in range(placed):
            objects.append(self.pod(f"placed-{k}", f, node=f"n{self.r.randrange(nodes):03d}"))
        if "pdb" in f:
            for k in range(self.r.randint(0, 2)):
                objects.append({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"pdb-{k}", "namespace": self.r.choice(NAMESPACES)},
                                "spec": {"selector": {"matchLabels": {"app": self.r.choice(APPS)}}}, "status": {"disruptionsAllowed": self.r.choice([0, 0, 1, 2])}})
        if "owners" in f:
            for ns in NAMESPACES:
                objects.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": ns}, "spec": {"selector": {"app": self.r.choice(APPS)}}})
                objects.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs", "namespace": ns, "uid": "rs-uid"},
                                "spec": {"selector": {"matchLabels": {"tier": self.r.choice(TIERS)}}}})
        if "volumes" in f:
            objects += self.volumes()
        if "nominated" in f:  # waiting for victims to leave: counted on their node for pods of no higher priority
            for k in range(self.r.randint(1, 4)):
                p = self.pod(f"nominated-{k}", f)
                p["status"]["nominatedNodeName"] = f"n{self.r.randrange(nodes):03d}"
                objects.append(p)
        pods = [self.pod(f"pending-{k}", f) for k in range(self.r.choice([1, 2, 4, 8]))]
        out = {"name": name, "objects": objects, "pods": pods}
        cfg = self.config(family)
        if cfg:
            out["config"] = cfg
        return out


FAMILIES = {
    "resources": ["extended", "hugepages", "init", "overhead"],
    "taints": ["taints"],
    "nodeaffinity": ["nodeaffinity", "nodename"],
    "affinity": ["affinity"],
    "spread": ["spread", "owners", "taints", "nodeaffinity"],
    "ports": ["ports"],
    "images": ["images"],
    "volumes": ["volumes"],
    "preemption": ["priority", "pdb", "extended"],
    "preemption-affinity": ["priority", "pdb", "affinity", "spread"],
    "nominated": ["priority", "affinity", "ports", "nominated"],
    "config": ["extended", "affinity", "nodeaffinity", "images", "taints", "spread"],
    "mixed": [],
}
ALL = ["extended", "hugepages", "init", "overhead", "taints", "nodeaffinity", "affinity", "spread", "owners", "ports", "images", "priority", "pdb"]
