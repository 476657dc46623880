"""What scenarios of the community's plugins start from: their definitions, a scheduler with no more rights than it prints, and builders."""

import json
import subprocess

from harness import settings
from harness.case import Case
from harness.client import Watch
from harness.objects import node_of
from harness.processes import wait

CRDS = settings.ROOT / "deploy" / "crds"
API_VERSION = "scheduling.x-k8s.io/v1alpha1"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
NAME = "community-scheduler"


class Community(Case):
    """A scheduler with plugins of the community, the definitions of `deploy/crds`, and the rights that `supercargo rbac` prints."""

    plugins = {}
    plugin_config = []
    # What `kubectl apply` installs before the scheduler starts.
    definitions = (CRDS,)

    def kubectl(self, *words):
        command = [settings.binary("kubectl"), "--kubeconfig", self.cluster.kubeconfig("admin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def profiles(self):
        return [{"schedulerName": NAME, "plugins": self.plugins, "pluginConfig": self.plugin_config}]

    def config(self):
        return {"profiles": self.profiles(), "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2}

    def setUp(self):
        super().setUp()
        for file in self.definitions:
            self.kubectl("apply", "-f", str(file))
        if self.definitions:
            self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
        self.grant()

    def grant(self):
        """Gives the scheduler's account what `supercargo rbac` says that it needs."""
        config = self.folder / "rbac-config.yaml"
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False}, **self.config()}))
        rights = self.folder / "rbac.yaml"
        rights.write_text(subprocess.run(
            [settings.SUPERCARGO, "rbac", "--name", NAME, "--config", config],
            capture_output=True, text=True, check=True, timeout=30).stdout)
        self.kubectl("apply", "-f", str(rights))
        self.addCleanup(self.kubectl, "delete", "--wait=false", "-f", str(rights))
        self.cluster.add_account(NAME, "kube-system")

    def start(self, name="scheduler", **options):
        return self.start_scheduler(self.config(), name=name, user=NAME, **options)

    def unbound(self, names):
        return [name for name in names if not node_of(self.pod(name))]

    def end_leaving_pods(self):
        """Does the kubelet's part for pods that are asked to go, in all namespaces, until the test ends."""
        def told(kind, item):
            metadata = item["metadata"]
            if kind != "DELETED" and metadata.get("deletionTimestamp"):
                self.api.delete("pods", metadata["name"], namespace=metadata["namespace"])

        watch = Watch(self.cluster.client("admin"), "pods", None, tell=told)
        self.addCleanup(watch.stop)
        return watch


def pod_group(name, members, **spec):
    return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": members, **spec}}


def elastic_quota(least, most, name="quota"):
    return {"apiVersion": API_VERSION, "kind": "ElasticQuota", "metadata": {"name": name}, "spec": {"min": least, "max": most}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
