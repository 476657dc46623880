"""`supercargo shadow` looks on while the real kube-scheduler works, says what it would have done, and touches nothing."""

import json
import signal
import subprocess

from harness import settings
from harness.case import Case, ours_only
from harness.client import Client
from harness.objects import node, nodes, pod, taint
from harness.processes import die_with_parent, free_port, wait

PODS = 1000
# What it may read: no verb that writes, on anything.
RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
VERDICTS = ("same", "tied", "better", "worse", "rejected")


def mixed(number):
    """One of seven kinds of pods."""
    name = f"pod-{number:04}"
    labels = {"app": f"app-{number % 20}"}
    selector = {"matchLabels": labels}
    kind = number % 7
    if kind == 1:
        return pod(name, cpu="200m", labels=labels, nodeSelector={"zone": f"zone-{number % 3}"})
    if kind == 2:
        spread = {"maxSkew": 3, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        return pod(name, cpu="100m", labels=labels, topologySpreadConstraints=[spread])
    if kind == 3:
        term = {"weight": 10, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}
        return pod(name, cpu="100m", labels=labels,
                   affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
    if kind == 4:
        return pod(name, memory="256Mi", labels=labels, tolerations=[{"key": "dedicated", "operator": "Exists"}])
    if kind == 5:
        return pod(name, cpu="50m", labels=labels, ports=[{"containerPort": 80, "hostPort": 20000 + number}])
    return pod(name, cpu="150m", memory="64Mi", labels=labels)


class Beside(Case):
    """A shadow beside the real kube-scheduler, with rights to read and no others."""

    alone = True

    def setUp(self):
        super().setUp()
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "shadow"}, "rules": RULES,
        }
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "shadow"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "shadow"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "shadow"}],
        }
        if not self.api.get("clusterroles", "shadow"):
            self.api.create("clusterroles", role)
            self.api.create("clusterrolebindings", binding)

    def start_shadow(self, *words):
        """A shadow with rights to read, what it writes, and what it logs."""
        report = self.folder / "shadow.json"
        log = self.folder / "shadow.log"
        with open(report, "wb") as output, open(log, "wb") as errors:
            shadow = subprocess.Popen(
                [settings.SUPERCARGO, "shadow", "--kubeconfig", self.cluster.kubeconfig("shadow"), "-o", "json", *words],
                stdout=output, stderr=errors, preexec_fn=die_with_parent,
            )
        self.addCleanup(shadow.kill)
        wait("it knows the cluster", lambda: "looking on" in log.read_text(), 30, say=log.read_text)
        return shadow, report, log

    def finish(self, shadow, report, log):
        """Asked to stop, it sums up in a last line."""
        shadow.send_signal(signal.SIGTERM)
        try:
            code = shadow.wait(30)
        except subprocess.TimeoutExpired:
            self.fail(f"shadow did not end\n{log.read_text()}")
        self.assertEqual(code, 0, log.read_text())
        lines = [json.loads(line) for line in report.read_text().splitlines() if line.strip()]
        return lines[:-1], lines[-1]["summary"]


@ours_only
class ShadowOfAnotherConfiguration(Beside):
    def test_it_ends_by_itself(self):
        words = [settings.SUPERCARGO, "shadow", "--kubeconfig", self.cluster.kubeconfig("shadow"), "--for", "1s"]
        result = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, "no pod was bound\n"), result.stderr)

    def test_a_configuration_that_would_have_done_otherwise(self):
        """kube-scheduler spreads, the configuration packs: the pods that follow the first one are worse off by its scores."""
        config = self.folder / "packing.yaml"
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "packing", "pluginConfig": [{"name": "NodeResourcesFit", "args": {
                "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}}]}],
        }))
        self.create("nodes", *nodes(2, cpu="8"))
        shadow, report, log = self.start_shadow("--config", config, "--scheduler-name", "default-scheduler")
        self.start_scheduler({"percentageOfNodesToScore": 100}, program="kube-scheduler")
        self.create("pods", pod("first", cpu="1"))
        self.wait_bound("first")
        self.create("pods", pod("second", cpu="1"))
        self.wait_bound("second")
        wait("it has judged both", lambda: len(report.read_text().splitlines()) >= 2, 30, say=log.read_text)
        (_, second), summary = self.finish(shadow, report, log)
        self.assertEqual(second["pod"], "default/second")
        self.assertEqual(second["verdict"], "worse", second)
        self.assertLess(second["plugins"]["NodeResourcesFit"], 0, second)
        self.assertNotEqual(second["theirs"], second["ours"])
        self.assertEqual(summary["worse"], 1, summary)
        self.assertEqual(summary["differences"][0]["plugin"], "NodeResourcesFit", summary)


