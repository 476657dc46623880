"""Processes that end with the tests, whatever happens, and the logs they leave."""

import ctypes
import os
import signal
import socket
import subprocess
import time

POLL_SECONDS = 0.02
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    """A program with its log in a file. It is the leader of its own process group, and the kernel kills it when the tests
    die, so it must be started by the main thread."""

    def __init__(self, name, command, log, environment=None):
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        with open(log, "ab") as output:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                preexec_fn=die_with_parent, env={**os.environ, **(environment or {})},
            )

    @property
    def running(self):
        return self.child.poll() is None

    def signal(self, number):
        if self.running:
            os.killpg(self.child.pid, number)

    def kill(self):
        """As `kill -9`: it has no chance to say goodbye."""
        self.signal(signal.SIGKILL)
        self.child.wait()

    def terminate(self, seconds=10):
        """SIGTERM, then the exit code; an error if it takes too long."""
        self.signal(signal.SIGTERM)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {seconds} s of SIGTERM") from None

    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines):
        return "\n".join(self.text().splitlines()[-lines:])


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(what, condition, seconds=10, say=None):
    """What the condition gives as soon as that is true. It is asked again and again, at most POLL_SECONDS apart; `say`
    tells more about a failure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            more = f": {say()}" if say else ""
            raise AssertionError(f"not within {seconds} s: {what}{more}")
        time.sleep(POLL_SECONDS)
