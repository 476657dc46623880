"""A configuration that changes while the scheduler runs. kube-scheduler must be restarted for this."""

import json
import subprocess
import time

from harness import settings
from harness.case import Case, ours_only
from harness.extender import Extender
from harness.objects import node, pod
from harness.processes import wait
from scenarios.profiles import PACKER

SECONDS = 5
# So long a kind that the new configuration reads is waited for.
PATIENCE_SECONDS = 30
SPREADER = {"schedulerName": "default-scheduler"}
PACKING = {**PACKER, "schedulerName": "default-scheduler"}


@ours_only
class Reload(Case):
    def setUp(self):
        super().setUp()
        self.create("nodes", node("empty", cpu="8"), node("busy", cpu="8"))
        self.create("pods", pod("resident", cpu="4", memory="8Gi", nodeName="busy"))
        self.scheduler = self.start_scheduler({"profiles": [SPREADER]})

    def goes_to(self, name):
        """Where a small pod would go now."""
        self.create("pods", pod(name, cpu="100m"))
        where = self.wait_bound(name)
        self.api.delete("pods", name)
        return where

    def shown(self):
        return self.scheduler.get("/configz", "admin")[1]

    def test_a_good_file_is_taken_up(self):
        """Within seconds, by the same process, and what waited before still waits and still goes."""
        self.assertEqual(self.goes_to("before"), "empty")
        self.create("pods", pod("waiting", nodeSelector={"colour": "blue"}))
        self.wait_event("waiting", "FailedScheduling")
        self.scheduler.configure({"profiles": [PACKING]})
        wait("the new configuration is shown", lambda: "MostAllocated" in self.shown(), SECONDS)
        self.assertEqual(self.goes_to("after"), "busy")
        self.assertTrue(self.scheduler.process.running)
        self.assert_bound_within(
            1, "waiting", lambda: self.api.patch("nodes", "busy", {"metadata": {"labels": {"colour": "blue"}}}))

    def test_a_bad_file_is_refused(self):
        """It is said in the log, with the path of what is wrong, and the old configuration stays."""
        bad = {**SPREADER, "plugins": {"score": {"enabled": [{"name": "NodeAfinity"}]}}}
        self.scheduler.configure({"profiles": [bad]})
        wait("the log says what is wrong", lambda: "NodeAfinity" in self.scheduler.process.text(), SECONDS)
        self.assertEqual(self.goes_to("bad"), "empty")
        self.assertNotIn("NodeAfinity", self.shown())

        said = len(self.scheduler.process.text().splitlines())
        self.scheduler.replace("profiles: [")
        wait("the log says so again", lambda: len(self.scheduler.process.text().splitlines()) > said, SECONDS)
        self.assertEqual(self.goes_to("torn"), "empty")

        # And a good one after it is taken up again.
        self.scheduler.configure({"profiles": [PACKING]})
        wait("the new configuration is shown", lambda: "MostAllocated" in self.shown(), SECONDS)
        self.assertEqual(self.goes_to("good"), "busy")

    def test_pods_of_a_profile_that_went(self):
        """They are held, with a reason, and go when the profile comes back."""
        both = {"profiles": [SPREADER, PACKER]}
        self.scheduler.configure(both)
        wait("both profiles are shown", lambda: "packer" in self.shown(), SECONDS)
        self.create("pods", pod("orphan", schedulerName="packer", nodeSelector={"colour": "blue"}))
        self.wait_event("orphan", "FailedScheduling")
        self.scheduler.configure({"profiles": [SPREADER]})
        wait("one profile is shown", lambda: "packer" not in self.shown(), SECONDS)
        self.wait_unschedulable("orphan", 'no profile is responsible for schedulerName "packer" any more')
        self.api.patch("nodes", "busy", {"metadata": {"labels": {"colour": "blue"}}})
        self.assertEqual(self.goes_to("meanwhile"), "empty")
        self.assertIsNone(self.pod("orphan")["spec"].get("nodeName"))
        self.scheduler.configure(both)
        self.assertEqual(self.wait_bound("orphan", SECONDS + 5), "busy")

    def test_pods_of_a_profile_that_comes(self):
        """They were there before anybody was responsible for them."""
        self.create("pods", pod("early", schedulerName="packer", cpu="100m"))
        self.assertEqual(self.goes_to("other"), "empty")
        self.assertIsNone(self.pod("early")["spec"].get("nodeName"))
        self.scheduler.configure({"profiles": [SPREADER, PACKER]})
        self.assertEqual(self.wait_bound("early", SECONDS + 5), "busy")

    def test_an_extender_comes_and_goes(self):
        """It gets whole nodes, whose text nobody needed before."""
        def busy(request):
            kept = [item for item in request["Nodes"]["items"] if item["metadata"]["name"] == "busy"]
            return {"Nodes": {"metadata": {}, "items": kept}, "FailedNodes": {}}

        extender = Extender(0, filter=busy)
        self.addCleanup(extender.die)
        self.assertEqual(self.goes_to("before"), "empty")
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "httpTimeout": "1s"}
        self.scheduler.configure({"profiles": [SPREADER], "extenders": [entry]})
        wait("the extender is shown", lambda: extender.url in self.shown(), SECONDS)
        self.assertEqual(self.goes_to("with"), "busy")
        item = extender.asked("filter")[0]["Nodes"]["items"][0]
        self.assertEqual(item["status"]["allocatable"]["cpu"], "8")
        self.scheduler.configure({"profiles": [SPREADER]})
        wait("the extender is not shown", lambda: extender.url not in self.shown(), SECONDS)
        self.assertEqual(self.goes_to("without"), "empty")

    def test_what_needs_a_restart_is_said(self):
        """The rest of the file is taken up all the same, and how often that happened is counted."""
        self.scheduler.configure({"profiles": [PACKING], "clientConnection": {"qps": 7}})
        wait("the new configuration is shown", lambda: "MostAllocated" in self.shown(), SECONDS)
        self.assertIn("clientConnection cannot be changed", self.scheduler.process.text())
        self.assertIn('"qps":2000', self.shown().replace(" ", ""))
        self.scheduler.replace("profiles: [")
        for result in ("success", "error"):
            wait(f"{result} is counted", lambda: self.scheduler.metric("supercargo_config_reloads_total", result=result) == 1)


