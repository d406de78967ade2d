# SPDX-License-Identifier: BSD-3-Clause
"""A RecSync server that checks every message that the monitor sends for its IOCs."""
import socket
import struct
import threading

HEADER = struct.Struct("!HHI")
MAGIC = 0x5243
GREETING, PONG, RECORD, DELETE, DONE, INFO = 1, 2, 3, 4, 5, 6
BROADCAST = "127.255.255.255"


class Wrong(Exception):
    """A message that the protocol does not allow."""


class Session:
    """One connection: one IOC. Its thread checks that messages come as they should."""

    def __init__(self, receiver, sock, peer):
        self.receiver, self.peer, self._sock = receiver, peer, sock
        self.records, self.types, self.aliases, self.infos, self.variables = {}, {}, {}, {}, {}
        self.isDone, self.isOpen, self.pongs, self.error = False, True, 0, None
        self._greeted, self._nonces = False, []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def name(self):
        return self.variables.get("IOCNAME")

    @property
    def names(self):
        return set(self.records.values())

    def info(self, record):
        number, = [n for n, name in self.records.items() if name == record]
        return self.infos.get(number, {})

    def alias(self, record):
        number, = [n for n, name in self.records.items() if name == record]
        return self.aliases.get(number, set())

    def ping(self):
        self._nonces.append(len(self._nonces) + 0xcafe0000)
        self._send(0x8002, struct.pack("!I", self._nonces[-1]))

    def close(self):
        self._sock.shutdown(socket.SHUT_RDWR)

    def _send(self, message, body):
        self._sock.sendall(HEADER.pack(MAGIC, message, len(body)) + body)

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self._sock.recv(count - len(data))
            if not more:
                if data:
                    raise Wrong("the connection ends inside a message")
                return None
            data += more
        return data

    def _run(self):
        try:
            if self.receiver.isSilent:
                while self._sock.recv(4096):
                    pass
                return
            self._send(0x8001, b"\0")
            while (head := self._read(HEADER.size)) is not None:
                magic, message, length = HEADER.unpack(head)
                if magic != MAGIC or length > 1 << 20:
                    raise Wrong(f"header {head!r}")
                body = self._read(length)
                if body is None:
                    raise Wrong("no body")
                self._take(message, body)
        except (Wrong, UnicodeDecodeError, struct.error, AssertionError) as error:
            self.error = error
        except OSError:
            pass
        finally:
            self.isOpen = False
            self._sock.close()

    def _take(self, message, body):
        if (message == GREETING) == self._greeted:
            raise Wrong("the greeting comes first, and once")
        if message == GREETING:
            self._greeted = True
            if struct.unpack("!BBHI", body) != (0, 0, 0, self.receiver.key):
                raise Wrong(f"greeting {body!r}")
        elif message == PONG:
            if struct.unpack("!I", body) != (self._nonces[self.pongs],):
                raise Wrong(f"pong {body!r}")
            self.pongs += 1
        elif self.isDone:
            raise Wrong(f"message {message} after the end")
        elif message == RECORD:
            self._record(body)
        elif message == INFO:
            self._info(body)
        elif message == DONE and len(body) == 4:
            self.isDone = True
        else:
            raise Wrong(f"message {message}")

    def _record(self, body):
        number, kind, of_type, of_name = struct.unpack("!IBBH", body[:8])
        if not number or not of_name or len(body) != 8 + of_type + of_name or kind > 1 or bool(of_type) == bool(kind):
            raise Wrong(f"record {body!r}")
        name = body[8 + of_type:].decode()
        if kind:
            assert number in self.records, "an alias of nothing"
            self.aliases.setdefault(number, set()).add(name)
        else:
            assert number not in self.records and name not in self.types, "a record twice"
            self.records[number], self.types[name] = name, body[8:8 + of_type].decode()

    def _info(self, body):
        number, of_name, unused, of_value = struct.unpack("!IBBH", body[:8])
        if not of_name or unused or len(body) != 8 + of_name + of_value:
            raise Wrong(f"info {body!r}")
        name, value = body[8:8 + of_name].decode(), body[8 + of_name:].decode()
        assert not number or number in self.records, "an info tag of nothing"
        into = self.infos.setdefault(number, {}) if number else self.variables
        assert name not in into, f"{name} twice"
        into[name] = value


class Receiver:
    """"isSilent": it accepts connections, and sends nothing."""

    def __init__(self, udp, isSilent=False):
        self.key, self.isSilent, self.sessions = 0x12345678, isSilent, []
        self._udp = udp
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._accept, self._announce)]
        for t in self._threads:
            t.start()

    def _accept(self):
        while True:
            try:
                sock, peer = self._listener.accept()
            except OSError:
                return
            self.sessions.append(Session(self, sock, peer))

    def announcement(self, address="255.255.255.255"):
        return struct.pack("!HH4sHxxI", MAGIC, 0, socket.inet_aton(address), self.port, self.key)

    def _announce(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.bind(("127.0.0.1", 0))
            while not self._ending.is_set():
                s.sendto(self.announcement(), (BROADCAST, self._udp))
                self._ending.wait(0.2)  # as a real one does, every 15 s

    def open(self):
        """The sessions that are open: name of the IOC → session."""
        sessions = [s for s in list(self.sessions) if s.isOpen and s.isDone]
        assert len({s.name for s in sessions}) == len(sessions), "two connections for one IOC"
        return {s.name: s for s in sessions}

    def check(self):
        wrong = [s.error for s in self.sessions if s.error]
        assert not wrong, wrong

    def close(self):
        self._ending.set()
        self._listener.close()
        for s in list(self.sessions):
            try:
                s.close()
            except OSError:
                pass
