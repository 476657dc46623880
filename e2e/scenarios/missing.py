"""Ours only: answers that know what they do not know. Whoever may not read everything gets the answer of an administrator, or one
that is marked as uncertain; and whether anybody schedules is looked at."""

import datetime
import json
import os
import subprocess

from harness import settings
from harness.case import Case, ours_only
from harness.objects import budget, claim, local_volume, node, pod, priority_class, storage_class
from harness.processes import wait

GROUPS = {
    "nodes": "", "pods": "", "namespaces": "", "services": "", "replicationcontrollers": "", "persistentvolumes": "",
    "persistentvolumeclaims": "", "replicasets": "apps", "statefulsets": "apps", "poddisruptionbudgets": "policy",
    "storageclasses": "storage.k8s.io", "csinodes": "storage.k8s.io", "csidrivers": "storage.k8s.io",
    "csistoragecapacities": "storage.k8s.io", "volumeattachments": "storage.k8s.io", "deviceclasses": "resource.k8s.io",
}
NAMESPACED = {"pods", "persistentvolumeclaims", "services", "replicasets", "statefulsets", "poddisruptionbudgets"}
STORAGE = {"csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"}

# What may not be read at all, and what may be read in the namespace `default` only.
COMBINATIONS = [
    (set(), set()),
    ({"persistentvolumes"}, set()),
    ({"storageclasses"}, set()),
    ({"persistentvolumeclaims"}, set()),
    (set(), {"persistentvolumeclaims"}),
    (set(), {"pods"}),
    ({"namespaces"}, set()),
    ({"poddisruptionbudgets"}, set()),
    ({"csinodes"}, set()),
    ({"csidrivers", "csistoragecapacities"}, set()),
    ({"services"}, set()),
    ({"replicasets", "statefulsets", "replicationcontrollers"}, set()),
    ({"deviceclasses", "volumeattachments"}, {"poddisruptionbudgets"}),
    ({"persistentvolumes", "storageclasses"} | STORAGE, set()),
    (set(GROUPS) - {"nodes", "pods"}, {"pods"}),
    (set(GROUPS) - {"nodes", "pods", "persistentvolumeclaims"}, {"pods", "persistentvolumeclaims"}),
]


