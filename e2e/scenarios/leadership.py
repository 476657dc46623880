"""Two replicas, one lease: one works, the other stands by and takes over, and no pod is bound twice or forgotten."""

import signal
import time

from harness import settings
from harness.case import Case, ours_only
from harness.cluster import seconds_of
from harness.objects import nodes, pod
from harness.processes import wait

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 3, 2, 0.5
ELECTION = {"leaderElection": {
    "leaderElect": True, "leaseDuration": f"{LEASE_SECONDS}s", "renewDeadline": f"{RENEW_SECONDS}s",
    "retryPeriod": f"{RETRY_SECONDS}s",
}}
# Who waits looks every retry period, and by chance up to 1.2 times that later.
LOOK_SECONDS = 2.2 * RETRY_SECONDS
# What a lease takes to run out for one who saw the last renewal late and looks late again.
EXPIRY_SECONDS = LEASE_SECONDS + 2 * LOOK_SECONDS
# For this machine.
SLACK_SECONDS = 1
PODS = 300


class Leadership(Case):
    audit = True

    def setUp(self):
        super().setUp()
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")

    def lease(self):
        lease = self.api.get("leases", "kube-scheduler", "kube-system")
        return lease["spec"] if lease else {}

    def holder(self):
        return self.lease().get("holderIdentity")

    def start_pair(self, config=None, **first):
        """A leader, and one that waits, which the audit log knows by another name."""
        leader = self.start_scheduler({**ELECTION, **(config or {})}, "first", ready=None, **first)
        identity = wait("the first has the lease", self.holder, 15)
        standby = self.start_scheduler(ELECTION, "second", ready="/healthz", user="second")
        return leader, standby, identity

    def writes(self, user, since=0):
        """What a scheduler has asked to be changed since then, whatever came of it. Who may read its pages is not a change."""
        found = []
        for event in self.cluster.audited(user):
            what = event.get("objectRef", {})
            if not what.get("resource", "").endswith("reviews") and seconds_of(event) >= since:
                found.append((event["verb"], what.get("resource"), what.get("subresource"), what.get("name"), event["requestURI"]))
        return found

    def wait_taken_over(self, identity, since, seconds):
        wait("the second has the lease", lambda: self.holder() not in (identity, "", None), seconds + 10, say=self.lease)
        self.assertLessEqual(time.monotonic() - since, seconds, "that is when the lease was taken over")

    def assert_each_bound_once(self, prefix, count):
        """No pod has two bindings that were answered with success. One that has none was being bound when the leader died: it is
        bound, but the answer found nobody."""
        answered = self.cluster.bindings()
        asked = {event["objectRef"]["name"] for event in self.cluster.audited(verb="create", subresource="binding")}
        for number in range(count):
            name = f"{prefix}-{number:03}"
            self.assertLessEqual(answered.get(name, 0), 1, name)
            self.assertIn(name, asked)

    def test_the_leader_is_killed(self):
        """kill -9 in the middle of a drain: the lease must run out first, as nobody gave it back."""
        self.create("nodes", *nodes(30, cpu="4"))
        slow = {**ELECTION, "clientConnection": {"qps": 60, "burst": 60}}
        leader = self.start_scheduler(slow, "first", ready=None)
        identity = wait("the first has the lease", self.holder, 15)
        self.start_scheduler(ELECTION, "second", ready="/healthz")
        pods = self.watch_pods()
        self.create("pods", *(pod(f"killed-{number:03}", cpu="300m") for number in range(PODS)))

        def some_but_not_all(now):
            bound = sum(1 for item in now.values() if item["spec"].get("nodeName"))
            return 20 <= bound

        pods.wait("some pods are bound", some_but_not_all, 30)
        leader.process.kill()
        killed = time.monotonic()
        left = sum(1 for item in self.api.list("pods") if not item["spec"].get("nodeName"))
        self.assertGreater(left, 0, "the drain was over before the leader was killed")
        self.wait_taken_over(identity, killed, EXPIRY_SECONDS + SLACK_SECONDS)
        self.wait_all_bound(pods, PODS, 60)
        self.assert_no_node_over()
        self.assert_each_bound_once("killed", PODS)

    def test_the_leader_is_asked_to_stop(self):
        """SIGTERM: it gives the lease back and ends without an error, so the other need not wait for it to run out."""
        self.create("nodes", *nodes(2))
        leader, _, identity = self.start_pair()
        transitions = self.lease().get("leaseTransitions", 0)
        self.assertEqual(leader.process.terminate(), 0)
        self.wait_taken_over(identity, time.monotonic(), LOOK_SECONDS + SLACK_SECONDS)
        self.assertGreater(self.lease()["leaseTransitions"], transitions)
        self.create("pods", pod("stopped-000"))
        self.wait_bound("stopped-000")

    def test_the_leader_is_cut_off(self):
        """A leader that cannot renew gives up before its lease runs out, and ends with an error."""
        self.create("nodes", *nodes(2))
        wire = self.proxy()
        leader, _, identity = self.start_pair(port=wire.port)
        wire.cut()
        cut = time.monotonic()
        wait("the leader gives up", lambda: not leader.process.running, RENEW_SECONDS + RETRY_SECONDS + 3)
        self.assertNotEqual(leader.process.child.returncode, 0)
        self.wait_taken_over(identity, cut, EXPIRY_SECONDS + SLACK_SECONDS)
        self.create("pods", *(pod(f"cut-{number:03}") for number in range(10)))
        self.wait_all_bound(self.watch_pods(), 10, 20)
        self.assert_each_bound_once("cut", 10)

    def test_the_leader_is_stopped_and_goes_on_later(self):
        """SIGSTOP in the middle of a drain, SIGCONT when another leads: it wakes up with bindings in its hands and a lease that was its
        own when it looked last. It ends, and nothing is bound twice."""
        self.create("nodes", *nodes(30, cpu="4"))
        leader, standby, identity = self.start_pair({"clientConnection": {"qps": 60, "burst": 60}})
        pods = self.watch_pods()
        self.create("pods", *(pod(f"paused-{number:03}", cpu="300m") for number in range(PODS)))
        pods.wait("some pods are bound", lambda now: 20 <= sum(1 for item in now.values() if item["spec"].get("nodeName")), 30)
        leader.process.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.addCleanup(leader.process.signal, signal.SIGCONT)
        self.wait_taken_over(identity, stopped, EXPIRY_SECONDS + SLACK_SECONDS)
        self.wait_all_bound(pods, PODS, 60)
        # There is more to do when it wakes up.
        self.create("pods", *(pod(f"later-{number:03}", cpu="10m") for number in range(20)))
        woken = time.time()
        leader.process.signal(signal.SIGCONT)
        wait("the one that was stopped ends", lambda: not leader.process.running, 15)
        self.assertNotEqual(leader.process.child.returncode, 0)
        self.wait_all_bound(pods, PODS + 20, 20)
        self.assertTrue(standby.process.running)
        self.assertNotEqual(self.holder(), identity)
        self.assert_no_node_over()
        self.assert_each_bound_once("paused", PODS)
        self.assert_each_bound_once("later", 20)
        if settings.SCHEDULER == "supercargo":
            # It knows until when it leads. kube-scheduler sends what was under way.
            self.assertEqual(self.writes("scheduler", woken), [])

    def test_a_standby_writes_nothing(self):
        """While the other works, fails, and waits."""
        self.create("nodes", *nodes(2))
        begun = time.time()
        _, standby, identity = self.start_pair()
        self.create("pods", pod("placed-000"), pod("refused", nodeSelector={"colour": "blue"}))
        self.wait_bound("placed-000")
        self.wait_event("refused", "FailedScheduling")
        self.create("nodes", *(item for item in nodes(4) if item["metadata"]["name"] > "node-001"))
        self.create("pods", *(pod(f"placed-{number:03}") for number in range(1, 20)))
        self.wait_all_bound_but("refused", 20)
        self.assertEqual(self.holder(), identity)
        self.assertTrue(standby.process.running)
        self.assertEqual(self.writes("second", begun), [])

    @ours_only
    def test_a_standby_that_reloads_writes_nothing(self):
        """Neither for pods whose profile went, nor for those that it would decide otherwise now."""
        self.create("nodes", *nodes(2))
        begun = time.time()
        both = {"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]}
        leader, standby, identity = self.start_pair(both)

        def reload(config, number):
            standby.configure({**ELECTION, **config})
            wait("the standby has reloaded",
                 lambda: (standby.metric("supercargo_config_reloads_total", result="success") or 0) >= number, 15)

        # The file is looked at once a second: each change has to be seen before the next.
        reload(both, 1)
        blue = {"colour": "blue"}
        self.create("pods", pod("refused-other", schedulerName="other", nodeSelector=blue), pod("refused", nodeSelector=blue))
        self.wait_event("refused-other", "FailedScheduling")
        self.wait_event("refused", "FailedScheduling")
        for number, config in enumerate(({}, both, {}), 2):
            reload(config, number)
        self.create("pods", pod("after"))
        self.wait_bound("after")
        self.assertEqual(self.holder(), identity)
        self.assertEqual(self.writes("second", begun), [])
        # It is one that would write if it led.
        self.assertEqual(leader.process.terminate(), 0)
        wait("it writes now", lambda: ("patch", "pods", "status") in [write[:3] for write in self.writes("second", begun)], 20,
             say=lambda: self.writes("second", begun))

    def wait_all_bound_but(self, name, count):
        def bound():
            names = [item["metadata"]["name"] for item in self.api.list("pods") if item["spec"].get("nodeName")]
            return len(names) == count and name not in names

        wait(f"{count} pods are bound", bound, 20)
