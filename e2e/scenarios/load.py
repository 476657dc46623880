"""Trimaran: nodes by their measured load, which a stand-in for load-watcher, a real Prometheus and an imitated metrics API tell of; and
whatever load-watcher says instead, pods go."""

import json
import ssl
import threading
import time
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.case import ours_only
from harness.community import Community
from harness.objects import node, pod
from harness.processes import wait
from harness.prometheus import Page, Prometheus, ask

PLAIN = "plain-scheduler"
# By what the default profile goes, the large node is better; by its load, the small one.
LOADS = {"large": (5, 60), "small": (30, 1)}
POWER = {"large": {"k0": 100, "k1": -100, "k2": -0.1}, "small": {"k0": 100, "k1": -100, "k2": -0.001}}
QUERY = "node-load"


class LoadWatcher(Page):
    """Answers as load-watcher does: averages and deviations of cpu and memory, in percent."""

    def __init__(self):
        super().__init__(path="/watcher")
        self.url = f"http://{self.address}"

    def tell(self, loads):
        metrics = lambda average, deviation: [
            {"type": kind, "operator": operator, "rollup": "15m", "value": value}
            for kind in ("CPU", "Memory") for operator, value in (("AVG", average), ("STD", deviation))]
        now = int(time.time())
        self.text = json.dumps({
            "timestamp": now, "source": "test", "window": {"duration": "15m", "start": now - 900, "end": now},
            "data": {"NodeMetricsMap": {name: {"metrics": metrics(*load), "tags": {}, "metadata": {}} for name, load in loads.items()}}})


