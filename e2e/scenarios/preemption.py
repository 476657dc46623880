"""An important pod makes others go: the right ones, politely, and takes their place only when they are gone."""

from harness.case import Case, ours_only
from harness.objects import budget, condition, node, node_of, pod, priority_class
from harness.processes import wait

CONDITION = {
    "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
    "message": "default-scheduler: preempting to accommodate a higher priority pod",
}


class Preemption(Case):
    def setUp(self):
        super().setUp()
        values = {"lowest": 1, "low": 10, "middle": 50, "high": 100}
        self.create("priorityclasses", *(priority_class(name, value) for name, value in values.items()))

    def fill(self, *pods):
        """Pods on nodes from the start: name, node, class and CPU."""
        for name, where, importance, cpu in pods:
            labels = {"app": name.rsplit("-", 1)[0]}
            self.create("pods", pod(name, cpu=cpu, priority_class=importance, labels=labels, nodeName=where))

    def protect(self, name, labels, allowed):
        """A budget as the disruption controller leaves it."""
        self.create("poddisruptionbudgets", budget(name, labels, minAvailable=1))
        status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                  "observedGeneration": 1}
        self.api.patch("poddisruptionbudgets", name, {"status": status}, subresource="status")

    def wait_victim(self, name):
        """The pod has been told to go, and why."""
        def going():
            item = self.pod(name)
            return item and item["metadata"].get("deletionTimestamp") and item

        victim = wait(f"{name} is asked to go", going, 10, say=lambda: self.why("urgent"))
        said = condition(victim, "DisruptionTarget")
        self.assertEqual({key: said[key] for key in CONDITION}, CONDITION)
        return victim

    def assert_untouched(self, *names):
        for name in names:
            item = self.pod(name)
            self.assertIsNone(item["metadata"].get("deletionTimestamp"), name)
            self.assertIsNone(condition(item, "DisruptionTarget"), name)

    def test_the_cheapest_victims_that_no_budget_protects(self):
        """Of three nodes, one has the least important pod, but its budget allows no disruption; one has a pod in the middle; the
        third has two low ones, of which the less important is enough."""
        self.create("nodes", *(node(name, cpu="1") for name in ("protected", "dear", "cheap")))
        self.fill(
            ("guarded-0", "protected", "lowest", "1"),
            ("middling-0", "dear", "middle", "1"),
            ("batch-0", "cheap", "low", "500m"),
            ("batch-1", "cheap", "lowest", "500m"),
        )
        self.protect("guarded", {"app": "guarded"}, 0)
        self.start_scheduler()
        urgent, = self.create("pods", pod("urgent", cpu="500m", priority_class="high"))

        self.wait_victim("batch-1")
        self.assert_untouched("guarded-0", "middling-0", "batch-0")
        event = self.wait_event("batch-1", "Preempted", f"Preempted by pod {urgent['metadata']['uid']} on node cheap")
        self.assertEqual((event["type"], event["action"]), ("Normal", "Preempting"))
        self.assertEqual(event["reportingController"], "default-scheduler")
        wait("urgent is nominated", lambda: self.pod("urgent")["status"].get("nominatedNodeName") == "cheap", 10)
        self.assertIsNone(node_of(self.pod("urgent")))
        # Preemption has helped, so nothing is said of it.
        self.wait_unschedulable("urgent", "0/3 nodes are available: 3 Insufficient cpu.")

        # The kubelet would finish the deletion once the containers have stopped.
        where = self.assert_bound_within(1, "urgent", lambda: self.api.delete("pods", "batch-1"))
        self.assertEqual(where, "cheap")
        self.assert_untouched("guarded-0", "middling-0", "batch-0")
        self.assert_no_node_over()

    @ours_only
    def test_somebody_between_says_that_a_victim_is_not_there(self):
        """A proxy answers 404 once, to what the victim is told or to its deletion. Whether it is gone is up to kube-apiserver: it is
        deleted all the same, and the log says for whom."""
        self.create("nodes", node("told", cpu="1"), node("deleted", cpu="1"))
        self.fill(("told-0", "told", "low", "1"), ("deleted-0", "deleted", "low", "1"))
        wire, met = self.meddler(), set()
        spoilt = {("PATCH", "/pods/told-0/status"), ("DELETE", "/pods/deleted-0")}

        def rule(request):
            for method, path in spoilt - met:
                if request.method == method and request.path.endswith(path):
                    met.add((method, path))
                    return lambda turn: turn.answer(404, {"message": "no route"})

        wire.rule = rule
        backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        scheduler = self.start_scheduler(backoff, port=wire.port)
        for name in ("told", "deleted"):
            where = {"kubernetes.io/hostname": name}
            self.create("pods", pod(f"urgent-{name}", cpu="1", priority_class="high", nodeSelector=where))
        for name in ("told", "deleted"):
            with self.subTest(name):
                def going():
                    return self.pod(f"{name}-0")["metadata"].get("deletionTimestamp")

                wait(f"{name}-0 is asked to go", going, 20, say=lambda: self.why(f"urgent-{name}"))
                self.wait_event(f"{name}-0", "Preempted")
                self.api.delete("pods", f"{name}-0")
                self.assertEqual(self.wait_bound(f"urgent-{name}", 20), name)
                lines = [line for line in scheduler.process.text().splitlines() if "Evicting pod" in line]
                self.assertTrue(any(f"default/{name}-0" in line and f"urgent-{name}" in line for line in lines), lines)
        self.assertEqual(met, spoilt)
        self.assert_no_node_over()

    def test_a_budget_is_broken_when_nothing_else_helps(self):
        """A budget is a wish. Of two protected nodes, that goes where fewer budgets are broken."""
        self.create("nodes", node("one", cpu="1"), node("two", cpu="1"))
        self.fill(
            ("guarded-0", "one", "low", "500m"),
            ("guarded-1", "one", "low", "500m"),
            ("guarded-2", "two", "low", "500m"),
            ("spare-0", "two", "low", "500m"),
        )
        self.protect("guarded", {"app": "guarded"}, 0)
        self.start_scheduler()
        self.create("pods", pod("urgent", cpu="1", priority_class="high"))
        self.wait_victim("guarded-2")
        self.wait_victim("spare-0")
        self.assert_untouched("guarded-0", "guarded-1")
        self.api.delete("pods", "guarded-2", "spare-0")
        self.assertEqual(self.wait_bound("urgent"), "two")

    def test_equals_are_left_alone(self):
        self.create("nodes", node("only", cpu="1"))
        self.fill(("peer-0", "only", "high", "1"))
        self.start_scheduler()
        self.create("pods", pod("urgent", cpu="1", priority_class="high"))
        self.wait_unschedulable(
            "urgent", "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        )
        self.assert_untouched("peer-0")

    def test_a_pod_that_never_preempts_waits(self):
        self.create("nodes", node("only", cpu="1"))
        self.create("priorityclasses", priority_class("patient", 1000, preemptionPolicy="Never"))
        self.fill(("batch-0", "only", "low", "1"))
        self.start_scheduler()
        self.create("pods", pod("urgent", cpu="1", priority_class="patient"))
        self.wait_unschedulable(
            "urgent", "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: not eligible due to preemptionPolicy=Never.",
        )
        self.assert_untouched("batch-0")
        self.assert_bound_within(1, "urgent", lambda: self.api.delete("pods", "batch-0"))

    def test_the_place_is_kept_for_the_preemptor(self):
        """A pod of less importance that comes while the victim goes does not take the room that was made."""
        self.create("nodes", node("only", cpu="1"))
        self.fill(("batch-0", "only", "low", "1"))
        self.start_scheduler()
        self.create("pods", pod("urgent", cpu="1", priority_class="high"))
        self.wait_victim("batch-0")
        self.create("pods", pod("opportunist", cpu="1", priority_class="middle"))
        self.wait_event("opportunist", "FailedScheduling")
        self.assert_bound_within(2, "urgent", lambda: self.api.delete("pods", "batch-0"))
        self.assertIsNone(node_of(self.pod("opportunist")))
