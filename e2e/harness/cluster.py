"""etcd, kube-apiserver and, where wanted, kube-controller-manager, in a folder of their own."""

import base64
import http.client
import json
import secrets
import shutil
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from harness import settings
from harness.certificates import Authority, Key
from harness.client import Client, Watch
from harness.processes import Process, free_port, wait

# Token and groups of each user. RBAC is on: the scheduler has the rights that Kubernetes itself gives kube-scheduler.
USERS = {
    "admin": ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    # The same rights under a name of its own, so that the audit log tells two schedulers apart.
    "second": ("second-scheduler", "second-schedulers"),
    "monitor": ("prometheus", "system:monitoring"),
    "shadow": ("shadow", ""),
    "developer": ("developer", ""),
    "nobody": ("nobody", ""),
}
# Everybody's writes, with what came of them; reads as well for those who ask for `audit = "reads"`.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Metadata"},
    ],
}


RUNNING = []


def stop_all():
    """Stops what no test has stopped."""
    for cluster in list(RUNNING):
        cluster.stop()


class Cluster:
    def __init__(self, audit=False, controllers=(), watch_cache=True, whole=False):
        """`whole`: with all that a cluster has by default, and that takes its time: every controller, and what waits for it."""
        RUNNING.append(self)
        self.whole = whole
        self.folder = Path(tempfile.mkdtemp(prefix="supercargo-e2e-"))
        self.audit = audit
        self.watch_cache = watch_cache
        self.processes = []
        self.guests = []
        self.tokens = {name: secrets.token_hex(16) for name in USERS}
        # Who signs the certificates of clients.
        self.clients = Authority()
        self.etcd_port, self.port = free_port(), free_port()
        self.starts = 0
        try:
            self.write_files()
            self.start_etcd()
            self.start_apiserver()
            self.grant_scheduling(USERS["second"][0])
            if controllers or whole:
                self.start_controllers(controllers or ("*",))
        except BaseException:
            print(self.logs())
            self.stop()
            raise

    def write_files(self):
        rows = [f'{self.tokens[name]},{user},{name},"{groups}"' for name, (user, groups) in USERS.items()]
        self.file("tokens.csv").write_text("\n".join(rows) + "\n")
        self.file("sa.key").write_text(Key().pem())
        self.file("clients.crt").write_text(self.clients.certificate)
        policy = dict(AUDIT_POLICY)
        if self.audit == "reads":
            policy["rules"] = policy["rules"][1:]
        self.file("audit-policy.json").write_text(json.dumps(policy))

    def start_etcd(self):
        url = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{free_port()}"
        # The data is thrown away: no reason to wait for a disk.
        self.etcd = self.start("etcd", [
            settings.binary("etcd"), "--data-dir", self.file("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ])

    def start_apiserver(self):
        """Starts it, or starts it again after a kill: same port, same certificate, same data."""
        command = [
            settings.binary("kube-apiserver"), "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
            "--bind-address", "127.0.0.1", "--secure-port", self.port, "--cert-dir", self.file("certificates"),
            "--token-auth-file", self.file("tokens.csv"), "--client-ca-file", self.file("clients.crt"), "--authorization-mode", "RBAC",
            "--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", self.file("sa.key"), "--service-account-signing-key-file", self.file("sa.key"),
            f"--watch-cache={str(self.watch_cache).lower()}",
        ]
        if not self.whole:
            # No controllers make accounts, take taints away or give up protection, so nothing may wait for them.
            command += ["--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"]
        if self.audit:
            command += ["--audit-policy-file", self.file("audit-policy.json"), "--audit-log-path", self.file("audit.log")]
        self.starts += 1
        self.apiserver = self.start("kube-apiserver", command)
        wait("kube-apiserver is ready", self.ready, 60, say=self.logs)

    def ready(self):
        if not self.apiserver.running:
            raise AssertionError("kube-apiserver ended\n" + self.apiserver.tail(30))
        if not self.authority.exists():
            return False
        try:
            admin = self.client("admin")
            return admin.raw("GET", "/readyz")[0] == 200 and admin.get("namespaces", "default") is not None
        except (OSError, http.client.HTTPException):
            return False

    def grant_scheduling(self, name):
        """Gives a user all that Kubernetes gives kube-scheduler."""
        admin = self.client("admin")
        version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        subject = {"apiGroup": group, "kind": "User", "name": name}

        def binding(kind, role_kind, role):
            return {"apiVersion": version, "kind": kind, "metadata": {"name": f"{name.replace(':', '-')}-{role.split(':')[-1]}"},
                    "roleRef": {"apiGroup": group, "kind": role_kind, "name": role}, "subjects": [subject]}

        roles = ("system:kube-scheduler", "system:volume-scheduler")
        admin.create("clusterrolebindings", *(binding("ClusterRoleBinding", "ClusterRole", role) for role in roles))
        roles = ("extension-apiserver-authentication-reader", "system::leader-locking-kube-scheduler")
        admin.create("rolebindings", *(binding("RoleBinding", "Role", role) for role in roles), namespace="kube-system")

    def start_controllers(self, controllers):
        port = free_port()
        self.controllers = self.start("kube-controller-manager", [
            settings.binary("kube-controller-manager"), "--kubeconfig", self.kubeconfig("admin"), "--leader-elect=false",
            "--bind-address", "127.0.0.1", "--secure-port", port, "--controllers", ",".join(controllers),
            "--kube-api-qps", "200", "--kube-api-burst", "400", "--pvclaimbinder-sync-period", "1s",
            "--root-ca-file", self.authority, "--service-account-private-key-file", self.file("sa.key"),
        ])

    def start(self, name, command):
        process = Process(name, command, self.file(f"{name}.log"))
        self.processes.append(process)
        return process

    @property
    def authority(self):
        """The certificate that kube-apiserver made for itself."""
        return self.file("certificates") / "apiserver.crt"

    def client(self, user):
        return Client(self.port, self.tokens[user], self.authority)

    def add_account(self, name, namespace):
        """A service account's token, for `kubeconfig` and `client` under the account's name."""
        self.tokens[name] = self.account_token(name, namespace)

    def account_token(self, name, namespace, secret=None):
        """A token of a service account. With a secret, which is given as an object, it is worth nothing once that is deleted."""
        spec = {"expirationSeconds": 3600}
        if secret:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": secret["metadata"]["name"],
                                      "uid": secret["metadata"]["uid"]}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return self.client("admin").call("POST", path, body)["status"]["token"]

    def watch(self, kind, namespace="default"):
        return Watch(self.client("admin"), kind, namespace)

    def kubeconfig(self, user, port=None, credentials=None):
        """The file for a user; the port is that of a proxy, if one is in between. Without credentials, it has the user's token."""
        port = port or self.port
        path = self.file(f"{user}-{port}.kubeconfig")
        server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.authority)}
        text = json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": server}],
            "users": [{"name": user, "user": credentials or {"token": self.tokens[user]}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        })
        # Somebody may be reading what is there.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path

    def compact(self):
        """Makes etcd forget all but the present, as kube-apiserver has it do every five minutes."""
        def etcd(path, body):
            connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=10)
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            if answer.status != 200:
                raise AssertionError(f"etcd {path}: {answer.status} {text}")
            return json.loads(text)

        key = base64.b64encode(b"/").decode()
        revision = etcd("/v3/kv/range", {"key": key, "limit": "1"})["header"]["revision"]
        etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def audited(self, user=None, **fields):
        """The audited requests of a user, or of all; fields are those of `objectRef`, and `verb`."""
        found = []
        for line in self.file("audit.log").read_text().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # kube-apiserver was killed while it wrote.
            named = {**event.get("objectRef", {}), "verb": event["verb"]}
            if user and event["user"]["username"] != USERS[user][0]:
                continue
            if all(named.get(field) == value for field, value in fields.items()):
                found.append(event)
        return found

    def bindings(self, code=201):
        """How many bindings of each pod got that answer."""
        counts = {}
        for event in self.audited(verb="create", resource="pods", subresource="binding"):
            if event.get("responseStatus", {}).get("code") == code:
                name = event["objectRef"]["name"]
                counts[name] = counts.get(name, 0) + 1
        return counts

    def file(self, name):
        return self.folder / name

    def logs(self, lines=20):
        return "\n".join(f"--- {process.name}\n{process.tail(lines)}" for process in self.processes)

    def stop(self):
        if self in RUNNING:
            RUNNING.remove(self)
        for process in [*self.guests, *reversed(self.processes)]:
            process.kill()
        if settings.KEEP:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def seconds_of(event):
    """When an audited request came, in seconds of the wall clock."""
    moment = event["requestReceivedTimestamp"].removesuffix("Z")
    return datetime.fromisoformat(moment).replace(tzinfo=timezone.utc).timestamp()
