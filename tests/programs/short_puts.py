# SPDX-License-Identifier: BSD-3-Clause
"""short_puts ADDRESS PORT PV FIRST CONNECTIONS PUTS: makes so many connections of Channel Access, one after the other, with so many puts
each: the numbers from FIRST on, and each is answered. Every third connection ends with a reset."""
import socket
import struct
import sys

from tests.harness import rawca

address, port, pv = sys.argv[1:4]
value, connections, puts = map(int, sys.argv[4:])
for i in range(connections):
    client = rawca.RawCa(int(port), addr=address)
    for _ in range(puts):
        assert client.put(pv, rawca.DOUBLE, [float(value)], notify=True) == 1
        value += 1
    if i % 3 == 2:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
print("done", flush=True)