class Explaining(Case):
    def run_command(self, *words, user="admin"):
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig(user)), "HOME": str(self.folder)}
        return subprocess.run([str(word) for word in (settings.SUPERCARGO, *words)], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def grant(self, hidden, partly):
        """Gives the developer the right to read everything but this."""
        version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        subject = {"apiGroup": group, "kind": "User", "name": "developer"}
        for kind, resources in (("ClusterRole", set(GROUPS) - hidden - partly), ("Role", partly)):
            rules = [{"apiGroups": [GROUPS[name]], "resources": [name], "verbs": ["get", "list"]} for name in sorted(resources)]
            named = {"apiVersion": version, "metadata": {"name": "reader"}}
            role = {"apiGroup": group, "kind": kind, "name": "reader"}
            for plural, item in ((f"{kind.lower()}s", {**named, "kind": kind, "rules": rules}),
                                 (f"{kind.lower()}bindings", {**named, "kind": f"{kind}Binding", "roleRef": role, "subjects": [subject]})):
                self.api.delete(plural, "reader")
                self.api.create(plural, item)
                self.addCleanup(self.api.delete, plural, "reader")


@ours_only
class Missing(Explaining):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Without a controller no namespace is ever gone, so all tests share this one.
        cls.api.create("namespaces", {"metadata": {"name": "other", "labels": {"team": "red"}}})
        cls.api.create("serviceaccounts", {"metadata": {"name": "default"}}, namespace="other")

    def setUp(self):
        super().setUp()
        self.create("nodes", *(node(f"node-{name}", cpu="2", labels={"zone": name}) for name in "abc"))
        self.create("priorityclasses", priority_class("high", 100))
        self.create("storageclasses", storage_class("late"), storage_class("soon", mode="Immediate"))
        self.create("persistentvolumes", local_volume("disk-b", "node-b", "5Gi", "late"))
        self.api.patch("persistentvolumes", "disk-b", {"status": {"phase": "Available"}}, subresource="status")
        self.create("persistentvolumeclaims", claim("late", "1Gi", "late"), claim("soon", "1Gi", "soon"))
        # Somebody else's pods take most of a, and are what a friend looks for.
        for name, where, cpu in (("theirs", "node-a", "1500m"), ("friend", "node-c", "100m")):
            item = pod(name, cpu=cpu, labels={"app": name}, nodeName=where)
            self.api.create("pods", item, namespace="other")
            self.addCleanup(self.api.delete, "pods", name, namespace="other")
        self.create("pods", pod("guarded", cpu="1800m", labels={"app": "guarded"}, nodeName="node-b"),
                    pod("loose", cpu="1700m", labels={"app": "loose"}, nodeName="node-c"))
        self.create("poddisruptionbudgets", budget("guarded", {"app": "guarded"}, minAvailable=1))
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "friend"}},
                "namespaceSelector": {"matchLabels": {"team": "red"}}}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        self.create("pods", pod("plain", cpu="100m"), pod("large", cpu="1"), pod("labelled", cpu="100m", labels={"app": "x"}),
                    pod("late", cpu="100m", claims=["late"]), pod("soon", cpu="100m", claims=["soon"]),
                    pod("nowhere", cpu="100m", claims=["nope"]), pod("friendly", cpu="100m", affinity=affinity),
                    pod("important", cpu="1", priority_class="high"))

    def owner(self, kind, plural, name):
        uid = self.api.get(plural, name)["metadata"]["uid"]
        return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}

    def explain(self, user):
        result = self.run_command("explain", "-n", "default", "-o", "json", user=user)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {answer["pod"]: answer for answer in json.loads(result.stdout)}

    def explain_without(self, hidden, partly):
        """What the developer gets, once the rights have taken effect."""
        self.grant(hidden, partly)

        def settled():
            answers = self.explain("developer")
            missing = {each["kind"].split(".")[0] for each in answers["default/plain"].get("missing", ())}
            return missing == hidden | partly and answers

        return wait("the rights are as they were given", settled, 20)

    def test_equal_to_an_administrators_answer_or_marked(self):
        truth = self.explain("admin")
        self.assertEqual(len(truth), 8)
        self.assertFalse(any(answer.get("uncertain") or answer.get("missing") for answer in truth.values()), truth)
        for pod_name in ("late", "plain", "friendly"):
            self.assertIn("placed", truth[f"default/{pod_name}"])
        wrong = 0
        for hidden, partly in COMBINATIONS:
            with self.subTest(hidden=sorted(hidden), partly=sorted(partly)):
                for name, answer in self.explain_without(hidden, partly).items():
                    wrong += self.compare(name, answer, truth[name])
        # If none were wrong, nothing would have been shown.
        self.assertGreater(wrong, 10)

    def compare(self, name, answer, truth):
        """Whether the answer is another one; then it has to be marked as such."""
        if verdict(answer) != verdict(truth):
            self.assertTrue(answer.get("uncertain"), f"{name}: {verdict(answer)} instead of {verdict(truth)}")
        if details(answer) != details(truth):
            self.assertTrue(answer.get("doubts"), f"{name}: {details(answer)} instead of {details(truth)}")
        if not answer.get("missing"):
            self.assertFalse(answer.get("uncertain") or answer.get("doubts"), f"{name}: {answer}")
        return verdict(answer) != verdict(truth)

    def test_what_does_not_matter_for_a_pod_makes_it_no_less_certain(self):
        answers = self.explain_without({"persistentvolumes", "storageclasses", "poddisruptionbudgets", "namespaces"} | STORAGE, set())
        for name in ("plain", "large", "labelled"):
            self.assertFalse(answers[f"default/{name}"].get("uncertain"), answers[f"default/{name}"])
        self.assertTrue(answers["default/late"]["uncertain"])
        self.assertTrue(answers["default/friendly"]["uncertain"])
        affects = {each["kind"]: each["affects"] for each in answers["default/plain"]["missing"]}
        self.assertEqual(affects["storageclasses.storage.k8s.io"], ["volumes"])
        self.assertEqual(affects["poddisruptionbudgets.policy"], ["evictions"])

    def test_the_note_stands_with_the_answer(self):
        self.explain_without({"storageclasses"}, set())
        result = self.run_command("explain", "late", "--scheduler", "none", user="developer")
        self.assertIn("default/late would stay pending (uncertain): none of 3 nodes fits\n"
                      "  ? note: you may not read storageclasses; the answer may be wrong about volumes\n", result.stdout)
        self.assertIn("note: you may not read storageclasses; what depends on that is marked as uncertain\n", result.stderr)

    def test_without_nodes_or_pods_there_is_no_answer(self):
        for kind in ("nodes", "pods"):
            self.grant({kind}, set())
            for command in ("explain", "dump", "capacity"):
                def refused(command=command):
                    result = self.run_command(command, user="developer")
                    return result.returncode == 1 and result

                result = wait(f"{command} is refused", refused, 20)
                self.assertTrue(result.stderr.startswith(f"error: you may not read {kind}, and without {kind} there is nothing to say: "),
                                result.stderr)
                self.assertEqual(result.stdout, "")

    def test_a_workload_of_which_not_all_may_be_read_is_marked(self):
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web", cpu="100m")["spec"]}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
               "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
        manifest = self.folder / "web.json"
        manifest.write_text(json.dumps(web))
        # Nobody gave the right to read priorityclasses, among others.
        self.explain_without({"replicasets"}, set())
        said = self.run_command("explain", "-f", manifest, user="developer").stdout
        self.assertIn("? note: you may not read deployments, limitranges, priorityclasses, replicasets, runtimeclasses; which pods the "
                      "workload would still create, and how they look, may be wrong\n", said)
        self.assertRegex(said, r"default/web-new-1 would go to node-.*, as 2 others would \(uncertain\)\n")

    def test_a_dump_says_what_it_lacks(self):
        self.explain_without({"storageclasses"}, {"pods"})
        result = self.run_command("dump", user="developer")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: you may not read ", result.stderr)
        dump = self.folder / "dump.yaml"
        dump.write_text(result.stdout)
        self.assertIn("name: late", result.stdout)
        said = self.run_command("explain", "-f", dump, "--pod", "late").stdout
        self.assertIn("(uncertain)", said)
        self.assertIn("whoever wrote the file could not read pods outside default and storageclasses", said)

    def test_a_manifest_is_asked_about_in_the_cluster(self):
        manifest = self.folder / "pod.json"
        item = pod("new", cpu="1900m")
        manifest.write_text(json.dumps(item))
        result = self.run_command("explain", "-f", manifest)
        self.assertIn("default/new would stay pending: none of 3 nodes fits", result.stdout)
        self.assertIn("note: the files hold no node: asked in the cluster https://127.0.0.1:", result.stderr)
        self.assertIn("other/new would stay pending", self.run_command("explain", "-f", manifest, "-n", "other").stdout)
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"
        manifest.write_text(json.dumps(item))
        self.assertIn("1 more like default/new fit, on 1 node", self.run_command("capacity", "-f", manifest).stdout)
        # A Deployment in a file takes the place of the cluster's, and its pods that exist are taken off.
        template = {"metadata": {"labels": {"app": "web"}}, "spec": item["spec"]}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
               "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
        self.create("deployments", web | {"spec": web["spec"] | {"replicas": 7}})
        replicas = self.create("replicasets", {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            "metadata": {"name": "web-1", "labels": {"app": "web"}, "ownerReferences": [self.owner("Deployment", "deployments", "web")]}})
        child = pod("web-1-a", cpu="100m", labels={"app": "web"}, nodeName="node-c")
        child["metadata"]["ownerReferences"] = [self.owner("ReplicaSet", "replicasets", replicas[0]["metadata"]["name"])]
        self.create("pods", child)
        manifest.write_text(json.dumps(web))
        result = self.run_command("explain", "-f", manifest)
        self.assertIn("deployment default/web wants 3 pods, 1 exists: 2 explained as it would create them\n", result.stdout)
        self.assertNotIn("default/plain", result.stdout)
        missing = self.run_command("explain", "-f", manifest, "--kubeconfig", "/nowhere")
        self.assertEqual(missing.returncode, 1)
        self.assertTrue(missing.stderr.startswith("error: there are no nodes in the files"), missing.stderr)


