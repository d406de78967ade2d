# SPDX-License-Identifier: BSD-3-Clause
"""A receiver of OTLP in JSON. It keeps all that it gets; a collector prints less."""
import http.server
import json
import threading
import time

from . import loopback


class Sink:
    """It accepts requests while "accepts" is true; else it answers "refusal"."""
    refusal = 503

    def __init__(self):
        self.accepts = True
        bodies = self.bodies = []  # (time of arrival in ns, JSON)
        self.found, self.read = {}, 0  # of traces(), and of how many bodies
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if sink.accepts:
                    bodies.append((time.time_ns(), body))
                self.send_response(200 if sink.accepts else sink.refusal)
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
        """Trace id → its spans: name, id, parent; start, end and arrival (ns); attributes. A test that waits asks often: so
        each body is read once."""
        found, new = self.found, self.bodies[self.read:]
        self.read += len(new)
        for arrival, body in new:
            for resource in json.loads(body).get("resourceSpans", ()):
                for span in (s for scope in resource["scopeSpans"] for s in scope["spans"]):
                    attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                    found.setdefault(span["traceId"], []).append(
                        {"name": span["name"], "id": span["spanId"], "parent": span.get("parentSpanId", ""),
                         "start": int(span["startTimeUnixNano"]), "end": int(span["endTimeUnixNano"]),
                         "arrival": arrival, "attributes": attributes})
        return found

    def log_records(self):
        """Each log record, with its resource before it."""
        return [(resource["resource"], record) for _, body in list(self.bodies)
                for resource in json.loads(body).get("resourceLogs", ())
                for scope in resource["scopeLogs"] for record in scope["logRecords"]]

    def logs(self):
        """For each log record: its attributes, and the attributes of its resource."""
        def values(owner):
            return {a["key"]: next(iter(a["value"].values())) for a in owner["attributes"]}

        return [(values(record), values(resource)) for resource, record in self.log_records()]

    def discard(self):
        self.server.shutdown()
        self.server.server_close()
        loopback.give_port(self.port)
