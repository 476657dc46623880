"""Stands between a scheduler and kube-apiserver, reads every request, and answers some of them itself."""

import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.proxy import hang_up

# What concerns one connection only.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


class Request:
    """What a scheduler asks for."""

    def __init__(self, method, target, body):
        self.method = method
        self.body = body
        address = urllib.parse.urlsplit(target)
        self.path = address.path
        self.query = dict(urllib.parse.parse_qsl(address.query))

    @property
    def watches(self):
        return self.query.get("watch") in ("true", "1")

    def binds(self, pod):
        return self.method == "POST" and self.path == f"/api/v1/namespaces/default/pods/{pod}/binding"

    def reads(self, resource):
        """Whether this lists or watches all objects of a kind."""
        return self.method == "GET" and self.path.endswith(f"/{resource}") and "/namespaces/" not in self.path

    def __repr__(self):
        return f"{self.method} {self.path} {self.query}"


class Meddler:
    """A proxy that speaks HTTP. `rule` is asked about every request and may give what to do with it: a function from a `Turn` to
    nothing. Without one, the request is forwarded and its answer given back as it comes."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.rule = lambda request: None
        self.requests = []
        self.ends = set()
        self.lock = threading.Lock()
        self.closed = threading.Event()
        certificates = cluster.authority.parent
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        context.set_alpn_protocols(["http/1.1"])
        meddler = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                # The handshake belongs to the thread of the connection, not to the one that accepts.
                self.request = context.wrap_socket(self.request, server_side=True)
                meddler.keep(self.request)
                super().setup()

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # Either end has hung up.

            def do_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(self.command, self.path, body)
                meddler.requests.append(request)
                action = meddler.rule(request) or Turn.pass_on
                action(Turn(meddler, self, request))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # A connection that ends in its handshake.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def keep(self, end):
        with self.lock:
            self.ends.add(end)

    def cut(self):
        """Ends the connections that there are; whoever comes next is let in."""
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            hang_up(end)

    def close(self):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()
        self.cut()

    def asked(self, predicate):
        return [request for request in list(self.requests) if predicate(request)]


class Turn:
    """One request, and what may become of it."""

    def __init__(self, meddler, handler, request):
        self.meddler = meddler
        self.handler = handler
        self.request = request

    def forward(self):
        """Lets kube-apiserver do it, and gives its answer, which is not told yet."""
        context = ssl.create_default_context(cafile=self.meddler.cluster.authority)
        connection = http.client.HTTPSConnection("127.0.0.1", self.meddler.cluster.port, context=context)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.meddler.keep(connection.sock)
        headers = {name: value for name, value in self.handler.headers.items() if name.lower() not in HOP_BY_HOP}
        connection.request(self.handler.command, self.handler.path, self.request.body or None, headers)
        return connection.getresponse()

    def pass_on(self, gate=None):
        """Forwards it, and tells the answer as it comes; where there is a gate, only while that is open."""
        answer = self.forward()
        self.begin(answer.status, [pair for pair in answer.getheaders() if pair[0].lower() not in HOP_BY_HOP | {"content-length"}])
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        try:
            # As it comes: a watch has no end to wait for.
            while piece := answer.read1(65536):
                if gate:
                    gate.wait()
                self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.handler.wfile.write(b"0\r\n\r\n")
        finally:
            answer.close()

    def answer(self, code, body=None, **headers):
        """Answers as kube-apiserver does when something is wrong."""
        content = json.dumps(body or {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "message": f"a test answers {code}", "reason": REASONS.get(code, "InternalError"),
        }).encode()
        self.begin(code, [("Content-Type", "application/json"), *headers.items()])
        self.handler.send_header("Content-Length", str(len(content)))
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def begin(self, code, headers):
        self.handler.send_response_only(code)
        for name, value in headers:
            self.handler.send_header(name, value)

    def hang_up(self):
        """Ends the connection without an answer."""
        self.handler.close_connection = True
        hang_up(self.handler.connection)

    def say_nothing(self):
        """Neither answers nor hangs up, until the test is over."""
        self.meddler.closed.wait()


REASONS = {
    403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout",
}
