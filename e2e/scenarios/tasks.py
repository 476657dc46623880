"""A bug in one task of the process. Better none than half a scheduler: the process ends at once, and another one takes over.

Needs a binary that can be asked for a panic: SUPERCARGO_FAULTS names it, and `cargo build --features test-faults` builds it."""

import signal
import time
import unittest

from harness import settings
from harness.case import Case, ours_only
from harness.objects import nodes, pod
from harness.processes import wait

TASKS = ("driver", "performer", "election", "server", "reload", "watch of pods")
ELECTION = {"leaderElection": {"leaderElect": True, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}}
# The lease runs out, where it was not given back, and who waits looks now and then.
TAKEOVER_SECONDS = 6


@ours_only
@unittest.skipUnless(settings.FAULTY, "SUPERCARGO_FAULTS names no binary with the feature test-faults")
class Tasks(Case):
    audit = True

    def test_the_end_of_any_task_is_the_end_of_the_process(self):
        self.create("nodes", *nodes(2))
        for task in TASKS:
            with self.subTest(task):
                self.end(task)

    def end(self, task):
        name = task.replace(" ", "-")
        environment = {"SUPERCARGO_TEST_FAULT_TASK": task}
        first = self.start_scheduler(ELECTION, f"first-{name}", None, binary=settings.FAULTY, environment=environment)
        wait("the first has the lease", self.holder, 15)
        first.wait_for("/readyz")
        second = self.start_scheduler(ELECTION, f"second-{name}", "/healthz")
        self.create("pods", pod(f"before-{name}"))
        self.wait_bound(f"before-{name}")
        first.process.signal(signal.SIGUSR1)
        asked = time.monotonic()
        wait("the process ends", lambda: not first.process.running, 5)
        self.assertLessEqual(time.monotonic() - asked, 1)
        self.assertNotEqual(first.process.child.returncode, 0)
        self.assertIn(task, first.process.tail(10))
        self.create("pods", pod(f"after-{name}"))
        self.wait_bound(f"after-{name}", TAKEOVER_SECONDS)
        self.assertTrue(all(times == 1 for times in self.cluster.bindings().values()))
        second.process.kill()
        self.api.delete("leases", "kube-scheduler", namespace="kube-system")

    def holder(self):
        lease = self.api.get("leases", "kube-scheduler", "kube-system")
        return lease and lease["spec"].get("holderIdentity")
