"""`supercargo run` with the rights that `supercargo rbac` prints for it and no others: enough for all it does."""

import subprocess

from harness import settings
from harness.case import Case, ours_only
from harness.objects import claim, condition, local_volume, node, node_of, nodes, pod, priority_class, storage_class
from harness.processes import wait

PODS = 50
NAME = "supercargo"
CONFIG = {
    "leaderElection": {"leaderElect": True, "resourceNamespace": "kube-system", "resourceName": NAME},
    "profiles": [{"schedulerName": NAME}],
}


@ours_only
class Rights(Case):
    audit = "reads"
    controllers = ("persistentvolume-binder-controller",)

    def grant(self, mode, name):
        """Makes what `supercargo rbac` prints, and a token for the account."""
        command = [settings.SUPERCARGO, "rbac", "--mode", mode, "--name", name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        self.kubectl("apply", "--filename", "-", text=printed.stdout)
        self.addCleanup(self.kubectl, "delete", "--filename", "-", "--wait=false", text=printed.stdout)
        self.cluster.add_account(name, "kube-system")

    def kubectl(self, *words, text):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)

    def requests(self, name):
        """What an account has asked for so far: verb, resource and code of each answer."""
        found = []
        for event in self.cluster.audited():
            if event["user"]["username"] == f"system:serviceaccount:kube-system:{name}":
                what = event.get("objectRef", {})
                resource = "/".join(filter(None, [what.get("resource"), what.get("subresource")]))
                found.append((event["verb"], resource, event.get("responseStatus", {}).get("code")))
        return found

    def test_the_printed_rights_are_enough(self):
        self.grant("second", NAME)
        self.create("priorityclasses", priority_class("low", 1), priority_class("high", 100))
        self.create("storageclasses", storage_class("local"))
        self.create("nodes", *nodes(10, cpu="4"), node("full", cpu="1", labels={"only": "full"}))
        self.create("pods", pod("victim", cpu="1", priority_class="low", nodeName="full"))
        scheduler = self.start_scheduler(CONFIG, user=NAME)
        # One that waits for the lease is ready, too: it has seen the cluster.
        self.start_scheduler(CONFIG, name="standby", user=NAME)

        pods = self.watch_pods()
        self.create("pods", *(pod(f"pod-{number:02}", cpu="300m", schedulerName=NAME) for number in range(PODS)))
        self.wait_all_bound(pods, PODS + 1, 60)
        self.assert_no_node_over()
        self.wait_event("pod-00", "Scheduled")

        urgent = pod("urgent", cpu="1", priority_class="high", schedulerName=NAME, nodeSelector={"only": "full"})
        self.create("pods", urgent)
        wait("the victim is asked to go", lambda: self.pod("victim")["metadata"].get("deletionTimestamp"), 10)
        self.assertIsNotNone(condition(self.pod("victim"), "DisruptionTarget"))
        wait("urgent is nominated", lambda: self.pod("urgent")["status"].get("nominatedNodeName") == "full", 10)
        self.api.delete("pods", "victim")
        self.assertEqual(self.wait_bound("urgent"), "full")

        self.create("persistentvolumes", local_volume("disk", "node-003", "5Gi", "local"))
        self.create("persistentvolumeclaims", claim("data", "5Gi", "local"))
        self.create("pods", pod("database", claims=["data"], schedulerName=NAME))
        self.assertEqual(self.wait_bound("database", 20), "node-003")

        # Who may read metrics is asked of kube-apiserver.
        self.assertEqual(scheduler.get("/metrics", "monitor")[0], 200)
        self.assertEqual(scheduler.get("/metrics", "nobody")[0], 403)

        def done():
            return {(verb, resource) for verb, resource, code in self.requests(NAME) if code in (200, 201)}

        expected = {
            ("create", "pods/binding"), ("patch", "pods/status"), ("delete", "pods"), ("create", "events"),
            ("patch", "persistentvolumes"), ("create", "leases"), ("update", "leases"), ("create", "tokenreviews"),
            ("create", "subjectaccessreviews"), ("watch", "pods"), ("watch", "csinodes"),
        }
        wait("all of it is in the audit log", lambda: expected <= done(), 10, say=lambda: expected - done())
        self.assertEqual([request for request in self.requests(NAME) if request[2] == 403], [])

    def test_the_rights_of_a_shadow_bind_nothing(self):
        """That what is not granted is refused, and that the audit log tells of it."""
        self.grant("shadow", "onlooker")
        self.create("nodes", node("only"))
        config = {"leaderElection": {"leaderElect": False}, "profiles": [{"schedulerName": NAME}]}
        self.start_scheduler(config, user="onlooker", ready=None)
        self.create("pods", pod("pending", schedulerName=NAME))

        def refused():
            return ("create", "pods/binding", 403) in self.requests("onlooker")

        wait("the binding is refused", refused, 20, say=lambda: self.requests("onlooker"))
        done = {verb for verb, _, code in self.requests("onlooker") if code in (200, 201)}
        self.assertEqual(done - {"get", "list", "watch"}, set())
        self.assertIsNone(node_of(self.pod("pending")))
