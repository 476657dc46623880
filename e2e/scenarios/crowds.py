"""Crowds of strangers at the scheduler's own port. Probes are answered all the same, and so are those who may read metrics."""

import http.client
import resource
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

from harness.case import Case, ours_only
from harness.objects import nodes, pod
from harness.proxy import hang_up

# More than the port takes at a time.
STRANGERS = 400
WITHIN_SECONDS = 1
TIMES = 5


@ours_only
class Crowds(Case):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * STRANGERS)), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.create("nodes", *nodes(2))
        self.scheduler = self.start_scheduler()
        self.assert_served()
        self.crowd = []
        self.addCleanup(self.send_away)

    def send_away(self):
        for end in self.crowd:
            hang_up(end)
            end.close()

    def gather(self, arrive):
        """So many connections, each in the state that `arrive` leaves it in. One that is closed on arrival is gone, which is fine."""
        def one(_):
            try:
                end = socket.create_connection(("127.0.0.1", self.scheduler.port), 10)
                return arrive(end)
            except (OSError, http.client.HTTPException):
                return None

        with ThreadPoolExecutor(16) as pool:
            self.crowd += [end for end in pool.map(one, range(STRANGERS)) if end]

    def assert_served(self):
        """Each question on a connection of its own, as a kubelet's probe and a Prometheus that has just started."""
        for path, user in (("/healthz", None), ("/livez", None), ("/readyz", None), ("/metrics", "monitor"), ("/configz", "admin")):
            for _ in range(TIMES):
                begun = time.monotonic()
                client = self.scheduler.client(user)
                connection = client.connect(10)
                connection.request("GET", path, headers=client.headers())
                code = connection.getresponse().status
                connection.close()
                self.assertEqual(code, 200, f"{path} as {user}")
                self.assertLessEqual(time.monotonic() - begun, WITHIN_SECONDS, f"{path} as {user}")

    def assert_scheduling(self, name):
        self.create("pods", pod(name))
        self.wait_bound(name)
        self.assertTrue(self.scheduler.process.running)

    def ask(self, end, path="/healthz"):
        end.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        if not end.recv(65536):
            raise OSError("closed")
        return end

    def encrypt(self, end):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(end)

    def test_strangers_who_keep_asking_for_health(self):
        """Connections that are kept alive by a request now and then."""
        self.gather(lambda end: self.ask(self.encrypt(end)))
        self.assert_served()
        for end in self.crowd[-STRANGERS // 2:]:
            try:
                self.ask(end)
            except OSError:
                pass
        self.assert_served()
        self.assert_scheduling("asked")

    def test_strangers_who_say_nothing(self):
        """Neither a handshake, nor, after one, a request; nor all of a request."""
        self.gather(lambda end: end)
        self.assert_served()
        self.gather(self.encrypt)
        self.assert_served()

        def begin(end):
            end = self.encrypt(end)
            end.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
            return end

        self.gather(begin)
        self.assert_served()
        self.assert_scheduling("silent")

    def test_strangers_with_tokens_that_nobody_knows(self):
        """Each is looked up by kube-apiserver, which takes its time. Those whose token is known do not wait for them."""
        def knock(end):
            end = self.encrypt(end)
            end.sendall(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {id(end)}\r\n\r\n".encode())
            return end

        self.gather(knock)
        self.assert_served()
        self.assert_scheduling("unknown")
