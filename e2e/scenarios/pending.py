"""A pod that fits nowhere says why in kube-scheduler's own words, and goes as soon as something frees it."""

from harness.case import Case, ours_only
from harness.meddler import Turn
from harness.objects import condition, node, node_of, pod, taint
from harness.processes import wait

# How a request to write a condition fails, once. None of these is tried again at once.
WAYS = {
    "hangs-up": Turn.hang_up,
    "error-403": lambda turn: turn.answer(403),
    "error-429": lambda turn: turn.answer(429),
    "error-504": lambda turn: turn.answer(504),
}


class Pending(Case):
    # Of four nodes each lacks something else. Only of the one that another pod fills could preemption have made anything.
    REASONS = (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/4 nodes are available: "
        "1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
    )

    def test_event_and_condition_say_what_each_node_lacks(self):
        self.create(
            "nodes",
            node("full", labels={"disk": "ssd"}),
            node("forgetful", memory="1Gi", labels={"disk": "ssd"}),
            node("tainted", labels={"disk": "ssd"}, taints=[taint("dedicated", value="batch")]),
            node("unlabelled"),
        )
        self.create("pods", pod("resident", cpu="3", nodeName="full"))
        self.start_scheduler()
        made, = self.create("pods", pod("web", cpu="2", memory="2Gi", nodeSelector={"disk": "ssd"}))
        said = self.wait_unschedulable("web", self.REASONS)
        self.assertEqual(said["observedGeneration"], made["metadata"]["generation"])
        event = self.wait_event("web", "FailedScheduling")
        self.assertEqual((event["type"], event["action"]), ("Warning", "Scheduling"))
        self.assertEqual(event["reportingController"], "default-scheduler")
        self.assertEqual(event["regarding"]["kind"], "Pod")
        self.assertEqual(event["regarding"]["uid"], made["metadata"]["uid"])

    def test_a_cluster_without_nodes(self):
        self.start_scheduler()
        self.create("pods", pod("web"))
        self.wait_unschedulable("web", "no nodes available to schedule pods")

    def test_a_node_that_comes_frees_it(self):
        self.create("nodes", node("small", cpu="1"))
        self.start_scheduler()
        self.create("pods", pod("web", cpu="2"))
        self.wait_unschedulable("web", message(1, "Insufficient cpu", "Preemption is not helpful for scheduling"))
        where = self.assert_bound_within(1, "web", lambda: self.create("nodes", node("large", cpu="4")))
        self.assertEqual(where, "large")
        said = condition(self.pod("web"), "PodScheduled")
        self.assertEqual(said["status"], "True")
        self.wait_event("web", "Scheduled", "Successfully assigned default/web to large")

    def test_a_pod_that_goes_frees_it(self):
        self.create("nodes", node("only", cpu="2"))
        self.start_scheduler()
        self.create("pods", pod("first", cpu="2"))
        self.wait_bound("first")
        self.create("pods", pod("second", cpu="2"))
        self.wait_unschedulable("second", message(1, "Insufficient cpu", "No preemption victims found for incoming pod"))
        self.assert_bound_within(1, "second", lambda: self.api.delete("pods", "first"))

    def test_a_taint_that_goes_frees_it(self):
        self.create("nodes", node("only", taints=[taint("maintenance")]))
        self.start_scheduler()
        self.create("pods", pod("web"))
        self.wait_unschedulable("web", message(1, "node(s) had untolerated taint(s)", "Preemption is not helpful for scheduling"))
        self.assert_bound_within(1, "web", lambda: self.api.patch("nodes", "only", {"spec": {"taints": None}}))

    def test_a_label_that_comes_frees_it(self):
        self.create("nodes", node("only"))
        self.start_scheduler()
        self.create("pods", pod("web", nodeSelector={"disk": "ssd"}))
        reason = "node(s) didn't match Pod's node affinity/selector"
        self.wait_unschedulable("web", message(1, reason, "Preemption is not helpful for scheduling"))
        label = {"metadata": {"labels": {"disk": "ssd"}}}
        self.assert_bound_within(1, "web", lambda: self.api.patch("nodes", "only", label))

    def test_a_cordon_that_is_lifted_frees_it(self):
        self.create("nodes", node("only"))
        self.api.patch("nodes", "only", {"spec": {"unschedulable": True}})
        self.start_scheduler()
        self.create("pods", pod("web"))
        self.wait_unschedulable("web", message(1, "node(s) were unschedulable", "Preemption is not helpful for scheduling"))
        self.assert_bound_within(1, "web", lambda: self.api.patch("nodes", "only", {"spec": {"unschedulable": None}}))

    def test_a_toleration_that_comes_frees_it(self):
        self.create("nodes", node("only", taints=[taint("maintenance")]))
        self.start_scheduler()
        self.create("pods", pod("web"))
        self.wait_unschedulable("web", message(1, "node(s) had untolerated taint(s)", "Preemption is not helpful for scheduling"))
        tolerations = [*self.pod("web")["spec"]["tolerations"], {"key": "maintenance", "operator": "Exists"}]
        self.assert_bound_within(1, "web", lambda: self.api.patch("pods", "web", {"spec": {"tolerations": tolerations}}))

    def test_it_is_told_again(self):
        """The condition has the last text, and each text has an event. The same text again and again is counted, not repeated:
        kube-scheduler makes one more event for it after the condition has changed, and then counts."""
        self.create("nodes", node("only", cpu="4"))
        scheduler = self.start_scheduler()
        self.create("pods", *(pod(f"resident-{number}", cpu="1") for number in range(4)))
        for number in range(4):
            self.wait_bound(f"resident-{number}")
        self.create("pods", pod("web", cpu="4", nodeSelector={"disk": "ssd"}))
        reason = "node(s) didn't match Pod's node affinity/selector"
        self.wait_unschedulable("web", message(1, reason, "Preemption is not helpful for scheduling"))
        self.api.patch("nodes", "only", {"metadata": {"labels": {"disk": "ssd"}}})
        full = message(1, "Insufficient cpu", "No preemption victims found for incoming pod")
        self.wait_unschedulable("web", full)

        def attempts():
            return scheduler.metric("scheduler_schedule_attempts_total", result="unschedulable")

        def told():
            return [event.get("series", {}).get("count", 1) for event in self.events("web") if event["note"] == full]

        for number in (2, 3):
            self.api.delete("pods", f"resident-{number}")
            wait("it is tried again", lambda: attempts() == 1 + number, say=attempts)
            wait("it is told again", lambda: sum(told()) == number, say=told)
        self.assertLessEqual(len(told()), 2)
        self.assert_bound_within(1, "web", lambda: self.api.delete("pods", "resident-0", "resident-1"))

    @ours_only
    def test_a_condition_that_could_not_be_written_is_written_later(self):
        """Nothing happens that lets the pods be tried again: whoever adds nodes for pods that wait must see them all the same."""
        self.create("nodes", node("small", cpu="1"))
        wire, failed = self.meddler(), set()

        def rule(request):
            for way, spoil in WAYS.items():
                if request.method == "PATCH" and request.path.endswith(f"/pods/{way}/status") and way not in failed:
                    failed.add(way)
                    return spoil

        wire.rule = rule
        scheduler = self.start_scheduler(port=wire.port)
        self.create("pods", *(pod(way, cpu="2") for way in WAYS))
        text = message(1, "Insufficient cpu", "Preemption is not helpful for scheduling")
        for way in WAYS:
            with self.subTest(way):
                # The scheduler looks every 30 s for what could not be written.
                self.wait_unschedulable(way, text, seconds=45)
        self.assertEqual(failed, set(WAYS))
        self.assertEqual(scheduler.metric("scheduler_schedule_attempts_total", result="unschedulable"), len(WAYS))
        self.assertIn("Failed to update pod status", scheduler.process.text())

    def test_what_does_not_help_changes_nothing(self):
        """A label that is not the wanted one leaves the pod where it is: no second attempt, no second event."""
        self.create("nodes", node("only"))
        scheduler = self.start_scheduler()
        self.create("pods", pod("web", nodeSelector={"disk": "ssd"}))
        reason = "node(s) didn't match Pod's node affinity/selector"
        self.wait_unschedulable("web", message(1, reason, "Preemption is not helpful for scheduling"))
        self.api.patch("nodes", "only", {"metadata": {"labels": {"colour": "blue"}}})
        # A pod that comes later is bound, so the change of the node has been seen.
        self.create("pods", pod("other", nodeSelector={"colour": "blue"}))
        self.wait_bound("other")
        self.assertIsNone(node_of(self.pod("web")))
        # The other pod may have been tried before the change of the node was seen: only what is said of this one counts.
        said = [line for line in scheduler.process.text().splitlines() if "Unable to schedule" in line]
        self.assertEqual(len([line for line in said if 'pod="default/web"' in line]), 1, said)


def message(count, reason, preemption):
    """What is said when all nodes have one reason."""
    return (
        f"0/{count} nodes are available: {count} {reason}. no new claims to deallocate, "
        f"preemption: 0/{count} nodes are available: {count} {preemption}."
    )
