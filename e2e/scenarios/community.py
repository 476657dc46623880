"""The community's plugins with their custom resources on a real API server: gangs that go together or not at all, and quotas that are lent
and claimed back; with the definitions of `deploy/crds` and the rights that `supercargo rbac` prints."""

import json
import subprocess
import time

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, node_of, pod
from harness.processes import wait

CRDS = settings.ROOT / "deploy" / "crds"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
API_VERSION = "scheduling.x-k8s.io/v1alpha1"
NAME = "community-scheduler"


class Community(Case):
    """A scheduler with a plugin of the community, its definitions, and no more rights than it prints."""

    plugins = {}
    plugin_config = []

    def kubectl(self, *words):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def config(self):
        return {"profiles": [{"schedulerName": NAME, "plugins": self.plugins, "pluginConfig": self.plugin_config}],
                "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2}

    def setUp(self):
        super().setUp()
        config = self.folder / "rbac-config.yaml"
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False}, **self.config()}))
        rights = self.folder / "rbac.yaml"
        rights.write_text(subprocess.run(
            [settings.SUPERCARGO, "rbac", "--name", NAME, "--config", config],
            capture_output=True, text=True, check=True, timeout=30).stdout)
        for file in (CRDS, rights):
            self.kubectl("apply", "-f", str(file))
        self.addCleanup(self.kubectl, "delete", "--wait=false", "-f", str(rights))
        self.cluster.add_account(NAME, "kube-system")
        for kind in ("podgroups", "elasticquotas"):
            wait(f"{kind} are served", lambda: self.api.raw("GET", f"/apis/{API_VERSION}/{kind}")[0] == 200)

    def start(self, name="scheduler"):
        return self.start_scheduler(self.config(), name=name, user=NAME)

    def unbound(self, names):
        return [name for name in names if not node_of(self.pod(name))]


@ours_only
class Gangs(Community):
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]},
               "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}}
    plugin_config = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 5, "podGroupRejectPercentage": 50}}]

    def group(self, name, members, **spec):
        return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": members, **spec}}

    def member(self, group, number, cpu="1"):
        return pod(f"{group}-{number}", cpu=cpu, labels={GROUP_LABEL: group}, schedulerName=NAME)

    def phase(self, name):
        return self.api.get("podgroups", name).get("status", {}).get("phase")

    def test_a_gang_goes_together_and_its_status_says_so(self):
        self.create("nodes", node("a", cpu="3"))
        self.start()
        self.create("podgroups", self.group("trio", 3))
        self.create("pods", self.member("trio", 0), self.member("trio", 1))
        self.wait_event("trio-0", "FailedScheduling")
        self.assertEqual(len(self.unbound(["trio-0", "trio-1"])), 2)
        self.create("pods", self.member("trio", 2))
        for number in range(3):
            self.wait_bound(f"trio-{number}")
        wait("the group is being scheduled", lambda: self.phase("trio") == "Scheduling", 20, say=lambda: str(self.phase("trio")))
        for number in range(3):
            self.api.patch("pods", f"trio-{number}", {"status": {"phase": "Running"}}, subresource="status")
        wait("the group runs", lambda: self.phase("trio") == "Running", 20, say=lambda: str(self.phase("trio")))
        self.assertEqual(self.api.get("podgroups", "trio")["status"]["running"], 3)
        self.assertIn("Running", self.kubectl("get", "pg", "trio"))

    def test_a_gang_that_waits_in_vain_gives_its_room_back(self):
        self.create("nodes", node("a", cpu="2"))
        self.start()
        self.create("podgroups", self.group("trio", 3))
        self.create("pods", *(self.member("trio", number) for number in range(3)))
        self.wait_event("trio-2", "FailedScheduling")
        self.create("pods", pod("other", cpu="2", schedulerName=NAME))
        self.wait_bound("other", 20)
        self.assertEqual(len(self.unbound([f"trio-{number}" for number in range(3)])), 3)

    def test_a_scheduler_that_is_killed_in_the_middle_of_a_gang(self):
        """Within the time that members wait after the restart, enough of them are bound, or none waits and none was bound after the kill."""
        names = [f"large-{number}" for number in range(40)]
        self.create("nodes", node("a", cpu="64"))
        scheduler = self.start()
        self.create("podgroups", self.group("large", len(names)))
        self.create("pods", *(self.member("large", number) for number in range(len(names) - 1)))
        self.wait_event("large-0", "FailedScheduling")
        with self.cluster.watch("pods") as pods:
            self.create("pods", self.member("large", len(names) - 1))
            pods.wait("one is bound", lambda now: any(node_of(item) for item in now.values()), 20)
            scheduler.process.kill()
        left = self.unbound(names)
        self.start("second")
        time.sleep(1)
        wait("all are bound", lambda: not self.unbound(names), 20, say=lambda: f"{len(left)} were left; {self.why(names[0])}")


@ours_only
class Quotas(Community):
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
               "postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "CapacityScheduling"}]}}

    def setUp(self):
        super().setUp()
        self.api.create("namespaces", *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                                        for name in ("team-a", "team-b") if not self.api.get("namespaces", name)))
        self.addCleanup(self.clear)
        for team in ("team-a", "team-b"):
            self.api.create("elasticquotas", {
                "apiVersion": API_VERSION, "kind": "ElasticQuota", "metadata": {"name": "quota"},
                "spec": {"min": {"cpu": "2", "memory": "2Gi"}, "max": {"cpu": "4", "memory": "4Gi"}}}, namespace=team)

    def clear(self):
        for team in ("team-a", "team-b"):
            for kind in ("pods", "elasticquotas"):
                self.api.delete_all(kind, namespace=team)

    def put(self, team, name):
        self.api.create("pods", pod(name, cpu="1", memory="1Gi", schedulerName=NAME), namespace=team)

    def node_of(self, team, name):
        found = self.api.get("pods", name, namespace=team)
        return found and node_of(found)

    def test_what_is_lent_is_claimed_back(self):
        self.create("nodes", node("a", cpu="8"))
        self.start()
        for number in range(4):
            self.put("team-a", f"a-{number}")
        for number in range(4):
            wait(f"a-{number} is bound", lambda: self.node_of("team-a", f"a-{number}"), 10)
            self.api.patch("pods", f"a-{number}", {"status": {"phase": "Running"}}, namespace="team-a", subresource="status")
        self.put("team-a", "a-4")
        refused = lambda: [event for event in self.api.list("events", namespace="team-a")
                           if event["regarding"].get("name") == "a-4" and "is more than Max" in event["note"]]
        wait("a-4 is held back by its quota", refused, 10)
        used = lambda: self.api.get("elasticquotas", "quota", namespace="team-a").get("status", {}).get("used", {})
        wait("the status says what is used", lambda: used().get("cpu") == "4", 10, say=lambda: str(used()))
        # Team b has lent 2 cores, and claims one back: there is room on the node, and still somebody of team a has to go.
        self.put("team-b", "b-0")
        leaving = lambda: [item["metadata"]["name"] for item in self.api.list("pods", namespace="team-a")
                           if item["metadata"].get("deletionTimestamp")]
        victims = wait("a pod of team a has to go", leaving, 20)
        self.assertEqual(len(victims), 1, victims)
        # There is no kubelet that would stop it.
        self.api.delete("pods", *victims, namespace="team-a")
        wait("b-0 is bound", lambda: self.node_of("team-b", "b-0"), 20)
        left = [item["metadata"]["name"] for item in self.api.list("pods", namespace="team-a")
                if node_of(item) and not item["metadata"].get("deletionTimestamp")]
        self.assertEqual(len(left), 3, left)
