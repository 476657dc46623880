"""`supercargo extender` behind the real kube-scheduler, and behind our own: names and whole nodes, all four verbs, deaths, and the Policy file of old."""

import json
import os
import re
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import settings
from harness.case import Case, ours_only
from harness.objects import condition, node, node_of, nodes, pod, priority_class
from harness.processes import Process, free_port, wait

# How many pods each of the large scenarios schedules: a thousand in the long run, fewer day by day.
PODS = int(os.environ.get("SUPERCARGO_E2E_EXTENDER_PODS") or 100)
NODES = 20
ACCOUNT = "supercargo-extender"
NAMESPACE = "kube-system"
# kube-scheduler with as little as goes: who is first, what a node has room for, and preemption. All else is up to the extender.
PLUGINS = ["PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder"]
BARE = [{
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in PLUGINS]}},
}]


LUCKY = settings.EXAMPLES / "lucky-extender"
LUCKY_FOLDER = settings.ROOT / "examples" / "lucky-extender"


class Server:
    """An extender of ours."""

    def __init__(self, case, *words, port=None, without_cluster=False, binary=None):
        self.port = port or free_port()
        cluster = ["--without-cluster"] if without_cluster else ["--kubeconfig", case.cluster.kubeconfig(ACCOUNT)]
        self.process = Process("extender", [
            binary or settings.SUPERCARGO, "extender", "--listen", f"127.0.0.1:{self.port}", *cluster, *words,
        ], case.folder / f"extender-{self.port}.log")
        case.addCleanup(self.process.kill)
        case.cluster.guests.append(self.process)
        wait("the extender is ready", lambda: self.get("/readyz")[0] == 200, 30, say=lambda: self.process.tail(20))

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def asked(self, verb, outcome="answered"):
        """How many questions were answered like this."""
        text = self.get("/metrics")[1]
        series = f'supercargo_extender_questions_total{{outcome="{outcome}",verb="{verb}"}}'
        found = re.search(re.escape(series) + r" (\d+)", text)
        return int(found[1]) if found else 0


