"""What people see of a scheduler that does its work, and of one that does not: log, health, events, commands."""

import os
import re
import signal
import subprocess
import threading

from harness import settings
from harness.case import Case, ours_only
from harness.objects import condition, node, nodes, pod, priority_class
from harness.processes import Process, wait

ELECTION = {"leaderElection": {"leaderElect": True}}


class Log(Case):
    audit = "reads"

    def lines(self, scheduler, *texts):
        """The lines of the log that have all of these."""
        return [line for line in scheduler.process.text().splitlines() if all(text in line for text in texts)]

    def wait_line(self, scheduler, *texts, seconds=10):
        return wait(f"the log has a line with {texts}", lambda: self.lines(scheduler, *texts), seconds)[0]

    def test_a_cluster_that_nobody_named_is_not_touched(self):
        """A kubeconfig of the environment, or of the home folder, is the user's, for commands that they type. A scheduler without a
        configuration ends with an error."""
        home = self.folder / "home" / ".kube"
        home.mkdir(parents=True)
        kubeconfig = self.cluster.kubeconfig("shadow")
        (home / "config").write_text(kubeconfig.read_text())
        program = [settings.SUPERCARGO, "run"] if settings.SCHEDULER == "supercargo" else [settings.binary("kube-scheduler")]
        for name, environment in (("variable", {"KUBECONFIG": str(kubeconfig)}), ("home", {"KUBECONFIG": ""})):
            with self.subTest(name):
                process = Process(f"bare-{name}", [*program, "--secure-port=0"], self.folder / f"bare-{name}.log",
                                  {"HOME": str(home.parent), **environment})
                self.addCleanup(process.kill)
                wait("it ends", lambda: not process.running, 20)
                self.assertEqual(process.child.returncode, 1, process.text())
                self.assertIn("configuration", process.text())
        self.assertEqual(self.cluster.audited("shadow"), [])

    @ours_only
    def test_it_says_first_what_begins_where(self):
        scheduler = self.start_scheduler({**ELECTION, "profiles": [{"schedulerName": "mine"}]})
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")
        head = "\n".join(scheduler.process.text().splitlines()[:12])
        identity = self.api.get("leases", "kube-scheduler", "kube-system")["spec"]["holderIdentity"]
        version = subprocess.run([settings.SUPERCARGO, "--version"], capture_output=True, text=True, check=True).stdout.split()[1].rstrip(",")
        for text in (version, f"https://127.0.0.1:{self.cluster.port}", identity, str(scheduler.config_file), "mine"):
            self.assertIn(text, head)

    def test_a_pod_is_said_to_be_bound_when_it_is(self):
        self.create("nodes", node("only"))
        wire, there, go = self.meddler(), threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def hold(turn):
            there.set()
            go.wait(30)
            turn.pass_on()

        wire.rule = lambda request: hold if request.binds("held") else None
        scheduler = self.start_scheduler(port=wire.port)
        self.create("pods", pod("held"))
        self.assertTrue(there.wait(20))
        self.create("pods", pod("other"))
        line = self.wait_line(scheduler, '"Successfully bound pod to node"', 'pod="default/other"')
        self.assertIn('node="only"', line)
        self.assertEqual(self.lines(scheduler, "Successfully bound", "default/held"), [])
        go.set()
        self.wait_line(scheduler, '"Successfully bound pod to node"', 'pod="default/held"', 'node="only"')

    def test_a_binding_that_fails_is_seen(self):
        """At the level that everybody has. Each failed binding names the pod, and the error by itself."""
        self.create("nodes", node("only"))
        wire = self.meddler()
        refused = []

        def rule(request):
            if request.binds("luckless") and len(refused) < 2:
                refused.append(request)
                return lambda turn: turn.answer(403)

        wire.rule = rule
        scheduler = self.start_scheduler({"podMaxBackoffSeconds": 1}, port=wire.port)
        self.create("pods", pod("luckless"))
        line = self.wait_line(scheduler, 'pod="default/luckless"', "err=")
        self.assertRegex(line, r'err=".*a test answers 403')
        if settings.SCHEDULER == "supercargo":
            self.assertIn('node="only"', line)
        self.assertEqual(self.wait_bound("luckless", 20), "only")
        self.wait_line(scheduler, '"Successfully bound pod to node"', 'pod="default/luckless"')

    @ours_only
    def test_an_eviction_is_seen(self):
        self.create("priorityclasses", priority_class("seen-low", 1), priority_class("seen-high", 2))
        self.create("nodes", node("only", cpu="1"))
        scheduler = self.start_scheduler()
        self.create("pods", pod("victim", cpu="1", priority_class="seen-low"))
        self.wait_bound("victim")
        self.create("pods", pod("urgent", cpu="1", priority_class="seen-high"))
        wait("the victim is asked to go", lambda: self.pod("victim")["metadata"].get("deletionTimestamp"))
        line = self.wait_line(scheduler, "default/victim", "default/urgent")
        self.assertIn('node="only"', line)
        self.assertRegex(line.lower(), "evict|preempt")

    @ours_only
    def test_a_pod_with_resource_claims_is_told_the_way_out(self):
        self.create("nodes", node("only"))
        self.start_scheduler()
        claims = [{"name": "gpu", "resourceClaimName": "some-gpu"}]
        self.create("pods", pod("claiming", resourceClaims=claims))
        event = self.wait_event("claiming", "FailedScheduling")
        said = wait("it has a condition", lambda: condition(self.pod("claiming"), "PodScheduled"))
        self.assertEqual(said["status"], "False")
        for text in (event["note"], said["message"]):
            self.assertIn("resource claims", text)
            # Who can schedule it.
            self.assertIn("kube-scheduler", text)
            self.assertIn("schedulerName", text)
        # Others go on.
        self.create("pods", pod("plain"))
        self.wait_bound("plain")

    def test_sigusr2_lists_the_pods_that_wait(self):
        self.create("nodes", node("only", cpu="1"))
        scheduler = self.start_scheduler()
        self.create("pods", pod("placed", cpu="1"))
        self.wait_bound("placed")
        self.create("pods", pod("refused-one", cpu="1"), pod("refused-two", cpu="1"))
        self.create("pods", pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        self.wait_event("refused-one", "FailedScheduling")
        self.wait_event("refused-two", "FailedScheduling")
        before = len(scheduler.process.text())
        scheduler.process.signal(signal.SIGUSR2)

        def dumped():
            text = scheduler.process.text()[before:]
            queue = text.partition("Dump of scheduling queue")[2]
            return all(name in queue for name in ("refused-one", "refused-two", "gated"))

        wait("the dump names the pods that wait", dumped, say=lambda: scheduler.process.text()[before:])


@ours_only
class Stuck(Case):
    """A scheduler that does not schedule says why, to those who may know: on its pages, and to `explain`."""

    def explain(self, scheduler, name):
        """What `explain` says to the administrator, who names the scheduler."""
        command = [settings.SUPERCARGO, "explain", f"default/{name}", "--scheduler", f"https://127.0.0.1:{scheduler.port}",
                   "--scheduler-insecure-skip-tls-verify"]
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig("admin"))}
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    def test_a_kind_that_may_not_be_read(self):
        self.create("nodes", *nodes(2))
        # It may ask who somebody is, and read nothing else.
        group = "rbac.authorization.k8s.io"
        self.create("clusterrolebindings", {
            "apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "developer-asks"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:auth-delegator"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "developer"}],
        })
        scheduler = self.start_scheduler(user="developer", ready="/livez")
        self.create("pods", pod("stuck"))

        def told(user):
            return scheduler.get("/readyz", user)

        wait("it is not ready, and says why", lambda: told("monitor")[0] == 500 and "nodes" in told("monitor")[1], 20,
             say=lambda: told("monitor"))
        self.assertNotIn("nodes", told(None)[1])
        self.assertEqual(told(None)[0], 500)
        wait("the log names the rule", lambda: re.search(r"list.*nodes|nodes.*list", scheduler.process.text()), 10)
        said = self.explain(scheduler, "stuck")
        self.assertRegex(said, "nodes|pods")
        self.assertRegex(said, r"(?i)not (yet )?(listed|scheduling|allowed)|waits? for|rule")
        self.assertNotIn("to be tried next", said)

    def test_one_that_stands_by(self):
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")
        self.create("nodes", *nodes(2))
        self.start_scheduler(ELECTION, "leads")
        standby = self.start_scheduler(ELECTION, "stands-by", "/healthz", user="second")
        holder = self.api.get("leases", "kube-scheduler", "kube-system")["spec"]["holderIdentity"]
        self.create("pods", pod("pending", nodeSelector={"colour": "blue"}))
        self.wait_event("pending", "FailedScheduling")
        said = wait("it says who leads", lambda: (text := self.explain(standby, "pending")) and holder in text and text, 10,
                    say=lambda: self.explain(standby, "pending"))
        self.assertRegex(said, "(?i)stand|not lead|does not lead|leader")
        self.assertNotIn("to be tried next", said)

    def test_a_server_that_cannot_be_reached(self):
        self.create("nodes", *nodes(2))
        wire = self.proxy()
        scheduler = self.start_scheduler(port=wire.port)
        self.create("pods", pod("before"))
        self.wait_bound("before")
        wire.cut()

        def says():
            return [line for line in scheduler.process.text().splitlines() if f"127.0.0.1:{wire.port}" in line and "err=" in line]

        wait("the log says which server cannot be reached", says, 60)
        wire.mend()
        self.create("pods", pod("after"))
        self.wait_bound("after", 40)
