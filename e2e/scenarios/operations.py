"""What those who run it look at: health, configuration, metrics, a graceful end."""

import json
import shutil
import signal
import urllib.parse
import urllib.request

from harness import settings
from harness.case import Case
from harness.client import Client
from harness.objects import node, pod
from harness.processes import Process, free_port, wait
from harness.scheduler import LABEL


# What kube-scheduler has after a pod was bound, one was refused and one gated, but for what is Go's, and what only a sample gets.
FAMILIES = {
    "scheduler_cache_size": "gauge",
    "scheduler_event_handling_duration_seconds": "histogram",
    "scheduler_framework_extension_point_duration_seconds": "histogram",
    "scheduler_inflight_events": "gauge",
    "scheduler_pending_pods": "gauge",
    "scheduler_plugin_evaluation_total": "counter",
    "scheduler_pod_scheduled_after_flush_total": "counter",
    "scheduler_pod_scheduling_attempts": "histogram",
    "scheduler_pod_scheduling_sli_duration_seconds": "histogram",
    "scheduler_preemption_attempts_total": "counter",
    "scheduler_preemption_victims": "histogram",
    "scheduler_queue_incoming_pods_total": "counter",
    "scheduler_schedule_attempts_total": "counter",
    "scheduler_scheduling_algorithm_duration_seconds": "histogram",
    "scheduler_scheduling_attempt_duration_seconds": "histogram",
    "scheduler_unschedulable_pods": "gauge",
    "process_cpu_seconds_total": "counter",
    "process_open_fds": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_start_time_seconds": "gauge",
}


