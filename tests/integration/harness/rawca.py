# SPDX-License-Identifier: BSD-3-Clause
"""A Channel Access client that sends what it is told to, byte by byte, whatever the server said of access rights.

The layouts: db_access.h of EPICS Base; all that comes before the elements of a compound type is zeros here.
"""
import collections
import socket
import struct

STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE = range(7)
FORMAT = {SHORT: "h", FLOAT: "f", ENUM: "H", CHAR: "B", LONG: "i", DOUBLE: "d"}
STS, TIME, GR, CTRL = 7, 14, 21, 28  # DBR_STS_STRING …
META = {STS: [4, 4, 4, 4, 5, 4, 8], TIME: [12, 14, 12, 14, 15, 12, 16], GR: [4, 24, 40, 422, 19, 36, 64],
        CTRL: [4, 28, 48, 422, 21, 44, 80]}  # bytes before the first element
WRITE, CREATE, WRITE_NOTIFY, ECHO, ERROR = 4, 18, 19, 23, 11

Message = collections.namedtuple("Message", "command type count cid extra payload")


def elements(base, values):
    """As they lie on the wire."""
    if base == STRING:
        return b"".join(v.encode().ljust(40, b"\0") for v in values)
    return struct.pack(f">{len(values)}{FORMAT[base]}", *values)


def message(command, payload=b"", dtype=0, count=0, cid=0, extra=0):
    payload += b"\0" * (-len(payload) % 8)
    if len(payload) > 0xffe0 or count > 0xfffe:
        return struct.pack(">HHHHIIII", command, 0xffff, dtype, 0, cid, extra, len(payload), count) + payload
    return struct.pack(">HHHHII", command, len(payload), dtype, count, cid, extra) + payload


def write(sid, dbr, values, notify=False, ioid=0):
    meta = META[dbr - dbr % 7][dbr % 7] if dbr > DOUBLE else 0
    return message(WRITE_NOTIFY if notify else WRITE, bytes(meta) + elements(dbr % 7, values), dbr, len(values), sid,
                   ioid)


def fnv(data):
    """FNV-1a, 64 bits."""
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{h:016x}"


class RawCa:
    def __init__(self, port, user="raw", host="rawhost", addr="127.0.0.1"):
        self.socket = socket.create_connection((addr, port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as libca; what is sent is on the wire
        self.address = "%s:%d" % self.socket.getsockname()
        self._left, self._ioid, self._sids = b"", 100, {}
        self.send(message(0, count=13) + message(20, user.encode() + b"\0") + message(21, host.encode() + b"\0"))

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """The next message of the server."""
        while True:
            if len(self._left) >= 24 or self._left[2:4] not in (b"", b"\xff", b"\xff\xff"):
                command, size, dtype, count, cid, extra = struct.unpack(">HHHHII", self._left[:16].ljust(16))
                head = 16
                if size == 0xffff:
                    (size, count), head = struct.unpack(">II", self._left[16:24]), 24
                if len(self._left) >= head + size:
                    payload, self._left = self._left[head:head + size], self._left[head + size:]
                    return Message(command, dtype, count, cid, extra, payload)
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("the server closed the connection")
            self._left += more

    def until(self, *commands):
        """What came until and with the first message of these kinds."""
        got = [self.receive()]
        while got[-1].command not in commands:
            got.append(self.receive())
        return got

    def sid(self, name):
        if name not in self._sids:
            self.send(message(CREATE, name.encode() + b"\0", cid=len(self._sids) + 1, extra=13))
            self._sids[name] = self.until(CREATE)[-1].extra
        return self._sids[name]

    def put(self, name, dbr, values, notify=False, sync=True):
        """The status of a write-notify; of a plain write that of the error it met, or 1."""
        sid = self.sid(name)
        self._ioid += 1
        self.send(write(sid, dbr, values, notify, self._ioid))
        if not sync:
            return None
        if not notify:
            self.send(message(ECHO))
        # caproto answers a write-notify that it refuses as a plain write
        got = self.until(WRITE_NOTIFY, ERROR) if notify else self.until(ECHO)
        return next((m.extra for m in got if m.command == ERROR), got[-1].cid if notify else 1)

    def close(self):
        self.socket.close()
