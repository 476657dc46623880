"""The scenarios of upstream's own integration tests of Coscheduling and CapacityScheduling, with what they expect in the end."""

from harness.case import ours_only
from harness.community import GROUP_LABEL, NAME, Community, elastic_quota, namespace, pod_group
from harness.objects import node, node_of, pod, priority_class
from harness.processes import wait

PRIORITIES = {"low": 0, "mid": 100, "high": 1000}


class Upstream(Community):
    def setUp(self):
        super().setUp()
        self.create("priorityclasses", *(priority_class(name, value) for name, value in PRIORITIES.items()))
        self.end_leaving_pods()

    def clear(self, *kinds):
        """Between two scenarios."""
        for kind in kinds:
            self.api.delete_all(kind)
        wait("all pods are gone", lambda: not self.api.list("pods"), 20)


@ours_only
class GangScenarios(Upstream):
    """One node of 300 bytes of memory. Pods are written as group, memory, priority; one without a group stands alone."""

    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]},
               "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}}
    plugin_config = [{"name": "Coscheduling", "args": {
        "permitWaitingTimeSeconds": 3, "podGroupRejectPercentage": 0, "podGroupBackoffSeconds": 1}}]

    def play(self, groups, pods, run):
        """Groups by name with minMember and what else they say; pods; and those of which groups run in the end, while no other does."""
        self.create("podgroups", *(pod_group(name, members, **spec) for name, (members, spec) in groups.items()))
        counts = {}
        for group, amounts, importance in pods:
            prefix = group or "plain"
            number = counts[prefix] = counts.get(prefix, -1) + 1
            labels = {GROUP_LABEL: group} if group else {}
            self.create("pods", pod(f"{prefix}-{number}", labels=labels, priority_class=importance, schedulerName=NAME, requests=amounts))
        # It finds all of them: who comes while others have their nodes already may take the place of some of a group only.
        scheduler = self.start()
        names = lambda prefix: [f"{prefix}-{number}" for number in range(counts[prefix] + 1)]
        is_bound = lambda name: (found := self.pod(name)) and node_of(found)
        for name in (name for prefix in run for name in names(prefix)):
            wait(f"{name} runs", lambda: is_bound(name), 20, say=lambda: self.why(name))
        for name in (name for prefix in counts if prefix not in run for name in names(prefix)):
            # It was tried, or it had to go for those that run.
            wait(f"{name} was refused", lambda: not self.pod(name) or self.events(name, "FailedScheduling"), 20, say=lambda: self.why(name))
            self.assertFalse(is_bound(name), name)
        scheduler.process.kill()
        self.clear("pods", "podgroups", "events")

    def test_the_scenarios_of_upstream(self):
        three, hundred, fifty = range(3), {"memory": "100"}, {"memory": "50"}
        self.create("nodes", node("only", cpu="64", memory="300"))
        first, second = [("g1", fifty, "mid")] * 3, [("g2", hundred, "mid")] * 4
        interleaved = [each for pair in zip(first, second) for each in pair] + second[3:]
        third = [("g3", hundred, "mid")] * 4
        all_three = [each for trio in zip(first, second, third) for each in trio] + second[3:] + third[3:]
        plain = [(None, hundred, "mid")] * 2
        large = [("g1", hundred, "mid")] * 3, [("g2", fifty, "high")] * 3
        urgent = [(None, hundred, "high")] * 3
        two, trio = {"g1": (3, {}), "g2": (4, {})}, {"g1": (3, {}), "g2": (4, {}), "g3": (4, {})}
        needs = lambda memory: {"minResources": {"memory": memory}}
        demanding = {"g1": (3, needs("150")), "g2": (4, needs("400")), "g3": (4, needs("400"))}
        scenarios = {
            "equal, in order": (two, first + second, ["g1"]),
            "equal, interleaved": (two, interleaved, ["g1"]),
            "a member is missing": ({"g1": (4, {})}, [first[0], plain[0], first[1], plain[1], first[2]], ["plain"]),
            "the important group, in order": ({"g1": (3, {}), "g2": (3, {})}, large[0] + large[1], ["g2"]),
            "the important group, interleaved": (
                {"g1": (3, {}), "g2": (3, {})}, [each for number in three for each in (large[0][number], large[1][number])], ["g2"]),
            "important pods alone": ({"g1": (3, {})}, first + urgent, ["plain"]),
            "three groups": (trio, all_three, ["g1"]),
            "three groups that say what they need": (demanding, all_three, ["g1"]),
        }
        for what, (groups, pods, run) in scenarios.items():
            with self.subTest(what):
                self.play(groups, pods, run)

    def test_a_member_that_has_completed_does_not_count(self):
        self.create("nodes", node("only", cpu="6"))
        self.start()
        self.create("podgroups", pod_group("g", 6))
        members = [pod(f"g-{number}", cpu="1", labels={GROUP_LABEL: "g"}, schedulerName=NAME) for number in range(6)]
        members[0]["spec"]["nodeName"] = "only"
        self.create("pods", members[0])
        self.api.patch("pods", "g-0", {"status": {"phase": "Succeeded"}}, subresource="status")
        self.create("pods", *members[1:])
        names = [f"g-{number}" for number in range(1, 6)]
        for name in names:
            self.wait_event(name, "FailedScheduling")
        self.create("pods", pod("later", cpu="6", schedulerName=NAME))
        self.wait_bound("later")
        self.assertEqual(self.unbound(names), names)

    def test_a_group_that_backs_off_lets_others_go(self):
        self.create("nodes", node("large", cpu="6"), *(node(f"small-{number}", cpu="2") for number in range(3)))
        self.play({"g1": (6, {}), "g2": (1, {})}, [("g1", {"cpu": "4"}, "mid")] * 6 + [("g2", {"cpu": "2"}, "mid")], ["g2"])


