"""`supercargo run` with the rights that `supercargo rbac` prints for it and no others: enough for all it does."""

import re
import subprocess
import time

from harness import settings
from harness.case import Case, ours_only
from harness.client import Client
from harness.objects import claim, condition, local_volume, node, node_of, nodes, pod, priority_class, storage_class
from harness.processes import wait

PODS = 50
NAME = "supercargo"
CONFIG = {
    "leaderElection": {"leaderElect": True, "resourceNamespace": "kube-system", "resourceName": NAME},
    "profiles": [{"schedulerName": NAME}],
}


def names(resource, text):
    """Whether a text names a resource, and not only a subresource of it."""
    return re.search(rf"\b{resource}\b(?!/)", text) is not None


class Granting(Case):
    controllers = ("persistentvolume-binder-controller",)

    def grant(self, mode, name):
        """Makes what `supercargo rbac` prints, and a token for the account."""
        command = [settings.SUPERCARGO, "rbac", "--mode", mode, "--name", name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        self.kubectl("apply", "--filename", "-", text=printed.stdout)
        self.addCleanup(self.kubectl, "delete", "--filename", "-", "--wait=false", text=printed.stdout)
        self.cluster.add_account(name, "kube-system")

    def revoke(self, kind, namespace, number):
        """Takes one rule out of a role. What comes back puts it in again."""
        whole = self.api.get(kind, NAME, namespace)
        rule = whole["rules"][number]
        kept = [each for each in whole["rules"] if each != rule]
        self.api.patch(kind, NAME, {"rules": kept}, namespace)
        # kube-apiserver learns of it by a watch of its own.
        self.wait_allowed(rule, namespace, False)

        def restore():
            self.api.patch(kind, NAME, {"rules": whole["rules"]}, namespace)
            self.wait_allowed(rule, namespace, True)

        return rule, restore

    def wait_allowed(self, rule, namespace, wanted):
        resource, _, subresource = rule["resources"][0].partition("/")
        what = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource, "verb": rule["verbs"][0],
                "namespace": namespace, "name": rule.get("resourceNames", [""])[0]}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": f"system:serviceaccount:kube-system:{NAME}", "resourceAttributes": what}}

        def answered():
            answer = self.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            return answer["status"]["allowed"] == wanted

        wait(f"{rule} is {'granted' if wanted else 'revoked'}", answered)

    def kubectl(self, *words, text):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)


@ours_only
class Rights(Granting):
    audit = "reads"

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


