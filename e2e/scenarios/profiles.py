"""One process, several profiles: each pod is decided by the one that it names."""

from harness.case import Case
from harness.objects import condition, node, node_of, pod, taint

PACKER = {
    "schedulerName": "packer",
    "pluginConfig": [{
        "name": "NodeResourcesFit",
        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
    }],
    # What spreads is off, so that packing decides alone.
    "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "PodTopologySpread"}]}},
}
RECKLESS = {"schedulerName": "reckless", "plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}


class Profiles(Case):
    def test_each_profile_decides_in_its_own_way(self):
        """One spreads, one packs; the events say which of them it was; pods that name neither are left to others."""
        self.create("nodes", node("empty", cpu="8"), node("busy", cpu="8"))
        self.create("pods", pod("resident", cpu="4", memory="8Gi", nodeName="busy"))
        self.start_scheduler({"profiles": [{"schedulerName": "default-scheduler"}, PACKER]})
        self.create("pods", pod("spread", cpu="100m"), pod("packed", cpu="100m", schedulerName="packer"),
                    pod("foreign", cpu="100m", schedulerName="somebody-else"))
        self.assertEqual(self.wait_bound("spread"), "empty")
        self.assertEqual(self.wait_bound("packed"), "busy")
        self.assertEqual(self.wait_event("spread", "Scheduled")["reportingController"], "default-scheduler")
        self.assertEqual(self.wait_event("packed", "Scheduled")["reportingController"], "packer")
        self.assertIsNone(node_of(self.pod("foreign")))
        self.assertIsNone(condition(self.pod("foreign"), "PodScheduled"))
        self.assertEqual(self.events("foreign"), [])

    def test_a_plugin_that_is_off_in_one_is_on_in_the_other(self):
        self.create("nodes", node("only", taints=[taint("dedicated")]))
        self.start_scheduler({"profiles": [{"schedulerName": "default-scheduler"}, RECKLESS]})
        self.create("pods", pod("careful"), pod("careless", schedulerName="reckless"))
        self.assertEqual(self.wait_bound("careless"), "only")
        self.wait_event("careful", "FailedScheduling")
        self.assertIsNone(node_of(self.pod("careful")))
