"""The scheduler under test: its configuration, its process, its port."""

import http.client
import json
import re
import time

from harness import settings
from harness.client import Client
from harness.processes import Process, free_port, wait

LABEL = re.compile(r'(\w+)="([^"]*)"')
# No test waits for a rate limit unless it is about one.
BASE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 2000, "burst": 2000}, "leaderElection": {"leaderElect": False},
}


class Scheduler:
    def __init__(self, cluster, folder, name, config=None, program=None, port=None, flags=(), user="scheduler",
                 credentials=None, environment=None, binary=None):
        """`port` is that of a proxy in front of kube-apiserver; `program` is another one than that under test; `user` is who
        it is to kube-apiserver, `credentials` what its kubeconfig says about that, if not a token."""
        program = program or settings.SCHEDULER
        self.cluster = cluster
        self.kubeconfig = cluster.kubeconfig(user, port, credentials)
        self.config_file = folder / f"{name}.config.yaml"
        self.configure(config or {})
        self.port = free_port()
        self.clients = {}
        words = [binary or settings.SUPERCARGO, "run"] if program == "supercargo" else [settings.binary("kube-scheduler")]
        self.launched = time.monotonic()
        self.process = Process(name, words + [
            "--config", self.config_file, "--bind-address", "127.0.0.1", "--secure-port", self.port,
            "--authentication-kubeconfig", self.kubeconfig, "--authorization-kubeconfig", self.kubeconfig, "--v", "2",
            *flags,
        ], folder / f"{name}.log", environment)
        cluster.guests.append(self.process)

    def configure(self, config):
        """Writes the configuration: JSON, which is YAML. Seen whole or not at all, as a ConfigMap's file is. What it has under
        `own` is a second document, a SupercargoConfiguration."""
        content = {**BASE, **config}
        own = content.pop("own", None)
        content["clientConnection"] = {
            **BASE["clientConnection"], "kubeconfig": str(self.kubeconfig), **config.get("clientConnection", {}),
        }
        text = json.dumps(content, indent=2)
        if own is not None:
            own = {"apiVersion": "supercargo.dev/v1alpha1", "kind": "SupercargoConfiguration", **own}
            text = f"---\n{text}\n---\n{json.dumps(own, indent=2)}\n"
        self.replace(text)

    def replace(self, text):
        whole = self.config_file.with_suffix(".new")
        whole.write_text(text)
        whole.rename(self.config_file)

    def client(self, user=None):
        """A client of the scheduler's own port, whose certificate it made for itself."""
        if user not in self.clients:
            self.clients[user] = Client(self.port, self.cluster.tokens[user] if user else None)
        return self.clients[user]

    def get(self, path, user="monitor"):
        """Code and text of the answer on its own port; code 0 if there is none."""
        try:
            return self.client(user).raw("GET", path)
        except (OSError, http.client.HTTPException):
            return 0, ""

    def wait_for(self, path, seconds=30):
        def answered():
            if not self.process.running:
                raise AssertionError(f"{self.process.name} ended with {self.process.child.returncode}")
            return self.get(path)[0] == 200

        wait(f"{self.process.name} answers {path} with 200", answered, seconds)
        return self

    def metric(self, name, **labels):
        """The sum of a metric's values over all series that have these labels; None if there is no such series."""
        code, text = self.get("/metrics")
        if code != 200:
            raise AssertionError(f"/metrics: {code} {text}")
        values = []
        for line in text.splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] == name:
                has = dict(LABEL.findall(series))
                if all(has.get(label) == wanted for label, wanted in labels.items()):
                    values.append(float(value))
        return sum(values) if values else None
