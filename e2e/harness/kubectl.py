"""kubectl, as an administrator runs it."""

import json
import subprocess

from harness import settings

SECONDS_MAX = 60


class Kubectl:
    def __init__(self, kubeconfig):
        self.command = [str(settings.binary("kubectl")), "--kubeconfig", str(kubeconfig)]

    def __call__(self, *words, text=None):
        """What it prints; an error if it fails."""
        done = subprocess.run([*self.command, *(str(word) for word in words)], input=text, capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(str(word) for word in words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def read(self, text):
        """The objects of a YAML text."""
        text = self("create", "--filename", "-", "--dry-run=client", "--output=json", "--validate=false", text=text)
        found = []
        while text:
            item, end = json.JSONDecoder().raw_decode(text)
            found.append(item)
            text = text[end:].lstrip()
        return found

    def may(self, account, verb, resource, *words):
        command = [*self.command, "auth", "can-i", verb, resource, "--as", account, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip() == "yes"
