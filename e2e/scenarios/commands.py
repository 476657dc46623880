"""What people type: kubectl, and our own commands against a live cluster."""

import contextlib
import json
import os
import re
import socket
import subprocess
import threading

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod, priority_class, taint
from harness.processes import wait

MESSAGE = (
    "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


class Commanding(Case):
    """A pod that waits, a pod that runs, and commands typed by different people."""

    def setUp(self):
        super().setUp()
        self.create("nodes", node("small", cpu="1"), node("tainted", taints=[taint("dedicated")]))
        self.scheduler = self.start_scheduler()
        self.create("pods", pod("waiting", cpu="2"), pod("placed", cpu="500m"))
        self.wait_unschedulable("waiting", MESSAGE)
        self.wait_bound("placed")
        (self.folder / "kubectl-supercargo").symlink_to(settings.SUPERCARGO)

    def run_command(self, *words, user="admin", notes=None, code=0):
        """What a command prints, run with the administrator's rights, or a user's, and our binary as a plugin of kubectl."""
        environment = {
            **os.environ, "KUBECONFIG": str(self.cluster.kubeconfig(user)), "PATH": f"{self.folder}:{os.environ['PATH']}",
            "HOME": str(self.folder),
        }
        words = [str(word) for word in words]
        result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        for note in notes or ():
            self.assertIn(note, result.stderr)
        return result.stdout

    def make(self, plural, item):
        self.api.create(plural, item, namespace="default")
        self.addCleanup(self.api.delete, plural, item["metadata"]["name"], namespace="default")

    def grant(self, kind, name, rules, namespace="default"):
        """A role of that kind for the developer."""
        api_version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": kind, "name": name}
        subject = {"apiGroup": group, "kind": "User", "name": "developer"}
        for plural, item in ((f"{kind.lower()}s", {"rules": rules}),
                             (f"{kind.lower()}bindings", {"roleRef": role, "subjects": [subject]})):
            item |= {"apiVersion": api_version, "kind": kind + ("Binding" if "roleRef" in item else ""),
                     "metadata": {"name": name}}
            self.api.create(plural, item, namespace=namespace)
            self.addCleanup(self.api.delete, plural, name, namespace=namespace)

    def let_developer_explain(self):
        def reads(resource):
            return [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "list"]}]
        self.grant("ClusterRole", "see-nodes", reads("nodes"))
        self.grant("Role", "see-pods", reads("pods"))


