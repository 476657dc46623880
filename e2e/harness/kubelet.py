"""Nodes in name only, whose pods run as soon as they are bound: what kubelets tell the API server, without a container."""

import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

from harness.client import ApiError, Watch, path
from harness.objects import amount, node, node_of
from harness.processes import wait

WORKERS = 4
LEASE_SECONDS = 40
RENEW_SECONDS = 10
# What each node has. A test may add resources of other names.
ROOM = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
ZONES = ("east", "west")
HEALTHY = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
ENDED = ("Succeeded", "Failed")
EVERY_ADDRESS = ("", "0.0.0.0", "::")


class Kubelet:
    """The kubelets of all nodes. `refused` has what a scheduler must never bring about: pods bound to a node that has no room
    or no port for them."""

    def __init__(self, client, count):
        self.client = client
        self.refused = []
        self.begun, self.ending = set(), set()
        self.held = {}
        self.addresses = (f"10.2.{number // 250}.{number % 250 + 1}" for number in itertools.count())
        self.hosts = {f"node-{number}": f"10.1.0.{number + 1}" for number in range(count)}
        self.stopped = threading.Event()
        self.pool = ThreadPoolExecutor(WORKERS)
        self.register()
        self.renewing = threading.Thread(target=self.renew, daemon=True)
        self.renewing.start()
        self.watches = [Watch(client, "nodes", tell=self.node_changed), Watch(client, "pods", None, tell=self.pod_changed)]
        # The node lifecycle controller takes away what kube-apiserver gives every new node.
        wait("no node has a taint", lambda: not any("taints" in each["spec"] for each in client.list("nodes")), 60)

    def stop(self):
        self.stopped.set()
        for watch in self.watches:
            watch.stop()
        self.pool.shutdown(cancel_futures=True)
        self.renewing.join()

    # Nodes.

    def register(self):
        for number, (name, address) in enumerate(self.hosts.items()):
            labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": "here",
                      "topology.kubernetes.io/zone": ZONES[number % len(ZONES)]}
            item = node(name, labels=labels)
            item["status"] = {
                "capacity": ROOM, "allocatable": ROOM,
                "conditions": [{**said(kind, status), "lastHeartbeatTime": now()} for kind, status in HEALTHY.items()],
                "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            }
            self.client.create("nodes", item)
            self.client.create("leases", {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now("microseconds")},
            }, namespace="kube-node-lease")

    def renew(self):
        while not self.stopped.wait(RENEW_SECONDS):
            for name in self.hosts:
                self.attempt(self.client.patch, "leases", name, {"spec": {"renewTime": now("microseconds")}},
                             namespace="kube-node-lease")

    def node_changed(self, kind, item):
        """A resource that a node is said to have is there for pods; one that it has no more is not."""
        has, gives = item["status"].get("capacity", {}), item["status"].get("allocatable", {})
        change = {name: has.get(name) for name in {*has, *gives} if has.get(name) != gives.get(name)}
        if change and kind != "DELETED":
            self.soon(self.client.patch, "nodes", item["metadata"]["name"], {"status": {"allocatable": change}},
                      subresource="status")

    # Pods.

    def pod_changed(self, kind, item):
        """Told of every change, one after the other and in order."""
        identity = item["metadata"]["uid"]
        if kind == "DELETED":
            self.held.pop(identity, None)
        elif node_of(item) not in self.hosts or item["status"].get("phase") in ENDED:
            pass
        elif item["metadata"].get("deletionTimestamp"):
            if identity not in self.ending:
                self.ending.add(identity)
                self.after(seconds_to_end(item), self.end, item)
        elif identity not in self.begun:
            self.begun.add(identity)
            refusal = self.refusal(item)
            if refusal:
                self.refused.append(f"{item['metadata']['namespace']}/{item['metadata']['name']}: {refusal} on {node_of(item)}")
                self.soon(self.tell, item, {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": refusal})
            else:
                self.held[identity] = item
                self.soon(self.run, item)

    def refusal(self, item):
        """Why a kubelet would not take a pod beside those that it has, or None."""
        others = [other for other in list(self.held.values()) if node_of(other) == node_of(item)]
        for port in host_ports(item):
            if any(in_the_way(port, other_port) for other in others for other_port in host_ports(other)):
                return f"port {port['hostPort']} is taken"
        for resource, room in ROOM.items():
            if sum(request(each, resource) for each in [*others, item]) > amount(room):
                return f"there is not enough {resource}"
        return None

    def run(self, item):
        address, host = next(self.addresses), self.hosts[node_of(item)]
        true = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        self.tell(item, {
            "phase": "Running", "startTime": now(), "podIP": address, "podIPs": [{"ip": address}],
            "hostIP": host, "hostIPs": [{"ip": host}], "conditions": [said(kind, "True") for kind in true],
            "containerStatuses": containers(item, {"running": {"startedAt": now()}}, ready=True),
        })

    def end(self, item):
        """All its containers end well. What is left of a pod that somebody holds by a finalizer is this last word of it."""
        metadata = item["metadata"]
        self.held.pop(metadata["uid"], None)
        terminated = {"exitCode": 0, "reason": "Completed", "finishedAt": now()}
        self.tell(item, {
            "phase": "Succeeded", "conditions": [said(kind, "False") for kind in ("ContainersReady", "Ready")],
            "containerStatuses": containers(item, {"terminated": terminated}, ready=False),
        })
        self.client.call("DELETE", f"{path('pods', metadata['namespace'])}/{metadata['name']}", {
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]},
        })

    def tell(self, item, status):
        metadata = item["metadata"]
        self.client.patch("pods", metadata["name"], {"metadata": {"uid": metadata["uid"]}, "status": status},
                          namespace=metadata["namespace"], how="strategic", subresource="status")

    # When.

    def soon(self, action, *words, **options):
        if not self.stopped.is_set():
            self.pool.submit(self.attempt, action, *words, **options)

    def after(self, seconds, action, *words):
        if seconds:
            timer = threading.Timer(seconds, self.soon, (action, *words))
            timer.daemon = True
            timer.start()
        else:
            self.soon(action, *words)

    def attempt(self, action, *words, **options):
        try:
            action(*words, **options)
        except ApiError as error:
            # It is gone, or another one of that name has come.
            if error.code not in (404, 409):
                print(f"kubelet: {error}", file=sys.stderr)
        except OSError as error:
            if not self.stopped.is_set():
                print(f"kubelet: {error}", file=sys.stderr)


