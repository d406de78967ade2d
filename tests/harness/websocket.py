# SPDX-License-Identifier: BSD-3-Clause
"""WebSocket (RFC 6455), as much of it as two programs on one machine need: texts, no extensions."""
import base64
import hashlib
import os
import socket
import struct
import urllib.parse

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # section 1.3
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def _read_head(stream):
    """The lines of a request or an answer up to the empty one."""
    lines = []
    while (line := stream.readline().decode().strip()):
        lines.append(line)
    return lines


class WebSocket:
    """One end. A client masks what it sends, a server does not (section 5.3)."""

    def __init__(self, sock, stream, is_client):
        self.sock, self.stream, self.is_client = sock, stream, is_client

    def send(self, text, code=TEXT):
        data = text.encode() if isinstance(text, str) else text
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data)) if len(data) < 65536 else \
            b"\x7f" + struct.pack(">Q", len(data))
        if not self.is_client:
            self.sock.sendall(bytes([0x80 | code]) + size + data)
            return
        mask = os.urandom(4)
        self.sock.sendall(bytes([0x80 | code, size[0] | 0x80]) + size[1:] + mask + self._masked(data, mask))

    @staticmethod
    def _masked(data, mask):
        return bytes(b ^ mask[i % 4] for i, b in enumerate(data))

    def _frame(self):
        head = self.stream.read(2)
        if len(head) < 2:
            return CLOSE, True, b""
        size = head[1] & 0x7f
        if size > 125:
            size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
        mask = self.stream.read(4) if head[1] & 0x80 else None
        data = self.stream.read(size)
        return head[0] & 15, bool(head[0] & 0x80), self._masked(data, mask) if mask else data

    def receive(self):
        """The next text; None at the end."""
        whole = b""
        while True:
            code, is_last, data = self._frame()
            if code == CLOSE:
                return None
            if code == PING:
                self.send(data, PONG)
            elif code != PONG:
                whole += data
                if is_last:
                    return whole.decode()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


def connect(url, timeout=60):
    at = urllib.parse.urlsplit(url)
    sock = socket.create_connection((at.hostname, at.port), timeout=timeout)
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    stream = sock.makefile("rb")
    status, *_ = _read_head(stream)
    assert status.split()[1] == "101", status
    return WebSocket(sock, stream, True)


def accept(listener):
    """The server's end of the next client."""
    sock, _ = listener.accept()
    stream = sock.makefile("rb")
    fields = dict(line.split(": ", 1) for line in _read_head(stream)[1:])
    answer = base64.b64encode(hashlib.sha1((fields["Sec-WebSocket-Key"] + GUID).encode()).digest()).decode()
    sock.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 f"Sec-WebSocket-Accept: {answer}\r\n\r\n".encode())
    return WebSocket(sock, stream, False)
