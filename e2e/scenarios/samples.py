"""Programs with plugins of their own, from examples/: as the authors of plugins run them."""

import json
import subprocess
import time
import unittest
import urllib.request

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod
from harness.processes import free_port, wait

SAMPLE2 = settings.EXAMPLES / "sample2"
FOLDER = settings.ROOT / "examples" / "sample2"
ACCOUNT = "sample-scheduler"
GANGS = settings.EXAMPLES / "gangs"
GANGS_FOLDER = settings.ROOT / "examples" / "gangs"
AGEING = settings.EXAMPLES / "ageing"
ALLOWANCE = settings.EXAMPLES / "allowance"
ALLOWANCE_FOLDER = settings.ROOT / "examples" / "allowance"
NODE_NUMBER = settings.EXAMPLES / "node-number"
# What the tutorial shows, for nodes a and b.
REFUSED = "0/2 nodes are available: 1 Node: a, 1 Node: b."
# What kube-scheduler has added since.
PREEMPTION = " no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."


def config(**profile):
    """What the configuration of the example says, with this besides. The program reads the file as well."""
    printed = subprocess.run([SAMPLE2, "config", "default", "--config", FOLDER / "scheduler-config.yaml"],
                             capture_output=True, text=True, check=True, timeout=30).stdout
    assert "- name: sample2" in printed
    plugins = {"filter": {"enabled": [{"name": "sample2"}]}, "preScore": {"enabled": [{"name": "sample2"}]}, **profile}
    return {"profiles": [{"schedulerName": "sample-scheduler", "plugins": plugins}]}


