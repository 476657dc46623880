#!/usr/bin/env python3
"""A stand-in for the agent of NetworkTraffic as a program of its own, for a scheduler that starts it.

    suggest.py PORT FOLDER

It speaks the protocol of the original: one request a connection, `getSuggestion` or `setSuggestion {"IP": POINTS}`. While there is a file
`half` in the folder, it sends half of an answer, says so in the file `sent`, and does not go on. It ends when its standard input does, as
it does when the scheduler is killed.
"""

import json
import os
import socketserver
import sys
import threading
import time
from pathlib import Path

REQUEST_BYTES_MAX = 1024
FOR_EVER_SECONDS = 3600


def main():
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    suggestion = {}
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            command, _, argument = self.request.recv(REQUEST_BYTES_MAX).decode().strip().partition(" ")
            print(f"asked for {command}", flush=True)
            if command == "setSuggestion":
                suggestion.update(json.loads(argument))
                answer = {"status": "success", "message": "updated"}
            elif command == "getSuggestion":
                answer = suggestion
            else:
                answer = {"status": "error", "message": "unknown command"}
            text = json.dumps(answer).encode()
            if command == "getSuggestion" and (folder / "half").exists():
                self.request.sendall(text[: len(text) // 2])
                (folder / "sent").touch()
                time.sleep(FOR_EVER_SECONDS)
            self.request.sendall(text)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", port), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
