"""docs/guides/from-the-seeds.md, step by step: files are written, commands are run, and what is printed is what the page shows.

Docker and kubelets are not here. A manifest is shown to the real API server, and the command of its container is started as a process: the files that
it mounts are those of the reader's folder, with their places in it instead of the container's.
"""

import http.client
import os
import re
import subprocess
import unittest
from pathlib import Path

from harness import settings
from harness.case import Case, ours_only
from harness.client import Client
from harness.kubectl import Kubectl
from harness.objects import node, nodes
from harness.page import pattern, sections
from harness.processes import Process, free_port, wait
from harness.prometheus import Page, Prometheus, ask

PAGE = settings.ROOT / "docs" / "guides" / "from-the-seeds.md"
# The programs of the images that the manifests name.
IMAGES = {"supercargo": settings.SUPERCARGO} | {name: settings.EXAMPLES / name for name in ("sample2", "node-number", "lucky-extender")}
# Commands that look at what a scheduler does, which takes it a moment: they are run again until they answer as they should.
LOOKS = re.compile(r"^(kubectl (--\S+ )*(get|describe|events|logs)|curl|supercargo qos)\b")
LOOK_SECONDS = 30
COMMAND_SECONDS = 60
# Where the page has Prometheus.
PROMETHEUS = "http://10.96.105.208:9090"
# kind's workers, with addresses of this machine, and what each receives.
WORKERS = {"vbeta3-worker": ("127.0.0.11", 5000), "vbeta3-worker2": ("127.0.0.12", 15), "vbeta3-worker3": ("127.0.0.13", 4000)}
PAGE_PORT = free_port()