# What reads volumes and claims.
STORAGE = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
PLAIN = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": [{"name": name} for name in STORAGE]}}}


@ours_only
class Forbidden(Case):
    """A new configuration whose plugins read what the scheduler may not."""

    def grant(self, config):
        """Exactly the rights that a configuration needs, for the developer."""
        (self.folder / "plain.yaml").write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config}))
        command = [settings.SUPERCARGO, "rbac", "--config", self.folder / "plain.yaml"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        kubectl = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin")]
        for verb in ("apply", "delete"):
            words = [*kubectl, verb, "--filename", "-", *(["--ignore-not-found"] if verb == "delete" else [])]
            if verb == "apply":
                subprocess.run(words, input=printed, capture_output=True, text=True, check=True, timeout=30)
                self.cluster.add_account("supercargo", "kube-system")
            else:
                self.addCleanup(subprocess.run, words, input=printed, capture_output=True, text=True, check=True, timeout=30)
        return printed

    def test_it_is_refused_and_the_old_one_goes_on(self):
        self.create("nodes", node("only"))
        self.assertNotIn("persistentvolumes", self.grant({"profiles": [PLAIN]}).partition("# Pods are bound")[0])
        scheduler = self.start_scheduler({"profiles": [PLAIN]}, user="supercargo")
        self.create("pods", pod("before"))
        self.wait_bound("before")
        scheduler.configure({"profiles": [SPREADER]})

        def refused():
            found = [line for line in scheduler.process.text().splitlines() if "persistentvolume" in line]
            return scheduler.metric("supercargo_config_reloads_total", result="error") == 1 and found

        number = 0
        deadline = time.monotonic() + PATIENCE_SECONDS + 10
        while not refused():
            # The old one schedules all the while.
            self.create("pods", pod(f"meanwhile-{number}", cpu="10m"))
            self.wait_bound(f"meanwhile-{number}", 5)
            self.api.delete("pods", f"meanwhile-{number}")
            number += 1
            self.assertLess(time.monotonic(), deadline, "nothing was refused")
        self.assertGreater(number, 3)
        self.assertEqual(scheduler.metric("supercargo_config_reloads_total", result="success") or 0, 0)
        self.assertEqual(scheduler.get("/readyz")[0], 200)
        self.create("pods", pod("after"))
        self.wait_bound("after")
        # With the rights it is taken up, by a file that changes again.
        self.grant({"profiles": [SPREADER]})
        scheduler.configure({"profiles": [SPREADER], "podMaxBackoffSeconds": 9})
        wait("it is taken up", lambda: scheduler.metric("supercargo_config_reloads_total", result="success") == 1, 20)
        self.create("pods", pod("then"))
        self.wait_bound("then")
