"""The community's plugins with their custom resources on a real API server: gangs that go together or not at all, and quotas that are lent
and claimed back; with the definitions of `deploy/crds` and the rights that `supercargo rbac` prints."""

from harness.case import ours_only
from harness.community import GROUP_LABEL, NAME, Community, elastic_quota, namespace, pod_group
from harness.meddler import Turn
from harness.objects import node, node_of, pod
from harness.processes import wait


@ours_only
class Gangs(Community):
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]},
               "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}}
    # How long members wait for each other.
    SECONDS = 5
    plugin_config = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": SECONDS, "podGroupRejectPercentage": 50}}]

    def member(self, group, number, cpu="1"):
        return pod(f"{group}-{number}", cpu=cpu, labels={GROUP_LABEL: group}, schedulerName=NAME)

    def phase(self, name):
        return self.api.get("podgroups", name).get("status", {}).get("phase")

    def test_a_gang_goes_together_and_its_status_says_so(self):
        self.create("nodes", node("a", cpu="3"))
        self.start()
        self.create("podgroups", pod_group("trio", 3))
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
        self.create("podgroups", pod_group("trio", 3))
        self.create("pods", *(self.member("trio", number) for number in range(3)))
        self.wait_event("trio-2", "FailedScheduling")
        self.create("pods", pod("other", cpu="2", schedulerName=NAME))
        self.wait_bound("other", 20)
        self.assertEqual(len(self.unbound([f"trio-{number}" for number in range(3)])), 3)

    # A scheduler that dies in the middle of admitting a gang.

    SIZE = 40

    def kill_after(self, count):
        """A gang of which so many members are bound when the scheduler dies, and the names of all."""
        names = [f"large-{number}" for number in range(self.SIZE)]
        self.create("nodes", node("a", cpu="64"))
        wire = self.meddler()
        let_through = []

        def rule(request):
            if request.method != "POST" or not request.path.endswith("/binding"):
                return None
            let_through.append(request.path)
            return None if len(let_through) <= count else Turn.say_nothing

        wire.rule = rule
        scheduler = self.start(port=wire.port)
        self.create("podgroups", pod_group("large", len(names)))
        self.create("pods", *(self.member("large", number) for number in range(len(names))))
        wait("bindings are asked for", lambda: len(let_through) > count, 20, say=lambda: self.why(names[0]))
        bound = lambda: len(names) - len(self.unbound(names))
        wait(f"{count} are bound", lambda: bound() == count, 10, say=lambda: str(bound()))
        scheduler.process.kill()
        return names

    def test_a_scheduler_that_is_killed_in_the_middle_of_a_gang(self):
        """After the restart, within the time that members wait for each other, enough of them are bound."""
        for count in (0, 1, self.SIZE // 2, self.SIZE - 1):
            with self.subTest(bound=count):
                names = self.kill_after(count)
                second = self.start(f"second-{count}")
                wait("all are bound", lambda: not self.unbound(names), self.SECONDS, say=lambda: self.why(names[-1]))
                second.process.kill()
                for kind in ("pods", "podgroups", "nodes"):
                    self.api.delete_all(kind)
                wait("all pods are gone", lambda: not self.api.list("pods"), 20)

    def test_a_gang_that_loses_a_member_while_nobody_schedules(self):
        """It cannot be complete any more: none waits after the restart, and none is bound that was not before."""
        names = self.kill_after(10)
        left = self.unbound(names)
        self.api.delete("pods", left[0])
        self.start("second")
        lacks = lambda name: any("cannot find enough sibling pods" in event["note"] for event in self.events(name, "FailedScheduling"))
        for name in left[1:]:
            wait(f"{name} is refused", lambda: lacks(name), 20, say=lambda: self.why(name))
        # Nobody holds room: all that the ten have not taken is there for another.
        self.create("pods", pod("other", cpu="54", schedulerName=NAME))
        self.wait_bound("other", self.SECONDS)
        self.assertEqual(self.unbound(left[1:]), left[1:])


@ours_only
class Quotas(Community):
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
               "postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "CapacityScheduling"}]}}

    def setUp(self):
        super().setUp()
        self.api.create("namespaces", *(namespace(name) for name in ("team-a", "team-b") if not self.api.get("namespaces", name)))
        self.addCleanup(self.clear)
        for team in ("team-a", "team-b"):
            quota = elastic_quota({"cpu": "2", "memory": "2Gi"}, {"cpu": "4", "memory": "4Gi"})
            self.api.create("elasticquotas", quota, namespace=team)

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
