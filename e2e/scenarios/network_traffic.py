"""NetworkTraffic: pods go where Prometheus has seen least traffic, or where an agent suggests; whatever either of them does, pods go."""

import json
import os
import re
import signal
import socket
import sys
from pathlib import Path

from harness.agent import Agent, cut, slow
from harness.case import Case, ours_only
from harness.objects import node, pod
from harness.processes import free_port, wait
from harness.prometheus import Page, Prometheus

# The nodes, and where their node exporters are.
NODES = {f"worker-{number}": f"127.0.0.1{number}" for number in range(1, 6)}
PAGE_PORT = free_port()
SUGGEST = Path(__file__).resolve().parent.parent / "harness" / "suggest.py"


@ours_only
class NetworkTraffic(Case):
    def setUp(self):
        super().setUp()
        self.pages = {}
        for name, address in NODES.items():
            self.pages[name] = Page(address, PAGE_PORT)
            self.addCleanup(self.pages[name].close)
        self.prometheus = Prometheus(self.folder, [page.address for page in self.pages.values()])
        self.create("nodes", *(addressed(name, address) for name, address in NODES.items()))
        self.agent_port = free_port()
        self.pods = 0

    def receive(self, **traffic):
        """So many bytes were received by the workers, which are named by their numbers; of the others nothing is said."""
        for name, page in self.pages.items():
            received = traffic.get(name.replace("worker-", "w"))
            counters = [('lo', 10**9)] + ([("eth0", received)] if received is not None else [])
            page.say(*(f'node_network_receive_bytes_total{{device="{device}"}} {bytes}' for device, bytes in counters))

    def start(self, agent=False, own=None, **args):
        process = self.prometheus.start()
        self.addCleanup(process.kill)
        args = {"prometheusAddress": self.prometheus.url, "networkInterface": "eth0", "queryInterval": "300ms", **args}
        if agent:
            args = {"agentAddress": f"127.0.0.1:{self.agent_port}", "agentTimeout": "300ms", **args}
        self.scheduler = self.start_scheduler({**({"own": own} if own else {}), "profiles": [{
            "schedulerName": "traffic-scheduler",
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NetworkTraffic", "weight": 3}]},
                        "reserve": {"enabled": [{"name": "NetworkTraffic"}]}},
            "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
        }]})
        return process

    def start_agent(self):
        agent = Agent(self.agent_port)
        self.addCleanup(agent.close)
        return agent

    def wait_facts(self, count):
        facts = lambda: self.scheduler.metric("supercargo_query_facts", query="network-traffic")
        wait(f"the traffic of {count} nodes is known", lambda: facts() == count, 20,
             say=lambda: self.scheduler.get("/readyz?verbose")[1])

    def place(self):
        """Where a new pod goes; it goes somewhere within a second."""
        self.pods += 1
        name = f"web-{self.pods}"
        return self.assert_bound_within(1, name, lambda: self.create("pods", pod(name, schedulerName="traffic-scheduler")))

    def wait_place(self, expected):
        """Pods go there, one after the other, soon: Prometheus scrapes, and is asked, a moment later; until then some go there by chance."""
        wait(f"pods go to {expected}", lambda: all(self.place() == expected for _ in range(5)), 20)

    def test_pods_go_where_least_was_received(self):
        self.receive(w1=5000, w2=15, w3=4000, w4=3000, w5=2000)
        process = self.start(timeRangeInMinutes=1)
        self.wait_facts(5)
        self.wait_place("worker-2")

        # Counters are summed up over the last minute, so that it takes a while until the others have less.
        self.receive(w1=5000, w2=20000, w3=4000, w4=3000, w5=2000)
        self.wait_place("worker-5")

        # Killed: pods go on without it. Restarted: it counts again.
        process.kill()
        self.wait_facts(0)
        self.place()
        self.receive(w1=5000, w2=20000, w3=4000, w4=3000, w5=20000)
        self.addCleanup(self.prometheus.start().kill)
        self.wait_facts(5)
        self.wait_place("worker-4")

    def test_bytes_a_second_can_be_what_counts(self):
        # The sum of a counter says how long a node is up; its rate does not.
        self.receive(w1=10**12, w2=0, w3=0, w4=0, w5=0)
        self.start(measure="Rate", timeRangeInMinutes=1)
        self.wait_facts(5)
        for step in range(1, 6):
            self.receive(w1=10**12, **{f"w{number}": step * 10**7 for number in range(2, 6)})
            self.place()
        self.wait_place("worker-1")

    def test_an_agent_comes_first_and_pods_go_whatever_it_does(self):
        addresses = {name: address for name, address in NODES.items()}
        suggest = lambda best: {address: 10 if name == best else 1 for name, address in addresses.items()}
        self.receive(w1=5000, w2=15, w3=4000, w4=3000, w5=2000)
        self.start(agent=True)
        self.wait_facts(5)
        # There is none: traffic counts.
        self.wait_place("worker-2")
        agent = self.start_agent()
        agent.answer = suggest("worker-4")
        self.wait_place("worker-4")
        agent.answer = suggest("worker-5")
        self.wait_place("worker-5")
        misbehaviours = {
            "slow": slow(2, suggest("worker-5")),
            "cut in the middle": cut(suggest("worker-5")),
            "no JSON": b"<html>busy</html>",
            "nothing": b"",
            "a list": [1, 2, 3],
            "texts": {address: "10" for address in addresses.values()},
            "unknown": {"10.9.9.9": 10},
            "partial": {addresses["worker-5"]: 10, addresses["worker-1"]: 1},
            "an error": {"status": "error", "message": "no model yet"},
            "very long": b"[" * (2 << 20),
        }
        for what, answer in misbehaviours.items():
            with self.subTest(what):
                agent.answer = answer
                for _ in range(3):
                    self.assertEqual(self.place(), "worker-2")
        # Points of any size are points.
        agent.answer = {address: 2**62 if name == "worker-3" else -5 for name, address in addresses.items()}
        self.wait_place("worker-3")
        agent.close()
        self.wait_place("worker-2")
        by = lambda what: self.scheduler.metric("supercargo_plugin_counts_total", plugin="NetworkTraffic", count="decisions", by=what)
        self.assertGreater(by("suggestion"), 0)
        self.assertGreater(by("traffic"), 0)
        self.assertEqual(by("partial"), 3)

    # The scheduler starts the agent itself, as the original's main does.

    def started(self):
        """The numbers of the agents that were started, oldest first."""
        return [int(number) for number in re.findall(r'"Started a program" program="agent" pid=(\d+)', self.scheduler.process.text())]

    def tell(self, line):
        """What the agent answers; none if there is no agent."""
        try:
            with socket.create_connection(("127.0.0.1", self.agent_port), timeout=5) as connection:
                connection.sendall(line.encode())
                return json.loads(b"".join(iter(lambda: connection.recv(4096), b"")) or b"null")
        except OSError:
            return None

    def suggest(self, best):
        points = {address: 10 if name == best else 1 for name, address in NODES.items()}
        wait("the agent takes a suggestion", lambda: self.tell(f"setSuggestion {json.dumps(points)}"), 20)

    def test_the_scheduler_starts_its_agent_and_starts_it_again(self):
        self.receive(w1=5000, w2=15, w3=4000, w4=3000, w5=2000)
        command = [sys.executable, str(SUGGEST), str(self.agent_port), str(self.folder)]
        own = {"programs": [{"name": "agent", "command": command}, {"name": "missing", "command": ["/nowhere/trainer"]}]}
        self.start(agent=True, own=own, agentTimeout="10s")
        self.wait_facts(5)
        self.suggest("worker-4")
        self.wait_place("worker-4")
        self.assertIn('"A program says" program="agent" stream="stdout" line="asked for getSuggestion"', self.scheduler.process.text())

        # Killed while it answers: the pod goes by traffic at once, and does not wait for ten seconds.
        (self.folder / "half").touch()
        self.create("pods", pod("halved", schedulerName="traffic-scheduler"))
        wait("half of an answer is sent", (self.folder / "sent").exists, 10)
        self.assertIsNone(self.pod("halved")["spec"].get("nodeName"))
        first = self.started()[0]
        self.assert_bound_within(1, "halved", lambda: os.kill(first, signal.SIGKILL))
        self.assertEqual(self.pod("halved")["spec"]["nodeName"], "worker-2")
        (self.folder / "half").unlink()
        wait("the agent is started again", lambda: len(self.started()) > 1, 10)
        self.suggest("worker-5")
        self.wait_place("worker-5")
        self.assertIn("signal: 9 (SIGKILL)", self.scheduler.process.text())

        # Another that is not there is no reason not to schedule.
        self.assertEqual(self.scheduler.metric("supercargo_program_running", program="agent"), 1)
        self.assertEqual(self.scheduler.metric("supercargo_program_running", program="missing"), 0)
        self.assertGreater(self.scheduler.metric("supercargo_program_starts_total", program="missing", result="error"), 0)

        # It ends with the scheduler.
        self.assertEqual(self.scheduler.process.terminate(), 0)
        wait("the agent has ended", lambda: not alive(self.started()[-1]), 5)

    def test_an_agent_hears_of_a_scheduler_that_is_killed(self):
        self.receive(w1=1, w2=1, w3=1, w4=1, w5=1)
        command = [sys.executable, str(SUGGEST), str(self.agent_port), str(self.folder)]
        self.start(own={"programs": [{"name": "agent", "command": command}]})
        wait("the agent runs", lambda: self.tell("getSuggestion") is not None, 10)
        self.scheduler.process.kill()
        wait("the agent has ended", lambda: not alive(self.started()[-1]), 5)

    def test_an_agent_ends_with_a_scheduler_that_is_told_twice(self):
        command = ["sh", "-c", f"trap '' TERM; sleep 600 & echo $! > {self.folder}/child; wait; wait"]
        self.receive(w1=1, w2=1, w3=1, w4=1, w5=1)
        self.start(own={"programs": [{"name": "agent", "command": command}]})
        wait("the agent runs", (self.folder / "child").exists, 10)
        child = int((self.folder / "child").read_text())
        self.scheduler.process.signal(signal.SIGTERM)
        wait("the scheduler stops", lambda: "Stopping" in self.scheduler.process.text(), 5)
        self.scheduler.process.signal(signal.SIGTERM)
        self.scheduler.process.child.wait(3)
        wait("nothing of the agent is left", lambda: not alive(child), 5)


def addressed(name, address):
    with_address = node(name)
    with_address["status"]["addresses"] = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    return with_address


def alive(process):
    """Whether a process is more than a zombie."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
