# SPDX-License-Identifier: BSD-3-Clause
"""Puts numbers to a PV from a given local port. Before each put it prints the TCP sequence number of the put.

    put_from_port ADDRESS PORT OWN_ADDRESS OWN_PORT FIRST_SEQUENCE_NUMBER|"" PV NUMBER…

With FIRST_SEQUENCE_NUMBER the connection begins with this number. TCP_REPAIR reads and sets sequence numbers
(linux/tcp.h; tcp_v4_connect keeps a number that was set).
"""
import socket
import struct
import sys

from tests.harness import rawca

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21
SEND_QUEUE, REPAIR_OFF_NO_WINDOW_PROBE = 2, -1


def sequence(connection, number=None):
    """Returns the sequence number of the next byte that this connection sends. If "number" is given, sets it first."""
    connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
    if number is not None:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, struct.pack("I", number))
    now = connection.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) & 0xffffffff
    connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_OFF_NO_WINDOW_PROBE)
    return now


def main():
    address, port, own_address, own_port, first, name, *numbers = sys.argv[1:]
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # With this the connection ends without the state TIME_WAIT, so the port is free at once.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.bind((own_address, int(own_port)))
    if first:
        sequence(connection, int(first))
    connection.connect((address, int(port)))
    client = rawca.RawCa(connection=connection)
    client.sid(name)
    for n in numbers:
        print(sequence(connection), flush=True)
        assert client.put(name, rawca.DOUBLE, [float(n)], notify=True) == 1


main()
