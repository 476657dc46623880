"""A list or a watch that is answered by "not found", or not at all, says nothing about what is there: nothing is forgotten for it."""

import threading

from harness.case import Case, ours_only
from harness.objects import budget, condition, node, node_of, nodes, pod, priority_class
from harness.processes import wait

BACKOFF = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
CODES = (404, 403, 410, 500)


@ours_only
class Refills(Case):
    audit = True

    def start(self):
        """A scheduler whose lists and watches of some kinds are answered by a code, for a while."""
        self.wire = self.meddler()
        self.spoilt, self.met, self.code = (), [], 404
        self.lock = threading.Lock()

        def rule(request):
            with self.lock:
                spoilt = [kind for kind in self.spoilt if request.reads(kind)]
                self.met += spoilt
            if spoilt:
                code = self.code
                return lambda turn: turn.answer(code)

        self.wire.rule = rule
        return self.start_scheduler(BACKOFF, port=self.wire.port)

    def spoil(self, code, *kinds):
        """Ends the connections; what reads these kinds then is answered by that code."""
        with self.lock:
            self.code, self.spoilt, self.met = code, kinds, []
        self.wire.cut()
        wait(f"{kinds} are asked for", lambda: set(self.met) == set(kinds), 40)

    def heal(self):
        with self.lock:
            self.spoilt = ()

    def test_bound_pods_are_not_forgotten(self):
        """Nodes full of pods, and others that wait. Whatever lists and watches of pods are answered by, no node is over."""
        self.create("nodes", *nodes(5, cpu="2"))
        self.start()
        self.create("pods", *(pod(f"resident-{number}", cpu="1") for number in range(10)))
        self.wait_all_bound(self.watch_pods(), 10, 20)
        self.create("pods", *(pod(f"waiting-{number}", cpu="1") for number in range(5)))
        for number in range(5):
            self.wait_event(f"waiting-{number}", "FailedScheduling")
        for code in CODES:
            with self.subTest(code):
                self.spoil(code, "pods")
                # The nodes change meanwhile, which makes it try again.
                for item in nodes(5):
                    self.api.patch("nodes", item["metadata"]["name"], {"metadata": {"labels": {"touched": str(code)}}})
                self.heal()
                self.create("pods", pod(f"after-{code}", cpu="1"))
                self.wait_event(f"after-{code}", "FailedScheduling", seconds=90)
                self.assertEqual(sum(1 for item in self.api.list("pods") if node_of(item)), 10)
                self.assert_no_node_over()
        self.api.delete("pods", "resident-0")
        wait("one that waited has the room", lambda: sum(1 for item in self.api.list("pods") if node_of(item)) == 10, 40)
        self.assert_no_node_over()

    def test_nodes_are_not_forgotten(self):
        """Pods that wait for a node that is there find it when it can be seen again, and those that have one keep their room."""
        self.create("nodes", node("first", cpu="1"), node("second", cpu="1"))
        self.start()
        self.create("pods", pod("resident", cpu="1"))
        taken = self.wait_bound("resident")
        for code in CODES:
            with self.subTest(code):
                self.spoil(code, "nodes")
                name = f"next-{code}"
                self.create("pods", pod(name, cpu="1"))
                self.heal()
                self.assertEqual(self.wait_bound(name, 90), {"first": "second", "second": "first"}[taken])
                self.assert_no_node_over()
                self.api.delete("pods", name)

    def test_budgets_are_not_forgotten(self):
        """While nothing is known of budgets, nobody is evicted against one."""
        self.create("priorityclasses", priority_class("refill-low", 1), priority_class("refill-high", 100))
        self.create("nodes", node("guarded", cpu="1"), node("free", cpu="1"))
        self.create("poddisruptionbudgets", budget("keep", {"app": "guarded"}, minAvailable=1))
        self.start()
        self.create("pods", *(
            pod(name, cpu="1", labels={"app": name}, priority_class="refill-low", nodeSelector={"kubernetes.io/hostname": name})
            for name in ("guarded", "free")
        ))
        self.wait_bound("guarded")
        self.wait_bound("free")
        # Nobody counts who is available: to the budget it is as if none were, and so none may go.
        self.spoil(404, "poddisruptionbudgets")
        self.create("pods", pod("urgent", cpu="1", priority_class="refill-high"))
        self.create("pods", pod("touch", cpu="1", nodeSelector={"colour": "blue"}))
        self.heal()
        wait("one is evicted", lambda: self.evicted(), 90)
        self.assertEqual(self.evicted(), ["free"])
        self.assertIsNone(condition(self.pod("guarded"), "DisruptionTarget"))

    def evicted(self):
        return [name for name in ("guarded", "free")
                if not self.pod(name) or self.pod(name)["metadata"].get("deletionTimestamp")]
