"""Applications and the network on a real API server: services are tried in the order of their AppGroup, go near those that they call, and both
objects are kept true by the scheduler; with the definitions of `deploy/crds` and the rights that `supercargo rbac` prints."""

from harness.case import ours_only
from harness.community import NAME, Community
from harness.objects import node, node_of, pod
from harness.processes import wait

APP_GROUP = "appgroup.diktyo.x-k8s.io"
WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"


def workload(name):
    return {"kind": "Deployment", "name": name, "selector": name, "apiVersion": "apps/v1", "namespace": "default"}


def app_group(algorithm, **calls):
    """Workloads by name, each with those that it calls."""
    workloads = [{"workload": workload(name), "dependencies": [
        {"workload": workload(called), "minBandwidth": "100Mi", "maxNetworkCost": 20} for called in callees]} for name, callees in calls.items()]
    return {"apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1", "kind": "AppGroup", "metadata": {"name": "shop"},
            "spec": {"numMembers": len(workloads), "topologySortingAlgorithm": algorithm, "workloads": workloads}}


def topology():
    origins = [{"origin": a, "costList": [{"destination": b, "bandwidthCapacity": "1G", "networkCost": 50}]}
               for a, b in (("west", "east"), ("east", "west"))]
    return {"apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1", "kind": "NetworkTopology", "metadata": {"name": "nt-default"},
            "spec": {"configmapName": "netperf", "weights": [
                {"name": "UserDefined", "topologyList": [{"topologyKey": REGION, "originList": origins}]}]}}


def measured(**entries):
    """Milliseconds between two nodes, by `from_to`."""
    data = {f"netperf.p90.latency.milliseconds.origin.{a}.destination.{b}": value
            for (a, b), value in ((key.split("_"), value) for key, value in entries.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf"}, "data": data}


class Network(Community):
    plugins = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "TopologicalSort"}]},
               "multiPoint": {"enabled": [{"name": "NetworkOverhead", "weight": 20}]}}

    def setUp(self):
        super().setUp()
        for group, kind in (("appgroup", "appgroups"), ("networktopology", "networktopologies")):
            wait(f"{kind} are served",
                 lambda: self.api.raw("GET", f"/apis/{group}.diktyo.x-k8s.io/v1alpha1/{kind}")[0] == 200)
        for region, letter in (("west", "w"), ("east", "e")):
            for number in (1, 2):
                name = f"{letter}{number}"
                self.create("nodes", node(name, cpu="4", labels={REGION: region, ZONE: f"{region}-{number}"}))

    def member(self, name, service):
        return pod(name, cpu="500m", labels={APP_GROUP: "shop", WORKLOAD: service}, schedulerName=NAME)

    def status(self, kind, name):
        return self.api.get(kind, name).get("status", {})

    def turns(self):
        return {entry["workload"]["selector"]: entry["index"] for entry in self.status("appgroups", "shop").get("topologyOrder", [])}

    def wait_turns(self, **turns):
        wait(f"the order is {turns}", lambda: self.turns() == turns, 20, say=lambda: str(self.status("appgroups", "shop")))

    def wait_note(self, name, reason, part):
        """Waits for an event whose note has this in it."""
        notes = lambda: [event.get("note", "") for event in self.events(name, reason)]
        wait(f"{name} has the event {reason}: {part}", lambda: any(part in note for note in notes()), 20, say=lambda: str(notes()))

    def region_of(self, name):
        return node_of(self.pod(name))[0]