@ours_only
class QuotaScenarios(Upstream):
    """Two nodes of 100 bytes of memory, two namespaces that are guaranteed 100 and may take 200. Pods are written as name, memory, priority
    and, if they run from the start, node."""

    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
               "postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "CapacityScheduling"}]}}
    TEAMS = ("ns1", "ns2", "ns3")

    def setUp(self):
        super().setUp()
        self.api.create("namespaces", *(namespace(name) for name in self.TEAMS if not self.api.get("namespaces", name)))
        self.addCleanup(self.clear_teams)

    def clear_teams(self):
        for team in self.TEAMS:
            for kind in ("pods", "elasticquotas", "events"):
                self.api.delete_all(kind, namespace=team)
        wait("the namespaces are empty", lambda: not any(self.api.list("pods", namespace=team) for team in self.TEAMS), 20)

    def put(self, team, name, amounts, importance, where=None):
        spec = {"nodeName": where} if where else {}
        made = pod(name, requests=amounts, priority_class=importance, schedulerName=NAME, **spec)
        self.api.create("pods", made, namespace=team)
        if where:
            self.api.patch("pods", name, {"status": {"phase": "Running"}}, namespace=team, subresource="status")

    def get(self, team, name):
        return self.api.get("pods", name, namespace=team)

    def state(self, team, name):
        """`gone`, `pending` if it was tried in vain, or `running`; none if that is not known yet."""
        found = self.get(team, name)
        if not found or found["metadata"].get("deletionTimestamp"):
            return "gone"
        if node_of(found):
            return "running"
        tried = any(event["regarding"].get("name") == name and event["reason"] == "FailedScheduling"
                    for event in self.api.list("events", namespace=team))
        return "pending" if tried else None

    def play(self, quotas, there, come, expected):
        """Quotas by namespace as min and max; what runs, what comes, and what has become of those that are named in the end. Any other
        that ran goes on running."""
        for team, (least, most) in quotas.items():
            self.api.create("elasticquotas", elastic_quota(least, most), namespace=team)
        for team, name, amounts, importance, where in there:
            self.put(team, name, amounts, importance, where)
        scheduler = self.start(f"scheduler-{len(self.schedulers)}")
        for team, name, amounts, importance in come:
            self.put(team, name, amounts, importance)
        expected = {**{(team, name): "running" for team, name, *_ in there}, **expected}
        now = lambda: {key: self.state(*key) for key in expected}
        wait("everybody is where it belongs", lambda: now() == expected, 20, say=lambda: str(now()))
        scheduler.process.kill()
        self.assertEqual(now(), expected)
        self.clear_teams()

    def test_the_scenarios_of_upstream(self):
        self.create("nodes", *(node(name, cpu="100", memory="100") for name in ("n1", "n2")))
        amount = lambda memory: {"memory": str(memory)}
        both = {team: ({"memory": "100", "cpu": "100m"}, {"memory": "200", "cpu": "200m"}) for team in ("ns1", "ns2")}
        half, wide = amount(50), amount(150)
        with self.subTest("what was borrowed is claimed back"):
            self.play(
                both,
                [("ns1", "a", half, "mid", "n1"), ("ns1", "b", half, "mid", "n1"), ("ns1", "c", half, "low", "n2")],
                [("ns2", "d", half, "mid"), ("ns2", "e", half, "mid"), ("ns2", "f", half, "low")],
                {("ns1", "c"): "gone", ("ns2", "d"): "running", ("ns2", "e"): "running", ("ns2", "f"): "pending"})
        with self.subTest("inside of a namespace"):
            self.play(
                both,
                [("ns1", "a", half, "mid", "n1"), ("ns1", "b", half, "low", "n1"), ("ns2", "c", half, "mid", "n2"), ("ns2", "d", half, "low", "n2")],
                [("ns1", "e", half, "mid"), ("ns2", "f", half, "mid")],
                {("ns1", "b"): "gone", ("ns2", "d"): "gone", ("ns1", "e"): "running", ("ns2", "f"): "running"})
        with self.subTest("no quotas at all"):
            self.play(
                {},
                [("ns1", "a", half, "high", "n1"), ("ns1", "b", half, "low", "n1"), ("ns2", "c", half, "high", "n2"), ("ns2", "d", half, "low", "n2")],
                [("ns1", "e", half, "mid"), ("ns2", "f", half, "mid")],
                {("ns1", "b"): "gone", ("ns2", "d"): "gone", ("ns1", "e"): "running", ("ns2", "f"): "running"})
        with self.subTest("no node is large enough"):
            self.play(
                both,
                [("ns1", "a", half, "mid", "n1"), ("ns1", "b", half, "mid", "n1"), ("ns1", "c", half, "low", "n2"), ("ns2", "d", half, "mid", "n2")],
                [("ns1", "e", wide, "high"), ("ns2", "f", wide, "high")],
                {("ns1", "e"): "pending", ("ns2", "f"): "pending"})
        with self.subTest("who has taken too much claims nothing back"):
            self.play(
                both,
                [("ns1", "a", half, "mid", "n1"), ("ns2", "b", half, "high", "n1"), ("ns2", "c", half, "high", "n2"), ("ns2", "d", half, "high", "n2")],
                [("ns2", "e", half, "high")],
                {("ns2", "e"): "pending"})
        with self.subTest("no victims on two nodes at once"):
            self.play(
                both,
                [(team, f"{team}-{where}", half, importance, where) for where in ("n1", "n2") for team, importance in (("ns1", "low"), ("ns2", "mid"))],
                [("ns1", "e", amount(100), "high"), ("ns2", "f", amount(100), "high")],
                {("ns1", "e"): "pending", ("ns2", "f"): "pending"})

    def test_three_quotas_share(self):
        self.create("nodes", *(node(name, cpu="100", memory="1Gi") for name in ("n1", "n2")))
        bounds = lambda least, most: tuple({"cpu": f"{count}m", "memory": "1Gi"} for count in (least, most))
        small = {"cpu": "1m"}
        quotas = {"ns1": bounds(1, 3), "ns2": bounds(3, 3), "ns3": bounds(3, 4)}
        there = [("ns1", "high", small, "high", "n1"), ("ns1", "m1", small, "mid", "n2"), ("ns1", "m2", small, "mid", "n2")]
        there += [("ns2", f"m{number}", small, "mid", where) for number, where in enumerate(("n1", "n2", "n2"))]
        come = [("ns3", name, small, "mid") for name in "abcd"]
        gone = {("ns1", "m1"): "gone", ("ns1", "m2"): "gone"}
        # Three of the four run; which one stays behind is not said.
        for team, (least, most) in quotas.items():
            self.api.create("elasticquotas", elastic_quota(least, most), namespace=team)
        for each in there:
            self.put(*each)
        self.start()
        for each in come:
            self.put(*each)
        states = lambda: sorted(str(self.state("ns3", name)) for name in "abcd")
        wait("three of four run", lambda: states() == ["pending", "running", "running", "running"], 20, say=lambda: str(states()))
        expected = {**{(team, name): "running" for team, name, *_ in there}, **gone}
        self.assertEqual({key: self.state(*key) for key in expected}, expected)