@ours_only
class Walk(Case):
    controllers = ("deployment-controller", "replicaset-controller")

    def setUp(self):
        super().setUp()
        self.kubectl = Kubectl(self.cluster.kubeconfig("admin"))
        self.here = self.folder / "reader"
        self.programs = self.folder / "programs"
        for folder in (self.here, self.programs):
            folder.mkdir()
        for name, program in {**IMAGES, "kubectl": settings.binary("kubectl")}.items():
            (self.programs / name).symlink_to(program)
        self.running = []
        self.replaced = {}
        # What a reader waits for who looks at a scheduler's metrics before going on.
        self.awaited = None
        # Before the pods go, whoever would make them anew.
        self.addCleanup(self.kubectl, "delete", "deployments,replicasets", "--all", "--all-namespaces", "--wait=false")
        self.addCleanup(self.stop)

    # The sections.

    def test_network_traffic(self):
        pages = []
        for name, (address, received) in WORKERS.items():
            page = Page(address, PAGE_PORT)
            self.addCleanup(page.close)
            page.say(f'node_network_receive_bytes_total{{device="eth0"}} {received}')
            pages.append(page.address)
            worker = node(name)
            worker["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
            self.create("nodes", worker)
        prometheus = Prometheus(self.folder, pages)
        self.addCleanup(prometheus.start().kill)
        self.replaced[PROMETHEUS] = prometheus.url
        wait("Prometheus has scraped all workers", lambda: ask(prometheus.url, "count(node_network_receive_bytes_total)") == [3], 20)
        self.awaited = 'supercargo_query_facts{query="network-traffic"} 3'
        self.walk("NetworkTraffic, with an agent that learns")

    def test_qos_aware(self):
        self.create("nodes", node("minikube", cpu="1"))
        self.walk("QosAware: pods by their service level")

    @unittest.skipUnless(IMAGES["sample2"].exists(), "run `cargo build` in examples")
    def test_sample2(self):
        self.create("nodes", node("gpu02-poweredge-t420"), node("gpu03-poweredge-t420"))
        self.walk("sample2: a Filter and a PreScore")

    @unittest.skipUnless(IMAGES["node-number"].exists(), "run `cargo build` in examples")
    def test_mini_kube_scheduler(self):
        self.created["nodes"] = []
        self.walk("mini-kube-scheduler: seven steps to a scheduler")

    @unittest.skipUnless(IMAGES["lucky-extender"].exists(), "run `cargo build` in examples")
    def test_sample_scheduler_extender(self):
        # Of so many, one is lucky.
        self.create("nodes", *nodes(20))
        self.walk("sample-scheduler-extender: a webhook, and four ways")

    def test_every_section_is_walked(self):
        named = re.findall(r'self\.walk\("([^"]+)"\)', Path(__file__).read_text())
        self.assertEqual(sorted(sections(PAGE.read_text())), sorted(named))

    # How it is walked.

    def walk(self, heading):
        for step in sections(PAGE.read_text())[heading]:
            {"file": self.write, "run": self.run_commands, "start": self.start, "container": self.start_container,
             "stop": lambda _: self.stop()}[step.what](step)

    def write(self, step):
        (self.here / step.name).write_text(step.body)

    def run_commands(self, step):
        for command, printed in step.commands():
            expected = pattern(printed)
            found = [self.shell(command)]
            if LOOKS.match(command):
                def matches():
                    found[0] = self.shell(command)
                    return expected.fullmatch(found[0])

                wait(f"$ {command}", matches, LOOK_SECONDS, say=lambda: self.differ(command, printed, found[0]))
            elif not expected.fullmatch(found[0]):
                self.fail(self.differ(command, printed, found[0]))

    def shell(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.here, env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS)
        return done.stdout

    def differ(self, command, printed, found):
        return "\n".join([f"$ {command}", "the page shows:", *printed, "and it prints:", found, *(each.tail(20) for each in self.running)])

    def environment(self):
        return {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig("admin")), "PATH": f"{self.programs}:{os.environ['PATH']}"}

    def start(self, step):
        (command, _), = step.commands()
        # Where the reader's kubeconfig is, the page's configuration says.
        (self.here / "scheduler.conf").write_text(self.cluster.kubeconfig("scheduler").read_text())
        process = Process(step.name, ["bash", "-c", f"cd {self.here} && exec {command}"], self.folder / f"{step.name}.log", self.environment())
        self.cluster.guests.append(process)
        self.running.append(process)

    def stop(self):
        """Asks them to end, as a kubelet does, so that they give back what they hold, such as a lease."""
        running, self.running = self.running, []
        for process in running:
            process.terminate()

    # Containers.

    def start_container(self, step):
        text = (self.here / step.name).read_text()
        self.kubectl("create", "--dry-run=server", "--validate=strict", "--filename", "-", text=text)
        objects = self.kubectl.read(text)
        workload = next(item for item in objects if item["kind"] in ("Pod", "Deployment"))
        spec = workload["spec"] if workload["kind"] == "Pod" else workload["spec"]["template"]["spec"]
        for container in spec["containers"]:
            self.start_one(step.name, spec, container)

    def start_one(self, manifest, spec, container):
        program = IMAGES[container["image"].rpartition("/")[2].partition(":")[0]]
        words = container.get("command") or [f"/{program.name}", *container.get("args", ["run"])]
        mounts = self.mount(spec, container)
        places = {**self.replaced, **mounts}
        for place in map(Path, mounts.values()):
            for file in [place] if place.is_file() else place.iterdir():
                file.write_text(self.replace(file.read_text(), places))
        # Under the name that the container starts it by.
        name = self.folder / container["name"] / Path(words[0]).name
        name.parent.mkdir(exist_ok=True)
        name.symlink_to(program)
        command = [name, *(self.replace(word, places) for word in words[1:])]
        schedules = "extender" not in words
        port = free_port()
        if schedules:
            command.append(f"--secure-port={port}")
        process = Process(f"{manifest} {container['name']}", command, self.folder / f"{container['name']}.log")
        self.cluster.guests.append(process)
        self.running.append(process)
        if schedules:
            self.wait_ready(process, port)

    def wait_ready(self, process, port):
        client = Client(port, self.cluster.tokens["monitor"])

        def answered(path):
            try:
                code, text = client.raw("GET", path)
            except (OSError, http.client.HTTPException):
                return None
            return text if code == 200 else None

        # The kubelet's probe.
        wait("the container is ready", lambda: answered("/readyz"), 30, say=lambda: process.tail(20))
        if self.awaited:
            wait(self.awaited, lambda: self.awaited in (answered("/metrics") or ""), 30, say=lambda: process.tail(20))

    def mount(self, spec, container):
        """Where each file and folder is here that the container has somewhere else."""
        account = spec.get("serviceAccountName") or spec.get("serviceAccount")
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        places = {}
        for mount in container.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            place = self.folder / "mounts" / container["name"] / mount["name"]
            place.parent.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                place.mkdir()
                data = self.api.call("GET", f"/api/v1/namespaces/kube-system/configmaps/{volume['configMap']['name']}")["data"]
                for name, content in data.items():
                    (place / name).write_text(content + self.account_config(account, content))
            elif mount["mountPath"].endswith("scheduler.conf"):
                place.write_text(self.cluster.kubeconfig("scheduler").read_text())
            elif (self.here / Path(volume["hostPath"]["path"]).name).is_file():
                place.write_text((self.here / Path(volume["hostPath"]["path"]).name).read_text())
            else:
                place.mkdir()
            places[mount["mountPath"]] = str(place)
        return places

    def account_config(self, account, content):
        """A pod finds the token of its account in a place of its own, which is not here: the configuration has to name it."""
        if not account or "KubeSchedulerConfiguration" not in content or "clientConnection" in content:
            return ""
        self.cluster.add_account(account, "kube-system")
        return f"\nclientConnection: {{kubeconfig: {self.cluster.kubeconfig(account)}}}\n"

    def replace(self, text, places):
        for there in sorted(places, key=len, reverse=True):
            text = text.replace(there, places[there])
        return text
