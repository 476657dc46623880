"""Bindings whose end the scheduler does not learn, or learns wrongly. Whatever it is told, no pod is bound twice, and no room is
given away that a bound pod has."""

import threading
import time

from harness.case import Case, ours_only
from harness.extender import Extender
from harness.meddler import Turn
from harness.objects import node, node_of, pod, priority_class
from harness.processes import wait

BACKOFF = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
# How the answer to a binding is spoilt.
WAYS = {
    "error-429": lambda turn: turn.answer(429),
    "error-500": lambda turn: turn.answer(500),
    "error-503": lambda turn: turn.answer(503),
    "error-504": lambda turn: turn.answer(504),
    "conflict": lambda turn: turn.answer(409),
    "hangs-up": Turn.hang_up,
    "silence": Turn.say_nothing,
}
# It is asked again and again whether the room is still taken, for longer than a pod that failed waits for its next attempt.
ASKING_SECONDS = 2.5


class Bindings(Case):
    audit = True

    def asked(self, name):
        """The bindings of a pod that kube-apiserver was asked for, whatever came of them."""
        return [event for event in self.cluster.audited(verb="create", subresource="binding") if event["objectRef"]["name"] == name]

    def assert_full(self, *places, shrunk=False):
        """Each of these nodes has no room: pods that come now are refused, and so are those that came before."""
        deadline, number = time.monotonic() + ASKING_SECONDS, 0
        while time.monotonic() < deadline:
            number += 1
            names = {f"{place}-asks-{number}": place for place in places}
            self.create("pods", *(self.pod_for(place, name) for name, place in names.items()))
            for name in names:
                self.wait_event(name, "FailedScheduling", seconds=15)
            self.api.delete("pods", *names)
        if not shrunk:
            self.assert_no_node_over()

    def pod_for(self, place, name, **options):
        """A pod that fills a node, and fits no other."""
        return pod(name, cpu="1", nodeSelector={"kubernetes.io/hostname": place}, **options)

    def assert_bound_once(self, name):
        # The audit log is written after the binding, and the watch may tell first.
        wait(f"the binding of {name} is in the audit log", lambda: self.asked(name))
        self.assertEqual(len(self.asked(name)), 1, f"bindings of {name}")

    def test_it_took_effect_and_is_answered_otherwise(self):
        """By an error, late; by the end of the connection; or never. The watch has told of the pod before."""
        self.create("nodes", *(node(way, cpu="1") for way in WAYS))
        wire, release, answered = self.meddler(), threading.Event(), set()

        def rule(request):
            for way, spoil in WAYS.items():
                if request.binds(f"{way}-first"):
                    def late(turn):
                        turn.forward().read()
                        release.wait(60)
                        answered.add(way)
                        spoil(turn)
                    return late

        wire.rule = rule
        self.addCleanup(release.set)
        self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", *(self.pod_for(way, f"{way}-first") for way in WAYS))
        for way in WAYS:
            self.wait_bound(f"{way}-first")
        self.create("pods", *(self.pod_for(way, f"{way}-second") for way in WAYS))
        for way in WAYS:
            self.wait_event(f"{way}-second", "FailedScheduling")
        release.set()
        wait("all are answered", lambda: answered == set(WAYS))
        self.assert_full(*WAYS)
        for way in WAYS:
            with self.subTest(way):
                self.assertIsNone(node_of(self.pod(f"{way}-second")))
                self.assert_bound_once(f"{way}-first")
        # The room is not lost either.
        self.api.delete("pods", *(f"{way}-first" for way in WAYS))
        for way in WAYS:
            with self.subTest(way):
                self.assertEqual(self.wait_bound(f"{way}-second", 20), way)
                self.assert_bound_once(f"{way}-second")

    def test_it_did_not_take_effect(self):
        """What failed is tried again, and the room that was kept for the pod is its own."""
        ways = [way for way in WAYS if way != "silence"]
        self.create("nodes", *(node(way, cpu="1") for way in ways))
        wire, met = self.meddler(), set()

        def rule(request):
            for way in ways:
                if request.binds(f"{way}-failed") and way not in met:
                    met.add(way)
                    return WAYS[way]

        wire.rule = rule
        self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", *(self.pod_for(way, f"{way}-failed") for way in ways))
        for way in ways:
            with self.subTest(way):
                self.assertEqual(self.wait_bound(f"{way}-failed", 30), way)
                self.assertEqual(self.cluster.bindings()[f"{way}-failed"], 1)
        self.assertEqual(met, set(ways))
        self.assert_full(*ways)

    @ours_only
    def test_the_watch_is_late_as_well(self):
        """An error comes at once, and the watch, which knows better, does not. The pod is read before its room is given away; while
        that fails, the room stays taken."""
        self.create("priorityclasses", priority_class("first", 10))
        ways = [way for way in WAYS if way != "silence"]
        wire, told, meddling = self.meddler(), threading.Event(), threading.Event()
        told.set()
        reads = {way: 0 for way in ways}

        def rule(request):
            if request.reads("pods") and request.watches:
                return lambda turn: turn.pass_on(told)
            for way in ways:
                if request.binds(f"{way}-blind") and meddling.is_set():
                    def spoil(turn):
                        told.clear()
                        turn.forward().read()
                        WAYS[way](turn)
                    return spoil
                if request.method == "GET" and request.path.endswith(f"/pods/{way}-blind"):
                    reads[way] += 1
                    if reads[way] == 1:
                        return lambda turn: turn.answer(500)

        wire.rule = rule
        self.addCleanup(told.set)
        scheduler = self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", *(self.pod_for(way, f"{way}-next") for way in ways))
        self.create("pods", *(self.pod_for(way, f"{way}-blind", priority_class="first") for way in ways))
        for way in ways:
            self.wait_event(f"{way}-next", "FailedScheduling")
            self.wait_event(f"{way}-blind", "FailedScheduling")
        meddling.set()
        self.create("nodes", *(node(way, cpu="1") for way in ways))

        def settled():
            return all(reads[way] >= 2 or self.asked(f"{way}-next") for way in ways)

        wait("the pods are read, or their room is given away", settled, 30, say=lambda: reads)
        told.set()
        self.assert_full(*ways)
        for way in ways:
            with self.subTest(way):
                self.assertEqual(node_of(self.pod(f"{way}-blind")), way)
                self.assertIsNone(node_of(self.pod(f"{way}-next")))
                self.assert_bound_once(f"{way}-blind")
        self.assertTrue(scheduler.process.running)

    @ours_only
    def test_a_gateway_gives_up_and_the_binding_comes_later(self):
        """It answers for kube-apiserver at once, and forwards the binding two seconds later. The pod is not bound when it is read in
        between; its room stays taken all the same."""
        codes = (408, 500, 502, 503, 504)
        self.create("nodes", *(node(f"late-{code}", cpu="1") for code in codes))
        wire, met, made = self.meddler(), set(), set()

        def rule(request):
            for code in codes:
                if request.binds(f"late-{code}-first") and code not in met:
                    met.add(code)

                    def late(turn):
                        # Whatever else is asked has a connection of its own.
                        turn.handler.close_connection = True
                        turn.answer(code, Connection="close")
                        time.sleep(2)
                        turn.forward().read()
                        made.add(code)
                    return late

        wire.rule = rule
        self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", *(self.pod_for(f"late-{code}", f"late-{code}-first") for code in codes))
        wait("the gateway has given up", lambda: met == set(codes))
        self.create("pods", *(self.pod_for(f"late-{code}", f"late-{code}-second") for code in codes))
        wait("the bindings are made", lambda: made == set(codes))
        for code in codes:
            with self.subTest(code):
                self.assertEqual(self.wait_bound(f"late-{code}-first"), f"late-{code}")
                self.wait_event(f"late-{code}-second", "FailedScheduling")
        self.assert_full(*(f"late-{code}" for code in codes))
        for code in codes:
            self.assertIsNone(node_of(self.pod(f"late-{code}-second")))
            self.assert_bound_once(f"late-{code}-first")

    def test_an_extender_binds_and_reports_an_error(self):
        """It binds, waits until the watch has told of it, and answers with an error."""
        self.create("nodes", node("extended", cpu="1"))

        def bind(request):
            self.api.bind(request["PodName"], request["Node"], request["PodNamespace"])
            if request["PodName"] == "extended-first":
                time.sleep(1)
                answered.set()
                return {"Error": "late"}
            return {}

        answered = threading.Event()
        extender = Extender(bind=bind)
        self.addCleanup(extender.die)
        entry = {"urlPrefix": extender.url, "bindVerb": "bind", "httpTimeout": "5s", "nodeCacheCapable": True}
        self.start_scheduler({**BACKOFF, "extenders": [entry]})
        self.create("pods", self.pod_for("extended", "extended-first"))
        self.wait_bound("extended-first")
        self.create("pods", self.pod_for("extended", "extended-second"))
        self.wait_event("extended-second", "FailedScheduling")
        self.assertTrue(answered.wait(10))
        self.assert_full("extended")
        self.assertIsNone(node_of(self.pod("extended-second")))
        self.assert_bound_once("extended-first")
        self.assertEqual(len([each for each in extender.asked("bind") if each["PodName"] == "extended-first"]), 1)
        self.api.delete("pods", "extended-first")
        self.assertEqual(self.wait_bound("extended-second", 20), "extended")

    def held(self, wire, name):
        """Holds the first binding of a pod. Gives what says that it is there, and what lets it go."""
        there, go = threading.Event(), threading.Event()

        def hold(turn):
            there.set()
            go.wait(60)
            turn.pass_on()

        wire.rule = lambda request: hold if request.binds(name) and not there.is_set() else None
        self.addCleanup(go.set)
        return there, go

    def test_a_pod_is_recreated_while_it_is_bound(self):
        """The binding was meant for the one that is gone. The other of that name goes where it belongs, and the room that was kept for
        the first is free."""
        self.create("nodes", node("left", cpu="1"), node("right", cpu="1"))
        wire = self.meddler()
        there, go = self.held(wire, "twin")
        self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", self.pod_for("left", "twin"))
        self.assertTrue(there.wait(20))
        self.api.delete("pods", "twin")
        self.create("pods", self.pod_for("right", "twin"))
        go.set()
        self.assertEqual(self.wait_bound("twin", 20), "right")
        self.create("pods", self.pod_for("left", "left-next"))
        self.assertEqual(self.wait_bound("left-next", 20), "left")
        self.assert_full("left", "right")
        self.assertEqual(self.cluster.bindings()["twin"], 1)

    def test_a_node_goes_and_comes_back_smaller_while_a_pod_is_bound_to_it(self):
        """The pod is on it all the same, and nothing more fits beside it."""
        self.create("nodes", node("shrinks", cpu="1"))
        wire = self.meddler()
        there, go = self.held(wire, "large")
        self.start_scheduler(BACKOFF, port=wire.port)
        self.create("pods", self.pod_for("shrinks", "large"))
        self.assertTrue(there.wait(20))
        self.api.delete("nodes", "shrinks")
        self.create("nodes", node("shrinks", cpu="500m"))
        go.set()
        self.assertEqual(self.wait_bound("large", 20), "shrinks")
        on_it = {"kubernetes.io/hostname": "shrinks"}
        for number in range(2):
            self.create("pods", pod(f"small-{number}", cpu="200m", nodeSelector=on_it))
            self.wait_event(f"small-{number}", "FailedScheduling")
        self.assert_full("shrinks", shrunk=True)
        for number in range(2):
            self.assertIsNone(node_of(self.pod(f"small-{number}")))
        self.api.delete("pods", "large")
        for number in range(2):
            self.assertEqual(self.wait_bound(f"small-{number}", 20), "shrinks")
        self.assertEqual(self.cluster.bindings()["large"], 1)
