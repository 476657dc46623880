"""QosAware: who is about to violate its SLO goes first, pods keep their places for a while, and the table says how everybody does."""

import json
import os
import subprocess
import threading
import time
import urllib.request

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, node_of, nodes, pod
from harness.processes import free_port, wait

NAME = "qos-scheduler"
# How many pods are scheduled while the table is read. CI has fewer.
PODS = int(os.environ.get("SUPERCARGO_QOS_PODS", "1000"))
ENTRY = "memory.QosAware_2fBooks"


@ours_only
class Qos(Case):
    """With the rights that `supercargo rbac` prints, and no others."""

    def setUp(self):
        super().setUp()
        self.table = f"127.0.0.1:{free_port()}"
        file = self.folder / "rights.config.yaml"
        content = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **self.config()}
        file.write_text(json.dumps(content))
        rights = self.folder / "rbac.yaml"
        rights.write_text(self.run_ours("rbac", "--name", NAME, "--config", file))
        self.kubectl("apply", "-f", str(rights))
        self.addCleanup(self.kubectl, "delete", "--wait=false", "-f", str(rights))
        self.cluster.add_account(NAME, "kube-system")
        self.addCleanup(self.api.delete, "configmaps", f"{NAME}-memories", namespace="kube-system")

    def config(self, preempts=True, **args):
        alone = {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]}
        besides = {"enabled": [{"name": "QosAware"}]}
        nobody = {"disabled": [{"name": "*"}]}
        return {
            "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1,
            "leaderElection": {"leaderElect": False, "resourceNamespace": "kube-system"},
            "profiles": [{
                "schedulerName": NAME,
                "plugins": {"queueSort": alone, "postFilter": alone if preempts else nobody, "reserve": besides, "preBind": besides, "postBind": besides},
                "pluginConfig": [{"name": "QosAware", "args": {"debugAddress": self.table, **args}}],
            }],
        }

    def kubectl(self, *words):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def run_ours(self, *words):
        done = subprocess.run([settings.SUPERCARGO, *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start(self, name="scheduler", **args):
        return self.start_scheduler(self.config(**args), name, user=NAME)

    def read(self, path=""):
        with urllib.request.urlopen(f"http://{self.table}/{path}", timeout=10) as answer:
            return answer.read().decode()

    def controller(self, name):
        found = [each for each in json.loads(self.read("?output=json"))["controllers"] if each["controller"] == name]
        return found[0] if found else {}

    def member(self, controller, number, slo, cpu="1", approach="average"):
        made = pod(f"{controller}-{number}", cpu=cpu, schedulerName=NAME, terminationGracePeriodSeconds=0)
        made["metadata"]["annotations"] = {"controller": controller, "slo": str(slo), "qosMeasuring": approach}
        return made

    def remove(self, *names):
        self.api.delete("pods", *names)
        wait(f"{names} are gone", lambda: not any(self.pod(name) for name in names))

    def test_the_shorter_time_to_violation_goes_first(self):
        """Two pairs of controllers have run for twelve seconds: half of its time is enough for one of a pair, which can wait for twelve more, and
        the other, which is to run for seven tenths of its time, for five."""
        self.create("nodes", node("only", cpu="4"))
        self.start(preempts=False)
        first = [self.member(f"{pair}-{kind}", 1, slo) for pair in "ab" for kind, slo in (("half", 0.5), ("most", 0.7))]
        names = [each["metadata"]["name"] for each in first]
        self.create("pods", *first)
        for name in names:
            self.wait_bound(name)
        wait("they have run for a while", lambda: all(self.controller(name[:-2]).get("effectiveSeconds", 0) >= 12 for name in names), 30)
        self.remove(*names)
        self.create("pods", *(self.member("blocker", number, 0.1) for number in range(4)))
        for number in range(4):
            self.wait_bound(f"blocker-{number}")

        # Both come at the same time: the one goes first that can wait for less.
        self.create("pods", self.member("a-half", 2, 0.5), self.member("a-most", 2, 0.7))
        for name in ("a-half-2", "a-most-2"):
            self.wait_event(name, "FailedScheduling")
        # Backoffs end.
        time.sleep(1.5)
        self.remove("blocker-0")
        self.wait_bound("a-most-2")
        self.assertIsNone(node_of(self.pod("a-half-2")))
        self.remove("a-half-2")

        # The one that can wait for longer has done so.
        self.create("pods", self.member("b-half", 2, 0.5))
        self.wait_event("b-half-2", "FailedScheduling")
        wait("it is nearer to violation", lambda: self.controller("b-half")["timeToViolationSeconds"] <= 3, 20)
        self.create("pods", self.member("b-most", 2, 0.7))
        self.wait_event("b-most-2", "FailedScheduling")
        time.sleep(1.5)
        self.remove("blocker-1")
        self.wait_bound("b-half-2")
        self.assertIsNone(node_of(self.pod("b-most-2")))

    def test_a_pod_keeps_its_place_for_the_minimum_running_time(self):
        self.create("nodes", node("only", cpu="1"))
        self.start(minimumRunningTime="6s")
        self.create("pods", self.member("first", 1, 0.5))
        self.wait_bound("first-1")
        began = time.monotonic()
        self.create("pods", self.member("second", 1, 0.5))
        self.wait_bound("second-1", 30)
        took = time.monotonic() - began
        self.assertGreaterEqual(took, 5)
        self.assertLess(took, 20)
        self.assertIsNone(self.pod("first-1"))
        self.assertIn("second-1", [each["metadata"]["name"] for each in self.api.list("pods")])
        self.assertIn("Preempted by pod", self.wait_event("first-1", "Preempted")["note"])
        # Who is more important does not wait.
        began = time.monotonic()
        self.create("pods", self.member("third", 1, 0.9))
        self.wait_bound("third-1", 5)
        self.assertLess(time.monotonic() - began, 5)
        log = self.run_ours("qos", "--address", self.table, "--log").splitlines()
        self.assertEqual([line.split(",")[1] for line in log], ["first-1_default", "second-1_default"])

    def test_the_table_is_read_while_many_pods_are_scheduled(self):
        count = PODS
        self.create("nodes", *nodes(count // 50, cpu="5", pods="110"))
        scheduler = self.start()
        answers, stop = [], threading.Event()

        def look():
            while not stop.is_set():
                began = time.monotonic()
                text = self.read(("", "?replicas", "?output=json")[len(answers) % 3])
                answers.append((time.monotonic() - began, text))

        looking = threading.Thread(target=look)
        looking.start()
        self.addCleanup(stop.set)
        with self.cluster.watch("pods") as pods:
            self.create("pods", *(self.member(f"controller-{number % 20}", number, 0.5, cpu="100m") for number in range(count)))
            self.wait_all_bound(pods, count, 60 + count // 20)
        stop.set()
        looking.join()
        self.assertGreater(len(answers), 10)
        self.assertLess(max(took for took, _ in answers), 5, "nobody waits for the table")
        self.assertTrue(all(text for _, text in answers))

        def running():
            return sum(each["runningPods"] for each in json.loads(self.read("?output=json"))["controllers"])

        wait(f"all {count} run", lambda: running() == count, say=running)
        self.assertEqual(len(self.read("?replicas").splitlines()), count + 1)
        self.assertEqual(len(self.read().splitlines()), 21)
        gauge = lambda: scheduler.metric("supercargo_plugin_gauge", plugin="QosAware", gauge="qos", controller="controller-7")
        wait("metrics say how a controller does", lambda: (gauge() or 0) > 0, 15)
        self.assertEqual(scheduler.metric("supercargo_plugin_gauge", gauge="controllers"), 20)
        self.assertIsNone(scheduler.metric("supercargo_plugin_panics_total"))

    def test_the_table_is_right_again_after_kill_9(self):
        self.create("nodes", node("only", cpu="2"))
        scheduler = self.start("first")
        self.create("pods", self.member("web", 1, 0.9), self.member("web", 2, 0.9))
        self.wait_bound("web-1")
        self.wait_bound("web-2")
        wait("they have run for a while", lambda: self.controller("web")["effectiveSeconds"] > 4)
        self.remove("web-2")
        wait("that one ended is known", lambda: self.controller("web")["runningPods"] == 1)

        def saved():
            memories = self.api.get("configmaps", f"{NAME}-memories", "kube-system")
            text = (memories or {}).get("data", {}).get(ENTRY)
            return text and [each["times"] for each in json.loads(text)["value"]["controllers"] if each["name"] == "web"]

        # How many there were, waited, binding, ran, succeeded: what has ended is saved.
        wait("it is saved", lambda: saved() and saved()[0][3] > 0, 20, say=saved)
        # What comes after that was last saved is found in the cluster.
        self.create("pods", self.member("web", 3, 0.9))
        self.wait_bound("web-3")
        wait("it is known", lambda: self.controller("web")["runningPods"] == 2)
        before, looked = self.controller("web"), time.monotonic()
        scheduler.process.kill()
        self.start("second")
        wait("the table is there", lambda: self.controller("web"))
        after, passed = self.controller("web"), time.monotonic() - looked
        for same in ("incarnations", "runningPods", "pendingPods", "slo", "approach"):
            self.assertEqual(after[same], before[same], same)
        # Of the pod that was not saved it is known to the second since when it runs.
        self.assertAlmostEqual(after["effectiveSeconds"], before["effectiveSeconds"] + 2 * passed, delta=2.5)
        self.assertAlmostEqual(after["waitingSeconds"], before["waitingSeconds"], delta=1.5)
        printed = self.run_ours("qos", "--address", self.table)
        self.assertRegex(printed, r"^ +CONTROLLER +QOS/SLO +TTV +RUNNING +WAITING +BINDING\n +web  [01]\.\d\d/0\.90 ")
        self.assertEqual(len(self.run_ours("qos", "--address", self.table, "--replicas").splitlines()), 3)
        self.assertIn('"controller":"web"', self.run_ours("qos", "--address", self.table, "--json"))
