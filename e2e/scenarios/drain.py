"""A backlog: many pods wait, a scheduler comes, and every one of them gets a place."""

from harness.case import Case
from harness.objects import node_of, nodes, pod
from harness.processes import wait

PODS = 2000
NODES = 200


class Drain(Case):
    audit = True
    alone = True

    def test_two_thousand_pods_on_two_hundred_nodes(self):
        """All bound, once each; no node over; and every pod has an event that says where it went."""
        self.create("nodes", *nodes(NODES, cpu="4", pods="110"))
        # Thirteen of them fill a node, so a tenth of the room is left at the end.
        self.create("pods", *(pod(f"pod-{number:04}", cpu="300m", memory="100Mi") for number in range(PODS)))
        pods = self.watch_pods()
        self.start_scheduler(ready=None)
        self.wait_all_bound(pods, PODS, 120)
        self.assert_no_node_over()
        self.assertEqual(self.cluster.bindings(), {f"pod-{number:04}": 1 for number in range(PODS)})

        def notes():
            return {event["regarding"]["name"]: event for event in self.api.list("events") if event["reason"] == "Scheduled"}

        wait("every pod has a Scheduled event", lambda: len(notes()) == PODS, 15, say=lambda: len(notes()))
        events = notes()
        for name, item in pods.objects.items():
            self.assertEqual(events[name]["note"], f"Successfully assigned default/{name} to {node_of(item)}")
        event = events["pod-0000"]
        self.assertEqual((event["type"], event["action"]), ("Normal", "Binding"))
        self.assertEqual(event["reportingController"], "default-scheduler")
        self.assertEqual(event["regarding"]["uid"], pods.objects["pod-0000"]["metadata"]["uid"])
