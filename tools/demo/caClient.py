# SPDX-License-Identifier: BSD-3-Clause
"""The little Channel Access that the demo needs without a library: is a server there, and a client that stays
connected, as operators' panels do."""
import socket
import struct

VERSION, WRITE, SEARCH, CREATE, CLIENT, HOST = 0, 4, 6, 18, 20, 21
DOUBLE = 6


def _message(command, payload=b"", dtype=0, count=0, p1=0, p2=0):
    payload += b"\0" * (-len(payload) % 8)
    return struct.pack(">HHHHII", command, len(payload), dtype, count, p1, p2) + payload


def _messages(data):
    while len(data) >= 16:
        command, size, _, _, p1, p2 = struct.unpack(">HHHHII", data[:16])
        if len(data) < 16 + size:
            return
        yield command, p1, p2
        data = data[16 + size:]


def answers(port, name):
    """Whether the server at this port of 127.0.0.1 has "name" now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.1)
        s.connect(("127.0.0.1", port))
        try:
            s.send(_message(VERSION, count=13) + _message(SEARCH, name.encode() + b"\0", 5, 13, 1, 1))
            return any(m[0] == SEARCH for m in _messages(s.recv(2048)))
        except OSError:
            return False


class Panel:
    """A client with one channel, open from the beginning."""

    def __init__(self, port, name, user, host):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self._socket.sendall(_message(VERSION, count=13) + _message(CLIENT, user.encode() + b"\0") +
                             _message(HOST, host.encode() + b"\0") +
                             _message(CREATE, name.encode() + b"\0", p1=1, p2=13))
        data, self._sid = b"", None
        while self._sid is None:
            more = self._socket.recv(4096)
            if not more:
                raise OSError(f"the IOC refused {name}")
            data += more
            self._sid = next((p2 for command, p1, p2 in _messages(data) if (command, p1) == (CREATE, 1)), None)

    def put(self, value):
        self._socket.sendall(_message(WRITE, struct.pack(">d", value), DOUBLE, 1, self._sid, 1))

    def close(self):
        self._socket.close()