class Endpoints(Case):
    def test_health_is_for_everybody(self):
        scheduler = self.start_scheduler()
        for path in ("/healthz", "/livez", "/readyz"):
            for user in (None, "nobody", "monitor"):
                self.assertEqual(scheduler.get(path, user), (200, "ok"), f"{path} as {user}")

    def test_metrics_and_configuration_are_not(self):
        """Who asks is looked up by a TokenReview, whether they may by a SubjectAccessReview: as in kube-scheduler."""
        scheduler = self.start_scheduler()
        self.assertEqual(scheduler.get("/metrics", None)[0], 403)
        self.assertEqual(scheduler.get("/metrics", "nobody")[0], 403)
        self.assertEqual(scheduler.get("/metrics", "monitor")[0], 200)
        self.assertEqual(scheduler.get("/configz", "nobody")[0], 403)
        self.assertEqual(scheduler.get("/configz", "admin")[0], 200)
        stranger = Client(scheduler.port, "no-such-token")
        self.assertEqual(stranger.raw("GET", "/metrics")[0], 401)

    def test_configz_shows_what_it_runs_with(self):
        """The whole configuration, with what was left to defaults."""
        profile = {"schedulerName": "mine", "percentageOfNodesToScore": 70}
        scheduler = self.start_scheduler({"profiles": [profile], "parallelism": 7, "podMaxBackoffSeconds": 20})
        code, text = scheduler.get("/configz", "admin")
        self.assertEqual(code, 200)
        shown = json.loads(text)["componentconfig"]
        self.assertEqual(shown["parallelism"], 7)
        self.assertEqual(shown["podInitialBackoffSeconds"], 1)
        self.assertEqual(shown["podMaxBackoffSeconds"], 20)
        self.assertEqual(shown["profiles"][0]["schedulerName"], "mine")
        enabled = [plugin["name"] for plugin in shown["profiles"][0]["plugins"]["multiPoint"]["enabled"]]
        self.assertIn("NodeResourcesFit", enabled)
        arguments = {entry["name"]: entry["args"] for entry in shown["profiles"][0]["pluginConfig"]}
        self.assertEqual(arguments["NodeResourcesFit"]["scoringStrategy"]["type"], "LeastAllocated")

    def test_what_runs_is_shown(self):
        scheduler = self.start_scheduler()
        for path in ("/statusz", "/flagz", "/metrics/slis"):
            self.assertEqual(scheduler.get(path, "nobody")[0], 403)
        code, text = scheduler.get("/metrics/slis")
        self.assertEqual(code, 200)
        self.assertIn('kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 1', text.splitlines())
        self.assertRegex(text, r'kubernetes_healthchecks_total\{name="sched-handler-sync",status="success",type="readyz"\} \d')
        # Programs say which version of the object they want; people get text.
        for path, kind in (("/statusz", "Statusz"), ("/flagz", "Flagz")):
            accept = f"application/json;v=v1beta1;g=config.k8s.io;as={kind}"
            code, text = self.get_as(scheduler, path, accept)
            self.assertEqual(code, 200, text)
            shown = json.loads(text)
            self.assertEqual((shown["kind"], shown["apiVersion"]), (kind, "config.k8s.io/v1beta1"))
            self.assertEqual(self.get_as(scheduler, path, "application/json")[0], 406)
            self.assertIn(path[1:], self.get_as(scheduler, path, "text/plain")[1].splitlines()[1])
            if kind == "Flagz":
                self.assertEqual(shown["flags"]["secure-port"], str(scheduler.port))
                self.assertEqual(shown["flags"]["authorization-always-allow-paths"], "[/healthz,/readyz,/livez]")
                self.assertEqual(shown["flags"]["pod-max-in-unschedulable-pods-duration"], "5m0s")
            else:
                self.assertEqual(shown["emulationVersion"], "1.36")
                self.assertIn("/configz", shown["paths"])

    def get_as(self, scheduler, path, accept):
        client = scheduler.client("monitor")
        connection = client.connect()
        connection.request("GET", path, None, {**client.headers(), "Accept": accept})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def test_sigterm_is_a_graceful_end(self):
        """With leader election, it gives back the lease and ends without an error."""
        scheduler = self.start_scheduler({"leaderElection": {"leaderElect": True}}, ready=None)
        self.addCleanup(self.api.delete, "leases", "kube-scheduler", namespace="kube-system")

        def holder():
            lease = self.api.get("leases", "kube-scheduler", "kube-system")
            return lease and lease["spec"].get("holderIdentity")

        wait("it has the lease", holder, 20)
        self.addCleanup(self.api.delete_all, "events", namespace="kube-system")
        event = wait("people are told", lambda: self.api.list("events", "kube-system"))[0]
        self.assertEqual((event["reason"], event["note"]), ("LeaderElection", f"{holder()} became leader"))
        self.assertEqual((event["regarding"]["kind"], event["regarding"]["name"]), ("Lease", "kube-scheduler"))
        self.assertEqual((event["type"], event["deprecatedSource"]["component"]), ("Normal", "default-scheduler"))
        self.assertEqual(scheduler.process.terminate(), 0)
        self.assertFalse(holder())
        self.assertEqual(scheduler.get("/healthz"), (0, ""))

    def test_sigusr2_dumps_queue_and_cache(self):
        self.create("nodes", node("only", cpu="1"))
        scheduler = self.start_scheduler()
        self.create("pods", pod("placed", cpu="1"))
        self.wait_bound("placed")
        self.create("pods", pod("waiting", cpu="1"))
        self.wait_event("waiting", "FailedScheduling")
        scheduler.process.signal(signal.SIGUSR2)
        for text in ("Dump of cached NodeInfo", "Dump of scheduling queue"):
            wait(f"the log has: {text}", lambda: text in scheduler.process.text())
        self.assertTrue(scheduler.process.running)


