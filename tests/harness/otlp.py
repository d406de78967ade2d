# SPDX-License-Identifier: BSD-3-Clause
"""Takes OTLP's JSON as it comes, for tests with more spans than a collector's printed log is good for."""
import http.server
import json
import threading

from . import loopback


class Sink:
    def __init__(self):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass

        self.port = loopback.take_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def traces(self):
        """Trace id → its spans: name, id, parent, start and end (ns), attributes."""
        found = {}
        for body in list(self.bodies):
            for resource in json.loads(body).get("resourceSpans", ()):
                for span in (s for scope in resource["scopeSpans"] for s in scope["spans"]):
                    attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                    found.setdefault(span["traceId"], []).append(
                        {"name": span["name"], "id": span["spanId"], "parent": span.get("parentSpanId", ""),
                         "start": int(span["startTimeUnixNano"]), "end": int(span["endTimeUnixNano"]),
                         "attributes": attributes})
        return found

    def discard(self):
        self.server.shutdown()
        self.server.server_close()
        loopback.give_port(self.port)
