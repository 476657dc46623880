"""Definitions of custom resources that are not installed: schedulers go on without, say so wherever somebody looks, and take them up as soon
as they are there."""

import subprocess

from harness import settings
from harness.case import ours_only
from harness.community import CRDS, GROUP_LABEL, NAME, Community, elastic_quota, pod_group
from harness.objects import node, node_of, pod
from harness.processes import wait

# How often the scheduler looks for a kind, and a while to list it.
SECONDS = 30


@ours_only
class Definitions(Community):
    definitions = ()
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}, {"name": "CapacityScheduling"}]},
               "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}}

    def assert_said(self, words, is_said):
        """Whether `/readyz?verbose` and `explain` say it."""
        code, text = self.scheduler.get("/readyz?verbose")
        self.assertEqual((code, words in text), (200, is_said), text)
        config = self.scheduler.config_file
        done = subprocess.run([settings.SUPERCARGO, "explain", "--config", config, "--kubeconfig", self.cluster.kubeconfig("admin")],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(words in done.stderr, is_said, done.stderr)

    def test_a_scheduler_misses_them_and_finds_them(self):
        quota = "CapacityScheduling is of no use without elasticquotas.scheduling.x-k8s.io"
        group = "Coscheduling reads podgroups.scheduling.x-k8s.io"
        self.create("nodes", node("only"))
        self.scheduler = self.start()
        # Pods go all the same; but a member of a group waits for the group, as it does where only the object is missing.
        self.create("pods", pod("early", cpu="1", schedulerName=NAME),
                    pod("member", cpu="1", labels={GROUP_LABEL: "pair"}, schedulerName=NAME))
        self.wait_bound("early")
        self.wait_event("member", "FailedScheduling")
        for words in (quota, group):
            self.assertIn(words, self.scheduler.process.text())
            self.assert_said(words, True)
        # What had other names before is missed by nobody.
        self.assertNotIn("without elasticquotas.scheduling.sigs.k8s.io", self.scheduler.process.text())

        self.kubectl("apply", "-f", str(CRDS))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
        # The pods that run then take all of it.
        self.create("elasticquotas", elastic_quota({"cpu": "2"}, {"cpu": "2"}))
        self.create("podgroups", pod_group("pair", 1))
        self.wait_bound("member", SECONDS)
        status = lambda: self.api.get("podgroups", "pair").get("status", {}).get("phase")
        wait("the group has a status", status, SECONDS)
        self.create("pods", pod("late", cpu="1", schedulerName=NAME))
        refused = lambda: [event for event in self.events("late", "FailedScheduling") if "is more than Max" in event["note"]]
        wait("the quota counts", lambda: refused() or node_of(self.pod("late")), SECONDS)
        self.assertTrue(refused(), self.why("late"))
        for words in (quota, group):
            self.assert_said(words, False)

    def test_the_definitions_are_printed(self):
        printed = self.folder / "crds.yaml"
        printed.write_text(subprocess.run([settings.SUPERCARGO, "crds"], capture_output=True, text=True, check=True, timeout=30).stdout)
        self.kubectl("apply", "-f", str(CRDS))
        # They are those of the folder.
        again = self.kubectl("apply", "-f", str(printed))
        self.assertEqual([line for line in again.splitlines() if not line.endswith(" unchanged")], [], again)
