# SPDX-License-Identifier: BSD-3-Clause
"""A real Zipkin in memory: its jar comes from Maven Central, once, into the cache."""
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from . import env
from .process import Process
from .wait import until

ARTIFACT = "io.zipkin:zipkin-server:3.6.1:jar:slim"
CACHE = Path(os.environ.get("EBPFMON_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebpfmon")
JAR = CACHE / "zipkin-server-3.6.1-slim.jar"


def missing():
    """Why there can be none here; empty: there can."""
    if not shutil.which("java"):
        return "java is not installed"
    if JAR.exists():
        return ""
    if not shutil.which("mvn"):
        return f"{JAR} is not there, and mvn, which fetches it, is not installed"
    got = subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}",
                          f"-DoutputDirectory={CACHE}"], capture_output=True, text=True, timeout=300)
    return "" if got.returncode == 0 and JAR.exists() else f"mvn could not fetch {ARTIFACT}: {got.stdout[-300:]}"


class Zipkin:
    def __init__(self):
        self.port = env.take_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = self.base + "/api/v2/spans"
        self.process = Process(["java", "-Xmx400m", "-jar", JAR, "--armeria.ports[0].ip=127.0.0.1",
                                f"--armeria.ports[0].port={self.port}", "--armeria.ports[0].protocols[0]=HTTP"],
                               os.environ.copy())
        until(lambda: self.get("/health") is not None, 90, lambda: self.process.output())

    def get(self, path):
        try:
            with urllib.request.urlopen(self.base + path, timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def trace(self, trace):
        """The spans of a trace, or None."""
        return self.get(f"/api/v2/trace/{trace}")

    def discard(self):
        self.process.kill()
        env.give_port(self.port)