@ours_only
class Taken(Granting):
    def test_each_right_that_is_taken_away_is_named(self):
        """One rule after the other, while it runs. The log names what may not be done, and so does `/readyz`, to a reader about whom
        nobody has to be asked; when the right is back, all is well again."""
        self.grant("second", NAME)
        wire = self.proxy()
        config = {**CONFIG, "podMaxBackoffSeconds": 1, "leaderElection": {"leaderElect": False}}
        self.create("priorityclasses", priority_class("taken-low", 1), priority_class("taken-high", 100))
        self.create("storageclasses", storage_class("taken"))
        self.create("nodes", *nodes(2))
        scheduler = self.start_scheduler(config, user=NAME, port=wire.port)
        self.reader = Client(scheduler.port, certificate=self.certificate("reader", "system:masters"))
        rules = self.api.get("clusterroles", NAME)["rules"]
        self.assertGreaterEqual(len(rules), 10)
        for number, rule in enumerate(rules):
            with self.subTest(f"{rule['verbs']} {rule['resources']}"):
                self.take_away(scheduler, wire, number)

    def take_away(self, scheduler, wire, number):
        before = len(scheduler.process.text())
        rule, restore = self.revoke("clusterroles", None, number)
        try:
            wire.cut()
            wire.mend()
            self.provoke(scheduler, number)

            # Of claim and volume, which are written together, one is refused first.
            needed = [resource for resource in rule["resources"] if "patch" not in rule["verbs"] or resource != "persistentvolumeclaims"]

            def named():
                text = scheduler.process.text()[before:]
                return all(names(resource, text) for resource in needed)

            wait(f"the log names {needed}", named, 60, say=lambda: scheduler.process.text()[before:][-3000:])

            def shown():
                self.review(scheduler, number)
                code, text = self.reader.raw("GET", "/readyz")
                return code == 500 and all(names(resource, text) for resource in needed)

            wait(f"/readyz names {needed}", shown, 60, say=lambda: self.reader.raw("GET", "/readyz"))
        finally:
            restore()
        wait("it is ready again", lambda: scheduler.get("/readyz")[0] == 200, 60, say=lambda: scheduler.get("/readyz"))
        self.create("pods", pod(f"restored-{number}", schedulerName=NAME))
        self.wait_bound(f"restored-{number}", 30)

    def provoke(self, scheduler, number):
        """All that a scheduler does, once more."""
        self.create("pods", pod(f"provoked-{number}", schedulerName=NAME))
        self.create("pods", pod(f"refused-{number}", schedulerName=NAME, nodeSelector={"colour": "blue"}))
        self.create("persistentvolumes", local_volume(f"disk-{number}", "node-000", "5Gi", "taken"))
        self.create("persistentvolumeclaims", claim(f"data-{number}", "5Gi", "taken"))
        self.create("pods", pod(f"storing-{number}", claims=[f"data-{number}"], schedulerName=NAME))
        # A victim each time: one that is on its way out is not evicted again.
        full = f"full-{number}"
        self.create("nodes", node(full, cpu="1", labels={"only": full}))
        self.create("pods", pod(f"victim-{number}", cpu="1", priority_class="taken-low", nodeName=full))
        self.create("pods", pod(f"urgent-{number}", cpu="1", priority_class="taken-high", schedulerName=NAME,
                                nodeSelector={"only": full}))
        self.review(scheduler, number)

    def review(self, scheduler, number):
        """Has kube-apiserver asked about a token that has not been looked up yet, and about a page for one that is known."""
        Client(scheduler.port, f"unknown-{number}-{time.monotonic()}").raw("GET", "/metrics")
        known = self.cluster.account_token(NAME, "kube-system")
        Client(scheduler.port, known).raw("GET", f"/debug/decisions/default/provoked-{number}")

    def certificate(self, name, *groups):
        """Files with a client certificate and its key."""
        files = [self.folder / f"{name}.{ending}" for ending in ("crt", "key")]
        for file, text in zip(files, self.cluster.clients.client(name, *groups)):
            file.write_text(text)
        return files

    def test_the_right_to_look_up_an_authority(self):
        """It is looked up again and again, so that the right stays named while it is missing, and no longer."""
        self.grant("second", NAME)
        self.create("nodes", node("only"))
        scheduler = self.start_scheduler({**CONFIG, "leaderElection": {"leaderElect": False}}, user=NAME)
        reader = Client(scheduler.port, certificate=self.certificate("reader", "system:masters"))
        self.assertEqual(reader.raw("GET", "/readyz")[0], 200)
        binding = self.api.get("rolebindings", f"{NAME}-authentication-reader", "kube-system")
        self.api.delete("rolebindings", binding["metadata"]["name"], namespace="kube-system")

        def shown():
            code, text = reader.raw("GET", "/readyz")
            return code == 500 and names("configmaps", text)

        wait("/readyz names configmaps", shown, 90, say=lambda: reader.raw("GET", "/readyz"))
        stays = time.monotonic() + 40
        while time.monotonic() < stays:
            self.assertTrue(shown(), reader.raw("GET", "/readyz"))
            time.sleep(1)
        kept = {key: binding[key] for key in ("roleRef", "subjects")}
        self.api.create("rolebindings", {**kept, "metadata": {"name": binding["metadata"]["name"]}}, namespace="kube-system")
        wait("it is ready again", lambda: reader.raw("GET", "/readyz")[0] == 200, 60, say=lambda: reader.raw("GET", "/readyz"))

    def test_a_lease_that_may_not_be_renewed(self):
        """It ends before another could take over, and says which right is missing."""
        self.grant("second", NAME)
        self.create("nodes", node("only"))
        election = {**CONFIG["leaderElection"], "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
        scheduler = self.start_scheduler({**CONFIG, "leaderElection": election}, user=NAME)
        self.addCleanup(self.api.delete, "leases", NAME, namespace="kube-system")
        _, restore = self.revoke("roles", "kube-system", 1)
        self.addCleanup(restore)
        wait("it ends", lambda: not scheduler.process.running, 10)
        self.assertNotEqual(scheduler.process.child.returncode, 0)
        self.assertIn("leases", scheduler.process.tail(20))
