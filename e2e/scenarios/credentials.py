"""Credentials that are replaced while the scheduler runs: files with a token or a certificate, and a program that gives a token."""

import time

from harness.case import Case
from harness.client import Client
from harness.objects import nodes, pod
from harness.processes import wait

# client-go reads a file with a token every minute, and at once when it is refused.
SECONDS = 75
CERTIFICATE_HOURS = 25 / 3600
ACCOUNT = "system:serviceaccount:kube-system:rotated"
SCRIPT = """#!/bin/sh
echo run >> {folder}/runs
token=$(cat {folder}/exec-token)
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "'$token'"}}}}'
"""


class Credentials(Case):
    def test_they_are_replaced(self):
        """The old ones are worth nothing any more, and all connections are new. Each scheduler goes on with the new ones."""
        self.create("nodes", *nodes(2))
        for kind, item in (("serviceaccounts", {"metadata": {"name": "rotated"}}), ("secrets", {"metadata": {"name": "old"}}),
                           ("secrets", {"metadata": {"name": "new"}})):
            self.api.create(kind, item, namespace="kube-system")
        self.cluster.grant_scheduling(ACCOUNT)
        self.cluster.grant_scheduling("by-certificate")
        old, new = (self.token(name) for name in ("old", "new"))
        self.write("token", old)
        self.write("exec-token", old)
        program = self.folder / "credentials"
        program.write_text(SCRIPT.format(folder=self.folder))
        program.chmod(0o755)
        self.write_certificate(CERTIFICATE_HOURS)
        issued = time.monotonic()
        ways = {
            "token-file": {"tokenFile": str(self.folder / "token")},
            "exec": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program),
                              "interactiveMode": "Never"}},
            "certificate": {"client-certificate": str(self.folder / "client.crt"), "client-key": str(self.folder / "client.key")},
        }
        wires, schedulers = {}, {}
        for way, credentials in ways.items():
            wires[way] = self.proxy()
            schedulers[way] = self.start_scheduler(
                {"profiles": [{"schedulerName": way}]}, way, "/healthz", port=wires[way].port, credentials=credentials)
        self.create("pods", *(pod(f"{way}-before", schedulerName=way) for way in ways))
        for way in ways:
            self.wait_bound(f"{way}-before", 20)

        self.write("token", new)
        self.write("exec-token", new)
        self.write_certificate(1)
        self.api.delete("secrets", "old", namespace="kube-system")
        stale = Client(self.cluster.port, old, self.cluster.authority)
        wait("the old token is refused", lambda: stale.raw("GET", "/api/v1/nodes")[0] == 401, 30)
        wait("the old certificate is too old", lambda: time.monotonic() - issued > CERTIFICATE_HOURS * 3600 + 1, 40)
        for wire in wires.values():
            wire.cut()
            wire.mend()
        self.create("pods", *(pod(f"{way}-after", schedulerName=way) for way in ways))
        for way in ways:
            with self.subTest(way):
                self.wait_bound(f"{way}-after", SECONDS)
                self.assertTrue(schedulers[way].process.running)

    def token(self, secret):
        return self.cluster.account_token("rotated", "kube-system", self.api.get("secrets", secret, "kube-system"))

    def write(self, name, text):
        """Seen whole or not at all, as a mounted file is."""
        (self.folder / f"{name}.new").write_text(text)
        (self.folder / f"{name}.new").rename(self.folder / name)

    def write_certificate(self, hours):
        certificate, key = self.cluster.clients.client("by-certificate", hours=hours)
        self.write("client.crt", certificate)
        self.write("client.key", key)
