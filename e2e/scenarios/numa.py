"""NodeResourceTopologyMatch on a real API server: pods that need one NUMA zone, topologies that change and are late, and odd ones; with the
definition of `deploy/crds` and the rights that `supercargo rbac` prints."""

import subprocess

from harness import settings
from harness.case import ours_only
from harness.client import ApiError
from harness.community import NAME, Community
from harness.objects import node, node_of, pod
from harness.processes import wait

KIND = "noderesourcetopologies"
API_VERSION = "topology.node.k8s.io/v1alpha2"
# The fingerprints of the pods default/a, and default/stranger.
OF_A = "pfp0v00173ac1f6debaedf3d"
OF_STRANGER = "pfp0v001befd1114709a68a7"


def zones(*cores):
    """Zones of 8 cores, of which so many are left, and memory enough."""
    def amounts(name, capacity, available):
        return {"name": name, "capacity": capacity, "allocatable": capacity, "available": available}

    return [{"name": f"node-{number}", "type": "Node", "resources": [amounts("cpu", "8", str(left)), amounts("memory", "16Gi", "16Gi")]}
            for number, left in enumerate(cores)]


def attributes(fingerprint=None):
    said = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}, {"name": "topologyManagerScope", "value": "container"}]
    return said + ([{"name": "nodeTopologyPodsFingerprint", "value": fingerprint}] if fingerprint else [])


def topology(name, *cores):
    return {"apiVersion": API_VERSION, "kind": "NodeResourceTopology", "metadata": {"name": name}, "attributes": attributes(), "zones": zones(*cores)}


def pinned(name, cpu, **spec):
    """A guaranteed pod."""
    made = pod(name, cpu=cpu, memory="1Gi", **{"schedulerName": NAME, **spec})
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(resources["requests"])
    return made


class Numa(Community):
    arguments = {}

    def setUp(self):
        self.plugins = {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}}
        self.plugin_config = [{"name": "NodeResourceTopologyMatch", "args": self.arguments}]
        super().setUp()
        wait("topologies are served", lambda: self.api.raw("GET", f"/apis/{API_VERSION}/{KIND}")[0] == 200)

    def change(self, name, *cores, fingerprint=None):
        self.api.patch(KIND, name, {"zones": zones(*cores), "attributes": attributes(fingerprint)})

    def runs(self, name):
        self.api.patch("pods", name, {"status": {"phase": "Running"}}, subresource="status")


@ours_only
class Zones(Numa):
    def test_a_pod_goes_where_one_zone_has_it_all(self):
        # By what whole nodes have, the large one is better: the default profile would take it.
        self.create("nodes", node("large", cpu="16"), node("small", cpu="8"))
        self.create(KIND, topology("large", 3, 3), topology("small", 4))
        self.start()
        self.create("pods", pinned("needs-a-zone", "4"))
        self.assertEqual(self.wait_bound("needs-a-zone"), "small")
        self.create("pods", pod("does-not", cpu="4", memory="1Gi", schedulerName=NAME))
        self.assertEqual(self.wait_bound("does-not"), "large")
        self.assertIn("large", self.kubectl("get", "node-res-topo"))

    def test_a_topology_that_changes_frees_the_pod(self):
        self.create("nodes", node("a", cpu="16"))
        self.create(KIND, topology("a", 3, 3))
        scheduler = self.start()
        self.create("pods", pinned("waits", "4"))
        event = self.wait_event("waits", "FailedScheduling")
        self.assertIn("1 cannot align container", event["note"])
        words = [settings.SUPERCARGO, "explain", "--kubeconfig", self.cluster.kubeconfig("admin"), "--config", scheduler.config_file,
                 "--namespace", "default", "--pod", "waits"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=60)
        self.assertIn("no NUMA zone of a has 4 cores left: 3 cores at most", said.stdout, said.stderr)
        self.change("a", 3, 5)
        self.assertEqual(self.wait_bound("waits", 5), "a")

    def test_a_node_and_its_topology_come_late(self):
        self.start()
        self.create("pods", pinned("early", "4"))
        self.create(KIND, topology("a", 2, 2))
        self.create("nodes", node("a", cpu="16"))
        self.wait_event("early", "FailedScheduling")
        self.create("nodes", node("b", cpu="16"))
        self.assertEqual(self.wait_bound("early"), "b", "nobody says anything about its zones")


@ours_only
class OddTopologies(Numa):
    arguments = {"scoringStrategy": {"type": "LeastNUMANodes"}}

    def test_they_keep_nobody_waiting(self):
        self.create("nodes", node("a", cpu="16"))
        garbage = topology("garbage", 1)
        garbage["zones"][0]["resources"][0]["available"] = "a lot"
        with self.assertRaises(ApiError) as refused:
            self.create(KIND, garbage)
        self.assertEqual(refused.exception.code, 422)
        self.create(KIND, topology("nobody", 1), {**topology("a"), "zones": zones(2, 8, 8)[1:]})
        self.start()
        # Zones that do not begin at 0, without costs, and a pod that needs two of them.
        self.api.patch(KIND, "a", {"attributes": []})
        self.create("pods", pinned("wide", "12"))
        self.assertEqual(self.wait_bound("wide"), "a")


@ours_only
class LateTopologies(Numa):
    arguments = {"cacheResyncPeriodSeconds": 1, "cache": {"informerMode": "Shared"}}

    def test_zones_are_not_given_away_twice(self):
        self.create("nodes", node("n", cpu="16"))
        self.create(KIND, topology("n", 8, 8))
        self.start()
        self.create("pods", pinned("a", "6"))
        self.wait_bound("a")
        self.create("pods", pinned("b", "6"))
        self.assertIn("1 cannot align container", self.wait_event("b", "FailedScheduling")["note"])
        self.runs("a")
        self.change("n", 2, 8)
        self.assertIsNone(node_of(self.pod("b")), "the topology does not say which pods it has")
        self.change("n", 2, 8, fingerprint=OF_A)
        self.wait_bound("b", 15)
        self.create("pods", pinned("c", "4"))
        self.wait_event("c", "FailedScheduling")

    def test_a_pod_of_another_scheduler(self):
        self.create("nodes", node("n", cpu="16"))
        self.create(KIND, topology("n", 8, 8))
        self.start()
        self.create("pods", pinned("stranger", "6", schedulerName="other", nodeName="n"))
        self.runs("stranger")
        self.create("pods", pinned("a", "1"))
        self.assertIn("1 invalid node topology data", self.wait_event("a", "FailedScheduling")["note"])
        self.change("n", 2, 8, fingerprint=OF_STRANGER)
        self.wait_bound("a", 15)
