"""Two schedulers and one node: each gives it away without knowing of the other, and nobody between them notices. One scheduler with two
profiles does not."""

import threading

from harness.case import Case
from harness.meddler import Turn
from harness.objects import milli, node, node_of, pod


class TwoSchedulers(Case):
    def setUp(self):
        super().setUp()
        self.create("nodes", node("only", cpu="1"))
        self.held, self.let_go = threading.Event(), threading.Event()
        self.addCleanup(self.let_go.set)

    def hold_binding(self, name):
        """The port of an API server that takes its time with the binding of a pod: a moment, made as long as a test needs."""
        meddler = self.meddler()

        def hold(turn):
            self.held.set()
            self.let_go.wait()
            turn.pass_on()

        meddler.rule = lambda request: hold if request.binds(name) else Turn.pass_on
        return meddler.port

    def place_meanwhile(self, first, second):
        """A pod is given the node by one profile, and before that is written, a second pod is tried by another. Each needs more than half."""
        self.create("pods", pod("first", cpu="600m", schedulerName=first))
        self.assertTrue(self.held.wait(20), "the first pod is given the node")
        self.create("pods", pod("second", cpu="600m", schedulerName=second))

    def test_two_processes_give_one_node_away_twice(self):
        port = self.hold_binding("first")
        self.start_scheduler({"profiles": [{"schedulerName": "own"}]}, name="own", user="second", port=port)
        self.start_scheduler(name="default")
        self.place_meanwhile("own", "default-scheduler")
        self.wait_bound("second")
        self.let_go.set()
        self.wait_bound("first")
        # The API server has taken both. A kubelet would fail the one that it sees last: OutOfcpu.
        taken = sum(milli(each["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for each in self.api.list("pods"))
        self.assertEqual({node_of(each) for each in self.api.list("pods")}, {"only"})
        self.assertGreater(taken, 1000)

    def test_one_process_with_two_profiles_does_not(self):
        port = self.hold_binding("first")
        self.start_scheduler({"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "own"}]}, port=port)
        self.place_meanwhile("own", "default-scheduler")
        self.wait_event("second", "FailedScheduling")
        self.assertIn("Insufficient cpu", self.events("second", "FailedScheduling")[0]["note"])
        self.let_go.set()
        self.wait_bound("first")
        self.assertIsNone(node_of(self.pod("second")))
        self.assert_no_node_over()
