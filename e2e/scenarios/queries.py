"""A score by what a real Prometheus says: the program of examples/by-load. Prometheus is stopped, restarted and frozen, and what it scrapes lies."""

import signal
import unittest

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod
from harness.processes import wait
from harness.prometheus import Page, Prometheus

BY_LOAD = settings.EXAMPLES / "by-load"


class Target(Page):
    """What Prometheus scrapes: the loads of nodes."""

    def loads(self, **loads):
        self.say(*(f'node_load{{node="{name}"}} {load}' for name, load in loads.items()))


@ours_only
@unittest.skipUnless(BY_LOAD.exists(), f"{BY_LOAD} is not there: run `cargo build` in examples")
class Queries(Case):
    def setUp(self):
        super().setUp()
        self.target = Target()
        self.addCleanup(self.target.close)
        self.server = Prometheus(self.folder, [self.target.address])
        self.create("nodes", node("a"), node("b"))
        self.pods = 0

    def start_prometheus(self):
        self.prometheus = self.server.start()
        self.addCleanup(self.prometheus.kill)

    def start_by_load(self, expression="node_load"):
        args = {"prometheus": {"url": self.server.url}, "expression": expression, "label": "node", "interval": "500ms"}
        self.scheduler = self.start_scheduler({"profiles": [{
            "schedulerName": "load-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "ByLoad", "weight": 100}]}},
            "pluginConfig": [{"name": "ByLoad", "args": args}],
        }]}, binary=BY_LOAD)

    def facts(self):
        return self.scheduler.metric("supercargo_query_facts", query="load")

    def wait_facts(self, count, seconds=20):
        say = lambda: f"{self.facts()}; {self.scheduler.get('/readyz?verbose')[1]}; {self.prometheus.tail(5)}"
        wait(f"there are {count} facts", lambda: self.facts() == count, seconds, say=say)

    def answers(self, result):
        return self.scheduler.metric("supercargo_query_answers_total", query="load", result=result) or 0

    def wait_answers(self, result, more=2):
        """So many more answers of this kind come."""
        before = self.answers(result)
        wait(f"answers are {result}", lambda: self.answers(result) >= before + more, 20,
             say=lambda: self.scheduler.get("/readyz?verbose")[1])

    def left_out(self, reason):
        return self.scheduler.metric("supercargo_query_left_out_total", query="load", reason=reason) or 0

    def place(self):
        """Where a new pod goes; it goes somewhere within a second."""
        self.pods += 1
        name = f"web-{self.pods}"
        return self.assert_bound_within(1, name, lambda: self.create("pods", pod(name, schedulerName="load-scheduler")))

    def wait_place(self, expected):
        """New pods go there, soon: Prometheus scrapes, and is asked, a moment later."""
        wait(f"pods go to {expected}", lambda: self.place() == expected, 20)
        for _ in range(3):
            self.assertEqual(self.place(), expected)

    def readyz_line(self):
        code, text = self.scheduler.get("/readyz?verbose")
        self.assertEqual(code, 200, text)
        lines = [line for line in text.splitlines() if line.startswith("[i]query load: ")]
        self.assertEqual(len(lines), 1, text)
        return lines[0]

    def test_pods_go_by_what_prometheus_says_while_it_says_something(self):
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.start_by_load()
        self.wait_facts(2)
        self.wait_place("b")
        self.target.loads(a=0.1, b=0.9)
        self.wait_place("a")
        self.assertRegex(self.readyz_line(), r"2 facts, answered \d+ s ago$")

        # Killed: its facts are gone as soon as they are too old, and pods go on without them.
        self.prometheus.kill()
        self.wait_facts(0)
        self.wait_answers("unreachable")
        self.place()
        self.assertRegex(self.readyz_line(), r"failed \d+ times since: .*refused")
        log = self.scheduler.process.text()
        self.assertIn("A query has no answer; its facts stay until they are too old", log)
        self.assertIn("Facts are too old and dropped; plugins go on without them", log)

        # Restarted: it counts again.
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.wait_facts(2)
        self.wait_place("b")
        wait("the log says that it answers", lambda: "A query is answered again" in self.scheduler.process.text())

    def test_a_prometheus_that_is_frozen_holds_no_pod_up(self):
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.start_by_load()
        self.wait_facts(2)
        self.prometheus.signal(signal.SIGSTOP)
        self.addCleanup(self.prometheus.signal, signal.SIGCONT)
        for _ in range(5):
            self.place()
        self.wait_facts(0)
        wait("the answer is too late", lambda: self.answers("timeout") >= 1, 20)
        self.place()
        self.prometheus.signal(signal.SIGCONT)
        self.wait_facts(2)
        self.wait_place("b")

    def test_lies_count_for_nothing(self):
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.start_by_load()
        self.wait_facts(2)
        self.wait_place("b")
        lies = [
            ("not finite", ['node_load{node="a"} NaN', 'node_load{node="b"} +Inf']),
            ("unknown node", ['node_load{node="a.example.com"} 0.9', 'node_load{node="10.0.0.1:9100"} 0.1']),
            ("duplicate", [f'node_load{{node="{name}",disk="{disk}"}} 0.{disk}' for name in "ab" for disk in (1, 2)]),
            ("no node", ["node_load 0.5", 'node_load{host="a"} 0.9']),
        ]
        for reason, lines in lies:
            with self.subTest(reason):
                before = self.left_out(reason)
                self.target.say(*lines)
                self.wait_facts(0)
                wait(f"{reason} is counted", lambda: self.left_out(reason) > before)
                self.place()
                self.target.loads(a=0.9, b=0.1)
                self.wait_facts(2)
                self.wait_place("b")
        # A target that is gone, or answers nonsense, is none that Prometheus knows anything of.
        self.target.say("<html>Log in</html>")
        self.wait_facts(0)
        self.place()
        self.target.loads(a=0.1, b=0.9)
        self.wait_place("a")

    def test_an_expression_that_is_wrong_is_told(self):
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.start_by_load("node_load{")
        self.wait_answers("refused")
        self.place()
        self.assertRegex(self.readyz_line(), "no answer in .* 400 Bad Request: .*parse error")
        self.assertEqual(self.facts(), 0)

    def test_what_its_target_does_not_say_any_more_is_gone(self):
        self.target.loads(a=0.9, b=0.1)
        self.start_prometheus()
        self.start_by_load()
        self.wait_facts(2)
        # Prometheus repeats for five minutes what a target said that it cannot reach, but marks what a target left out.
        self.target.loads(a=0.1)
        self.wait_facts(1)
        self.wait_place("a")
        self.target.say("other 1")
        self.wait_facts(0)
        self.place()
