"""The Grafana dashboard of deploy/grafana: each of its queries, asked of a real Prometheus that scrapes a scheduler."""

import json
import re

from harness import settings
from harness.case import Case, ours_only
from harness.objects import node, pod, priority_class
from harness.processes import wait
from harness.prometheus import Page, Prometheus, ask

DASHBOARD = settings.ROOT / "deploy" / "grafana" / "supercargo.json"
METRICS = settings.ROOT / "docs" / "reference" / "metrics.md"
METRIC = re.compile(r"\b(?:scheduler|supercargo|process|leader)_\w+")
OTHERWISE = " or vector(0)"
# Panels about what does not happen here, and in a healthy cluster does not happen either.
QUIET = {"Everything listed again", "Plugins that panic or take long", "Configuration files"}
# What Grafana puts in: what is chosen above the panels, and a span that holds a few scrapes.
VARIABLES = {"$job": "nodes", "$__rate_interval": "5s"}


@ours_only
class Dashboard(Case):
    def test_each_query_is_answered(self):
        """By a scheduler that binds, refuses, preempts, asks Prometheus, and looks after a program."""
        page = Page()
        self.addCleanup(page.close)
        page.say('node_network_receive_bytes_total{device="eth0",kubernetes_node="only"} 5')
        facts = Prometheus(self.folder_of("facts"), [page.address])
        self.addCleanup(facts.start().kill)
        self.create("nodes", node("only", cpu="2"))
        self.create("priorityclasses", priority_class("urgent", 1000))
        scheduler = self.start_scheduler({
            "own": {"programs": [{"name": "agent", "command": ["sleep", "600"]}]},
            "profiles": [{
                "plugins": {"multiPoint": {"enabled": [{"name": "NetworkTraffic"}]}},
                "pluginConfig": [{"name": "NetworkTraffic", "args": {
                    "prometheusAddress": facts.url, "networkInterface": "eth0", "queryInterval": "300ms",
                    "agentAddress": "127.0.0.1:1", "agentTimeout": "100ms",
                }}],
            }],
        })
        folder = self.folder_of("metrics")
        (folder / "token").write_text(self.cluster.tokens["monitor"])
        prometheus = Prometheus(folder, [f"127.0.0.1:{scheduler.port}"], scheme="https", authorization={
            "credentials_file": str(folder / "token")}, tls_config={"insecure_skip_verify": True})
        self.addCleanup(prometheus.start().kill)
        wait("Prometheus scrapes the scheduler", lambda: ask(prometheus.url, "up") == [1], 20)

        # So that rates are of something, it happens while Prometheus looks: twice, because the first sample of a series is no increase.
        for attempt in range(2):
            for number in range(2):
                self.create("pods", pod(f"placed-{attempt}-{number}", cpu="500m"))
            for number in range(2):
                self.wait_bound(f"placed-{attempt}-{number}")
        self.create("pods", pod("refused", cpu="1"))
        self.wait_event("refused", "FailedScheduling")
        self.create("pods", pod("urgent", cpu="1", priority_class="urgent"))
        wait("a pod is evicted", lambda: scheduler.metric("scheduler_preemption_victims_count"), 10)

        for title, query in queries():
            # What a panel shows when there is nothing to show says nothing about the query.
            query = query if title in QUIET else query.removesuffix(OTHERWISE)
            with self.subTest(title, query=query):
                wait(f"{title} is answered", lambda: ask(prometheus.url, query), 20)

    def test_each_metric_is_in_the_reference(self):
        """A name that no scheduler exposes would be an empty panel, which looks like a quiet cluster."""
        known = METRICS.read_text()
        for title, query in queries():
            for name in METRIC.findall(query):
                plain = re.sub(r"_(bucket|count|sum)$", "", name)
                shown = plain in known or plain.startswith("process_")
                self.assertTrue(shown, f"{title}: {name} is not in docs/reference/metrics.md")

    def folder_of(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder


def queries():
    """The panels' titles and expressions, with Grafana's variables filled in."""
    found = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            assert "$" not in query, f"{panel['title']}: {query}"
            found.append((panel["title"], query))
    return found