class Metrics(Case):
    def test_prometheus_scrapes_and_answers(self):
        """A real Prometheus, over HTTPS and with a token, and the questions that dashboards ask."""
        self.create("nodes", node("only", cpu="1"))
        scheduler = self.start_scheduler()
        self.create("pods", *(pod(f"placed-{number}", cpu="100m") for number in range(10)))
        for number in range(10):
            self.wait_bound(f"placed-{number}")
        self.create("pods", pod("refused", cpu="1"), pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        self.wait_event("refused", "FailedScheduling")
        self.ask = self.start_prometheus(scheduler)

        wait("the scheduler is up, for Prometheus", lambda: self.ask('up{job="scheduler"}') == [1], 20)
        expected = {
            'scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}': 10,
            'scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"}': 1,
            'scheduler_pending_pods{queue="unschedulable"}': 1,
            'scheduler_pending_pods{queue="gated"}': 1,
            'scheduler_pending_pods{queue="active"}': 0,
            'scheduler_pending_pods{queue="backoff"}': 0,
            'scheduler_scheduling_attempt_duration_seconds_count{result="scheduled"}': 10,
            'scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled",le="+Inf"}': 10,
            'scheduler_pod_scheduling_attempts_count': 10,
            'scheduler_pod_scheduling_attempts_bucket{le="1"}': 10,
            'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}': 10,
            'scheduler_preemption_attempts_total': 1,
            'scheduler_unschedulable_pods{plugin="NodeResourcesFit"}': 1,
            'scheduler_queue_incoming_pods_total{queue="active",event="UnschedulablePodAdd"}': 11,
            'scheduler_cache_size{type="nodes"}': 1,
            'scheduler_cache_size{type="pods"}': 10,
        }
        for point in ("Reserve", "Permit", "PreBind", "Bind", "PostBind"):
            labels = f'extension_point="{point}",status="Success",profile="default-scheduler"'
            expected[f"scheduler_framework_extension_point_duration_seconds_count{{{labels}}}"] = 10
        for query, value in expected.items():
            with self.subTest(query):
                wait(f"{query} is {value}", lambda: self.ask(query) == [value], 10, say=lambda: self.ask(query))
        # Those whose numbers are chance: they must be there and make sense.
        for query in (
            'histogram_quantile(0.99, sum by (le) (scheduler_scheduling_attempt_duration_seconds_bucket))',
            'histogram_quantile(0.99, sum by (le) (scheduler_scheduling_algorithm_duration_seconds_bucket))',
            'sum(scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",profile="default-scheduler"})',
            'sum(scheduler_plugin_evaluation_total{plugin="NodeResourcesFit",extension_point="Filter"})',
            'process_resident_memory_bytes{job="scheduler"}',
            'process_cpu_seconds_total{job="scheduler"}',
        ):
            with self.subTest(query):
                values = self.ask(query)
                self.assertEqual(len(values), 1, values)
                self.assertGreater(values[0], 0)

    def test_the_names_are_kube_schedulers(self):
        """Name and type of each metric, so that dashboards and alerts need no change; and the bounds of a histogram."""
        self.create("nodes", node("only", cpu="1"))
        scheduler = self.start_scheduler()
        self.create("pods", pod("placed", cpu="1"))
        self.wait_bound("placed")
        self.create("pods", pod("refused", cpu="1"), pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        self.wait_event("refused", "FailedScheduling")
        wait("sizes have been counted", lambda: scheduler.metric("scheduler_cache_size", type="nodes") == 1)
        lines = scheduler.get("/metrics")[1].splitlines()
        types = dict(line.split(" ")[2:4] for line in lines if line.startswith("# TYPE "))
        self.assertEqual({name: types.get(name) for name in FAMILIES}, FAMILIES)
        buckets = [line for line in lines if line.startswith("scheduler_scheduling_attempt_duration_seconds_bucket")]
        labels = [dict(LABEL.findall(line)) for line in buckets]
        bounds = [float(each["le"]) for each in labels if each["result"] == "scheduled"]
        self.assertEqual(bounds, [0.001 * 2**step for step in range(15)] + [float("inf")])

    def start_prometheus(self, scheduler):
        """Starts one that scrapes the scheduler; what comes back asks it a question and gives the values of the answer."""
        program = shutil.which("prometheus") or settings.binary("prometheus")
        port = free_port()
        (self.folder / "token").write_text(self.cluster.tokens["monitor"])
        (self.folder / "prometheus.yml").write_text(json.dumps({
            "scrape_configs": [{
                "job_name": "scheduler", "scheme": "https", "scrape_interval": "500ms", "scrape_timeout": "500ms",
                "authorization": {"credentials_file": str(self.folder / "token")},
                "tls_config": {"insecure_skip_verify": True},
                "static_configs": [{"targets": [f"127.0.0.1:{scheduler.port}"]}],
            }],
        }))
        prometheus = Process("prometheus", [
            program, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/prometheus",
            f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
        ], self.folder / "prometheus.log")
        self.addCleanup(prometheus.kill)

        def ask(query):
            url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:
                if not prometheus.running:
                    raise AssertionError(f"prometheus ended\n{prometheus.tail(20)}") from None
                return []
            return [float(series["value"][1]) for series in found]

        return ask