@ours_only
@unittest.skipUnless(SAMPLE2.exists(), f"{SAMPLE2} is not there: run `cargo build` in examples")
class Sample2(Case):
    def lines(self, scheduler, *texts):
        return [line for line in scheduler.process.text().splitlines() if all(text in line for text in texts)]

    def wait_line(self, scheduler, *texts):
        return wait(f"the log has a line with {texts}", lambda: self.lines(scheduler, *texts), 10)[0]

    def grant(self):
        """What `kubectl apply -k` makes of the folder, and a token for the account in it."""
        kubectl = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin")]
        for words in (["apply"], ["delete", "--wait=false"]):
            command = [*kubectl, *words, "-k", str(FOLDER)]
            if words[0] == "delete":
                self.addCleanup(subprocess.run, command, check=True, capture_output=True, timeout=30)
            else:
                done = subprocess.run(command, capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.cluster.add_account(ACCOUNT, "kube-system")

    def test_pods_wait_for_a_label(self):
        """With the rights of the deployment, and no others."""
        self.grant()
        self.create("nodes", node("a"), node("b"))
        flags = ["--v", "3"]
        scheduler = self.start_scheduler({**config(), "podMaxBackoffSeconds": 1}, binary=SAMPLE2, flags=flags, user=ACCOUNT)
        self.create("pods", pod("web", schedulerName="sample-scheduler"))
        self.wait_unschedulable("web", REFUSED + PREEMPTION)
        line = self.wait_line(scheduler, '"Unable to schedule pod; no fit; waiting"')
        self.assertIn('pod="default/web"', line)
        self.assertIn(f'err="{REFUSED}', line)

        # Another label helps nobody: the pod stays where it is.
        self.api.patch("nodes", "b", {"metadata": {"labels": {"disk": "ssd"}}})
        labelled = {"metadata": {"labels": {"cpu": "true"}}}
        bound = self.assert_bound_within(1, "web", lambda: self.api.patch("nodes", "a", labelled))
        self.assertEqual(bound, "a")
        line = self.wait_line(scheduler, '"Successfully bound pod to node"', 'pod="default/web"')
        self.assertRegex(line, r'pod="default/web" node="a" evaluatedNodes=2 feasibleNodes=1$')
        scheduled = self.wait_event("web", "Scheduled")
        self.assertEqual(scheduled["note"], "Successfully assigned default/web to a")
        self.assertEqual(scheduler.metric("scheduler_schedule_attempts_total", result="unschedulable"), 1)

    def test_the_event_to_the_letter_and_counted(self):
        """Without preemption it is the tutorial's event; the same once more is counted with it."""
        self.create("nodes", node("a"), node("b"))
        scheduler = self.start_scheduler(
            {**config(postFilter={"disabled": [{"name": "*"}]}), "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1},
            binary=SAMPLE2)
        self.create("pods", pod("web", schedulerName="sample-scheduler"))
        first = self.wait_event("web", "FailedScheduling", REFUSED)
        self.assertEqual(first["reportingController"], "sample-scheduler")
        # A node with the label that takes no pods: whatever happens to its labels has the pod tried again, and refused as before.
        self.create("nodes", node("c", labels={"cpu": "true"}, taints=[{"key": "dedicated", "effect": "NoSchedule"}]))
        refused = "0/3 nodes are available: 1 Node: a, 1 Node: b, 1 node(s) had untolerated taint(s)."
        self.wait_event("web", "FailedScheduling", refused)
        for count in (2, 3):
            self.api.patch("nodes", "c", {"metadata": {"labels": {"turn": str(count)}}})

            def counted(count=count):
                events = [event for event in self.events("web", "FailedScheduling") if event["note"] == refused]
                return len(events) == 1 and (events[0].get("series") or {}).get("count") == count

            wait(f"the event is counted {count} times", counted, 20, say=lambda: json.dumps(self.events("web"), indent=1))
        self.assertEqual(scheduler.metric("scheduler_schedule_attempts_total", result="unschedulable"), 4)

    def test_every_command_knows_the_plugin(self):
        self.create("nodes", node("a"), node("b"))
        self.create("pods", pod("web", schedulerName="sample-scheduler"))
        kubeconfig = self.cluster.kubeconfig("admin")
        file = self.folder / "config.yaml"
        content = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config()}
        file.write_text(json.dumps(content))

        def run(*words):
            done = subprocess.run([SAMPLE2, *words, "--config", file, "--kubeconfig", kubeconfig], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        self.assertRegex(run("explain", "default/web"), r"1 +sample2 +Node: a")
        self.assertIn("sample2", run("capacity", "--like", "default/web"))
        self.assertIn("name: web", run("dump"))
        run("shadow", "--for", "1s")


def profile(name, plugins):
    return {"profiles": [{"schedulerName": name, "plugins": plugins}]}


@ours_only
@unittest.skipUnless(GANGS.exists(), f"{GANGS} is not there: run `cargo build` in examples")
class Gangs(Case):
    """A custom resource, a gang that is permitted together, a status that a plugin keeps, and its page; all with the rights that the
    program itself prints."""

    def kubectl(self, *words):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)

    def setUp(self):
        super().setUp()
        rights = self.folder / "rbac.yaml"
        printed = subprocess.run(
            [GANGS, "rbac", "--name", "gang-scheduler", "--config", GANGS_FOLDER / "scheduler-config.yaml"],
            capture_output=True, text=True, check=True, timeout=30).stdout
        rights.write_text(printed)
        for file in (GANGS_FOLDER / "crd.yaml", rights):
            self.kubectl("apply", "-f", str(file))
            self.addCleanup(self.kubectl, "delete", "--wait=false", "-f", str(file))
        self.cluster.add_account("gang-scheduler", "kube-system")
        wait("gangs are served", lambda: self.api.raw("GET", "/apis/example.com/v1/gangs")[0] == 200)

    def member(self, name):
        return pod(name, labels={"example.com/gang": "trio"}, schedulerName="gang-scheduler")

    def bound(self):
        return self.api.get("gangs", "trio").get("status", {}).get("bound")

    def test_three_pods_go_together(self):
        self.create("nodes", node("a"), node("b"))
        page = free_port()
        scheduler = self.start_scheduler(
            {**profile("gang-scheduler", {"multiPoint": {"enabled": [{"name": "Gangs"}]}}),
             "own": {"pages": [{"plugin": "Gangs", "address": f"127.0.0.1:{page}"}]}},
            binary=GANGS, user="gang-scheduler")
        # It goes with its kind.
        self.api.create("gangs", {"apiVersion": "example.com/v1", "kind": "Gang", "metadata": {"name": "trio"}, "spec": {"size": 3}})
        self.create("pods", self.member("one"), self.member("two"))

        def read():
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/", timeout=5) as answer:
                self.assertEqual(answer.headers["Content-Type"], "text/html; charset=utf-8")
                return answer.read().decode()

        # Two have a node, and wait there for the third.
        wait("the page shows two pods at Permit", lambda: "<td>default/trio<td>3<td>0<td>2<td>0" in read(), say=read)
        wait("the status says that none is bound", lambda: self.bound() == 0)
        self.assertEqual([self.pod(name)["spec"].get("nodeName") for name in ("one", "two")], [None, None])
        # On the scheduler's own port the page is for those who may read it.
        self.assertEqual(scheduler.get("/plugins/Gangs")[0], 403)

        self.create("pods", self.member("three"))
        for name in ("one", "two", "three"):
            self.wait_bound(name)
        wait("the status says that three are bound", lambda: self.bound() == 3)
        wait("the page shows three bound pods", lambda: "<td>default/trio<td>3<td>0<td>0<td>3" in read(), say=read)
        self.assertEqual(scheduler.metric("supercargo_plugin_panics_total") or 0, 0)

    def test_a_page_of_nobody_and_one_that_is_not_there(self):
        scheduler = self.start_scheduler(profile("gang-scheduler", {"multiPoint": {"enabled": [{"name": "Gangs"}]}}),
                                         binary=GANGS, user="gang-scheduler",
                                         flags=["--authorization-always-allow-paths", "/healthz,/readyz,/livez,/plugins,/plugins/*"])
        code, text = scheduler.get("/plugins")
        self.assertEqual(code, 200)
        self.assertIn('<a href="/plugins/Gangs">Gangs and their pods</a>', text)
        self.assertIn("<th>at Permit", scheduler.get("/plugins/Gangs")[1])
        self.assertEqual(scheduler.get("/plugins/NodeAffinity")[0], 404)


@ours_only
@unittest.skipUnless(AGEING.exists(), f"{AGEING} is not there: run `cargo build` in examples")
class Ageing(Case):
    def test_the_turn_of_a_pod_comes_because_time_passed(self):
        """Two pods wait for room that there is once. The one that came first is less important, but has waited for longer than that counts."""
        sort = {"queueSort": {"enabled": [{"name": "Ageing"}], "disabled": [{"name": "*"}]}}
        self.start_scheduler({**profile("ageing-scheduler", sort), "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1},
                             binary=AGEING)
        self.create("priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5,
                                        "preemptionPolicy": "Never", "metadata": {"name": "five"}})
        self.create("pods", pod("old", cpu="1", schedulerName="ageing-scheduler"))
        self.wait_unschedulable("old", "no nodes available to schedule pods")
        # More seconds than the other pod's priority, and what its backoff takes besides.
        time.sleep(7)
        self.create("pods", pod("new", cpu="1", schedulerName="ageing-scheduler", priorityClassName="five"))
        self.wait_unschedulable("new", "no nodes available to schedule pods")
        time.sleep(1.2)
        self.create("nodes", node("a", cpu="1"))
        self.assertEqual(self.wait_bound("old"), "a")
        self.wait_unschedulable("new", "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                                       "preemption: not eligible due to preemptionPolicy=Never.")


@ours_only
@unittest.skipUnless(NODE_NUMBER.exists(), f"{NODE_NUMBER} is not there: run `cargo build` in examples")
class NodeNumber(Case):
    def test_a_pod_goes_after_as_many_seconds_as_its_node_says(self):
        self.create("nodes", node("node2"))
        self.start_scheduler(profile("number-scheduler", {"multiPoint": {"enabled": [{"name": "NodeNumber"}]}}), binary=NODE_NUMBER)
        began = time.monotonic()
        self.create("pods", pod("web", schedulerName="number-scheduler"))
        self.assertEqual(self.wait_bound("web"), "node2")
        self.assertGreaterEqual(time.monotonic() - began, 2)


@ours_only
@unittest.skipUnless(ALLOWANCE.exists(), f"{ALLOWANCE} is not there: run `cargo build` in examples")
class Allowance(Case):
    """A plugin that has its count saved, with the rights that the program prints: three pods of a namespace are bound, ever."""

    NAME, MEMORIES, ENTRY = "allowance-scheduler", "allowance-scheduler-memories", "memory.Allowance_2fSpent"
    REFUSED = "0/1 nodes are available: the namespace has had its 3 pods. no new claims to deallocate, " \
              "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."

    def kubectl(self, *words):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)

    def setUp(self):
        super().setUp()
        rights = self.folder / "rbac.yaml"
        rights.write_text(subprocess.run(
            [ALLOWANCE, "rbac", "--name", self.NAME, "--config", ALLOWANCE_FOLDER / "scheduler-config.yaml"],
            capture_output=True, text=True, check=True, timeout=30).stdout)
        self.kubectl("apply", "-f", str(rights))
        self.addCleanup(self.kubectl, "delete", "--wait=false", "-f", str(rights))
        self.cluster.add_account(self.NAME, "kube-system")
        self.addCleanup(self.api.delete, "leases", self.NAME, namespace="kube-system")
        self.addCleanup(self.api.delete, "configmaps", self.MEMORIES, namespace="kube-system")
        self.create("nodes", node("only"))

    def start(self, name, **options):
        election = {"leaderElect": True, "resourceName": self.NAME, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
        plugins = {"multiPoint": {"enabled": [{"name": "Allowance"}]}}
        return self.start_scheduler({**profile(self.NAME, plugins), "leaderElection": election}, name, binary=ALLOWANCE, user=self.NAME,
                                    **options)

    def put(self, *names):
        self.create("pods", *(pod(name, schedulerName=self.NAME) for name in names))

    def saved(self):
        """How many pods of the namespace were counted, as it was last saved; None as long as the scheduler has saved nothing."""
        memories = self.api.get("configmaps", self.MEMORIES, "kube-system")
        text = (memories or {}).get("data", {}).get(self.ENTRY)
        try:
            return json.loads(text)["value"]["pods"].get("default") if text else None
        except json.JSONDecodeError:
            return None  # what a test has put there is there still

    def wait_saved(self, pods, seconds=15):
        wait(f"it is saved that there were {pods} pods", lambda: self.saved() == pods, seconds, say=self.saved)

    def test_a_count_survives_kill_9(self):
        scheduler = self.start("first")
        self.put("a", "b")
        self.wait_bound("a")
        self.wait_bound("b")
        self.wait_saved(2)
        # Nothing in the cluster says any more that there were two.
        self.api.delete("pods", "a")
        scheduler.process.kill()

        scheduler = self.start("second")
        self.put("c")
        self.assertEqual(self.wait_bound("c"), "only")
        self.put("d")
        self.wait_unschedulable("d", self.REFUSED)
        self.wait_saved(3)
        self.assertEqual(scheduler.metric("supercargo_memory_loads_total", result="success"), 1)
        self.assertGreaterEqual(scheduler.metric("supercargo_memory_saves_total", result="success"), 1)
        self.assertGreater(scheduler.metric("supercargo_memory_saved_bytes"), 0)

    def test_a_standby_goes_on_with_what_the_leader_wrote_last(self):
        leader = self.start("first")
        self.start("second", ready="/healthz")
        self.put("a")
        self.wait_bound("a")
        self.wait_saved(1)
        self.put("b", "c")
        self.wait_bound("b")
        self.wait_bound("c")
        self.wait_saved(3)
        leader.process.kill()
        self.put("d")
        self.wait_unschedulable("d", self.REFUSED, 30)

    def test_an_orderly_end_saves_what_was_counted_last(self):
        scheduler = self.start("first")
        self.put("a")
        self.wait_bound("a")
        self.wait_saved(1)
        # The next write would come ten seconds after the last.
        self.put("b", "c")
        self.wait_bound("b")
        self.wait_event("b", "Scheduled")
        self.wait_bound("c")
        self.wait_event("c", "Scheduled")
        self.assertEqual(scheduler.process.terminate(), 0)
        self.assertEqual(self.saved(), 3)

    def test_state_that_cannot_be_read_is_dropped(self):
        for turn, text in enumerate(("nonsense", json.dumps({"version": 7, "value": {"pods": {"default": 3}}}))):
            with self.subTest(text=text):
                self.api.delete("configmaps", self.MEMORIES, namespace="kube-system")
                self.api.create("configmaps", {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.MEMORIES, "namespace": "kube-system", "labels": {"a": "b"}},
                    "data": {"format": "1", self.ENTRY: text}})
                scheduler = self.start(f"turn-{turn}")
                self.put(f"pod-{turn}")
                self.assertEqual(self.wait_bound(f"pod-{turn}"), "only")
                log = scheduler.process.text()
                self.assertRegex(log, r'"What a plugin had saved is dropped, and it begins without" .* plugin="Allowance" memory="Allowance/Spent"')
                reason = ("unreadable", "version")[turn]
                self.assertEqual(scheduler.metric("supercargo_memory_dropped_total", plugin="Allowance", reason=reason), 1)
                # What others have put there stays.
                self.wait_saved(1)
                self.assertEqual(self.api.get("configmaps", self.MEMORIES, "kube-system")["metadata"]["labels"], {"a": "b"})
                scheduler.process.terminate()
