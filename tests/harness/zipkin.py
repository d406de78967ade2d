# SPDX-License-Identifier: BSD-3-Clause
"""A real Zipkin. It keeps spans in memory. tools/venv.sh downloads its jar."""
import json
import os
import shutil
import urllib.error
import urllib.request

from . import loopback, paths
from .process import Process
from .wait import until

JAR = paths.CACHE / "zipkin-server-3.6.1-slim.jar"


def missing():
    """Why Zipkin cannot run here; empty if it can."""
    if not shutil.which("java"):
        return "java is not installed"
    return "" if JAR.exists() else f"{JAR} is not there; tools/venv.sh fetches it where mvn is installed"


class Zipkin:
    def __init__(self):
        self.port = loopback.take_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = self.base + "/api/v2/spans"
        # The two -XX options halve the CPU time of its start.
        self.process = Process(["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", JAR,
                                "--armeria.ports[0].ip=127.0.0.1", f"--armeria.ports[0].port={self.port}",
                                "--armeria.ports[0].protocols[0]=HTTP"], os.environ.copy())
        until(lambda: self.get("/health") is not None, 90, lambda: self.process.output())

    def get(self, path):
        try:
            with urllib.request.urlopen(self.base + path, timeout=60) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def trace(self, trace):
        """The spans of a trace, or None."""
        return self.get(f"/api/v2/trace/{trace}")

    def discard(self):
        self.process.kill()
        loopback.give_port(self.port)
