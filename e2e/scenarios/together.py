"""QosAware and NetworkTraffic beside the default plugins, in one profile: nothing is lost, nothing over, and the others say what they say alone."""

import json
import os
import subprocess

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod
from harness.processes import free_port, wait
from harness.prometheus import Page, Prometheus

# Every node has an address of its own, and room for some of the pods only by more than one resource.
NODES = {f"worker-{number:02}": f"127.0.0.{10 + number}" for number in range(1, 11)}
PAGE_PORT = free_port()
PODS = int(os.environ.get("SUPERCARGO_TOGETHER_PODS", "300"))
CONTROLLERS = {"half": "0.5", "most": "0.9", "all": "1.0"}


@ours_only
class Together(Case):
    def setUp(self):
        super().setUp()
        targets = []
        for number, (name, address) in enumerate(NODES.items()):
            page = Page(address, PAGE_PORT)
            self.addCleanup(page.close)
            page.say(f'node_network_receive_bytes_total{{device="eth0"}} {1000 * number}')
            targets.append(page.address)
            worker = node(name, cpu="8" if number % 2 else "4", labels={"topology.kubernetes.io/zone": f"zone-{number % 3}"})
            worker["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
            self.create("nodes", worker)
        self.prometheus = Prometheus(self.folder, targets)
        self.addCleanup(self.prometheus.start().kill)

    def config(self):
        alone, besides = {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]}, {"enabled": [{"name": "QosAware"}]}
        return {"profiles": [{
            "plugins": {
                "queueSort": alone, "postFilter": alone, "reserve": besides, "preBind": besides, "postBind": besides,
                "score": {"enabled": [{"name": "NetworkTraffic", "weight": 2}]},
            },
            "pluginConfig": [
                {"name": "QosAware", "args": {"debugAddress": f"127.0.0.1:{free_port()}", "minimumRunningTime": "10m"}},
                {"name": "NetworkTraffic", "args": {
                    "prometheusAddress": self.prometheus.url, "networkInterface": "eth0", "queryInterval": "300ms"}},
            ],
        }]}

    def explain(self, *words):
        """What each plugin gives each node for a pod that waits."""
        done = subprocess.run([settings.SUPERCARGO, "explain", "default/asked", "--scheduler", "none", "--output", "json",
                               "--kubeconfig", self.cluster.kubeconfig("admin"), *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer, = json.loads(done.stdout)
        return {each["node"]: dict(each["scores"]) for each in answer["placed"]["candidates"]}

    def test_nothing_is_lost_and_the_others_do_not_notice(self):
        # What QosAware reads and saves besides.
        rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
                 {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "update"]}]
        group = "rbac.authorization.k8s.io"
        for kind, item in (
            ("clusterroles", {"kind": "ClusterRole", "rules": rules}),
            ("clusterrolebindings", {
                "kind": "ClusterRoleBinding", "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "together"},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "system:kube-scheduler"}]}),
        ):
            self.api.call("POST", f"/apis/{group}/v1/{kind}", {"apiVersion": f"{group}/v1", "metadata": {"name": "together"}, **item})
            self.addCleanup(self.api.call, "DELETE", f"/apis/{group}/v1/{kind}/together")
        scheduler = self.start_scheduler(self.config())
        wait("the traffic of all nodes is known",
             lambda: scheduler.metric("supercargo_query_facts", query="network-traffic") == len(NODES), 20)

        watch = self.watch_pods()
        for number in range(PODS):
            controller = list(CONTROLLERS)[number % len(CONTROLLERS)]
            member = pod(f"{controller}-{number}", cpu="100m", memory="64Mi")
            member["metadata"]["annotations"] = {"controller": controller, "slo": CONTROLLERS[controller]}
            self.create("pods", member)
        self.wait_all_bound(watch, PODS, 60)
        self.assert_no_node_over()
        placed = lambda: scheduler.metric("scheduler_schedule_attempts_total", result="scheduled")
        wait(f"{PODS} pods are counted", lambda: placed() == PODS, 10, say=placed)
        self.assertFalse(scheduler.metric("scheduler_schedule_attempts_total", result="error"))

        # A pod that nobody schedules any more, so that it can be asked about: by the default plugins alone, and with the two besides.
        self.assertEqual(scheduler.process.terminate(), 0)
        self.create("pods", pod("asked", cpu="100m", memory="64Mi"))
        alone, together = self.explain(), self.explain("--config", scheduler.config_file)
        self.assertEqual(alone.keys(), together.keys())
        for name, scores in together.items():
            self.assertIn("NetworkTraffic", scores)
            del scores["NetworkTraffic"]
        self.assertEqual(alone, together)
