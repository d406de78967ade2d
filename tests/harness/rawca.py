# SPDX-License-Identifier: BSD-3-Clause
"""A small Channel Access client without a library. It sends exactly the bytes that a test wants, also if the server has
told this client that it may not write. Layouts: db_access.h of EPICS Base. In compound types all bytes before the
elements are zero."""
import collections
import functools
import select
import socket
import struct

STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE = range(7)
FORMAT = {SHORT: "h", FLOAT: "f", ENUM: "H", CHAR: "B", LONG: "i", DOUBLE: "d"}
STS, TIME, GR, CTRL = 7, 14, 21, 28  # DBR_STS_STRING …
META = {STS: [4, 4, 4, 4, 5, 4, 8], TIME: [12, 14, 12, 14, 15, 12, 16], GR: [4, 24, 40, 422, 19, 36, 64],
        CTRL: [4, 28, 48, 422, 21, 44, 80]}  # bytes before the first element
VERSION, WRITE, SEARCH, ERROR, CREATE, WRITE_NOTIFY, USER, HOST, ECHO = 0, 4, 6, 11, 18, 19, 20, 21, 23
MINOR = 13  # version of the protocol

Message = collections.namedtuple("Message", "command type count cid extra payload")


def elements(base, values):
    """The elements as bytes in a packet."""
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


def as_bytes(text):
    """A text as it is sent; bytes are sent as they are."""
    return text if isinstance(text, bytes) else text.encode()


def search(name):
    """A datagram that searches for a name."""
    return message(VERSION, count=MINOR) + message(SEARCH, as_bytes(name) + b"\0", 5, MINOR, 1, 1)


def answers(port, name):
    """True if the server at this port of 127.0.0.1 answers one search for this name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.1)
        s.connect(("127.0.0.1", port))
        try:
            s.send(search(name))
            reply = s.recv(2048)
        except OSError:  # no server yet, or no answer
            return False
    while len(reply) >= 16:
        command, size = struct.unpack(">HH", reply[:4])
        if command == SEARCH:
            return True
        reply = reply[16 + size:]
    return False


@functools.lru_cache(1000)  # several clients send the same arrays
def fnv(data):
    """FNV-1a, 64 bits."""
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{h:016x}"


def await_server(connection, seconds=0.3):
    """Waits until the server of this new connection has sent its version. The thread of Base that accepts a connection sends it,
    and the thread that serves the connection may answer the first request in the same moment: then an answer is lost (7.0.8.1).
    Servers without Base send nothing before the client does."""
    select.select([connection], [], [], seconds)


class RawCa:
    def __init__(self, port=None, user="raw", host="rawhost", addr="127.0.0.1", connection=None):
        """Connects to the server at this port, or uses this connection."""
        self.socket = connection or socket.create_connection((addr, port), timeout=60)
        await_server(self.socket)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as libca: each message is sent at once
        self.address = "%s:%d" % self.socket.getsockname()[:2]
        self._left, self._ioid, self._sids = b"", 100, {}
        self.send(message(VERSION, count=MINOR) + message(USER, as_bytes(user) + b"\0") +
                  message(HOST, as_bytes(host) + b"\0"))

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
        """All messages up to the first one of these kinds, and this one."""
        got = [self.receive()]
        while got[-1].command not in commands:
            got.append(self.receive())
        return got

    def sid(self, name):
        if name not in self._sids:
            self.send(message(CREATE, as_bytes(name) + b"\0", cid=len(self._sids) + 1, extra=MINOR))
            self._sids[name] = self.until(CREATE)[-1].extra
        return self._sids[name]

    def put_bytes(self, name, payload, dtype, count=1, notify=False):
        """Writes these bytes. Returns when the server has processed them."""
        self.send(message(WRITE_NOTIFY if notify else WRITE, payload, dtype, count, self.sid(name), 7) + message(ECHO))
        self.until(ECHO)

    def put(self, name, dbr, values, notify=False, sync=True):
        """Returns the status of a write-notify. For a plain write: the status of its error, or 1 if there is none."""
        sid = self.sid(name)
        self._ioid += 1
        self.send(write(sid, dbr, values, notify, self._ioid))
        if not sync:
            return None
        if not notify:
            self.send(message(ECHO))
        # caproto answers a refused write-notify like a plain write
        got = self.until(WRITE_NOTIFY, ERROR) if notify else self.until(ECHO)
        return next((m.extra for m in got if m.command == ERROR), got[-1].cid if notify else 1)

    def close(self):
        self.socket.close()