@ours_only
class ExtenderServer(Case):
    audit = True

    def setUp(self):
        super().setUp()
        rights = subprocess.run([settings.SUPERCARGO, "rbac", "--mode", "extender", "--name", ACCOUNT],
                                capture_output=True, text=True, check=True, timeout=30).stdout
        kubectl = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin")]
        subprocess.run([*kubectl, "apply", "-f", "-"], input=rights, text=True, check=True, capture_output=True, timeout=30)
        if ACCOUNT not in self.cluster.tokens:
            self.cluster.add_account(ACCOUNT, NAMESPACE)

    def entry(self, server, **fields):
        return {
            "urlPrefix": f"http://127.0.0.1:{server.port}/", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
            "nodeCacheCapable": True, "httpTimeout": "5s", **fields,
        }

    def start(self, server, program="kube-scheduler", profiles=None, **fields):
        config = {"extenders": [self.entry(server, **fields)], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        return self.start_scheduler({**config, "profiles": profiles or BARE}, program=program)

    def drain(self, **fields):
        """Many pods through all of filter, prioritize and bind."""
        self.create("nodes", *nodes(NODES, cpu="64"))
        server = Server(self, "--serve-bind")
        self.start(server, bindVerb="bind", **fields)
        with self.cluster.watch("pods") as watch:
            self.create("pods", *(pod(f"web-{number:04}", cpu="500m") for number in range(PODS)))
            self.wait_all_bound(watch, PODS, 60 + PODS / 5)
        self.assert_no_node_over()
        self.assertGreaterEqual(server.asked("filter"), PODS)
        self.assertGreaterEqual(server.asked("prioritize"), PODS)
        self.assertEqual(server.asked("bind"), PODS)
        for outcome in ("failed", "malformed", "refused"):
            for verb in ("filter", "prioritize", "bind"):
                self.assertEqual(server.asked(verb, outcome), 0, f"{verb} {outcome}\n{server.process.tail(20)}")
        bindings = self.cluster.audited("scheduler", verb="create", subresource="binding")
        ours = [entry for entry in bindings if re.fullmatch(r"web-\d{4}", entry["objectRef"]["name"])]
        self.assertEqual(ours, [], "the extender binds")
        # The plugins of the extender spread them.
        counts = {}
        for item in self.api.list("pods"):
            counts[node_of(item)] = counts.get(node_of(item), 0) + 1
        self.assertEqual(len(counts), NODES, counts)

    def test_pods_are_scheduled_by_names(self):
        self.drain(nodeCacheCapable=True)

    def test_pods_are_scheduled_by_whole_nodes(self):
        self.drain(nodeCacheCapable=False)

    def test_its_reasons_are_told(self):
        """What only the extender looks at here: a label and a taint."""
        self.create("nodes", node("node-a"), node("node-b", labels={"disk": "ssd"}))
        server = Server(self)
        for capable in (True, False):
            with self.subTest(capable):
                scheduler = self.start(server, nodeCacheCapable=capable)
                name = f"picky-{capable}".lower()
                self.create("pods", pod(name, cpu="100m", nodeSelector={"disk": "tape"}))

                def refused():
                    said = condition(self.pod(name), "PodScheduled")
                    return said and said["reason"] == "Unschedulable" and said["message"]

                told = wait("it is refused", refused, 10, say=lambda: self.why(name))
                self.assertIn("2 node(s) didn't match Pod's node affinity/selector", told)
                # Anything may help whom an extender refused. The two hear of a change one after the other, so once may not be enough.
                rounds = iter(range(1000))

                def bound():
                    labels = {"disk": "tape", "round": str(next(rounds))}
                    self.api.patch("nodes", "node-a", {"metadata": {"labels": labels}})
                    return node_of(self.pod(name))

                self.assertEqual(wait("it is bound", bound, 30, say=lambda: self.why(name)), "node-a")
                scheduler.process.kill()
                self.api.patch("nodes", "node-a", {"metadata": {"labels": {"disk": None}}})

    def test_it_has_a_say_in_preemption(self):
        """Two nodes could be made free for kube-scheduler; only one of them is any good to the extender."""
        self.create("priorityclasses", priority_class("low", 1), priority_class("high", 2))
        self.create("nodes", node("node-a"), node("node-b", labels={"disk": "ssd"}))
        self.create("pods", *(pod(f"resident-{letter}", cpu="4", priority_class="low", nodeName=f"node-{letter}") for letter in "ab"))
        server = Server(self)
        for capable in (True, False):
            with self.subTest(capable):
                scheduler = self.start(server, nodeCacheCapable=capable, preemptVerb="preempt")
                before = server.asked("preempt")
                name = f"urgent-{capable}".lower()
                self.create("pods", pod(name, cpu="4", priority_class="high", nodeSelector={"disk": "ssd"}))
                wait("the resident of node-b is asked to go",
                     lambda: (self.pod("resident-b") or {"metadata": {"deletionTimestamp": True}})["metadata"].get("deletionTimestamp"),
                     10, say=lambda: self.why(name))
                self.assertGreater(server.asked("preempt"), before)
                self.assertIsNone(self.pod("resident-a")["metadata"].get("deletionTimestamp"))
                self.api.delete("pods", "resident-b")
                self.assertEqual(self.wait_bound(name), "node-b")
                scheduler.process.kill()
                self.api.delete("pods", name)
                wait("the node is free", lambda: not self.pod(name))
                self.create("pods", pod("resident-b", cpu="4", priority_class="low", nodeName="node-b"))

    def test_it_dies_and_comes_back(self):
        self.create("nodes", node("node-a"), node("node-b", labels={"disk": "ssd"}))
        ssd = {"nodeSelector": {"disk": "ssd"}}
        server = Server(self)
        scheduler = self.start(server)
        server.process.kill()
        self.create("pods", pod("stuck", cpu="100m", **ssd))

        def failed():
            said = condition(self.pod("stuck"), "PodScheduled")
            return said and said["reason"] == "SchedulerError" and said["message"]

        told = wait("the attempt fails", failed, 20, say=lambda: self.why("stuck"))
        self.assertIn("connection refused", told)
        server = Server(self, port=server.port)
        self.assertEqual(self.wait_bound("stuck", 30), "node-b")
        scheduler.process.kill()

        scheduler = self.start(server, ignorable=True)
        server.process.kill()
        # Without it nobody here looks at labels.
        self.create("pods", *(pod(f"loose-{number}", cpu="100m", **ssd) for number in range(4)))
        for number in range(4):
            self.wait_bound(f"loose-{number}", 20)
        server = Server(self, port=server.port)
        self.create("pods", *(pod(f"again-{number}", cpu="100m", **ssd) for number in range(4)))
        for number in range(4):
            self.assertEqual(self.wait_bound(f"again-{number}", 20), "node-b")

    def test_one_node_is_not_rated(self):
        """There is nothing to prefer where one node is left: neither scheduler asks."""
        self.create("nodes", node("node-a"), node("node-b", labels={"disk": "ssd"}))
        for program in ("kube-scheduler", "supercargo"):
            with self.subTest(program):
                server = Server(self)
                scheduler = self.start(server, program=program)
                self.create("pods", pod(f"one-{program}", cpu="100m", nodeSelector={"disk": "ssd"}))
                self.assertEqual(self.wait_bound(f"one-{program}"), "node-b")
                self.assertEqual((server.asked("filter"), server.asked("prioritize")), (1, 0))
                self.create("pods", pod(f"two-{program}", cpu="100m"))
                self.wait_bound(f"two-{program}")
                self.assertEqual((server.asked("filter"), server.asked("prioritize")), (2, 1))
                scheduler.process.kill()

    def test_its_scores_count_ten_times(self):
        """Ours as the scheduler, without scores of its own: the node that the extender likes best, by weight 1."""
        self.create("nodes", node("idle"), node("busy"))
        self.create("pods", pod("resident", cpu="3", memory="8Gi", nodeName="busy"))
        server = Server(self)
        for program in ("kube-scheduler", "supercargo"):
            with self.subTest(program):
                scheduler = self.start(server, program=program)
                for number in range(3):
                    name = f"web-{program}-{number}"
                    self.create("pods", pod(name, cpu="10m"))
                    self.assertEqual(self.wait_bound(name), "idle")
                scheduler.process.kill()

    def test_the_policy_file_of_old(self):
        """The two files of the tutorial, with another port and no lease: `supercargo run` reads the Policy that the configuration names."""
        self.create("nodes", node("node-a"), node("node-b"))
        server = Server(self)
        policy = self.folder / "scheduler-extender-policy.json"
        config = self.folder / "scheduler-extender-config.yaml"
        policy.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", "extenders": [{
            "urlPrefix": f"http://localhost:{server.port}/", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
            "enableHttps": False,
        }]}))
        config.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n"
            f"clientConnection:\n  kubeconfig: {self.cluster.kubeconfig('scheduler')}\nleaderElection:\n  leaderElect: false\n"
            f"algorithmSource:\n  policy:\n    file:\n      path: {policy}\n"
        )
        command = [settings.SUPERCARGO, "run", "--config", config, "--secure-port", "0"]
        process = Process("old", command, self.folder / "old.log")
        self.addCleanup(process.kill)
        self.create("pods", pod("web", cpu="100m"))
        wait("web is bound", lambda: node_of(self.pod("web")), 20, say=lambda: process.tail(20))
        self.assertEqual((server.asked("filter"), server.asked("prioritize")), (1, 1))
        process.kill()
        policy.unlink()
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error C070 algorithmSource.policy.file.path", done.stderr)
        self.assertIn(f"the file {policy}, which cannot be read: No such file or directory", done.stderr)
        policy.write_text("<html>")
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{policy}:1:1: error C004", done.stderr)

    def test_strangers_do_no_harm(self):
        """A body of a gibibyte, garbage, and clients that fall asleep."""
        self.create("nodes", node("node-a"), node("node-b"))
        server = Server(self)

        def send(text, wait_for_answer=True):
            stream = socket.create_connection(("127.0.0.1", server.port), 10)
            self.addCleanup(stream.close)
            stream.sendall(text)
            return stream.recv(1000) if wait_for_answer else stream

        head = b"POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: "
        self.assertTrue(send(head + b"1073741824\r\n\r\n{").startswith(b"HTTP/1.1 413 "))
        self.assertTrue(send(b"\x16\x03\x01garbage\r\n\r\n").startswith(b"HTTP/1.1 400 "))
        asleep = [send(head + b"1000\r\n\r\n{", wait_for_answer=False) for _ in range(100)]
        self.start(server)
        self.create("pods", pod("web", cpu="100m"))
        self.wait_bound("web")
        self.assertEqual(len(asleep), 100)
        resident = int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{server.process.child.pid}/status").read())[1])
        self.assertLess(resident, 256 * 1024, "kB of memory")
        self.assertEqual(server.process.terminate(15), 0)

    def test_without_a_cluster_only_whole_nodes_are_answered(self):
        self.create("nodes", node("node-a"), node("node-b", labels={"disk": "ssd"}))
        server = Server(self, without_cluster=True)
        scheduler = self.start(server, nodeCacheCapable=False)
        self.create("pods", pod("web", cpu="100m", nodeSelector={"disk": "ssd"}))
        self.assertEqual(self.wait_bound("web"), "node-b")
        scheduler.process.kill()
        self.start(server)
        self.create("pods", pod("lost", cpu="100m"))
        wait("it says why", lambda: "set nodeCacheCapable: false" in self.why("lost"), 20, say=lambda: self.why("lost"))


