"""Somebody else is faster. What the scheduler waits for, an extender or a volume, is where a test can come in between."""

from harness.case import Case
from harness.extender import Extender, names
from harness.objects import claim, made_volume, node, node_of, pod, storage_class
from harness.processes import wait


class Conflicts(Case):
    audit = True
    controllers = ("persistentvolume-binder-controller",)

    def start_with_filter(self, answer):
        extender = Extender(filter=answer)
        self.addCleanup(extender.die)
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "5s"}
        return self.start_scheduler({"extenders": [entry]})

    def test_another_scheduler_binds_first(self):
        """We were slow because a volume had to be made first. Our binding is refused (409, Conflict), or not even sent because the watch
        has told by then. The pod stays where the other put it, and the place that we had counted as taken is free again."""
        self.create("nodes", node("ours", cpu="1"), node("theirs", cpu="1", labels={"theirs": "yes"}))
        self.create("storageclasses", storage_class("made", provisioner="driver.example.com"))
        self.create("persistentvolumeclaims", claim("fresh", "5Gi", "made"))
        self.start_scheduler()
        self.create("pods", pod("contested", cpu="1", claims=["fresh"], nodeSelector={"kubernetes.io/hostname": "ours"}))

        def chosen():
            fresh = self.api.get("persistentvolumeclaims", "fresh")
            return fresh["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node") and fresh

        fresh = wait("we have chosen a node", chosen)
        self.api.bind("contested", "theirs")
        self.create("persistentvolumes", made_volume("made", "ours", fresh))

        self.create("pods", pod("next", cpu="1"))
        self.assertEqual(self.wait_bound("next"), "ours")
        self.assertEqual(node_of(self.pod("contested")), "theirs")
        self.assertEqual(self.cluster.bindings()["contested"], 1)
        self.assertEqual(self.events("contested", "Scheduled"), [])

    def test_a_pod_that_is_bound_while_it_is_decided(self):
        self.create("nodes", node("ours", cpu="1"), node("theirs", cpu="1"))
        raced = []

        def meddle(request):
            if request["Pod"]["metadata"]["name"] == "contested-early" and not raced:
                raced.append(self.api.bind("contested-early", "theirs"))
            return {"NodeNames": [name for name in names(request) if name == "ours"]}

        self.start_with_filter(meddle)
        self.create("pods", pod("contested-early", cpu="1"))
        self.assertEqual(self.wait_bound("contested-early"), "theirs")
        self.create("pods", pod("after", cpu="1"))
        self.assertEqual(self.wait_bound("after"), "ours")
        self.assertEqual(self.cluster.bindings()["contested-early"], 1)
        self.assertEqual(self.events("contested-early", "Scheduled"), [])

    def test_a_pod_that_is_deleted_while_it_is_decided(self):
        self.create("nodes", node("only", cpu="1"))

        def meddle(request):
            if request["Pod"]["metadata"]["name"] == "doomed":
                self.api.delete("pods", "doomed")
            return {"NodeNames": names(request)}

        self.start_with_filter(meddle)
        self.create("pods", pod("doomed", cpu="1"))
        self.create("pods", pod("successor", cpu="1"))
        self.assertEqual(self.wait_bound("successor"), "only")
        self.assertIsNone(self.pod("doomed"))