class Commands(Commanding):
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
    def test_namespace_and_context_are_as_kubectl_has_them(self):
        words = (settings.SUPERCARGO, "explain", "--scheduler", "none")
        self.assertIn("default/waiting would stay pending", self.run_command(*words, "waiting", "-n", "default", "--context", "e2e"))
        self.assertEqual(self.run_command(*words, "-n", "kube-system"), "no pod is pending\n")
        wrong = {"waiting": ("-n", "kube-system"), "kube-system/waiting": ()}
        for name, rest in wrong.items():
            self.run_command(*words, name, *rest, code=1, notes=["there is no pod kube-system/waiting"])
        self.run_command(*words, "waiting", "--context", "other", code=1, notes=['there is no context "other"'])

    @ours_only
    def test_a_kubeconfig_may_name_a_proxy(self):
        with Tunnels() as proxy:
            config = json.loads(self.cluster.kubeconfig("admin").read_text())
            config["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{proxy.port}"
            (self.folder / "proxied").write_text(json.dumps(config))
            said = self.run_command(settings.SUPERCARGO, "explain", "waiting", "--kubeconfig", self.folder / "proxied")
            self.assertIn("default/waiting would stay pending", said)
            self.assertEqual(proxy.asked, {f"CONNECT 127.0.0.1:{self.cluster.port} HTTP/1.1"})

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
        self.let_developer_explain()
        notes = ["note: you may not read ", "what depends on that is marked as uncertain"]
        said = self.run_command(settings.SUPERCARGO, "explain", "waiting", user="developer", notes=notes)
        self.assertIn("default/waiting would stay pending (uncertain)", said)
        self.assertRegex(said, r"\? note: you may not read pods outside default.*; the answer may be wrong about .*free resources")
        self.assertRegex(said, r"\? Insufficient cpu")

    @ours_only
    def test_a_workload_is_asked_for(self):
        """No controller runs here, so all pods of the Deployment are missing; the API server resolves its priority as we do."""
        self.make("priorityclasses", priority_class("gold", 7))
        template = pod("web", cpu="300m", priority_class="gold")
        template["metadata"] = {"labels": {"app": "web"}}
        self.make("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
        for name in ("deploy/web", "default/deployment/web"):
            said = self.run_command(settings.SUPERCARGO, "explain", name)
            self.assertTrue(said.startswith(
                "deployment default/web wants 3 pods, none exists: 3 explained as it would create them\n"
                "default/web-new-1 would go to small, as 2 others would\n"), said)
        said = self.run_command(settings.SUPERCARGO, "capacity", "--like", "deploy/web")
        self.assertIn("1 more like default/web-new fit, on 1 node", said)
        self.run_command(settings.SUPERCARGO, "explain", "deploy/nobody", code=1,
                         notes=["there is no deployment default/nobody in the cluster"])
        self.assertNotIn("web", self.run_command(settings.SUPERCARGO, "explain", "--scheduler", "none"))

    @ours_only
    def test_capacity_asks_the_cluster(self):
        said = self.run_command(settings.SUPERCARGO, "capacity", "--like", "default/placed")
        self.assertIn("1 more like default/placed fit, on 1 node", said)


@ours_only
class Decisions(Commanding):
    """`explain` asks the scheduler that runs what it decided."""

    def explain(self, *words, **options):
        asked = ("--scheduler", f"https://localhost:{self.scheduler.port}", "--scheduler-insecure-skip-tls-verify")
        return self.run_command(settings.SUPERCARGO, "explain", *words, *asked, **options)

    def test_what_it_decided_for_a_pod_that_waits(self):
        said = self.explain("default/waiting")
        self.assertIn(f"what the scheduler decided for default/waiting (https://localhost:{self.scheduler.port})", said)
        self.assertRegex(said, r"Z +\d+s +1  unschedulable: " + re.escape(MESSAGE) + r" \(NodeResourcesFit, TaintToleration\)")
        self.assertRegex(said, r"now: unschedulable for \d+s: tried again when something happens that "
                               r"NodeResourcesFit, TaintToleration can use, within \S+ at the latest; tried once so far")
        self.assertNotIn("since then", said)
        # What can be computed comes after it.
        self.assertLess(said.index("now: unschedulable"), said.index("default/waiting would stay pending"))

    def test_where_when_and_at_which_attempt_a_pod_was_bound(self):
        said = self.explain("default/placed", notes=["default/placed runs on small"])
        self.assertRegex(said, r"20\d\d-\d\d-\d\dT\S+Z +\d+s +1  bound to small after \d+ ms: the only feasible node")
        self.create("nodes", node("large", cpu="8"))
        self.wait_bound("waiting")
        # How it got there is known when the answer to its binding has come back.
        wait("it is known to be bound", lambda: "bound to large" in self.explain("default/waiting"))
        said = self.explain("default/waiting", "-o", "json")
        scheduler = json.loads(said)[0]["scheduler"]
        first, second = scheduler["decisions"]
        self.assertEqual((first["attempt"], first["outcome"], first["message"]), (1, "unschedulable", MESSAGE))
        self.assertEqual((second["attempt"], second["outcome"], second["node"]), (2, "bound", "large"))
        self.assertEqual(second["uid"], self.pod("waiting")["metadata"]["uid"])
        self.assertLess(first["time"], second["time"])
        self.assertNotIn("waits", scheduler)

    def test_the_cluster_has_changed_since(self):
        """A pod that goes makes room that the one which is explained could use, if it were tried now."""
        said = self.explain("default/placed")
        self.assertNotIn("since then", said)
        self.create("nodes", node("large", cpu="64", memory="512Gi"))
        said = self.explain("default/placed")
        self.assertIn("since then the cluster has changed, or not all of it could be read here: as computed below, "
                      "it would go to large, not to small", said)

    def test_a_pod_that_has_gone_is_not_forgotten(self):
        self.api.delete("pods", "placed")
        wait("it has gone", lambda: not self.pod("placed"))
        said = self.explain("default/placed", notes=["there is no pod default/placed in the cluster"])
        self.assertIn("bound to small", said)
        self.assertNotIn("would", said)

    def test_a_gated_pod_says_who_holds_it(self):
        self.create("pods", pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        said = self.explain("gated")
        self.assertIn("nothing that it remembers", said)
        self.assertRegex(said, r"now: held back for \d+s by SchedulingGates: .*; tried 0 times so far")

    def test_who_may_not_ask_is_told_so_and_gets_what_can_be_computed(self):
        self.let_developer_explain()
        said = self.explain("waiting", user="developer", notes=["note: computed here; the scheduler was not asked: ",
                            'User "developer" cannot get path "/debug/decisions/default/waiting"'])
        self.assertTrue(said.startswith("default/waiting would stay pending"), said)
        # The rules of RBAC can allow a namespace's pods. What was refused is remembered for ten seconds, so another one is asked for.
        self.grant("ClusterRole", "see-decisions",
                   [{"nonResourceURLs": ["/debug/decisions/default/*"], "verbs": ["get"]}])
        self.assertIn("bound to small", self.explain("placed", user="developer"))
        self.assertEqual(self.scheduler.get("/debug/decisions/kube-system/placed", "developer")[0], 403)

    def test_without_a_scheduler_it_is_computed(self):
        said = self.run_command(settings.SUPERCARGO, "explain", "waiting", notes=[
            "note: computed here; to see the scheduler's own decision: --scheduler https://HOST:10259"])
        self.assertTrue(said.startswith("default/waiting would stay pending"), said)
        self.scheduler.process.kill()
        self.explain("waiting", notes=["note: computed here; the scheduler was not asked: ", "onnection refused"])

    def test_the_leaders_pod_is_asked_through_the_api_server(self):
        """The lease says which pod leads. The scheduler has to let everybody read the page, for the API server takes off who asks."""
        # The API server forwards to no loopback address.
        address = own_address()
        if not address:
            self.skipTest("this machine has no address but the loopback one")
        self.scheduler.process.kill()
        scheduler = self.start_scheduler({"leaderElection": {"leaderElect": True}}, name="leader", flags=(
            "--bind-address", "0.0.0.0", "--authorization-always-allow-paths", "/healthz,/readyz,/livez,/debug/decisions/*"))
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")

        def holder():
            lease = self.api.get("leases", "kube-scheduler", "kube-system")
            return lease and lease["spec"].get("holderIdentity")

        wait("it leads", holder, 20)
        host = holder().rpartition("_")[0]
        item = pod(host, nodeName="small", hostNetwork=True, ports=[{"name": "https", "containerPort": scheduler.port}])
        item["metadata"]["namespace"] = "kube-system"
        self.api.create("pods", item, namespace="kube-system")
        self.addCleanup(self.api.delete, "pods", host, namespace="kube-system")
        status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": address,
                             "hostIPs": [{"ip": address}]}}
        self.api.patch("pods", host, status, namespace="kube-system", subresource="status")
        said = self.run_command(settings.SUPERCARGO, "explain", "waiting")
        self.assertIn(f"what the scheduler decided for default/waiting (pod kube-system/{host})", said)
        self.assertIn(MESSAGE, said.split("would stay pending")[0])


class Tunnels:
    """A proxy that does what CONNECT asks for, and remembers what that was."""

    def __enter__(self):
        self.asked = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            head = client.recv(4096).decode()
            self.asked.add(head.splitlines()[0])
            host, port = head.split()[1].rsplit(":", 1)
            server = socket.create_connection((host, int(port)))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def own_address():
    """An address of this machine that others can reach. Nothing is sent: a route is looked up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = route.getsockname()[0]
    return None if address.startswith("127.") else address