class Load(Community):
    definitions = ()

    def setUp(self):
        self.watcher = LoadWatcher()
        self.addCleanup(self.watcher.close)
        self.pods = 0
        super().setUp()
        self.create("nodes", node("large", cpu="20", memory="40Gi"), node("small", cpu="10", memory="20Gi"))
        # It asks for next to nothing, and may take more than the large node has.
        greedy = pod("greedy", nodeName="large", schedulerName="nobody")
        greedy["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}, "limits": {"cpu": "30"}}
        self.create("pods", greedy)

    def profile(self, plugin, args):
        enabled = {"enabled": [{"name": plugin, "weight": 100}]}
        return {"schedulerName": plugin.lower(), "plugins": {"multiPoint": enabled}, "pluginConfig": [{"name": plugin, "args": args}]}

    def place(self, scheduler):
        """Where a new pod goes; it goes somewhere soon."""
        self.pods += 1
        name = f"web-{self.pods}"
        self.create("pods", pod(name, cpu="100m", memory="100Mi", schedulerName=scheduler))
        return self.wait_bound(name, 5)

    def facts(self):
        return self.scheduler.metric("supercargo_query_facts", query=QUERY)

    def start_measured(self, name="scheduler"):
        self.scheduler = self.start(name)
        wait("the load of both nodes is known", lambda: self.facts() == len(LOADS), 20, say=lambda: self.scheduler.get("/readyz?verbose")[1])


@ours_only
class Watched(Load):
    """One scheduler with a profile of each plugin; they share what load-watcher says."""

    PLUGINS = ("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks")

    def profiles(self):
        args = {plugin: {"watcherAddress": self.watcher.url} for plugin in self.PLUGINS[:3]}
        args["Peaks"] = {"WatcherAddress": self.watcher.url, "NodePowerModel": POWER}
        return [{"schedulerName": PLAIN}, *(self.profile(plugin, args[plugin]) for plugin in self.PLUGINS)]

    def test_each_plugin_goes_by_the_load_and_not_as_by_default(self):
        self.watcher.tell(LOADS)
        self.start_measured()
        self.assertEqual(self.place(PLAIN), "large")
        for plugin in self.PLUGINS:
            with self.subTest(plugin):
                self.assertEqual(self.place(plugin.lower()), "small")

    def test_whatever_load_watcher_says_pods_go(self):
        metrics = lambda *values: json.dumps({"window": {"end": int(time.time())}, "data": {"NodeMetricsMap": {
            name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": value} for value in values]} for name in LOADS}}})
        nonsense = {
            "a page": ("<html>Log in</html>", 0),
            "half an answer": (metrics(10)[:40], 0),
            "a list": ("[1, 2, 3]", 0),
            "a text for a number": (metrics("much"), 0),
            "more than a number": (metrics(10).replace("10", "1e999"), 0),
            "nobody": (json.dumps({"data": {"NodeMetricsMap": None}}), 0),
            "strangers": (metrics(10).replace("large", "vast").replace("small", "tiny"), 0),
            "less than nothing": (metrics(-500), 0),
            "far too much": (metrics(1e300), 2),
        }
        for number, (what, (text, facts)) in enumerate(nonsense.items()):
            with self.subTest(what):
                self.watcher.text = text
                self.scheduler = self.start(f"scheduler-{number}")
                asked = lambda: self.scheduler.metric("supercargo_query_answers_total", query=QUERY) or 0
                wait("load-watcher was asked", lambda: asked() >= 1, 10)
                self.assertEqual(self.facts(), facts)
                for plugin in (PLAIN, *(plugin.lower() for plugin in self.PLUGINS)):
                    self.place(plugin)
                code, text = self.scheduler.get("/readyz?verbose")
                self.assertEqual(code, 200, text)
                self.assertIn(f"query {QUERY}: ", text)
                self.scheduler.process.kill()


@ours_only
class Scraped(Load):
    """LoadVariationRiskBalancing by a real Prometheus."""

    def setUp(self):
        self.page = Page()
        self.addCleanup(self.page.close)
        series = {"instance:node_cpu:ratio": "cpu", "instance:node_memory_utilisation:ratio": "memory"}
        # What deviates has been something else before.
        self.lines = lambda large: [f'{name}{{instance="{where}"}} {value}' for name in series for where, value in (("large", large), ("small", 0.3))]
        super().setUp()

    def profiles(self):
        provider = {"type": "Prometheus", "address": self.prometheus.url}
        return [{"schedulerName": PLAIN}, self.profile("LoadVariationRiskBalancing", {"metricProvider": provider})]

    def grant(self):
        self.prometheus = Prometheus(self.folder, [self.page.address])
        super().grant()

    def test_pods_go_where_the_load_varies_little(self):
        self.page.say(*self.lines(0.0))
        process = self.prometheus.start()
        self.addCleanup(process.kill)
        deviation = lambda: ask(self.prometheus.url, 'stddev_over_time(instance:node_cpu:ratio{instance="large"}[15m])')
        wait("the load is scraped", deviation, 20)
        self.page.say(*self.lines(1.0))
        wait("the load varies", lambda: [value for value in deviation() if value > 0.4], 20, say=lambda: str(deviation()))
        self.start_measured()
        self.assertEqual(self.place(PLAIN), "large")
        self.assertEqual(self.place("loadvariationriskbalancing"), "small")


class MetricsServer:
    """As much of metrics.k8s.io as a scheduler asks for, to be aggregated by the real API server. `used` has the cpu and memory of nodes."""

    def __init__(self, certificate, key):
        self.used, self.asked = {}, []
        server = self
        version = "metrics.k8s.io/v1beta1"
        resource = {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                server.asked.append(path)
                if path == f"/apis/{version}/nodes":
                    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                    items = [{"metadata": {"name": name}, "timestamp": now, "window": "10s", "usage": usage} for name, usage in server.used.items()]
                    content = {"kind": "NodeMetricsList", "apiVersion": version, "metadata": {}, "items": items}
                else:
                    content = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]}
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # A connection that ends in its handshake.

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@ours_only
class Aggregated(Load):
    """TargetLoadPacking by metrics.k8s.io, which the API server aggregates."""

    def profiles(self):
        return [{"schedulerName": PLAIN}, self.profile("TargetLoadPacking", {"metricProvider": {"type": "KubernetesMetricsServer"}})]

    def test_pods_go_by_what_nodes_use(self):
        certificates = self.cluster.authority.parent
        server = MetricsServer(certificates / "apiserver.crt", certificates / "apiserver.key")
        self.addCleanup(server.close)
        server.used = {"large": {"cpu": "100m", "memory": "1Gi"}, "small": {"cpu": "3", "memory": "1Gi"}}
        # The name by which the API server reaches it stands for this machine.
        self.create("services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-server"},
                                 "spec": {"type": "ExternalName", "externalName": "localhost"}})
        name = "v1beta1.metrics.k8s.io"
        self.create("apiservices", {
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                     "insecureSkipTLSVerify": True,
                     "service": {"namespace": "default", "name": "metrics-server", "port": server.port}}})
        self.addCleanup(self.api.delete, "apiservices", name)
        answer = lambda: self.api.raw("GET", "/apis/metrics.k8s.io/v1beta1/nodes")
        wait("the metrics API is aggregated", lambda: answer()[0] == 200, 30, say=lambda: f"{answer()}; {self.api.get('apiservices', name)['status']}")
        self.start_measured()
        self.assertEqual(self.place(PLAIN), "large")
        self.assertEqual(self.place("targetloadpacking"), "small")
