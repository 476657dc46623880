"""A gated pod is not looked at; when its last gate goes, it is scheduled at once."""

from harness.case import Case
from harness.objects import condition, node, node_of, pod
from harness.processes import wait


class Gates(Case):
    def test_a_pod_waits_for_its_last_gate(self):
        self.create("nodes", node("only"))
        scheduler = self.start_scheduler()
        gates = [{"name": "example.com/quota"}, {"name": "example.com/data"}]
        self.create("pods", pod("gated", schedulingGates=gates))
        # Those who come later pass it by: it has been seen, and left alone.
        self.create("pods", pod("free"))
        self.wait_bound("free")
        wait("the gated pod is counted as such", lambda: pending(scheduler, "gated") == 1)
        said = condition(self.pod("gated"), "PodScheduled")
        self.assertEqual((said["status"], said["reason"]), ("False", "SchedulingGated"))

        self.api.patch("pods", "gated", {"spec": {"schedulingGates": [gates[1]]}})
        self.create("pods", pod("free-too"))
        self.wait_bound("free-too")
        self.assertIsNone(node_of(self.pod("gated")))

        self.assert_bound_within(1, "gated", lambda: self.api.patch("pods", "gated", {"spec": {"schedulingGates": None}}))
        self.assertEqual([event["reason"] for event in self.wait_all_events("gated", 1)], ["Scheduled"])
        wait("no pod is counted as gated", lambda: pending(scheduler, "gated") == 0)

    def wait_all_events(self, name, count):
        return wait(f"{name} has {count} events", lambda: len(found := self.events(name)) >= count and found)


def pending(scheduler, queue):
    return scheduler.metric("scheduler_pending_pods", queue=queue)
