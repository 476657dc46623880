"""Programs with plugins of their own, from examples/: as the authors of plugins run them."""

import json
import subprocess
import unittest

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod
from harness.processes import wait

SAMPLE2 = settings.EXAMPLES / "sample2"
FOLDER = settings.ROOT / "examples" / "sample2"
ACCOUNT = "sample-scheduler"
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
