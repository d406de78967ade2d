# SPDX-License-Identifier: BSD-3-Clause
"""Translates addresses, ports and sequence numbers, as routers and firewalls do; for badlink.py.

There is one rule for a pair of addresses: for the client "outward" is the server, and for the server "inward" is the
client. UDP and TCP over IPv4, without fragments. The translation of ports is its own inverse, so that no table is
needed. With "first" the sequence numbers of both directions of a TCP connection are moved, and the client's first one
becomes "first": some firewalls choose sequence numbers anew. Blocks of SACK are not translated, so such a link must not
lose frames.
"""
import socket
import struct

TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
PORTS = 0x0155   # exclusive or with this; nearly all ports of the kernel's range stay in the range
SYN, ACK = 2, 16
SERVERS_MOVE = 0x7654321
CHECK = {TCP: 16, UDP: 6}  # offset of the checksum


def words(data):
    return struct.unpack(f"!{len(data) // 2}H", data)


def replaced(check, old, new):
    """The new checksum after some words were replaced (RFC 1624, equation 3)."""
    total = (~check & 0xffff) + sum(~w & 0xffff for w in words(old)) + sum(words(new))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Translator:
    def __init__(self, inside, outward, inward, server, first=None):
        self.inside, self.outward, self.inward, self.server = map(socket.inet_aton, (inside, outward, inward, server))
        self.first = first
        self.moves = {}  # key: the client's port
        self.translated = 0

    def out(self, frame):
        """Translates a frame of the client."""
        return self._frame(frame, self.inside + self.outward, self.inward + self.server, 0)

    def back(self, frame):
        """Translates a frame of the server."""
        return self._frame(frame, self.server + self.inward, self.outward + self.inside, 2)

    def _frame(self, frame, old, new, client):
        ip = 14
        if frame[26:34] != old or frame[23] not in CHECK:
            return frame
        made = bytearray(frame)
        made[26:34] = new
        struct.pack_into("!H", made, ip + 10, replaced(struct.unpack_from("!H", made, ip + 10)[0], old, new))
        at = ip + (frame[ip] & 15) * 4
        before = bytes(made[at:at + 12])
        port, = struct.unpack_from("!H", made, at + client)
        struct.pack_into("!H", made, at + client, port ^ PORTS)
        if frame[23] == TCP and self.first is not None:
            self._numbers(made, at, port ^ PORTS if client else port, not client)
        check = at + CHECK[frame[23]]
        was, = struct.unpack_from("!H", made, check)
        if was or frame[23] == TCP:
            after = bytes(made[at:at + 12]) if frame[23] == TCP else bytes(made[at:at + 4])
            struct.pack_into("!H", made, check, replaced(was, old + before[:len(after)], new + after) or 0xffff)
        self.translated += 1
        return bytes(made)

    def _numbers(self, made, at, port, outwards):
        seq, ack = struct.unpack_from("!II", made, at + 4)
        flags = made[at + 13]
        if outwards and flags & SYN:
            self.moves[port] = self.first - seq
        own, others = self.moves.get(port, 0), SERVERS_MOVE
        if not outwards:
            own, others = others, own
        struct.pack_into("!II", made, at + 4, (seq + own) & 0xffffffff,
                         (ack - others) & 0xffffffff if flags & ACK else ack)
