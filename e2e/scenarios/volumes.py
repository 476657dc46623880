"""Volumes that wait for their first consumer: the scheduler chooses node and volume together, the real volume controller
binds them."""

from harness.case import Case
from harness.objects import claim, local_volume, made_volume, node, node_of, pod, storage_class
from harness.processes import wait


class Volumes(Case):
    controllers = ("persistentvolume-binder-controller",)

    def setUp(self):
        super().setUp()
        self.create("storageclasses", storage_class("local"))
        self.create("nodes", *(node(name) for name in ("node-a", "node-b", "node-c")))
        self.start_scheduler()

    def claim(self, name):
        return self.api.get("persistentvolumeclaims", name)

    def wait_claim(self, name, volume):
        def bound():
            item = self.claim(name)
            return item["status"].get("phase") == "Bound" and item["spec"]["volumeName"] == volume

        wait(f"{name} is bound to {volume}", bound, 10, say=lambda: self.claim(name))

    def wait_volume(self, name, phase):
        wait(f"{name} is {phase}", lambda: self.api.get("persistentvolumes", name)["status"].get("phase") == phase, 10)

    def test_a_pod_goes_where_its_volume_is(self):
        self.create("persistentvolumes", local_volume("disk-b", "node-b", "10Gi", "local"))
        self.create("persistentvolumeclaims", claim("data", "5Gi", "local"))
        self.create("pods", pod("database", claims=["data"]))
        self.assertEqual(self.wait_bound("database", 20), "node-b")
        self.wait_claim("data", "disk-b")

    def test_the_smallest_volume_that_is_large_enough(self):
        self.create("persistentvolumes", *(
            local_volume(f"disk-{size}", "node-c", f"{size}Gi", "local") for size in (2, 50, 8)
        ))
        # Each comes into question once the volume controller has looked at it.
        for size in (2, 50, 8):
            self.wait_volume(f"disk-{size}", "Available")
        self.create("persistentvolumeclaims", claim("data", "5Gi", "local"))
        self.create("pods", pod("database", claims=["data"]))
        self.assertEqual(self.wait_bound("database", 20), "node-c")
        self.wait_claim("data", "disk-8")

    def test_two_pods_do_not_get_the_same_volume(self):
        """The third waits, and says for what; a volume that comes frees it."""
        self.create("persistentvolumes", local_volume("disk-a", "node-a", "5Gi", "local"),
                    local_volume("disk-b", "node-b", "5Gi", "local"))
        names = ("one", "two", "three")
        self.create("persistentvolumeclaims", *(claim(name, "5Gi", "local") for name in names))
        for name in names:
            self.create("pods", pod(name, claims=[name]))
            if name != "three":
                self.wait_bound(name, 20)
        self.assertEqual({node_of(self.pod(name)) for name in ("one", "two")}, {"node-a", "node-b"})
        self.wait_unschedulable(
            "three", "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind. "
            "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
        self.create("persistentvolumes", local_volume("disk-c", "node-c", "5Gi", "local"))
        self.assertEqual(self.wait_bound("three", 20), "node-c")
        self.wait_claim("three", "disk-c")

    def test_a_pod_whose_claim_comes_later(self):
        self.create("persistentvolumes", local_volume("disk-a", "node-a", "5Gi", "local"))
        self.create("pods", pod("early", claims=["late"]))
        self.wait_unschedulable(
            # The last two words are upstream's slip: of no node is it known whether preemption would help.
            "early", '0/3 nodes are available: persistentvolumeclaim "late" not found. not found',
        )
        self.create("persistentvolumeclaims", claim("late", "5Gi", "local"))
        self.assertEqual(self.wait_bound("early", 20), "node-a")

    def test_a_volume_that_is_made_for_the_pod(self):
        """A driver makes the volume once the scheduler has said where, by an annotation on the claim. The test is the driver."""
        self.create("storageclasses", storage_class("made", provisioner="driver.example.com"))
        self.create("persistentvolumeclaims", claim("fresh", "5Gi", "made"))
        self.create("pods", pod("database", claims=["fresh"], nodeSelector={"kubernetes.io/hostname": "node-b"}))

        def chosen():
            return self.claim("fresh")["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node")

        self.assertEqual(wait("the scheduler has chosen a node", chosen, 10), "node-b")
        self.assertIsNone(node_of(self.pod("database")))
        self.create("persistentvolumes", made_volume("made-b", "node-b", self.claim("fresh")))
        self.assertEqual(self.wait_bound("database", 20), "node-b")
        self.wait_claim("fresh", "made-b")