@ours_only
class Services(Network):
    def test_services_go_near_those_that_they_call_and_in_order(self):
        self.create("networktopologies", topology())
        self.create("appgroups", app_group("ReverseKahn", web=["cart"], cart=["db"], db=[]))
        first = self.start()
        self.wait_turns(db=1, cart=2, web=3)
        # All of them wait when a scheduler begins, those that call before those that they call.
        first.process.terminate()
        names = [f"web-{number}" for number in range(4)] + ["cart-0", "db-0"]
        self.create("pods", *(self.member(name, name.split("-")[0]) for name in names))
        self.start("second")
        for name in names:
            self.wait_bound(name, 20)
        called = self.region_of("db-0")
        for name in names:
            self.assertEqual(self.region_of(name), called, f"{name}: the default profile would spread them")
        later = [f"web-{number}" for number in range(4, 8)]
        self.create("pods", *(self.member(name, "web") for name in later))
        for name in later:
            self.wait_bound(name, 20)
            self.assertEqual(self.region_of(name), called, f"{name}: the default profile would spread them")
        self.api.patch("pods", "db-0", {"status": {"phase": "Running"}}, subresource="status")
        wait("one runs", lambda: self.status("appgroups", "shop").get("runningWorkloads") == 1, 20)
        self.assertIn("scheduleStartTime", self.status("appgroups", "shop"))
        self.assertIn("ReverseKahn", self.kubectl("get", "ag", "shop"))

    def test_the_order_follows_the_spec_and_a_circle_is_told(self):
        self.create("networktopologies", topology())
        self.create("appgroups", app_group("KahnSort", web=["db"], db=[]))
        self.start()
        self.wait_turns(web=1, db=2)
        self.api.patch("appgroups", "shop", {"spec": {"topologySortingAlgorithm": "ReverseKahn"}})
        self.wait_turns(db=1, web=2)
        self.api.patch("appgroups", "shop", {"spec": app_group("ReverseKahn", web=["db"], db=["web"])["spec"]})
        self.wait_note("shop", "InvalidAppGroup", "db -> web -> db")
        self.create("pods", self.member("web-0", "web"))
        self.wait_bound("web-0", 20)

    def test_what_is_missing_is_said_and_awaited(self):
        self.start()
        self.create("pods", self.member("web-0", "web"), pod("other", cpu="1", schedulerName=NAME))
        self.wait_bound("other")
        self.wait_note("web-0", "FailedScheduling", "AppGroup shop was not found in namespace default")
        self.create("appgroups", app_group("KahnSort", web=["db"], db=[]))
        self.wait_note("web-0", "FailedScheduling", "NetworkTopology nt-default was not found in namespace default")
        self.create("networktopologies", topology())
        self.wait_bound("web-0", 20)
        self.wait_note("nt-default", "UnknownCosts", "west-1")


@ours_only
class Measurements(Network):
    plugin_config = [{"name": "NetworkOverhead", "args": {"weightsName": "NetperfCosts"}}]

    def costs(self):
        sets = {entry["name"]: entry for entry in self.api.get("networktopologies", "nt-default")["spec"]["weights"]}
        lists = sets.get("NetperfCosts", {}).get("topologyList", [])
        return {(origin["origin"], cost["destination"]): cost["networkCost"]
                for entry in lists for origin in entry.get("originList", []) for cost in origin.get("costList", [])}

    def wait_costs(self, expected):
        wait(f"the costs are {expected}", lambda: self.costs() == expected, 20, say=lambda: str(self.costs()))

    def test_costs_are_worked_out_from_the_config_map(self):
        self.create("networktopologies", topology())
        self.start()
        self.wait_note("nt-default", "ConfigMapNotFound", "netperf")
        self.create("configmaps", measured(w1_e1="30", e2_w2="41", w1_w2="4", w2_w1="fast"))
        self.wait_costs({("east", "west"): 35, ("west", "east"): 35, ("west-1", "west-2"): 4, ("west-2", "west-1"): 4})
        self.wait_note("nt-default", "InvalidMeasurements", "w2.destination.w1")
        wait("the status says so", lambda: self.status("networktopologies", "nt-default").get("nodeCount") == 4, 20)
        self.assertIn("weightCalculationTime", self.status("networktopologies", "nt-default"))
        weights = self.api.get("networktopologies", "nt-default")["spec"]["weights"]
        self.assertEqual(weights[0], topology()["spec"]["weights"][0], "what is written by hand stays")
        self.create("appgroups", app_group("KahnSort", web=["db"], db=[]))
        self.create("pods", self.member("db-0", "db"))
        self.wait_bound("db-0", 20)
        for number in range(4):
            self.create("pods", self.member(f"web-{number}", "web"))
            self.wait_bound(f"web-{number}", 20)
            self.assertEqual(self.region_of(f"web-{number}"), self.region_of("db-0"), "35 is too far away")
        self.api.patch("configmaps", "netperf", {"data": measured(w1_e1="5", e2_w2="5")["data"]})
        wait("the costs follow", lambda: self.costs().get(("west", "east")) == 5, 20, say=lambda: str(self.costs()))
