"""Connections that stay open and carry nothing. The kernel at their other end goes on acknowledging, as that of a frozen API server
or of a balancer does, so no keepalive of TCP notices."""

import time

from harness.case import Case
from harness.objects import nodes, node_of, pod
from harness.processes import wait

# client-go's HTTP/2 gives a silent connection up after 45 s.
SECONDS = 60
# Longer than anything may be silent, and than a bookmark takes to come.
IDLE_SECONDS = 80
ELECTION = {"leaderElection": {"leaderElect": True}}


class Silence(Case):
    audit = True

    def test_watches_and_lease(self):
        """One that leads, with the lease of a real cluster, and one that stands by with good connections. The next pod is bound in
        time, by either; the lease is kept or handed over; and nothing is bound twice."""
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")
        self.create("nodes", *nodes(2))
        wire = self.proxy()
        self.start_scheduler(ELECTION, "first", ready=None, port=wire.port)
        wait("the first has the lease", lambda: self.lease().get("holderIdentity"), 20)
        self.start_scheduler(ELECTION, "second", ready="/healthz")
        self.create("pods", pod("before"))
        self.wait_bound("before")
        wire.silence()
        silent = time.monotonic()
        self.create("pods", *(pod(f"after-{number}") for number in range(5)))
        for number in range(5):
            self.wait_bound(f"after-{number}", SECONDS)
        self.assertLessEqual(time.monotonic() - silent, SECONDS)
        renewed = self.lease()["renewTime"]
        wait("the lease is renewed", lambda: self.lease()["renewTime"] > renewed and self.lease().get("holderIdentity"), 30)
        self.assertTrue(all(times == 1 for times in self.cluster.bindings().values()))

    def lease(self):
        lease = self.api.get("leases", "kube-scheduler", "kube-system")
        return lease["spec"] if lease else {}


class SilenceWithoutElection(Case):
    audit = True

    def test_watches(self):
        """Whatever was under way on them, too: a pod that is created, a pod that goes, a node that changes."""
        self.create("nodes", *nodes(1, cpu="1"))
        wire = self.proxy()
        scheduler = self.start_scheduler(port=wire.port)
        self.create("pods", pod("before", cpu="1"))
        self.wait_bound("before")
        self.create("pods", pod("waiting", cpu="1"))
        self.wait_event("waiting", "FailedScheduling")
        wire.silence()
        silent = time.monotonic()
        self.api.delete("pods", "before")
        self.assertEqual(self.wait_bound("waiting", SECONDS), "node-000")
        self.assertLessEqual(time.monotonic() - silent, SECONDS)
        self.assertTrue(scheduler.process.running)
        # And again, now that it has new connections.
        self.create("pods", pod("next", cpu="1"))
        self.wait_event("next", "FailedScheduling")
        self.assertIsNone(node_of(self.pod("next")))
        self.assert_no_node_over()


class SilenceWithoutBookmarks(Case):
    audit = "reads"
    watch_cache = False

    def test_watches_that_are_quiet_and_watches_that_are_dead(self):
        """Without its cache kube-apiserver sends no bookmarks: a watch of a kind that does not change carries nothing for minutes,
        and that is well. It is not listed again for that; a connection that is dead is noticed all the same."""
        self.create("nodes", *nodes(2))
        wire = self.proxy()
        profile = {"profiles": [{"schedulerName": "cut-off"}]}
        self.start_scheduler(name="quiet")
        quiet = time.monotonic()
        self.start_scheduler(profile, name="cut-off", port=wire.port, user="second")
        self.create("pods", pod("before"), pod("before-cut-off", schedulerName="cut-off"))
        self.wait_bound("before")
        self.wait_bound("before-cut-off")
        listed = self.lists()
        self.assertIn("nodes", listed)
        wire.silence()
        silent = time.monotonic()
        self.create("pods", pod("after-cut-off", schedulerName="cut-off"))
        self.wait_bound("after-cut-off", SECONDS)
        self.assertLessEqual(time.monotonic() - silent, SECONDS)
        wait("the quiet one has been quiet for long enough", lambda: time.monotonic() - quiet > IDLE_SECONDS, IDLE_SECONDS + 5)
        self.assertEqual(self.lists(), listed)
        self.create("pods", pod("after"))
        self.wait_bound("after")

    def lists(self):
        """How often the quiet scheduler has listed each kind, by a list or by a watch that begins with one."""
        counts = {}
        for event in self.cluster.audited("scheduler"):
            streamed = "sendInitialEvents=true" in event["requestURI"] and event["stage"] == "ResponseStarted"
            if event["verb"] == "list" or streamed:
                resource = event["objectRef"]["resource"]
                counts[resource] = counts.get(resource, 0) + 1
        return counts