def verdict(answer):
    if "placed" in answer:
        return "placed", answer["placed"]["node"]
    return tuple(key for key in ("pending", "held", "failed") if key in answer)


def details(answer):
    """What of an answer somebody may act upon."""
    pending = answer.get("pending", {})
    obstacles = [(each["plugin"], each["reason"], each["nodes"]) for each in pending.get("obstacles", ())]
    preemption = pending.get("preemption") or {}
    return (verdict(answer), obstacles, [hint["text"] for hint in pending.get("hints", ())],
            preemption.get("node"), preemption.get("victims"))


@ours_only
class Schedulers(Explaining):
    """Whether anybody schedules."""

    def setUp(self):
        super().setUp()
        self.create("nodes", node("only"))

    def lease(self, name, renewed, holder="somebody_1", seconds=15):
        """A lease that was renewed so many seconds ago."""
        time = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=renewed)
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        self.api.create("leases", {"metadata": {"name": name}, "spec": spec}, namespace="kube-system")
        self.addCleanup(self.api.delete, "leases", name, namespace="kube-system")

    def explain(self, *words):
        result = self.run_command("explain", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_a_dead_scheduler_is_said_first(self):
        self.create("pods", pod("waiting"))
        self.lease("kube-scheduler", renewed=34)
        for words in (("waiting",), ()):
            self.assertRegex(self.explain(*words).stdout,
                             r"^no scheduler is running: the lease kube-system/kube-scheduler was last renewed \d\d s ago by somebody_1\n"
                             r"default/waiting would go to only\n")

    def test_a_lease_that_was_given_up_is_said_first(self):
        self.create("pods", pod("waiting"))
        self.lease("kube-scheduler", renewed=1, holder="", seconds=1)
        self.assertTrue(self.explain("waiting").stdout.startswith(
            "no scheduler is running: nobody holds the lease kube-system/kube-scheduler, it was given up\n"))

    def test_a_scheduler_that_lives_is_no_news(self):
        self.create("pods", pod("waiting"))
        self.lease("kube-scheduler", renewed=1)
        result = self.explain("waiting")
        self.assertTrue(result.stdout.startswith("default/waiting would go to only\n"), result.stdout)
        self.assertIn("note: computed here; to see the scheduler's own decision: --scheduler https://HOST:10259 (leader: somebody_1)\n",
                      result.stderr)

    def test_a_scheduler_that_nobody_runs_is_named(self):
        self.create("pods", pod("waiting", schedulerName="volcano"))
        for words in (("waiting",), ("pod/waiting",), ()):
            said = self.explain(*words).stdout
            self.assertTrue(said.startswith('nobody seems to run scheduler "volcano", which is the likely cause'), said)
            self.assertIn("there is no lease volcano in any namespace, no event by it", said)
            self.assertIn("note: computed with the profile default-scheduler", said)
            self.assertIn("default/waiting would go to only\n", said)

    def test_a_second_scheduler_that_runs_is_asked(self):
        config = {"leaderElection": {"leaderElect": True, "resourceName": "second"},
                  "profiles": [{"schedulerName": "second"}]}
        scheduler = self.start_scheduler(config)
        self.addCleanup(self.api.delete, "leases", "second", namespace="kube-system")
        self.create("pods", pod("waiting", cpu="64", schedulerName="second"))
        self.wait_event("waiting", "FailedScheduling")
        said = self.explain("waiting").stdout
        self.assertNotIn("nobody", said)
        self.assertIn("default/waiting would stay pending", said)
        said = self.explain("waiting", "--scheduler", f"https://localhost:{scheduler.port}", "--scheduler-insecure-skip-tls-verify").stdout
        self.assertTrue(said.startswith("what the scheduler decided for default/waiting"), said)
        # Two pods at once, one of them asked for by its kind.
        self.create("pods", pod("placed", cpu="1", nodeName="only"))
        both = self.explain("pod/waiting", "placed")
        self.assertIn("default/waiting would stay pending", both.stdout)
        self.assertIn("note: default/placed runs on only; explained as if it were not placed yet", both.stderr)
        scheduler.process.kill()
