# SPDX-License-Identifier: BSD-3-Clause
"""put_raw INTERFACE MAC SERVER:PORT CLIENT:PORT PV VALUE: a Channel Access client that is no socket of this host. It speaks TCP itself,
from an address that this host does not have, to the host with this MAC address. VALUE -: it prints the first sequence numbers of the
connection, and waits for a line with the value."""
import os
import socket
import struct
import sys

from tests.harness import rawca
from tests.programs.forge_session import ACK, PSH, RST, SYN, Session, place


class Connection(Session):
    """As a socket, for RawCa."""

    def __init__(self, *args):
        super().__init__(*args)
        self.socket.settimeout(20)
        self.next[0] = int.from_bytes(os.urandom(4))
        self.received = b""
        self.send(0, SYN)
        flags, seq, _ = self.segment()
        assert flags & (SYN | ACK) == SYN | ACK, flags
        self.next[1] = seq + 1
        self.send(0, ACK)

    def segment(self):
        """The next one from the server: flags, sequence number, data."""
        while True:
            ip = self.socket.recv(65536)[14:]
            size, head = struct.unpack(">H", ip[2:4])[0], (ip[0] & 15) * 4
            tcp = ip[head:size]
            if ip[9] == 6 and struct.unpack(">HH", tcp[:4]) == (self.ends[1][1], self.ends[0][1]):
                return tcp[13], struct.unpack(">I", tcp[4:8])[0], tcp[(tcp[12] >> 4) * 4:]

    def sendall(self, data):
        self.send(0, ACK | PSH, data)

    def recv(self, most):
        while not self.received:
            _, seq, data = self.segment()
            if data and seq == self.next[1]:
                self.received = data
                self.next[1] += len(data)
                self.send(0, ACK)
        data, self.received = self.received[:most], self.received[most:]
        return data

    def fileno(self):
        return self.socket.fileno()

    def setsockopt(self, *_):
        pass

    def getsockname(self):
        return self.ends[0]


def main(interface, mac, server, client, pv, value):
    connection = Connection(interface, place(server), place(client), bytes.fromhex(mac.replace(":", "")))
    if value == "-":
        print("numbers", *connection.next, flush=True)
        value = sys.stdin.readline()
    assert rawca.RawCa(connection=connection).put(pv, rawca.DOUBLE, [float(value)], notify=True) == 1
    connection.send(0, RST | ACK)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
