# SPDX-License-Identifier: BSD-3-Clause
"""A page in headless Chromium, which the tests control by the DevTools protocol. They use it if it is installed."""
import itertools
import json
import os
import re
import shutil
import urllib.request

from . import websocket
from .process import Process
from .wait import until


def _find():
    return next((p for p in (os.environ.get("EBPFMON_CHROMIUM"), shutil.which("chromium"), shutil.which("google-chrome")) if p), None)


def missing():
    """Why no browser can be used; empty if one can."""
    return "" if _find() else "no Chromium: chromium is not on PATH, EBPFMON_CHROMIUM names none"


class Page:
    """The page at this URL."""

    def __init__(self, url, tmp, size=(1280, 1024)):
        self.process = Process([_find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                "--no-first-run", "--no-proxy-server", "--remote-debugging-port=0", "--remote-allow-origins=*",
                                f"--window-size={size[0]},{size[1]}", f"--user-data-dir={tmp / 'chromium'}", url], os.environ.copy())
        found = until(lambda: re.search(r"DevTools listening on ws://([\d.]+:\d+)/", self.process.output()), 60,
                      self.process.output)
        page = until(lambda: next((p for p in self._pages(found[1]) if p["type"] == "page" and p["url"].startswith(url[:20])), None),
                     60, self.process.output)
        self.socket = websocket.connect(page["webSocketDebuggerUrl"])
        self.numbers = itertools.count(1)
        self.complaints = []  # of scripts and of the console
        self.call("Runtime.enable")
        self.call("Log.enable")
        until(lambda: self.ask("location.href") == url and self.ask("document.readyState") == "complete", 60, "the page is there")

    @staticmethod
    def _pages(address):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{address}/json", timeout=20) as answer:
            return json.load(answer)

    def call(self, method, **params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("method") == "Runtime.exceptionThrown" or message.get("method") == "Log.entryAdded":
                self.complaints.append(message["params"])
            if message.get("id") == number:
                return message["result"]

    def ask(self, expression):
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self):
        """As PNG, base64."""
        return self.call("Page.captureScreenshot")["data"]

    def close(self):
        self.socket.close()
        self.process.kill()
