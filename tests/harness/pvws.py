# SPDX-License-Identifier: BSD-3-Clause
"""Replaces PVWS (github.com/ornl-epics/pvws: WebSocket.java, Vtype2Json.java): it answers a subscription with values of
the tests, in the messages of PVWS. documentation/develop/tried.md tells how it was compared with a real PVWS."""
import base64
import json
import socket
import struct
import threading

from . import websocket

SEVERITIES = ["NONE", "MINOR", "MAJOR", "INVALID"]


def update(name, value, severity=0, **more):
    """The first update of a PV."""
    said = {"type": "update", "pv": name, "severity": SEVERITIES[severity], "readonly": True, "seconds": 1, "nanos": 0, **more}
    if isinstance(value, bytes):  # a char waveform: 8-bit numbers
        said |= {"vtype": "VByteArray", "b64byt": base64.b64encode(value).decode()}
    elif isinstance(value, list):
        said |= {"vtype": "VDoubleArray", "b64dbl": base64.b64encode(struct.pack(f"<{len(value)}d", *value)).decode()}
    elif isinstance(value, str):
        said |= {"vtype": "VString", "text": value}
    else:
        said |= {"vtype": "VDouble", "value": value if value == value else "NaN"}
    return said


class Pvws:
    """Answers each subscription by "values": name → update."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}/pvws/pv"
        self.values, self.asked, self.socket = {}, [], None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                self.socket = websocket.accept(self.listener)
                while (text := self.socket.receive()) is not None:
                    self._answer(json.loads(text))
            except (OSError, KeyError):
                if self.listener.fileno() < 0:
                    return

    def _answer(self, message):
        self.asked.append(message)
        if message["type"] == "subscribe":
            for name in message["pvs"]:
                if name in self.values:
                    self.socket.send(json.dumps(self.values[name]))

    def send(self, message):
        self.socket.send(json.dumps(message))

    def close(self):
        self.listener.close()
        if self.socket:
            self.socket.close()
