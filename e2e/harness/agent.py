"""A stand-in for the agent of NetworkTraffic: it speaks the protocol, and misbehaves as a test likes."""

import json
import socketserver
import threading
import time

REQUEST_BYTES_MAX = 1024


class Agent:
    """Answers one request a connection. `answer` is what it says to getSuggestion: bytes, an object to be sent as JSON, or a function
    that does what it likes with the connection."""

    def __init__(self, port):
        self.answer = {}
        self.asked = 0
        agent = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                if self.request.recv(REQUEST_BYTES_MAX).split()[:1] != [b"getSuggestion"]:
                    self.request.sendall(b'{"status":"error","message":"unknown command"}')
                    return
                agent.asked += 1
                answer = agent.answer
                if callable(answer):
                    answer(self.request)
                else:
                    self.request.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def slow(seconds, answer):
    """Answers, but late."""
    def send(connection):
        time.sleep(seconds)
        connection.sendall(json.dumps(answer).encode())

    return send


def cut(answer):
    """Dies in the middle of an answer."""
    def send(connection):
        text = json.dumps(answer).encode()
        connection.sendall(text[: len(text) // 2])

    return send
