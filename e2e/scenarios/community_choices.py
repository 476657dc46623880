"""The community's plugins that choose nodes, order pods and spare victims: each goes another way than the default profile does."""

import json
from datetime import datetime, timezone

from harness.case import ours_only
from harness.community import Community, NAME
from harness.objects import condition, node, node_of, pod, priority_class
from harness.processes import wait

PLAIN = "plain-scheduler"
PROFILES = "security-profiles-operator.x-k8s.io"
# As much of the Security Profiles Operator's definition as its profiles need.
SECCOMP_PROFILES = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": f"seccompprofiles.{PROFILES}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test's own"}},
    "spec": {
        "group": PROFILES, "scope": "Namespaced",
        "names": {"kind": "SeccompProfile", "plural": "seccompprofiles", "singular": "seccompprofile"},
        "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }}}],
    },
}
# What a PriorityClass says about its pods.
MINIMUM = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"


def scoring(plugin, **args):
    """A profile that goes by a plugin's score, and is named like it."""
    profile = {"schedulerName": plugin.lower(), "plugins": {"score": {"enabled": [{"name": plugin, "weight": 100}]}}}
    return {**profile, "pluginConfig": [{"name": plugin, "args": args}]} if args else profile


@ours_only
class Nodes(Community):
    """One scheduler has a profile of each plugin, and one that is as it is by default."""

    definitions = ()

    def profiles(self):
        cost = {"metadataKey": "example.com/cost", "metadataSource": "Label", "metadataType": "Number", "scoringStrategy": "Lowest"}
        return [{"schedulerName": PLAIN}, scoring("NodeMetadata", **cost), scoring("PodState"),
                scoring("NodeResourcesAllocatable", mode="Least"), scoring("SySched")]

    def assert_goes(self, plugin, to, by_default, **asked):
        """A pod goes to one node by the plugin, and one like it to another node without."""
        for scheduler, expected in ((PLAIN, by_default), (plugin.lower(), to)):
            name = f"by-{scheduler}"
            self.create("pods", pod(name, cpu="500m", memory="1Gi", schedulerName=scheduler, **asked))
            self.assertEqual(self.wait_bound(name), expected, scheduler)

    def test_node_metadata_goes_where_it_is_cheap(self):
        self.create("nodes", node("cheap", cpu="2", labels={"example.com/cost": "10"}), node("unsaid", cpu="2"),
                    node("dear", cpu="32", memory="64Gi", labels={"example.com/cost": "90"}))
        self.start()
        self.assert_goes("NodeMetadata", "cheap", "dear")

    def test_pod_state_goes_where_a_pod_is_leaving(self):
        self.create("nodes", node("left"), node("quiet"))
        self.create("pods", pod("old", cpu="2", memory="8Gi", nodeName="left", terminationGracePeriodSeconds=600))
        self.api.delete("pods", "old", grace=600)
        self.start()
        self.assert_goes("PodState", "left", "quiet")

    def test_node_resources_allocatable_fills_small_nodes(self):
        self.create("nodes", node("small", cpu="2", memory="4Gi"), node("large", cpu="32", memory="128Gi"))
        self.start()
        self.assert_goes("NodeResourcesAllocatable", "small", "large")

    def test_sysched_keeps_pods_with_the_same_calls_together(self):
        definition = self.folder / "seccompprofiles.yaml"
        definition.write_text(json.dumps(SECCOMP_PROFILES))
        self.kubectl("apply", "-f", str(definition))
        wait("profiles are served", lambda: self.api.raw("GET", f"/apis/{PROFILES}/v1beta1/seccompprofiles")[0] == 200)
        for name, calls in (("web", ["read", "accept4"]), ("tool", ["mount", "ptrace"])):
            self.create("seccompprofiles", {
                "apiVersion": f"{PROFILES}/v1beta1", "kind": "SeccompProfile", "metadata": {"name": name},
                "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": "SCMP_ACT_ALLOW", "names": calls}]}})
        confined = lambda name: {"seccompProfile": {"type": "Localhost", "localhostProfile": f"operator/default/{name}.json"}}
        self.create("nodes", node("webs"), node("tools"))
        self.create("pods", pod("web", cpu="2", memory="8Gi", nodeName="webs", securityContext=confined("web")),
                    pod("tool", cpu="100m", nodeName="tools", securityContext=confined("tool")))
        for name in ("web", "tool"):
            self.api.patch("pods", name, {"status": {"phase": "Running"}}, subresource="status")
        self.start()
        self.assert_goes("SySched", "webs", "tools", securityContext=confined("web"))