@ours_only
class ShadowMetrics(Beside):
    def test_metrics_are_served_where_a_port_is_given(self):
        self.create("nodes", *nodes(3, cpu="8"))
        port, reviewer = free_port(), self.cluster.kubeconfig("scheduler")
        # Who asks is looked up by somebody who may: a shadow reads and does nothing else.
        shadow, report, log = self.start_shadow(
            "--secure-port", str(port), "--bind-address", "127.0.0.1",
            "--authentication-kubeconfig", reviewer, "--authorization-kubeconfig", reviewer)
        self.assertEqual(Client(port, None).raw("GET", "/readyz"), (200, "ok"))
        self.assertEqual(Client(port, self.cluster.tokens["nobody"]).raw("GET", "/metrics")[0], 403)
        self.start_scheduler({"percentageOfNodesToScore": 100}, program="kube-scheduler")
        self.create("pods", *(pod(f"pod-{number}", cpu="1") for number in range(5)))

        def metrics():
            code, text = Client(port, self.cluster.tokens["monitor"]).raw("GET", "/metrics")
            self.assertEqual(code, 200, text)
            return {series: float(value) for series, _, value in
                    (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))}

        def compared(found):
            return sum(found[f'supercargo_shadow_pods_total{{verdict="{verdict}"}}'] for verdict in VERDICTS)

        wait("all five are compared", lambda: compared(metrics()) == 5, 30, say=log.read_text)
        found = metrics()
        agreed = found['supercargo_shadow_pods_total{verdict="same"}'] + found['supercargo_shadow_pods_total{verdict="tied"}']
        self.assertEqual(found["supercargo_shadow_agreement_ratio"], agreed / 5)
        self.assertEqual(found["supercargo_shadow_lag_seconds_count"], 5)
        self.assertEqual((found["supercargo_shadow_nodes"], found["supercargo_shadow_missed_pods_total"]), (3, 0))
        self.finish(shadow, report, log)


@ours_only
class Shadow(Beside):
    audit = True

    def test_a_thousand_mixed_pods(self):
        for number, item in enumerate(nodes(60, cpu="8")):
            item["metadata"]["labels"]["zone"] = f"zone-{number % 3}"
            self.create("nodes", item)
        self.create("nodes", node("tainted", taints=[taint("dedicated")], labels={"zone": "zone-0"}))

        shadow, report, log = self.start_shadow()
        # All nodes are looked at by both, or they would not have the same to choose from.
        self.start_scheduler({"percentageOfNodesToScore": 100}, program="kube-scheduler")
        self.create("pods", *(mixed(number) for number in range(PODS)))
        self.wait_all_bound(self.watch_pods(), PODS, 120)

        # It says what it makes of each pod in a line.
        wait("it has judged every pod", lambda: len(report.read_text().splitlines()) >= PODS, 30, say=log.read_text)
        lines, summary = self.finish(shadow, report, log)
        self.assertEqual(len(lines), PODS)
        self.assertEqual(summary["pods"], PODS)
        self.assertEqual(sum(summary[verdict] for verdict in VERDICTS), PODS)
        agreed = summary["same"] + summary["tied"]
        self.assertGreaterEqual(agreed, PODS * 0.95, summary)

        # The log has writes only. To ask what one may do is a POST that changes nothing.
        writes = [event for event in self.cluster.audited("shadow")
                  if not event["requestURI"].startswith("/apis/authorization.k8s.io/")]
        self.assertEqual(writes, [])
        wait("the scheduler's own writes are in the audit log", lambda: len(self.cluster.bindings()) == PODS)
