"""What a scenario starts from: a class with a cluster of its own, each test with its scheduler and a clean slate."""

import sys
import time
import unittest

from harness import settings
from harness.cluster import Cluster
from harness.meddler import Meddler
from harness.objects import condition, milli, node_of
from harness.processes import wait
from harness.proxy import Proxy
from harness.scheduler import Scheduler

ours_only = unittest.skipUnless(settings.SCHEDULER == "supercargo", "kube-scheduler has no such thing")


class Case(unittest.TestCase):
    # What the cluster of the class has; see Cluster.
    audit = False
    controllers = ()
    watch_cache = True
    # For a class with one large test: nothing comes after it that needs a clean slate.
    alone = False

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(audit=cls.audit, controllers=cls.controllers, watch_cache=cls.watch_cache)
        cls.addClassCleanup(cls.cluster.stop)
        cls.api = cls.cluster.client("admin")

    def setUp(self):
        self.folder = self.cluster.file(self._testMethodName)
        self.folder.mkdir()
        self.schedulers = []
        self.created = {"pods": [], "events": []}
        self.addCleanup(self.clean)

    # What there is.

    def create(self, kind, *objects):
        """Creates objects that are gone when the test ends."""
        self.created.setdefault(kind, []).extend(item["metadata"]["name"] for item in objects)
        return self.api.create(kind, *objects)

    def start_scheduler(self, config=None, name="scheduler", ready="/readyz", **options):
        """Starts one and waits until it answers. A scheduler that stands by is never ready: give it `/healthz`, or None."""
        scheduler = Scheduler(self.cluster, self.folder, name, config, **options)
        self.schedulers.append(scheduler)
        if ready:
            scheduler.wait_for(ready)
        return scheduler

    def proxy(self):
        proxy = Proxy(self.cluster.port)
        self.addCleanup(proxy.close)
        return proxy

    def meddler(self):
        meddler = Meddler(self.cluster)
        self.addCleanup(meddler.close)
        return meddler

    def watch_pods(self):
        watch = self.cluster.watch("pods")
        self.addCleanup(watch.stop)
        return watch

    def clean(self):
        for scheduler in self.schedulers:
            scheduler.process.kill()
        if self.alone:
            return
        for kind, names in self.created.items():
            # Kubernetes has some of its own.
            if kind in ("priorityclasses", "clusterrolebindings", "apiservices", "services"):
                self.api.delete(kind, *names)
            else:
                self.api.delete_all(kind)
        wait("all pods are gone", lambda: not self.api.list("pods"), 20)

    def logs(self):
        """What a person wants to read when a test failed."""
        parts = []
        if not hasattr(self, "schedulers"):
            return ""
        for scheduler in self.schedulers:
            parts.append(f"--- {scheduler.process.name}\n{scheduler.process.tail(40)}")
        parts.append(self.cluster.logs(10))
        return "\n".join(parts)

    # What is said about it.

    def pod(self, name):
        return self.api.get("pods", name)

    def events(self, name, reason=None):
        """The events about a pod, oldest first."""
        found = [event for event in self.api.list("events") if event["regarding"].get("name") == name]
        if reason:
            found = [event for event in found if event["reason"] == reason]
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def wait_event(self, name, reason, note=None, seconds=10):
        """An event about a pod; with `note`, one that says exactly that."""
        def found():
            for event in self.events(name, reason):
                if note is None or event["note"] == note:
                    return event
            return None

        def say():
            return "\n".join(["there are only these:", *(f"{event['reason']}: {event['note']}" for event in self.events(name))])

        return wait(f"{name} has the event {reason}: {note or ''}", found, seconds, say)

    def wait_bound(self, name, seconds=10):
        """The node that a pod is bound to, once it is."""
        return wait(f"{name} is bound", lambda: node_of(self.pod(name)), seconds, say=lambda: self.why(name))

    def why(self, name):
        pod = self.pod(name)
        notes = [f"{event['reason']}: {event['note']}" for event in self.events(name)]
        return "\n".join([str(pod and condition(pod, "PodScheduled")), *notes])

    def wait_unschedulable(self, name, message, seconds=10):
        """The pod has been refused, with this very text in condition and event."""
        self.wait_event(name, "FailedScheduling", message, seconds)

        def refused():
            said = condition(self.pod(name), "PodScheduled")
            return said and said["status"] == "False" and said.get("message") == message and said

        said = wait(f"{name} has the condition: {message}", refused, seconds, say=lambda: self.why(name))
        self.assertEqual(said["reason"], "Unschedulable")
        self.assertIsNone(node_of(self.pod(name)))
        return said

    def assert_bound_within(self, seconds, name, action):
        """A pending pod is bound that soon after an action has been answered."""
        with self.cluster.watch("pods") as pods:
            action()
            acted = time.monotonic()
            pods.wait(f"{name} is bound", lambda now: name in now and node_of(now[name]), 20, say=lambda _: self.why(name))
            took = pods.when(name, node_of) - acted
        self.assertLessEqual(took, seconds, f"{name} was bound {took:.2f} s after it could be")
        return node_of(self.pod(name))

    def wait_all_bound(self, watch, count, seconds):
        def bound(now):
            return len(now) >= count and all(node_of(pod) for pod in now.values())

        def say(now):
            pending = [name for name, pod in now.items() if not node_of(pod)]
            return f"{len(now) - len(pending)} of {count} are, not {pending[:5]}: {self.why(pending[0]) if pending else ''}"

        watch.wait("all pods are bound", bound, seconds, say)

    def assert_no_node_over(self):
        """No node has more pods or CPU asked of it than it has."""
        rooms = {node["metadata"]["name"]: node["status"]["allocatable"] for node in self.api.list("nodes")}
        cpu, count = {}, {}
        for pod in self.api.list("pods"):
            name = node_of(pod)
            if name:
                requests = [container["resources"].get("requests", {}) for container in pod["spec"]["containers"]]
                cpu[name] = cpu.get(name, 0) + sum(milli(request.get("cpu", "0")) for request in requests)
                count[name] = count.get(name, 0) + 1
        for name in count:
            self.assertLessEqual(cpu[name], milli(rooms[name]["cpu"]), f"CPU of {name}")
            self.assertLessEqual(count[name], int(rooms[name]["pods"]), f"pods of {name}")


class Result(unittest.TextTestResult):
    """Prints the logs where a test fails, and how long each took."""

    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok ({time.monotonic() - self.started:.1f} s)")
        self.stream.flush()

    def addError(self, test, err):
        super().addError(test, err)
        self.explain(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.explain(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.explain(test)

    def explain(self, test):
        if hasattr(test, "logs"):
            print(f"\n=== logs of {test.id()}\n{test.logs()}\n===", file=sys.stderr)
