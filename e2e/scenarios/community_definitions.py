"""Definitions of custom resources that are not installed: schedulers go on without, say so wherever somebody looks, and take them up as soon
as they are there."""

import subprocess
import threading

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


@ours_only
class Unlisted(Community):
    definitions = ()
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}

    def test_a_kind_that_is_installed_and_cannot_be_listed_is_not_empty(self):
        """A quota comes together with its definition, and every list of quotas fails. Nothing is scheduled past it, and the page says why."""
        self.create("nodes", node("only", cpu="8"))
        wire, broken = self.meddler(), threading.Event()

        def rule(request):
            if broken.is_set() and request.reads("elasticquotas"):
                return lambda turn: turn.answer(500)

        wire.rule = rule
        scheduler = self.start(port=wire.port)
        self.create("pods", pod("early", cpu="1", schedulerName=NAME))
        self.wait_bound("early")
        broken.set()
        self.kubectl("apply", "-f", str(CRDS))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
        self.create("elasticquotas", elastic_quota({"cpu": "2"}, {"cpu": "2"}))
        page = lambda: scheduler.get("/readyz?verbose")[1]
        says = lambda: "waiting for the list of elasticquotas, served again (a test answers 500" in page()
        wait("/readyz names the kind", says, SECONDS, say=page)
        self.create("pods", pod("late", cpu="4", schedulerName=NAME))
        tries = lambda: len(wire.asked(lambda request: request.reads("elasticquotas")))
        before = tries()
        wait("the list is tried again", lambda: tries() > before + 1, SECONDS)
        self.assertIsNone(node_of(self.pod("late")))
        broken.clear()
        refused = lambda: [event for event in self.events("late", "FailedScheduling") if "is more than Max" in event["note"]]
        wait("the quota counts", lambda: refused() or node_of(self.pod("late")), SECONDS)
        self.assertTrue(refused(), self.why("late"))


OLD_GROUP = "scheduling.sigs.k8s.io"
OLD_LABEL = "pod-group.scheduling.sigs.k8s.io"


class Plugins(Community):
    """Both plugins with custom resources of their own, and events about those."""

    plugins = Definitions.plugins

    def about(self, name, reason):
        """What is told about an object."""
        return [event["note"] for event in self.events(name, reason)]

    def wait_told(self, name, reason, words):
        wait(f"{name} has the event {reason}", lambda: [note for note in self.about(name, reason) if words in note], 10,
             say=lambda: str([(event["reason"], event["note"]) for event in self.events(name)]))


@ours_only
class OldNames(Plugins):
    """The definitions under the name that their API group had before."""

    definitions = ()

    def setUp(self):
        super().setUp()
        for file in CRDS.glob("scheduling.x-k8s.io_*.yaml"):
            old = self.folder / file.name
            old.write_text(file.read_text().replace("scheduling.x-k8s.io", OLD_GROUP))
            self.kubectl("apply", "-f", str(old))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")

    def test_they_count_and_are_warned_of(self):
        self.create("nodes", node("only"))
        objects = [elastic_quota({"cpu": "1"}, {"cpu": "1"}), pod_group("pair", 2)]
        for item in objects:
            item["apiVersion"] = f"{OLD_GROUP}/v1alpha1"
            plural = f"{item['kind'].lower()}s"
            self.api.call("POST", f"/apis/{item['apiVersion']}/namespaces/default/{plural}", item)
        self.start()
        for name in ("quota", "pair"):
            self.wait_told(name, "OldApiGroup", f"{OLD_GROUP} is the old name of scheduling.x-k8s.io")
        member = lambda number: pod(f"member-{number}", cpu="500m", labels={OLD_LABEL: "pair"}, schedulerName=NAME)
        self.create("pods", member(0))
        self.wait_told("member-0", "FailedScheduling", "cannot find enough sibling pods")
        self.create("pods", member(1))
        for number in range(2):
            self.wait_bound(f"member-{number}")
        self.create("pods", pod("late", cpu="500m", schedulerName=NAME))
        self.wait_told("late", "FailedScheduling", "is more than Max")


@ours_only
class OddObjects(Plugins):
    """What makes no sense is told of on the object, and stops nobody."""

    def test_odd_quotas_and_groups(self):
        self.create("nodes", node("only"))
        self.start()
        self.create("elasticquotas", elastic_quota({"cpu": "3"}, {"cpu": "2"}, "quota"), elastic_quota({"cpu": "1"}, {"cpu": "1"}, "second"))
        self.create("podgroups", pod_group("huge", 10**9), pod_group("hasty", 1, scheduleTimeoutSeconds=-5))
        self.wait_told("quota", "InvalidElasticQuota", "spec.min.cpu is 3, which is more than spec.max.cpu, 2")
        self.wait_told("second", "DuplicateElasticQuota", "another ElasticQuota, quota, which counts")
        self.wait_told("huge", "InvalidPodGroup", "no more than 65535 pods can go together")
        self.wait_told("hasty", "InvalidPodGroup", "spec.scheduleTimeoutSeconds is below 0")
        # The API server refuses what the definition does not allow.
        refused = self.api.raw("POST", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups", pod_group("none", 0))
        self.assertEqual(refused[0], 422, refused[1])
        in_group = lambda name, group: pod(name, cpu="500m", labels={GROUP_LABEL: group}, schedulerName=NAME)
        self.create("pods", in_group("stuck", "huge"))
        self.wait_told("stuck", "FailedScheduling", "minMember of group: 1000000000")
        self.create("pods", in_group("quick", "hasty"), pod("plain", cpu="1", schedulerName=NAME))
        for name in ("quick", "plain"):
            self.wait_bound(name)
        # Up to the max, and no further.
        self.create("pods", pod("late", cpu="1", schedulerName=NAME))
        self.wait_told("late", "FailedScheduling", "is more than Max")
        self.api.delete("pods", "plain")
        self.wait_bound("late", 20)