def seconds_to_end(item):
    """Everything ends at once when it is asked to, but for a hook that sleeps."""
    hooks = [container.get("lifecycle", {}).get("preStop", {}) for container in item["spec"]["containers"]]
    sleep = max(hook.get("sleep", {}).get("seconds", 0) for hook in hooks)
    return min(sleep, item["metadata"].get("deletionGracePeriodSeconds", 0))


def host_ports(item):
    return [port for container in item["spec"]["containers"] for port in container.get("ports", []) if port.get("hostPort")]


def in_the_way(one, other):
    if one["hostPort"] != other["hostPort"] or one["protocol"] != other["protocol"]:
        return False
    addresses = (one.get("hostIP", ""), other.get("hostIP", ""))
    return addresses[0] == addresses[1] or any(address in EVERY_ADDRESS for address in addresses)


def request(item, resource):
    if resource == "pods":
        return 1
    requests = [container["resources"].get("requests", {}) for container in item["spec"]["containers"]]
    return sum(amount(each.get(resource, "0")) for each in requests)


def containers(item, state, ready):
    return [{"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0, "started": ready,
             "ready": ready, "state": state} for container in item["spec"]["containers"]]


def said(kind, status):
    return {"type": kind, "status": status, "lastTransitionTime": now()}


def now(precision="seconds"):
    return datetime.now(timezone.utc).replace(tzinfo=None).isoformat(timespec=precision) + "Z"
