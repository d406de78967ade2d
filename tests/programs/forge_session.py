# SPDX-License-Identifier: BSD-3-Clause
"""Writes the packets of a Channel Access session that never was to an interface: no socket has this connection.

    forge_session INTERFACE MAC SERVER:PORT CLIENT:PORT PV USER HOST VALUE...

Both addresses may be IPv6.

For each value a write-notify and its reply; for a negative one it says that the put is refused. With a MAC address of zeros the
interface is lo. FORGE=checksums in the environment: all TCP checksums are wrong, so no host takes these packets."""
import os
import socket
import struct
import sys
import time

from tests.harness import rawca

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SID = 77
ECA_NORMAL, ECA_NOWTACCESS = 1, 376  # caerr.h


def checksum(data):
    data += b"\0" * (len(data) % 2)
    n = sum(struct.unpack(f">{len(data) // 2}H", data))
    while n >> 16:
        n = (n >> 16) + (n & 0xffff)
    return ~n & 0xffff


class Session:
    """Both ends of a TCP connection. End 0 is the client."""

    def __init__(self, interface, server, client, destination=bytes(6)):
        self.ends = [client, server]
        self.next = [1000, 90000]
        self.pause = 0.005  # s; as a real session: the other end answers later
        self.wrong = os.environ.get("FORGE") == "checksums"
        self.family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
        kind = 0x0800 if self.family == socket.AF_INET else 0x86dd
        self.ether = destination + b"\2\0\0\0\0\1" + struct.pack(">H", kind)  # a bridge drops frames from zeros
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind((interface, 0x0800))

    def send(self, end, flags, data=b""):
        (source, sport), (target, port) = self.ends[end], self.ends[1 - end]
        addresses = socket.inet_pton(self.family, source) + socket.inet_pton(self.family, target)
        tcp = struct.pack(">HHIIBBHHH", sport, port, self.next[end], self.next[1 - end] if flags & ACK else 0, 5 << 4, flags, 65535,
                          0, 0) + data
        tcp = tcp[:16] + struct.pack(">H", checksum(addresses + struct.pack(">BBH", 0, 6, len(tcp)) + tcp) ^ self.wrong) + tcp[18:]
        if self.family == socket.AF_INET6:
            ip = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + addresses
        else:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0) + addresses
            ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        self.socket.send(self.ether + ip + tcp)
        self.next[end] = (self.next[end] + len(data) + (1 if flags & (SYN | FIN) else 0)) % (1 << 32)
        if self.pause:
            time.sleep(self.pause)

    def open(self):
        self.send(0, SYN)
        self.send(1, SYN | ACK)
        self.send(0, ACK)

    def close(self):
        self.send(0, FIN | ACK)
        self.send(1, FIN | ACK)


def place(text):
    address, port = text.rsplit(":", 1)
    return address, int(port)


def main(interface, mac, server, client, pv, user, host, *values):
    s = Session(interface, place(server), place(client), bytes.fromhex(mac.replace(":", "")))
    s.open()
    s.send(1, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR))
    s.send(0, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.USER, user.encode() + b"\0") +
           rawca.message(rawca.HOST, host.encode() + b"\0") +
           rawca.message(rawca.CREATE, pv.encode() + b"\0", cid=1, extra=rawca.MINOR))
    s.send(1, ACK | PSH, rawca.message(22, cid=1, extra=3) + rawca.message(rawca.CREATE, dtype=rawca.DOUBLE, count=1, cid=1, extra=SID))
    for i, value in enumerate(map(float, values)):
        s.send(0, ACK | PSH, rawca.write(SID, rawca.DOUBLE, [abs(value)], notify=True, ioid=i))
        s.send(1, ACK | PSH, rawca.message(rawca.WRITE_NOTIFY, dtype=rawca.DOUBLE, count=1, cid=ECA_NORMAL if value > 0 else
                                           ECA_NOWTACCESS, extra=i))
    s.close()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
