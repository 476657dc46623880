"""An extender whose every answer is the test's."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.proxy import hang_up


class Extender:
    """A server whose verbs are functions from the request to the answer. Text is answered as it is; a number is a status code."""

    def __init__(self, port=0, context=None, **verbs):
        """With a TLS context, it is served over HTTPS."""
        self.verbs = verbs
        self.requests = []
        self.connections = []
        self.release = threading.Event()
        extender = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                extender.connections.append(self.connection)

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = self.path.lstrip("/")
                extender.requests.append((verb, request))
                answer = extender.verbs[verb](request)
                code = answer if isinstance(answer, int) else 200
                text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                try:
                    self.send_response(code)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass  # The scheduler has not waited.

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def die(self):
        """No new connection, and an end to those there are."""
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            hang_up(connection)

    def asked(self, verb):
        return [request for name, request in self.requests if name == verb]


def names(request):
    """The nodes that a request is about, in either of its forms."""
    if request.get("NodeNames") is not None:
        return request["NodeNames"]
    return [item["metadata"]["name"] for item in request["Nodes"]["items"]]
