# SPDX-License-Identifier: BSD-3-Clause
"""urgent_puts ADDRESS PORT PV between|value|hide FIRST: writes FIRST, then sends one urgent byte, which no server of Channel Access
reads, and writes FIRST + 1 and FIRST + 2.

between: the byte comes between two messages; value: within the value of a put; hide: within the header of a message, so that who
takes the byte for a part of the stream sees a long message that swallows the next ones."""
import socket
import sys

from tests.harness import rawca

address, port, pv, mode, first = sys.argv[1:]
client = rawca.RawCa(int(port), addr=address, user="mallory", host="h")
sid, first = client.sid(pv), float(first)
writes = [rawca.write(sid, rawca.DOUBLE, [first + i], notify=True, ioid=i) for i in range(3)]
client.send(writes[0])
client.until(rawca.WRITE_NOTIFY)


def send_around(message, at, byte):
    """Sends an urgent byte before this place of a message. Three segments: Nagle's algorithm is off."""
    if at:
        client.send(message[:at])
    client.socket.send(byte, socket.MSG_OOB)
    client.send(message[at:])


if mode == "between":
    send_around(writes[1], 0, b"\0")
elif mode == "value":
    send_around(writes[1], 18, b"\x8f")
else:
    send_around(rawca.message(rawca.ECHO), 2, b"\1")
    client.until(rawca.ECHO)
    client.send(writes[1])
client.until(rawca.WRITE_NOTIFY)
client.send(writes[2])
client.until(rawca.WRITE_NOTIFY)
client.close()
print("done", flush=True)
