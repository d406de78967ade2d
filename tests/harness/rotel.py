# SPDX-License-Identifier: BSD-3-Clause
"""A real OTLP receiver (rotel, from PyPI) that prints all that it receives."""
import importlib.util
import os
import re
from pathlib import Path

from . import loopback
from .process import Process
from .wait import until


class Rotel:
    def __init__(self, address="127.0.0.1", wrap=lambda argv: argv, printing=True):
        """"wrap" changes the command, for example into one that runs in another network namespace. If "printing" is
        false, it accepts all data and prints nothing."""
        self.address, self.wrap, self.printing = address, wrap, printing
        self.port, self.grpc = loopback.take_port(), loopback.take_port()
        self.process = None
        self.url = f"http://{address}:{self.port}"

    def start(self):
        agent = Path(importlib.util.find_spec("rotel").origin).parent / "rotel-agent"
        print_all = ["--debug-log", "logs", "--debug-log", "metrics", "--debug-log", "traces", "--debug-log-verbosity",
                     "detailed"] if self.printing else []
        self.process = Process(self.wrap([
            agent, "start", "--otlp-http-endpoint", f"{self.address}:{self.port}", "--otlp-grpc-endpoint",
            f"{self.address}:{self.grpc}", "--exporter", "blackhole", *print_all]), os.environ.copy())
        # not in the last lines only: much that it receives may be printed soon after
        until(lambda: any("Starting Rotel" in line for line in self.process.lines), 10, self.process.output)
        return self

    def blocks(self, begin):
        """The parts of its output. Each part begins with a line that begins with this text."""
        found, current = [], None
        for line in self.process.lines:
            if line.startswith(begin):
                found.append(current := [])
            elif re.match(r"Resource(Log|Logs|Metrics|Span|Spans) #", line):
                current = None
            elif current is not None:
                current.append(line)
        return found

    def logs(self):
        """Log records: their attributes and other named fields."""
        found = []
        for block in self.blocks("LogRecord #"):
            record = {}
            for line in block:
                if m := re.match(r" +-> ([\w.]+): (Str|Int|Double|Bool)\((.*)\)$", line):
                    record[m[1]] = {"Int": int, "Double": float}.get(m[2], str)(m[3])
                elif m := re.match(r"(\w+): (.*)$", line):
                    record[m[1]] = m[2]
            found.append(record)
        return found

    def metric(self, name):
        """The lines of the newest metric with this name."""
        found = [b for b in self.blocks("Metric #") if f"     -> Name: {name}" in b]
        return found[-1] if found else []

    def spans(self):
        """All spans that are printed completely: service, host, trace, id, parent ("" if none), name, kind, start
        and end in ns, attributes."""
        found, service, host, span = [], "", "", None
        for line in self.process.lines:
            if line.startswith("ResourceSpans #"):
                service, host, span = "", "", None
            elif re.match(r"Span #\d", line):
                found.append(span := {"service": service, "host": host, "attributes": {}, "links": []})
            elif m := re.match(r" +-> ([\w.]+): (Str|Int|Double|Bool)\((.*)\)$", line):
                if span is not None:
                    span["attributes"][m[1]] = m[3]
                elif m[1] == "service.name":
                    service = m[3]
                elif m[1] == "host.name":
                    host = m[3]
            elif span is not None and (m := re.match(r" {4}(Trace ID|Parent ID|ID|Name|Kind) +: (.*)$", line)):
                span[{"Trace ID": "trace", "Parent ID": "parent"}.get(m[1], m[1].lower())] = m[2]
            elif span is not None and (m := re.match(r"(Start|End) time: (\d+)$", line)):
                span[m[1].lower()] = int(m[2])
        if found and self.process.silent() < 0.5:
            found.pop()  # its attributes may not be printed yet
        return [s for s in found if "end" in s]

    def discard(self):
        if self.process:
            self.process.kill()
        loopback.give_port(self.port)
        loopback.give_port(self.grpc)
