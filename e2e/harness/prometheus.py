"""A real Prometheus, and pages that it scrapes, which say whatever a test likes."""

import http
import http.server
import json
import shutil
import threading
import urllib.error
import urllib.parse
import urllib.request

from harness import settings
from harness.processes import Process, free_port

PROMETHEUS = shutil.which("prometheus") or settings.binary("prometheus")


class Page:
    """What Prometheus scrapes. With a `path`, there is nothing anywhere else."""

    def __init__(self, address="127.0.0.1", port=0, path=None):
        self.text = ""
        page = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                is_there = path in (None, self.path)
                body = page.text.encode() if is_there else b"404 page not found"
                self.send_response(200 if is_there else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # A scrape that was given up.

        self.server = Server((address, port), Handler)
        self.address = f"{address}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def say(self, *lines):
        self.text = "".join(f"{line}\n" for line in lines)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Prometheus:
    """Scrapes pages five times a second. It can be killed and started again, on the same port and with what it knew. `how` is more of what
    a scrape configuration says."""

    def __init__(self, folder, targets, **how):
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "prometheus.yml").write_text(json.dumps({
            "scrape_configs": [{
                "job_name": "nodes", "scrape_interval": "200ms", "scrape_timeout": "200ms", "honor_labels": True,
                "static_configs": [{"targets": targets}], **how,
            }],
        }))

    def start(self):
        self.process = Process("prometheus", [
            PROMETHEUS, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/prometheus",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        ], self.folder / "prometheus.log")
        return self.process


def ask(url, query):
    """The values of the answer to a query; none if nobody answers yet. A query that is wrong is an error."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.SERVICE_UNAVAILABLE:
            raise AssertionError(f"{query}: {error.read().decode()}") from None
        return []
    except OSError:
        return []
    return [float(series["value"][1]) for series in found]