@ours_only
class Order(Community):
    """QOSSort: those to whom more is promised go first."""

    definitions = ()
    plugins = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "QOSSort"}]}}
    # Room for so many pods.
    ROOM = 4

    def of_class(self, name, requests, limits, scheduler):
        made = pod(name, schedulerName=scheduler)
        made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
        return made

    def first(self, scheduler, config, user):
        """Who gets the room if twelve pods wait when the scheduler starts: four of each class, the least promised first by name."""
        amounts = {"cpu": "10m", "memory": "1Mi"}
        promises = {"best-effort": ({}, {}), "burstable": (amounts, {}), "guaranteed": (amounts, amounts)}
        names = []
        for requests, limits in promises.values():
            for _ in range(self.ROOM):
                names.append(f"pod-{len(names):02}")
                self.create("pods", self.of_class(names[-1], requests, limits, scheduler))
        running = self.start_scheduler(config, name=scheduler, user=user)
        for name in names:
            wait(f"{name} was tried", lambda: node_of(self.pod(name)) or self.events(name, "FailedScheduling"), 20)
        running.process.kill()
        bound = {name for name in names if node_of(self.pod(name))}
        self.api.delete("pods", *names)
        return bound

    def test_who_was_promised_most_goes_first(self):
        self.create("nodes", node("only", pods=str(self.ROOM)))
        guaranteed = {f"pod-{number:02}" for number in range(2 * self.ROOM, 3 * self.ROOM)}
        by_default = self.first("default-scheduler", {}, "scheduler")
        self.assertEqual(len(by_default), self.ROOM)
        self.assertNotEqual(by_default, guaranteed)
        self.assertEqual(self.first(NAME, self.config(), NAME), guaranteed)


@ours_only
class Sparing(Community):
    """PreemptionToleration: victims whose PriorityClass spares them, in upstream's own scenarios."""

    definitions = ()
    VALUE = 8000

    def profiles(self):
        own = {"enabled": [{"name": "PreemptionToleration"}], "disabled": [{"name": "DefaultPreemption"}]}
        return [{"schedulerName": PLAIN}, {"schedulerName": NAME, "plugins": {"postFilter": own}}]

    def age(self, name):
        """For how long a pod has been scheduled, in seconds."""
        said = condition(self.pod(name), "PodScheduled")["lastTransitionTime"].removesuffix("Z")
        return (datetime.now(timezone.utc) - datetime.fromisoformat(said).replace(tzinfo=timezone.utc)).total_seconds()

    def test_the_scenarios_of_upstream(self):
        value, minimum = self.VALUE, str(self.VALUE + 10)
        # What the victim's class says; by how much the preemptor is more important, and its policy; whether the victim goes.
        scenarios = {
            "at-the-minimum": ({MINIMUM: minimum}, 10, "PreemptLowerPriority", True),
            "at-the-minimum-soon": ({MINIMUM: minimum, SECONDS: "30"}, 10, "PreemptLowerPriority", True),
            "below-without-time": ({MINIMUM: minimum}, 9, "PreemptLowerPriority", True),
            "below-for-ever": ({MINIMUM: minimum, SECONDS: "-1"}, 9, "PreemptLowerPriority", False),
            "below-and-young": ({MINIMUM: minimum, SECONDS: "30"}, 5, "PreemptLowerPriority", False),
            "below-and-old": ({MINIMUM: minimum, SECONDS: "1"}, 5, "PreemptLowerPriority", True),
            "no-number": ({MINIMUM: "a", SECONDS: "-1"}, 9, "PreemptLowerPriority", True),
            "no-number-never": ({MINIMUM: "a"}, 9, "Never", False),
            # As below-for-ever, by DefaultPreemption.
            "by-default": ({MINIMUM: minimum, SECONDS: "-1"}, 9, "PreemptLowerPriority", True),
        }
        for name, (annotations, more, policy, _) in scenarios.items():
            spared = priority_class(f"victim-{name}", value)
            spared["metadata"]["annotations"] = annotations
            self.create("priorityclasses", spared, priority_class(f"preemptor-{name}", value + more, preemptionPolicy=policy))
            self.create("nodes", node(name, cpu="1"))
            self.create("pods", pod(f"victim-{name}", cpu="1", priority_class=f"victim-{name}", schedulerName="nobody"))
            self.api.bind(f"victim-{name}", name)
        wait("the victims are older than a second", lambda: all(self.age(f"victim-{name}") >= 2 for name in scenarios), 10)
        self.start()
        for name in scenarios:
            self.create("pods", pod(
                f"preemptor-{name}", cpu="1", priority_class=f"preemptor-{name}", nodeSelector={"kubernetes.io/hostname": name},
                schedulerName=PLAIN if name == "by-default" else NAME))
        for name, (*_, goes) in scenarios.items():
            with self.subTest(name):
                self.wait_event(f"preemptor-{name}", "FailedScheduling")
                leaving = lambda: self.pod(f"victim-{name}")["metadata"].get("deletionTimestamp")
                if goes:
                    wait("the victim has to go", leaving, 10, say=lambda: self.why(f"preemptor-{name}"))
                else:
                    self.assertFalse(leaving())
