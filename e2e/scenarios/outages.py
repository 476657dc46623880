"""The API server dies, the wire is cut, history is forgotten: in the end everything is as if nothing had been."""

import json

from harness.case import Case
from harness.objects import node, node_of, nodes, pod
from harness.processes import wait

PODS = 400


class ApiServer(Case):
    audit = True
    alone = True

    def test_it_is_killed_in_the_middle_of_a_drain(self):
        self.create("nodes", *nodes(40, cpu="4"))
        self.create("pods", *(pod(f"pod-{number:03}", cpu="300m") for number in range(PODS)))
        pods = self.watch_pods()
        # Slow enough to be met in the middle.
        self.start_scheduler({"clientConnection": {"qps": 100, "burst": 100}}, ready=None)
        pods.wait("some pods are bound", lambda now: sum(1 for item in now.values() if node_of(item)) >= PODS // 8, 60)
        self.cluster.apiserver.kill()
        self.cluster.start_apiserver()
        bound = sum(1 for item in self.api.list("pods") if node_of(item))
        self.assertLess(bound, PODS, "the drain was over before kube-apiserver was killed")
        self.wait_all_bound(pods, PODS, 90)
        self.assert_no_node_over()
        self.assertTrue(all(times == 1 for times in self.cluster.bindings().values()))

        # What happens from now on is seen as before.
        self.create("pods", pod("later", nodeSelector={"colour": "blue"}))
        self.wait_event("later", "FailedScheduling")
        self.assert_bound_within(
            1, "later", lambda: self.api.patch("nodes", "node-000", {"metadata": {"labels": {"colour": "blue"}}}))


class Compaction(Case):
    # Without its cache, kube-apiserver has no history but etcd's; nor can it stream lists.
    watch_cache = False

    def test_a_watch_whose_past_is_forgotten(self):
        """The scheduler is cut off; meanwhile a pod goes, a node goes, a node and pods come, and etcd forgets all versions but the
        last. Watches cannot be resumed (410, Gone): all must be listed anew, and the difference seen."""
        self.create("nodes", node("stays", cpu="2"), node("goes", cpu="8"))
        wire = self.proxy()
        self.start_scheduler(port=wire.port)
        self.create("pods", pod("first", cpu="2", nodeSelector={"kubernetes.io/hostname": "stays"}))
        self.wait_bound("first")
        self.create("pods", pod("second", cpu="2", nodeSelector={"kubernetes.io/hostname": "stays"}))
        self.wait_event("second", "FailedScheduling")

        version = self.api.call("GET", "/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"]
        wire.cut()
        self.api.delete("pods", "first")
        self.api.delete("nodes", "goes")
        self.create("nodes", node("comes", cpu="4"))
        there = {"kubernetes.io/hostname": "comes"}
        self.create("pods", *(pod(f"third-{number}", cpu="1", nodeSelector=there) for number in range(4)))
        self.cluster.compact()
        self.assertEqual(self.answer_to_watch(version), 410)
        self.assertIsNone(node_of(self.pod("second")))
        wire.mend()

        self.assertEqual(self.wait_bound("second", 40), "stays")
        for number in range(4):
            self.assertEqual(self.wait_bound(f"third-{number}", 20), "comes")
        self.assert_no_node_over()

    def answer_to_watch(self, version):
        """The code that a watch from that version is answered with: at once, or as its first event."""
        connection = self.api.connect(10)
        path = f"/api/v1/pods?watch=true&resourceVersion={version}"
        connection.request("GET", path, headers=self.api.headers())
        answer = connection.getresponse()
        code = answer.status
        if code == 200:
            event = json.loads(answer.readline())
            code = event["object"].get("code") if event["type"] == "ERROR" else code
        connection.close()
        return code


class Wire(Case):
    def test_a_cut_that_heals(self):
        """What happened meanwhile is learnt of; nothing is done on what was true before."""
        self.create("nodes", node("one", cpu="2"), node("two", cpu="2"))
        wire = self.proxy()
        self.start_scheduler(port=wire.port)
        self.create("pods", pod("first", cpu="2"))
        taken = self.wait_bound("first")
        free = {"one": "two", "two": "one"}[taken]
        wire.cut()
        # Somebody else takes the free node and leaves the other.
        self.create("pods", pod("foreign", cpu="2", nodeName=free))
        self.create("pods", pod("second", cpu="2"))
        self.api.delete("pods", "first")
        wire.mend()
        self.assertEqual(self.wait_bound("second", 40), taken)
        wait("no node is over", lambda: self.assert_no_node_over() is None)