@ours_only
@unittest.skipUnless(LUCKY.exists(), f"{LUCKY} is not there: run `cargo build` in examples")
class LuckyExtender(Case):
    """The program of examples/lucky-extender, as the tutorial that it follows has it: whole nodes, and nothing known but them."""

    def test_pods_need_luck(self):
        self.create("nodes", *nodes(2))
        server = Server(self, "--config", LUCKY_FOLDER / "extender-config.yaml", without_cluster=True, binary=LUCKY)
        self.assertEqual(server.get("/"), (200, "Welcome to lucky-extender!\n"))
        entry = {"urlPrefix": f"http://127.0.0.1:{server.port}/", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}
        config = {"extenders": [entry], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        self.start_scheduler(config, program="kube-scheduler")
        names = [f"web-{number}" for number in range(40)]
        self.create("pods", *(pod(name, cpu="10m") for name in names))

        def unlucky():
            return [event for event in self.api.list("events") if "2 Well, you're not lucky" in event.get("note", "")]

        # Of forty pods on two nodes ten have no luck at first, as a rule; whoever asks often enough always has.
        wait("somebody has no luck", unlucky, 20)
        for number in range(100):
            if all(node_of(item) for item in self.api.list("pods")):
                break
            # Anything may help whom an extender refused.
            self.api.patch("nodes", self.api.list("nodes")[0]["metadata"]["name"], {"metadata": {"labels": {"round": str(number)}}})
            wait("a round has passed", lambda before=server.asked("filter"): server.asked("filter") > before
                 or all(node_of(item) for item in self.api.list("pods")), 10)
        for name in names:
            self.wait_bound(name)

    def test_its_manifest_is_taken(self):
        """By the real API server, which takes a static pod's manifest as it takes any pod."""
        kubectl = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin")]
        done = subprocess.run([*kubectl, "apply", "--dry-run=server", "-f", LUCKY_FOLDER / "kube-scheduler.yaml"],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
