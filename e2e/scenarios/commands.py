"""What people type: kubectl, and our own commands against a live cluster."""

import os
import subprocess

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod, taint

MESSAGE = (
    "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.create("nodes", node("small", cpu="1"), node("tainted", taints=[taint("dedicated")]))
        self.start_scheduler()
        self.create("pods", pod("waiting", cpu="2"), pod("placed", cpu="500m"))
        self.wait_unschedulable("waiting", MESSAGE)
        self.wait_bound("placed")
        (self.folder / "kubectl-supercargo").symlink_to(settings.SUPERCARGO)

    def run_command(self, *words, user="admin", notes=None):
        """What a command prints, run with the administrator's rights, or a user's, and our binary as a plugin of kubectl."""
        environment = {
            **os.environ, "KUBECONFIG": str(self.cluster.kubeconfig(user)), "PATH": f"{self.folder}:{os.environ['PATH']}",
            "HOME": str(self.folder),
        }
        words = [str(word) for word in words]
        result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        for note in notes or ():
            self.assertIn(note, result.stderr)
        return result.stdout

    def kubectl(self, *words):
        return self.run_command(settings.binary("kubectl"), *words)

    def test_kubectl_describes_both(self):
        self.wait_event("placed", "Scheduled")
        waiting = self.kubectl("describe", "pod", "waiting")
        self.assertRegex(waiting, r"Warning +FailedScheduling +\S+ +default-scheduler +" + MESSAGE[:40])
        self.assertRegex(self.kubectl("describe", "pod", "placed"),
                         r"Normal +Scheduled +\S+ +default-scheduler +Successfully assigned default/placed to small")

    @ours_only
    def test_explain_asks_the_cluster(self):
        for words in ((settings.SUPERCARGO, "explain", "default/waiting"),
                      (settings.binary("kubectl"), "supercargo", "explain", "default/waiting")):
            said = self.run_command(*words)
            self.assertIn("default/waiting would stay pending", said)
            self.assertIn("Insufficient cpu", said)
            self.assertIn("TaintToleration", said)

    @ours_only
    def test_a_dump_is_explained_offline(self):
        """What was written of the cluster says the same without it."""
        dump = self.folder / "dump.yaml"
        dump.write_text(self.run_command(settings.SUPERCARGO, "dump"))
        said = self.run_command(settings.SUPERCARGO, "explain", "-f", dump)
        self.assertIn("default/waiting would stay pending", said)
        self.assertNotIn("default/placed would stay pending", said)

    @ours_only
    def test_a_masked_dump_says_the_same(self):
        for form in ("yaml", "json"):
            text = self.run_command(settings.SUPERCARGO, "dump", "--mask", "-o", form)
            for name in ("waiting", "placed", "small", "tainted"):
                self.assertNotIn(name, text)
            dump = self.folder / f"masked.{form}"
            dump.write_text(text)
            said = self.run_command(settings.SUPERCARGO, "explain", "-f", dump)
            self.assertRegex(said, r"default/pod-2 would stay pending: none of 2 nodes fits")
            self.assertRegex(said, r"1 +NodeResourcesFit +Insufficient cpu +node-1")
            self.assertRegex(said, r"1 +TaintToleration +node\(s\) had untolerated taint\(s\) +node-2")

    @ours_only
    def test_what_is_forbidden_is_said(self):
        """Somebody who may read nodes, and the pods of one namespace, gets an answer from that."""
        def grant(kind, name, resources):
            rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get", "list"]}]
            api_version = "rbac.authorization.k8s.io/v1"
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "developer"}
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
            for plural, item in ((f"{kind.lower()}s", {"rules": rules}),
                                 (f"{kind.lower()}bindings", {"roleRef": role, "subjects": [subject]})):
                item |= {"apiVersion": api_version, "kind": kind + ("Binding" if "roleRef" in item else ""),
                         "metadata": {"name": name}}
                self.api.create(plural, item)
                self.addCleanup(self.api.delete, plural, name)
        grant("ClusterRole", "see-nodes", ["nodes"])
        grant("Role", "see-pods", ["pods"])
        notes = ["not allowed to read pods of other namespaces than default: ", "not allowed to read poddisruptionbudgets: "]
        said = self.run_command(settings.SUPERCARGO, "explain", "waiting", user="developer", notes=notes)
        self.assertIn("default/waiting would stay pending", said)

    @ours_only
    def test_capacity_asks_the_cluster(self):
        said = self.run_command(settings.SUPERCARGO, "capacity", "--like", "default/placed")
        self.assertIn("1 more like default/placed fit, on 1 node", said)
