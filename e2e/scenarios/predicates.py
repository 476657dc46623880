"""What Kubernetes' own conformance tests ask of a scheduler ([sig-scheduling]), with no kubelet."""

from harness.case import Case
from harness.objects import condition, node, node_of, pod, priority_class, replica_set, taint
from harness.processes import wait

FAKE = "example.com/fakecpu"


class Predicates(Case):
    def setUp(self):
        super().setUp()
        self.create("nodes", node("node-a", cpu="2"), node("node-b", cpu="2", labels={"zone": "west"}))
        self.start_scheduler()

    def assert_refused(self, name):
        self.wait_event(name, "FailedScheduling")
        self.assertIsNone(node_of(self.pod(name)))

    def test_node_selector_that_matches(self):
        self.create("pods", pod("web", nodeSelector={"zone": "west"}))
        self.assertEqual(self.wait_bound("web"), "node-b")

    def test_node_selector_that_does_not_match(self):
        self.create("pods", pod("web", nodeSelector={"zone": "east"}))
        self.assert_refused("web")

    def test_node_affinity(self):
        def wanting(operator, *values):
            term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}
            return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

        self.create("pods", pod("west", affinity=wanting("In", "west", "north")),
                    pod("not-west", affinity=wanting("NotIn", "west")), pod("south", affinity=wanting("In", "south")))
        self.assertEqual(self.wait_bound("west"), "node-b")
        self.assertEqual(self.wait_bound("not-west"), "node-a")
        self.assert_refused("south")

    def test_resources_are_not_given_out_twice(self):
        """Seven tenths of each node are taken; what is left is given, more is not."""
        for name in ("node-a", "node-b"):
            self.create("pods", pod(f"filler-{name}", cpu="1400m", nodeSelector={"kubernetes.io/hostname": name}))
            self.wait_bound(f"filler-{name}")
        self.create("pods", pod("too-much", cpu="700m"))
        self.assert_refused("too-much")
        self.create("pods", pod("enough", cpu="600m"))
        self.wait_bound("enough")
        self.assert_no_node_over()

    def test_extended_resources(self):
        """A resource that a node learns of later is given out to the last of it, and no further."""
        self.api.patch("nodes", "node-a", {"status": {"capacity": {FAKE: "1000"}, "allocatable": {FAKE: "1000"}}},
                       subresource="status")
        self.create("pods", pod("filler", requests={FAKE: "700"}))
        self.assertEqual(self.wait_bound("filler"), "node-a")
        self.create("pods", pod("more", requests={FAKE: "301"}))
        self.assert_refused("more")
        self.create("pods", pod("rest", requests={FAKE: "300"}))
        self.assertEqual(self.wait_bound("rest"), "node-a")

    def test_host_ports(self):
        """One port, one address, one protocol: only the same three are in each other's way."""
        here = {"kubernetes.io/hostname": "node-a"}

        def using(address, protocol):
            return [{"containerPort": 8080, "hostPort": 54321, "hostIP": address, "protocol": protocol}]

        self.create("pods", pod("first", ports=using("127.0.0.1", "TCP"), nodeSelector=here))
        self.wait_bound("first")
        self.create("pods", pod("other-address", ports=using("127.0.0.2", "TCP"), nodeSelector=here),
                    pod("other-protocol", ports=using("127.0.0.1", "UDP"), nodeSelector=here))
        self.assertEqual(self.wait_bound("other-address"), "node-a")
        self.assertEqual(self.wait_bound("other-protocol"), "node-a")
        self.create("pods", pod("same", ports=using("127.0.0.1", "TCP"), nodeSelector=here),
                    pod("any-address", ports=using("0.0.0.0", "TCP"), nodeSelector=here))
        self.assert_refused("same")
        self.assert_refused("any-address")
        self.assertIn("node(s) didn't have free ports for the requested pod ports", self.events("same")[0]["note"])

    def test_taints(self):
        self.api.patch("nodes", "node-b", {"spec": {"taints": [taint("dedicated", value="west")]}})
        west = {"nodeSelector": {"zone": "west"}}
        self.create("pods", pod("intolerant", **west))
        self.assert_refused("intolerant")
        tolerations = [{"key": "dedicated", "operator": "Equal", "value": "west", "effect": "NoSchedule"}]
        self.create("pods", pod("tolerant", tolerations=tolerations, **west),
                    pod("everything", tolerations=[{"operator": "Exists"}], **west))
        self.assertEqual(self.wait_bound("tolerant"), "node-b")
        self.assertEqual(self.wait_bound("everything"), "node-b")

    def test_pod_anti_affinity(self):
        """Pods that exclude each other by host: one a node, and the third waits."""
        term = {"labelSelector": {"matchLabels": {"app": "shy"}}, "topologyKey": "kubernetes.io/hostname"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        for name in ("one", "two", "three"):
            self.create("pods", pod(name, labels={"app": "shy"}, affinity=affinity))
            if name != "three":
                self.wait_bound(name)
        self.assertNotEqual(node_of(self.pod("one")), node_of(self.pod("two")))
        self.assert_refused("three")

    def test_topology_spread(self):
        constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                      "labelSelector": {"matchLabels": {"app": "even"}}}
        self.create("pods", *(
            pod(f"even-{number}", labels={"app": "even"}, topologySpreadConstraints=[constraint]) for number in range(6)
        ))
        where = [self.wait_bound(f"even-{number}") for number in range(6)]
        self.assertEqual((where.count("node-a"), where.count("node-b")), (3, 3))


class ReplicaSets(Case):
    controllers = ("replicaset-controller", "disruption-controller")

    def test_the_path_that_preemption_takes(self):
        """Three sets fill a node. A more important pod makes room by the two least important, once each: their sets make new
        pods, which wait."""
        self.create("nodes", node("only", resources={FAKE: "1000"}))
        self.create("priorityclasses", *(priority_class(f"p{value}", value) for value in (1, 2, 3, 4)))
        self.start_scheduler()
        pods = self.watch_pods()
        for name, amount in (("one", "200"), ("two", "300"), ("three", "450")):
            importance = {"one": "p1", "two": "p2", "three": "p3"}[name]
            self.create("replicasets", replica_set(name, 1, pod(name, requests={FAKE: amount}, priority_class=importance)))
        self.wait_all_bound(pods, 3, 20)
        self.create("pods", pod("urgent", requests={FAKE: "500"}, priority_class="p4"))
        self.finish_deletions(2)
        self.assertEqual(self.wait_bound("urgent"), "only")

        def made():
            seen = {item["metadata"]["uid"]: item["metadata"].get("labels", {}).get("name") for _, _, item in list(pods.seen)}
            return [list(seen.values()).count(name) for name in ("one", "two", "three")]

        wait("two sets have made a second pod", lambda: made() == [2, 2, 1], 10, say=made)
        self.assertEqual(sorted(self.of_set(pods, True)), ["three"])
        self.assertEqual(sorted(self.of_set(pods, False)), ["one", "two"])

    def test_a_budget_that_the_controller_keeps(self):
        """The disruption controller counts what may go; two sets, one of them protected."""
        self.create("nodes", node("one", resources={FAKE: "500"}), node("two", resources={FAKE: "500"}))
        self.create("priorityclasses", priority_class("low", 1), priority_class("high", 2))
        self.start_scheduler()
        pods = self.watch_pods()
        for name in ("guarded", "spare"):
            self.create("replicasets", replica_set(name, 1, pod(name, requests={FAKE: "500"}, priority_class="low")))
        self.wait_all_bound(pods, 2, 20)
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        for name in list(pods.objects):
            self.api.patch("pods", name, running, how="strategic", subresource="status")
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guarded"},
                  "spec": {"minAvailable": 1, "selector": {"matchLabels": {"name": "guarded"}}}}
        self.create("poddisruptionbudgets", budget)

        def counted():
            status = self.api.get("poddisruptionbudgets", "guarded").get("status", {})
            return status.get("currentHealthy") == 1 and status.get("disruptionsAllowed") == 0

        wait("the controller has counted", counted, 20)
        self.create("pods", pod("urgent", requests={FAKE: "500"}, priority_class="high"))
        victim, = self.finish_deletions(1)
        self.assertEqual(victim["metadata"]["labels"]["name"], "spare")
        self.assertEqual(self.wait_bound("urgent"), node_of(victim))

    def finish_deletions(self, count):
        """Does the kubelet's part for pods that are asked to go."""
        gone = {}

        def enough():
            for item in self.api.list("pods"):
                if item["metadata"].get("deletionTimestamp"):
                    self.assertEqual(condition(item, "DisruptionTarget")["reason"], "PreemptionByScheduler")
                    gone[item["metadata"]["name"]] = item
                    self.api.delete("pods", item["metadata"]["name"])
            return len(gone) >= count

        wait(f"{count} pods are asked to go", enough, 10)
        self.assertEqual(len(gone), count)
        return list(gone.values())

    def of_set(self, pods, bound):
        """The sets of those pods that are bound, or of those that are not."""
        return [item["metadata"]["labels"]["name"] for item in pods.objects.values()
                if "labels" in item["metadata"] and bool(node_of(item)) == bound]

    def clean(self):
        self.api.delete_all("replicasets")
        wait("the sets are gone", lambda: not self.api.list("replicasets"), 10)
        super().clean()
